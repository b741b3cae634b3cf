// Package show is what people see of a running turn: the growing answer, tool calls as progress, the typing sign, emoji
// on the message that is answered, and how an answer and its files are presented.
//
// Nothing here is needed to go on with a turn after a crash: what was shown is made again from the transcript. It must
// not know how a turn runs, nor which platform shows it.
package show

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"herald/gateway/delivery"
	"herald/locales"
	"herald/platforms"
	"herald/sessions"
	"herald/tools"
)

// Display is how chatty a chat is.
type Display struct {
	Streaming     bool
	FirstDelay    time.Duration // how long an answer is made before it is shown growing
	EditInterval  time.Duration
	EditThreshold int    // least growth between two edits, in bytes
	Cursor        string // behind a growing text
	Typing        bool
	Reactions     bool   // emoji on the message: seen, done, failed
	Live          string // what the sign of life says: "full", "verb" (no argument), "off"
	LiveText      string // while no tool runs, and with "off"; empty: the platform's own sign
	Progress      string // "off", "new", "all", "verbose", "log"
	Separate      bool   // a bubble for each tool call
	PreviewLength int    // of an argument in a bubble
	Cleanup       bool   // delete bubbles after a successful answer
	Interim       bool   // let the model's words between tool calls be seen
	Heartbeat     time.Duration
	ReplyTo       string // "off", "first", "all"
	Reasoning     bool
	ReasoningForm string // "code" or "blockquote"
	Memory        bool   // say what was remembered
}

// Outbox is what is shown with. delivery.Worker implements it.
type Outbox interface {
	Live(delivery.LiveOptions) *delivery.Live
	// React puts emoji on a message, once and outside of retry windows; it waits for one to end at most so long.
	React(ctx context.Context, at platforms.Address, id platforms.MessageID, emoji string, wait time.Duration) error
	KeepTyping(ctx context.Context, at platforms.Address, doing func() string)
}

// Options is what a Stage works with.
type Options struct {
	Outbox   Outbox
	Adapters delivery.Adapters
	// Printer speaks the language of a chat.
	Printer func(at platforms.Address) *locales.Printer
	// ToolLog gets every finished tool call of a chat whose progress goes to the log; nil: it goes nowhere.
	ToolLog func(s sessions.ID, e tools.Event)
	// Redact removes secrets from text for people.
	Redact func(string) string
	Log    zerolog.Logger
	Now    func() time.Time
}

// Stage shows turns. It is safe for concurrent use.
type Stage struct {
	o    Options
	ctx  context.Context // of calls that run beside a turn
	stop context.CancelFunc
	wg   sync.WaitGroup
}

// NewStage returns a stage; call Stop and Wait in the end.
func NewStage(o Options) *Stage {
	s := &Stage{o: o}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Stop cancels what runs beside turns.
func (s *Stage) Stop() { s.stop() }

// Wait returns when nothing runs beside turns any more. Every turn has ended before.
func (s *Stage) Wait() { s.wg.Wait() }

// Turn says which turn is shown, and how.
type Turn struct {
	ID      sessions.TurnID
	Session sessions.ID
	// At is where the turn answers, ReplyTo the message that it answers; Route changes them.
	At      platforms.Address
	ReplyTo platforms.MessageID
	// Resumed says that an earlier process has begun the turn.
	Resumed bool
	Display Display
}

// View is what people see of one running turn. It is safe for concurrent use.
type View struct {
	s *Stage
	t Turn // At and ReplyTo of it are those of the beginning

	marks *marks // nil: none are put

	mu      sync.Mutex
	at      platforms.Address
	replyTo platforms.MessageID
	closed  bool
	running running // for the sign of life
	typing  func()  // stops the typing sign; nil while there is none
	stream  stream
	bubble  bubble
	rested  []*delivery.Live // bubbles that are complete
	kept    []string         // what the memory tool has kept
}

// View returns the view of a turn that begins.
func (s *Stage) View(t Turn) *View { return &View{s: s, t: t, at: t.At, replyTo: t.ReplyTo} }

// Route makes what comes next appear at a place, as the answer to a message.
func (v *View) Route(at platforms.Address, replyTo platforms.MessageID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.at, v.replyTo = at, replyTo
}

// Close keeps new progress from being shown, until Open.
func (v *View) Close() { v.setClosed(true) }

// Open undoes Close.
func (v *View) Open() { v.setClosed(false) }

func (v *View) setClosed(closed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = closed
}

// ReplyTo says what the n-th message of the answer quotes, from 0; "" nothing.
func (v *View) ReplyTo(n int) platforms.MessageID {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.replyToLocked(n)
}

func (v *View) replyToLocked(n int) platforms.MessageID {
	if v.t.Display.ReplyTo == "all" || v.t.Display.ReplyTo == "first" && n == 0 {
		return v.replyTo
	}
	return ""
}
