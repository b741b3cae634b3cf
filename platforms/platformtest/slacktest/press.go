package slacktest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// interaction is a Press or Command with what came of it.
type interaction struct {
	Interaction
	channel *channel
	message *message // of a press
	thread  string
	user    string
	until   time.Time // the response URL works
	left    int       // uses
	made    time.Time
}

// responseUses is how often a response URL works.
const responseUses = 5

func (s *Server) interact(c *channel, user string) (id string, i *interaction) {
	secret := strings.ReplaceAll(uuid(), "-", "")
	i = &interaction{channel: c, user: user, until: time.Now().Add(s.o.ResponseFor), left: responseUses, made: time.Now()}
	i.TriggerID = "1." + secret[:12] + "." + secret[12:]
	i.ResponseURL = s.base() + "/response/" + c.team.ID + "/" + secret
	s.responses[secret] = i
	id = s.id("I")
	s.interactions[id] = i
	s.pressed = append(s.pressed, [2]string{id, secret})
	if over := len(s.pressed) - s.o.Keep; s.o.Keep > 0 && over > s.o.Keep {
		for _, old := range s.pressed[:over] {
			delete(s.interactions, old[0])
			delete(s.responses, old[1])
		}
		s.pressed = slices.Clone(s.pressed[over:])
	}
	return id, i
}

// Interaction returns what became of a Press, Run or view.
func (s *Server) Interaction(id string) (Interaction, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.interactions[id]
	if i == nil {
		return Interaction{}, false
	}
	out := i.Interaction
	out.Responses = slices.Clone(out.Responses)
	return out, true
}

// Press makes a person press a button or pick an option, and returns the interaction's id, see Interaction.
// false: there is no such message or element.
func (s *Server) Press(p Press) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.team(p.Team)
	c := t.channel(p.Channel)
	m := c.message(p.Message)
	if m == nil || m.tombstone {
		return "", false
	}
	action := pressed(m, p)
	if action == nil {
		return "", false
	}
	who := c.person(p.User)
	action["action_ts"] = s.ts()
	id, i := s.interact(c, who.ID)
	i.message, i.thread = m, m.Thread
	container := object{"type": "message", "message_ts": m.TS, "channel_id": c.ID, "is_ephemeral": m.Ephemeral != ""}
	if m.Thread != "" {
		container["thread_ts"] = m.Thread
	}
	payload := object{
		"type": "block_actions", "api_app_id": s.o.AppID, "token": "slacktest-verification", "container": container, "trigger_id": i.TriggerID,
		"user": object{"id": who.ID, "username": who.Name, "name": who.Name, "team_id": t.ID},
		"team": object{"id": t.ID, "domain": t.Domain}, "enterprise": nil, "is_enterprise_install": false,
		"channel": object{"id": c.ID, "name": c.commandName()}, "state": object{"values": object{}}, "response_url": i.ResponseURL, "actions": []object{action},
	}
	if m.Ephemeral == "" {
		payload["message"] = s.wire(c, m)
	}
	s.act(Act{Verb: "press", Team: t.ID, Channel: c.ID, Thread: m.Thread, TS: m.TS, User: who.ID, Text: p.Button})
	s.enqueue(&envelope{kind: "interactive", payload: encode(payload), interaction: i})
	return id, true
}

// pressed is the action of the element that a Press names, nil for none.
func pressed(m *message, p Press) object {
	var blocks []block
	_ = json.Unmarshal(m.Blocks, &blocks)
	for i, b := range blocks {
		for _, e := range actionsOf(b) {
			for _, shown := range e.button(b.BlockID) {
				if p.Button != shown.ActionID && p.Button != shown.Label && p.Button != shown.Value {
					continue
				}
				fill(&b.BlockID, "blk"+string(rune('a'+i)))
				action := object{"type": e.Type, "action_id": e.ActionID, "block_id": b.BlockID}
				if action["action_id"] == "" {
					action["action_id"] = "auto" + string(rune('a'+i))
				}
				if p.Option == "" {
					action["value"] = shown.Value
					action["text"] = object{"type": "plain_text", "text": shown.Label, "emoji": true}
					if shown.Style != "" {
						action["style"] = shown.Style
					}
					return action
				}
				return e.pick(action, p.Option)
			}
		}
	}
	return nil
}

// pick adds what was picked to an action; nil when there is no such option.
func (b block) pick(action object, want string) object {
	for _, o := range b.allOptions() {
		if o.Value == want || o.Text.Text == want {
			one := object{"text": object{"type": "plain_text", "text": o.Text.Text, "emoji": true}, "value": o.Value}
			if strings.HasPrefix(b.Type, "multi_") || b.Type == "checkboxes" {
				action["selected_options"] = []object{one}
			} else {
				action["selected_option"] = one
			}
			return action
		}
	}
	for kind, field := range map[string]string{"users_select": "selected_user", "channels_select": "selected_channel", "conversations_select": "selected_conversation"} {
		if b.Type == kind {
			action[field] = want
			return action
		}
	}
	return nil
}

// Run makes a person run a slash command and returns the interaction's id.
func (s *Server) Run(r Command) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.team(r.Team)
	c := t.channel(r.Channel)
	who := c.person(r.User)
	id, i := s.interact(c, who.ID)
	payload := object{
		"token": "slacktest-verification", "team_id": t.ID, "team_domain": t.Domain, "channel_id": c.ID, "channel_name": c.commandName(), "user_id": who.ID,
		"user_name": who.Name, "command": r.Name, "text": r.Text, "api_app_id": s.o.AppID, "is_enterprise_install": "false", "response_url": i.ResponseURL, "trigger_id": i.TriggerID,
	}
	s.act(Act{Verb: "command", Team: t.ID, Channel: c.ID, User: who.ID, Text: strings.TrimSpace(r.Name + " " + r.Text)})
	s.enqueue(&envelope{kind: "slash_commands", payload: encode(payload), accepts: true, interaction: i})
	return id
}

// commandName is the channel's name as interactions carry it.
func (c *channel) commandName() string {
	switch c.Kind {
	case IM:
		return "directmessage"
	case Private:
		return "privategroup"
	}
	return c.Name
}

// answered takes the acknowledgement of an interaction. A command's may carry the answer.
func (s *Server) answered(e *envelope, payload json.RawMessage) {
	e.interaction.Acked = true
	if len(payload) == 0 || string(payload) == "null" || string(payload) == "{}" {
		return
	}
	e.interaction.Payload = payload
	if e.accepts && e.kind == "slash_commands" {
		_ = s.respond(e.interaction, payload)
	}
}

// serveResponse takes a POST to a response URL.
func (s *Server) serveResponse(w http.ResponseWriter, c *call) {
	s.mu.Lock()
	_, secret, _ := strings.Cut(c.path, "/")
	i := s.responses[secret]
	var err error
	switch {
	case i == nil || i.until.Before(time.Now()):
		err = refusal{code: "expired_url", status: http.StatusNotFound}
	case i.left <= 0:
		err = refusal{code: "used_url", status: http.StatusNotFound}
	default:
		i.left--
		err = s.respond(i, c.body)
	}
	s.mu.Unlock()
	if err != nil {
		status, body := wireAnswer(nil, err)
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write(body)
		return
	}
	_, _ = w.Write([]byte("ok"))
}

// response is the body of a POST to a response URL, or of a command's acknowledgement.
type response struct {
	Text        string          `json:"text"`
	Blocks      json.RawMessage `json:"blocks"`
	Attachments json.RawMessage `json:"attachments"`
	Type        string          `json:"response_type"`
	Replace     flag            `json:"replace_original"`
	Delete      flag            `json:"delete_original"`
	Thread      string          `json:"thread_ts"`
}

// flag is a truth that may come as a string.
type flag bool

// UnmarshalJSON takes true and "true".
func (f *flag) UnmarshalJSON(b []byte) error {
	*f = strings.Trim(string(b), `"`) == "true"
	return nil
}

// respond acts on a response. The caller holds mu.
func (s *Server) respond(i *interaction, body json.RawMessage) error {
	var r response
	if json.Unmarshal(body, &r) != nil {
		return refusal{code: "invalid_payload", status: http.StatusBadRequest}
	}
	if err := checkBlocks(string(r.Blocks), maxBlocks); err != nil {
		err := err.(refusal)
		err.status = http.StatusBadRequest
		return err
	}
	if r.Text == "" && len(r.Blocks) == 0 && len(r.Attachments) == 0 && !bool(r.Delete) {
		return refusal{code: "no_text", status: http.StatusBadRequest}
	}
	i.Responses = append(i.Responses, slices.Clone(body))
	c := i.channel
	s.act(Act{Verb: "respond", Team: c.team.ID, Channel: c.ID, Thread: r.Thread, User: i.user, Text: r.Text})
	alive := i.message != nil && slices.Contains(c.messages, i.message)
	switch {
	case bool(r.Delete) && alive:
		s.remove(c, i.message)
	case bool(r.Replace) && alive:
		s.change(c, i.message, c.team.BotUser, func(m *message) { m.Raw, m.Blocks, m.Attachments = r.Text, r.Blocks, r.Attachments })
	case bool(r.Delete):
	default:
		m := s.own(c)
		m.Raw, m.Blocks, m.Attachments, m.Thread = r.Text, r.Blocks, r.Attachments, r.Thread
		if r.Type != "in_channel" {
			m.Ephemeral = i.user
		}
		if bool(r.Replace) && i.message == nil {
			m.Ephemeral = i.user
			c.messages = slices.DeleteFunc(c.messages, func(o *message) bool { return o.Ephemeral == i.user && o.answers == i })
		}
		m.answers = i
		s.write(c, m)
	}
	return nil
}

// own begins a message of the bot.
func (s *Server) own(c *channel) *message {
	return &message{Message: Message{User: c.team.BotUser, BotID: c.team.BotID, Own: true}, appID: s.o.AppID}
}
