package cron

import (
	"encoding/json"
	"time"

	"herald/sessions"
)

// CutOff is why a run failed whose work a restart has ended.
const CutOff = "a restart cut it off"

// EndRun gives a run its end at now, and notes it with its job. ErrConflict when it has one already, ErrNotFound when it
// was removed.
func EndRun(tx sessions.Tx, id sessions.RunID, state sessions.RunState, reason string, result json.RawMessage, now time.Time) error {
	run, err := tx.Run(id)
	if err != nil {
		return err
	}
	if err := tx.EndRun(id, state, reason, result, now); err != nil {
		return err
	}
	return Amend(tx, run.Job, func(job *Job) bool {
		job.LastEnd, job.LastSlot, job.LastReason = state, run.Until, reason
		switch state {
		case sessions.RunRan:
			job.Streak = 0
		case sessions.RunFailed:
			job.Streak++
		}
		if job.Retry != nil && job.Retry.At.IsZero() {
			job.Retry = nil // nothing was planned after it
		}
		job.Updated = now.UTC()
		return true
	})
}

// TryAgain plans a run that did not reach its model once more, before it is ended in the same transaction. ok is false when
// it is not to be: the job is a one-shot, it was tried often enough, its next slot comes first, or a person has run it.
func TryAgain(tx sessions.Tx, run sessions.Run, now time.Time) (at time.Time, ok bool, err error) {
	row, err := tx.Job(run.Job)
	if err != nil {
		return at, false, err
	}
	job, err := FromRow(row)
	if err != nil || run.Kind == sessions.RunManual || job.Plan.Schedule.Kind == Once {
		return at, false, nil
	}
	tries := 0
	if job.Retry != nil {
		tries = job.Retry.Tries
	}
	if at, ok = RetryAt(tries, now.UTC().Truncate(time.Second), job.Next); !ok || job.Next.IsZero() {
		return at, false, nil
	}
	job.Retry = &Retry{At: at, After: job.Next, Tries: tries + 1}
	job.Next, job.Updated = at, now.UTC()
	return at, true, job.put(tx)
}
