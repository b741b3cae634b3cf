package telegramtest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"herald/platforms/platformtest/faults"
)

// method is one method of the Bot API. It is called while the server is locked, unless it is free.
type method struct {
	run  func(*Server, *request) (any, error)
	free bool
}

// routeFile is the download of a file, which is no method.
const routeFile = "file"

// Routes are the methods, in small letters, and the download of files, with how often they were called in this process.
var Routes = faults.NewRoutes("telegramtest")

// ForOthers are routes that our adapter does not call. The tests of this package do: a client that nobody here wrote needs them.
var ForOthers = []string{"getmycommands"}

// methods are what the server knows, in small letters.
func methods() map[string]method {
	all := map[string]method{
		"getupdates":             {run: (*Server).getUpdates, free: true},
		"setwebhook":             {run: (*Server).setWebhook, free: true},
		"deletewebhook":          {run: (*Server).deleteWebhook, free: true},
		"getwebhookinfo":         {run: func(t *Server, _ *request) (any, error) { return t.getWebhookInfo() }, free: true},
		"getme":                  {run: (*Server).getMe},
		"sendmessage":            {run: (*Server).sendText},
		"sendmediagroup":         {run: (*Server).sendAlbum},
		"editmessagetext":        {run: func(t *Server, r *request) (any, error) { return t.edit(r, "text") }},
		"editmessagecaption":     {run: func(t *Server, r *request) (any, error) { return t.edit(r, "caption") }},
		"editmessagereplymarkup": {run: func(t *Server, r *request) (any, error) { return t.edit(r, "") }},
		"deletemessage":          {run: (*Server).remove},
		"sendchataction":         {run: (*Server).chatAction},
		"setmessagereaction":     {run: (*Server).react},
		"answercallbackquery":    {run: (*Server).answerQuery},
		"setmycommands":          {run: (*Server).setCommands},
		"getmycommands":          {run: func(t *Server, _ *request) (any, error) { return append([]Command{}, t.commands...), nil }},
		"getfile":                {run: (*Server).getFile},
		"createforumtopic":       {run: (*Server).createTopic},
		"getchat":                {run: (*Server).getChat},
	}
	for _, kind := range []string{"photo", "video", "animation", "audio", "voice", "document", "sticker"} {
		all["send"+kind] = method{run: func(t *Server, r *request) (any, error) { return t.sendFile(r, kind) }}
	}
	return all
}

// call carries out a method.
func (t *Server) call(r *request) (any, error) {
	m, ok := t.methods[r.method]
	if !ok {
		return nil, &apiError{code: 404, description: "Not Found: method not found"}
	}
	if !m.free {
		t.mu.Lock()
		defer t.mu.Unlock()
	}
	return m.run(t, r)
}

func (t *Server) getMe(*request) (any, error) {
	return map[string]any{
		"id": t.o.BotID, "is_bot": true, "first_name": "Herald", "username": t.o.Username,
		"can_join_groups": true, "can_read_all_group_messages": true, "supports_inline_queries": false,
	}, nil
}

func (t *Server) getChat(r *request) (any, error) {
	room, err := t.target(r)
	if err != nil {
		return nil, err
	}
	return room.chat, nil
}

// target finds the chat of a request, and refuses as the service does.
func (t *Server) target(r *request) (*room, error) {
	if r.params["chat_id"] == "" {
		return nil, refuse(400, "chat_id is empty")
	}
	room := t.rooms[r.int("chat_id")]
	switch {
	case room == nil:
		return nil, refuse(400, "chat not found")
	case room.movedTo != 0:
		return nil, &apiError{code: 400, description: "Bad Request: group chat was upgraded to a supergroup chat", migrateTo: room.movedTo}
	case room.blocked != "":
		return nil, refuse(403, "%s", room.blocked)
	case room.noRights != "":
		return nil, refuse(400, "%s", room.noRights)
	}
	return room, nil
}

// createTopic makes a topic, whose id is that of the service message it begins with.
func (t *Server) createTopic(r *request) (any, error) {
	room, err := t.target(r)
	name := strings.TrimSpace(r.params["name"])
	switch {
	case err != nil:
		return nil, err
	case !room.chat.IsForum:
		return nil, refuse(400, "the chat is not a forum")
	case room.noTopics:
		return nil, refuse(400, "not enough rights to create a topic")
	case name == "":
		return nil, refuse(400, "title must be non-empty")
	}
	if runes := []rune(name); len(runes) > topicLimit {
		name = string(runes[:topicLimit])
	}
	t.nextMsg++
	room.topics[t.nextMsg] = name
	t.act("topic", room.chat.ID, t.nextMsg, t.nextMsg, name)
	return map[string]any{"message_thread_id": t.nextMsg, "name": name, "icon_color": 7322096}, nil
}

// draft begins a message of the bot: chat, thread, reply and buttons are checked.
func (t *Server) draft(r *request) (*room, *Message, error) {
	room, err := t.target(r)
	if err != nil {
		return nil, nil, err
	}
	m := &Message{Chat: room.chat.ID, Bot: true, Silent: r.bool("disable_notification"), Preview: true, At: time.Now(), Kind: "text"}
	if m.Thread = int(r.int("message_thread_id")); m.Thread != 0 && room.topics[m.Thread] == "" {
		return nil, nil, refuse(400, "message thread not found")
	}
	var reply struct {
		ID    int  `json:"message_id"`
		Allow bool `json:"allow_sending_without_reply"`
	}
	if r.decode("reply_parameters", &reply) {
		if room.messages[reply.ID] != nil {
			m.ReplyTo = reply.ID
		} else if !reply.Allow {
			return nil, nil, refuse(400, "message to be replied not found")
		}
	}
	if m.Buttons, err = buttonsOf(r); err != nil {
		return nil, nil, err
	}
	var preview struct {
		Disabled bool `json:"is_disabled"`
	}
	if r.decode("link_preview_options", &preview) {
		m.Preview = !preview.Disabled
	}
	return room, m, nil
}

func buttonsOf(r *request) ([][]Button, error) {
	if r.params["reply_markup"] == "" {
		return nil, nil
	}
	var k wireKeyboard
	if !r.decode("reply_markup", &k) {
		return nil, refuse(400, "can't parse reply keyboard markup JSON object")
	}
	for _, row := range k.Rows {
		for _, b := range row {
			if b.Text == "" {
				return nil, refuse(400, "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
			}
			if len(b.Data) == 0 || len(b.Data) > 64 {
				return nil, refuse(400, "BUTTON_DATA_INVALID")
			}
		}
	}
	return k.Rows, nil
}

// read parses and measures a text.
func read(text, mode string, limit int, what string) (string, []Entity, error) {
	var entities []Entity
	switch strings.ToLower(mode) {
	case "html":
		var err error
		if text, entities, err = parseHTML(text); err != nil {
			return "", nil, err
		}
	case "":
	default:
		return "", nil, refuse(400, "unsupported parse_mode")
	}
	text = strings.TrimRight(text, " \n\t")
	if utf16Len(text) > limit {
		return "", nil, refuse(400, "%s is too long", what)
	}
	return text, entities, nil
}

// post puts a message of the bot into its room and returns it as the service answers.
func (t *Server) deliver(room *room, m *Message) wireMessage {
	t.nextMsg++
	m.ID = t.nextMsg
	m.From = t.bot()
	m.wire = wireMessage{ID: m.ID, From: &m.From, Chat: room.chat, Date: m.At.Unix(), Album: m.Album}
	if m.Thread != 0 {
		m.wire.Thread, m.wire.IsTopic = m.Thread, true
	}
	if m.ReplyTo != 0 {
		reply := room.messages[m.ReplyTo].wire
		reply.ReplyTo = nil
		m.wire.ReplyTo = &reply
	}
	m.refresh()
	t.keep(room, m)
	t.act("send", room.chat.ID, m.Thread, m.ID, m.Text)
	return m.wire
}

// refresh brings the wire form up to date with text and buttons.
func (m *Message) refresh() {
	if m.Kind == "text" {
		m.wire.Text, m.wire.Entities = m.Text, m.Marks
	} else {
		m.wire.Caption, m.wire.CaptionEnt = m.Text, m.Marks
	}
	m.wire.Markup = nil
	if len(m.Buttons) > 0 {
		m.wire.Markup = &wireKeyboard{m.Buttons}
	}
}

func (t *Server) bot() User {
	return User{ID: t.o.BotID, IsBot: true, FirstName: "Herald", Username: t.o.Username}
}

const (
	messageLimit = 4096
	topicLimit   = 128 // of a topic's name, which is cut
	captionMax   = 1024
)

func (t *Server) sendText(r *request) (any, error) {
	room, m, err := t.draft(r)
	if err != nil {
		return nil, err
	}
	m.Raw, m.Mode = r.params["text"], r.params["parse_mode"]
	if m.Text, m.Marks, err = read(m.Raw, m.Mode, messageLimit, "message"); err != nil {
		return nil, err
	}
	if m.Text == "" {
		return nil, refuse(400, "message text is empty")
	}
	return t.deliver(room, m), nil
}

func (t *Server) sendFile(r *request, kind string) (any, error) {
	room, m, err := t.draft(r)
	if err != nil {
		return nil, err
	}
	m.Raw, m.Mode, m.Kind = r.params["caption"], r.params["parse_mode"], kind
	if m.Text, m.Marks, err = read(m.Raw, m.Mode, captionMax, "message caption"); err != nil {
		return nil, err
	}
	f, ok := t.uploaded(r, kind, r.params[kind])
	if !ok {
		return nil, refuse(400, "there is no %s in the request", kind)
	}
	if err := checkMedia(kind, f); err != nil {
		return nil, err
	}
	wire := t.store(f)
	m.File, m.Body, m.FileID = f.name, f.body, wire.ID
	answer := t.deliver(room, m)
	m.wire.attach(kind, wire)
	answer.attach(kind, wire)
	return answer, nil
}

func (t *Server) sendAlbum(r *request) (any, error) {
	room, base, err := t.draft(r)
	if err != nil {
		return nil, err
	}
	var media []struct {
		Type    string `json:"type"`
		Media   string `json:"media"`
		Caption string `json:"caption"`
		Mode    string `json:"parse_mode"`
	}
	if !r.decode("media", &media) || len(media) < 2 || len(media) > 10 {
		return nil, refuse(400, "wrong number of media: 2 to 10 are expected")
	}
	t.nextAny++
	album := "album-" + strconv.Itoa(t.nextAny)
	var messages []*Message
	for _, item := range media {
		m := *base
		m.Kind, m.Album, m.Raw, m.Mode = item.Type, album, item.Caption, item.Mode
		if m.Text, m.Marks, err = read(item.Caption, item.Mode, captionMax, "message caption"); err != nil {
			return nil, err
		}
		f, ok := t.uploaded(r, "", item.Media)
		if !ok {
			return nil, refuse(400, "wrong file identifier/HTTP URL specified")
		}
		if err := checkMedia(item.Type, f); err != nil {
			return nil, err
		}
		m.File, m.Body = f.name, f.body
		messages = append(messages, &m)
	}
	answers := make([]wireMessage, len(messages))
	for i, m := range messages {
		wire := t.store(stored{name: m.File, body: m.Body})
		m.FileID = wire.ID
		answers[i] = t.deliver(room, m)
		m.wire.attach(m.Kind, wire)
		answers[i].attach(m.Kind, wire)
	}
	return answers, nil
}

func (t *Server) edit(r *request, field string) (any, error) {
	room, err := t.target(r)
	if err != nil {
		return nil, err
	}
	m := room.messages[int(r.int("message_id"))]
	switch {
	case m == nil:
		return nil, refuse(400, "message to edit not found")
	case !m.Bot:
		return nil, refuse(400, "message can't be edited")
	}
	buttons, err := buttonsOf(r)
	if err != nil {
		return nil, err
	}
	text, marks := m.Text, m.Marks
	raw, mode := m.Raw, m.Mode
	switch field {
	case "text":
		if m.Kind != "text" {
			return nil, refuse(400, "there is no text in the message to edit")
		}
		raw, mode = r.params["text"], r.params["parse_mode"]
		if text, marks, err = read(raw, mode, messageLimit, "message"); err != nil {
			return nil, err
		}
		if text == "" {
			return nil, refuse(400, "message text is empty")
		}
	case "caption":
		if m.Kind == "text" {
			return nil, refuse(400, "there is no caption in the message to edit")
		}
		raw, mode = r.params["caption"], r.params["parse_mode"]
		if text, marks, err = read(raw, mode, captionMax, "message caption"); err != nil {
			return nil, err
		}
	}
	if text == m.Text && slices.Equal(marks, m.Marks) && fmt.Sprint(buttons) == fmt.Sprint(m.Buttons) {
		return nil, refuse(400, "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
	}
	m.Text, m.Marks, m.Raw, m.Mode, m.Buttons, m.Edited = text, marks, raw, mode, buttons, time.Now()
	m.refresh()
	m.wire.EditDate = m.Edited.Unix()
	t.act("edit", room.chat.ID, m.Thread, m.ID, m.Text)
	return m.wire, nil
}

func (t *Server) remove(r *request) (any, error) {
	room, err := t.target(r)
	if err != nil {
		return nil, err
	}
	id := int(r.int("message_id"))
	m := room.messages[id]
	if m == nil {
		return nil, refuse(400, "message to delete not found")
	}
	delete(room.messages, id)
	room.order = slices.DeleteFunc(room.order, func(x int) bool { return x == id })
	t.act("delete", room.chat.ID, m.Thread, id, "")
	return true, nil
}

func (t *Server) chatAction(r *request) (any, error) {
	room, err := t.target(r)
	if err != nil {
		return nil, err
	}
	thread := int(r.int("message_thread_id"))
	if thread != 0 && room.topics[thread] == "" {
		return nil, refuse(400, "message thread not found")
	}
	if r.params["action"] == "" {
		return nil, refuse(400, "wrong parameter action in request")
	}
	t.act("typing", room.chat.ID, thread, 0, r.params["action"])
	return true, nil
}

// reactions are the emoji that bots may use, of the service's list.
const reactions = "👍 👎 ❤ 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 👻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷 😡"

func (t *Server) react(r *request) (any, error) {
	room, err := t.target(r)
	if err != nil {
		return nil, err
	}
	m := room.messages[int(r.int("message_id"))]
	if m == nil {
		return nil, refuse(400, "message to react not found")
	}
	var list []wireReaction
	r.decode("reaction", &list)
	emoji := ""
	if len(list) > 0 {
		emoji = list[0].Emoji
		if !slices.Contains(strings.Fields(reactions), emoji) {
			return nil, refuse(400, "REACTION_INVALID")
		}
	}
	m.Emoji = emoji
	t.act("react", room.chat.ID, m.Thread, m.ID, emoji)
	return true, nil
}

func (t *Server) answerQuery(r *request) (any, error) {
	q := t.queries[r.params["callback_query_id"]]
	if q == nil || q.answered {
		return nil, refuse(400, "query is too old and response timeout expired or query ID is invalid")
	}
	q.answered, q.text = true, r.params["text"]
	t.act("answer", 0, 0, 0, q.text)
	return true, nil
}

var commandName = regexp.MustCompile(`^[a-z0-9_]{1,32}$`)

func (t *Server) setCommands(r *request) (any, error) {
	var commands []Command
	if !r.decode("commands", &commands) {
		return nil, refuse(400, "can't parse commands")
	}
	if len(commands) > 100 {
		return nil, refuse(400, "BOT_COMMANDS_TOO_MUCH")
	}
	for _, c := range commands {
		if !commandName.MatchString(c.Command) {
			return nil, refuse(400, "BOT_COMMAND_INVALID")
		}
		if c.Description == "" || utf16Len(c.Description) > 256 {
			return nil, refuse(400, "BOT_COMMAND_DESCRIPTION_INVALID")
		}
	}
	t.commands = commands
	return true, nil
}
