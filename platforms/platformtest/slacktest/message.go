package slacktest

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// message is a message as it is kept. Its Message has all but what snapshot computes.
type message struct {
	Message
	appID     string
	clientID  string
	editor    string
	editedTS  string
	files     []*file
	stopped   bool         // the reader stopped its stream
	tombstone bool         // deleted, and its thread goes on
	answers   *interaction // that it was a response to
}

// write puts a message into its channel and sends the events that follow. The caller holds mu.
func (s *Server) write(c *channel, m *message) {
	s.keep(c, m)
	verb := "say"
	switch {
	case m.Ephemeral != "":
		verb = "ephemeral"
	case m.Own:
		verb = "post"
	}
	s.act(Act{Verb: verb, Team: c.team.ID, Channel: c.ID, Thread: m.Thread, TS: m.TS, User: m.User, Text: m.Raw})
	if m.Ephemeral == "" {
		s.messageEvents(c, m)
	}
}

func (s *Server) keep(c *channel, m *message) {
	m.Team, m.Channel, m.At = c.team.ID, c.ID, time.Now()
	fill(&m.TS, s.ts())
	all := append(c.messages, m)
	c.messages = bounded(all, s.o.Keep)
	for _, gone := range all[:len(all)-len(c.messages)] {
		for _, f := range gone.files {
			delete(s.files, f.ID)
		}
		delete(c.threads, gone.TS)
	}
	if m.Own {
		if a := c.threads[m.Thread]; a != nil && m.Ephemeral == "" {
			a.status = ""
		}
	}
}

func (c *channel) message(ts string) *message {
	// From the end: acts are mostly on what is new.
	for i := len(c.messages) - 1; i >= 0; i-- {
		if c.messages[i].TS == ts {
			return c.messages[i]
		}
	}
	return nil
}

// snapshot is the message as people see it. The caller holds mu.
func (m *message) snapshot(t *team) Message {
	out := m.Message
	out.Text = t.read(m.Raw)
	if m.Markdown {
		out.Text = m.Raw
	}
	var blocks []block
	if len(m.Blocks) > 0 && json.Unmarshal(m.Blocks, &blocks) == nil && len(blocks) > 0 {
		out.Fallback, out.Text = out.Text, t.readBlocks(blocks)
		if m.Streaming != NotStreamed || m.Subtype == "file_share" && out.Text == "" {
			out.Text = strings.TrimSpace(out.Fallback + "\n" + out.Text) // a stream's blocks stand below its text
		}
		out.Buttons = buttonsOf(blocks)
	}
	out.Buttons = append(out.Buttons, legacyButtons(m.Attachments)...)
	for _, f := range m.files {
		out.Files = append(out.Files, f.File)
	}
	out.Reactions = nil
	for _, r := range m.Reactions {
		out.Reactions = append(out.Reactions, Reaction{r.Name, slices.Clone(r.Users)})
	}
	out.Chunks = slices.Clone(m.Chunks)
	return out
}

// Visible returns the bot's own messages in a place as people see them now, oldest first: with thread empty
// what is in the channel itself (roots, and replies that were sent to the channel too), otherwise the
// replies of that thread. Ephemeral ones are there too, see Message.Ephemeral.
func (s *Server) Visible(team, channel, thread string) []Message {
	return s.list(team, channel, func(m *message) bool {
		return m.Own && (m.Thread == thread || thread == "" && m.Broadcast)
	})
}

// Messages returns all messages of a channel, everybody's and of all threads, oldest first.
func (s *Server) Messages(team, channel string) []Message {
	return s.list(team, channel, func(*message) bool { return true })
}

func (s *Server) list(team, channel string, which func(*message) bool) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.team(team)
	var out []Message
	for _, m := range t.channel(channel).messages {
		if !m.tombstone && which(m) {
			out = append(out, m.snapshot(t))
		}
	}
	return out
}

// Message returns one message.
func (s *Server) Message(team, channel, ts string) (Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.team(team)
	m := t.channel(channel).message(ts)
	if m == nil || m.tombstone {
		return Message{}, false
	}
	return m.snapshot(t), true
}

// wire is the message as the Web API and events carry it. The caller holds mu.
func (s *Server) wire(c *channel, m *message) object {
	if m.tombstone {
		return object{"type": "message", "subtype": "tombstone", "user": "USLACKBOT", "hidden": true, "text": "This message was deleted.", "ts": m.TS, "thread_ts": m.TS}
	}
	out := object{"type": "message", "ts": m.TS, "text": m.Raw, "team": c.team.ID}
	set := func(key string, v string) {
		if v != "" {
			out[key] = v
		}
	}
	set("user", m.User)
	set("subtype", m.Subtype)
	set("client_msg_id", m.clientID)
	set("bot_id", m.BotID)
	set("app_id", m.appID)
	set("username", m.Username)
	raw := func(key string, v json.RawMessage) {
		if len(v) > 0 {
			out[key] = v
		}
	}
	blocks := m.Blocks
	if len(blocks) == 0 && m.Own && m.Raw != "" {
		blocks = s.compose(m.Raw)
	}
	raw("blocks", blocks)
	raw("attachments", m.Attachments)
	raw("metadata", m.Metadata)
	if m.BotID != "" {
		out["bot_profile"] = s.botProfile(c.team, m)
	}
	if m.Thread != "" {
		out["thread_ts"] = m.Thread
		if root := c.message(m.Thread); root != nil {
			set("parent_user_id", root.User)
			if m.Broadcast {
				out["root"] = object{"type": "message", "user": root.User, "text": root.Raw, "ts": root.TS, "thread_ts": root.TS}
			}
		}
	}
	if m.editedTS != "" {
		out["edited"] = object{"user": m.editor, "ts": m.editedTS}
	}
	if len(m.files) > 0 {
		var files []object
		for _, f := range m.files {
			files = append(files, s.wireFile(f))
		}
		out["files"], out["upload"] = files, m.Subtype == "file_share"
	}
	if len(m.Reactions) > 0 {
		out["reactions"] = wireReactions(m)
	}
	if m.Streaming != NotStreamed {
		out["streaming_state"] = m.Streaming
	}
	return out
}

// history is wire with what only reading shows: the state of a thread.
func (s *Server) history(c *channel, m *message, metadata bool) object {
	out := s.wire(c, m)
	if !metadata {
		delete(out, "metadata")
	}
	replies := c.replies(m.TS)
	if len(replies) == 0 {
		return out
	}
	var users []string
	for _, r := range replies {
		if !slices.Contains(users, r.User) {
			users = append(users, r.User)
		}
	}
	out["thread_ts"], out["reply_count"], out["reply_users_count"] = m.TS, len(replies), len(users)
	out["latest_reply"], out["reply_users"] = replies[len(replies)-1].TS, users
	out["is_locked"], out["subscribed"] = false, slices.Contains(users, c.team.BotUser)
	return out
}

func (c *channel) replies(root string) []*message {
	var out []*message
	for _, m := range c.messages {
		if m.Thread == root && m.Ephemeral == "" {
			out = append(out, m)
		}
	}
	return out
}

func (s *Server) botProfile(t *team, m *message) object {
	name := t.BotName
	if u := t.user(m.User); u != nil {
		name = u.Name
	}
	return object{
		"id": m.BotID, "app_id": m.appID, "user_id": m.User, "name": cmp.Or(m.Username, name), "deleted": false, "updated": 1700000000, "team_id": t.ID,
		"icons": object{"image_36": "https://a.slack-edge.com/36.png", "image_48": "https://a.slack-edge.com/48.png", "image_72": "https://a.slack-edge.com/72.png"},
	}
}

// change edits a message and sends message_changed. The caller holds mu.
func (s *Server) change(c *channel, m *message, editor string, edit func(*message)) {
	before := s.wire(c, m)
	edit(m)
	if editor != "" {
		m.Edited, m.editor, m.editedTS = time.Now(), editor, s.ts()
	}
	if m.Ephemeral != "" {
		return
	}
	ts := s.ts()
	s.event(c.team, c, "message", object{
		"type": "message", "subtype": "message_changed", "hidden": true, "channel": c.ID, "channel_type": string(c.Kind), "ts": ts, "event_ts": ts,
		"message": s.wire(c, m), "previous_message": before,
	})
}

// remove deletes a message and sends message_deleted. The caller holds mu.
func (s *Server) remove(c *channel, m *message) {
	before := s.wire(c, m)
	if len(c.replies(m.TS)) > 0 {
		m.tombstone = true
	} else {
		c.messages = slices.DeleteFunc(c.messages, func(o *message) bool { return o == m })
	}
	s.act(Act{Verb: "delete", Team: c.team.ID, Channel: c.ID, Thread: m.Thread, TS: m.TS, User: m.User})
	if m.Ephemeral != "" {
		return
	}
	ts := s.ts()
	s.event(c.team, c, "message", object{
		"type": "message", "subtype": "message_deleted", "hidden": true, "channel": c.ID, "channel_type": string(c.Kind), "ts": ts, "event_ts": ts,
		"deleted_ts": m.TS, "previous_message": before,
	})
}
