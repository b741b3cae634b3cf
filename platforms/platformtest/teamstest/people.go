package teamstest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// room is a room with what happened in it.
type room struct {
	Room
	messages  map[string]*Message
	order     []string
	installed bool     // the bot is in the roster
	refusal   *problem // what every send is refused with
	gone      map[string]bool
	sends     []time.Time // of the last half minute, for quotas
	stream    *stream     // the one that is going on, and the ended ones stay in streams
	streams   map[string]*stream
}

// AddUser makes a person of the bot's tenant.
func (s *Server) AddUser(name string) User { return s.AddGuest(name, s.o.TenantID) }

// AddGuest makes a person of another tenant. Their personal chat belongs to that tenant.
func (s *Server) AddGuest(name, tenant string) User {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.number()
	u := User{
		ID: fmt.Sprintf("29:1fakeUser%040d", n), AAD: fmt.Sprintf("33333333-aaaa-4bbb-8ccc-%012d", n), Name: name,
		Email: strings.ReplaceAll(strings.ToLower(name), " ", ".") + "@contoso.example", Tenant: tenant,
	}
	s.users[u.ID] = u
	return u
}

// Personal returns the direct chat of a person with the bot, and makes it at the first call. The bot is told
// nothing: see Install.
func (s *Server) Personal(u User) Room {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.personal(u).Room
}

// personal is Personal for callers that hold mu.
func (s *Server) personal(u User) *room {
	for _, r := range s.rooms {
		if r.Type == Personal && r.Members[0].ID == u.ID {
			return r
		}
	}
	return s.addRoom(Room{ID: fmt.Sprintf("a:1fakeChat%040d", s.number()), Type: Personal, Tenant: u.Tenant, Members: []User{u}})
}

// Group makes a group chat with the bot in it.
func (s *Server) Group(name string, members ...User) Room {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addRoom(Room{ID: fmt.Sprintf("19:%032x@thread.v2", s.number()), Type: Group, Name: name, Members: members}).Room
}

// Team makes a team with a General channel and the bot in it.
func (s *Server) Team(name string, members ...User) Team {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.number()
	t := Team{ID: fmt.Sprintf("19:%032x@thread.tacv2", n), Group: fmt.Sprintf("44444444-aaaa-4bbb-8ccc-%012d", n), Name: name}
	s.teams[t.ID] = t
	s.addRoom(Room{ID: t.ID, Type: Channel, Name: "General", Team: t, Members: members})
	return t
}

// Channel makes a channel of a team, with the members of the team, and returns it. "General" is there from the
// beginning.
func (s *Server) Channel(t Team, name string) Room {
	s.mu.Lock()
	defer s.mu.Unlock()
	general := s.rooms[t.ID]
	if name == general.Name {
		return general.Room
	}
	return s.addRoom(Room{ID: fmt.Sprintf("19:%032x@thread.tacv2", s.number()), Type: Channel, Name: name, Team: t, Members: general.Members}).Room
}

func (s *Server) addRoom(r Room) *room {
	if r.Tenant == "" {
		r.Tenant = s.o.TenantID
	}
	made := &room{Room: r, messages: map[string]*Message{}, installed: true, gone: map[string]bool{}, streams: map[string]*stream{}}
	s.rooms[r.ID] = made
	return made
}

// Refuse makes every request for a room fail with a status and Teams' code: (403, "BotNotInConversationRoster"),
// (403, "ConversationBlockedByUser"), (403, "BotDisabledByAdmin"), (404, "ConversationNotFound"). 0 ends it.
func (s *Server) Refuse(room string, status int, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[room]
	r.refusal = nil
	if status != 0 {
		r.refusal = refuse(status, code, wording(status, code))
	}
}

// DropThread deletes a thread of a channel for good: sends into it are refused with 404, the channel lives on.
func (s *Server) DropThread(room, root string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[room]
	r.gone[root] = true
	for _, id := range slices.Clone(r.order) {
		if m := r.messages[id]; m.Thread == root {
			r.forget(id)
		}
	}
}

func (r *room) forget(id string) {
	delete(r.messages, id)
	r.order = slices.DeleteFunc(r.order, func(x string) bool { return x == id })
}

// Visible returns the bot's messages in a conversation as people see them now, oldest first. A room's id gives all
// of a room, a thread's id ("…;messageid=…") only the thread's.
func (s *Server) Visible(conversation string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, thread := splitID(conversation)
	r := s.rooms[id]
	if r == nil {
		return nil
	}
	var out []Message
	for _, id := range r.order {
		if m := r.messages[id]; m.Bot && (thread == "" || m.Thread == thread) {
			out = append(out, m.copy())
		}
	}
	return out
}

// Message returns a message of anybody.
func (s *Server) Message(room, id string) (Message, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[room]
	if r == nil || r.messages[id] == nil {
		return Message{}, false
	}
	return r.messages[id].copy(), true
}

func (m *Message) copy() Message {
	c := *m
	c.Buttons, c.Files, c.Cards = slices.Clone(m.Buttons), slices.Clone(m.Files), slices.Clone(m.Cards)
	c.Mentioned = slices.Clone(m.Mentioned)
	c.Reactions = map[string][]string{}
	for who, list := range m.Reactions {
		c.Reactions[who] = slices.Clone(list)
	}
	return c
}

// put adds a message to a room. The caller holds mu.
func (s *Server) put(r *room, m *Message) {
	r.messages[m.ID] = m
	r.order = append(r.order, m.ID)
	for s.o.Keep > 0 && len(r.order) > s.o.Keep {
		r.forget(r.order[0])
	}
}
