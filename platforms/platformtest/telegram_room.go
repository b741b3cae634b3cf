package platformtest

import (
	"slices"
	"time"
)

// TelegramUser is a person or a bot.
type TelegramUser struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name,omitempty"`
	Username  string `json:"username,omitempty"`
	Language  string `json:"language_code,omitempty"`
}

// TelegramChat is a private chat, group, supergroup or channel.
type TelegramChat struct {
	ID        int64  `json:"id"`
	Type      string `json:"type"` // private, group, supergroup, channel
	Title     string `json:"title,omitempty"`
	Username  string `json:"username,omitempty"`
	FirstName string `json:"first_name,omitempty"`
	LastName  string `json:"last_name,omitempty"`
	IsForum   bool   `json:"is_forum,omitempty"`
}

// TelegramButton is a button of an inline keyboard.
type TelegramButton struct {
	Text  string `json:"text"`
	Data  string `json:"callback_data,omitempty"`
	Style string `json:"style,omitempty"`
}

// TelegramCommand is an entry of the command menu.
type TelegramCommand struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// TelegramMessage is a message as it stands in a chat.
type TelegramMessage struct {
	ID      int
	Chat    int64
	Thread  int
	From    TelegramUser
	Bot     bool   // one of the bot's own
	Text    string // what people read: the markup is parsed
	Raw     string // what the bot sent
	Mode    string // parse_mode
	Marks   []TelegramEntity
	Kind    string // "text", "photo", "video", "animation", "audio", "voice", "document", "sticker"
	File    string // name of the file
	Body    []byte // the file
	FileID  string
	Album   string
	Buttons [][]TelegramButton
	ReplyTo int
	Silent  bool
	Preview bool // link previews are on
	Emoji   string
	At      time.Time
	Edited  time.Time

	wire wireMessage
}

// TelegramAct is one thing that happened in a chat, in order.
type TelegramAct struct {
	At      time.Time
	Verb    string // say, send, edit, delete, react, typing, answer
	Chat    int64
	Thread  int
	Message int
	Text    string
}

// room is a chat and what is in it.
type room struct {
	chat     TelegramChat
	topics   map[int]string
	closed   map[int]bool
	messages map[int]*TelegramMessage
	order    []int
	blocked  string // a 403 description: the bot may not write
	noRights string // a 400 description
	movedTo  int64
}

// AddChat registers a chat, so that the bot can write to it.
func (t *Telegram) AddChat(c TelegramChat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.room(c)
}

func (t *Telegram) room(c TelegramChat) *room {
	r := t.rooms[c.ID]
	if r == nil {
		if c.Type == "" {
			c.Type = "private"
			if c.ID < 0 {
				c.Type = "supergroup"
			}
		}
		if c.Type == "private" && c.FirstName == "" {
			c.FirstName = "Pat"
		}
		if c.Type != "private" && c.Title == "" {
			c.Title = "Room"
		}
		r = &room{chat: c, topics: map[int]string{}, closed: map[int]bool{}, messages: map[int]*TelegramMessage{}}
		t.rooms[c.ID] = r
	}
	return r
}

// AddTopic makes a topic in a forum and returns its thread id.
func (t *Telegram) AddTopic(chat int64, name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.room(TelegramChat{ID: chat, IsForum: true})
	r.chat.IsForum = true
	t.nextMsg++
	r.topics[t.nextMsg] = name
	return t.nextMsg
}

// DropTopic deletes a topic.
func (t *Telegram) DropTopic(chat int64, thread int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.room(TelegramChat{ID: chat}).topics, thread)
}

// Block makes the service refuse the bot's messages to a chat with 403 and the description, without
// "Forbidden: ". Empty takes it back.
func (t *Telegram) Block(chat int64, description string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.room(TelegramChat{ID: chat}).blocked = description
}

// Restrict makes the service refuse the bot's messages to a chat with 400 and the description, without "Bad
// Request: ".
func (t *Telegram) Restrict(chat int64, description string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.room(TelegramChat{ID: chat}).noRights = description
}

// Upgrade turns a group into a supergroup with a new id.
func (t *Telegram) Upgrade(from, to int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.room(TelegramChat{ID: from, Type: "group"})
	old.movedTo = to
	t.room(TelegramChat{ID: to, Type: "supergroup", Title: old.chat.Title})
}

// Visible returns the bot's messages in a chat as people see them now, oldest first.
func (t *Telegram) Visible(chat int64) []TelegramMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []TelegramMessage
	r := t.rooms[chat]
	if r == nil {
		return nil
	}
	for _, id := range r.order {
		if m := r.messages[id]; m != nil && m.Bot {
			out = append(out, *m)
		}
	}
	return out
}

// Message returns one message of a chat.
func (t *Telegram) Message(chat int64, id int) (TelegramMessage, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.rooms[chat]; r != nil && r.messages[id] != nil {
		return *r.messages[id], true
	}
	return TelegramMessage{}, false
}

// Acts returns what happened in a chat, 0 for all of them, oldest first.
func (t *Telegram) Acts(chat int64) []TelegramAct {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []TelegramAct
	for _, a := range t.acts {
		if chat == 0 || a.Chat == chat {
			out = append(out, a)
		}
	}
	return out
}

// Watch calls f for each act from now on, while the server is locked: f must be quick and call nothing here.
func (t *Telegram) Watch(f func(TelegramAct)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watchers = append(t.watchers, f)
}

// Commands returns the command menu.
func (t *Telegram) Commands() []TelegramCommand {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.commands)
}

// act notes what happened. The caller holds mu.
func (t *Telegram) act(verb string, chat int64, thread, message int, text string) {
	a := TelegramAct{At: time.Now(), Verb: verb, Chat: chat, Thread: thread, Message: message, Text: text}
	t.acts = append(t.acts, a)
	if over := len(t.acts) - t.o.Keep; t.o.Keep > 0 && over > t.o.Keep {
		t.acts = slices.Clone(t.acts[over:])
	}
	for _, w := range t.watchers {
		w(a)
	}
}

// keep stores a message in its room. The caller holds mu.
func (t *Telegram) keep(r *room, m *TelegramMessage) {
	r.messages[m.ID] = m
	r.order = append(r.order, m.ID)
	if over := len(r.order) - t.o.Keep; t.o.Keep > 0 && over > t.o.Keep {
		for _, id := range r.order[:over] {
			delete(r.messages, id)
		}
		r.order = slices.Clone(r.order[over:])
	}
}
