package teamstest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Press makes a person press the button called title under a message of the bot; who zero is the room's first
// member. inputs are the values of the card's inputs by id, nil for none. Action.Execute and a hero card's "invoke"
// wait for an answer: the returned id is for Invocation. Action.Submit, "messageBack" and "imBack" come to the bot as
// a message with that id. An error says that there is no such button.
func (s *Server) Press(room, message, title string, who User, inputs map[string]any) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[room]
	if r == nil || r.messages[message] == nil {
		return "", fmt.Errorf("no message %s in %s", message, room)
	}
	m := r.messages[message]
	i := slices.IndexFunc(m.Buttons, func(b Button) bool { return b.Title == title })
	if i < 0 {
		return "", fmt.Errorf("message %s has no button %q", message, title)
	}
	who = s.author(r, who)
	switch b := m.Buttons[i]; b.Type {
	case "Action.Execute":
		return s.execute(r, m, b, who, inputs), nil
	case "Action.Submit":
		return s.submit(r, m, merge(b.Data, inputs), who), nil
	case "messageBack", "imBack":
		return s.submit(r, m, b.Data, who), nil
	case "invoke":
		a := s.activity(r, m.Thread, "invoke", "f:"+uuid(), who)
		a.Name, a.Value, a.ReplyToID = "", b.Data, m.ID
		return s.invoke(a, nil), nil
	default:
		return "", fmt.Errorf("a %s opens a page and tells the bot nothing", b.Type)
	}
}

// merge puts inputs into the data of an action, as Teams does.
func merge(data json.RawMessage, inputs map[string]any) json.RawMessage {
	if len(inputs) == 0 {
		if len(data) == 0 {
			return json.RawMessage("{}")
		}
		return data
	}
	all := map[string]any{}
	_ = json.Unmarshal(data, &all)
	maps.Copy(all, inputs)
	return mustJSON(all)
}

// execute presses an Action.Execute.
func (s *Server) execute(r *room, m *Message, b Button, who User, inputs map[string]any) string {
	a := s.activity(r, m.Thread, "invoke", "f:"+uuid(), who)
	a.Name, a.ReplyToID = "adaptiveCard/action", m.ID
	a.Value = mustJSON(map[string]any{
		"action":  map[string]any{"type": "Action.Execute", "title": b.Title, "verb": b.Verb, "data": merge(b.Data, inputs)},
		"trigger": "manual",
	})
	return s.invoke(a, func(i *Invocation) { i.understand() })
}

// understand reads an invoke response as the client does.
func (i *Invocation) understand() {
	var answer struct {
		Status int             `json:"statusCode"`
		Type   string          `json:"type"`
		Value  json.RawMessage `json:"value"`
	}
	if json.Unmarshal(i.Body, &answer) != nil || answer.Status == 0 {
		i.Err = "Something went wrong. Please try again. (the answer is no invoke response)"
		return
	}
	switch {
	case answer.Status != 200:
		i.Err = fmt.Sprintf("Something went wrong. Please try again. (%d %s)", answer.Status, answer.Value)
	case answer.Type == "application/vnd.microsoft.activity.message":
		if json.Unmarshal(answer.Value, &i.Text) != nil {
			i.Err = "Something went wrong. Please try again. (the message is no text)"
		}
	case answer.Type == "application/vnd.microsoft.card.adaptive":
		i.Card = answer.Value
	default:
		i.Err = "Something went wrong. Please try again. (type " + answer.Type + ")"
	}
}

// submit presses an Action.Submit: a message with a value and no text, unless its data asks for a messageBack or an
// imBack.
func (s *Server) submit(r *room, m *Message, data json.RawMessage, who User) string {
	var special struct {
		Teams struct {
			Type  string          `json:"type"`
			Text  string          `json:"text"`
			Value json.RawMessage `json:"value"`
		} `json:"msteams"`
	}
	_ = json.Unmarshal(data, &special)
	a := s.activity(r, m.Thread, "message", "f:"+uuid(), who)
	a.ReplyToID, a.Value = m.ID, data
	switch special.Teams.Type {
	case "messageBack":
		a.Text, a.TextFormat, a.Value = &special.Teams.Text, "plain", special.Teams.Value
	case "imBack":
		var text string
		_ = json.Unmarshal(special.Teams.Value, &text)
		a.ID, a.Text, a.TextFormat, a.Value, a.ReplyToID = s.messageID(), &text, "plain", nil, ""
		s.put(r, &Message{ID: a.ID, Room: r.ID, Thread: m.Thread, From: who.ID, Text: text, Format: "plain", At: time.Now()})
	}
	s.queue(r.ID, mustJSON(a))
	return a.ID
}

// AnswerConsent makes the person of a personal chat accept or decline the file consent card in a message. The
// returned id is for Invocation. An error says that there is no such card, or that it was answered.
func (s *Server) AnswerConsent(room, message string, accept bool) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[room]
	if r == nil || r.messages[message] == nil {
		return "", fmt.Errorf("no message %s in %s", message, room)
	}
	m := r.messages[message]
	return s.answerConsent(r, m, accept)
}

// StopStream makes the person of a personal chat press Stop under the stream that goes on. It reports whether there
// was one: the bot's next chunk is refused with 403 ContentStreamNotAllowed.
func (s *Server) StopStream(room string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[room]
	if r == nil || r.stream == nil {
		return false
	}
	s.finishStream(r, "Content stream was canceled by user")
	return true
}
