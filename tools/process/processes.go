package process

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"herald/tools"
	"herald/tools/sandbox"
)

// The bounds of the processes of a profile.
const (
	// MaxTracked is how many are known at once; the oldest that have ended make room.
	MaxTracked = 64
	// KeepEnded is how long one that has ended can be asked for.
	KeepEnded = 30 * time.Minute
)

const (
	// killWait bounds one kill; retryEvery is how often what could not be done is tried again.
	killWait   = 15 * time.Second
	retryEvery = 30 * time.Second
)

// ErrFull is wrapped by Start when MaxTracked processes run.
var ErrFull = fmt.Errorf("%d background processes run already", MaxTracked)

// Options is what Processes work with.
type Options struct {
	// Environment returns where a caller's commands run.
	Environment func(caller tools.Caller) (sandbox.Environment, error)
	Store       Store
	// Redact takes secrets out of what is told and kept.
	Redact func(string) string
	// Survive reports whether processes of an environment go on when the daemon stops in order. The others are ended.
	// nil: none does.
	Survive func(backend string) bool
	// Surface tells the sessions of subagents' parents about the subagents' processes
	// (delegation.surface_child_process_notifications). nil is false.
	Surface func() bool
	// Finished is called for each process that ended; nil means that nobody is.
	Finished func(State)
	Log      zerolog.Logger
	// Now is the clock; nil takes time.Now.
	Now func() time.Time
}

// Processes are the background processes of a profile. They are safe for concurrent use.
type Processes struct {
	o       Options
	breaker breaker

	ctx  context.Context // of what follows processes; Close ends it
	stop context.CancelFunc

	work     sync.Mutex // guards idle and the start of goroutines; nothing else is locked while it is held
	idle     bool       // Close waits, or has waited: no more goroutines
	routines sync.WaitGroup

	// mu is locked before an entry's mutex, never while that is held.
	mu      sync.Mutex
	closing bool
	all     map[string]*entry
}

// New returns processes without any. Recover takes up those of the last daemon.
func New(o Options) *Processes {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	p := &Processes{o: o, all: map[string]*entry{}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// Request is a command to run in the background.
type Request struct {
	// Command is what sandbox.Environment.Start takes; ID, Output and Input are set here.
	Command sandbox.Command
	// Dir is the directory where it will run, for people.
	Dir    string
	Notify bool
	// Watch is what to watch for; with Notify nothing is.
	Watch []string
}

// View is a process as others see it.
type View struct {
	ID, Command, Dir string
	PID              int
	State            State
	Exit             *int // nil while it runs, and when nobody saw it
	Age              time.Duration
}

// Start runs a command for the caller and follows it. ctx bounds the start alone.
func (p *Processes) Start(ctx context.Context, caller tools.Caller, env sandbox.Environment, r Request) (View, error) {
	e := &entry{p: p, ended: make(chan struct{}), news: make(chan struct{}, 1), env: env}
	e.rec = Record{ID: newID(), Owner: OwnerOf(caller), Command: p.o.Redact(r.Command.Line), Dir: r.Dir, TTY: r.Command.TTY != nil,
		State: Starting, Began: p.o.Now(), Notify: r.Notify}
	e.rec.Ref.ID = e.rec.ID
	if len(r.Watch) > 0 && !r.Notify {
		e.rec.Watch = &Watch{Patterns: r.Watch}
		e.match = newMatcher(r.Watch)
	}
	if err := p.admit(e); err != nil {
		return View{}, err
	}
	c := r.Command
	c.ID, c.Output, c.Input = e.rec.ID, e, true
	if err := p.o.Store.Save(ctx, e.rec); err != nil { // before it runs: it is found again whatever happens
		p.forget(e)
		return View{}, fmt.Errorf("keep a background process: %w", err)
	}
	proc, err := env.Start(ctx, c)
	if err != nil {
		p.forget(e)
		p.delete(e.rec.ID)
		return View{}, err
	}
	e.mu.Lock()
	e.proc, e.rec.State, e.rec.Ref = proc, Running, proc.Ref()
	rec := e.rec
	e.mu.Unlock()
	if err := p.o.Store.Save(context.WithoutCancel(ctx), rec); err != nil {
		// It runs and its ID is known: a restart finds it by that.
		p.o.Log.Warn().Err(err).Str("process", rec.ID).Msg("that a background process runs could not be written down")
	}
	p.spawn(e.follow)
	return e.view(), nil
}

// spawn runs fn in a goroutine that Close waits for, unless Close waits already.
func (p *Processes) spawn(fn func()) {
	p.work.Lock()
	defer p.work.Unlock()
	if !p.idle {
		p.routines.Go(fn)
	}
}

func newID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return "proc_" + hex.EncodeToString(b[:])
}

// admit makes room for a process and takes it in.
func (p *Processes) admit(e *entry) error {
	p.prune()
	p.mu.Lock()
	if p.closing {
		p.mu.Unlock()
		return errors.New("the daemon is stopping")
	}
	var oldest *entry
	if len(p.all) >= MaxTracked {
		for _, other := range p.all {
			if at, ok := other.endedAt(); ok && (oldest == nil || at.Before(oldest.rec.Ended)) {
				oldest = other
			}
		}
		if oldest == nil {
			p.mu.Unlock()
			return fmt.Errorf("%w; kill one first", ErrFull)
		}
		delete(p.all, oldest.rec.ID)
	}
	p.all[e.rec.ID] = e
	p.mu.Unlock()
	if oldest != nil {
		p.delete(oldest.rec.ID)
	}
	return nil
}

// prune forgets what ended long ago. It waits for no store: commands that answer at once come by here.
func (p *Processes) prune() {
	now := p.o.Now()
	var old []string
	p.mu.Lock()
	for id, e := range p.all {
		if at, ok := e.endedAt(); ok && now.Sub(at) > KeepEnded {
			old = append(old, id)
			delete(p.all, id)
		}
	}
	p.mu.Unlock()
	if len(old) == 0 {
		return
	}
	p.spawn(func() {
		for _, id := range old {
			p.delete(id)
		}
	})
}

func (p *Processes) forget(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, e.rec.ID)
}

func (p *Processes) delete(id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), killWait)
	defer cancel()
	if err := p.o.Store.Delete(ctx, id); err != nil {
		p.o.Log.Warn().Err(err).Str("process", id).Msg("the record of a background process can't be removed")
	}
}

// find returns the caller's process with that id, or with the only id that begins so: at least 4 hex digits. Another
// session's process is not found.
func (p *Processes) find(caller tools.Caller, id string) (*entry, error) {
	want := strings.ToLower(strings.TrimPrefix(strings.TrimSpace(id), "proc_"))
	var found *entry
	for _, e := range p.of(func(o Owner) bool { return o.Session == caller.Session }) {
		if len(want) >= 4 && strings.HasPrefix(strings.TrimPrefix(e.rec.ID, "proc_"), want) {
			if found != nil {
				found = nil
				break
			}
			found = e
		}
	}
	if found == nil {
		return nil, fmt.Errorf("there is no background process %q in this session; action list shows those that there are", id)
	}
	return found, nil
}

// of returns the processes of some owners, the oldest first.
func (p *Processes) of(owned func(Owner) bool) []*entry {
	p.prune()
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*entry
	for _, e := range p.all {
		if owned(e.rec.Owner) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *entry) int {
		return cmp.Or(a.rec.Began.Compare(b.rec.Began), strings.Compare(a.rec.ID, b.rec.ID))
	})
	return out
}

// Of returns the running processes of a conversation, all its sessions, the oldest first: for people.
func (p *Processes) Of(key string) []View {
	var out []View
	for _, e := range p.of(func(o Owner) bool { return o.Key == key }) {
		if v := e.view(); !v.State.Ended() {
			out = append(out, v)
		}
	}
	return out
}

// Running is how many processes run.
func (p *Processes) Running() int {
	n := 0
	for _, e := range p.of(func(Owner) bool { return true }) {
		if !e.view().State.Ended() {
			n++
		}
	}
	return n
}

// End ends the running processes of a conversation without telling its agent, and returns how many. It does not wait
// for them.
func (p *Processes) End(key string) int {
	n := 0
	for _, e := range p.of(func(o Owner) bool { return o.Key == key }) {
		if e.markKilled("") {
			n++
			p.spawn(func() {
				ctx, cancel := context.WithTimeout(context.Background(), killWait)
				defer cancel()
				if err := e.kill(ctx); err != nil {
					p.o.Log.Warn().Err(err).Str("process", e.rec.ID).Msg("a background process does not end")
				}
			})
		}
	}
	return n
}

// Recover takes up the processes of the last daemon. It returns at once; each is found in its own time.
func (p *Processes) Recover(ctx context.Context) error {
	records, err := p.o.Store.Load(ctx)
	if err != nil {
		return fmt.Errorf("background processes of the last daemon: %w", err)
	}
	for _, rec := range records {
		e := &entry{p: p, rec: rec, ended: make(chan struct{}), news: make(chan struct{}, 1)}
		if w := rec.Watch; w != nil && !w.Off {
			e.match = newMatcher(w.Patterns)
		}
		p.mu.Lock()
		p.all[rec.ID] = e
		p.mu.Unlock()
		if rec.State.Ended() {
			close(e.ended)
			continue
		}
		p.spawn(e.resume)
	}
	p.prune()
	return nil
}

// Close ends the processes that do not survive the daemon, tells of them, and stops following the others. Call it
// before the environments are closed.
func (p *Processes) Close(ctx context.Context) {
	p.mu.Lock()
	p.closing = true
	var end []*entry
	for _, e := range p.all {
		if e.env != nil && (p.o.Survive == nil || !p.o.Survive(e.env.Backend())) {
			end = append(end, e)
		}
	}
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, e := range end {
		if !e.markKilled("Herald was stopped and ended it") {
			continue
		}
		wg.Go(func() {
			if err := e.kill(ctx); err != nil {
				p.o.Log.Warn().Err(err).Str("process", e.rec.ID).Msg("a background process does not end")
			}
		})
	}
	wg.Wait()
	p.end()
}

// end stops following processes.
func (p *Processes) end() {
	p.stop()
	p.work.Lock()
	p.idle = true
	p.work.Unlock()
	p.routines.Wait()
}

// trip tells that news of matches are held back, and later what was.
func (p *Processes) trip(o Owner, now time.Time) {
	tellHeld := func(o Owner, what, text string) {
		err := p.tell(News{ID: fmt.Sprintf("breaker/%s/%s/%d", what, o.Session, now.UnixNano()), Owner: o, Text: text})
		if err != nil {
			p.o.Log.Error().Err(err).Msg("a session could not be told of news that were held back")
		}
	}
	p.o.Log.Warn().Int("events", BreakerEvents).Dur("pause", BreakerPause).Msg("background processes have too many matches to tell; they are held back for a while")
	p.spawn(func() {
		tellHeld(o, "tripped", fmt.Sprintf("[Background processes printed more than %d watched lines in %s. Such news are held back for %s.]", BreakerEvents, BreakerWindow, BreakerPause))
		t := time.NewTimer(BreakerPause)
		defer t.Stop()
		select {
		case <-t.C:
		case <-p.ctx.Done():
			return
		}
		for _, h := range p.breaker.release() {
			tellHeld(h.owner, "released", fmt.Sprintf("[News of watched lines are given again. %d were held back; process poll and log show what was printed.]", h.count))
		}
	})
}

// tell gives news that belong to no single process.
func (p *Processes) tell(n News) error {
	if p.suppressed(n.Owner) {
		return nil
	}
	return p.o.Store.Tell(context.WithoutCancel(p.ctx), n)
}

// suppressed reports whether an owner's processes are not reported to anyone: a subagent's are the subagent's business.
func (p *Processes) suppressed(o Owner) bool {
	if !o.child() || p.o.Surface != nil && p.o.Surface() {
		return false
	}
	p.o.Log.Debug().Str("session_id", o.Session).Str("task_id", o.Task).Msg("news of a subagent's process are dropped")
	return true
}
