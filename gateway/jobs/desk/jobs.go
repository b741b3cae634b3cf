package desk

import (
	"context"
	"time"

	"herald/cron"
	"herald/sessions"
)

// Jobs are the jobs as one viewer may see and change them. A job of somebody else is one that is not there: the error is
// *cron.MissingError. All other errors are those of cron.Book.
type Jobs struct {
	book *cron.Book
	zone func() *time.Location
	who  viewer
	by   cron.By // who makes a new job
	// runner begins runs; nil where no scheduler works.
	runner Runner
}

// Zone is that of the jobs' clocks.
func (j *Jobs) Zone() *time.Location { return j.zone() }

// List returns the viewer's jobs, the oldest first.
func (j *Jobs) List(ctx context.Context) ([]cron.Job, error) {
	all, err := j.book.List(ctx)
	if err != nil {
		return nil, err
	}
	mine := all[:0]
	for _, job := range all {
		if j.who.mayTouch(job) {
			mine = append(mine, job)
		}
	}
	return mine, nil
}

// Find returns the job of an id or a name among those of the viewer.
func (j *Jobs) Find(ctx context.Context, ref string) (cron.Job, error) {
	list, err := j.List(ctx)
	if err != nil {
		return cron.Job{}, err
	}
	return cron.Pick(list, ref)
}

// owned refuses the id of a job that is not the viewer's.
func (j *Jobs) owned(ctx context.Context, id cron.JobID) error {
	job, err := j.book.Get(ctx, id)
	if err == nil && !j.who.mayTouch(job) {
		err = &cron.MissingError{Ref: string(id)}
	}
	return err
}

// Create makes a job. with, where not nil, is done in its transaction.
func (j *Jobs) Create(ctx context.Context, c cron.Change, with func(tx sessions.Tx, job cron.Job) error) (cron.Job, error) {
	by := j.by
	by.With = with
	return j.book.Create(ctx, c, by)
}

// Update changes a job.
func (j *Jobs) Update(ctx context.Context, id cron.JobID, c cron.Change) (cron.Job, error) {
	if err := j.owned(ctx, id); err != nil {
		return cron.Job{}, err
	}
	return j.book.Update(ctx, id, c)
}

// Pause keeps a job from running; why is for people.
func (j *Jobs) Pause(ctx context.Context, id cron.JobID, why string) (cron.Job, error) {
	if err := j.owned(ctx, id); err != nil {
		return cron.Job{}, err
	}
	return j.book.Pause(ctx, id, why)
}

// Resume lets a paused job run again.
func (j *Jobs) Resume(ctx context.Context, id cron.JobID) (cron.Job, error) {
	if err := j.owned(ctx, id); err != nil {
		return cron.Job{}, err
	}
	return j.book.Resume(ctx, id)
}

// Remove ends a job and forgets it with its runs. It returns it as it was.
func (j *Jobs) Remove(ctx context.Context, id cron.JobID) (cron.Job, error) {
	if err := j.owned(ctx, id); err != nil {
		return cron.Job{}, err
	}
	return j.book.Remove(ctx, id)
}

// Run begins a run beside the plan and returns when it has begun; note is added to its prompt. cron.ErrRunning while one
// goes on, ErrNoScheduler where no scheduler works.
func (j *Jobs) Run(ctx context.Context, id cron.JobID, note string) error {
	if err := j.owned(ctx, id); err != nil {
		return err
	}
	if j.runner == nil {
		return ErrNoScheduler
	}
	_, err := j.runner.Run(ctx, id, note)
	return err
}

// maxRuns bounds how many runs of all jobs are read to find those of a viewer.
const maxRuns = 2000

// Runs returns the newest runs of a job, or of all the viewer's with an empty id; at most limit.
func (j *Jobs) Runs(ctx context.Context, id cron.JobID, limit int) ([]sessions.Run, error) {
	if id != "" {
		if err := j.owned(ctx, id); err != nil {
			return nil, err
		}
		return j.book.Runs(ctx, id, limit)
	}
	list, err := j.List(ctx)
	if err != nil {
		return nil, err
	}
	mine := make(map[cron.JobID]bool, len(list))
	for _, job := range list {
		mine[job.ID] = true
	}
	runs, err := j.book.Runs(ctx, "", maxRuns)
	out := runs[:0]
	for _, run := range runs {
		if mine[run.Job] && len(out) < limit {
			out = append(out, run)
		}
	}
	return out, err
}
