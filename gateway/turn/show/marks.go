package show

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
	s    *Stage
	turn sessions.TurnID
	at   platforms.Address
	id   platforms.MessageID
	seen chan struct{} // closed when the first mark is there, or was given up
}

// Mark begins the marks of an event that was let in and speaks to the bot; id is that of its message. A turn of the
// last process has its first mark already, or will do without.
func (v *View) Mark(e platforms.Event, id platforms.MessageID) {
	if e.Message == nil || id == "" || !(e.Addressed || e.ChatType == platforms.DM) || !v.t.Display.Reactions {
		return
	}
	m := &marks{s: v.s, turn: v.t.ID, at: e.Address, id: id, seen: make(chan struct{})}
	v.marks = m
	if v.t.Resumed {
		close(m.seen)
		return
	}
	v.s.wg.Add(1)
	go func() {
		defer v.s.wg.Done()
		defer close(m.seen)
		m.put(markSeen, 0)
	}()
}

// MarkEnd puts the mark of a turn's end in place of the first one. A turn that was stopped keeps the first one, and one
// that the next process goes on with gets it there.
func (v *View) MarkEnd(state sessions.TurnState) {
	emoji := ""
	switch state {
	case sessions.TurnDone:
		emoji = markDone
	case sessions.TurnFailed, sessions.TurnParked:
		emoji = markFailed
	}
	m := v.marks
	if m == nil || emoji == "" {
		return
	}
	v.s.wg.Add(1)
	go func() {
		defer v.s.wg.Done()
		<-m.seen
		m.put(emoji, markWait)
	}()
}

func (m *marks) put(emoji string, wait time.Duration) {
	err := m.s.o.Outbox.React(m.s.ctx, m.at, m.id, emoji, wait)
	if err == nil || m.s.ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return
	}
	m.s.o.Log.Debug().Int64("turn", int64(m.turn)).Err(err).Msg("a reaction could not be put on a message")
}
