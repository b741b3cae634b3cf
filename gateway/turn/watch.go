package turn

import (
	"time"

	"herald/locales"
	"herald/sessions"
)

// watchEvery is how often a running turn's signs of life are looked at.
const watchEvery = 15 * time.Second

// watch looks at the turn from time to time while it runs: it warns, says that long work goes on, and ends a turn
// that shows no sign of life.
func (run *Run) watch() {
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.closed {
		return
	}
	run.timer = time.AfterFunc(watchEvery, func() {
		run.look()
		run.watch()
	})
}

// look is one look. It is also called by tests, with a clock of their own.
func (run *Run) look() {
	s := run.r.s
	now := s.Now()
	run.mu.Lock()
	if run.closed {
		run.mu.Unlock()
		return
	}
	say := s.Printer(run.turn.Address)
	idle, since := now.Sub(run.alive), now.Sub(run.turn.Began)
	if run.phase == PhaseAsking {
		idle = 0 // it waits for a person, who may take their time
	}
	var notices []string
	if run.set.IdleLimit > 0 && idle >= run.set.IdleLimit {
		run.mu.Unlock()
		run.cancel(errIdle)
		return
	}
	if run.set.IdleWarning > 0 && idle >= run.set.IdleWarning && !run.warned {
		run.warned = true
		notices = append(notices, "⏳ "+say.T("turn.quiet", locales.Dur("time", idle), locales.Dur("limit", run.set.IdleLimit)))
	}
	waiting := 0
	if run.waiting != nil {
		waiting = run.waiting()
	}
	if run.set.StallNotice > 0 && idle >= run.set.StallNotice && waiting > 0 && !run.stalled {
		run.stalled = true
		notices = append(notices, "⏳ "+say.T("turn.stalled", locales.Dur("time", idle)))
	}
	beat := ""
	if h := run.display.Heartbeat; h > 0 && since >= h && now.Sub(run.beat) >= h && run.phase != PhaseAsking {
		run.beat = now
		beat = working(say, since, run.doing, int(run.used.Calls)+1)
	}
	run.mu.Unlock()
	var rows []*sessions.OutboxRow
	if run.set.HideWarnings {
		notices = nil
	}
	for _, text := range notices {
		rows = append(rows, run.row(sessions.OutNotice, text))
	}
	if len(rows) > 0 {
		err := run.update(sessions.EdgeQueue, func(tx sessions.Tx) error { return tx.PutOutbox(rows...) })
		if err == nil {
			s.Outbox.Take(rows...)
		}
	}
	if beat != "" {
		run.view.Heartbeat(beat)
	}
}
