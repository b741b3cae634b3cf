package gateway_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
)

// stage is a platform in memory, for what no real one can be made to do at will. Its fields are set before the house
// starts.
type stage struct {
	name   platforms.Name
	traits platforms.Traits
	// send answers instead of a success.
	send func(platforms.Outgoing) error
	// react answers a reaction; nil succeeds.
	react func(emoji string) error
	// fetch answers for an attachment of an event; notes are told with each file that is sent.
	fetch func(limit int64, w io.Writer) error
	notes []string
	rooms []platforms.Room
	open  map[platforms.UserID]platforms.ChatID
	every time.Duration // between two signs of life

	mu       sync.Mutex
	sink     platforms.Sink
	seq      int
	sent     []platforms.Outgoing // successes, edits too
	shown    map[platforms.MessageID]platforms.Outgoing
	order    []platforms.MessageID
	reacts   []string // "message emoji"
	narrated []string
	typed    int
	clicks   []string
}

func newStage(name platforms.Name) *stage {
	return &stage{name: name, shown: map[platforms.MessageID]platforms.Outgoing{}, every: 5 * time.Millisecond,
		traits: platforms.Traits{Text: platforms.TextTraits{Dialect: platforms.Plain}, Tier: platforms.TierHigh, Threads: true, Buttons: true,
			Attachments: true, CommandPrefix: "/"}}
}

// on adds the stage to a house and lets everybody talk on it.
func (s *stage) on(h *house) {
	h.adapters = append(h.adapters, s)
	h.set["allow_all_users"] = "true"
}

func (s *stage) Account() platforms.Account { return platforms.Account{Platform: s.name, ID: "one"} }
func (s *stage) Traits() platforms.Traits   { return s.traits }
func (s *stage) Health() platforms.Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	return platforms.Health{Inbound: s.sink != nil, State: "connected"}
}

func (s *stage) Run(ctx context.Context, sink platforms.Sink) error {
	s.mu.Lock()
	s.sink = sink
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.sink = nil
	s.mu.Unlock()
	return nil
}

func (s *stage) Send(_ context.Context, out platforms.Outgoing) (platforms.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.send != nil {
		if err := s.send(out); err != nil {
			return platforms.Receipt{}, err
		}
	}
	s.sent = append(s.sent, out)
	id := out.Edit
	if id == "" {
		s.seq++
		id = platforms.MessageID(fmt.Sprint("b", s.seq))
		s.order = append(s.order, id)
	}
	s.shown[id] = out
	r := platforms.Receipt{Message: id}
	if len(out.Attachments) > 0 {
		r.Notes = s.notes
	}
	return r, nil
}

func (s *stage) Fetch(_ context.Context, _ platforms.Attachment, limit int64, w io.Writer) error {
	return s.fetch(limit, w)
}

func (s *stage) React(_ context.Context, at platforms.Address, id platforms.MessageID, emoji string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reacts = append(s.reacts, strings.TrimSpace(string(id)+" "+emoji))
	if s.react != nil {
		return s.react(emoji)
	}
	return nil
}

func (s *stage) Typing(context.Context, platforms.Address) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.typed++
	return nil
}

func (s *stage) TypingEvery() time.Duration { return s.every }

func (s *stage) Narrate(_ context.Context, _ platforms.Address, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.narrated = append(s.narrated, text)
	return nil
}

func (s *stage) AnswerClick(_ context.Context, _ platforms.Address, _ platforms.Click, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clicks = append(s.clicks, text)
	return nil
}

func (s *stage) Rooms(context.Context) ([]platforms.Room, error) { return s.rooms, nil }

func (s *stage) Open(_ context.Context, user platforms.UserID) (platforms.Address, error) {
	chat, ok := s.open[user]
	if !ok {
		return platforms.Address{}, fmt.Errorf("no such person")
	}
	return platforms.Address{Platform: s.name, Account: "one", Chat: chat}, nil
}

// place is an address on the stage.
func (s *stage) place(chat platforms.ChatID, thread platforms.ThreadID) platforms.Address {
	return platforms.Address{Platform: s.name, Account: "one", Chat: chat, Thread: thread}
}

// event makes one from a person; body fields are the caller's.
func (s *stage) event(at platforms.Address, kind platforms.ChatType) platforms.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	return platforms.Event{ID: platforms.EventID(fmt.Sprint("e", s.seq)), Address: at, ChatType: kind, Addressed: true,
		Sender: platforms.User{ID: "U1", Name: "Ann"}}
}

// message makes one of a person.
func (s *stage) message(at platforms.Address, kind platforms.ChatType, text string) platforms.Event {
	e := s.event(at, kind)
	e.Message = &platforms.Message{ID: platforms.MessageID("m" + string(e.ID)), Text: text}
	return e
}

// give hands events to the core, waiting for the house to be ready.
func (s *stage) give(h *house, events ...platforms.Event) {
	h.t.Helper()
	h.until("the stage runs", func() bool { return s.Health().Inbound })
	s.mu.Lock()
	sink := s.sink
	s.mu.Unlock()
	require.NoError(h.t, sink.Accept(context.Background(), events...))
}

// texts returns what a place shows, oldest first.
func (s *stage) texts(at platforms.Address) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, id := range s.order {
		if o := s.shown[id]; o.Address == at {
			out = append(out, o.Text.Plain)
		}
	}
	return out
}

// await waits for a text at a place and returns it.
func (s *stage) await(h *house, at platforms.Address, part string) (found string) {
	h.t.Helper()
	h.until(fmt.Sprintf("%s shows %q", at, part), func() bool {
		i := slices.IndexFunc(s.texts(at), func(t string) bool { return strings.Contains(t, part) })
		if i >= 0 {
			found = s.texts(at)[i]
		}
		return i >= 0
	})
	return found
}

// calls returns a copy of what was sent.
func (s *stage) calls() []platforms.Outgoing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// reactions and narrations return copies of what was shown.
func (s *stage) reactions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reacts)
}

func (s *stage) narrations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.narrated)
}
