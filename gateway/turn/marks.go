package turn

import (
	"context"
	"errors"
	"time"

	"herald/platforms"
	"herald/sessions"
)

// The emoji on a message that is answered.
const (
	markSeen   = "👀"
	markDone   = "✅"
	markFailed = "❌"
)

// markWait is how long the mark of a turn's end waits for a retry window to close.
const markWait = 30 * time.Second

// marks shows with emoji on the message of a turn that it was seen and how the turn ended. All of it is best effort:
// it runs beside the turn, one call after the other, and a turn never waits for it nor fails with it.
type marks struct {
	run  *Run
	at   platforms.Address
	id   platforms.MessageID
	seen chan struct{} // closed when the first mark is there, or was given up
}

// mark begins the marks of an event that was let in and speaks to the bot. A turn of the last process has its first
// mark already, or will do without.
func (run *Run) mark(e platforms.Event) {
	id := messageID(e)
	if e.Message == nil || id == "" || !(e.Addressed || e.ChatType == platforms.DM) || !run.r.s.Display(run.turn.Address, run.options).Reactions {
		return
	}
	m := &marks{run: run, at: e.Address, id: id, seen: make(chan struct{})}
	run.marks = m
	if run.resumed {
		close(m.seen)
		return
	}
	run.r.wg.Add(1)
	go func() {
		defer run.r.wg.Done()
		defer close(m.seen)
		m.put(markSeen, 0)
	}()
}

// end puts the mark of a turn's end in place of the first one. A turn that was stopped keeps the first one, and one
// that the next process goes on with gets it there.
func (m *marks) end(state sessions.TurnState) {
	emoji := ""
	switch state {
	case sessions.TurnDone:
		emoji = markDone
	case sessions.TurnFailed, sessions.TurnParked:
		emoji = markFailed
	}
	if m == nil || emoji == "" {
		return
	}
	m.run.r.wg.Add(1)
	go func() {
		defer m.run.r.wg.Done()
		<-m.seen
		m.put(emoji, markWait)
	}()
}

func (m *marks) put(emoji string, wait time.Duration) {
	r := m.run.r
	err := r.s.Outbox.React(r.ctx, m.at, m.id, emoji, wait)
	if err == nil || r.ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return
	}
	r.s.Log.Debug().Int64("turn", int64(m.run.turn.ID)).Err(err).Msg("a reaction could not be put on a message")
}
