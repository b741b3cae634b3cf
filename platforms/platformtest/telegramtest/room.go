package telegramtest

import (
	"maps"
	"slices"
	"time"
)

// User is a person or a bot.
type User struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name,omitempty"`
	Username  string `json:"username,omitempty"`
	Language  string `json:"language_code,omitempty"`
}

// Chat is a private chat, group, supergroup or channel.
type Chat struct {
	ID        int64  `json:"id"`
	Type      string `json:"type"` // private, group, supergroup, channel
	Title     string `json:"title,omitempty"`
	Username  string `json:"username,omitempty"`
	FirstName string `json:"first_name,omitempty"`
	LastName  string `json:"last_name,omitempty"`
	IsForum   bool   `json:"is_forum,omitempty"`
}

// Button is a button of an inline keyboard.
type Button struct {
	Text  string `json:"text"`
	Data  string `json:"callback_data,omitempty"`
	Style string `json:"style,omitempty"`
}

// Command is an entry of the command menu.
type Command struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// Message is a message as it is in a chat.
type Message struct {
	ID      int
	Chat    int64
	Thread  int
	From    User
	Bot     bool   // one of the bot's own
	Text    string // what people read: the markup is parsed
	Raw     string // what the bot sent
	Mode    string // parse_mode
	Marks   []Entity
	Kind    string // "text", "photo", "video", "animation", "audio", "voice", "document", "sticker"
	File    string // name of the file
	Body    []byte // the file
	FileID  string
	Album   string
	Buttons [][]Button
	ReplyTo int
	Silent  bool
	Preview bool // link previews are on
	Emoji   string
	At      time.Time
	Edited  time.Time

	wire wireMessage
}

// Act is one thing that happened in a chat, in order.
type Act struct {
	At      time.Time
	Verb    string // say, send, edit, delete, react, typing, answer, topic
	Chat    int64
	Thread  int
	Message int
	Text    string
}

// room is a chat and what is in it.
type room struct {
	chat     Chat
	topics   map[int]string
	closed   map[int]bool
	messages map[int]*Message
	order    []int
	blocked  string // a 403 description: the bot may not write
	noRights string // a 400 description
	noTopics bool   // the bot may not make topics
	movedTo  int64
}

// AddChat registers a chat, so that the bot can write to it.
func (t *Server) AddChat(c Chat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.room(c)
}

func (t *Server) room(c Chat) *room {
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
		r = &room{chat: c, topics: map[int]string{}, closed: map[int]bool{}, messages: map[int]*Message{}}
		t.rooms[c.ID] = r
	}
	return r
}

// AddTopic makes a topic in a forum and returns its thread id.
func (t *Server) AddTopic(chat int64, name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.room(Chat{ID: chat, IsForum: true})
	r.chat.IsForum = true
	t.nextMsg++
	r.topics[t.nextMsg] = name
	return t.nextMsg
}

// DropTopic deletes a topic.
func (t *Server) DropTopic(chat int64, thread int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.room(Chat{ID: chat}).topics, thread)
}

// ForbidTopics takes the right to make topics away from the bot.
func (t *Server) ForbidTopics(chat int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.room(Chat{ID: chat}).noTopics = true
}

// Topics returns the names of a forum's topics by their thread id.
func (t *Server) Topics(chat int64) map[int]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.room(Chat{ID: chat}).topics)
}

// Block makes the service refuse the bot's messages to a chat with 403 and the description, without
// "Forbidden: ". Empty takes it back.
func (t *Server) Block(chat int64, description string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.room(Chat{ID: chat}).blocked = description
}

// Restrict makes the service refuse the bot's messages to a chat with 400 and the description, without "Bad
// Request: ".
func (t *Server) Restrict(chat int64, description string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.room(Chat{ID: chat}).noRights = description
}

// Upgrade turns a group into a supergroup with a new id.
func (t *Server) Upgrade(from, to int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.room(Chat{ID: from, Type: "group"})
	old.movedTo = to
	t.room(Chat{ID: to, Type: "supergroup", Title: old.chat.Title})
}

// Visible returns the bot's messages in a chat as people see them now, oldest first.
func (t *Server) Visible(chat int64) []Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Message
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
func (t *Server) Message(chat int64, id int) (Message, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.rooms[chat]; r != nil && r.messages[id] != nil {
		return *r.messages[id], true
	}
	return Message{}, false
}

// Acts returns what happened in a chat, 0 for all of them, oldest first.
func (t *Server) Acts(chat int64) []Act {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Act
	for _, a := range t.acts {
		if chat == 0 || a.Chat == chat {
			out = append(out, a)
		}
	}
	return out
}

// Watch calls f for each act from now on, while the server is locked: f must be quick and call nothing here.
func (t *Server) Watch(f func(Act)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watchers = append(t.watchers, f)
}

// Commands returns the command menu.
func (t *Server) Commands() []Command {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.commands)
}

// act notes what happened. The caller holds mu.
func (t *Server) act(verb string, chat int64, thread, message int, text string) {
	a := Act{At: time.Now(), Verb: verb, Chat: chat, Thread: thread, Message: message, Text: text}
	t.acts = append(t.acts, a)
	if over := len(t.acts) - t.o.Keep; t.o.Keep > 0 && over > t.o.Keep {
		t.acts = slices.Clone(t.acts[over:])
	}
	for _, w := range t.watchers {
		w(a)
	}
}

// keep stores a message in its room. The caller holds mu.
func (t *Server) keep(r *room, m *Message) {
	r.messages[m.ID] = m
	r.order = append(r.order, m.ID)
	if over := len(r.order) - t.o.Keep; t.o.Keep > 0 && over > t.o.Keep {
		for _, id := range r.order[:over] {
			delete(r.messages, id)
		}
		r.order = slices.Clone(r.order[over:])
	}
}
