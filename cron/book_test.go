package cron_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
)

func ptr[T any](v T) *T { return &v }

// desk is a book over a store with a clock of its own.
type desk struct {
	*cron.Book
	t     *testing.T
	now   time.Time
	check func(cron.Task) error
	pokes int
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, now: time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)}
	d.Book = cron.NewBook(cron.BookOptions{Store: openStore(t), Zone: func() *time.Location { return time.UTC },
		Now:     func() time.Time { return d.now },
		Changed: func() { d.pokes++ }, Check: func(_ context.Context, task cron.Task) error {
			if d.check == nil {
				return nil
			}
			return d.check(task)
		}})
	return d
}

func (d *desk) create(c cron.Change, by cron.By) cron.Job {
	d.t.Helper()
	j, err := d.Create(context.Background(), c, by)
	require.NoError(d.t, err)
	return j
}

func daily(prompt string) cron.Change {
	return cron.Change{Schedule: ptr("every day at 9am"), Prompt: ptr(prompt)}
}

// What a job gets that nobody said.
func TestBook_Defaults(t *testing.T) {
	d := newDesk(t)
	chat := &sessions.Origin{Address: platforms.Address{Platform: "telegram", Account: "1", Chat: "7"}, ChatType: platforms.DM, User: "7"}
	j := d.create(daily("Summarise what happened in the last day and who waits for an answer"), cron.By{Source: cron.FromChat, Origin: chat})
	task, err := j.Plan.ReadTask()
	require.NoError(t, err)
	require.Equal(t, cron.DeliverOrigin, task.Deliver)
	require.Equal(t, chat, task.Origin)
	require.Nil(t, task.Attach)
	require.Equal(t, "Summarise what happened in the last day and who wa", j.Name)
	require.Equal(t, time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC), j.Next)
	require.Zero(t, j.Plan.Times)
	require.Equal(t, 1, d.pokes)

	j = d.create(cron.Change{Schedule: ptr("in 10m"), Script: ptr("a.sh"), NoAgent: ptr(true)}, cron.By{Source: cron.FromCLI})
	task, err = j.Plan.ReadTask()
	require.NoError(t, err)
	require.Equal(t, cron.DeliverLocal, task.Deliver)
	require.Equal(t, "a.sh", j.Name)
	require.Equal(t, 1, j.Plan.Times)
}

// What can't be is refused with the field's name, and nothing is kept.
func TestBook_WhatIsWrongIsNamed(t *testing.T) {
	d := newDesk(t)
	for name, c := range map[string]struct {
		change cron.Change
		want   string
	}{
		"no schedule":          {cron.Change{Prompt: ptr("x")}, "schedule: a job needs one"},
		"bad schedule":         {cron.Change{Prompt: ptr("x"), Schedule: ptr("sometimes")}, `schedule "sometimes"`},
		"nothing to do":        {cron.Change{Schedule: ptr("30m"), Prompt: ptr("  ")}, "nothing to do"},
		"no agent, no script":  {cron.Change{Schedule: ptr("30m"), Prompt: ptr("x"), NoAgent: ptr(true)}, "no_agent: a job without an agent needs a script"},
		"watching, no agent":   {cron.Change{Schedule: ptr("30m"), Script: ptr("a"), NoAgent: ptr(true), Monitor: ptr("b")}, "monitor"},
		"bad URL":              {cron.Change{Schedule: ptr("30m"), Prompt: ptr("x"), Monitor: ptr("ftp://a/b")}, `monitor "ftp://a/b"`},
		"password in URL":      {cron.Change{Schedule: ptr("30m"), Prompt: ptr("x"), Monitor: ptr("https://me:geheim@a/b")}, "carries no password"},
		"bad context":          {cron.Change{Schedule: ptr("30m"), Prompt: ptr("x"), ContextFrom: &[]string{"../../etc"}}, `context_from "../../etc"`},
		"relative workdir":     {cron.Change{Schedule: ptr("30m"), Prompt: ptr("x"), Workdir: ptr("here")}, `workdir "here"`},
		"reason without pause": {cron.Change{Schedule: ptr("30m"), Prompt: ptr("x"), PausedReason: ptr("why")}, "paused_reason"},
		"negative repeat":      {cron.Change{Schedule: ptr("30m"), Prompt: ptr("x"), Repeat: ptr(-1)}, `repeat "-1"`},
		"past":                 {cron.Change{Schedule: ptr("2020-01-01T00:00"), Prompt: ptr("x")}, "has passed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := d.Create(context.Background(), c.change, cron.By{Source: cron.FromCLI})
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "geheim")
		})
	}
	list, err := d.List(context.Background())
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestParseRepeat(t *testing.T) {
	for text, want := range map[string]int{"": 0, "forever": 0, "Infinite": 0, "inf": 0, "none": 0, "once": 1, "one": 1, "1x": 1, "5": 5, "0": 0, "-3": 0} {
		n, err := cron.ParseRepeat(text)
		require.NoError(t, err, text)
		require.Equal(t, want, n, text)
	}
	_, err := cron.ParseRepeat("often")
	require.ErrorContains(t, err, `repeat "often"`)
}

// An update changes what it names and nothing else.
func TestBook_Update(t *testing.T) {
	d := newDesk(t)
	ctx := context.Background()
	j := d.create(cron.Change{Schedule: ptr("every day at 9am"), Prompt: ptr("a"), Skills: &[]string{"one", "two"}, Continuity: ptr(true)},
		cron.By{Source: cron.FromCLI})
	_, err := d.Update(ctx, j.ID, cron.Change{})
	require.ErrorIs(t, err, cron.ErrNothing)
	_, err = d.Update(ctx, j.ID, cron.Change{Name: ptr("  ")})
	require.ErrorIs(t, err, cron.ErrNothing)

	j, err = d.Update(ctx, j.ID, cron.Change{Attach: ptr(true)})
	require.NoError(t, err)
	task := func(j cron.Job) cron.Task {
		task, err := j.Plan.ReadTask()
		require.NoError(t, err)
		return task
	}
	require.Equal(t, ptr(true), task(j).Attach)
	require.Equal(t, []string{"one", "two"}, task(j).Skills)
	require.True(t, task(j).Continues())

	j, err = d.Update(ctx, j.ID, cron.Change{Unattach: true, Skills: &[]string{}, Continuity: ptr(false)})
	require.NoError(t, err)
	require.Nil(t, task(j).Attach)
	require.Empty(t, task(j).Skills)
	require.Empty(t, task(j).ContextFrom)

	// A kind that flips takes the number of runs with it.
	j, err = d.Update(ctx, j.ID, cron.Change{Schedule: ptr("in 1h")})
	require.NoError(t, err)
	require.Equal(t, 1, j.Plan.Times)
	require.Equal(t, d.now.Add(time.Hour), j.Next)
	j, err = d.Update(ctx, j.ID, cron.Change{Schedule: ptr("every 30m")})
	require.NoError(t, err)
	require.Zero(t, j.Plan.Times)

	// A paused job has no slot, also when its prompt is changed; a new schedule wakes it.
	j, err = d.Pause(ctx, j.ID, "holidays")
	require.NoError(t, err)
	require.True(t, j.Next.IsZero())
	require.Equal(t, "holidays", j.Plan.PausedWhy)
	j, err = d.Update(ctx, j.ID, cron.Change{Prompt: ptr("b")})
	require.NoError(t, err)
	require.True(t, j.Next.IsZero())
	j, err = d.Update(ctx, j.ID, cron.Change{Schedule: ptr("every 45m")})
	require.NoError(t, err)
	require.False(t, j.Plan.Paused)
	require.Equal(t, d.now.Add(45*time.Minute), j.Next)

	// What the profile refuses changes nothing.
	d.check = func(cron.Task) error {
		return &cron.TaskError{Field: "script", Value: "no.sh", Reason: "there is no such file"}
	}
	_, err = d.Update(ctx, j.ID, cron.Change{Script: ptr("no.sh")})
	require.ErrorContains(t, err, `script "no.sh"`)
	j, err = d.Find(ctx, string(j.ID))
	require.NoError(t, err)
	require.Empty(t, task(j).Script)
}

func TestBook_Find(t *testing.T) {
	d := newDesk(t)
	ctx := context.Background()
	a := d.create(cron.Change{Name: ptr("Morning brief"), Schedule: ptr("30m"), Prompt: ptr("x")}, cron.By{Source: cron.FromCLI})
	b := d.create(cron.Change{Name: ptr("news"), Schedule: ptr("30m"), Prompt: ptr("x")}, cron.By{Source: cron.FromCLI})
	c := d.create(cron.Change{Name: ptr("NEWS"), Schedule: ptr("30m"), Prompt: ptr("x")}, cron.By{Source: cron.FromCLI})
	for _, ref := range []string{string(a.ID), "morning BRIEF", " Morning brief "} {
		j, err := d.Find(ctx, ref)
		require.NoError(t, err, ref)
		require.Equal(t, a.ID, j.ID)
	}
	_, err := d.Find(ctx, "News")
	var several *cron.AmbiguousError
	require.ErrorAs(t, err, &several)
	require.ErrorContains(t, err, string(b.ID))
	require.ErrorContains(t, err, string(c.ID))
	_, err = d.Find(ctx, "../etc")
	require.ErrorIs(t, err, sessions.ErrNotFound)
}

func TestJob_Upcoming(t *testing.T) {
	d := newDesk(t)
	j := d.create(cron.Change{Schedule: ptr("every weekday at 9am"), Prompt: ptr("x"), Repeat: ptr(2)}, cron.By{Source: cron.FromCLI})
	require.Equal(t, []time.Time{time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC), time.Date(2026, 11, 3, 9, 0, 0, 0, time.UTC)},
		j.Upcoming(3, d.now, time.UTC))
}

// A task that is stored reads back whole.
func TestTask_Stored(t *testing.T) {
	task := cron.Task{Prompt: "x", Attach: ptr(false), ContextFrom: []string{cron.Self}}
	data, err := json.Marshal(task)
	require.NoError(t, err)
	back, err := cron.Plan{Task: data}.ReadTask()
	require.NoError(t, err)
	require.Equal(t, task, back)
	_, err = cron.Plan{Task: json.RawMessage(`[]`)}.ReadTask()
	require.ErrorContains(t, err, "can't be read")
}

func openStore(t testing.TB) *sqlite.Store {
	store, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(t.TempDir(), "herald.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}
