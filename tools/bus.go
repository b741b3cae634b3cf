package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// The defaults of a Bus.
const (
	// DefaultTimeout bounds a call whose tool sets no limit.
	DefaultTimeout = 5 * time.Minute
	// DefaultGrace is how long a handler may go on after its time is up or its caller has gone, before it is
	// abandoned.
	DefaultGrace = 5 * time.Second
	// DefaultWidth is how many calls of a batch run at once.
	DefaultWidth = 8
)

// The ways in which a call ends (Result.Exit).
const (
	ExitOK        = "ok"
	ExitError     = "error"     // the tool failed
	ExitInvalid   = "invalid"   // no such tool here, or arguments that don't fit: not run
	ExitDenied    = "denied"    // not approved: not run
	ExitTimeout   = "timeout"   // its time was up; it may have had an effect
	ExitCancelled = "cancelled" // the caller stopped it
	ExitUnknown   = "unknown"   // it may have run; nobody can tell
)

// Journal keeps calls durably. Both methods are called from many goroutines.
type Journal interface {
	// Started commits that the call is about to run. It is called after the call was found valid and was
	// approved. On an error the call is not run.
	Started(ctx context.Context, call Call, spec Spec) error
	// Finished commits what the model will see of the call, once for each Dispatch, also for calls that were
	// never started; spec has only a name when there is no such tool. ctx outlives the context of the call.
	// An error is logged; a journal that can't go on without it ends the turn itself.
	Finished(ctx context.Context, call Call, result Result) error
}

// Decision is an Approver's answer.
type Decision struct {
	Allowed bool
	// Reason tells the model why not.
	Reason string
}

// Approver decides whether a valid call may run. It may wait for a person until ctx ends. An error counts
// as a refusal.
type Approver interface {
	Approve(ctx context.Context, call Call, spec Spec) (Decision, error)
}

// Checkpointer takes a picture of the caller's files before a call that may change them, and may compare
// when it has ended. Begin is not called for read-only tools. Its error is logged and does not stop the
// call. end may be nil; it runs after the handler, however that ended.
type Checkpointer interface {
	Begin(ctx context.Context, call Call, spec Spec) (end func(ctx context.Context, result Result), err error)
}

// Redactor takes secrets out of text; *redact.Redactor is one.
type Redactor interface {
	String(s string) string
}

// Invocation is one call on its way through the bus.
type Invocation struct {
	Call Call
	// Spec is the tool's declaration; before the lookup it has only a name.
	Spec Spec

	entry   *entry
	started time.Time
}

// Next runs the rest of the chain.
type Next func(ctx context.Context, inv *Invocation) Result

// Middleware is one step of the chain: it may answer itself, change the call before next, or the result
// after it.
type Middleware func(ctx context.Context, inv *Invocation, next Next) Result

// Options configure a Bus. Only Registry is needed.
type Options struct {
	Registry *Registry
	// Middlewares run between validation and approval, the first one outermost: hooks. What they make of
	// a result is still redacted and bounded; arguments that they change are not validated again.
	Middlewares  []Middleware
	Journal      Journal      // nil: calls are not kept
	Approver     Approver     // nil: all are allowed
	Checkpointer Checkpointer // nil: none
	Redactor     Redactor     // nil: results stay as they are
	Results      *ResultStore // nil: long results are cut
	// Clock is used for the times of events and for durations; nil takes time.Now.
	Clock func() time.Time
	Log   zerolog.Logger
	// DefaultTimeout, Grace and Width: 0 takes the constant of that name.
	DefaultTimeout time.Duration
	Grace          time.Duration
	Width          int
	// BatchTimeout bounds each group of calls that run side by side; 0: only their own limits apply.
	BatchTimeout time.Duration
	// MaxResult is how many characters of a result go to the model when its tool sets no limit; 0 takes
	// DefaultMaxResult. BatchMax is how many the results of one Batch may have together: results
	// beyond it are stored. 0: any number. Tools that bound themselves (MaxResult -1) are never stored.
	MaxResult int
	BatchMax  int
}

// Bus runs tools. Safe for concurrent use.
type Bus struct {
	o           Options
	chain       Next
	mu          sync.Mutex // guards changes of subscribers, and closed with running
	subscribers atomic.Pointer[[]*subscriber]
	closed      bool
	running     int // handlers, abandoned ones included
	idle        chan struct{}
	abandoned   atomic.Int64
}

type subscriber struct{ fn func(Event) }

// NewBus returns a bus. Registry must not be nil.
func NewBus(o Options) *Bus {
	if o.Registry == nil {
		panic("tools: NewBus needs a registry")
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.DefaultTimeout == 0 {
		o.DefaultTimeout = DefaultTimeout
	}
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	if o.Width <= 0 {
		o.Width = DefaultWidth
	}
	if o.MaxResult <= 0 {
		o.MaxResult = DefaultMaxResult
	}
	b := &Bus{o: o}
	b.subscribers.Store(&[]*subscriber{})
	b.chain = b.link()
	return b
}

// link builds the chain: calls pass it from the top to the bottom, results from the bottom to the top.
func (b *Bus) link() Next {
	steps := []Middleware{
		b.keep,     // journal the result
		b.announce, // tell subscribers
		b.bound,    // size limit and spill
		b.redact,   // take secrets out
		b.guard,    // a panic below becomes a result
		b.find,     // lookup and scope
		b.check,    // coercion and validation
	}
	steps = append(steps, b.o.Middlewares...)
	steps = append(steps,
		b.approve,
		b.checkpoint,
		b.begin, // journal the start, tell subscribers
		b.limit, // time limit
	)
	next := b.run
	for _, step := range slices.Backward(steps) {
		inner := next
		next = func(ctx context.Context, inv *Invocation) Result { return step(ctx, inv, inner) }
	}
	return next
}

// Registry returns the bus's registry.
func (b *Bus) Registry() *Registry { return b.o.Registry }

// Dispatch runs one call and returns what the model is to see. It never panics; Content is never empty and
// Exit is always set. A cancelled ctx gives Exit "cancelled", at the latest when the grace is over.
func (b *Bus) Dispatch(ctx context.Context, call Call) Result {
	inv := &Invocation{Call: call, Spec: Spec{Name: call.Name}, started: b.o.Clock()}
	return b.chain(ctx, inv)
}

// Subscribe calls fn with the events of all calls, from the goroutine of the call: started, progress and
// finished of one call in that order, different calls at the same time. A call that never ran has only a
// finished event. fn must return quickly, since the call waits for it: hand work over to a goroutine of
// your own. A panic in it is caught. cancel ends the subscription; an event that is being delivered may still arrive.
func (b *Bus) Subscribe(fn func(Event)) (cancel func()) {
	s := &subscriber{fn: fn}
	b.mu.Lock()
	defer b.mu.Unlock()
	list := append(slices.Clone(*b.subscribers.Load()), s)
	b.subscribers.Store(&list)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		list := slices.DeleteFunc(slices.Clone(*b.subscribers.Load()), func(o *subscriber) bool { return o == s })
		b.subscribers.Store(&list)
	}
}

func (b *Bus) publish(e Event) {
	e.At = b.o.Clock()
	for _, s := range *b.subscribers.Load() {
		if err := safely(func() error { s.fn(e); return nil }); err != nil {
			b.o.Log.Error().Err(err).Str("tool", e.Call.Name).Str("phase", string(e.Phase)).Msg("subscriber of tool events failed")
		}
	}
}

// Abandoned returns how many handlers still run although their call has ended, because they ignore their context.
func (b *Bus) Abandoned() int { return int(b.abandoned.Load()) }

// Close refuses new calls and waits for the handlers that run, abandoned ones included. Its error says how
// many were left when ctx ended.
func (b *Bus) Close(ctx context.Context) error {
	b.mu.Lock()
	b.closed = true
	if b.running == 0 {
		b.mu.Unlock()
		return nil
	}
	if b.idle == nil {
		b.idle = make(chan struct{})
	}
	idle := b.idle
	b.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		b.mu.Lock()
		defer b.mu.Unlock()
		return fmt.Errorf("close the tool bus: %d tools still run: %w", b.running, context.Cause(ctx))
	}
}

// enter counts a handler; false after Close.
func (b *Bus) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.running++
	return true
}

func (b *Bus) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	if b.running == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
}

// progressKey carries the sink of a running call.
type progressKey struct{}

// sink publishes progress until its call has ended.
type sink struct {
	mu     sync.Mutex
	closed bool
	send   func(text string)
}

func (s *sink) emit(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.send(text)
	}
}

func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// Progress tells subscribers what a running call is doing, such as a line of its output. ctx is the one that
// the handler was given; with another one, and after the call has ended, nothing happens.
func Progress(ctx context.Context, text string) {
	if s, ok := ctx.Value(progressKey{}).(*sink); ok && text != "" {
		s.emit(text)
	}
}

// failure is the JSON that tells a model about a call that did not do what it asked for.
type failure struct {
	Error      string          `json:"error"`
	Path       string          `json:"path,omitempty"`
	Constraint string          `json:"constraint,omitempty"`
	Value      string          `json:"value,omitempty"`
	Allowed    string          `json:"allowed,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Hint       string          `json:"hint,omitempty"`
}

func (f failure) result(exit string) Result {
	text, err := encode(f)
	if err != nil { // Parameters that are not JSON
		f.Parameters = nil
		text, _ = encode(f)
	}
	return Result{Content: string(text), IsError: true, Exit: exit}
}

// Failure is an error result with the text as {"error": text}.
func Failure(format string, args ...any) Result {
	return failure{Error: fmt.Sprintf(format, args...)}.result(ExitError)
}

// JSON is a result with v as JSON. A value that can't be encoded gives an error result.
func JSON(v any) Result {
	text, err := encode(v)
	if err != nil {
		return Failure("the result can't be written as JSON: %v", err)
	}
	return Result{Content: string(text)}
}

// safely turns a panic into an error.
func safely(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{value: p, stack: stack()}
		}
	}()
	return fn()
}

// panicError is a caught panic.
type panicError struct {
	value any
	stack string
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// stackOf returns where a caught panic came from, empty for other errors.
func stackOf(err error) string {
	var p *panicError
	if errors.As(err, &p) {
		return p.stack
	}
	return ""
}
