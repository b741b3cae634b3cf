package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"herald/sessions"
)

const sqlJob = "SELECT id, name, source, spec, progress, next, created, updated FROM jobs "

func (v *view) jobs(where string, args ...driver.Value) (list []sessions.Job, err error) {
	err = v.c.query(v.ctx, sqlJob+where, func(r row) error {
		list = append(list, sessions.Job{ID: sessions.JobID(r.text(0)), Name: r.text(1), Source: r.text(2), Spec: json.RawMessage(r.text(3)),
			Progress: json.RawMessage(r.text(4)), Next: r.time(5), Created: r.time(6), Updated: r.time(7)})
		return nil
	}, args...)
	return list, err
}

// Job returns one job.
func (v *view) Job(id sessions.JobID) (sessions.Job, error) {
	list, err := v.jobs("WHERE id = ?", string(id))
	if err == nil && len(list) == 0 {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return sessions.Job{}, fmt.Errorf("job %s: %w", id, err)
	}
	return list[0], nil
}

// Jobs lists all by creation.
func (v *view) Jobs() ([]sessions.Job, error) {
	list, err := v.jobs("ORDER BY created, id")
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	return list, nil
}

// JobsDue returns due jobs, the longest due first.
func (v *view) JobsDue(now time.Time, limit int) ([]sessions.Job, error) {
	list, err := v.jobs("WHERE next <> 0 AND next <= ? ORDER BY next LIMIT ?", stamp(now), int64(limit))
	if err != nil {
		return nil, fmt.Errorf("due jobs: %w", err)
	}
	return list, nil
}

// NextJob returns the earliest slot of all jobs.
func (v *view) NextJob() (next time.Time, err error) {
	err = v.c.query(v.ctx, "SELECT next FROM jobs WHERE next <> 0 ORDER BY next LIMIT 1", func(r row) error {
		next = r.time(0)
		return nil
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("next job: %w", err)
	}
	return next, nil
}

const sqlRun = "SELECT id, job, slot, until, slots, kind, state, reason, result, began, ended FROM runs "

func (v *view) runs(where string, args ...driver.Value) (list []sessions.Run, err error) {
	err = v.c.query(v.ctx, sqlRun+where, func(r row) error {
		list = append(list, sessions.Run{ID: sessions.RunID(r.int(0)), Job: sessions.JobID(r.text(1)), Slot: r.time(2), Until: r.time(3),
			Slots: int(r.int(4)),
			Kind:  sessions.RunKind(r.text(5)), State: sessions.RunState(r.text(6)), Reason: r.text(7), Result: json.RawMessage(r.text(8)),
			Began: r.time(9), Ended: r.time(10)})
		return nil
	}, args...)
	return list, err
}

// Run returns one run.
func (v *view) Run(id sessions.RunID) (sessions.Run, error) {
	list, err := v.runs("WHERE id = ?", int64(id))
	if err == nil && len(list) == 0 {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return sessions.Run{}, fmt.Errorf("run %d: %w", id, err)
	}
	return list[0], nil
}

// Runs lists runs, newest first.
func (v *view) Runs(q sessions.RunQuery) ([]sessions.Run, error) {
	if q.Limit <= 0 {
		q.Limit = 100
	}
	where, args := "WHERE 1", []driver.Value{} // no condition that is not asked for: each would keep an index from being used
	if q.Job != "" {
		where, args = where+" AND job = ?", append(args, string(q.Job))
	}
	switch q.State {
	case "":
	case sessions.RunClaimed:
		where += " AND state = 'claimed'" // written out, for the index of those
	default:
		where, args = where+" AND state = ?", append(args, string(q.State))
	}
	if q.Before > 0 {
		where, args = where+" AND id < ?", append(args, int64(q.Before))
	}
	list, err := v.runs(where+" ORDER BY id DESC LIMIT ?", append(args, int64(q.Limit))...)
	if err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	return list, nil
}

// PutJob adds a job or replaces all of it but Created.
func (t *tx) PutJob(j sessions.Job) error {
	for name, data := range map[string]json.RawMessage{"spec": j.Spec, "progress": j.Progress} {
		if !json.Valid(data) {
			return fmt.Errorf("job %s: its %s is no JSON: %.60q", j.ID, name, data)
		}
	}
	_, _, err := t.c.exec(`INSERT INTO jobs (id, name, source, spec, progress, next, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, source = excluded.source, spec = excluded.spec, progress = excluded.progress,
		next = excluded.next, updated = excluded.updated`,
		string(j.ID), j.Name, j.Source, string(j.Spec), string(j.Progress), stamp(j.Next), stamp(j.Created), stamp(j.Updated))
	if err != nil {
		return fmt.Errorf("keep job %s: %w", j.ID, err)
	}
	return nil
}

// DeleteJob removes a job with its runs.
func (t *tx) DeleteJob(id sessions.JobID) error {
	if _, _, err := t.c.exec("DELETE FROM jobs WHERE id = ?", string(id)); err != nil {
		return fmt.Errorf("remove job %s: %w", id, err)
	}
	return nil
}

// ClaimRun adds the row of a slot once, and moves the job on.
func (t *tx) ClaimRun(r *sessions.Run, next time.Time) (bool, error) {
	fail := func(err error) (bool, error) { return false, fmt.Errorf("claim a slot of job %s: %w", r.Job, err) }
	if r.Until.IsZero() {
		r.Until, r.Slots = r.Slot, 1
	}
	if r.State == "" {
		r.State = sessions.RunClaimed
	}
	if r.Began.IsZero() {
		r.Began = t.store.opts.Clock().UTC()
	}
	if r.State.Ended() && r.Ended.IsZero() {
		r.Ended = r.Began
	}
	id, added, err := t.c.exec(`INSERT INTO runs (job, slot, until, slots, kind, state, reason, began, ended)
		SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM jobs WHERE id = ?) ON CONFLICT (job, slot) DO NOTHING`,
		string(r.Job), stamp(r.Slot), stamp(r.Until), int64(r.Slots), string(r.Kind), string(r.State), r.Reason, stamp(r.Began), stamp(r.Ended),
		string(r.Job))
	if err != nil {
		return fail(err)
	}
	if added == 0 {
		return false, nil
	}
	r.ID, r.Result = sessions.RunID(id), json.RawMessage("{}")
	_, _, err = t.c.exec("UPDATE jobs SET next = ? WHERE id = ? AND next = ?", stamp(next), string(r.Job), stamp(r.Slot))
	if err != nil {
		return fail(err)
	}
	return true, nil
}

// EndRun gives a claimed run its end, once.
func (t *tx) EndRun(id sessions.RunID, state sessions.RunState, reason string, result json.RawMessage, now time.Time) error {
	if result == nil {
		result = json.RawMessage("{}")
	}
	_, changed, err := t.c.exec("UPDATE runs SET state = ?, reason = ?, result = ?, ended = ? WHERE id = ? AND state = 'claimed'",
		string(state), reason, string(result), stamp(now), int64(id))
	if err == nil && changed == 0 {
		err = sessions.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("end run %d: %w", id, err)
	}
	return nil
}

// SetRunResult replaces the result of a run.
func (t *tx) SetRunResult(id sessions.RunID, result json.RawMessage) error {
	if !json.Valid(result) {
		return fmt.Errorf("result of run %d: it is no JSON: %.60q", id, result)
	}
	_, changed, err := t.c.exec("UPDATE runs SET result = ? WHERE id = ?", string(result), int64(id))
	if err == nil && changed == 0 {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("result of run %d: %w", id, err)
	}
	return nil
}

// TrimRuns deletes all but the newest ended runs of a job.
func (t *tx) TrimRuns(id sessions.JobID, keep int) (int, error) {
	_, deleted, err := t.c.exec(`DELETE FROM runs WHERE job = ? AND state <> 'claimed' AND id NOT IN
		(SELECT id FROM runs WHERE job = ? AND state <> 'claimed' ORDER BY id DESC LIMIT ?)`, string(id), string(id), int64(keep))
	if err != nil {
		return 0, fmt.Errorf("old runs of job %s: %w", id, err)
	}
	return int(deleted), nil
}
