package router

import (
	"context"
	"errors"
	"slices"

	"herald/gateway/turn"
	"herald/platforms"
	"herald/sessions"
)

// Control is what a command may do to its conversation. It is valid only during the call it was given to,
// in the conversation's actor.
type Control struct{ a *actor }

// Key returns the conversation.
func (c *Control) Key() sessions.Key { return c.a.key }

// Busy reports whether a turn or a task runs.
func (c *Control) Busy() bool { return c.a.busy() }

// Running returns what the turn is doing, ok false when none runs.
func (c *Control) Running() (turn.Snapshot, bool) {
	if c.a.run == nil {
		return turn.Snapshot{}, false
	}
	return c.a.run.Snapshot(), true
}

// Queued returns the messages that wait, in order.
func (c *Control) Queued() []sessions.InboxItem {
	out := make([]sessions.InboxItem, len(c.a.queue))
	for i, e := range c.a.queue {
		out[i] = e.item
	}
	return out
}

// Stopping is the running turn, prepared to be ended in the command's own transaction.
type Stopping struct{ run *turn.Run }

// Stop prepares the end of the running turn: call End inside the command's transaction and Done after
// its commit. Both do nothing when no turn runs.
func (c *Control) Stop() *Stopping { return &Stopping{c.a.run} }

// End ends the turn inside tx and returns rows to queue after the commit, and whether a turn was running.
func (s *Stopping) End(tx sessions.Tx, state sessions.TurnState, reason string) ([]*sessions.OutboxRow, bool, error) {
	if s.run == nil {
		return nil, false, nil
	}
	return s.run.Stop(tx, state, reason)
}

// Failed lets the turn go on, because the transaction of End failed.
func (s *Stopping) Failed(stopped bool) {
	if s.run != nil && stopped {
		s.run.Revive()
	}
}

// Done abandons what still runs of the turn.
func (s *Stopping) Done() {
	if s.run != nil {
		s.run.Abandon()
	}
}

// Free makes the conversation ready for its next turn though the stopped one may still hang: it can't write
// any more. Messages that it had taken and not absorbed stay in the inbox and come back when it ends.
func (c *Control) Free() {
	c.a.run = nil
	c.a.advance()
}

// Waiting returns the waiting messages of people: Queued without news of Herald's own.
func (c *Control) Waiting() []sessions.InboxItem {
	return slices.DeleteFunc(c.Queued(), func(item sessions.InboxItem) bool { return item.Event.Internal != nil })
}

// Clear takes these messages out of the queue; the caller ends their inbox rows.
func (c *Control) Clear(items []sessions.InboxItem) {
	gone := map[sessions.InboxID]bool{}
	for _, item := range items {
		gone[item.ID] = true
		c.a.r.dropped(item, "dropped", "removed by a command")
	}
	c.a.queue = slices.DeleteFunc(c.a.queue, func(e entry) bool { return gone[e.item.ID] })
	c.a.waiting.Store(int64(len(c.a.queue)))
}

// Remove takes the n-th waiting message (from 1) out of the queue.
func (c *Control) Remove(n int) (sessions.InboxItem, bool) {
	if n < 1 || n > len(c.a.queue) {
		return sessions.InboxItem{}, false
	}
	item := c.a.queue[n-1].item
	c.a.r.dropped(item, "dropped", "removed by a command")
	c.a.queue = append(c.a.queue[:n-1:n-1], c.a.queue[n:]...)
	c.a.waiting.Store(int64(len(c.a.queue)))
	return item, true
}

// Move puts the from-th waiting message at place to, both from 1.
func (c *Control) Move(from, to int) bool {
	q := c.a.queue
	if from < 1 || to < 1 || from > len(q) || to > len(q) {
		return false
	}
	e := q[from-1]
	q = append(q[:from-1:from-1], q[from:]...)
	c.a.queue = append(q[:to-1:to-1], append([]entry{e}, q[to-1:]...)...)
	return true
}

// Replace gives the n-th waiting message's place (from 1) to the item with text, as a turn of its own, and returns the
// message that stood there.
func (c *Control) Replace(n int, item sessions.InboxItem, text string) (old sessions.InboxItem, ok bool) {
	if n < 1 || n > len(c.a.queue) {
		return sessions.InboxItem{}, false
	}
	old = c.a.queue[n-1].item
	c.a.queue[n-1] = entry{item: withText(item, text), solo: true}
	return old, true
}

// Submit gives the item to the agent as if its text had been typed: as a turn of its own when solo, else
// like any message. The item keeps its inbox row, so nothing is lost on a crash. It returns false when the queue
// was full: then the person has been told, and the row is done.
func (c *Control) Submit(ctx context.Context, item sessions.InboxItem, text string, solo bool) bool {
	item = withText(item, text)
	if solo {
		return c.a.enqueue(ctx, entry{item: item, solo: true})
	}
	return c.a.message(ctx, item)
}

// Offer hands a note to the running turn in the given mode and returns what became of it; ok is false when it had
// to wait and the queue was full: then the person has been told, and the row is done.
func (c *Control) Offer(ctx context.Context, item sessions.InboxItem, text string, mode turn.Mode) (taken turn.Taken, ok bool) {
	item = withText(item, text)
	taken = turn.NotTaken
	if c.a.run != nil {
		taken = c.a.run.Offer(item, mode)
	}
	return taken, taken != turn.NotTaken || c.a.enqueue(ctx, entry{item: item})
}

// ErrTaskEnded is the cause of a task's context after EndTask.
var ErrTaskEnded = errors.New("ended by a person")

// Task occupies the conversation with slow work that is no turn (a compaction): messages wait until it ends. Its
// context ends with EndTask and when the daemon stops.
func (c *Control) Task(fn func(ctx context.Context)) {
	a := c.a
	ctx, cancel := context.WithCancelCause(a.r.ctx)
	a.task = func() { cancel(ErrTaskEnded) }
	a.r.wg.Add(1)
	go func() {
		defer a.r.wg.Done()
		defer cancel(nil)
		fn(ctx)
		a.r.post(a.key, func(a *actor) {
			a.task = nil
			a.advance()
		})
	}()
}

// EndTask ends the context of the task that occupies the conversation and tells whether there was one. The
// conversation is free when the task has returned.
func (c *Control) EndTask() bool {
	if c.a.task == nil {
		return false
	}
	c.a.task()
	return true
}

// withText makes a message of a command's argument.
func withText(item sessions.InboxItem, text string) sessions.InboxItem {
	m := platforms.Message{Text: text}
	if item.Event.Message != nil {
		m = *item.Event.Message
		m.Text = text
	} else if item.Event.Command != nil {
		m.ID = item.Event.Command.MessageID
	}
	item.Event.Message, item.Event.Command, item.Event.Click = &m, nil, nil
	return item
}
