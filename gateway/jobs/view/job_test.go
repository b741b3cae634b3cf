package view_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/jobs/brief"
	"herald/gateway/jobs/view"
	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
)

func ptr[T any](v T) *T { return &v }

// shelf is a store with jobs, and a clock that stands still.
type shelf struct {
	t     *testing.T
	store *sqlite.Store
	book  *cron.Book
	now   time.Time
}

func newShelf(t *testing.T) *shelf {
	s := &shelf{t: t, now: time.Now()}
	store, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(t.TempDir(), "herald.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	s.store = store
	s.book = cron.NewBook(cron.BookOptions{Store: store, Zone: func() *time.Location { return time.UTC }, Now: s.clock})
	return s
}

func (s *shelf) clock() time.Time { return s.now }

// make makes a job of a person's.
func (s *shelf) make(name string, c cron.Change) cron.Job {
	s.t.Helper()
	c.Name = &name
	if c.Prompt == nil {
		c.Prompt = ptr("x")
	}
	j, err := s.book.Create(context.Background(), c, cron.By{Source: cron.FromCLI})
	require.NoError(s.t, err)
	return j
}

// change writes a job as if something had become of it.
func (s *shelf) change(id cron.JobID, fn func(*cron.Job)) {
	s.t.Helper()
	j, err := s.book.Find(context.Background(), string(id))
	require.NoError(s.t, err)
	fn(&j)
	row, err := j.Row()
	require.NoError(s.t, err)
	require.NoError(s.t, s.store.Update(context.Background(), sessions.EdgeState, func(tx sessions.Tx) error { return tx.PutJob(row) }))
}

// ran keeps a run of a job that began so long ago; state "" is one that goes on.
func (s *shelf) ran(id cron.JobID, ago time.Duration, state sessions.RunState, reason string, r brief.Result) sessions.RunID {
	s.t.Helper()
	began := s.clock().Add(-ago)
	run := sessions.Run{Job: id, Slot: began.Add(-3 * time.Second), Kind: sessions.RunOnTime, Began: began}
	data, err := json.Marshal(r)
	require.NoError(s.t, err)
	require.NoError(s.t, s.store.Update(context.Background(), sessions.EdgeState, func(tx sessions.Tx) error {
		claimed, err := tx.ClaimRun(&run, time.Time{})
		if err != nil || !claimed {
			return errors.Join(err, fmt.Errorf("claimed: %v", claimed))
		}
		if state == "" {
			return nil
		}
		return tx.EndRun(run.ID, state, reason, data, began.Add(time.Minute))
	}))
	return run.ID
}

func (s *shelf) viewer() view.Reader {
	return view.Reader{Store: s.store, Zone: func() *time.Location { return time.UTC }, Now: s.clock}
}

func (s *shelf) list() []view.Job {
	s.t.Helper()
	list, total, err := s.viewer().List(context.Background(), 0, 0)
	require.NoError(s.t, err)
	require.Len(s.t, list, total)
	return list
}

func half() cron.Change { return cron.Change{Schedule: ptr("every 30m")} }

// A list says of each job what it is doing and why, those that want somebody first.
func TestViewer_States(t *testing.T) {
	s := newShelf(t)
	want := map[string]view.State{}
	s.make("scheduled", half())
	want["scheduled"] = view.StateScheduled
	paused := s.make("paused", half())
	_, err := s.book.Pause(context.Background(), paused.ID, "holidays")
	require.NoError(t, err)
	want["paused"] = view.StatePaused
	done := s.make("done", half())
	s.change(done.ID, func(j *cron.Job) { j.Done, j.Next = "its time has passed", time.Time{} })
	want["done"] = view.StateDone
	broken := s.make("broken", half())
	s.change(broken.ID, func(j *cron.Job) { j.Broken = "no such kind" })
	want["broken"] = view.StateBroken
	blocked := s.make("blocked", half())
	s.change(blocked.ID, func(j *cron.Job) { j.Alert = "the model has no key" })
	want["blocked"] = view.StateBlocked
	running := s.make("running", half())
	s.ran(running.ID, time.Minute, "", "", brief.Result{})
	want["running"] = view.StateRunning
	late := s.make("late", half())
	s.change(late.ID, func(j *cron.Job) { j.Next = s.clock().Add(-view.OverdueAfter - time.Minute) })
	want["late"] = view.StateScheduled

	list := s.list()
	names := []string{}
	for _, j := range list {
		names = append(names, j.Name)
		require.Equal(t, want[j.Name], j.State, j.Name)
		require.Equal(t, j.Name == "late", j.Overdue, j.Name)
	}
	require.Equal(t, []string{"broken", "blocked", "late", "running", "scheduled", "paused", "done"}, names)
	require.Equal(t, "the model has no key", list[1].Why)
	require.Equal(t, "holidays", list[5].Why)
	require.Len(t, list[4].Next, view.Upcoming)
	require.Empty(t, list[5].Next)
	require.NotNil(t, list[3].Running)

	two, total, err := s.viewer().List(context.Background(), 1, 2)
	require.NoError(t, err)
	require.Equal(t, 7, total)
	require.Equal(t, []string{"blocked", "late"}, []string{two[0].Name, two[1].Name})
	none, _, err := s.viewer().List(context.Background(), 99, 2)
	require.NoError(t, err)
	require.Empty(t, none)
}

// A run says where its output went and why it did not: also why a message still waits.
func TestViewer_WhereItWent(t *testing.T) {
	s := newShelf(t)
	ctx := context.Background()
	j := s.make("brief", half())
	waiting := &sessions.OutboxRow{Kind: sessions.OutNotice, Error: "429: try again in 30 s",
		Message: platforms.Outgoing{Address: platforms.Address{Platform: "slack", Chat: "D1"}}}
	require.NoError(t, s.store.Update(ctx, sessions.EdgeQueue, func(tx sessions.Tx) error { return tx.PutOutbox(waiting) }))
	s.ran(j.ID, time.Hour, sessions.RunRan, "", brief.Result{Output: "/home/cron/output/x.md", Problems: []string{"delivery target \"teams\": no platform"}, Deliveries: []brief.Delivery{
		{Target: cron.Target{Address: platforms.Address{Platform: "telegram", Chat: "7", Thread: "3"}, Token: "origin", From: cron.FromOrigin}, State: sessions.OutSent, Mirrored: []string{"thread"}},
		{Target: cron.Target{Address: platforms.Address{Platform: "discord", Chat: "9"}, Token: "discord"}, State: sessions.OutFailed, Error: "403: missing access"},
		{Target: cron.Target{Address: waiting.Message.Address, Token: "slack"}, State: sessions.OutPending, Rows: []sessions.OutboxID{waiting.ID}},
	}})
	job, runs, err := s.viewer().Job(ctx, j.ID, 10)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Equal(t, runs[0], *job.Last)
	require.Equal(t, []view.Place{
		{Place: "telegram:7:3", Token: "origin", From: cron.FromOrigin, State: sessions.OutSent, Mirrored: []string{"thread"}},
		{Place: "discord:9", Token: "discord", State: sessions.OutFailed, Why: "403: missing access"},
		{Place: "slack:D1", Token: "slack", State: sessions.OutPending, Why: "429: try again in 30 s"},
	}, job.Last.Places)
	require.Equal(t, "/home/cron/output/x.md", job.Last.Output)
	require.Len(t, job.Last.Trouble, 1)
	require.Equal(t, 3*time.Second, job.Last.Late())
	require.Equal(t, time.Minute, job.Last.Took())

	_, _, err = s.viewer().Job(ctx, "0123456789ab", 10)
	require.ErrorIs(t, err, sessions.ErrNotFound)
	of, err := s.viewer().Of(ctx, []cron.Job{j})
	require.NoError(t, err)
	require.Equal(t, job, of[0])
}

// What was missed or failed in the last day puts a job first; a run that goes well now does not hide the newest end.
func TestViewer_Recently(t *testing.T) {
	s := newShelf(t)
	old, fresh := s.make("old", half()), s.make("fresh", half())
	s.ran(old.ID, 25*time.Hour, sessions.RunFailed, "boom", brief.Result{})
	s.ran(fresh.ID, 2*time.Hour, sessions.RunFailed, "boom", brief.Result{})
	s.ran(fresh.ID, time.Hour, sessions.RunMissed, "nobody was there", brief.Result{})
	s.ran(fresh.ID, time.Minute, "", "", brief.Result{})
	list := s.list()
	require.Equal(t, "fresh", list[0].Name)
	require.Equal(t, 1, list[0].Failed)
	require.Equal(t, 1, list[0].Missed)
	require.Equal(t, sessions.RunMissed, list[0].Last.State)
	require.True(t, list[0].Troubled())
	require.False(t, list[1].Troubled())
	st, err := s.viewer().Status(context.Background())
	require.NoError(t, err)
	require.Equal(t, []int{1, 1, 0, 0}, []int{st.Failed, st.Missed, st.Ran, st.Skipped})
	require.Len(t, st.Running, 1)
	require.Equal(t, map[view.State]int{view.StateRunning: 1, view.StateScheduled: 1}, st.Jobs)
	require.Equal(t, list[1].Next[0].Unix(), st.NextDue.Unix())
}

// Failures of a job with one cause are one incident; a success resolves it; an acknowledged one is reported no
// more, and others of the same job are.
func TestViewer_Incidents(t *testing.T) {
	s := newShelf(t)
	ctx := context.Background()
	a, b := s.make("a", half()), s.make("b", half())
	s.ran(a.ID, 9*time.Hour, sessions.RunFailed, "script broke: exit status 3", brief.Result{})
	s.ran(a.ID, 8*time.Hour, sessions.RunRan, "", brief.Result{})
	s.ran(a.ID, 7*time.Hour, sessions.RunFailed, "request 4711 failed after 3.2s", brief.Result{})
	s.ran(a.ID, 6*time.Hour, sessions.RunFailed, "request 4712 failed after 9s", brief.Result{})
	s.ran(a.ID, 5*time.Hour, sessions.RunFailed, "no answer", brief.Result{})
	s.ran(b.ID, 4*time.Hour, sessions.RunFailed, "no answer", brief.Result{})
	all := func(resolved bool) []view.Incident {
		list, err := s.viewer().Incidents(ctx, resolved)
		require.NoError(t, err)
		return list
	}
	list := all(false)
	require.Len(t, list, 3)
	require.Equal(t, []string{"b", "a", "a"}, []string{list[0].Name, list[1].Name, list[2].Name})
	grouped := list[2]
	require.Equal(t, 2, grouped.Count)
	require.Equal(t, time.Hour, grouped.Last.Sub(grouped.First))
	require.True(t, grouped.Open())
	require.Len(t, all(true), 4)

	got, err := s.viewer().Ack(ctx, grouped.ID, false)
	require.NoError(t, err)
	require.Equal(t, grouped.Signature, got.Signature)
	list = all(false)
	require.Equal(t, []bool{true, true, false}, []bool{list[0].Open(), list[1].Open(), list[2].Open()})
	silent := func(job cron.JobID, reason string) bool {
		var yes bool
		require.NoError(t, s.store.View(ctx, func(v sessions.View) (err error) {
			yes, err = view.Acknowledged(v, job, reason)
			return err
		}))
		return yes
	}
	require.True(t, silent(a.ID, "request 99 failed after 1s"))
	require.False(t, silent(a.ID, "no answer"), "that signature only")
	require.False(t, silent(b.ID, "request 99 failed after 1s"), "that job only")

	s.ran(a.ID, time.Hour, sessions.RunRan, "", brief.Result{})
	require.Len(t, all(false), 1)
	require.True(t, silent(a.ID, "request 99 failed after 1s"), "it was acknowledged, not resolved")
	_, err = s.viewer().Ack(ctx, grouped.ID, true)
	require.NoError(t, err)
	require.False(t, silent(a.ID, "request 99 failed after 1s"))
	_, err = s.viewer().Ack(ctx, "ffffffff", false)
	require.ErrorIs(t, err, view.ErrNoIncident)
}

// homeless is a place without home channels, but for those of the map.
type homeless map[platforms.Name]platforms.Address

func (h homeless) Rules(platforms.Name) platforms.Rules { return platforms.Rules{} }

func (h homeless) Platforms() []platforms.Name { return []platforms.Name{"telegram"} }
func (h homeless) Home(_ context.Context, name platforms.Name) (platforms.Address, bool, error) {
	at, ok := h[name]
	return at, ok, nil
}
func (h homeless) Find(_ context.Context, target string) (platforms.Address, error) {
	return platforms.Address{}, errors.New(target + ": there is no such chat")
}

// Everything that somebody should put right is found, with what to do; a job that is well, paused or done has nothing.
func TestViewer_Doctor(t *testing.T) {
	s := newShelf(t)
	ctx := context.Background()
	deliver := func(to string) cron.Change { c := half(); c.Deliver = &to; return c }
	s.make("well", deliver("local"))
	paused := s.make("paused", deliver("telegram:nowhere"))
	_, err := s.book.Pause(ctx, paused.ID, "")
	require.NoError(t, err)
	s.make("homeless", deliver("origin"))
	s.make("lost", deliver("telegram:nowhere"))
	s.make("script", cron.Change{Schedule: ptr("every 30m"), Script: ptr("gone.sh")})
	broken := s.make("broken", half())
	s.change(broken.ID, func(j *cron.Job) { j.Broken = "no such kind" })
	blocked := s.make("blocked", half())
	s.change(blocked.ID, func(j *cron.Job) { j.Alert, j.Streak = "the model has no key", 9 })
	failing := s.make("failing", half())
	s.ran(failing.ID, time.Hour, sessions.RunFailed, "no answer", brief.Result{})
	s.change(failing.ID, func(j *cron.Job) { j.Streak = 3 })
	twice := s.make("twice", half())
	s.change(twice.ID, func(j *cron.Job) { j.Streak = 2 })
	late := s.make("late", half())
	s.change(late.ID, func(j *cron.Job) { j.Next = s.clock().Add(-time.Hour) })
	missed := s.make("missed", half())
	s.ran(missed.ID, time.Hour, sessions.RunMissed, "nobody was there", brief.Result{})
	s.change(missed.ID, func(j *cron.Job) { j.Done, j.Next = "its time has passed", time.Time{} })
	undelivered := s.make("undelivered", half())
	s.change(undelivered.ID, func(j *cron.Job) { j.Undelivered = "telegram:7: failed: 403" })

	issues, err := s.viewer().Doctor(ctx, view.Diagnosis{Places: homeless{}, Check: func(_ context.Context, task cron.Task) error {
		if task.Script != "" {
			return &cron.TaskError{Field: "script", Value: task.Script, Reason: "there is no such file"}
		}
		return nil
	}})
	require.NoError(t, err)
	got := []string{}
	for _, i := range issues {
		got = append(got, i.Name+" "+i.Kind)
		require.NotEmpty(t, i.Text)
		require.NotEmpty(t, i.Do)
	}
	require.Equal(t, []string{"broken broken", "blocked blocked", "late overdue", "failing failing", "missed missed", "lost target", "homeless home",
		"undelivered undelivered", "script missing"}, got)
	require.Contains(t, issues[6].Do, "/sethome")

	issues, err = s.viewer().Doctor(ctx, view.Diagnosis{Places: homeless{"telegram": {Platform: "telegram", Chat: "1"}}})
	require.NoError(t, err)
	for _, i := range issues {
		require.NotEqual(t, "homeless", i.Name)
	}
}

// The first page of ten thousand jobs, and what the metrics count at each scrape.
func BenchmarkViewer_TenThousandJobs(b *testing.B) {
	store, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(b.TempDir(), "herald.db")})
	require.NoError(b, err)
	b.Cleanup(func() { _ = store.Close() })
	now := time.Now()
	require.NoError(b, store.Update(context.Background(), sessions.EdgeState, func(tx sessions.Tx) error {
		for i := range 10_000 {
			j := cron.Job{ID: sessions.NewJobID(), Name: fmt.Sprint(i), Source: cron.FromCLI,
				Plan: cron.Plan{Schedule: cron.Schedule{Kind: cron.Clock, Expr: "0 9 * * 1-5", Display: "x"}, Task: json.RawMessage(`{"prompt":"x"}`)}, Created: now, Updated: now}
			if err := j.Replan(now, time.UTC); err != nil {
				return err
			}
			row, err := j.Row()
			if err == nil {
				err = tx.PutJob(row)
			}
			if err != nil {
				return err
			}
			for k := range 3 {
				if _, err := tx.ClaimRun(&sessions.Run{Job: j.ID, Slot: now.Add(-time.Duration(k) * time.Hour), State: sessions.RunRan, Began: now},
					time.Time{}); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	v := view.Reader{Store: store, Zone: func() *time.Location { return time.UTC }, Now: time.Now}
	b.Run("page", func(b *testing.B) {
		for b.Loop() {
			list, total, err := v.List(context.Background(), 0, 100)
			require.NoError(b, err)
			require.Len(b, list, 100)
			require.Equal(b, 10_000, total)
		}
	})
	b.Run("counts", func(b *testing.B) {
		for b.Loop() {
			_, err := v.Counts(context.Background())
			require.NoError(b, err)
		}
	})
}
