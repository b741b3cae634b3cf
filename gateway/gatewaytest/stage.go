package gatewaytest

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

// Stage is a platform in memory, for what no real one can be made to do at will. Its exported fields are set before the house
// starts.
type Stage struct {
	// Own is what Traits returns.
	Own platforms.Traits
	// OnSend answers for a send in place of a success.
	OnSend func(platforms.Outgoing) error
	// OnReact answers for a reaction; nil: success.
	OnReact func(emoji string) error
	// OnFetch answers for an attachment of an event.
	OnFetch func(limit int64, w io.Writer) error
	// Listed are the rooms that the platform lists.
	Listed []platforms.Room
	// Direct are the direct chats that can be opened.
	Direct map[platforms.UserID]platforms.ChatID

	name platforms.Name

	mu       sync.Mutex
	sink     platforms.Sink
	notes    []string
	seq      int
	sent     []platforms.Outgoing // successes, edits too
	shown    map[platforms.MessageID]platforms.Outgoing
	order    []platforms.MessageID
	reacts   []string // "message emoji"
	narrated []string
	typed    int
}

// NewStage makes a platform that can do all that a stage can. Its one account is called "one".
func NewStage(name platforms.Name) *Stage {
	return &Stage{name: name, shown: map[platforms.MessageID]platforms.Outgoing{},
		Own: platforms.Traits{Text: platforms.TextTraits{Dialect: platforms.Plain}, Tier: platforms.TierHigh, Threads: true, Buttons: true,
			Attachments: true, CommandPrefix: "/"}}
}

// On adds the stage to a house and lets everybody talk on it.
func (s *Stage) On(h *House) {
	h.adapters = append(h.adapters, s)
	h.Set["allow_all_users"] = "true"
}

// Beside adds the stage as a second account of Telegram, whose settings then hold for it.
func (s *Stage) Beside(h *House) { h.adapters = append(h.adapters, s) }

// Account is part of platforms.Adapter.
func (s *Stage) Account() platforms.Account { return platforms.Account{Platform: s.name, ID: "one"} }

// Traits is part of platforms.Adapter.
func (s *Stage) Traits() platforms.Traits { return s.Own }

// Health tells whether Run runs.
func (s *Stage) Health() platforms.Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	return platforms.Health{Inbound: s.sink != nil, State: "connected"}
}

// Run hands the sink to Give until the context ends.
func (s *Stage) Run(ctx context.Context, sink platforms.Sink) error {
	s.mu.Lock()
	s.sink = sink
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.sink = nil
	s.mu.Unlock()
	return nil
}

// Send keeps and shows the message unless OnSend fails.
func (s *Stage) Send(_ context.Context, out platforms.Outgoing) (platforms.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.OnSend != nil {
		if err := s.OnSend(out); err != nil {
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

// Fetch calls OnFetch.
func (s *Stage) Fetch(_ context.Context, _ platforms.Attachment, limit int64, w io.Writer) error {
	return s.OnFetch(limit, w)
}

// React keeps the reaction, then calls OnReact.
func (s *Stage) React(_ context.Context, at platforms.Address, id platforms.MessageID, emoji string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reacts = append(s.reacts, strings.TrimSpace(string(id)+" "+emoji))
	if s.OnReact != nil {
		return s.OnReact(emoji)
	}
	return nil
}

// Typing counts.
func (s *Stage) Typing(context.Context, platforms.Address) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.typed++
	return nil
}

// TypingEvery is short, so that a test sees repetition.
func (s *Stage) TypingEvery() time.Duration { return 5 * time.Millisecond }

// Narrate keeps the text.
func (s *Stage) Narrate(_ context.Context, _ platforms.Address, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.narrated = append(s.narrated, text)
	return nil
}

// AnswerClick succeeds.
func (s *Stage) AnswerClick(_ context.Context, _ platforms.Address, _ platforms.Click, _ string) error {
	return nil
}

// Rooms returns Listed.
func (s *Stage) Rooms(context.Context) ([]platforms.Room, error) { return s.Listed, nil }

// Open returns the chat that Direct has for a person.
func (s *Stage) Open(_ context.Context, user platforms.UserID) (platforms.Address, error) {
	chat, ok := s.Direct[user]
	if !ok {
		return platforms.Address{}, fmt.Errorf("no such person")
	}
	return platforms.Address{Platform: s.name, Account: "one", Chat: chat}, nil
}

// Place returns an address on the stage.
func (s *Stage) Place(chat platforms.ChatID, thread platforms.ThreadID) platforms.Address {
	return platforms.Address{Platform: s.name, Account: "one", Chat: chat, Thread: thread}
}

// Event makes an event of Ann with a new id. The caller adds what it is about.
func (s *Stage) Event(at platforms.Address, kind platforms.ChatType) platforms.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	return platforms.Event{ID: platforms.EventID(fmt.Sprint("e", s.seq)), Address: at, ChatType: kind, Addressed: true,
		Sender: platforms.User{ID: "U1", Name: "Ann"}}
}

// Message makes an event with a message of Ann.
func (s *Stage) Message(at platforms.Address, kind platforms.ChatType, text string) platforms.Event {
	e := s.Event(at, kind)
	e.Message = &platforms.Message{ID: platforms.MessageID("m" + string(e.ID)), Text: text}
	return e
}

// Give hands events to the core, waiting for the house to be ready.
func (s *Stage) Give(h *House, events ...platforms.Event) {
	h.T.Helper()
	h.Until("the stage runs", func() bool { return s.Health().Inbound })
	s.mu.Lock()
	sink := s.sink
	s.mu.Unlock()
	require.NoError(h.T, sink.Accept(context.Background(), events...))
}

// Texts returns what a place shows, oldest first.
func (s *Stage) Texts(at platforms.Address) []string {
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

// Await waits for a text at a place and returns it.
func (s *Stage) Await(h *House, at platforms.Address, part string) (found string) {
	h.T.Helper()
	h.Until(fmt.Sprintf("%s shows %q", at, part), func() bool {
		i := slices.IndexFunc(s.Texts(at), func(t string) bool { return strings.Contains(t, part) })
		if i >= 0 {
			found = s.Texts(at)[i]
		}
		return i >= 0
	})
	return found
}

// Note sets what a receipt notes of each message that has files.
func (s *Stage) Note(notes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = notes
}

// Typed returns how often the platform was asked to show that the bot types.
func (s *Stage) Typed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.typed
}

// Calls returns a copy of what was sent, edits too, in order.
func (s *Stage) Calls() []platforms.Outgoing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// Reactions returns a copy of the reactions so far, each as "message emoji"; one that was taken back has no emoji.
func (s *Stage) Reactions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reacts)
}

// Narrations returns a copy of what was narrated.
func (s *Stage) Narrations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.narrated)
}
