package turn

import (
	"sync"

	"herald/gateway/turn/ask"
	"herald/sessions"
	"herald/tools"
)

// Runs are the turns that run now, by their ids. They are made before the tools and the Runner: the bus's journal,
// questions and approvals find their turn here. Safe for concurrent use.
type Runs struct {
	mu   sync.Mutex
	byID map[sessions.TurnID]*Run
}

// NewRuns returns an empty set of running turns.
func NewRuns() *Runs { return &Runs{byID: map[sessions.TurnID]*Run{}} }

// Get returns the turn of that id while it runs.
func (rs *Runs) Get(id sessions.TurnID) (*Run, bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	run, ok := rs.byID[id]
	return run, ok
}

// Asking implements ask.Turns.
func (rs *Runs) Asking(id sessions.TurnID) (*ask.Pending, bool) {
	run, ok := rs.Get(id)
	if !ok {
		return nil, false
	}
	return run.asks, true
}

// Origin returns where the session of a running turn comes from.
func (rs *Runs) Origin(id sessions.TurnID) (sessions.Origin, bool) {
	run, ok := rs.Get(id)
	if !ok {
		return sessions.Origin{}, false
	}
	return run.Origin(), true
}

// Active returns how many turns run.
func (rs *Runs) Active() int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return len(rs.byID)
}

func (rs *Runs) add(run *Run) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.byID[run.turn.ID] = run
}

func (rs *Runs) remove(run *Run) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.byID, run.turn.ID)
}

// cancel ends what runs for a reason that the turns know.
func (rs *Runs) cancel(why error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, run := range rs.byID {
		run.cancel(why)
	}
}

// observe gives an event of the bus to the turn that it belongs to.
func (rs *Runs) observe(e tools.Event) {
	if e.Call.Caller.Turn == 0 {
		return
	}
	if run, ok := rs.Get(sessions.TurnID(e.Call.Caller.Turn)); ok {
		run.observe(e)
	}
}
