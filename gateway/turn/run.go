package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"herald/gateway/agent"
	"herald/gateway/model"
	"herald/gateway/turn/ask"
	"herald/gateway/turn/show"
	"herald/platforms"
	"herald/sessions"
	"herald/tools"
)

// Mode is what a message that arrives while a turn runs does to it.
type Mode string

// The modes.
const (
	Interrupt Mode = "interrupt"
	Steer     Mode = "steer"
	Queue     Mode = "queue"
)

// Taken says what became of an offered message.
type Taken string

// What may become of an offered message.
const (
	TakenRedirect Taken = "redirect" // the running answer starts over with it
	TakenAfter    Taken = "after"    // it is taken in when the running tool ends
	TakenSteer    Taken = "steer"    // it becomes a note behind the next tool result
	TakenAnswer   Taken = "answer"   // it answers the question the turn has asked
	NotTaken      Taken = "queue"    // it has to wait for the next turn
)

var (
	errClosing = errors.New("the daemon is stopping")
	errStopped = errors.New("stopped by a person")
	errIdle    = errors.New("no sign of life from the turn")
	// errAbandoned ends every write of a turn that is not running any more.
	errAbandoned = ask.ErrEnded
)

// note is a message that waits to be absorbed by the running turn.
type note struct {
	item sessions.InboxItem
	mode Mode
}

// Phase is what a turn is doing.
type Phase string

// The phases of a turn.
const (
	PhasePreparing  Phase = "preparing"
	PhaseGenerating Phase = "generating"
	PhaseTool       Phase = "tool"
	PhaseAsking     Phase = "asking" // it waits for a person
	PhaseEnding     Phase = "ending"
)

// Run is one running turn.
type Run struct {
	r       *Runner
	turn    sessions.Turn
	session sessions.Session
	options sessions.Options
	model   model.Model
	display show.Display
	view    *show.View // set when the turn starts
	set     Settings
	origin  sessions.Origin
	resumed bool
	calls   []sessions.CallRow

	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{}
	state  sessions.TurnState // of the end; read after done
	rest   []sessions.InboxItem

	asks    *ask.Pending
	history *cached
	claimed []sessions.InboxID // what the turn answers; touched by the run's goroutine only
	// over is true when the turn has ended on disk. It is changed inside transactions, which run one at a
	// time, so that the end of a turn and a stop of it can't both happen.
	over atomic.Bool

	mu         sync.Mutex
	phase      Phase
	doing      string // the tool that runs
	cancelCall context.CancelCauseFunc
	notes      []note
	noticed    chan struct{} // closed while there are notes; nil while nobody has asked
	held       []note        // those of a Stop, in case its transaction fails
	closed     bool          // no more notes are taken
	results    map[string]sessions.Message
	begun      map[string]bool // calls of this process that have begun; true: one that must not run twice
	persons    int             // calls that wait for a person
	channel    Channel
	alive      time.Time // the last sign of life
	warned     bool
	stalled    bool
	waiting    func() int // how many messages wait behind this turn
	timer      *time.Timer
	beat       time.Time
	used       sessions.Usage
}

// Begin claims the items, which are of one key and state new, and runs a turn for them. It returns when
// the claim is committed; done is called once from the run's goroutine when the turn has ended. waiting
// tells how many messages wait behind it. An error means that nothing was claimed.
func (r *Runner) Begin(ctx context.Context, key sessions.Key, items []sessions.InboxItem, waiting func() int, done func(*Run)) (*Run,
	error) {
	b := r.Prepare(key, items, waiting)
	err := r.s.Store.Update(ctx, sessions.EdgeTurnBegin, func(tx sessions.Tx) error { return b.Begin(tx, items) })
	if err != nil {
		b.run.cancel(nil)
		return nil, fmt.Errorf("begin a turn: %w", err)
	}
	return b.Start(done), nil
}

// Beginning is a turn that begins in a transaction of its caller's: call Begin in it and Start after its commit. One that
// does not come to that is simply forgotten.
type Beginning struct {
	run   *Run
	items []sessions.InboxItem
	rows  []*sessions.Message
	ready bool
}

// Prepare makes a turn for items of one key. It writes nothing; the items need no ids yet. waiting is that of Begin.
func (r *Runner) Prepare(key sessions.Key, items []sessions.InboxItem, waiting func() int) *Beginning {
	newest := items[len(items)-1]
	run := r.newRun(newest.Event.Address, waiting)
	run.turn = sessions.Turn{Key: key, State: sessions.TurnRunning, Attempts: 1, Address: newest.Event.Address,
		ReplyTo: messageID(newest.Event), Began: r.s.Now()}
	run.origin = r.s.Origin(newest.Event)
	b := &Beginning{run: run}
	b.rows, b.ready = run.userRows(items)
	return b
}

// Begin claims the items, which are those of Prepare with their ids, and begins the turn inside tx.
func (b *Beginning) Begin(tx sessions.Tx, items []sessions.InboxItem) error {
	run := b.run
	b.items = items
	var err error
	if run.session, err = tx.OpenSession(run.turn.Key, run.origin, run.turn.Began); err != nil {
		return err
	}
	route, err := tx.Route(run.turn.Key)
	if err != nil {
		return err
	}
	run.options = route.Options
	if err := run.fixPrompt(tx); err != nil {
		return err
	}
	run.turn.Session = run.session.ID
	if err := tx.BeginTurn(&run.turn); err != nil {
		return err
	}
	if err := tx.SetInbox(sessions.InboxClaimed, run.turn.ID, "", idsOf(items)...); err != nil {
		return err
	}
	if !b.ready {
		return nil
	}
	return run.appendRows(tx, b.rows)
}

// Start runs the turn after the commit of Begin. done is that of Runner.Begin.
func (b *Beginning) Start(done func(*Run)) *Run {
	b.run.claimed = idsOf(b.items)
	b.run.r.start(b.run, b.items, b.rows, b.ready, done)
	return b.run
}

// fixPrompt builds the session's prompt and tool set at its first turn.
func (run *Run) fixPrompt(tx sessions.Tx) error {
	s := run.r.s
	if s.Channel != nil {
		run.channel = s.Channel(run.turn.Address, run.origin.ParentChat)
	}
	m, err := s.Model(cmp.Or(run.options.Model, run.channel.Model))
	if err != nil {
		m, err = s.Model("")
		if err != nil {
			return err
		}
	}
	run.model = m
	if run.session.SystemPrompt != "" {
		return nil
	}
	run.session.Tools = s.Catalog.Names(run.ctx, run.session.Origin)
	run.session.SystemPrompt = s.Prompt(run.ctx, run.session, run.session.Tools, m.Info())
	return tx.SetPrompt(run.session.ID, run.session.SystemPrompt, run.session.Tools)
}

func (run *Run) appendRows(tx sessions.Tx, rows []*sessions.Message) error {
	for _, row := range rows {
		row.Session, row.Turn = run.session.ID, run.turn.ID
	}
	if err := tx.Append(rows...); err != nil {
		return err
	}
	run.session.Messages += len(rows)
	return nil
}

// Resume goes on with a turn that a crashed process left running. It adds one attempt; when that is more
// than Settings.MaxAttempts the turn is parked with a notice and Resume returns a nil Run.
func (r *Runner) Resume(ctx context.Context, t sessions.Turn, items []sessions.InboxItem, waiting func() int, done func(*Run)) (*Run,
	error) {
	run := r.newRun(t.Address, waiting)
	run.turn, run.resumed = t, true
	if len(items) > 0 {
		run.origin = r.s.Origin(items[len(items)-1].Event)
	}
	limit := max(1, run.set.MaxAttempts)
	parked := false
	var notices, edits []*sessions.OutboxRow
	var over func(tx sessions.Tx) ([]*sessions.OutboxRow, error)
	if t.Attempts >= limit {
		over = run.handOver(End{State: sessions.TurnParked, Reason: crashedTooOften})
	}
	prepared := false
	err := r.s.Store.Update(ctx, sessions.EdgeTurnResume, func(tx sessions.Tx) error {
		n, err := tx.RetryTurn(t.ID)
		if err != nil {
			return err
		}
		run.turn.Attempts = n
		if run.session, err = tx.Session(t.Session); err != nil {
			return err
		}
		if run.origin.Address.IsZero() {
			run.origin = run.session.Origin
		}
		if n > limit {
			parked = true
			notices, edits, err = run.park(tx, n, items, over)
			return err
		}
		route, err := tx.Route(t.Key)
		if err != nil {
			return err
		}
		run.options = route.Options
		if err := run.fixPrompt(tx); err != nil {
			return err
		}
		if run.calls, err = tx.Calls(t.ID); err != nil {
			return err
		}
		if run.calls == nil {
			run.calls = []sessions.CallRow{}
		}
		rows, err := tx.Transcript(run.session.ID, false, 0, 0)
		if err != nil {
			return err
		}
		for _, row := range rows {
			prepared = prepared || row.Turn == t.ID
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("resume turn %d: %w", t.ID, err)
	}
	if parked {
		r.s.Outbox.Take(append(edits, notices...)...)
		r.s.Log.Error().Int64("turn", int64(t.ID)).Int("attempts", run.turn.Attempts-1).Msg("a turn crashed too often and was parked")
		r.ended(run, sessions.TurnParked)
		return nil, nil
	}
	r.s.Log.Info().Int64("turn", int64(t.ID)).Int("attempt", run.turn.Attempts).Msg("going on with a turn of the last process")
	if err := r.s.Outbox.Adopt(ctx, t.ID); err != nil {
		return nil, err
	}
	run.claimed = idsOf(items)
	var rows []*sessions.Message
	ready := true
	if !prepared && len(items) > 0 {
		rows, _ = run.userRows(items)
		ready = false // they are appended by the run's goroutine, after their files are there
	}
	r.start(run, items, rows, ready, done)
	return run, nil
}

// crashedTooOften is why a turn is parked.
const crashedTooOften = "crashed too often"

// park ends a turn that no process got through, in the transaction of its resumption.
func (run *Run) park(tx sessions.Tx, attempts int, items []sessions.InboxItem,
	over func(tx sessions.Tx) ([]*sessions.OutboxRow, error)) (notices, edits []*sessions.OutboxRow, err error) {
	s, t := run.r.s, run.turn
	if over != nil {
		notices, err = over(tx)
	} else {
		notices = []*sessions.OutboxRow{run.row(sessions.OutFinal, "⚠️ "+s.Printer(t.Address).N("restart.parked", attempts-1))}
		err = tx.PutOutbox(notices...)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := tx.SetInbox(sessions.InboxDone, t.ID, "parked", idsOf(items)...); err != nil {
		return nil, nil, err
	}
	if edits, err = run.asks.VoidApprovals(tx); err != nil {
		return nil, nil, err
	}
	return notices, edits, tx.SetTurn(t.ID, sessions.TurnParked, crashedTooOften, s.Now())
}

func (r *Runner) newRun(at platforms.Address, waiting func() int) *Run {
	run := &Run{r: r, done: make(chan struct{}), results: map[string]sessions.Message{}, begun: map[string]bool{},
		waiting: waiting, phase: PhasePreparing, alive: r.s.Now(), set: r.s.Settings(at)}
	run.ctx, run.cancel = context.WithCancelCause(context.Background())
	run.asks = r.s.Asker.Begin(asking{run})
	return run
}

func (r *Runner) start(run *Run, items []sessions.InboxItem, rows []*sessions.Message, ready bool, done func(*Run)) {
	run.display = r.s.Display(run.turn.Address, run.options)
	run.view = r.stage.View(show.Turn{ID: run.turn.ID, Session: run.session.ID, At: run.turn.Address, ReplyTo: run.turn.ReplyTo,
		Resumed: run.resumed, Display: run.display})
	if len(items) > 0 {
		newest := items[len(items)-1].Event
		run.view.Mark(newest, messageID(newest))
	}
	r.s.Runs.add(run)
	run.watch()
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		defer run.cancel(nil)
		run.proceed(items, rows, ready)
		run.mu.Lock()
		run.closed = true
		for _, n := range run.notes {
			run.rest = append(run.rest, n.item)
		}
		run.notes = nil
		if run.timer != nil {
			run.timer.Stop()
		}
		run.mu.Unlock()
		run.view.Close()
		r.s.Runs.remove(run)
		run.view.MarkEnd(run.state)
		close(run.done)
		if done != nil {
			done(run)
		}
	}()
}

// proceed is the turn, step by step.
func (run *Run) proceed(items []sessions.InboxItem, rows []*sessions.Message, ready bool) {
	s := run.r.s
	run.view.StartTyping(run.ctx)
	defer run.view.StopTyping()
	if !ready {
		if err := run.prepare(items, rows); err != nil {
			run.fail(err)
			return
		}
	}
	if err := run.load(rows, ready && !run.resumed); err != nil {
		run.fail(err)
		return
	}
	cooldown := run.cooldown()
	loop := agent.Loop{Model: run.model, Bus: s.Bus, Limits: run.set.Limits}
	in := agent.Input{
		Turn: run.turn.ID, System: cmp.Or(run.channel.System, run.session.SystemPrompt),
		Ephemeral: show.Paragraphs(run.channel.Prompt, run.nudge(run.history.rows)), History: run.history.rows,
		Tools: s.Catalog.Definitions(run.ctx, run.session.Tools), Caller: run.caller(), CacheKey: string(run.session.ID),
		Reasoning: run.set.Reasoning, LastPrompt: run.history.lastPrompt, LastRows: run.history.lastRows,
		RunAgain: run.mayRunAgain, ReadOnly: run.readOnly, Timestamps: run.set.Timestamps, Cooldown: cooldown, Now: s.Now,
	}
	if run.resumed {
		in.Calls = run.calls
	}
	outcome, err := loop.Run(tools.WithAttention(run.ctx, run.attention), run, in)
	run.keepCooldown(cooldown)
	if err != nil {
		run.fail(err)
		return
	}
	run.setPhase(PhaseEnding, "")
	run.finish(outcome)
}

// load gets the conversation: from the cache, else from the store.
func (run *Run) load(fresh []*sessions.Message, useCache bool) error {
	if useCache {
		if entry, ok := run.r.cache.take(run.session.ID, run.session.Messages-len(fresh)); ok {
			for _, row := range fresh {
				entry.rows = append(entry.rows, *row)
			}
			run.history = entry
			return nil
		}
	}
	run.r.cache.drop(run.session.ID)
	var rows []sessions.Message
	err := run.r.s.Store.View(run.ctx, func(v sessions.View) (err error) {
		rows, err = v.Transcript(run.session.ID, false, 0, 0)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the transcript: %w", err)
	}
	run.history = &cached{id: run.session.ID, rows: newest(rows, run.set.MaxRows)}
	return nil
}

func (run *Run) mayRunAgain(name string) bool {
	spec, ok := run.r.s.Catalog.Spec(name)
	return ok && (spec.ReadOnly || spec.Resumable)
}

func (run *Run) readOnly(name string) bool {
	spec, ok := run.r.s.Catalog.Spec(name)
	return ok && spec.ReadOnly
}

func (run *Run) caller() tools.Caller {
	o := run.origin
	user := o.User
	if o.UserAlt != "" {
		user = o.UserAlt
	}
	source := "model"
	if run.background() {
		source = string(run.turn.Address.Platform)
	}
	return tools.Caller{
		Profile: run.r.s.Profile, Session: string(run.session.ID), Key: string(run.turn.Key), Turn: int64(run.turn.ID),
		Platform: string(run.turn.Address.Platform), Account: string(run.turn.Address.Account), Chat: string(run.turn.Address.Chat),
		Thread: string(run.turn.Address.Thread), User: string(user), Source: source, Tools: run.session.Tools,
		Dir: run.r.s.Dir(run.session),
	}
}

// update runs a transaction that only a running turn may make.
func (run *Run) update(edge sessions.Edge, fn func(sessions.Tx) error) error {
	return run.r.s.Store.Update(context.WithoutCancel(run.ctx), edge, func(tx sessions.Tx) error {
		if run.over.Load() {
			return errAbandoned
		}
		return fn(tx)
	})
}

// Offer gives the running turn a message that has just been committed. What is not taken waits for the
// next turn; what is taken and can't be absorbed any more comes back in Rest.
func (run *Run) Offer(item sessions.InboxItem, mode Mode) Taken {
	m := item.Event.Message
	run.mu.Lock()
	if run.closed || m == nil {
		run.mu.Unlock()
		return NotTaken
	}
	if take, asked := run.asks.Listens(); asked && m.Text != "" {
		run.mu.Unlock()
		if take(item) {
			return TakenAnswer
		}
		return NotTaken
	}
	defer run.mu.Unlock()
	switch {
	case mode == Queue, len(m.Attachments) > 0, run.phase == PhaseEnding:
		return NotTaken
	case mode == Steer && (run.phase == PhasePreparing || m.Text == ""):
		return NotTaken
	case mode == Steer:
		run.notes = append(run.notes, note{item, Steer})
		run.callAttention()
		return TakenSteer
	}
	run.notes = append(run.notes, note{item, Interrupt})
	run.callAttention()
	if run.cancelCall != nil {
		run.cancelCall(agent.ErrRedirected)
		return TakenRedirect
	}
	if run.phase == PhaseTool || run.phase == PhaseAsking {
		return TakenAfter
	}
	return TakenRedirect
}

// attention returns a channel that is closed when a note waits to be absorbed.
func (run *Run) attention() <-chan struct{} {
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.noticed == nil {
		run.noticed = make(chan struct{})
		if len(run.notes) > 0 {
			close(run.noticed)
		}
	}
	return run.noticed
}

// callAttention closes what attention has returned. run.mu is held.
func (run *Run) callAttention() {
	if run.noticed == nil {
		return
	}
	select {
	case <-run.noticed: // closed already
	default:
		close(run.noticed)
	}
}

// Done is closed when the turn has ended. Rest, read after it, is what was offered and not absorbed.
func (run *Run) Done() <-chan struct{}      { return run.done }
func (run *Run) Rest() []sessions.InboxItem { return run.rest }
func (run *Run) Turn() sessions.Turn        { return run.turn }
func (run *Run) Session() sessions.ID       { return run.session.ID }
func (run *Run) Address() platforms.Address { return run.turn.Address }

// Origin returns where the turn's session comes from.
func (run *Run) Origin() sessions.Origin { return run.origin }

// End returns the state in which the turn has ended; read it after Done.
func (run *Run) End() sessions.TurnState { return run.state }

// Snapshot says what the turn is doing.
type Snapshot struct {
	Turn    sessions.TurnID
	Session sessions.ID
	Phase   Phase
	Doing   string
	Began   time.Time
	Alive   time.Time
	Used    sessions.Usage
	Model   model.Info
}

// Snapshot returns what the turn is doing now. It never waits for a model or a tool.
func (run *Run) Snapshot() Snapshot {
	run.mu.Lock()
	defer run.mu.Unlock()
	return Snapshot{Turn: run.turn.ID, Session: run.session.ID, Phase: run.phase, Doing: run.doing, Began: run.turn.Began,
		Alive: run.alive, Used: run.used, Model: run.model.Info()}
}

func (run *Run) setPhase(p Phase, doing string) {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.phase, run.doing, run.alive = p, doing, run.r.s.Now()
}

func (r *Runner) ended(run *Run, state sessions.TurnState) {
	if r.s.Metrics != nil {
		r.s.Metrics.TurnEnded(run.address().Platform, state, r.s.Now().Sub(run.turn.Began))
	}
}

func idsOf(items []sessions.InboxItem) []sessions.InboxID {
	ids := make([]sessions.InboxID, len(items))
	for i, item := range items {
		ids[i] = item.ID
	}
	return ids
}

func messageID(e platforms.Event) platforms.MessageID {
	switch {
	case e.Message != nil:
		return e.Message.ID
	case e.Command != nil:
		return e.Command.MessageID
	case e.Reaction != nil:
		return e.Reaction.MessageID
	}
	return ""
}
