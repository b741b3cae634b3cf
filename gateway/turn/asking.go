package turn

import (
	"context"
	"time"

	"herald/sessions"
)

// asking is a run as package ask sees it.
type asking struct{ run *Run }

func (a asking) Row() sessions.Turn {
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	return a.run.turn
}

func (a asking) Session() sessions.ID    { return a.run.session.ID }
func (a asking) Origin() sessions.Origin { return a.run.origin }
func (a asking) Resumed() bool           { return a.run.resumed }
func (a asking) Closing() bool           { return a.run.r.closed.Load() }

func (a asking) Update(edge sessions.Edge, fn func(sessions.Tx) error) error {
	return a.run.update(edge, fn)
}

// WaitForPerson implements ask.Turn. Several calls may wait at the same time.
func (a asking) WaitForPerson(ctx context.Context, doing string) (end func()) {
	run := a.run
	run.mu.Lock()
	run.persons++
	run.phase, run.doing = PhaseAsking, doing
	run.mu.Unlock()
	run.view.StopTyping()
	return func() {
		run.mu.Lock()
		run.persons--
		last := run.persons == 0
		if last {
			run.phase = PhaseTool
		}
		run.alive = run.r.s.Now()
		run.mu.Unlock()
		if last && ctx.Err() == nil {
			run.view.StartTyping(run.ctx)
		}
	}
}

// Early implements ask.Turn: of the notes, which wait to be absorbed.
func (a asking) Early(after time.Time, take func(sessions.InboxItem) bool) {
	run := a.run
	run.mu.Lock()
	var early note
	found := false
	for i, n := range run.notes {
		if n.item.Event.Message.Text != "" && n.item.At.After(after) {
			run.notes = append(run.notes[:i:i], run.notes[i+1:]...)
			early, found = n, true
			break
		}
	}
	run.mu.Unlock()
	if found && !take(early.item) {
		run.mu.Lock()
		run.notes = append([]note{early}, run.notes...)
		run.mu.Unlock()
	}
}
