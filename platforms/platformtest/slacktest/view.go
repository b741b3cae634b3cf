package slacktest

import (
	"encoding/json"
	"slices"
	"time"
)

// view is a home tab or modal.
type view struct {
	id   string
	hash string
	user string
	body map[string]json.RawMessage
}

func (v *view) wire(s *Server, t *team) object {
	out := object{"id": v.id, "team_id": t.ID, "app_id": s.o.AppID, "bot_id": t.BotID, "hash": v.hash, "root_view_id": v.id, "previous_view_id": nil, "state": object{"values": object{}}}
	for k, raw := range v.body {
		out[k] = raw
	}
	return out
}

// parseView checks a view.
func (s *Server) parseView(c *call, kinds ...string) (*view, error) {
	v := &view{id: s.id("V"), hash: s.ts()}
	if c.get("view") == "" {
		return nil, missing("view")
	}
	var head struct {
		Type   string          `json:"type"`
		Blocks json.RawMessage `json:"blocks"`
		Title  *text           `json:"title"`
	}
	if json.Unmarshal([]byte(c.get("view")), &v.body) != nil || json.Unmarshal([]byte(c.get("view")), &head) != nil || !slices.Contains(kinds, head.Type) {
		return nil, missing("type [json-pointer:/view]")
	}
	if head.Type == "modal" && (head.Title == nil || len(head.Title.Text) > 24) {
		return nil, refusal{code: "invalid_arguments", errors: []string{"must be less than 25 characters [json-pointer:/view/title/text]"}}
	}
	return v, checkBlocks(string(head.Blocks), 100)
}

func (s *Server) viewsPublish(t *team, c *call) (object, error) {
	user := c.get("user_id")
	if t.user(user) == nil {
		return nil, refuse("user_not_found")
	}
	v, err := s.parseView(c, "home")
	if err != nil {
		return nil, err
	}
	if old := t.homes[user]; old != nil && c.get("hash") != "" && c.get("hash") != old.hash {
		return nil, refuse("hash_conflict")
	}
	v.user = user
	t.homes[user] = v
	s.act(Act{Verb: "home", Team: t.ID, User: user})
	return object{"view": v.wire(s, t)}, nil
}

// triggerFor is how long a trigger opens a modal.
const triggerFor = 3 * time.Second

func (s *Server) viewsOpen(t *team, c *call) (object, error) {
	for _, i := range s.interactions {
		if i.TriggerID != c.get("trigger_id") {
			continue
		}
		switch {
		case i.modal:
			return nil, refuse("exchanged_trigger_id")
		case time.Since(i.made) > triggerFor:
			return nil, refuse("expired_trigger_id")
		}
		v, err := s.parseView(c, "modal")
		if err != nil {
			return nil, err
		}
		i.modal, v.user = true, i.user
		s.modals = append(s.modals, v)
		return object{"view": v.wire(s, t)}, nil
	}
	return nil, refuse("invalid_trigger_id")
}

func (s *Server) viewsUpdate(t *team, c *call) (object, error) {
	for i, old := range s.modals {
		if old.id != c.get("view_id") {
			continue
		}
		v, err := s.parseView(c, "modal")
		if err != nil {
			return nil, err
		}
		v.id, v.user = old.id, old.user
		s.modals[i] = v
		return object{"view": v.wire(s, t)}, nil
	}
	return nil, refuse("not_found")
}

// Home returns the home tab that was published for a user as JSON, nil for none.
func (s *Server) Home(team, user string) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.team(team).homes[user]; v != nil {
		return encode(v.body)
	}
	return nil
}

// Modals returns the modals that the app opened for a user as JSON, oldest first.
func (s *Server) Modals(user string) []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []json.RawMessage
	for _, v := range s.modals {
		if v.user == user {
			out = append(out, encode(v.body))
		}
	}
	return out
}
