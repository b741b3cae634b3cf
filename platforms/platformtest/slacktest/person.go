package slacktest

import (
	"encoding/json"
	"mime"
	"path"
	"slices"
	"strings"
	"time"
)

// Say makes the first person of a channel write plain text (it is escaped) and returns the ts.
func (s *Server) Say(team, channel, text string) string {
	return s.Write(Post{Team: team, Channel: channel, Text: Escape(text)})
}

// Write makes somebody write and returns the ts.
func (s *Server) Write(p Post) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.team(p.Team)
	c := t.channel(p.Channel)
	who := c.person(p.User)
	if p.Mention {
		p.Text = strings.TrimSpace("<@" + t.BotUser + "> " + p.Text)
	}
	m := &message{Message: Message{
		User: who.ID, Raw: p.Text, Subtype: p.Subtype, Thread: p.Thread, Broadcast: p.Broadcast, Blocks: p.Blocks, Attachments: p.Attachments,
		Metadata: p.Metadata,
	}}
	plain := p.Subtype == "" && !who.IsBot && !p.ViaAPI
	if plain {
		m.clientID = uuid()
		fill(&p.ClientMsgID, m.clientID)
		m.clientID = p.ClientMsgID
	}
	if who.IsBot {
		m.BotID, m.appID = who.BotID, who.AppID
		if p.Subtype == "bot_message" {
			m.User, m.Username = "", who.Name
		}
	}
	if p.ViaAPI {
		m.BotID, m.appID = "B0OTHERAPP", "A0OTHERAPP"
	}
	if m.Blocks == nil && !p.NoBlocks && plain && p.Text != "" {
		m.Blocks = s.compose(p.Text)
	}
	for _, u := range p.Files {
		f := s.addFile(t, who.ID, u)
		f.shared = append(f.shared, share{channel: c, message: m})
		m.files = append(m.files, f)
	}
	switch {
	case len(m.files) > 0:
		m.Subtype = "file_share"
	case p.Broadcast && p.Thread != "":
		m.Subtype = "thread_broadcast"
	}
	if p.Silent {
		s.keep(c, m)
	} else {
		s.write(c, m)
	}
	return m.TS
}

// addFile keeps a person's file.
func (s *Server) addFile(t *team, user string, u Upload) *file {
	fill(&u.MIME, mime.TypeByExtension(path.Ext(u.Name)))
	fill(&u.MIME, "application/octet-stream")
	fill(&u.Mode, "hosted")
	f := &file{File: File{ID: s.id("F"), Name: u.Name, Title: u.Name, MIME: u.MIME, Body: u.Body, User: user}, team: t, mode: u.Mode,
		created: time.Now()}
	s.files[f.ID] = f
	return f
}

// Rewrite makes the author of a message edit it. The event is message_changed.
func (s *Server) Rewrite(team, channel, ts, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.team(team).channel(channel)
	if m := c.message(ts); m != nil {
		s.change(c, m, m.User, func(m *message) {
			m.Raw = text
			if len(m.Blocks) > 0 {
				m.Blocks = s.compose(text)
			}
		})
		s.act(Act{Verb: "rewrite", Team: c.team.ID, Channel: c.ID, Thread: m.Thread, TS: ts, User: m.User, Text: text})
	}
}

// Unfurl adds an attachment to a message, as Slack does for links: a message_changed that nobody wrote.
func (s *Server) Unfurl(team, channel, ts string, attachment json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.team(team).channel(channel)
	if m := c.message(ts); m != nil {
		s.change(c, m, "", func(m *message) { m.Attachments = encode([]json.RawMessage{attachment}) })
	}
}

// Delete makes the author of a message delete it. The event is message_deleted.
func (s *Server) Delete(team, channel, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.team(team).channel(channel)
	if m := c.message(ts); m != nil {
		s.remove(c, m)
	}
}

// React makes a user put an emoji on a message; the name has no colons. Empty user is the first person.
func (s *Server) React(team, channel, ts, user, emoji string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.team(team).channel(channel)
	_ = s.react(c, c.message(ts), c.person(user).ID, emoji)
}

// Unreact takes an emoji off again.
func (s *Server) Unreact(team, channel, ts, user, emoji string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.team(team).channel(channel)
	_ = s.unreact(c, c.message(ts), c.person(user).ID, emoji)
}

func (s *Server) react(c *channel, m *message, user, emoji string) error {
	if m == nil {
		return refuse("message_not_found")
	}
	i := slices.IndexFunc(m.Reactions, func(r Reaction) bool { return r.Name == emoji })
	switch {
	case i < 0:
		m.Reactions = append(m.Reactions, Reaction{emoji, []string{user}})
	case slices.Contains(m.Reactions[i].Users, user):
		return refuse("already_reacted")
	default:
		m.Reactions[i].Users = append(m.Reactions[i].Users, user)
	}
	s.reactionEvent(c, m, "reaction_added", "react", user, emoji)
	return nil
}

func (s *Server) unreact(c *channel, m *message, user, emoji string) error {
	if m == nil {
		return refuse("message_not_found")
	}
	i := slices.IndexFunc(m.Reactions, func(r Reaction) bool { return r.Name == emoji && slices.Contains(r.Users, user) })
	if i < 0 {
		return refuse("no_reaction")
	}
	m.Reactions[i].Users = slices.DeleteFunc(slices.Clone(m.Reactions[i].Users), func(u string) bool { return u == user })
	m.Reactions = slices.DeleteFunc(slices.Clone(m.Reactions), func(r Reaction) bool { return len(r.Users) == 0 })
	s.reactionEvent(c, m, "reaction_removed", "unreact", user, emoji)
	return nil
}

func (s *Server) reactionEvent(c *channel, m *message, kind, verb, user, emoji string) {
	s.act(Act{Verb: verb, Team: c.team.ID, Channel: c.ID, Thread: m.Thread, TS: m.TS, User: user, Text: emoji})
	s.event(c.team, c, kind, object{
		"type": kind, "user": user, "reaction": emoji, "item": object{"type": "message", "channel": c.ID, "ts": m.TS}, "item_user": m.User, "event_ts": s.ts(),
	})
}

// OpenHome makes a person open a tab of the app, "home" or "messages". Empty is "home".
func (s *Server) OpenHome(team, user, tab string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.team(team)
	fill(&tab, "home")
	c, _ := s.dm(t, user)
	inner := object{"type": "app_home_opened", "user": user, "channel": c.ID, "tab": tab, "event_ts": s.ts()}
	s.event(t, nil, "app_home_opened", inner)
}

// assistantThread is the head of a thread.
type assistantThread struct {
	user    string // who opened it; empty for one that only has a status
	context string // the channel that the person looks at
	status  string
	title   string
	prompts json.RawMessage
}

// OpenAssistant makes a person start an assistant thread, with the channel they look at as context (or none),
// and returns where it is.
func (s *Server) OpenAssistant(team, user, context string) (channel, thread string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.team(team)
	c, _ := s.dm(t, user)
	root := &message{Message: Message{User: t.BotUser, BotID: t.BotID, Raw: "New Assistant Thread", Subtype: "assistant_app_thread"}, appID: s.o.AppID}
	s.keep(c, root)
	c.threads[root.TS] = &assistantThread{user: user, context: context}
	s.assistantEvent(c, root.TS, "assistant_thread_started")
	return c.ID, root.TS
}

// SwitchContext makes a person look at another channel while an assistant thread is open.
func (s *Server) SwitchContext(team, channel, thread, context string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.team(team).channel(channel)
	if a := c.threads[thread]; a != nil {
		a.context = context
		s.assistantEvent(c, thread, "assistant_thread_context_changed")
	}
}

func (s *Server) assistantEvent(c *channel, thread, kind string) {
	a := c.threads[thread]
	context := object{}
	if a.context != "" {
		context = object{"channel_id": a.context, "team_id": c.team.ID, "enterprise_id": nil}
	}
	s.event(c.team, c, kind, object{
		"type": kind, "event_ts": s.ts(),
		"assistant_thread": object{"user_id": a.user, "context": context, "channel_id": c.ID, "thread_ts": thread},
	})
}
