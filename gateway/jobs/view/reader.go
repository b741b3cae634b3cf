package view

import (
	"cmp"
	"context"
	"slices"
	"time"

	"herald/cron"
	"herald/sessions"
)

// Reader reads what people see of scheduled jobs, with or without a daemon that runs them.
type Reader struct {
	Store sessions.Store
	Zone  func() *time.Location
	Now   func() time.Time
}

// List returns jobs, those that want somebody first and then by their next run: limit of them (0: all) behind the first
// skip. total is how many there are.
func (v Reader) List(ctx context.Context, skip, limit int) (list []Job, total int, err error) {
	err = v.Store.View(ctx, func(s sessions.View) error {
		if list, err = v.all(s); err != nil {
			return err
		}
		total = len(list)
		list = list[min(max(skip, 0), total):]
		if limit > 0 {
			list = list[:min(limit, len(list))]
		}
		for i := range list {
			if err := v.fill(s, &list[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return list, total, err
}

// Of returns the views of some jobs, in their order.
func (v Reader) Of(ctx context.Context, some []cron.Job) (list []Job, err error) {
	err = v.Store.View(ctx, func(s sessions.View) error {
		r, err := v.recent(s)
		if err != nil {
			return err
		}
		for _, j := range some {
			view := v.view(j, r)
			if err := v.fill(s, &view); err != nil {
				return err
			}
			list = append(list, view)
		}
		return nil
	})
	return list, err
}

// Job returns one job and its newest runs, at most limit. ErrNotFound when no job has that id.
func (v Reader) Job(ctx context.Context, id cron.JobID, limit int) (view Job, runs []Run, err error) {
	err = v.Store.View(ctx, func(s sessions.View) error {
		row, err := s.Job(id)
		if err != nil {
			return err
		}
		r, err := v.recent(s)
		if err != nil {
			return err
		}
		view = v.view(cron.Read(row), r)
		if err := v.fill(s, &view); err != nil {
			return err
		}
		runs, err = v.runs(s, sessions.RunQuery{Job: id, Limit: limit})
		return err
	})
	return view, runs, err
}

// Runs returns the newest runs that a query selects.
func (v Reader) Runs(ctx context.Context, q sessions.RunQuery) (runs []Run, err error) {
	err = v.Store.View(ctx, func(s sessions.View) error {
		runs, err = v.runs(s, q)
		return err
	})
	return runs, err
}

func (v Reader) runs(s sessions.View, q sessions.RunQuery) ([]Run, error) {
	list, err := s.Runs(q)
	if err != nil {
		return nil, err
	}
	out := make([]Run, len(list))
	for i, run := range list {
		if out[i], err = viewRun(s, run); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// all returns every job as view does.
func (v Reader) all(s sessions.View) ([]Job, error) {
	rows, err := s.Jobs()
	if err != nil {
		return nil, err
	}
	r, err := v.recent(s)
	if err != nil {
		return nil, err
	}
	list := make([]Job, len(rows))
	for i, row := range rows {
		list[i] = v.view(cron.Read(row), r)
	}
	slices.SortStableFunc(list, byNeed)
	return list, nil
}

// byNeed sorts jobs that want somebody first, then those with a next run by it, and the others behind.
func byNeed(a, b Job) int {
	rank := func(v Job) int {
		switch {
		case v.Troubled():
			return 0
		case len(v.Next) > 0 || v.State == StateRunning:
			return 1
		}
		return 2
	}
	first := func(v Job) time.Time {
		if len(v.Next) > 0 {
			return v.Next[0]
		}
		return time.Time{}
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(slices.Index(States[:], a.State), slices.Index(States[:], b.State)),
		first(a).Compare(first(b)))
}

// recent is what happened lately, by job.
type recent struct {
	open           map[cron.JobID]sessions.Run
	missed, failed map[cron.JobID]int
}

func (v Reader) recent(s sessions.View) (recent, error) {
	r := recent{open: map[cron.JobID]sessions.Run{}, missed: map[cron.JobID]int{}, failed: map[cron.JobID]int{}}
	open, err := s.Runs(sessions.RunQuery{State: sessions.RunClaimed, Limit: mostRecent})
	if err != nil {
		return r, err
	}
	for _, run := range open {
		r.open[run.Job] = run
	}
	for state, count := range map[sessions.RunState]map[cron.JobID]int{sessions.RunMissed: r.missed, sessions.RunFailed: r.failed} {
		err := v.lately(s, state, func(run sessions.Run) { count[run.Job] += max(1, run.Slots) })
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// lately calls fn for the runs of a state (empty: all) that began in the time of Recently, the newest first; at most
// mostRecent.
func (v Reader) lately(s sessions.View, state sessions.RunState, fn func(sessions.Run)) error {
	since := v.Now().Add(-Recently)
	q := sessions.RunQuery{State: state, Limit: 200}
	for seen := 0; seen < mostRecent; {
		runs, err := s.Runs(q)
		if err != nil || len(runs) == 0 {
			return err
		}
		for _, run := range runs {
			if run.Began.Before(since) {
				return nil
			}
			fn(run)
		}
		seen += len(runs)
		q.Before = runs[len(runs)-1].ID
	}
	return nil
}

// view is a job with no more than its next run.
func (v Reader) view(j cron.Job, r recent) Job {
	now := v.Now()
	out := Job{ID: j.ID, Name: j.Name, Source: j.Source, Managed: j.Managed(), Schedule: j.Plan.Schedule.Display, Plan: j.Plan.Schedule,
		Times: j.Plan.Times, Started: j.Started, Streak: j.Streak, Missed: r.missed[j.ID], Failed: r.failed[j.ID],
		Undelivered: j.Undelivered, Created: j.Created, Updated: j.Updated}
	if out.job = j; !j.Next.IsZero() {
		out.Next = []time.Time{j.Next} // the others are found by fill, for those that are shown
	}
	task, err := j.Plan.ReadTask()
	out.Task = task
	open, running := r.open[j.ID]
	if running {
		run, _ := viewRun(nil, open)
		out.Running = &run
	}
	out.Overdue = !running && len(out.Next) > 0 && now.Sub(out.Next[0]) > OverdueAfter
	switch {
	case j.Broken != "":
		out.State, out.Why = StateBroken, j.Broken
	case err != nil:
		out.State, out.Why = StateBroken, err.Error()
	case running:
		out.State = StateRunning
	case j.Done != "":
		out.State, out.Why = StateDone, j.Done
	case j.Plan.Paused:
		out.State, out.Why = StatePaused, j.Plan.PausedWhy
	case j.Alert != "":
		out.State, out.Why = StateBlocked, j.Alert
	default:
		out.State = StateScheduled
	}
	return out
}

// fill adds what takes longer to find: the runs to come, and the newest one that has ended.
func (v Reader) fill(s sessions.View, view *Job) error {
	view.Next = view.job.Upcoming(Upcoming, v.Now(), v.Zone())
	list, err := s.Runs(sessions.RunQuery{Job: view.ID, Limit: 2})
	if err != nil {
		return err
	}
	for _, run := range list {
		if !run.State.Ended() {
			continue
		}
		last, err := viewRun(s, run)
		view.Last = &last
		return err
	}
	return nil
}
