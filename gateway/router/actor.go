package router

import (
	"context"
	"sync/atomic"
	"time"

	"herald/gateway/turn"
	"herald/locales"
	"herald/sessions"
)

// entry is a message that waits for its turn. A solo one gets a turn of its own (/queue). News of Herald's own wait
// with messages, and share turns among themselves.
type entry struct {
	item sessions.InboxItem
	solo bool
}

func (e entry) internal() bool { return e.item.Event.Internal != nil }

// actor owns the state of one conversation. Everything reaches it as a function in its mailbox, run one at a
// time; none of them waits for a model, a tool or a network. It is a goroutine only while the mailbox
// holds something, and is forgotten when nothing runs or waits.
type actor struct {
	r   *Router
	key sessions.Key

	// guarded by r.mu
	mailbox []func(*actor)
	running bool

	// touched only by functions from the mailbox
	run     *turn.Run
	task    func() // ends what else occupies the conversation; nil: nothing does
	queue   []entry
	acked   time.Time
	hungry  bool // in Router.starved, or granted a slot that it has not seen yet
	retries bool // a timer will call advance
	waiting atomic.Int64
}

// drain runs the mailbox until it is empty.
func (a *actor) drain() {
	r := a.r
	defer r.wg.Done()
	for {
		r.mu.Lock()
		if a.restLocked() {
			r.mu.Unlock()
			return
		}
		fn := a.mailbox[0]
		a.mailbox = a.mailbox[1:]
		r.mu.Unlock()
		fn(a)
	}
}

// restLocked ends the work of an actor whose mailbox is empty, and tells whether it is. r.mu is held.
func (a *actor) restLocked() bool {
	if len(a.mailbox) > 0 {
		return false
	}
	a.running = false
	if !a.busy() && !a.hungry && len(a.queue) == 0 {
		delete(a.r.actors, a.key)
	}
	return true
}

// behind returns how many messages wait behind the running turn.
func (a *actor) behind() int { return int(a.waiting.Load()) }

// take handles one committed event.
func (a *actor) take(item sessions.InboxItem) {
	r := a.r
	ctx := context.Background()
	for _, t := range r.takeStale(a.key) {
		a.resumeStale(ctx, t)
	}
	if item.Event.Internal != nil {
		a.queue = append(a.queue, entry{item: item})
		a.waiting.Store(int64(len(a.queue)))
		a.advance()
		return
	}
	if item.Event.Click != nil {
		r.opt.Commands.Click(ctx, item, &Control{a})
		return
	}
	if item.Event.Observed {
		a.observe(ctx, item)
		return
	}
	if r.overlong(item) {
		r.dropped(item, "too_long", "the text is too long")
		a.drop(ctx, item, "the text is too long", tooLong(r.opt.Printer(item.Event.Address), int64(len(item.Event.Message.Text)), r.opt.MaxText()))
		return
	}
	if c, ok := r.opt.Commands.Parse(item.Event); ok {
		if c.Busy == Reject && a.busy() {
			a.answer(ctx, item, "refused while a turn runs", r.opt.Printer(item.Event.Address).T("command.refused_busy", locales.Str("name", c.Name)))
			return
		}
		r.opt.Commands.Run(ctx, c, item, &Control{a})
		return
	}
	a.message(ctx, item)
}

// overlong tells whether a message has more text than is taken.
func (r *Router) overlong(item sessions.InboxItem) bool {
	if r.opt.MaxText == nil || item.Event.Message == nil {
		return false
	}
	most := r.opt.MaxText()
	return most > 0 && int64(len(item.Event.Message.Text)) > most
}

func (a *actor) busy() bool { return a.run != nil || a.task != nil }

// message gives plain text to the running turn or puts it behind it; false when the queue was full.
func (a *actor) message(ctx context.Context, item sessions.InboxItem) bool {
	if a.run == nil {
		return a.enqueue(ctx, entry{item: item})
	}
	taken := a.run.Offer(item, a.r.opt.Mode(item.Event.Address, a.options(ctx)))
	if taken == turn.NotTaken && !a.enqueue(ctx, entry{item: item}) {
		return false
	}
	if a.run != nil && taken != turn.TakenAnswer {
		a.ack(ctx, item, taken)
	}
	return true
}

func (a *actor) ack(ctx context.Context, item sessions.InboxItem, taken turn.Taken) {
	r := a.r
	now := r.opt.Now()
	if now.Sub(a.acked) < ackEvery {
		return
	}
	text := r.ackText(item.Event.Address, taken, a.run.Snapshot())
	if text == "" {
		return
	}
	a.acked = now
	row := r.opt.Outbox.Control(item.Event.Address, text)
	err := r.opt.Store.Update(ctx, sessions.EdgeQueue, func(tx sessions.Tx) error { return tx.PutOutbox(row) })
	if err != nil {
		r.opt.Log.Warn().Err(err).Msg("an ack could not be queued")
		return
	}
	r.opt.Outbox.Take(row)
}

// enqueue puts a message behind what waits and starts a turn when none runs. It returns false when the
// queue was full and the message was refused with a word.
func (a *actor) enqueue(ctx context.Context, e entry) bool {
	if len(a.queue) >= a.r.opt.QueueMax {
		a.r.dropped(e.item, "queue_full", "the queue is full")
		a.drop(ctx, e.item, "the queue is full", "⚠️ "+a.r.opt.Printer(e.item.Event.Address).N("inbound.queue_full", a.r.opt.QueueMax))
		return false
	}
	a.queue = append(a.queue, e)
	a.waiting.Store(int64(len(a.queue)))
	a.advance()
	return true
}

// advance starts the next turn when the conversation is free.
func (a *actor) advance() {
	if !a.busy() {
		a.dropLate()
	}
	if !a.busy() && len(a.queue) > 0 && a.r.claimSlot(a) {
		a.begin()
	}
}

// granted starts the next turn with a slot that the conversation has waited for, and passes it on when there is
// nothing to do any more.
func (a *actor) granted() {
	a.hungry = false
	if !a.busy() {
		a.dropLate()
	}
	if a.busy() || len(a.queue) == 0 {
		a.r.freeSlot()
		return
	}
	a.begin()
}

// begin starts a turn with the slot that the actor holds.
func (a *actor) begin() {
	n := 1
	for !a.queue[0].solo && n < len(a.queue) && !a.queue[n].solo && a.queue[n].internal() == a.queue[0].internal() {
		n++
	}
	items := make([]sessions.InboxItem, n)
	for i, e := range a.queue[:n] {
		items[i] = e.item
	}
	run, err := a.r.opt.Runner.Begin(context.Background(), a.key, items, a.behind, a.over)
	if err != nil {
		a.r.freeSlot()
		a.r.opt.Log.Error().Err(err).Str("key", string(a.key)).Msg("a turn can't begin; its messages wait in the inbox")
		if !a.retries {
			a.retries = true
			a.r.later(a.key, retryBegin, func(a *actor) {
				a.retries = false
				a.advance()
			})
		}
		return
	}
	a.run = run
	a.queue = append([]entry(nil), a.queue[n:]...)
	a.waiting.Store(int64(len(a.queue)))
}

// over is called from the run's goroutine when its turn has ended.
func (a *actor) over(run *turn.Run) {
	a.r.freeSlot()
	a.r.post(a.key, func(a *actor) {
		if a.run == run {
			a.run = nil
		}
		rest := run.Rest()
		back := make([]entry, 0, len(rest)+len(a.queue))
		for _, item := range rest {
			back = append(back, entry{item: item})
		}
		a.queue = append(back, a.queue...)
		a.waiting.Store(int64(len(a.queue)))
		a.advance()
	})
}

// resume goes on with a turn of the last process.
func (a *actor) resume(t sessions.Turn, items []sessions.InboxItem) {
	if a.run != nil {
		// Two running turns of one conversation can't be; if they are, the second waits its turn.
		first := a.run
		go func() {
			<-first.Done()
			a.r.post(a.key, func(a *actor) { a.resume(t, items) })
		}()
		return
	}
	a.r.mu.Lock()
	if a.r.draining {
		a.r.mu.Unlock()
		return
	}
	a.r.active++
	a.r.mu.Unlock()
	run, err := a.r.opt.Runner.Resume(context.Background(), t, items, a.behind, a.over)
	if err != nil || run == nil {
		a.r.freeSlot()
	}
	if err != nil {
		a.r.opt.Log.Error().Err(err).Int64("turn", int64(t.ID)).Msg("a turn of the last process can't go on yet")
		a.r.later(a.key, retryBegin, func(a *actor) { a.resume(t, items) })
		return
	}
	a.run = run
}

// resumeStale goes on with an old turn because its chat has written again.
func (a *actor) resumeStale(ctx context.Context, t sessions.Turn) {
	var items []sessions.InboxItem
	err := a.r.opt.Store.View(ctx, func(v sessions.View) (err error) {
		items, err = v.InboxOf(t.ID)
		return err
	})
	if err != nil {
		a.r.opt.Log.Error().Err(err).Int64("turn", int64(t.ID)).Msg("an old turn can't be read")
	}
	a.resume(t, items)
}

// observe keeps a message as context without a turn.
func (a *actor) observe(ctx context.Context, item sessions.InboxItem) {
	r := a.r
	err := r.opt.Store.Update(ctx, sessions.EdgeDrop, func(tx sessions.Tx) error {
		if err := tx.SetInbox(sessions.InboxDone, 0, "observed", item.ID); err != nil {
			return err
		}
		route, err := tx.Route(a.key)
		if err != nil || route.Session == "" {
			return nil // nobody has talked to the bot here yet: there is no session to keep context for
		}
		text := ""
		if item.Event.Message != nil {
			text = item.Event.Message.Text
		}
		return tx.Append(&sessions.Message{Session: route.Session, Role: sessions.User, Kind: sessions.KindObserved, Content: text,
			Sender: item.Event.Sender.Name, At: item.At, Active: true})
	})
	if err != nil {
		r.opt.Log.Error().Err(err).Msg("an observed message can't be kept")
	}
}

// answer ends an inbox row with a line for the person, together.
func (a *actor) answer(ctx context.Context, item sessions.InboxItem, reason, text string) {
	a.end(ctx, item, sessions.InboxDone, reason, text)
}

func (a *actor) drop(ctx context.Context, item sessions.InboxItem, reason, text string) {
	a.end(ctx, item, sessions.InboxDropped, reason, text)
}

func (a *actor) end(ctx context.Context, item sessions.InboxItem, state sessions.InboxState, reason, text string) {
	r := a.r
	row := r.opt.Outbox.Control(item.Event.Address, text)
	err := r.opt.Store.Update(ctx, sessions.EdgeDrop, func(tx sessions.Tx) error {
		if err := tx.SetInbox(state, 0, reason, item.ID); err != nil {
			return err
		}
		return tx.PutOutbox(row)
	})
	if err != nil {
		r.opt.Log.Error().Err(err).Str("reason", reason).Msg("the end of an event can't be written down; it is taken up again at the next start")
		return
	}
	r.opt.Outbox.Take(row)
}

// options reads what the chat chose; the zero value when that fails or there is none.
func (a *actor) options(ctx context.Context) sessions.Options {
	var o sessions.Options
	_ = a.r.opt.Store.View(ctx, func(v sessions.View) error {
		route, err := v.Route(a.key)
		o = route.Options
		return err
	})
	return o
}
