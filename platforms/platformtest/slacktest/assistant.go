package slacktest

import (
	"encoding/json"
	"regexp"
)

// head finds the thread of an assistant call, and begins to keep its head.
func (s *Server) head(t *team, c *call) (*channel, string, *assistantThread, error) {
	ch := t.find(c.get("channel_id"))
	ts := c.get("thread_ts")
	switch {
	case ch == nil, ch.WithoutBot && ch.Kind != Public:
		return nil, "", nil, refuse("channel_not_found")
	case ch.WithoutBot:
		return nil, "", nil, refuse("not_in_channel")
	case ts == "":
		return nil, "", nil, missing("thread_ts")
	case ch.message(ts) == nil:
		return nil, "", nil, refuse("invalid_thread_ts")
	}
	a := ch.threads[ts]
	if a == nil {
		a = &assistantThread{}
		ch.threads[ts] = a
	}
	return ch, ts, a, nil
}

func (s *Server) assistantStatus(t *team, c *call) (object, error) {
	ch, ts, a, err := s.head(t, c)
	if err != nil {
		return nil, err
	}
	if !c.has("status") {
		return nil, missing("status")
	}
	if c.get("username") != "" || c.get("icon_emoji") != "" || c.get("icon_url") != "" {
		if err := t.need("chat:write.customize"); err != nil {
			return nil, err
		}
	}
	a.status = c.get("status")
	s.act(Act{Verb: "status", Team: t.ID, Channel: ch.ID, Thread: ts, User: t.BotUser, Text: a.status})
	return object{}, nil
}

func (s *Server) assistantTitle(t *team, c *call) (object, error) {
	ch, ts, a, err := s.head(t, c)
	if err != nil {
		return nil, err
	}
	if c.get("title") == "" {
		return nil, missing("title")
	}
	a.title = c.get("title")
	s.act(Act{Verb: "title", Team: t.ID, Channel: ch.ID, Thread: ts, User: t.BotUser, Text: a.title})
	return object{}, nil
}

// maxPrompts is the most suggested prompts.
const maxPrompts = 4

func (s *Server) assistantPrompts(t *team, c *call) (object, error) {
	ch, ts, a, err := s.head(t, c)
	if err != nil {
		return nil, err
	}
	var prompts []struct {
		Title   string `json:"title"`
		Message string `json:"message"`
	}
	if json.Unmarshal([]byte(c.get("prompts")), &prompts) != nil || len(prompts) == 0 {
		return nil, missing("prompts")
	}
	if len(prompts) > maxPrompts {
		return nil, refusal{code: "invalid_arguments", errors: []string{"no more than 4 items allowed [json-pointer:/prompts]"}}
	}
	for _, p := range prompts {
		if p.Title == "" || p.Message == "" {
			return nil, missing("title [json-pointer:/prompts/0]")
		}
	}
	a.prompts = json.RawMessage(c.get("prompts"))
	s.act(Act{Verb: "prompts", Team: t.ID, Channel: ch.ID, Thread: ts, User: t.BotUser, Text: c.get("title")})
	return object{}, nil
}

// Status returns the assistant status line that shows in a thread, empty for none. It ends with the bot's
// next message there.
func (s *Server) Status(team, channel, thread string) string {
	return s.headOf(team, channel, thread).status
}

// Title returns the title of an assistant thread or agent session.
func (s *Server) Title(team, channel, thread string) string {
	return s.headOf(team, channel, thread).title
}

// Prompts returns the suggested prompts of an assistant thread as JSON, nil for none.
func (s *Server) Prompts(team, channel, thread string) json.RawMessage {
	return s.headOf(team, channel, thread).prompts
}

func (s *Server) headOf(team, channel, thread string) assistantThread {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.team(team).channel(channel).threads[thread]; a != nil {
		return *a
	}
	return assistantThread{}
}

// emojiName is the form of an emoji's name, with a skin tone or not.
var emojiName = regexp.MustCompile(`^[a-z0-9_+'\-]+(::skin-tone-[2-6])?$`)

// maxReactions is the most different emoji on a message.
const maxReactions = 50

func (s *Server) reactionsAdd(t *team, c *call) (object, error) {
	ch, m, err := s.reacted(t, c)
	switch {
	case err != nil:
		return nil, err
	case len(m.Reactions) >= maxReactions:
		return nil, refuse("too_many_emoji")
	}
	return object{}, s.react(ch, m, t.BotUser, c.get("name"))
}

func (s *Server) reactionsRemove(t *team, c *call) (object, error) {
	ch, m, err := s.reacted(t, c)
	if err != nil {
		return nil, err
	}
	return object{}, s.unreact(ch, m, t.BotUser, c.get("name"))
}

// reacted finds the message of a reaction call.
func (s *Server) reacted(t *team, c *call) (*channel, *message, error) {
	switch {
	case c.get("channel") == "" || c.get("timestamp") == "":
		return nil, nil, refuse("no_item_specified")
	case !emojiName.MatchString(c.get("name")):
		return nil, nil, refuse("invalid_name")
	}
	ch, m, err := s.find(t, c, c.get("timestamp"))
	switch {
	case err != nil:
		return nil, nil, err
	case ch.WithoutBot:
		return nil, nil, refuse("not_in_channel")
	case ch.Archived:
		return nil, nil, refuse("is_archived")
	}
	return ch, m, nil
}

func (s *Server) reactionsGet(t *team, c *call) (object, error) {
	ch, m, err := s.find(t, c, c.get("timestamp"))
	if err != nil {
		return nil, err
	}
	out := s.wire(ch, m)
	out["permalink"] = permalink(ch, m)
	return object{"type": "message", "channel": ch.ID, "message": out}, nil
}

func wireReactions(m *message) []object {
	var out []object
	for _, r := range m.Reactions {
		out = append(out, object{"name": r.Name, "users": r.Users, "count": len(r.Users)})
	}
	return out
}
