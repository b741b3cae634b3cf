package delivery

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"herald/locales"
	"herald/platforms"
	"herald/sessions"
)

// The bounds of delivery.
const (
	// DefaultSendTimeout bounds one call to a platform. A call that is not answered in time is unknown.
	DefaultSendTimeout = 60 * time.Second
	// DefaultMaxAge is how old a message may get while its platform refuses it.
	DefaultMaxAge = 24 * time.Hour
	// backoffFirst and backoffMax bound the wait after a passing failure.
	backoffFirst = time.Second
	backoffMax   = time.Minute
	// noticeAttempts is how often a line of Herald's own may be tried whose outcome stays unknown.
	noticeAttempts = 3
	// floodLimit is how many refusals in a row end the live edits of one message.
	floodLimit = 3
)

// Adapters finds the adapter that serves an account.
type Adapters interface {
	Adapter(platforms.Account) (platforms.Adapter, bool)
}

// Observer is told what happened, for metrics. Any method may be called from any goroutine.
type Observer interface {
	Sent(platform platforms.Name, kind sessions.OutboxKind, outcome string, took time.Duration)
	Gated(platform platforms.Name, wait time.Duration)
	Dropped(platform platforms.Name, what string)
}

// Options configures a Worker.
type Options struct {
	Store    sessions.Store
	Adapters Adapters
	// Printer speaks the language of an address.
	Printer     func(at platforms.Address) *locales.Printer
	Redact      func(string) string // takes secrets out of what is shown; nil: nothing
	Observer    Observer
	Log         zerolog.Logger
	Now         func() time.Time // nil: time.Now
	SendTimeout time.Duration    // 0: DefaultSendTimeout
	MaxAge      time.Duration    // 0: DefaultMaxAge
	// FreshFinal is the age from which a preview is removed and its answer sent as a new message, where the platform can
	// delete; nil or 0: the answer always completes the preview.
	FreshFinal func() time.Duration
	// Settled is called inside the transaction that writes down how a row of kind OutBrief ended: row.State is sent,
	// failed or unknown, and row.Sent the message's id where the platform gave one. thread is the thread that was opened
	// for it (Outgoing.Thread), in which replies to it land; "" for none. What it returns is queued after the commit; it
	// puts these rows itself. Its error undoes what it wrote, is logged, and changes nothing for the row: what
	// follows from a delivery never fails it. nil: nothing follows.
	Settled func(tx sessions.Tx, row sessions.OutboxRow, thread platforms.ThreadID) ([]*sessions.OutboxRow, error)
}

// BriefName is the name of a row's Value in sessions.SpaceBrief.
func BriefName(id sessions.OutboxID) string { return strconv.FormatInt(int64(id), 10) }

// Worker runs the lanes. Make one with New, call Recover once, and hand it rows with Take.
type Worker struct {
	opt  Options
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu       sync.Mutex
	lanes    map[string]*lane
	gates    map[string]time.Time // by address, or by account for account-wide ones
	dead     map[string]string    // chats that refused us for good, with the reason
	previews map[sessions.TurnID]*preview
	receipts map[sessions.OutboxID]struct{} // of rows that were sent, on their way into the store
	moved    chan struct{}                  // closed at the next step of a lane; nil while nobody waits for one
	closed   bool
}

// preview is a visible message that the turn's next final row completes.
type preview struct {
	row     sessions.OutboxID
	message platforms.MessageID
	at      time.Time // when it appeared
}

// New returns a worker that sends nothing yet.
func New(opt Options) *Worker {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Redact == nil {
		opt.Redact = func(s string) string { return s }
	}
	if opt.SendTimeout == 0 {
		opt.SendTimeout = DefaultSendTimeout
	}
	if opt.MaxAge == 0 {
		opt.MaxAge = DefaultMaxAge
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Worker{
		opt: opt, ctx: ctx, stop: stop,
		lanes: map[string]*lane{}, gates: map[string]time.Time{}, dead: map[string]string{},
		previews: map[sessions.TurnID]*preview{}, receipts: map[sessions.OutboxID]struct{}{},
	}
}

// Recover reads what an earlier process left: gates, dead chats, rows that wait, and rows that were being
// sent when it ended, whose outcome is unknown. It returns after everything is queued; call it before the
// adapters run.
func (w *Worker) Recover(ctx context.Context) error {
	var rows []sessions.OutboxRow
	var gates, dead []sessions.Value
	previews := map[sessions.TurnID]*preview{}
	err := w.opt.Store.View(ctx, func(v sessions.View) (err error) {
		if rows, err = v.OutboxOpen(); err != nil {
			return err
		}
		if gates, err = v.Values(sessions.SpaceGate); err != nil {
			return err
		}
		if dead, err = v.Values(sessions.SpaceDead); err != nil {
			return err
		}
		for i := range rows {
			turn := rows[i].Turn
			if turn == 0 || previews[turn] != nil {
				continue
			}
			if previews[turn], err = previewOf(v, turn); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the outbox: %w", err)
	}
	w.loadGates(gates)
	w.loadDead(dead)
	w.mu.Lock()
	for turn, p := range previews {
		if p != nil {
			w.previews[turn] = p
		}
	}
	w.mu.Unlock()
	for i := range rows {
		row := rows[i]
		if row.State == sessions.OutAttempting {
			w.opt.Log.Warn().Int64("outbox", int64(row.ID)).Str("lane", row.Lane).Str("kind", string(row.Kind)).
				Msg("a message was being sent when the last process ended")
		}
		w.enqueue(&row)
	}
	return nil
}

// previewOf finds a turn's visible preview that no final row has completed yet.
func previewOf(v sessions.View, turn sessions.TurnID) (*preview, error) {
	rows, err := v.OutboxOf(turn)
	if err != nil {
		return nil, err
	}
	var found *preview
	for _, row := range rows {
		if row.Kind == sessions.OutPreview && row.State == sessions.OutSent && row.Sent != "" {
			found = &preview{row: row.ID, message: row.Sent, at: row.Created}
		}
	}
	return found, nil
}

// Adopt makes the preview that a crashed process showed for a turn known again, so that the resumed turn
// goes on in the same message.
func (w *Worker) Adopt(ctx context.Context, turn sessions.TurnID) error {
	var p *preview
	err := w.opt.Store.View(ctx, func(v sessions.View) (err error) {
		p, err = previewOf(v, turn)
		return err
	})
	if err != nil || p == nil {
		return err
	}
	w.setPreview(turn, p)
	return nil
}

func (w *Worker) setPreview(turn sessions.TurnID, p *preview) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.previews[turn] = p
}

// Take queues committed rows. It never blocks. The rows are the worker's from then on: the caller reads them no more.
func (w *Worker) Take(rows ...*sessions.OutboxRow) {
	for _, row := range rows {
		w.enqueue(row)
	}
}

// Post commits rows under the edge and queues them: for messages that belong to no other transaction.
func (w *Worker) Post(ctx context.Context, rows ...*sessions.OutboxRow) error {
	err := w.opt.Store.Update(ctx, sessions.EdgeQueue, func(tx sessions.Tx) error { return tx.PutOutbox(rows...) })
	if err != nil {
		return err
	}
	w.Take(rows...)
	return nil
}

func (w *Worker) enqueue(row *sessions.OutboxRow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return // it is committed: the next start finds it
	}
	l := w.laneLocked(row.Lane, row.Message.Address)
	if l.claimed == row {
		l.rows = append([]*sessions.OutboxRow{row}, l.rows...)
	} else {
		l.rows = append(l.rows, row)
	}
	w.kickLocked(l)
}

// Claim marks the first row, which is about to be committed, as being sent, when its lane is free now: then
// one commit does for two. The lane waits until the rows are taken or released.
func (w *Worker) Claim(rows []*sessions.OutboxRow) {
	if len(rows) == 0 {
		return
	}
	row := rows[0]
	if _, ok := w.opt.Adapters.Adapter(row.Message.Address.AccountOf()); !ok || row.Kind != sessions.OutFinal {
		return
	}
	if row.Lane == "" {
		row.Lane = row.Message.Address.String()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.previews[row.Turn] != nil || w.gateLocked(row.Message.Address).After(w.opt.Now()) {
		return
	}
	l := w.laneLocked(row.Lane, row.Message.Address)
	if l.running || len(l.rows) > 0 || len(l.lives) > 0 || l.claimed != nil {
		return
	}
	l.claimed = row
	row.State, row.Attempts = sessions.OutAttempting, 1
}

// Release gives claimed rows back whose commit failed.
func (w *Worker) Release(rows []*sessions.OutboxRow) {
	if len(rows) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.lanes[rows[0].Lane]
	if l == nil || l.claimed != rows[0] {
		return
	}
	l.claimed = nil
	rows[0].State, rows[0].Attempts = sessions.OutPending, 0
	if len(l.rows) == 0 && len(l.lives) == 0 && !l.running {
		delete(w.lanes, l.name)
		return
	}
	w.kickLocked(l)
}

func (w *Worker) laneLocked(name string, at platforms.Address) *lane {
	l := w.lanes[name]
	if l == nil {
		l = &lane{w: w, name: name, at: at, wake: make(chan struct{}, 1)}
		w.lanes[name] = l
	}
	return l
}

func (w *Worker) kickLocked(l *lane) {
	if w.closed {
		return
	}
	if !l.running {
		l.running = true
		w.wg.Add(1)
		go l.run()
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Depth returns how many rows wait in memory.
func (w *Worker) Depth() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, l := range w.lanes {
		n += len(l.rows)
	}
	return n
}

// Idle reports whether no row waits or is being sent, and all receipts are in the store.
func (w *Worker) Idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.lanes {
		if len(l.rows) > 0 || l.busy {
			return false
		}
	}
	return len(w.receipts) == 0
}

// Drain waits until no row waits that could be sent now and all receipts are in the store, or ctx ends. Rows behind a gate or a backoff do
// not count: they are committed and go on after a restart.
func (w *Worker) Drain(ctx context.Context) error {
	return w.await(ctx, func() bool {
		now := w.opt.Now()
		for _, l := range w.lanes {
			if l.busy || (len(l.rows) > 0 && !w.readyAtLocked(l, l.rows[0]).After(now)) {
				return false
			}
		}
		return len(w.receipts) == 0
	})
}

// Await waits until none of the rows is on its way any more, or ctx ends: each has the state in the store in which it
// stays, or in which an ended worker leaves it to the next process. Rows that were never taken count as ended.
func (w *Worker) Await(ctx context.Context, rows ...sessions.OutboxID) error {
	return w.await(ctx, func() bool {
		if w.closed {
			return true
		}
		for _, id := range rows {
			if _, on := w.receipts[id]; on {
				return false
			}
		}
		for _, l := range w.lanes {
			if l.sending != 0 && slices.Contains(rows, l.sending) {
				return false
			}
			for _, row := range l.rows {
				if slices.Contains(rows, row.ID) {
					return false
				}
			}
		}
		return true
	})
}

// await returns when done does, which is asked with w.mu held after each step of a lane, or when ctx ends.
func (w *Worker) await(ctx context.Context, done func() bool) error {
	for {
		w.mu.Lock()
		if done() {
			w.mu.Unlock()
			return nil
		}
		if w.moved == nil {
			w.moved = make(chan struct{})
		}
		moved := w.moved
		w.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// movedLocked wakes those who await something. w.mu is held.
func (w *Worker) movedLocked() {
	if w.moved != nil {
		close(w.moved)
		w.moved = nil
	}
}

// Close stops the lanes and waits for them. A send that is under way is given up as unknown by the next
// process; call Drain first.
func (w *Worker) Close() {
	w.mu.Lock()
	w.closed = true
	w.movedLocked()
	w.mu.Unlock()
	w.stop()
	w.wg.Wait()
}
