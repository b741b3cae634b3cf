package telegramtest

// wireMessage is a Message of the Bot API, as far as the fake has it.
type wireMessage struct {
	ID         int           `json:"message_id"`
	Thread     int           `json:"message_thread_id,omitempty"`
	IsTopic    bool          `json:"is_topic_message,omitempty"`
	From       *User         `json:"from,omitempty"`
	SenderChat *Chat         `json:"sender_chat,omitempty"`
	Chat       Chat          `json:"chat"`
	Date       int64         `json:"date"`
	EditDate   int64         `json:"edit_date,omitempty"`
	Signature  string        `json:"author_signature,omitempty"`
	Forward    *wireOrigin   `json:"forward_origin,omitempty"`
	ReplyTo    *wireMessage  `json:"reply_to_message,omitempty"`
	Quote      *wireQuote    `json:"quote,omitempty"`
	Album      string        `json:"media_group_id,omitempty"`
	Text       string        `json:"text,omitempty"`
	Entities   []Entity      `json:"entities,omitempty"`
	Caption    string        `json:"caption,omitempty"`
	CaptionEnt []Entity      `json:"caption_entities,omitempty"`
	Photo      []wireFile    `json:"photo,omitempty"`
	Video      *wireFile     `json:"video,omitempty"`
	Animation  *wireFile     `json:"animation,omitempty"`
	Audio      *wireFile     `json:"audio,omitempty"`
	Voice      *wireFile     `json:"voice,omitempty"`
	Document   *wireFile     `json:"document,omitempty"`
	Sticker    *wireFile     `json:"sticker,omitempty"`
	Markup     *wireKeyboard `json:"reply_markup,omitempty"`
	Topic      *wireTopic    `json:"forum_topic_created,omitempty"`
}

type wireTopic struct {
	Name  string `json:"name"`
	Color int    `json:"icon_color"`
}

type wireQuote struct {
	Text     string `json:"text"`
	Position int    `json:"position"`
	Manual   bool   `json:"is_manual,omitempty"`
}

type wireOrigin struct {
	Type string `json:"type"`
	Date int64  `json:"date"`
	User *User  `json:"sender_user,omitempty"`
	Name string `json:"sender_user_name,omitempty"`
}

// wireFile is any of the file types; each has the fields it needs.
type wireFile struct {
	ID       string `json:"file_id"`
	Unique   string `json:"file_unique_id"`
	Name     string `json:"file_name,omitempty"`
	MIME     string `json:"mime_type,omitempty"`
	Size     int    `json:"file_size"`
	Width    int    `json:"width"`
	Height   int    `json:"height"`
	Duration int    `json:"duration"`
	Type     string `json:"type,omitempty"`
	Emoji    string `json:"emoji,omitempty"`
}

type wireKeyboard struct {
	Rows [][]Button `json:"inline_keyboard"`
}

type wireReaction struct {
	Type  string `json:"type"`
	Emoji string `json:"emoji"`
}

// stored is a file that was uploaded.
type stored struct {
	name string
	body []byte
	mime string
}

// query is a pressed button that waits for its answer.
type query struct {
	answered bool
	text     string
}

// attach puts a file of the kind into the message.
func (m *wireMessage) attach(kind string, f wireFile) {
	switch kind {
	case "photo":
		small := f
		small.ID, small.Width, small.Height, small.Size = f.ID+"-small", 90, 90, f.Size/4
		f.Width, f.Height = 1280, 1280
		small.Name, small.MIME, f.Name, f.MIME = "", "", "", ""
		m.Photo = []wireFile{small, f}
	case "video":
		m.Video = &f
	case "animation":
		m.Animation, m.Document = &f, &f
	case "audio":
		m.Audio = &f
	case "voice":
		f.Name = ""
		m.Voice = &f
	case "sticker":
		f.Type = "regular"
		m.Sticker = &f
	default:
		m.Document = &f
	}
}
