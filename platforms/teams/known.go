package teams

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"herald/platforms"
	"herald/platforms/wire"
)

const (
	// roomsKept is how many conversations are remembered; the longest silent ones give way.
	roomsKept = 2000
	// ownKept is how many of our messages are remembered, over all conversations.
	ownKept = 4000
	// touchEvery is how often a conversation that has not changed is written down as used.
	touchEvery = 24 * time.Hour

	roomSpace = "room/"
)

// room is what is remembered of a conversation: what it takes to write there without being asked.
type room struct {
	ServiceURL string `json:"service_url"`
	Type       string `json:"type"`
	Tenant     string `json:"tenant,omitempty"`
	Name       string `json:"name,omitempty"`
	Team       string `json:"team,omitempty"`
	TeamName   string `json:"team_name,omitempty"`
	Group      string `json:"group,omitempty"` // the team's Entra group
	// Of a personal chat.
	User     string `json:"user,omitempty"` // as in Event.Sender
	UserName string `json:"user_name,omitempty"`
	// Flat: the conversation refuses replies, so that everything is sent without.
	Flat bool `json:"flat,omitempty"`
}

// rooms remembers conversations over restarts.
type rooms struct {
	memory platforms.Memory
	clock  wire.Clock

	mu   sync.Mutex
	read bool
	all  map[string]*seenRoom
}

type seenRoom struct {
	room
	at time.Time
}

func newRooms(memory platforms.Memory, clock wire.Clock) *rooms {
	return &rooms{memory: memory, clock: clock, all: map[string]*seenRoom{}}
}

// load reads what an earlier process has kept. The caller holds mu.
func (r *rooms) load(ctx context.Context) error {
	if r.read {
		return nil
	}
	facts, err := r.memory.Recall(ctx, roomSpace)
	if err != nil {
		return err
	}
	for _, f := range facts {
		seen := &seenRoom{at: f.At}
		if json.Unmarshal(f.Data, &seen.room) == nil {
			r.all[strings.TrimPrefix(f.Key, roomSpace)] = seen
		}
	}
	r.read = true
	return nil
}

// find returns what is known of a chat.
func (r *rooms) find(ctx context.Context, chat string) (room, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(ctx); err != nil {
		return room{}, false, err
	}
	if seen := r.all[chat]; seen != nil {
		return seen.room, true, nil
	}
	return room{}, false, nil
}

// note keeps what an activity says of a chat. It is durable when it returns nil; what is known already costs no write.
func (r *rooms) note(ctx context.Context, chat string, now room) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(ctx); err != nil {
		return err
	}
	old := r.all[chat]
	if old != nil {
		now = merged(old.room, now)
		if now == old.room && r.clock.Now().Sub(old.at) < touchEvery {
			return nil
		}
	}
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	at := r.clock.Now()
	facts := []platforms.Fact{{Key: roomSpace + chat, Data: data, At: at}}
	oldest := ""
	if old == nil && len(r.all) >= roomsKept {
		for id, seen := range r.all {
			if oldest == "" || seen.at.Before(r.all[oldest].at) {
				oldest = id
			}
		}
		facts = append(facts, platforms.Fact{Key: roomSpace + oldest})
	}
	if err := r.memory.Keep(ctx, facts...); err != nil {
		return err
	}
	delete(r.all, oldest)
	r.all[chat] = &seenRoom{now, at}
	return nil
}

// merged takes what is new and keeps what an activity does not say every time.
func merged(old, now room) room {
	keep := func(n *string, o string) {
		if *n == "" {
			*n = o
		}
	}
	keep(&now.Name, old.Name)
	keep(&now.Team, old.Team)
	keep(&now.TeamName, old.TeamName)
	keep(&now.Group, old.Group)
	keep(&now.User, old.User)
	keep(&now.UserName, old.UserName)
	now.Flat = now.Flat || old.Flat
	return now
}

// forget drops a chat that the bot was taken out of.
func (r *rooms) forget(ctx context.Context, chat string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(ctx); err != nil {
		return err
	}
	if r.all[chat] == nil {
		return nil
	}
	if err := r.memory.Keep(ctx, platforms.Fact{Key: roomSpace + chat}); err != nil {
		return err
	}
	delete(r.all, chat)
	return nil
}

// list returns everything known, by chat.
func (r *rooms) list(ctx context.Context) (map[string]room, []string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(ctx); err != nil {
		return nil, nil, err
	}
	out := make(map[string]room, len(r.all))
	ids := make([]string, 0, len(r.all))
	for id, seen := range r.all {
		out[id] = seen.room
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return out, ids, nil
}

// roomOf returns what an activity says of its conversation.
func (a *Adapter) roomOf(act *activity) room {
	d := act.data()
	service, _ := a.s.serves(act.ServiceURL)
	r := room{ServiceURL: service, Type: act.kind(), Tenant: act.tenant(), Team: d.Team.ID, TeamName: cut(d.Team.Name, 200),
		Group: d.Team.Group}
	switch r.Type {
	case personal:
		if !a.isBot(act.From.ID) {
			sender := userOf(act.From)
			r.User, r.UserName = string(sender.ID), cut(sender.Name, 200)
		}
	case channel:
		r.Name = cut(d.Channel.Name, 200)
	default:
		r.Name = cut(act.Conversation.Name, 200)
	}
	return r
}

// Ids from outside that become part of an address.
var (
	chatPattern    = regexp.MustCompile(`^[A-Za-z0-9:@._=-]{1,400}$`)
	messagePattern = regexp.MustCompile(`^[A-Za-z0-9:._|-]{1,100}$`)
)

// guessType returns the type of a conversation that nothing is remembered of, by the form of its id.
func guessType(chat string) string {
	switch {
	case strings.HasPrefix(chat, "a:"):
		return personal
	case strings.HasSuffix(chat, "@thread.tacv2"), strings.HasSuffix(chat, "@thread.skype"):
		return channel
	case strings.HasPrefix(chat, "19:"):
		return groupChat
	}
	return personal
}
