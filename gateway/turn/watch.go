package turn

import (
	"time"

	"herald/gateway/delivery"
	"herald/platforms/format"
	"herald/sessions"
)

// watchEvery is how often a running turn's signs of life are looked at.
const watchEvery = 15 * time.Second

// watch looks at the turn again and again while it runs: it warns, tells of long work, and ends a turn
// that shows no sign of life (spec 1.9).
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
	at := run.turn.Address
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
		notices = append(notices, s.Texts.SlowWarning(at, idle))
	}
	waiting := 0
	if run.waiting != nil {
		waiting = run.waiting()
	}
	if run.set.StallNotice > 0 && idle >= run.set.StallNotice && waiting > 0 && !run.stalled {
		run.stalled = true
		notices = append(notices, s.Texts.Stalled(at, idle))
	}
	beat := ""
	if h := run.display.Heartbeat; h > 0 && since >= h && now.Sub(run.beat) >= h && run.phase != PhaseAsking {
		run.beat = now
		beat = s.Texts.Working(at, since, run.doing, int(run.used.Calls)+1)
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
		run.heartbeat(beat)
	}
}

// heartbeat shows that long work goes on, in one message that is edited.
func (run *Run) heartbeat(text string) {
	adapter, ok := run.r.s.Adapters.Adapter(run.address().AccountOf())
	if !ok || !adapter.Traits().Edit {
		return
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.closed {
		return
	}
	if run.bubble.live == nil {
		run.bubble.live = run.r.s.Outbox.Live(delivery.LiveOptions{At: run.turn.Address, Turn: run.turn.ID, Session: run.session.ID, Progress: true})
	}
	run.bubble.tail = text
	if len(run.bubble.lines) > 0 {
		run.bubbleShow()
		return
	}
	run.bubble.live.Set(format.Preview(text, adapter.Traits().Text))
}
