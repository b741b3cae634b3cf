package cron

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"herald/sessions"
)

// Where a job comes from, as sessions.Job.Source has it; every other value is the file that provides it.
const (
	FromChat = "chat"
	FromCLI  = "cli"
)

// By is who makes a job.
type By struct {
	// Source is FromChat or FromCLI; the jobs of files are made by Provide.
	Source string
	// Origin is the chat in which it is made; nil outside of one.
	Origin *sessions.Origin
	// With is done in the transaction that keeps the job, so that the request is never handled twice; its error keeps
	// the job from being made and is returned unchanged. Nil: nothing.
	With func(tx sessions.Tx, j Job) error
}

// BookOptions are what a Book works with.
type BookOptions struct {
	Store sessions.Store
	Zone  func() *time.Location
	// Check reports what only the profile can know of a task (a skill, a script, a folder that is not there), as a
	// *TaskError; nil checks nothing.
	Check func(ctx context.Context, t Task) error
	// Changed is called after a job was made or changed, so that the scheduler looks; nil tells nobody.
	Changed func()
	Now     func() time.Time
}

// Book is the jobs of a profile. Everything that makes, changes or ends one goes through it.
type Book struct{ o BookOptions }

// NewBook returns the jobs of a store.
func NewBook(o BookOptions) *Book {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Check == nil {
		o.Check = func(context.Context, Task) error { return nil }
	}
	if o.Changed == nil {
		o.Changed = func() {}
	}
	return &Book{o: o}
}

// AmbiguousError says that several jobs have the name that was given.
type AmbiguousError struct {
	Ref  string
	Jobs []Job
}

// Error lists the ids.
func (e *AmbiguousError) Error() string {
	ids := make([]string, len(e.Jobs))
	for i, j := range e.Jobs {
		ids[i] = string(j.ID)
	}
	return fmt.Sprintf("several jobs are called %q; say which one by its id: %s", e.Ref, strings.Join(ids, ", "))
}

// MissingError says that there is no such job.
type MissingError struct{ Ref string }

// Error names it and says what to do.
func (e *MissingError) Error() string {
	return fmt.Sprintf("there is no job %q; list the jobs to see their ids and names", e.Ref)
}

// Unwrap makes it a sessions.ErrNotFound.
func (e *MissingError) Unwrap() error { return sessions.ErrNotFound }

// ManagedError refuses to change a job that a file provides.
type ManagedError struct{ Job Job }

// Error says where to change it.
func (e *ManagedError) Error() string {
	return fmt.Sprintf("job %s %q is provided by %s: change it there", e.Job.ID, e.Job.Name, e.Job.Source)
}

// Create makes a job. The errors are *Error (the schedule), *TaskError, and those of the store.
func (b *Book) Create(ctx context.Context, c Change, by By) (Job, error) {
	now, zone := b.o.Now(), b.o.Zone()
	j := Job{ID: sessions.NewJobID(), Source: by.Source, Created: now.UTC(), Updated: now.UTC()}
	t := Task{Origin: by.Origin, Deliver: DeliverLocal}
	if by.Origin != nil {
		t.Deliver = DeliverOrigin
	}
	if err := c.apply(&j, &t, true, now, zone); err != nil {
		return Job{}, err
	}
	if err := j.seal(t); err != nil {
		return Job{}, err
	}
	if err := b.o.Check(ctx, t); err != nil {
		return Job{}, err
	}
	if j.Name == "" {
		j.Name = TitleOf(t)
	}
	if err := j.begin(now, zone); err != nil {
		return Job{}, err
	}
	err := b.o.Store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		if err := j.put(tx); err != nil {
			return fmt.Errorf("keep the job: %w", err)
		}
		if by.With == nil {
			return nil
		}
		return by.With(tx, j)
	})
	if err != nil {
		return Job{}, err
	}
	b.o.Changed()
	return j, nil
}

// begin gives a new job its first slot, or the error of one that would never run.
func (j *Job) begin(now time.Time, zone *time.Location) error {
	if err := j.Replan(now, zone); err != nil {
		return err
	}
	if j.Done != "" {
		return wrong("schedule", j.Plan.Schedule.Display, "it would never run: %s", j.Done)
	}
	return nil
}

// seal checks a task and puts it into the job.
func (j *Job) seal(t Task) error {
	if err := t.Validate(); err != nil {
		return err
	}
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	j.Plan.Task = data
	return nil
}

// ErrNothing is a change in which nothing is asked.
var ErrNothing = errors.New("nothing is to be changed: name at least one field")

// Update changes a job and plans its next slot again when its schedule, its number of runs or its pause changed. A job
// that is done can't be made to run again so; nor can one that a file provides be changed.
func (b *Book) Update(ctx context.Context, id JobID, c Change) (Job, error) {
	if c.Empty() {
		return Job{}, ErrNothing
	}
	j, err := b.Get(ctx, id)
	if err != nil {
		return Job{}, err
	}
	t, err := b.amend(&j, c)
	if err != nil {
		return Job{}, err
	}
	if err := b.o.Check(ctx, t); err != nil {
		return Job{}, err
	}
	return b.change(ctx, id, true, func(j *Job) error { // again: it may have run meanwhile
		_, err := b.amend(j, c)
		return err
	})
}

// amend writes a change into a job and plans it again where it must be. It returns what the job does then.
func (b *Book) amend(j *Job, c Change) (Task, error) {
	now, zone := b.o.Now(), b.o.Zone()
	t, err := j.Plan.ReadTask()
	if err != nil {
		return t, err
	}
	planned := c.Schedule != nil || c.Repeat != nil || c.Paused != nil
	if j.Done != "" && planned {
		return t, wrong("schedule", j.Plan.Schedule.Display, "the job has ended (%s); make a new one", j.Done)
	}
	if err := c.apply(j, &t, false, now, zone); err != nil {
		return t, err
	}
	if err := j.seal(t); err != nil || !planned {
		return t, err
	}
	return t, j.Replan(now, zone)
}

// Pause keeps a job from having slots. why is for people, "" for nothing special.
func (b *Book) Pause(ctx context.Context, id JobID, why string) (Job, error) {
	return b.change(ctx, id, false, func(j *Job) error {
		if j.Done != "" {
			return wrong("job", j.Name, "it has ended (%s)", j.Done)
		}
		yes := true
		c := Change{Paused: &yes}
		if why != "" {
			c.PausedReason = &why
		}
		if err := c.pause(j); err != nil {
			return err
		}
		return j.Replan(b.o.Now(), b.o.Zone())
	})
}

// Resume gives a paused job slots again, from now on.
func (b *Book) Resume(ctx context.Context, id JobID) (Job, error) {
	return b.change(ctx, id, false, func(j *Job) error {
		if j.Done != "" {
			return wrong("job", j.Name, "it has ended (%s); make a new one", j.Done)
		}
		j.Plan.Paused, j.Plan.PausedWhy = false, ""
		return j.Replan(b.o.Now(), b.o.Zone())
	})
}

// Remove ends a job and forgets it with its runs. One that a file provides is refused.
func (b *Book) Remove(ctx context.Context, id JobID) (Job, error) {
	var j Job
	err := b.o.Store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) (err error) {
		if j, err = b.get(tx, string(id)); err != nil {
			return err
		}
		if j.Managed() {
			return &ManagedError{j}
		}
		return tx.DeleteJob(id)
	})
	if err == nil {
		b.o.Changed()
	}
	return j, err
}

// change runs fn on a stored job and keeps what it did. planned says that the change is one of the plan, which is not
// made to a job that a file provides.
func (b *Book) change(ctx context.Context, id JobID, planned bool, fn func(j *Job) error) (Job, error) {
	var j Job
	err := b.o.Store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) (err error) {
		if j, err = b.get(tx, string(id)); err != nil {
			return err
		}
		if planned && j.Managed() {
			return &ManagedError{j}
		}
		if err := fn(&j); err != nil {
			return err
		}
		j.Updated = b.o.Now().UTC()
		return j.put(tx)
	})
	if err != nil {
		return Job{}, err
	}
	b.o.Changed()
	return j, nil
}

// get reads a job. One whose plan can't be read is returned with why in Broken.
func (b *Book) get(v sessions.Jobs, ref string) (Job, error) {
	if !ValidJobID(ref) {
		return Job{}, &MissingError{ref}
	}
	row, err := v.Job(JobID(ref))
	if errors.Is(err, sessions.ErrNotFound) {
		return Job{}, &MissingError{ref}
	}
	if err != nil {
		return Job{}, err
	}
	return Read(row), nil
}

// Read reads a stored job. One that can't be used is returned with why in Broken.
func Read(row sessions.Job) Job {
	j, err := FromRow(row)
	if err != nil && j.Broken == "" {
		j.Broken = err.Error()
	}
	return j
}

// Managed reports whether a file provides the job.
func (j Job) Managed() bool { return j.Source != FromChat && j.Source != FromCLI && j.Source != "" }

// Get returns the job of an id; *MissingError.
func (b *Book) Get(ctx context.Context, id JobID) (j Job, err error) {
	err = b.o.Store.View(ctx, func(v sessions.View) error {
		j, err = b.get(v, string(id))
		return err
	})
	return j, err
}

// Find returns the job of an id or, in any case, of a name. The errors are *MissingError, *AmbiguousError, and those of the store.
func (b *Book) Find(ctx context.Context, ref string) (Job, error) {
	list, err := b.List(ctx)
	if err != nil {
		return Job{}, err
	}
	return Pick(list, ref)
}

// Pick is Find among jobs that were read before.
func Pick(list []Job, ref string) (Job, error) {
	ref = strings.TrimSpace(ref)
	if i := slices.IndexFunc(list, func(j Job) bool { return string(j.ID) == ref }); i >= 0 {
		return list[i], nil
	}
	var named []Job
	for _, j := range list {
		if strings.EqualFold(j.Name, ref) {
			named = append(named, j)
		}
	}
	switch len(named) {
	case 0:
		return Job{}, &MissingError{ref}
	case 1:
		return named[0], nil
	}
	return Job{}, &AmbiguousError{ref, named}
}

// List returns all jobs, the oldest first.
func (b *Book) List(ctx context.Context) ([]Job, error) {
	var out []Job
	err := b.o.Store.View(ctx, func(v sessions.View) error {
		rows, err := v.Jobs()
		for _, row := range rows {
			out = append(out, Read(row))
		}
		return err
	})
	return out, err
}

// Runs returns the newest runs of a job, or of all with an empty id.
func (b *Book) Runs(ctx context.Context, id JobID, limit int) (runs []sessions.Run, err error) {
	err = b.o.Store.View(ctx, func(v sessions.View) error {
		runs, err = v.Runs(sessions.RunQuery{Job: id, Limit: limit})
		return err
	})
	return runs, err
}

// Upcoming returns the next n slots of a job after now.
func (j Job) Upcoming(n int, now time.Time, zone *time.Location) []time.Time {
	var out []time.Time
	for at := j.Next; !at.IsZero() && len(out) < n; {
		out = append(out, at)
		if j.Plan.Times > 0 && j.Started+len(out) >= j.Plan.Times {
			break
		}
		next, ok := j.Plan.Schedule.Next(at, zone)
		if !ok {
			break
		}
		at = next
	}
	return out
}
