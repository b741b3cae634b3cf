package view

import (
	"time"

	"herald/cron"
)

// State is what a job is doing, for people.
type State string

// The states, those that want somebody first.
const (
	StateBroken    State = "broken"  // it can't be read, and has no runs
	StateBlocked   State = "blocked" // its newest run could not begin
	StateRunning   State = "running"
	StateScheduled State = "scheduled"
	StatePaused    State = "paused"
	StateDone      State = "done" // no slot will come any more
)

// States are all of them, in their order.
var States = [...]State{StateBroken, StateBlocked, StateRunning, StateScheduled, StatePaused, StateDone}

const (
	// Upcoming is how many next runs are shown of a job.
	Upcoming = 3
	// OverdueAfter is how late a slot must be to be called overdue: by then it counts as late even if it runs.
	OverdueAfter = 5 * time.Minute
	// Recently is how far back "recently" goes: what was missed or failed since then is shown first.
	Recently = 24 * time.Hour
	// mostRecent bounds how many runs of that time are counted.
	mostRecent = 10_000
)

// Job is what people see of a job.
type Job struct {
	ID      cron.JobID `json:"id"`
	Name    string     `json:"name"`
	Source  string     `json:"source"` // see sessions.Job
	Managed bool       `json:"managed,omitempty"`
	// Schedule is as its author wrote it; Plan has it for words in a language.
	Schedule string        `json:"schedule"`
	Plan     cron.Schedule `json:"-"`
	Times    int           `json:"times,omitempty"` // after how many runs it is done; 0: never
	Started  int           `json:"started,omitempty"`
	Task     cron.Task     `json:"task"`
	State    State         `json:"state"`
	// Why is the reason of broken, blocked, paused and done.
	Why string `json:"why,omitempty"`
	// Next are the next runs, at most Upcoming. Overdue says that the first of them is past.
	Next    []time.Time `json:"next,omitempty"`
	Overdue bool        `json:"overdue,omitempty"`
	// Last is the newest run that has ended; Running one that goes on.
	Last    *Run `json:"last,omitempty"`
	Running *Run `json:"running,omitempty"`
	// Streak counts the failures in a row; Missed and Failed the slots and runs of that end of the last 24 hours.
	Streak int `json:"streak,omitempty"`
	Missed int `json:"missed,omitempty"`
	Failed int `json:"failed,omitempty"`
	// Undelivered is why the newest output did not arrive somewhere.
	Undelivered string    `json:"undelivered,omitempty"`
	Created     time.Time `json:"created"`
	Updated     time.Time `json:"updated"`

	job cron.Job
}

// Troubled reports whether somebody should look at the job.
func (v Job) Troubled() bool {
	return v.State == StateBroken || v.State == StateBlocked || v.Overdue || v.Streak > 0 || v.Missed > 0 || v.Failed > 0 ||
		v.Undelivered != ""
}
