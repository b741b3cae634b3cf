package router

import (
	"herald/gateway/turn"
	"herald/sessions"
)

// opening is a message whose conversation is idle: its turn begins in the transaction that accepts it. Until close or
// start the opening holds one of MaxActive turns, and works as the actor's goroutine: what is posted meanwhile waits in the
// mailbox.
type opening struct {
	a     *actor
	turn  *turn.Beginning
	begun bool
}

// open finds the messages whose turns can begin at once: nothing runs or waits in their conversation, no command has to
// answer, and a turn is free. It returns them by their index in items; each is closed or started by the caller. What it
// leaves out goes through its actor.
func (r *Router) open(items []sessions.InboxItem, decided []Decision) map[int]*opening {
	var out map[int]*opening
	for i, item := range items {
		if !r.plain(item) || decided[i].Bot {
			continue
		}
		a := r.seize(item.Key)
		if a == nil {
			continue
		}
		if out == nil {
			out = map[int]*opening{}
		}
		out[i] = &opening{a: a, turn: r.opt.Runner.Prepare(item.Key, []sessions.InboxItem{item}, a.behind)}
	}
	return out
}

// plain tells whether an event goes to the agent as it is; see actor.take.
func (r *Router) plain(item sessions.InboxItem) bool {
	e := item.Event
	if item.State != sessions.InboxNew || e.Click != nil || e.Observed || r.overlong(item) {
		return false
	}
	_, command := r.opt.Commands.Parse(e)
	return !command
}

// seize makes the actor of an idle conversation and takes one of MaxActive turns for it; nil when the conversation is not
// idle or no turn is free.
func (r *Router) seize(key sessions.Key) *actor {
	limit := r.maxActive()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining || r.actors[key] != nil || len(r.stale[key]) > 0 {
		return nil
	}
	if limit > 0 && (r.active >= limit || len(r.starved) > 0) {
		return nil
	}
	r.active++
	a := &actor{r: r, key: key, running: true}
	r.actors[key] = a
	r.wg.Add(1)
	return a
}

// begin begins the turn inside tx. An error of the turn's own is kept for later: the message is accepted all the same, and
// its actor tries again. What it returns is the store's trouble.
func (o *opening) begin(tx sessions.Tx, item sessions.InboxItem) error {
	err := tx.Savepoint(func() error { return o.turn.Begin(tx, []sessions.InboxItem{item}) })
	if sessions.Unwritable(err) {
		return err
	}
	o.begun = err == nil
	return nil
}

// start runs the turn, after the commit.
func (o *opening) start(item sessions.InboxItem) {
	a := o.a
	if !o.begun {
		a.r.freeSlot()
		a.first(func(a *actor) { a.take(item) })
		return
	}
	a.run = o.turn.Start(a.over)
	a.release()
}

// close gives the turn back that does not begin: its message is a duplicate, or the store could not keep it.
func (o *opening) close() {
	o.a.r.freeSlot()
	o.a.release()
}

// first runs fn before what waits in the mailbox of an actor that was seized.
func (a *actor) first(fn func(*actor)) {
	a.r.mu.Lock()
	a.mailbox = append([]func(*actor){fn}, a.mailbox...)
	a.r.mu.Unlock()
	go a.drain()
}

// release lets an actor go that was seized: it works on with its mailbox.
func (a *actor) release() {
	a.r.mu.Lock()
	if a.restLocked() {
		a.r.mu.Unlock()
		a.r.wg.Done()
		return
	}
	a.r.mu.Unlock()
	go a.drain()
}
