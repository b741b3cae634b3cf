package gateway

import (
	"context"
	"errors"
	"time"

	"herald/cron"
	"herald/platforms"
	"herald/sessions"
)

// viewer is who looks at jobs or changes them.
type viewer struct {
	// all: every job is theirs (the command line, the dashboard, an admin by name in a chat with them alone).
	all bool
	// at is the conversation that they are in; the zero value is none.
	at sessions.Origin
}

// mayTouch reports whether a job is the viewer's to see and to change (P6): in a direct chat one that they made, in a
// room one that was made there, and where each person has a conversation of their own in the room, by them. A job that no
// chat has made, or that can't be read, is nobody's but of those who may see all.
func (v viewer) mayTouch(j cron.Job) bool {
	if v.all {
		return true
	}
	t, err := j.Plan.ReadTask()
	if err != nil || t.Origin == nil || t.Origin.Address.Platform == "" || t.Origin.Address.Platform != v.at.Address.Platform {
		return false
	}
	if v.at.ChatType == platforms.DM {
		return !t.Origin.Shared && samePerson(*t.Origin, v.at)
	}
	here := t.Origin.Address.AccountOf() == v.at.Address.AccountOf() && t.Origin.Address.Chat == v.at.Address.Chat
	return here && (v.at.Shared || samePerson(*t.Origin, v.at))
}

// samePerson compares people of one platform, and of one workspace where the platform has those.
func samePerson(a, b sessions.Origin) bool {
	if a.Scope != b.Scope && a.Scope != "" && b.Scope != "" {
		return false
	}
	return a.User != "" && a.User == b.User || a.UserAlt != "" && a.UserAlt == b.UserAlt
}

// jobDesk is the jobs as a viewer may see and change them. A job of somebody else is one that is not there. It implements
// command.Jobs.
type jobDesk struct {
	book *cron.Book
	zone *time.Location
	who  viewer
	// by is what a new job is said to be made by.
	by cron.By
	// run begins a run of a job now, and is cronjob.ErrRunning while one goes on; nil where no scheduler works.
	run func(ctx context.Context, id cron.JobID, note string) error
}

// Zone implements command.Jobs.
func (d *jobDesk) Zone() *time.Location { return d.zone }

// List implements command.Jobs.
func (d *jobDesk) List(ctx context.Context) ([]cron.Job, error) {
	all, err := d.book.List(ctx)
	if err != nil {
		return nil, err
	}
	mine := all[:0]
	for _, j := range all {
		if d.who.mayTouch(j) {
			mine = append(mine, j)
		}
	}
	return mine, nil
}

// Find returns the job of an id or a name among those of the viewer.
func (d *jobDesk) Find(ctx context.Context, ref string) (cron.Job, error) {
	list, err := d.List(ctx)
	if err != nil {
		return cron.Job{}, err
	}
	return cron.Pick(list, ref)
}

// owned refuses the id of a job that is not the viewer's.
func (d *jobDesk) owned(ctx context.Context, id cron.JobID) error {
	j, err := d.book.Get(ctx, id)
	if err == nil && !d.who.mayTouch(j) {
		err = &cron.MissingError{Ref: string(id)}
	}
	return err
}

// Create implements command.Jobs.
func (d *jobDesk) Create(ctx context.Context, c cron.Change, with func(tx sessions.Tx, j cron.Job) error) (cron.Job, error) {
	by := d.by
	by.With = with
	return d.book.Create(ctx, c, by)
}

// Update implements command.Jobs.
func (d *jobDesk) Update(ctx context.Context, id cron.JobID, c cron.Change) (cron.Job, error) {
	if err := d.owned(ctx, id); err != nil {
		return cron.Job{}, err
	}
	return d.book.Update(ctx, id, c)
}

// Pause implements command.Jobs.
func (d *jobDesk) Pause(ctx context.Context, id cron.JobID, why string) (cron.Job, error) {
	if err := d.owned(ctx, id); err != nil {
		return cron.Job{}, err
	}
	return d.book.Pause(ctx, id, why)
}

// Resume implements command.Jobs.
func (d *jobDesk) Resume(ctx context.Context, id cron.JobID) (cron.Job, error) {
	if err := d.owned(ctx, id); err != nil {
		return cron.Job{}, err
	}
	return d.book.Resume(ctx, id)
}

// Remove implements command.Jobs.
func (d *jobDesk) Remove(ctx context.Context, id cron.JobID) (cron.Job, error) {
	if err := d.owned(ctx, id); err != nil {
		return cron.Job{}, err
	}
	return d.book.Remove(ctx, id)
}

// errNoScheduler refuses what only a running daemon can do.
var errNoScheduler = errors.New("only a running daemon can run a job: start one with herald run")

// Run implements command.Jobs.
func (d *jobDesk) Run(ctx context.Context, id cron.JobID, note string) error {
	if err := d.owned(ctx, id); err != nil {
		return err
	}
	if d.run == nil {
		return errNoScheduler
	}
	return d.run(ctx, id, note)
}

// maxRuns bounds how many runs of all jobs are read to find those of a viewer.
const maxRuns = 2000

// Runs implements command.Jobs.
func (d *jobDesk) Runs(ctx context.Context, id cron.JobID, limit int) ([]sessions.Run, error) {
	if id != "" {
		if err := d.owned(ctx, id); err != nil {
			return nil, err
		}
		return d.book.Runs(ctx, id, limit)
	}
	list, err := d.List(ctx)
	if err != nil {
		return nil, err
	}
	mine := make(map[cron.JobID]bool, len(list))
	for _, j := range list {
		mine[j.ID] = true
	}
	runs, err := d.book.Runs(ctx, "", maxRuns)
	out := runs[:0]
	for _, run := range runs {
		if mine[run.Job] && len(out) < limit {
			out = append(out, run)
		}
	}
	return out, err
}
