package sessions

import (
	"encoding/json"
	"time"
)

// JobID names a scheduled job: 12 lower-case hex digits, unique in the store. NewJobID makes one.
type JobID string

// RunID is the row number of a run; it grows with time.
type RunID int64

// Job is one scheduled job as the store keeps it. What it does (Spec) and what has become of it (Progress) are the
// scheduler's own; the store reads neither.
type Job struct {
	ID   JobID
	Name string // several may have the same
	// Source says who keeps the job: "chat", "cli", or the name of the file that provides it.
	Source   string
	Spec     json.RawMessage
	Progress json.RawMessage
	// Next is the slot that is due next; zero while there is none (paused, ended).
	Next             time.Time
	Created, Updated time.Time
}

// RunState is how far a slot of a job has come.
type RunState string

// The states of a run. The last four are the ends of P9: a slot has exactly one of them.
const (
	RunClaimed RunState = "claimed" // it is somebody's; its work may have begun
	RunRan     RunState = "ran"
	RunFailed  RunState = "failed"
	RunMissed  RunState = "missed"  // nobody was there to run it
	RunSkipped RunState = "skipped" // it was left out on purpose
)

// Ended reports whether the state is an end. The empty state of a run that is not claimed yet is none.
func (s RunState) Ended() bool { return s != RunClaimed && s != "" }

// RunKind is why a slot ran when it did.
type RunKind string

// The kinds of a run.
const (
	RunOnTime  RunKind = "on_time"
	RunLate    RunKind = "late"     // within the grace of its schedule
	RunCatchUp RunKind = "catch_up" // after it, once for all that was missed
	RunManual  RunKind = "manual"   // a person asked for it
	RunRetry   RunKind = "retry"    // after one that could not reach its model
)

// Run is one slot of a job and what came of it; a missed stretch of several slots is one row.
type Run struct {
	ID  RunID
	Job JobID
	// Slot is the instant that was due, unique for the job. Until is the last slot of a missed stretch, equal to Slot
	// elsewhere, and Slots how many there are in it.
	Slot, Until time.Time
	Slots       int
	Kind        RunKind
	State       RunState
	Reason      string          // of an end, in plain words; of a failure the error
	Result      json.RawMessage // the scheduler's own: where the output went
	Began       time.Time
	Ended       time.Time // zero while claimed
}

// RunQuery selects runs, newest first. Zero fields select all.
type RunQuery struct {
	Job   JobID
	State RunState
	// Before leaves out the runs of that id and later ones: what follows an earlier answer.
	Before RunID
	Limit  int // 0: 100
}

// Jobs is the part of a View that reads scheduled jobs.
type Jobs interface {
	// Job returns one job; ErrNotFound. Jobs lists all by creation.
	Job(id JobID) (Job, error)
	Jobs() ([]Job, error)
	// JobsDue returns the jobs whose Next is not after now, the longest due first, at most limit.
	JobsDue(now time.Time, limit int) ([]Job, error)
	// NextJob returns the earliest Next of all jobs; zero when nothing is planned.
	NextJob() (time.Time, error)
	// Run returns one run; ErrNotFound.
	Run(id RunID) (Run, error)
	Runs(q RunQuery) ([]Run, error)
}

// JobsTx is the part of a Tx that changes them.
type JobsTx interface {
	// PutJob adds a job or replaces all of it but Created.
	PutJob(j Job) error
	// DeleteJob removes a job with its runs. One that is not there is no error.
	DeleteJob(id JobID) error
	// ClaimRun makes the slot of a run somebody's: it adds the row and, when the job's Next is that slot, moves it to next
	// (zero: none). claimed is false, and nothing changes, when the slot has a row already or the job is gone.
	ClaimRun(r *Run, next time.Time) (claimed bool, err error)
	// EndRun gives a claimed run its end; ErrConflict when it has one.
	EndRun(id RunID, state RunState, reason string, result json.RawMessage, now time.Time) error
	// SetRunResult replaces the result of a run; ErrNotFound.
	SetRunResult(id RunID, result json.RawMessage) error
	// TrimRuns deletes ended runs of a job but the newest keep of them and returns how many.
	TrimRuns(id JobID, keep int) (int, error)
}
