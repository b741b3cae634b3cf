package cron_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/sessions"
)

const teamFile = "cron.d/team.yaml"

// provide gives the jobs of teamFile: a key and its fields, in turn.
func (d *desk) provide(list ...cron.Provided) int {
	d.t.Helper()
	changed, bad, err := d.Provide(context.Background(), teamFile, list)
	require.NoError(d.t, err)
	require.Empty(d.t, bad)
	return changed
}

func provided(key string, c cron.Change) cron.Provided {
	return cron.Provided{ID: cron.ProvidedID(teamFile, key), Key: key, Change: c}
}

func (d *desk) job(id cron.JobID) cron.Job {
	d.t.Helper()
	j, err := d.Find(context.Background(), string(id))
	require.NoError(d.t, err)
	return j
}

// A file that says the same again touches nothing: no slot is planned again, nothing is written.
func TestProvide_TheSameAgain(t *testing.T) {
	d := newDesk(t)
	every := provided("often", cron.Change{Schedule: ptr("every 30m"), Prompt: ptr("x")})
	later := provided("later", cron.Change{Schedule: ptr("in 2h"), Prompt: ptr("x")})
	require.Equal(t, 2, d.provide(every, later))
	first := d.job(every.ID)
	require.True(t, first.Managed())
	require.True(t, cron.ValidJobID(string(first.ID)))
	d.now = d.now.Add(10 * time.Minute)
	pokes := d.pokes
	require.Zero(t, d.provide(every, later))
	require.Equal(t, pokes, d.pokes)
	require.Equal(t, first, d.job(every.ID))

	// Another prompt leaves the slot where it is; "in 2h" counts from when it was first read, and may have passed.
	every.Change.Prompt, later.Change.Prompt = ptr("y"), ptr("y")
	due := d.job(later.ID).Next
	d.now = d.now.Add(3 * time.Hour)
	require.Equal(t, 2, d.provide(every, later))
	require.Equal(t, first.Next, d.job(every.ID).Next)
	require.Equal(t, first.Created, d.job(every.ID).Created)
	require.Equal(t, due, d.job(later.ID).Next)

	// Another schedule is planned from now.
	every.Change.Schedule = ptr("every 45m")
	require.Equal(t, 1, d.provide(every, later))
	require.Equal(t, d.now.Add(45*time.Minute), d.job(every.ID).Next)
}

// A person's pause outlives a new version of the job; the file's own word wins, and goes with it.
func TestProvide_Pause(t *testing.T) {
	d := newDesk(t)
	ctx := context.Background()
	p := provided("a", daily("x"))
	d.provide(p)
	for what, do := range map[string]func() error{
		"update": func() error { _, err := d.Update(ctx, p.ID, cron.Change{Prompt: ptr("b")}); return err },
		"remove": func() error { _, err := d.Remove(ctx, p.ID); return err },
	} {
		require.ErrorContains(t, do(), "provided by "+teamFile, what)
	}
	_, err := d.Pause(ctx, p.ID, "holidays")
	require.NoError(t, err)
	for _, schedule := range []string{"every day at 9am", "every day at 10am"} {
		p.Change.Schedule, p.Change.Prompt = ptr(schedule), ptr("y"+schedule)
		require.Equal(t, 1, d.provide(p))
		require.True(t, d.job(p.ID).Plan.Paused, schedule)
		require.Equal(t, "holidays", d.job(p.ID).Plan.PausedWhy)
		require.True(t, d.job(p.ID).Next.IsZero())
	}
	p.Change.Paused = ptr(false)
	d.provide(p)
	require.False(t, d.job(p.ID).Plan.Paused)
	require.False(t, d.job(p.ID).Next.IsZero())
	p.Change.Paused, p.Change.PausedReason = ptr(true), ptr("not yet")
	d.provide(p)
	require.Equal(t, "not yet", d.job(p.ID).Plan.PausedWhy)
	require.True(t, d.job(p.ID).Next.IsZero())
	p.Change.Paused, p.Change.PausedReason = nil, nil
	d.provide(p)
	require.False(t, d.job(p.ID).Plan.Paused)
	require.False(t, d.job(p.ID).Next.IsZero())
}

// What has become of a job outlives a new version of it; a new schedule or number of runs begins a new count.
func TestProvide_Progress(t *testing.T) {
	d := newDesk(t)
	store := openStore(t)
	d.Book = cron.NewBook(cron.BookOptions{Store: store, Zone: func() *time.Location { return time.UTC },
		Now: func() time.Time { return d.now }})
	p := provided("a", cron.Change{Schedule: ptr("2026-11-02T09:00"), Prompt: ptr("x")})
	d.provide(p)
	j := d.job(p.ID)
	j.Started, j.Done, j.Next, j.Streak, j.LastEnd = 1, "it has run as often as it was to", time.Time{}, 2, sessions.RunFailed
	row, err := j.Row()
	require.NoError(t, err)
	require.NoError(t, store.Update(context.Background(), sessions.EdgeState, func(tx sessions.Tx) error { return tx.PutJob(row) }))
	d.now = d.now.Add(48 * time.Hour)

	p.Change.Prompt = ptr("y") // its time has passed, and that is no error
	require.Equal(t, 1, d.provide(p))
	require.Equal(t, j.Progress, d.job(p.ID).Progress)
	require.True(t, d.job(p.ID).Next.IsZero())

	p.Change.Schedule = ptr("2026-12-02T09:00")
	require.Equal(t, 1, d.provide(p))
	again := d.job(p.ID)
	require.Zero(t, again.Started)
	require.Empty(t, again.Done)
	require.Equal(t, 2, again.Streak)
	require.Equal(t, time.Date(2026, 12, 2, 9, 0, 0, 0, time.UTC), again.Next)
}

// One job that can't be made keeps the whole file from being taken over, and every such job is named.
func TestProvide_AllOrNone(t *testing.T) {
	d := newDesk(t)
	good := provided("good", daily("x"))
	d.provide(good)
	good.Change.Prompt = ptr("y")
	list := []cron.Provided{good, provided("new", daily("x")), provided("bad", cron.Change{Schedule: ptr("sometimes"), Prompt: ptr("x")}),
		provided("past", cron.Change{Schedule: ptr("2020-01-01"), Prompt: ptr("x")})}
	changed, bad, err := d.Provide(context.Background(), teamFile, list)
	require.NoError(t, err)
	require.Zero(t, changed)
	require.Len(t, bad, 2)
	require.Equal(t, "bad", bad[0].Key)
	require.ErrorContains(t, bad[1], "has passed")
	var what *cron.Error
	require.ErrorAs(t, bad[0], &what)
	all, err := d.List(context.Background())
	require.NoError(t, err)
	require.Len(t, all, 1)
	task, err := all[0].Plan.ReadTask()
	require.NoError(t, err)
	require.Equal(t, "x", task.Prompt)

	d.check = func(cron.Task) error { return &cron.TaskError{Field: "skills", Value: "none", Reason: "no such skill"} }
	_, bad, err = d.Provide(context.Background(), teamFile, list[:2])
	require.NoError(t, err)
	require.ErrorContains(t, bad[0], `skills "none"`)
}

// A file removes its own jobs alone, and never takes over somebody else's.
func TestProvide_Withdraw(t *testing.T) {
	d := newDesk(t)
	ctx := context.Background()
	p := provided("a", daily("x"))
	d.provide(p)
	chat := d.create(daily("mine"), cron.By{Source: cron.FromChat})
	n, err := d.Withdraw(ctx, teamFile, []cron.JobID{p.ID, chat.ID, sessions.NewJobID()})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	all, err := d.List(ctx)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, chat.ID, all[0].ID)

	_, bad, err := d.Provide(ctx, teamFile, []cron.Provided{{ID: chat.ID, Key: "a", Change: daily("x")}})
	require.NoError(t, err)
	require.ErrorContains(t, bad[0], "is that of a job of chat")
}
