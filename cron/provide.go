package cron

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"herald/sessions"
)

// Provided is a job as a file defines it.
type Provided struct {
	// ID is ProvidedID of the file and the job's key in it.
	ID JobID
	// Key is what the job is called where its Change gives no name.
	Key    string
	Change Change
}

// Given is what of a file's definition the plan of a job was made from, so that a file that says the same again changes
// nothing.
type Given struct {
	Digest   string `json:"digest"` // of the whole definition
	Schedule string `json:"schedule"`
	Repeat   int    `json:"repeat,omitempty"`
	Paused   bool   `json:"paused,omitempty"` // the file says so itself
}

// ProvidedID is the id of a job that a file provides: it stays the same whatever the file says of the job, so that what
// has become of the job outlives that.
func ProvidedID(source, key string) JobID {
	sum := sha256.Sum256([]byte(source + "\x00" + key))
	return JobID(hex.EncodeToString(sum[:6]))
}

// ProvidedError says which of the jobs that a file provides can't be made, and why: *Error, *TaskError, or what
// BookOptions.Check returned.
type ProvidedError struct {
	Key string
	Err error
}

// Error implements error.
func (e *ProvidedError) Error() string { return fmt.Sprintf("job %q: %v", e.Key, e.Err) }

// Unwrap returns the reason.
func (e *ProvidedError) Unwrap() error { return e.Err }

// Provide makes and changes the jobs that a file provides, all of them or, when one can't be made, none: bad are then the
// reasons. A job whose definition is the one it was made from is not touched. One that is changed keeps its next slot
// unless its schedule or number of runs is another, which begins a new count; and it stays as paused as a person made
// it unless its file says something of that. changed counts the jobs that were written.
func (b *Book) Provide(ctx context.Context, source string, list []Provided) (changed int, bad []*ProvidedError, err error) {
	all, err := b.List(ctx)
	if err != nil {
		return 0, nil, err
	}
	have := make(map[JobID]Job, len(all))
	for _, j := range all {
		have[j.ID] = j
	}
	var versions []version
	for _, p := range list {
		v := version{p: p, given: p.given()}
		if old, known := have[p.ID]; known {
			if old.Source != source {
				bad = append(bad, &ProvidedError{p.Key, wrong("name", p.Key, "its id %s is that of a job of %s", p.ID, old.Source)})
				continue
			}
			if v.old = &old; old.Broken == "" && old.Plan.Given != nil && *old.Plan.Given == v.given {
				continue
			}
		}
		if err := b.define(ctx, source, &v); err != nil {
			bad = append(bad, &ProvidedError{p.Key, err})
			continue
		}
		versions = append(versions, v)
	}
	if len(bad) > 0 || len(versions) == 0 {
		return 0, bad, nil
	}
	err = b.o.Store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		for _, v := range versions {
			if err := b.supersede(tx, v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, nil, fmt.Errorf("keep the jobs of %s: %w", source, err)
	}
	b.o.Changed()
	return len(versions), nil, nil
}

// version is a job as a file has it now.
type version struct {
	p     Provided
	given Given
	old   *Job // as it was read before; nil for a new one
	same  bool // its slots are those of the old one
	job   Job
}

// given is what a plan keeps of a definition.
func (p Provided) given() Given {
	g := Given{}
	if p.Change.Schedule != nil {
		g.Schedule = strings.TrimSpace(*p.Change.Schedule)
	}
	if p.Change.Repeat != nil {
		g.Repeat = *p.Change.Repeat
	}
	g.Paused = p.Change.Paused != nil && *p.Change.Paused
	data, err := json.Marshal(p)
	if err != nil {
		panic("cron: a definition is not JSON: " + err.Error()) // texts, numbers and lists of texts always are
	}
	sum := sha256.Sum256(data)
	g.Digest = hex.EncodeToString(sum[:8])
	return g
}

// define makes the job of a version. Where its slots are those of the old one its schedule is not read again: "in 2h"
// counts from when it was first read, and a time that has passed since is no error.
func (b *Book) define(ctx context.Context, source string, v *version) error {
	now, zone := b.o.Now(), b.o.Zone()
	j, c := Job{ID: v.p.ID, Name: v.p.Key, Source: source, Created: now.UTC(), Updated: now.UTC()}, v.p.Change
	if old := v.old; old != nil && old.Broken == "" && old.Plan.Given != nil {
		v.same = old.Plan.Given.Schedule == v.given.Schedule && old.Plan.Given.Repeat == v.given.Repeat
	}
	if v.same {
		j.Plan, c.Schedule = v.old.Plan, nil
	}
	t := Task{Deliver: DeliverLocal}
	if err := c.apply(&j, &t, !v.same, now, zone); err != nil {
		return err
	}
	if err := j.seal(t); err != nil {
		return err
	}
	if err := b.o.Check(ctx, t); err != nil {
		return err
	}
	j.Plan.Given = &v.given
	v.job = j
	if v.same {
		return nil
	}
	return j.begin(now, zone)
}

// supersede writes a version in the place of what the store has of the job by now.
func (b *Book) supersede(tx sessions.Tx, v version) error {
	j := v.job
	old, err := b.get(tx, string(j.ID))
	switch {
	case errors.Is(err, sessions.ErrNotFound), err == nil && old.Broken != "":
		err = j.Replan(b.o.Now(), b.o.Zone())
	case err == nil:
		err = j.follow(old, v, b.o.Now(), b.o.Zone())
	}
	if err != nil {
		return err
	}
	return j.put(tx)
}

// follow takes over what stays of an older version of the job.
func (j *Job) follow(old Job, v version, now time.Time, zone *time.Location) error {
	j.Progress, j.Created = old.Progress, old.Created
	if v.p.Change.Paused == nil { // a pause of the file's own goes with it
		j.Plan.Paused, j.Plan.PausedWhy = old.Plan.Paused, old.Plan.PausedWhy
		if before := old.Plan.Given; before != nil && before.Paused {
			j.Plan.Paused, j.Plan.PausedWhy = false, ""
		}
	}
	if v.same && j.Plan.Paused == old.Plan.Paused {
		j.Next = old.Next
		return nil
	}
	if !v.same {
		j.Started = 0
	}
	return j.Replan(now, zone)
}

// Withdraw removes jobs that a file has provided, with their runs; those of other sources are left alone. It returns
// how many there were.
func (b *Book) Withdraw(ctx context.Context, source string, ids []JobID) (removed int, err error) {
	err = b.o.Store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		removed = 0
		for _, id := range ids {
			row, err := tx.Job(id)
			if errors.Is(err, sessions.ErrNotFound) || (err == nil && row.Source != source) {
				continue
			}
			if err != nil {
				return err
			}
			if err := tx.DeleteJob(id); err != nil {
				return err
			}
			removed++
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("remove jobs of %s: %w", source, err)
	}
	if removed > 0 {
		b.o.Changed()
	}
	return removed, nil
}
