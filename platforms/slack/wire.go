package slack

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"herald/platforms"
)

// The payloads of the connection, as far as they are used. They are decoded loosely: a field of another shape than
// the documented one must not make a whole message unreadable.

type eventPayload struct {
	Type    string          `json:"type"`
	EventID string          `json:"event_id"`
	Event   json.RawMessage `json:"event"`
}

// innerEvent is any event of the Events API.
type innerEvent struct {
	wireMessage
	Message  *wireMessage `json:"message"`
	Previous *wireMessage `json:"previous_message"`
	DeletedT string       `json:"deleted_ts"`

	Reaction string `json:"reaction"`
	ItemUser string `json:"item_user"`
	Item     struct {
		Type    string `json:"type"`
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	} `json:"item"`

	Assistant *struct {
		UserID  string `json:"user_id"`
		Channel string `json:"channel_id"`
		Thread  string `json:"thread_ts"`
	} `json:"assistant_thread"`
}

// wireMessage is a message of an event or of a channel's history.
type wireMessage struct {
	Type        string           `json:"type"`
	Subtype     string           `json:"subtype"`
	Channel     string           `json:"channel"`
	ChannelType string           `json:"channel_type"`
	User        string           `json:"user"`
	BotID       string           `json:"bot_id"`
	AppID       string           `json:"app_id"`
	Username    string           `json:"username"`
	Text        string           `json:"text"`
	TS          string           `json:"ts"`
	Thread      string           `json:"thread_ts"`
	ParentUser  string           `json:"parent_user_id"`
	EventTS     string           `json:"event_ts"`
	Hidden      bool             `json:"hidden"`
	Blocks      json.RawMessage  `json:"blocks"`
	Attachments []wireAttachment `json:"attachments"`
	Files       []wireFile       `json:"files"`
	Edited      *struct {
		TS string `json:"ts"`
	} `json:"edited"`
	BotProfile *struct {
		Name string `json:"name"`
	} `json:"bot_profile"`
	UserProfile *struct {
		RealName    string `json:"real_name"`
		DisplayName string `json:"display_name"`
		Name        string `json:"name"`
	} `json:"user_profile"`
	Metadata *struct {
		EventType string          `json:"event_type"`
		Payload   json.RawMessage `json:"event_payload"`
	} `json:"metadata"`
}

// wireAttachment is a legacy attachment: a forwarded message, or what other apps hang below theirs.
type wireAttachment struct {
	Fallback      string     `json:"fallback"`
	Pretext       string     `json:"pretext"`
	Title         string     `json:"title"`
	TitleLink     string     `json:"title_link"`
	Text          string     `json:"text"`
	AuthorName    string     `json:"author_name"`
	FromURL       string     `json:"from_url"`
	IsShare       bool       `json:"is_share"`
	IsMsgUnfurl   bool       `json:"is_msg_unfurl"`
	Files         []wireFile `json:"files"`
	MessageBlocks []struct {
		Message struct {
			Blocks json.RawMessage `json:"blocks"`
		} `json:"message"`
	} `json:"message_blocks"`
	Fields []struct {
		Title string `json:"title"`
		Value string `json:"value"`
	} `json:"fields"`
}

type wireFile struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Title      string `json:"title"`
	MIME       string `json:"mimetype"`
	Subtype    string `json:"subtype"`
	Mode       string `json:"mode"`
	Access     string `json:"file_access"`
	Size       int64  `json:"size"`
	IsExternal bool   `json:"is_external"`
	Private    string `json:"url_private"`
	Download   string `json:"url_private_download"`
	Permalink  string `json:"permalink"`
}

// command is the payload of a slash command.
type command struct {
	Command     string `json:"command"`
	Text        string `json:"text"`
	Channel     string `json:"channel_id"`
	ChannelName string `json:"channel_name"`
	User        string `json:"user_id"`
	UserName    string `json:"user_name"`
	ResponseURL string `json:"response_url"`
	Trigger     string `json:"trigger_id"`
}

// interaction is the payload of a press on a button or select.
type interaction struct {
	Type string `json:"type"`
	User struct {
		ID       string `json:"id"`
		Username string `json:"username"`
		Name     string `json:"name"`
	} `json:"user"`
	Container struct {
		Type      string `json:"type"`
		Message   string `json:"message_ts"`
		Channel   string `json:"channel_id"`
		Thread    string `json:"thread_ts"`
		Ephemeral bool   `json:"is_ephemeral"`
	} `json:"container"`
	Channel struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"channel"`
	Message     wireMessage `json:"message"`
	Trigger     string      `json:"trigger_id"`
	ResponseURL string      `json:"response_url"`
	Actions     []struct {
		ID       string `json:"action_id"`
		Block    string `json:"block_id"`
		Type     string `json:"type"`
		Value    string `json:"value"`
		TS       string `json:"action_ts"`
		Selected *struct {
			Value string `json:"value"`
		} `json:"selected_option"`
	} `json:"actions"`
}

// when reads a ts, "1700000000.000100", as a time; the zero time when it is not one.
func when(ts string) time.Time {
	secs, micros, _ := strings.Cut(ts, ".")
	s, err := strconv.ParseInt(secs, 10, 64)
	if err != nil || s <= 0 {
		return time.Time{}
	}
	m, err := strconv.ParseInt((micros + "000000")[:6], 10, 64)
	if err != nil || m < 0 {
		m = 0
	}
	return platforms.Instant(time.Unix(s, m*1000))
}
