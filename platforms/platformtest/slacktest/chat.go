package slacktest

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

const (
	// maxText is where chat.postMessage cuts a text, in characters.
	maxText = 40000
	// maxMarkdownText is the most characters of a markdown_text parameter.
	maxMarkdownText = 12000
)

// place finds the channel of a call for writing, as chat.postMessage does: by id, by user id, by name.
func (s *Server) place(t *team, c *call) (*channel, error) {
	id := c.channel()
	if u := t.user(id); u != nil {
		dm, _ := s.dm(t, id)
		return dm, nil
	}
	ch := t.find(id)
	if ch == nil {
		for _, other := range t.channels {
			if other.Name != "" && other.Name == strings.TrimPrefix(id, "#") {
				ch = other
			}
		}
	}
	switch {
	case ch == nil, ch.WithoutBot && ch.Kind != Public:
		return nil, refuse("channel_not_found")
	case ch.Archived:
		return nil, refuse("is_archived")
	case ch.Refuse != "":
		return nil, refuse(ch.Refuse)
	}
	return ch, nil
}

// draft begins a message of the bot from the parameters of a call.
func (s *Server) draft(t *team, c *call) (*channel, *message, error) {
	ch, err := s.place(t, c)
	if err != nil {
		return nil, nil, err
	}
	if ch.WithoutBot && (c.Method != "chat.postMessage" || !t.granted("chat:write.public")) {
		return nil, nil, refuse("not_in_channel")
	}
	m := s.own(ch)
	if m.Thread, err = ch.root(c.get("thread_ts")); err != nil {
		return nil, nil, err
	}
	m.Broadcast = c.bool("reply_broadcast") && m.Thread != ""
	if err := m.fill(c); err != nil {
		return nil, nil, err
	}
	if m.Username = c.get("username"); m.Username != "" || c.get("icon_emoji") != "" || c.get("icon_url") != "" {
		if err := t.need("chat:write.customize"); err != nil {
			return nil, nil, err
		}
		m.Subtype = "bot_message"
	}
	m.UnfurlLinks, m.UnfurlMedia = choice(c, "unfurl_links"), choice(c, "unfurl_media")
	return ch, m, nil
}

func choice(c *call, name string) *bool {
	if !c.has(name) {
		return nil
	}
	b := c.bool(name)
	return &b
}

// root checks a thread_ts: it must be the ts of a message that is no reply.
func (c *channel) root(ts string) (string, error) {
	if ts == "" {
		return "", nil
	}
	m := c.message(ts)
	switch {
	case m == nil:
		return "", refuse("thread_not_found")
	case m.Thread != "" || m.Ephemeral != "":
		return "", refuse("cannot_reply_to_message")
	}
	return ts, nil
}

// fill reads the content of a message and checks it.
func (m *message) fill(c *call) error {
	text, markdown, blocks, attachments := c.get("text"), c.get("markdown_text"), c.get("blocks"), c.get("attachments")
	if err := checkBlocks(blocks, maxBlocks); err != nil {
		return err
	}
	if blocks == "[]" {
		blocks = ""
	}
	var list []json.RawMessage
	if attachments != "" && json.Unmarshal([]byte(attachments), &list) != nil {
		return refuse("invalid_attachments")
	}
	if len(list) == 0 {
		attachments = ""
	}
	switch {
	case len(list) > 100:
		return refuse("too_many_attachments")
	case markdown != "" && (text != "" || blocks != ""):
		return refuse("markdown_text_conflict")
	case strings.TrimSpace(text) == "" && markdown == "" && blocks == "" && attachments == "":
		return refuse("no_text")
	case utf8.RuneCountInString(markdown) > maxMarkdownText:
		return refuse("msg_too_long")
	}
	if utf8.RuneCountInString(text) > maxText {
		text = string([]rune(text)[:maxText])
	}
	m.Raw, m.Markdown, m.Blocks, m.Attachments = text, markdown != "", json.RawMessage(blocks), json.RawMessage(attachments)
	if m.Markdown {
		m.Raw = markdown
	}
	return m.fillMetadata(c)
}

func (m *message) fillMetadata(c *call) error {
	raw := c.get("metadata")
	if raw == "" {
		return nil
	}
	var metadata struct {
		Type    string          `json:"event_type"`
		Payload json.RawMessage `json:"event_payload"`
	}
	if json.Unmarshal([]byte(raw), &metadata) != nil || metadata.Type == "" && len(metadata.Payload) == 0 && !strings.Contains(raw, "entities") {
		return refuse("invalid_metadata_format")
	}
	m.Metadata = json.RawMessage(raw)
	return nil
}

func (s *Server) chatPost(t *team, c *call) (object, error) {
	ch, m, err := s.draft(t, c)
	if err != nil {
		return nil, err
	}
	s.write(ch, m)
	return object{"channel": ch.ID, "ts": m.TS, "message": s.wire(ch, m)}, nil
}

func (s *Server) chatEphemeral(t *team, c *call) (object, error) {
	ch, m, err := s.draft(t, c)
	if err != nil {
		return nil, err
	}
	if !ch.member(c.get("user")) {
		return nil, refuse("user_not_in_channel")
	}
	m.Ephemeral, m.Metadata = c.get("user"), nil
	s.write(ch, m)
	return object{"message_ts": m.TS}, nil
}

// find returns a message that a call names by channel and ts.
func (s *Server) find(t *team, c *call, ts string) (*channel, *message, error) {
	ch := t.find(c.channel())
	if ch == nil || ch.WithoutBot && ch.Kind != Public {
		return nil, nil, refuse("channel_not_found")
	}
	m := ch.message(ts)
	if m == nil || m.tombstone || m.Ephemeral != "" {
		return nil, nil, refuse("message_not_found")
	}
	return ch, m, nil
}

func (s *Server) chatUpdate(t *team, c *call) (object, error) {
	ch, m, err := s.find(t, c, c.get("ts"))
	switch {
	case err != nil:
		return nil, err
	case ch.Archived:
		return nil, refuse("is_archived")
	case ch.Refuse != "":
		return nil, refuse(ch.Refuse)
	case !m.Own:
		return nil, refuse("cant_update_message")
	case m.Streaming == Streams:
		return nil, refuse("streaming_state_conflict")
	case len(c.get("text")) > s.o.UpdateLimit:
		return nil, refuse("msg_too_long")
	}
	var made message
	if err := made.fill(c); err != nil {
		return nil, err
	}
	s.change(ch, m, t.BotUser, func(m *message) {
		// Without text the parts that are not given stay; with it they go.
		if c.get("text") != "" || c.get("markdown_text") != "" {
			m.Raw, m.Markdown, m.Blocks, m.Attachments = made.Raw, made.Markdown, nil, nil
		}
		if c.has("blocks") {
			m.Blocks = made.Blocks
		}
		if c.has("attachments") {
			m.Attachments = made.Attachments
		}
		if made.Metadata != nil {
			m.Metadata = made.Metadata
		}
	})
	s.act(Act{Verb: "update", Team: t.ID, Channel: ch.ID, Thread: m.Thread, TS: m.TS, User: m.User, Text: m.Raw})
	return object{"channel": ch.ID, "ts": m.TS, "text": m.Raw, "message": s.wire(ch, m)}, nil
}

func (s *Server) chatDelete(t *team, c *call) (object, error) {
	ch, m, err := s.find(t, c, c.get("ts"))
	switch {
	case err != nil:
		return nil, err
	case !m.Own, m.Streaming == Streams:
		return nil, refuse("cant_delete_message")
	}
	s.remove(ch, m)
	return object{"channel": ch.ID, "ts": m.TS}, nil
}

func permalink(c *channel, m *message) string {
	link := "https://" + c.team.Domain + ".slack.com/archives/" + c.ID + "/p" + strings.ReplaceAll(m.TS, ".", "")
	if m.Thread != "" {
		link += "?thread_ts=" + m.Thread + "&cid=" + c.ID
	}
	return link
}
