package cron

import (
	"encoding/json"
	"fmt"
	"time"

	"herald/sessions"
)

// JobID names a job.
type JobID = sessions.JobID

// Job is a scheduled job: its plan, what it does, and what has become of it so far.
type Job struct {
	ID     JobID
	Name   string
	Source string // see sessions.Job
	Plan   Plan
	Progress
	// Next is the slot that is due next; zero when none is planned.
	Next             time.Time
	Created, Updated time.Time
}

// Plan is what the author of a job says.
type Plan struct {
	Schedule Schedule `json:"schedule"`
	// Times is after how many runs the job is done; 0 is never. A one-shot has 1.
	Times int `json:"times,omitempty"`
	// Paused jobs keep their plan and have no slots. PausedWhy is for people.
	Paused    bool   `json:"paused,omitempty"`
	PausedWhy string `json:"paused_why,omitempty"`
	// Task is what a run does; the scheduler does not read it.
	Task json.RawMessage `json:"task,omitempty"`
	// Given is what the file that provides the job said; nil where none does.
	Given *Given `json:"given,omitempty"`
}

// Progress is what has become of a job.
type Progress struct {
	// Started counts the slots whose work was begun; missed and skipped ones are not among them.
	Started int `json:"started,omitempty"`
	// Done is set when no slot will come any more, with the reason.
	Done string `json:"done,omitempty"`
	// LastEnd, LastSlot and LastReason are those of the newest run that ended; Streak counts failures in a row.
	LastEnd    sessions.RunState `json:"last_end,omitempty"`
	LastSlot   time.Time         `json:"last_slot,omitzero"`
	LastReason string            `json:"last_reason,omitempty"`
	Streak     int               `json:"streak,omitempty"`
	// Retry is set while a run that did not reach its model is tried again.
	Retry *Retry `json:"retry,omitempty"`
	// Alert is the last reason that people were given for why the job can't run; they are not given the same one twice.
	Alert string `json:"alert,omitempty"`
	// Undelivered is what went wrong when the newest output was delivered; empty when all went well.
	Undelivered string `json:"undelivered,omitempty"`
	// Watched is what the job's monitor saw last; it is the monitor's own. Seen is what it saw for the run that goes on: it
	// counts when that has gone well, or a change would be lost with the run that was to tell of it.
	Watched json.RawMessage `json:"watched,omitempty"`
	Seen    json.RawMessage `json:"seen,omitempty"`
	// Broken says why the stored job can't be used; it has no slots until somebody mends it.
	Broken string `json:"broken,omitempty"`
}

// Retry is a further try of a run before the job's next slot.
type Retry struct {
	At    time.Time `json:"at,omitzero"` // the job's Next while it waits; zero while it runs
	After time.Time `json:"after"`       // the slot that comes behind it
	Tries int       `json:"tries"`
}

// retrying reports whether Next is a further try and no slot of the schedule.
func (j *Job) retrying() bool {
	return j.Retry != nil && !j.Retry.At.IsZero() && j.Next.Equal(j.Retry.At)
}

// NewJob returns a job with its first slot, or an error when its plan can't be used.
func NewJob(name, source string, plan Plan, now time.Time, zone *time.Location) (Job, error) {
	j := Job{ID: sessions.NewJobID(), Name: name, Source: source, Plan: plan, Created: now.UTC(), Updated: now.UTC()}
	return j, j.Replan(now, zone)
}

// Replan sets Next from the plan: after a change of it, of the zone, or of what is paused.
func (j *Job) Replan(now time.Time, zone *time.Location) error {
	s, err := j.Plan.Schedule.Restore()
	if err != nil {
		return err
	}
	if j.Plan.Times < 0 {
		return fmt.Errorf("job %q: %d runs are not allowed; give 1 or more, or 0 for no end", j.Name, j.Plan.Times)
	}
	if s.Kind == Once && j.Plan.Times == 0 {
		j.Plan.Times = 1
	}
	j.Plan.Schedule, j.Broken, j.Retry = s, "", nil
	j.Next, j.Done = j.first(now, zone)
	return nil
}

// first returns the slot that comes next, or why no more comes; both are empty for a paused job.
func (j *Job) first(now time.Time, zone *time.Location) (next time.Time, done string) {
	switch s := j.Plan.Schedule; {
	case j.Plan.Times > 0 && j.Started >= j.Plan.Times:
		return time.Time{}, doneTimes
	case j.Plan.Paused:
		return time.Time{}, ""
	case s.Kind == Once && now.Sub(s.At) <= OnceGrace:
		return s.At, ""
	default:
		next, ok := s.Next(now, zone)
		if !ok {
			return time.Time{}, doneOver
		}
		return next, ""
	}
}

// Why a job has no slots any more.
const (
	doneTimes = "it has run as often as it was to"
	doneOver  = "its time has passed"
)

// Row is the job as the store keeps it.
func (j *Job) Row() (sessions.Job, error) {
	spec, err := json.Marshal(j.Plan)
	if err != nil {
		return sessions.Job{}, fmt.Errorf("job %q: %w", j.Name, err)
	}
	progress, err := json.Marshal(j.Progress)
	if err != nil {
		return sessions.Job{}, fmt.Errorf("job %q: %w", j.Name, err)
	}
	return sessions.Job{ID: j.ID, Name: j.Name, Source: j.Source, Spec: spec, Progress: progress, Next: j.Next, Created: j.Created,
		Updated: j.Updated}, nil
}

// put stores the job.
func (j *Job) put(tx sessions.Tx) error {
	row, err := j.Row()
	if err != nil {
		return err
	}
	return tx.PutJob(row)
}

// Amend changes what has become of a stored job, in the caller's transaction; fn reports whether anything did. A job that
// can't be read is left alone: the scheduler puts it aside, with its reason. ErrNotFound when there is none.
func Amend(tx sessions.Tx, id JobID, fn func(j *Job) bool) error {
	row, err := tx.Job(id)
	if err != nil {
		return err
	}
	job, err := FromRow(row)
	if err != nil || !fn(&job) {
		return nil
	}
	return job.put(tx)
}

// FromRow reads a stored job. What of it can be read is in the Job also when there is an error.
func FromRow(r sessions.Job) (Job, error) {
	j := Job{ID: r.ID, Name: r.Name, Source: r.Source, Next: r.Next, Created: r.Created, Updated: r.Updated}
	if err := json.Unmarshal(r.Progress, &j.Progress); err != nil {
		return j, fmt.Errorf("job %s %q: what has become of it can't be read: %w", r.ID, r.Name, err)
	}
	if err := json.Unmarshal(r.Spec, &j.Plan); err != nil {
		return j, fmt.Errorf("job %s %q: its plan can't be read: %w", r.ID, r.Name, err)
	}
	s, err := j.Plan.Schedule.Restore()
	if err != nil {
		return j, fmt.Errorf("job %s %q: %w", r.ID, r.Name, err)
	}
	j.Plan.Schedule = s
	return j, nil
}
