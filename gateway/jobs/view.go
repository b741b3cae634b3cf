package jobs

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"herald/cron"
	"herald/gateway/delivery"
	"herald/sessions"
)

// State is what a job is doing, for people.
type State string

// The states, those that want somebody first.
const (
	StateBroken    State = "broken"  // it can't be read, and has no runs
	StateBlocked   State = "blocked" // its newest run could not begin
	StateRunning   State = "running"
	StateScheduled State = "scheduled"
	StatePaused    State = "paused"
	StateDone      State = "done" // no slot will come any more
)

// States are all of them, in their order.
var States = [...]State{StateBroken, StateBlocked, StateRunning, StateScheduled, StatePaused, StateDone}

const (
	// Upcoming is how many next runs are shown of a job.
	Upcoming = 3
	// OverdueAfter is how late a slot must be to be called overdue: by then it counts as late even if it runs (spec A4.15).
	OverdueAfter = 5 * time.Minute
	// Recently is how far back "recently" goes: what was missed or failed since then is shown first.
	Recently = 24 * time.Hour
	// mostRecent bounds how many runs of that time are counted.
	mostRecent = 10_000
)

// JobView is what people see of a job.
type JobView struct {
	ID      cron.JobID `json:"id"`
	Name    string     `json:"name"`
	Source  string     `json:"source"` // see sessions.Job
	Managed bool       `json:"managed,omitempty"`
	// Schedule is as its author wrote it; Plan has it for words in a language.
	Schedule string        `json:"schedule"`
	Plan     cron.Schedule `json:"-"`
	Times    int           `json:"times,omitempty"` // after how many runs it is done; 0: never
	Started  int           `json:"started,omitempty"`
	Task     cron.Task     `json:"task"`
	State    State         `json:"state"`
	// Why is the reason of broken, blocked, paused and done.
	Why string `json:"why,omitempty"`
	// Next are the next runs, at most Upcoming. Overdue says that the first of them is past.
	Next    []time.Time `json:"next,omitempty"`
	Overdue bool        `json:"overdue,omitempty"`
	// Last is the newest run that has ended; Running one that goes on.
	Last    *RunView `json:"last,omitempty"`
	Running *RunView `json:"running,omitempty"`
	// Streak counts the failures in a row; Missed and Failed the slots and runs of that end of the last 24 hours.
	Streak int `json:"streak,omitempty"`
	Missed int `json:"missed,omitempty"`
	Failed int `json:"failed,omitempty"`
	// Undelivered is why the newest output did not arrive somewhere.
	Undelivered string    `json:"undelivered,omitempty"`
	Created     time.Time `json:"created"`
	Updated     time.Time `json:"updated"`

	job cron.Job
}

// Troubled reports whether somebody should look at the job.
func (v JobView) Troubled() bool {
	return v.State == StateBroken || v.State == StateBlocked || v.Overdue || v.Streak > 0 || v.Missed > 0 || v.Failed > 0 || v.Undelivered != ""
}

// RunView is what people see of a run.
type RunView struct {
	ID  sessions.RunID `json:"id"`
	Job cron.JobID     `json:"job"`
	// Slot is when it was due, Until the last slot of a missed stretch of so many Slots.
	Slot    time.Time         `json:"slot"`
	Until   time.Time         `json:"until"`
	Slots   int               `json:"slots"`
	Kind    sessions.RunKind  `json:"kind"`
	State   sessions.RunState `json:"state"`
	Reason  string            `json:"reason,omitempty"`
	Began   time.Time         `json:"began"`
	Ended   time.Time         `json:"ended,omitzero"`
	Output  string            `json:"output,omitempty"` // a file
	Silent  string            `json:"silent,omitempty"` // why nothing was sent
	Retry   time.Time         `json:"retry,omitzero"`   // when it is tried again
	Places  []PlaceView       `json:"places,omitempty"`
	Trouble []string          `json:"trouble,omitempty"` // with the targets or the output
}

// PlaceView is what became of a brief at one place.
type PlaceView struct {
	Place string          `json:"place"` // as a delivery target
	Token string          `json:"token"` // what the author wrote for it
	From  cron.Provenance `json:"from,omitempty"`
	// State is sent, failed, unknown, or pending while the platform has not answered; Why the reason of all but sent.
	State    sessions.OutboxState `json:"state"`
	Why      string               `json:"why,omitempty"`
	Mirrored []string             `json:"mirrored,omitempty"` // how it became part of a conversation there
}

// Viewer reads what people see of scheduled jobs, with or without a daemon that runs them.
type Viewer struct {
	Store sessions.Store
	Zone  func() *time.Location
	Now   func() time.Time
}

// List returns jobs, those that want somebody first and then by their next run: limit of them (0: all) behind the first
// skip. total is how many there are.
func (v Viewer) List(ctx context.Context, skip, limit int) (list []JobView, total int, err error) {
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
func (v Viewer) Of(ctx context.Context, some []cron.Job) (list []JobView, err error) {
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

// Job returns one job and its newest runs, at most limit. ErrNotFound when there is none of that id.
func (v Viewer) Job(ctx context.Context, id cron.JobID, limit int) (view JobView, runs []RunView, err error) {
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
func (v Viewer) Runs(ctx context.Context, q sessions.RunQuery) (runs []RunView, err error) {
	err = v.Store.View(ctx, func(s sessions.View) error {
		runs, err = v.runs(s, q)
		return err
	})
	return runs, err
}

func (v Viewer) runs(s sessions.View, q sessions.RunQuery) ([]RunView, error) {
	list, err := s.Runs(q)
	if err != nil {
		return nil, err
	}
	out := make([]RunView, len(list))
	for i, run := range list {
		if out[i], err = viewRun(s, run); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// all returns every job as view does.
func (v Viewer) all(s sessions.View) ([]JobView, error) {
	rows, err := s.Jobs()
	if err != nil {
		return nil, err
	}
	r, err := v.recent(s)
	if err != nil {
		return nil, err
	}
	list := make([]JobView, len(rows))
	for i, row := range rows {
		list[i] = v.view(cron.Read(row), r)
	}
	slices.SortStableFunc(list, byNeed)
	return list, nil
}

// byNeed sorts jobs that want somebody first, then those with a next run by it, and the others behind.
func byNeed(a, b JobView) int {
	rank := func(v JobView) int {
		switch {
		case v.Troubled():
			return 0
		case len(v.Next) > 0 || v.State == StateRunning:
			return 1
		}
		return 2
	}
	first := func(v JobView) time.Time {
		if len(v.Next) > 0 {
			return v.Next[0]
		}
		return time.Time{}
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(slices.Index(States[:], a.State), slices.Index(States[:], b.State)), first(a).Compare(first(b)))
}

// recent is what happened lately, by job.
type recent struct {
	open           map[cron.JobID]sessions.Run
	missed, failed map[cron.JobID]int
}

func (v Viewer) recent(s sessions.View) (recent, error) {
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
func (v Viewer) lately(s sessions.View, state sessions.RunState, fn func(sessions.Run)) error {
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
func (v Viewer) view(j cron.Job, r recent) JobView {
	now := v.Now()
	out := JobView{ID: j.ID, Name: j.Name, Source: j.Source, Managed: j.Managed(), Schedule: j.Plan.Schedule.Display, Plan: j.Plan.Schedule,
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
func (v Viewer) fill(s sessions.View, view *JobView) error {
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

// viewRun is a run with what became of its output. s is asked why something waits; nil asks nobody.
func viewRun(s sessions.View, run sessions.Run) (RunView, error) {
	r := ReadResult(run)
	out := RunView{ID: run.ID, Job: run.Job, Slot: run.Slot, Until: run.Until, Slots: max(1, run.Slots), Kind: run.Kind, State: run.State,
		Reason: run.Reason, Began: run.Began, Ended: run.Ended, Output: r.Output, Silent: r.Silent, Retry: r.Retry, Trouble: r.Problems}
	for _, d := range r.Deliveries {
		place := PlaceView{Place: delivery.TargetOf(d.Address, false), Token: d.Token, From: d.From, State: d.State, Why: d.Error, Mirrored: d.Mirrored}
		if d.State == sessions.OutPending && s != nil {
			why, err := waits(s, d.Rows)
			if err != nil {
				return out, err
			}
			place.Why = why
		}
		out.Places = append(out.Places, place)
	}
	return out, nil
}

// waits says why a message that is not sent yet was not: the error of its newest try.
func waits(s sessions.View, rows []sessions.OutboxID) (string, error) {
	for _, id := range rows {
		row, err := s.OutboxRow(id)
		if errors.Is(err, sessions.ErrNotFound) {
			continue
		}
		if err != nil {
			return "", err
		}
		if row.State == sessions.OutPending && row.Error != "" {
			return row.Error, nil
		}
	}
	return "", nil
}

// Late is how long after its slot a run began; never negative.
func (r RunView) Late() time.Duration { return max(0, r.Began.Sub(r.Until)) }

// Took is how long a run went on; zero while it does.
func (r RunView) Took() time.Duration {
	if r.Ended.IsZero() {
		return 0
	}
	return max(0, r.Ended.Sub(r.Began))
}
