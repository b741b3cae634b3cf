// Package ask puts the questions and approvals of running turns to people and brings back what they decide.
//
// Both survive a restart: each is a value in the store, written with its prompt in one transaction, and a turn that goes
// on takes up what was asked and what was decided. A prompt is shown once.
//
// It must not know what a turn does beside asking, nor which platform shows a prompt.
package ask

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"herald/gateway/delivery"
	"herald/locales"
	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
)

// ErrEnded is the error of every write of a turn that does not run any more.
var ErrEnded = errors.New("the turn has ended already")

// The errors of deciding.
var (
	// ErrStale: it was answered or decided already, or its turn is over.
	ErrStale = errors.New("this question is not open any more")
	// ErrNotAsked: somebody else was asked.
	ErrNotAsked = errors.New("only the person who was asked may answer")
	// ErrExpired: nobody had answered in time.
	ErrExpired = errors.New("the time to answer is over")
	// ErrNotOffered: the choice was not among those that the prompt offers.
	ErrNotOffered = errors.New("this choice is not offered")
	// ErrNobody: the call belongs to no chat in which anybody could be asked.
	ErrNobody = errors.New("nobody can be asked outside a chat")
)

// Turn is what asking needs of a running turn. Its methods are called without a lock of this package.
type Turn interface {
	// Row returns the turn as it is stored, with the address that it answers now.
	Row() sessions.Turn
	Session() sessions.ID
	Origin() sessions.Origin
	// Resumed reports whether an earlier process has begun the turn.
	Resumed() bool
	// Closing reports whether the daemon stops, so that the next process goes on with the turn.
	Closing() bool
	// Update runs a transaction; ErrEnded when the turn has ended.
	Update(edge sessions.Edge, fn func(sessions.Tx) error) error
	// WaitForPerson shows that a person has to act, until end is called. doing is what the turn waits with.
	WaitForPerson(ctx context.Context, doing string) (end func())
	// Early offers the first message to take that came in after a time and that the turn has not read yet. It stays with
	// the turn when take returns false.
	Early(after time.Time, take func(sessions.InboxItem) bool)
}

// Turns finds what running turns ask.
type Turns interface {
	Asking(id sessions.TurnID) (*Pending, bool)
}

// Outbox sends messages whose rows are committed.
type Outbox interface {
	Take(rows ...*sessions.OutboxRow)
}

// Options is what an Asker works with.
type Options struct {
	Store    sessions.Store
	Turns    Turns
	Outbox   Outbox
	Adapters delivery.Adapters
	// Printer speaks the language of a chat.
	Printer func(at platforms.Address) *locales.Printer
	// Allow keeps, in the transaction of a decision, that kinds of danger need no approval any more in a session; nil:
	// nothing is kept.
	Allow func(tx sessions.Tx, s sessions.ID, kinds []string) error
	// Redact removes secrets from text for people.
	Redact func(string) string
	Log    zerolog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Asker asks people for running turns. It is safe for concurrent use.
type Asker struct{ o Options }

// New returns an asker. It does nothing until a turn asks.
func New(o Options) *Asker {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Asker{o: o}
}

// Pending is what one running turn asks. It is safe for concurrent use.
type Pending struct {
	a    *Asker
	turn Turn

	mu       sync.Mutex
	question *question
	asked    bool                     // a question was put
	opened   map[string]bool          // questions that this process has opened
	answers  map[string]string        // answers that this process has committed, by question
	calls    map[string]chan struct{} // calls that wait for an approval, by its id
	approved bool                     // an approval was asked for
}

// Begin returns the pending questions and approvals of a turn, none so far.
func (a *Asker) Begin(t Turn) *Pending {
	return &Pending{a: a, turn: t, opened: map[string]bool{}, answers: map[string]string{}, calls: map[string]chan struct{}{}}
}

// traits are those of the platform of a place; plain text where it is not running.
func (a *Asker) traits(at platforms.Address) platforms.Traits {
	if adapter, ok := a.o.Adapters.Adapter(at.AccountOf()); ok {
		return adapter.Traits()
	}
	return platforms.Traits{Text: platforms.TextTraits{Dialect: platforms.Plain}}
}

// prompt renders a prompt in as many messages as it needs, at least one; the last one has the buttons.
func (a *Asker) prompt(t sessions.Turn, s sessions.ID, markdown string, buttons [][]platforms.Button) []*sessions.OutboxRow {
	chunks := format.Render(a.o.Redact(markdown), a.traits(t.Address).Text)
	if len(chunks) == 0 {
		chunks = []platforms.Text{{}}
	}
	out := make([]*sessions.OutboxRow, len(chunks))
	for i, chunk := range chunks {
		out[i] = &sessions.OutboxRow{Kind: sessions.OutPrompt, Turn: t.ID, Session: s,
			Message: platforms.Outgoing{Address: t.Address, Text: chunk}}
	}
	out[len(out)-1].Message.Buttons = buttons
	return out
}

// WhyKey is the text that says what a kind of danger does.
func WhyKey(kind string) string { return "approval.why." + strings.ReplaceAll(kind, "-", "_") }
