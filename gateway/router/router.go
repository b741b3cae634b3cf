package router

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"herald/gateway/turn"
	"herald/locales"
	"herald/platforms"
	"herald/sessions"
)

// The bounds of the router.
const (
	// DefaultQueueMax is how many messages may wait in one conversation.
	DefaultQueueMax = 100
	// ackEvery is the least time between two acks of the same conversation.
	ackEvery = 30 * time.Second
	// retryBegin is how long a message waits when its turn can't begin (the store is in trouble).
	retryBegin = 2 * time.Second
)

// Decision is whether an event may come in.
type Decision struct {
	Allowed bool
	Reason  string // for the row and the log; no content
	// Pair asks for the answer that strangers get in a DM.
	Pair bool
	// Bot asks for Access.Guard before the event is let in.
	Bot bool
}

// Access decides who may talk.
type Access interface {
	Decide(e platforms.Event) Decision
	// Guard tells whether another bot's event is still within bounds; it keeps count inside tx. notice, when not nil,
	// says in the chat that it is not, once.
	Guard(tx sessions.Tx, e platforms.Event) (ok bool, notice *sessions.OutboxRow, err error)
}

// Busy says what a command does while a turn runs.
type Busy int

// The busy policies.
const (
	Dispatch   Busy = iota // runs at once, beside the turn
	Reject                 // refused with a clear line while a turn runs
	Interrupts             // ends the turn, then runs
)

// Command is a parsed command.
type Command struct {
	Name string // canonical
	Args string
	Busy Busy
}

// Commands knows the commands.
type Commands interface {
	// Parse returns the command that an event is; ok is false for everything that goes to the agent.
	Parse(e platforms.Event) (c Command, ok bool)
	// Run does what the command says and commits its answer with its inbox row. It is called from the
	// conversation's actor: it must be quick, and hands slow work to Control.Task.
	Run(ctx context.Context, c Command, item sessions.InboxItem, control *Control)
	// Click handles a button press, likewise.
	Click(ctx context.Context, item sessions.InboxItem, control *Control)
}

// Outbox queues messages of the router's own.
type Outbox interface {
	Take(rows ...*sessions.OutboxRow)
	Revive(tx sessions.Tx, at platforms.Address) error
	// Control makes a row with a short Markdown text that waits for nobody.
	Control(at platforms.Address, text string) *sessions.OutboxRow
}

// Metrics is told what comes in.
type Metrics interface {
	Inbound(platform platforms.Name, kind, outcome string)
}

// Options configures a Router.
type Options struct {
	Store    sessions.Store
	Runner   *turn.Runner
	Access   Access
	Commands Commands
	Outbox   Outbox
	// Printer speaks the language of a chat.
	Printer func(at platforms.Address) *locales.Printer
	Metrics Metrics
	// Key says which conversation an event belongs to.
	Key func(e platforms.Event) sessions.Key
	// Mode returns the busy mode of a chat that has chosen o.
	Mode func(at platforms.Address, o sessions.Options) turn.Mode
	// Acks are the acknowledgements that a chat gets.
	Acks func(at platforms.Address) Acks
	// Freshness is how old a crashed turn of a place may be to go on at once, 0 for any age.
	Freshness func(at platforms.Address) time.Duration
	// MaxActive bounds the turns that run at once, 0 for no bound.
	MaxActive func() int
	// Stranger answers an unknown person's DM (pairing); nil says nothing.
	Stranger func(ctx context.Context, item sessions.InboxItem)
	QueueMax int // 0: DefaultQueueMax
	// MaxText bounds the text of one message in bytes; a longer one is refused with a word. nil: no bound.
	MaxText func() int64
	Log     zerolog.Logger
	Now     func() time.Time
}

// Router is the Sink of all adapters of a profile.
type Router struct {
	opt Options

	mu       sync.Mutex
	actors   map[sessions.Key]*actor
	stale    map[sessions.Key][]sessions.Turn // crashed turns too old to go on by themselves
	starved  []sessions.Key                   // wait for one of MaxActive turns, each once
	active   int
	idle     chan struct{} // closed when the last running turn ends; nil while nobody waits for that
	draining bool
	wg       sync.WaitGroup
	timers   map[*time.Timer]struct{}
	ctx      context.Context // of tasks; ended by Wait
	stop     context.CancelFunc
}

// New returns a router. Call Recover before the first Accept.
func New(opt Options) *Router {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.QueueMax == 0 {
		opt.QueueMax = DefaultQueueMax
	}
	r := &Router{opt: opt, actors: map[sessions.Key]*actor{}, stale: map[sessions.Key][]sessions.Turn{}, timers: map[*time.Timer]struct{}{}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// Accept implements platforms.Sink.
func (r *Router) Accept(ctx context.Context, events ...platforms.Event) error {
	items := make([]sessions.InboxItem, 0, len(events))
	decided := make([]Decision, 0, len(events))
	for _, e := range events {
		err := e.Validate()
		if err == nil && e.Internal != nil {
			err = errors.New("only the core makes internal events")
		}
		if err != nil {
			r.count(e, "invalid")
			r.opt.Log.Error().Str("platform", string(e.Address.Platform)).Err(err).Msg("an event was dropped: the adapter made it wrong")
			continue
		}
		item, d := r.admit(e)
		items, decided = append(items, item), append(decided, d)
	}
	if len(items) == 0 {
		return nil
	}
	fresh := make([]bool, len(items))
	openings, edge := r.open(items, decided), sessions.EdgeAccept
	if len(openings) > 0 {
		edge = sessions.EdgeAcceptBegin
	}
	var notices []*sessions.OutboxRow
	err := r.opt.Store.Update(ctx, edge, func(tx sessions.Tx) error {
		for i := range items {
			id, duplicate, err := tx.PutInbox(items[i])
			if err != nil {
				return err
			}
			items[i].ID, fresh[i] = id, !duplicate
			if fresh[i] && decided[i].Bot && items[i].State == sessions.InboxNew {
				notice, err := r.guard(tx, &items[i])
				if err != nil {
					return err
				}
				if notice != nil {
					notices = append(notices, notice)
				}
			}
			if fresh[i] && items[i].State == sessions.InboxNew {
				if err := r.opt.Outbox.Revive(tx, items[i].Event.Address); err != nil {
					return err
				}
			}
			if o := openings[i]; o != nil && fresh[i] {
				if err := o.begin(tx, items[i]); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		for _, o := range openings {
			o.close()
		}
		for _, item := range items {
			r.count(item.Event, "refused")
		}
		r.opt.Log.Error().Err(err).Int("events", len(items)).Msg("inbound is refused: the store can't keep it; the platform will offer it again")
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", platforms.ErrRefused, err)
	}
	r.opt.Outbox.Take(notices...)
	for i, item := range items {
		switch o := openings[i]; {
		case !fresh[i]:
			r.count(item.Event, "duplicate")
			if o != nil {
				o.close()
			}
		case o != nil:
			r.count(item.Event, "accepted")
			o.start(item)
		case item.State == sessions.InboxDropped:
			outcome := "dropped"
			if item.Reason == botLoop {
				outcome = "bot_loop"
			}
			r.dropped(item, outcome, item.Reason)
			if decided[i].Pair && r.opt.Stranger != nil {
				r.opt.Stranger(ctx, item)
			}
		default:
			r.count(item.Event, "accepted")
			r.dispatch(item)
		}
	}
	return nil
}

// botLoop is why a bot's event starts nothing although bots may talk.
const botLoop = "bots have talked to each other here for too long"

// guard stops a bot that has said too much, in the transaction that keeps its event: a redelivery counts once and a
// restart forgets nothing.
func (r *Router) guard(tx sessions.Tx, item *sessions.InboxItem) (notice *sessions.OutboxRow, err error) {
	ok, notice, err := r.opt.Access.Guard(tx, item.Event)
	if err != nil || ok {
		return nil, err
	}
	item.State, item.Reason = sessions.InboxDropped, botLoop
	if notice != nil {
		if err := tx.PutOutbox(notice); err != nil {
			return nil, err
		}
	}
	return notice, tx.SetInbox(sessions.InboxDropped, 0, botLoop, item.ID)
}

// admit decides access and what becomes of kinds of events that start nothing.
func (r *Router) admit(e platforms.Event) (item sessions.InboxItem, d Decision) {
	item = sessions.InboxItem{Event: e, State: sessions.InboxNew, At: r.opt.Now(), Key: r.opt.Key(e)}
	d = r.opt.Access.Decide(e)
	switch {
	case !d.Allowed:
		item.State, item.Reason = sessions.InboxDropped, "not allowed: "+d.Reason
	case e.Reaction != nil && (!e.Reaction.Trigger || e.Reaction.Removed):
		item.State, item.Reason = sessions.InboxDropped, "reactions start nothing here"
	case e.Edited != nil:
		item.State, item.Reason = sessions.InboxDropped, "the message was taken before it was edited"
	}
	return item, d
}

func (r *Router) count(e platforms.Event, outcome string) {
	if r.opt.Metrics != nil {
		r.opt.Metrics.Inbound(e.Address.Platform, e.Kind(), outcome)
	}
}

// dropped counts and logs an event that starts nothing; its inbox row holds the reason too (P7).
func (r *Router) dropped(item sessions.InboxItem, outcome, reason string) {
	r.count(item.Event, outcome)
	r.opt.Log.Info().Str("platform", string(item.Event.Address.Platform)).Str("kind", item.Event.Kind()).Str("reason", reason).Msg("an event was dropped")
}

// dispatch gives a committed event to its conversation.
func (r *Router) dispatch(item sessions.InboxItem) {
	r.post(item.Key, func(a *actor) { a.take(item) })
}

// post runs fn in the actor of a key, after what was posted before.
func (r *Router) post(key sessions.Key, fn func(*actor)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.actors[key]
	if a == nil {
		a = &actor{r: r, key: key}
		r.actors[key] = a
	}
	a.mailbox = append(a.mailbox, fn)
	if !a.running {
		a.running = true
		r.wg.Add(1)
		go a.drain()
	}
}

// Do runs fn in the actor of a key and waits for it: for commands from the control socket.
func (r *Router) Do(ctx context.Context, key sessions.Key, fn func(*Control)) error {
	done := make(chan struct{})
	r.post(key, func(a *actor) {
		defer close(done)
		fn(&Control{a})
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Recover takes up what an earlier process left: turns that ran go on, messages that waited get their
// turn. It returns when everything is with its actor; call it before the adapters run.
func (r *Router) Recover(ctx context.Context) error {
	var turns []sessions.Turn
	var items []sessions.InboxItem
	err := r.opt.Store.View(ctx, func(v sessions.View) (err error) {
		if turns, err = v.TurnsRunning(); err != nil {
			return err
		}
		items, err = v.InboxOpen()
		return err
	})
	if err != nil {
		return fmt.Errorf("read what the last process left: %w", err)
	}
	claimed := map[sessions.TurnID][]sessions.InboxItem{}
	for _, item := range items {
		if item.State == sessions.InboxClaimed {
			claimed[item.Turn] = append(claimed[item.Turn], item)
		}
	}
	for _, t := range turns {
		if freshness := r.opt.Freshness(t.Address); freshness > 0 && r.opt.Now().Sub(t.Began) > freshness {
			r.mu.Lock()
			r.stale[t.Key] = append(r.stale[t.Key], t)
			r.mu.Unlock()
			r.opt.Log.Warn().Int64("turn", int64(t.ID)).Time("began", t.Began).Msg("an old turn was interrupted; it goes on with the chat's next message")
			continue
		}
		r.post(t.Key, func(a *actor) { a.resume(t, claimed[t.ID]) })
	}
	for _, item := range items {
		if item.State == sessions.InboxNew {
			r.post(item.Key, func(a *actor) {
				a.acked = r.opt.Now() // the last process has said that it waits
				a.take(item)
			})
		}
	}
	if len(turns)+len(items) > 0 {
		r.opt.Log.Info().Int("turns", len(turns)).Int("messages", len(items)).Msg("taking up what the last process left")
	}
	return nil
}

// Stats is the state of the router.
type Stats struct {
	Actors, Running, Queued int
	Draining                bool
}

// Stats returns what runs and waits now.
func (r *Router) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Stats{Actors: len(r.actors), Running: r.active, Draining: r.draining}
	for _, a := range r.actors {
		s.Queued += int(a.waiting.Load())
	}
	return s
}

// Drain starts no more turns and waits until the running ones have ended, or ctx ends. What waits stays in
// the inbox for the next process.
func (r *Router) Drain(ctx context.Context) error {
	r.mu.Lock()
	r.draining = true
	for t := range r.timers {
		t.Stop()
		delete(r.timers, t)
	}
	r.mu.Unlock()
	for {
		r.mu.Lock()
		if r.active == 0 {
			r.mu.Unlock()
			return nil
		}
		if r.idle == nil {
			r.idle = make(chan struct{})
		}
		idle := r.idle
		r.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Wait ends the tasks and returns when no actor works any more. Call it after Drain and after the runner is closed.
func (r *Router) Wait() {
	r.stop()
	r.wg.Wait()
}

// later runs fn in the actor of a key after a while, unless the router drains before.
func (r *Router) later(key sessions.Key, d time.Duration, fn func(*actor)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining {
		return
	}
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		r.mu.Lock()
		_, live := r.timers[t]
		delete(r.timers, t)
		r.mu.Unlock()
		if live {
			r.post(key, fn)
		}
	})
	r.timers[t] = struct{}{}
}

// claimSlot asks for one of MaxActive turns. Without one the actor waits in line and is called with a slot of its
// own when it is its turn; nobody gets one before others that wait in line.
func (r *Router) claimSlot(a *actor) bool {
	limit := r.maxActive()
	r.mu.Lock()
	if r.draining || a.hungry {
		r.mu.Unlock()
		return false
	}
	if limit <= 0 || r.active < limit && len(r.starved) == 0 {
		r.active++
		r.mu.Unlock()
		return true
	}
	a.hungry = true
	r.starved = append(r.starved, a.key)
	next := r.grantsLocked(limit) // the limit may have been raised
	r.mu.Unlock()
	r.grant(next)
	return false
}

func (r *Router) maxActive() int {
	if r.opt.MaxActive == nil {
		return 0
	}
	return r.opt.MaxActive()
}

// freeSlot gives a slot back and hands what is free to those who wait the longest.
func (r *Router) freeSlot() {
	limit := r.maxActive()
	r.mu.Lock()
	r.active--
	if r.active == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
	next := r.grantsLocked(limit)
	r.mu.Unlock()
	r.grant(next)
}

// grantsLocked takes the free slots for those who have waited the longest. r.mu is held.
func (r *Router) grantsLocked(limit int) (next []sessions.Key) {
	for !r.draining && len(r.starved) > 0 && (limit <= 0 || r.active < limit) {
		next = append(next, r.starved[0])
		r.starved = r.starved[1:]
		r.active++
	}
	return next
}

func (r *Router) grant(next []sessions.Key) {
	for _, key := range next {
		r.post(key, (*actor).granted)
	}
}

// takeStale returns the old crashed turns of a key, once.
func (r *Router) takeStale(key sessions.Key) []sessions.Turn {
	r.mu.Lock()
	defer r.mu.Unlock()
	turns := r.stale[key]
	delete(r.stale, key)
	return turns
}
