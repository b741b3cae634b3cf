package tools

import "time"

// Phase says at which point of a call an event was made.
type Phase string

// The phases of a call.
const (
	PhaseStarted  Phase = "started"
	PhaseProgress Phase = "progress" // a line of output while it runs
	PhaseFinished Phase = "finished"
)

// Event tells subscribers about a call: progress bubbles, the dashboard, the ledger, metrics.
type Event struct {
	Phase  Phase
	Call   Call
	Spec   Spec
	Text   string  // PhaseProgress: what to show
	Result *Result // PhaseFinished
	At     time.Time
}
