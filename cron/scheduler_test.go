package cron_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"herald/cron"
	"herald/sessions"
	"herald/sessions/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is schedulers on one real store, with a clock that tests move.
type bench struct {
	t     testing.TB
	store *sqlite.Store
	zone  *time.Location
	mu    sync.Mutex
	now   time.Time
	// catchUp and fail are what the scheduler meets; begun is what it has started.
	catchUp bool
	fail    error
	begun   []sessions.Run
	asks    *cron.Requests // of the newest scheduler
}

var morning = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC) // a Monday

func newBench(t testing.TB) *bench {
	t.Helper()
	return &bench{t: t, store: openStore(t), zone: time.UTC, now: morning, catchUp: true}
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// scheduler returns one more; alive are the runs whose work outlived the last process.
func (b *bench) scheduler(alive ...sessions.RunID) *cron.Scheduler {
	b.asks = cron.NewRequests()
	return cron.New(cron.Options{Store: b.store, Requests: b.asks, Zone: func() *time.Location { return b.zone },
		CatchUp: func() bool { return b.catchUp }, Now: b.clock, Log: zerolog.Nop(),
		Start: b.start, Alive: func(run sessions.Run) bool {
			for _, id := range alive {
				if id == run.ID {
					return true
				}
			}
			return false
		}})
}

func (b *bench) start(ctx context.Context, s cron.Start) error {
	if b.fail != nil {
		return b.fail
	}
	var run sessions.Run
	err := b.store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) (err error) {
		run, err = s.Claim(tx)
		return err
	})
	if err == nil {
		b.mu.Lock()
		b.begun = append(b.begun, run)
		b.mu.Unlock()
	}
	return err
}

func (b *bench) job(name, schedule string, change ...func(*cron.Plan)) cron.Job {
	b.t.Helper()
	s, err := cron.Parse(schedule, b.clock(), b.zone)
	require.NoError(b.t, err)
	plan := cron.Plan{Schedule: s}
	for _, c := range change {
		c(&plan)
	}
	j, err := cron.NewJob(name, "test", plan, b.clock(), b.zone)
	require.NoError(b.t, err)
	row, err := j.Row()
	require.NoError(b.t, err)
	require.NoError(b.t, b.store.Update(context.Background(), sessions.EdgeState, func(tx sessions.Tx) error { return tx.PutJob(row) }))
	return j
}

func (b *bench) read(id cron.JobID) (j cron.Job) {
	b.t.Helper()
	require.NoError(b.t, b.store.View(context.Background(), func(v sessions.View) error {
		row, err := v.Job(id)
		if err != nil {
			return err
		}
		j, err = cron.FromRow(row)
		return err
	}))
	return j
}

// remove takes a job away, with all that it has begun.
func (b *bench) remove(id cron.JobID) {
	b.t.Helper()
	b.begun = nil
	require.NoError(b.t, b.store.Update(context.Background(), sessions.EdgeState, func(tx sessions.Tx) error { return tx.DeleteJob(id) }))
}

// runs returns the runs of a job, oldest first.
func (b *bench) runs(id cron.JobID) (list []sessions.Run) {
	b.t.Helper()
	require.NoError(b.t, b.store.View(context.Background(), func(v sessions.View) error {
		newest, err := v.Runs(sessions.RunQuery{Job: id, Limit: 1 << 20})
		for i := len(newest) - 1; i >= 0; i-- {
			list = append(list, newest[i])
		}
		return err
	}))
	return list
}

// work gives every begun run an end.
func (b *bench) work(s *cron.Scheduler, state sessions.RunState) {
	b.t.Helper()
	b.mu.Lock()
	begun := b.begun
	b.begun = nil
	b.mu.Unlock()
	for _, run := range begun {
		require.NoError(b.t, s.End(context.Background(), run.ID, state, "", nil))
	}
}

func (b *bench) look(s *cron.Scheduler) time.Time {
	b.t.Helper()
	next, err := s.Look(context.Background())
	require.NoError(b.t, err)
	return next
}

// said is a run in short.
func said(runs []sessions.Run) (out []string) {
	for _, r := range runs {
		text := fmt.Sprintf("%s %s", r.Slot.Format("2 15:04"), r.State)
		if r.Slots > 1 {
			text += fmt.Sprintf(" x%d until %s", r.Slots, r.Until.Format("2 15:04"))
		}
		if r.State == sessions.RunRan || r.State == sessions.RunClaimed {
			text += " " + string(r.Kind)
		}
		out = append(out, text)
	}
	return out
}

func TestScheduler_ASlotRunsWhenItIsDue(t *testing.T) {
	b := newBench(t)
	s := b.scheduler()
	require.True(t, b.look(s).IsZero(), "nothing is planned")
	j := b.job("brief", "every day at 9am")
	nine := morning.Add(time.Hour)
	require.Equal(t, nine, b.look(s))
	require.Empty(t, b.runs(j.ID))
	b.pass(time.Hour)
	require.Equal(t, nine.AddDate(0, 0, 1), b.look(s))
	b.look(s)
	require.Equal(t, []string{"2 09:00 claimed on_time"}, said(b.runs(j.ID)))
	b.work(s, sessions.RunRan)
	require.Equal(t, []string{"2 09:00 ran on_time"}, said(b.runs(j.ID)))
	got := b.read(j.ID)
	require.Equal(t, 1, got.Started)
	require.Equal(t, sessions.RunRan, got.LastEnd)
	require.Equal(t, nine, got.LastSlot)
}

// A daemon that was away runs the newest slot once, and says of the others that they were missed.
func TestScheduler_AfterAnAbsence(t *testing.T) {
	for _, row := range []struct {
		name, schedule string
		away           time.Duration
		catchUp        bool
		want           []string
	}{
		{"a few minutes at nine", "0 9 * * *", 64 * time.Minute, true, []string{"2 09:00 claimed on_time"}},
		{"within the grace", "0 9 * * *", 90 * time.Minute, true, []string{"2 09:00 claimed late"}},
		{"beyond it: caught up once", "0 9 * * *", 5 * time.Hour, true, []string{"2 09:00 claimed catch_up"}},
		{"beyond it, and not wanted", "0 9 * * *", 5 * time.Hour, false, []string{"2 09:00 skipped"}},
		{"three days", "0 9 * * *", 3*24*time.Hour + 5*time.Hour, true, []string{"2 09:00 missed x3 until 4 09:00", "5 09:00 claimed catch_up"}},
		{"minutes", "every 5m", 31 * time.Minute, true, []string{"2 08:05 missed x5 until 2 08:25", "2 08:30 claimed on_time"}},
		{"years of minutes are counted to ten thousand", "* * * * *", 400 * 24 * time.Hour, true, []string{"2 08:01 missed x10000 until 6 07:59", "6 08:00 claimed on_time"}},
		{"a one-shot in its grace", "in 1h", time.Hour + 119*time.Second, true, []string{"2 09:00 claimed on_time"}},
		{"a one-shot after it", "in 1h", time.Hour + 121*time.Second, true, []string{"2 09:00 missed"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBench(t)
			b.catchUp = row.catchUp
			j := b.job("brief", row.schedule)
			b.pass(row.away)
			next := b.look(b.scheduler())
			require.Equal(t, row.want, said(b.runs(j.ID)))
			if j.Plan.Schedule.Kind == cron.Once {
				require.True(t, next.IsZero())
				require.NotEmpty(t, b.read(j.ID).Done)
			} else {
				require.True(t, next.After(b.clock()))
			}
		})
	}
}

func TestScheduler_RunsAsOftenAsItIsTo(t *testing.T) {
	b := newBench(t)
	s := b.scheduler()
	j := b.job("thrice", "every 10m", func(p *cron.Plan) { p.Times = 3 })
	for range 5 {
		b.pass(10 * time.Minute)
		b.look(s)
		b.work(s, sessions.RunRan)
	}
	require.Len(t, b.runs(j.ID), 3)
	require.Contains(t, b.read(j.ID).Done, "as often as it was to")
	require.True(t, b.look(s).IsZero())
}

// P9: a slot that comes while the run before it goes on is skipped, visibly.
func TestScheduler_NeverTwoRunsOfAJobAtOnce(t *testing.T) {
	b := newBench(t)
	s := b.scheduler()
	j := b.job("long", "every 10m")
	b.pass(10 * time.Minute)
	b.look(s)
	b.pass(10 * time.Minute)
	b.look(s)
	require.Equal(t, []string{"2 08:10 claimed on_time", "2 08:20 skipped"}, said(b.runs(j.ID)))
	require.Contains(t, b.runs(j.ID)[1].Reason, "still went on")
	b.work(s, sessions.RunFailed)
	require.Equal(t, 1, b.read(j.ID).Streak)
	b.pass(10 * time.Minute)
	b.look(s)
	b.work(s, sessions.RunRan)
	require.Zero(t, b.read(j.ID).Streak)
}

func TestScheduler_WorkThatCanNotBeginIsTriedAgain(t *testing.T) {
	b := newBench(t)
	s := b.scheduler()
	j := b.job("brief", "every 10m")
	other := b.job("other", "every 10m")
	b.pass(10 * time.Minute)
	b.fail = errors.New("the disk is full")
	next, err := s.Look(t.Context())
	require.ErrorContains(t, err, "the disk is full")
	require.ErrorContains(t, err, string(other.ID), "one job's trouble does not hide another's")
	require.Equal(t, b.clock().Add(time.Second), next)
	require.Empty(t, b.runs(j.ID))
	b.fail = nil
	b.look(s)
	require.Equal(t, []string{"2 08:10 claimed on_time"}, said(b.runs(j.ID)))
}

// P10: what a restart cut off gets an end; what outlived it goes on.
func TestScheduler_ARestartInMidRun(t *testing.T) {
	b := newBench(t)
	s := b.scheduler()
	cut, kept := b.job("cut", "every 10m"), b.job("kept", "every 10m")
	b.pass(10 * time.Minute)
	b.look(s)
	alive := b.runs(kept.ID)[0].ID
	later := b.scheduler(alive)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- later.Run(ctx) }()
	require.Eventually(t, func() bool { return b.runs(cut.ID)[0].State.Ended() }, 10*time.Second, time.Millisecond)
	require.Equal(t, []string{"2 08:10 failed"}, said(b.runs(cut.ID)))
	require.Equal(t, "a restart cut it off", b.read(cut.ID).LastReason)
	require.Equal(t, []string{"2 08:10 claimed on_time"}, said(b.runs(kept.ID)))
	j := b.job("new", "every 10m")
	b.pass(10 * time.Minute)
	b.asks.Poke()
	require.Eventually(t, func() bool { return len(b.runs(j.ID)) == 1 }, 10*time.Second, time.Millisecond, "a poke is enough")
	stop()
	require.NoError(t, <-done)
}

func TestScheduler_AJobThatCanNotBeReadIsPutAside(t *testing.T) {
	for name, spec := range map[string]string{"no schedule": `{}`, "a bad one": `{"schedule":{"kind":"cron","expr":"99 * * * *"}}`, "of another kind": `{"schedule":[1]}`} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.scheduler()
			good := b.job("good", "every 10m")
			require.NoError(t, b.store.Update(t.Context(), sessions.EdgeState, func(tx sessions.Tx) error {
				return tx.PutJob(sessions.Job{ID: "0123456789ab", Name: "bad", Spec: json.RawMessage(spec), Progress: json.RawMessage(`{}`), Next: morning})
			}))
			b.pass(10 * time.Minute)
			b.look(s)
			require.Len(t, b.runs(good.ID), 1, "one bad job never hides the others")
			require.NoError(t, b.store.View(t.Context(), func(v sessions.View) error {
				row, err := v.Job("0123456789ab")
				require.True(t, row.Next.IsZero())
				require.Contains(t, string(row.Progress), "broken")
				return err
			}))
		})
	}
}

func TestScheduler_APausedJobHasNoSlots(t *testing.T) {
	b := newBench(t)
	j := b.job("brief", "every 10m", func(p *cron.Plan) { p.Paused = true })
	b.pass(time.Hour)
	require.True(t, b.look(b.scheduler()).IsZero())
	require.Empty(t, b.runs(j.ID))
	j.Plan.Paused = false
	require.NoError(t, j.Replan(b.clock(), b.zone))
	require.Equal(t, b.clock().Add(10*time.Minute), j.Next)
	j.Plan.Times = -1
	require.ErrorContains(t, j.Replan(b.clock(), b.zone), "not allowed")
}

// P9: two schedulers on one store give a thousand slots to their work once each.
func TestScheduler_TwoOnOneStoreAThousandSlots(t *testing.T) {
	b := newBench(t)
	for i := range 1000 {
		b.job(fmt.Sprint(i), "every 10m")
	}
	b.pass(10 * time.Minute)
	var wg sync.WaitGroup
	for range 2 {
		s := b.scheduler()
		wg.Go(func() { b.look(s) })
	}
	wg.Wait()
	require.Len(t, b.begun, 1000)
	seen := map[cron.JobID]bool{}
	for _, run := range b.begun {
		require.False(t, seen[run.Job])
		seen[run.Job] = true
	}
}

// P9: whatever happens to the daemon and the clock, every slot of a job has exactly one end, or is the one that runs.
func TestScheduler_EverySlotHasOneEnd(t *testing.T) {
	zones := []string{"UTC", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca"}
	b := newBench(t)
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom(zones).Draw(rt, "zone")
		loc, err := time.LoadLocation(name)
		require.NoError(t, err)
		b.zone = loc
		b.now = morning.AddDate(0, 0, rapid.IntRange(0, 600).Draw(rt, "day"))
		b.catchUp = rapid.Bool().Draw(rt, "catch up")
		schedule := rapid.SampledFrom([]string{"every 7m", "every 3h", "0 9 * * *", "30 2 * * *", "*/20 1-3 * * *", "0 * * * *", "every weekday at 14:30"}).Draw(rt, "schedule")
		made := b.clock()
		j := b.job("any", schedule)
		defer b.remove(j.ID)
		s := b.scheduler()
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0:
				s = b.scheduler() // a restart
			case 1:
				b.work(s, rapid.SampledFrom([]sessions.RunState{sessions.RunRan, sessions.RunFailed}).Draw(rt, "end"))
			case 2:
				b.fail = errors.New("not now")
				_, _ = s.Look(t.Context())
				b.fail = nil
			default:
				b.pass(time.Duration(rapid.IntRange(1, 60*50).Draw(rt, "minutes")) * time.Minute)
				b.look(s)
			}
		}
		var want []time.Time
		for at := made; ; {
			next, ok := j.Plan.Schedule.Next(at, b.zone)
			if !ok || next.After(b.read(j.ID).Next.Add(-time.Nanosecond)) {
				break
			}
			want, at = append(want, next), next
		}
		ends := map[time.Time]int{}
		for _, run := range b.runs(j.ID) {
			for _, slot := range want {
				if !slot.Before(run.Slot) && !slot.After(run.Until) {
					ends[slot]++
				}
			}
			if run.Slots == 1 && !run.Slot.Equal(run.Until) {
				rt.Fatalf("a run of one slot has two: %+v", run)
			}
		}
		for _, slot := range want {
			if ends[slot] != 1 {
				rt.Fatalf("slot %s of %q in %s has %d ends: %v", slot.In(b.zone), schedule, name, ends[slot], said(b.runs(j.ID)))
			}
		}
	})
}

// What a look costs when nothing is due, and that it leaves no trace in the store.
func BenchmarkLook_TenThousandJobs(b *testing.B) {
	w := newBench(b)
	s := w.scheduler()
	require.NoError(b, w.store.Update(context.Background(), sessions.EdgeState, func(tx sessions.Tx) error {
		sched, err := cron.Parse("every day at 9am", w.clock(), time.UTC)
		if err != nil {
			return err
		}
		for i := range 10_000 {
			j, err := cron.NewJob(fmt.Sprint(i), "test", cron.Plan{Schedule: sched}, w.clock(), time.UTC)
			if err != nil {
				return err
			}
			row, err := j.Row()
			if err != nil {
				return err
			}
			if err := tx.PutJob(row); err != nil {
				return err
			}
		}
		return nil
	}))
	size := func() (n int64) {
		require.NoError(b, w.store.View(context.Background(), func(v sessions.View) error {
			c, err := v.Counts()
			n = c.Bytes
			return err
		}))
		return n
	}
	before := size()
	for b.Loop() {
		w.look(s)
	}
	require.Equal(b, before, size(), "looking writes nothing")
}

// A job that is done goes after a week, one that a file provides when its file says so.
func TestScheduler_JobsThatAreDoneGo(t *testing.T) {
	b := newBench(t)
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	s := b.scheduler()
	go func() { over <- s.Run(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-over) })
	book := cron.NewBook(cron.BookOptions{Store: b.store, Zone: func() *time.Location { return time.UTC }, Now: b.clock})
	once, err := book.Create(ctx, cron.Change{Schedule: ptr("in 5m"), Prompt: ptr("x")}, cron.By{Source: cron.FromCLI})
	require.NoError(t, err)
	kept, err := book.Create(ctx, cron.Change{Schedule: ptr("every 5m"), Prompt: ptr("x")}, cron.By{Source: cron.FromCLI})
	require.NoError(t, err)
	gone := func() bool {
		_, err := book.Find(ctx, string(once.ID))
		return errors.Is(err, sessions.ErrNotFound)
	}
	pass := func(d time.Duration) { b.pass(d); b.asks.Poke() }
	pass(5 * time.Minute)
	require.Eventually(t, func() bool { return b.read(once.ID).Done != "" }, 10*time.Second, 5*time.Millisecond)
	pass(6 * 24 * time.Hour)
	require.Eventually(t, func() bool { return b.read(kept.ID).Next.After(b.clock()) }, 10*time.Second, 5*time.Millisecond)
	require.False(t, gone())
	pass(8 * 24 * time.Hour) // its run was ended with the sweep before
	require.Eventually(t, gone, 10*time.Second, 5*time.Millisecond)
	b.read(kept.ID)
}
