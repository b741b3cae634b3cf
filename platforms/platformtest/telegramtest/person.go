package telegramtest

import (
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// File is a file that a person sends.
type File struct {
	Kind string // "photo", "video", "animation", "audio", "voice", "document", "sticker"
	Name string
	MIME string
	Body []byte
}

// Post is a message that a person writes.
type Post struct {
	Chat int64
	// From is who writes. The zero value is the person of a private chat, or Ann (7001) elsewhere.
	From User
	// As, when set, writes in the name of a chat: an anonymous admin, a channel.
	As *Chat
	// Thread is a topic.
	Thread  int
	Text    string
	Files   []File // more than one is an album; Text is the first one's caption
	ReplyTo int
	Quote   string // the quoted part of the answered message
	// Entities are what Telegram would mark; nil finds mentions and commands.
	Entities  []Entity
	Forwarded string // the name of the hidden user it is forwarded from
}

// Say makes the person of a chat write text. It returns the message's id. A chat that is new is made.
func (t *Server) Say(chat int64, text string) int {
	return t.Write(Post{Chat: chat, Text: text})[0]
}

// Write makes somebody write, and returns the ids of the messages (several for an album).
func (t *Server) Write(p Post) []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	room := t.room(Chat{ID: p.Chat})
	files := p.Files
	if len(files) == 0 {
		files = []File{{}}
	}
	album := ""
	if len(files) > 1 {
		t.nextAny++
		album = "album-" + strconv.Itoa(t.nextAny)
	}
	var ids []int
	for i, f := range files {
		text := p.Text
		if i > 0 {
			text = ""
		}
		m := t.compose(room, p, text)
		m.Album, m.wire.Album, m.Kind = album, album, "text"
		if f.Kind != "" {
			wire := t.store(stored{name: f.Name, body: f.Body, mime: f.MIME})
			m.Kind, m.File, m.Body, m.FileID = f.Kind, f.Name, f.Body, wire.ID
			m.wire.attach(f.Kind, wire)
		}
		m.refresh()
		t.keep(room, m)
		t.act("say", room.chat.ID, m.Thread, m.ID, text)
		kind := "message"
		if room.chat.Type == "channel" {
			kind = "channel_post"
		}
		t.queue(kind, m.wire)
		ids = append(ids, m.ID)
	}
	return ids
}

func (t *Server) compose(room *room, p Post, text string) *Message {
	t.nextMsg++
	m := &Message{
		ID: t.nextMsg, Chat: p.Chat, Thread: p.Thread, From: t.writer(room, p), Text: text, Raw: text,
		Marks: p.Entities, ReplyTo: p.ReplyTo, At: time.Now(),
	}
	if m.Marks == nil {
		m.Marks = findEntities(text)
	}
	m.wire = wireMessage{ID: m.ID, Chat: room.chat, Date: m.At.Unix(), SenderChat: p.As}
	if room.chat.Type == "channel" {
		m.wire.SenderChat = &room.chat
	} else {
		from := m.From
		m.wire.From = &from
	}
	if p.Forwarded != "" {
		m.wire.Forward = &wireOrigin{Type: "hidden_user", Date: m.At.Unix(), Name: p.Forwarded}
	}
	if p.Thread != 0 {
		m.wire.Thread, m.wire.IsTopic = p.Thread, true
		// Telegram names the topic's first message as the answered one.
		m.wire.ReplyTo = &wireMessage{ID: p.Thread, Thread: p.Thread, IsTopic: true, Chat: room.chat, From: &User{ID: 7000, FirstName: "Owner"},
			Date: m.At.Unix(), Topic: &wireTopic{Name: room.topics[p.Thread]}}
	}
	if answered := room.messages[p.ReplyTo]; answered != nil {
		wire := answered.wire
		wire.ReplyTo = nil
		m.wire.ReplyTo = &wire
		if p.Quote != "" {
			m.wire.Quote = &wireQuote{Text: p.Quote, Manual: true}
		}
		if p.Thread == 0 && room.chat.Type == "supergroup" {
			m.wire.Thread = p.ReplyTo // a chain of replies, not a topic
		}
	}
	return m
}

// GroupAnonymousBot is who Telegram names as the author of an anonymous admin's message.
var groupAnonymousBot = User{ID: 1087968824, IsBot: true, FirstName: "Group", Username: "GroupAnonymousBot"}

func (t *Server) writer(room *room, p Post) User {
	switch {
	case p.As != nil:
		return groupAnonymousBot
	case p.From.ID != 0:
		return p.From
	case room.chat.Type == "private":
		return User{ID: p.Chat, FirstName: room.chat.FirstName, LastName: room.chat.LastName, Username: room.chat.Username, Language: "en"}
	}
	return User{ID: 7001, FirstName: "Ann", Username: "ann", Language: "en"}
}

// Rewrite makes the author of a message edit it.
func (t *Server) Rewrite(chat int64, id int, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.room(Chat{ID: chat}).messages[id]
	if m == nil {
		return
	}
	m.Text, m.Marks, m.Edited = text, findEntities(text), time.Now()
	m.refresh()
	m.wire.EditDate = m.Edited.Unix()
	t.queue("edited_message", m.wire)
}

// Press makes somebody press the button with data under a message. It returns the query's id, and false
// when there is no such button.
func (t *Server) Press(chat int64, message int, data string, who User) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	room := t.room(Chat{ID: chat})
	m := room.messages[message]
	found := false
	if m != nil {
		for _, row := range m.Buttons {
			for _, b := range row {
				found = found || b.Data == data
			}
		}
	}
	if !found {
		return "", false
	}
	return t.press(room, m, data, who), true
}

// PressOld makes somebody press a button that the message does not have any more: their app has not seen the edit. It
// returns the query's id, and false when there is no such message.
func (t *Server) PressOld(chat int64, message int, data string, who User) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	room := t.room(Chat{ID: chat})
	m := room.messages[message]
	if m == nil {
		return "", false
	}
	return t.press(room, m, data, who), true
}

// press queues a press. t.mu is held.
func (t *Server) press(room *room, m *Message, data string, who User) string {
	if who.ID == 0 {
		who = t.writer(room, Post{Chat: room.chat.ID})
	}
	t.nextAny++
	id := strconv.Itoa(900000 + t.nextAny)
	t.queries[id] = &query{}
	t.queue("callback_query", struct {
		ID       string      `json:"id"`
		From     User        `json:"from"`
		Message  wireMessage `json:"message"`
		Instance string      `json:"chat_instance"`
		Data     string      `json:"data"`
	}{id, who, m.wire, "1", data})
	return id
}

// Answer returns what the bot answered a press with, and whether it did.
func (t *Server) Answer(query string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.queries[query]
	if q == nil {
		return "", false
	}
	return q.text, q.answered
}

// React makes somebody put emoji on a message in place of was; either may be empty.
func (t *Server) React(chat int64, message int, was, emoji string, who User) {
	t.mu.Lock()
	defer t.mu.Unlock()
	room := t.room(Chat{ID: chat})
	if who.ID == 0 {
		who = t.writer(room, Post{Chat: chat})
	}
	list := func(e string) []wireReaction {
		if e == "" {
			return []wireReaction{}
		}
		return []wireReaction{{"emoji", e}}
	}
	t.queue("message_reaction", struct {
		Chat    Chat           `json:"chat"`
		Message int            `json:"message_id"`
		User    User           `json:"user"`
		Date    int64          `json:"date"`
		Old     []wireReaction `json:"old_reaction"`
		New     []wireReaction `json:"new_reaction"`
	}{room.chat, message, who, time.Now().Unix(), list(was), list(emoji)})
}

// serveFile answers /file/bot<token>/<path>.
func (t *Server) serveFile(w http.ResponseWriter, r *http.Request, rest string) {
	token, name, _ := strings.Cut(strings.TrimPrefix(rest, "bot"), "/")
	if !t.letsIn(token) {
		write(w, nil, &apiError{code: 401, description: "Unauthorized"})
		return
	}
	id := strings.TrimSuffix(path.Base(name), path.Ext(name))
	t.mu.Lock()
	f, ok := t.files[id]
	t.mu.Unlock()
	if !ok {
		write(w, nil, &apiError{code: 404, description: "Not Found"})
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(f.body)
}

// WriteLocal puts the uploaded files where getFile says they are in local mode.
func (t *Server) WriteLocal() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, f := range t.files {
		name := filepath.Join(t.o.LocalFiles, "documents", id+path.Ext(f.name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.body, 0o600); err != nil {
			return err
		}
	}
	return nil
}
