package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"herald/cron"
	"herald/gateway/jobs/brief"
	"herald/gateway/jobs/view"
	"herald/gateway/model"
	"herald/gateway/turn"
	"herald/platforms"
	"herald/sessions"
)

// EndOptions are what Ends work with.
type EndOptions struct {
	Store  sessions.Store
	Briefs *brief.Writer
	// Account names the profile in the addresses of runs.
	Account platforms.AccountID
	// Profile and KeyOptions make the session keys of runs.
	Profile    string
	KeyOptions func() sessions.KeyOptions
	Config     func() Config
	// Requests is poked when there is room for a run again.
	Requests *cron.Requests
	Metrics  Metrics // nil: nothing is counted
	Redact   func(string) string
	// Home is the profile's home, in which the output files are.
	Home string
	Log  zerolog.Logger
	Now  func() time.Time
}

// Ends writes down how runs end. It is made before the turns whose ends it takes (it is a turn.Background) and before
// Jobs, which begin them. It is safe for concurrent use.
type Ends struct {
	o    EndOptions
	room *room
}

// NewEnds returns the Ends of a profile.
func NewEnds(o EndOptions) *Ends {
	return &Ends{o: o, room: &room{most: func() int { return o.Config().MaxParallel }, freed: o.Requests.Poke}}
}

// finish is the end of a run before it is written down.
type finish struct {
	brief.Ended
	whole  string // what is kept in the output file; empty: Text
	silent string // why nothing is delivered of a run that went well: "silent" or "no_change"; empty: something is
	// unreachable says that the model was never reached, so that the run may be tried again.
	unreachable bool
	// watched is what the monitor has seen; nil is nothing. It is noted with the job, for the next time, when the run has
	// gone well.
	watched json.RawMessage
}

// Is implements turn.Background.
func (e *Ends) Is(at platforms.Address) bool { return IsRun(at) }

// End implements turn.Background: the run of a turn ends with it.
func (e *Ends) End(ctx context.Context, t turn.End) func(tx sessions.Tx) ([]*sessions.OutboxRow, error) {
	of := e.key(t.Turn.Address)
	over := func(tx sessions.Tx) error { return tx.EndSession(of, "the run has ended", e.o.Now()) }
	run, err := e.open(ctx, t.Turn.Address)
	var job cron.Job
	var task cron.Task
	if err == nil {
		job, task, err = e.job(ctx, run.Job)
	}
	if err != nil { // removed, or ended by somebody: there is nobody to tell
		if !errors.Is(err, sessions.ErrNotFound) {
			e.o.Log.Error().Err(err).Str("job", string(t.Turn.Address.Chat)).
				Msg("cron: the run of a turn can't be read; its answer stays in its session")
		}
		return e.leaving(func(tx sessions.Tx) ([]*sessions.OutboxRow, error) { return nil, over(tx) })
	}
	f := ofTurn(t)
	f.Job, f.Task, f.Run, f.Of = job, task, run, of
	end := e.plan(ctx, f)
	return e.leaving(func(tx sessions.Tx) ([]*sessions.OutboxRow, error) {
		if _, err := tx.Run(run.ID); errors.Is(err, sessions.ErrNotFound) { // removed since it was read
			return nil, over(tx)
		}
		return end(tx, run)
	})
}

// open returns the run of a turn's address; ErrNotFound when it has ended or never was.
func (e *Ends) open(ctx context.Context, at platforms.Address) (run sessions.Run, err error) {
	id, _ := JobOf(at)
	err = e.o.Store.View(ctx, func(v sessions.View) error {
		open, err := v.Runs(sessions.RunQuery{Job: id, State: sessions.RunClaimed})
		if err != nil {
			return err
		}
		for _, r := range open {
			if threadOf(r) == at.Thread {
				run = r
				return nil
			}
		}
		return sessions.ErrNotFound
	})
	return run, err
}

// job returns a job and what it does.
func (e *Ends) job(ctx context.Context, id cron.JobID) (job cron.Job, t cron.Task, err error) {
	err = e.o.Store.View(ctx, func(v sessions.View) error {
		row, err := v.Job(id)
		if err != nil {
			return err
		}
		if job, err = cron.FromRow(row); err != nil {
			return err
		}
		t, err = job.Plan.ReadTask()
		return err
	})
	return job, t, err
}

// leaving makes room for the next run when the end of one is written, once.
func (e *Ends) leaving(end func(tx sessions.Tx) ([]*sessions.OutboxRow, error)) func(tx sessions.Tx) ([]*sessions.OutboxRow, error) {
	left := false
	return func(tx sessions.Tx) ([]*sessions.OutboxRow, error) {
		rows, err := end(tx)
		if err == nil && !left {
			left = true
			e.room.leave()
		}
		return rows, err
	}
}

// ofTurn says how the end of a turn ends its run.
func ofTurn(e turn.End) finish {
	f := finish{Ended: brief.Ended{State: sessions.RunFailed, Reason: e.Reason},
		unreachable: !e.Reached && e.Kind == model.Down && cron.CauseOf(e.Reason) == cron.CauseUnreachable}
	switch {
	case e.State == sessions.TurnStopped, e.State == sessions.TurnInterrupted:
		f.Reason, f.Mute = "a person stopped it", true
	case e.State != sessions.TurnDone:
		if e.Idle {
			f.Reason = "no activity for too long: " + e.Reason
		}
	default:
		f.whole, f.Text = e.Text, cron.Deliverable(e.Text)
		switch {
		case cron.Silent(f.Text):
			f.State, f.Reason, f.silent, f.Text = sessions.RunRan, "", "silent", ""
		case f.Text == "":
			f.Reason = "the agent gave no answer"
		default:
			f.State, f.Reason = sessions.RunRan, ""
		}
	}
	return f
}

// plan does what must be done before a run can end: it keeps the output, finds the places it goes to, and writes it for
// each. The function it returns writes the end down. It changes nothing when the run has an end already.
func (e *Ends) plan(ctx context.Context, f finish) func(tx sessions.Tx, run sessions.Run) ([]*sessions.OutboxRow, error) {
	f.Mute = f.Mute || f.State == sessions.RunFailed && e.acknowledged(ctx, f)
	result := brief.Result{Silent: f.silent, Blocked: f.Blocked != ""}
	drafts := e.o.Briefs.Write(ctx, f.Ended, &result)
	if path, err := e.keep(f, result); err != nil {
		e.o.Log.Error().Err(err).Str("job", string(f.Job.ID)).
			Msg("cron: the output of a run can't be kept in its file; it is delivered all the same")
		result.Problems = append(result.Problems, e.o.Redact(err.Error()))
	} else {
		result.Output = path
	}
	return func(tx sessions.Tx, run sessions.Run) ([]*sessions.OutboxRow, error) {
		result := result // a copy each time that the transaction is tried
		result.Deliveries = slices.Clone(result.Deliveries)
		return e.conclude(tx, f, run, &result, drafts)
	}
}

// acknowledged reports whether a person has said to want no more notices of such a failure of the job.
func (e *Ends) acknowledged(ctx context.Context, f finish) (yes bool) {
	err := e.o.Store.View(context.WithoutCancel(ctx), func(v sessions.View) (err error) {
		yes, err = view.Acknowledged(v, f.Job.ID, f.Reason)
		return err
	})
	if err != nil {
		e.o.Log.Error().Err(err).Str("job", string(f.Job.ID)).
			Msg("cron: whether a failure was acknowledged can't be read; its notice is sent")
	}
	return err == nil && yes
}

// keepRuns is how many ended runs of a job are kept.
const keepRuns = 500

// conclude is the last transaction of a run.
func (e *Ends) conclude(tx sessions.Tx, f finish, run sessions.Run, result *brief.Result, drafts []brief.Draft) (
	[]*sessions.OutboxRow, error) {
	now := e.o.Now()
	if f.unreachable && e.o.Config().Retry {
		at, again, err := cron.TryAgain(tx, run, now)
		if err != nil {
			return nil, err
		}
		if again {
			result.Retry, result.Deliveries, drafts = at, nil, nil
		}
	}
	rows, err := e.o.Briefs.Queue(tx, run.ID, result, drafts)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	if run.State.Ended() { // claimed with its end
		err = tx.SetRunResult(run.ID, data)
	} else {
		err = cron.EndRun(tx, run.ID, f.State, f.Reason, data, now)
	}
	if err != nil {
		return nil, err
	}
	if err := remember(tx, f, result); err != nil {
		return nil, err
	}
	if _, err := tx.TrimRuns(run.Job, keepRuns); err != nil {
		return nil, err
	}
	if f.Of != "" {
		if err := tx.EndSession(f.Of, "the run has ended", now); err != nil {
			return nil, err
		}
	}
	if e.o.Metrics != nil {
		e.o.Metrics.RunEnded(run.Kind, f.State, took(run.Slot, run.Began), took(run.Began, now))
	}
	return rows, nil
}

// remember notes with the job what a run has left for the next one.
func remember(tx sessions.Tx, f finish, result *brief.Result) error {
	return cron.Amend(tx, f.Job.ID, func(job *cron.Job) bool {
		before := job.Progress
		job.Alert, job.Undelivered, job.Seen = f.Blocked, "", nil
		if seen := cmp.Or(string(f.watched), string(before.Seen)); seen != "" && f.State == sessions.RunRan {
			job.Watched = json.RawMessage(seen)
		}
		if len(result.Problems) > 0 {
			job.Undelivered = strings.Join(strings.Fields(result.Problems[0]), " ")
		}
		return job.Alert != before.Alert || job.Undelivered != before.Undelivered || f.watched != nil || before.Seen != nil
	})
}

// keep writes the output file of a run.
func (e *Ends) keep(f finish, result brief.Result) (string, error) {
	out := cron.Output{Job: f.Job.ID, Name: e.o.Redact(f.Job.Name), Slot: f.Run.Slot, Ended: e.o.Now(), Status: cron.OutputOK,
		Why: f.Reason, Body: f.whole}
	if out.Body == "" {
		out.Body = f.Text
	}
	out.Body = e.o.Redact(out.Body)
	switch {
	case f.State == sessions.RunMissed:
		out.Status = cron.OutputMissed
	case f.State != sessions.RunRan:
		out.Status = cron.OutputFailed
	case f.silent == "no_change":
		out.Status = cron.OutputNoChange
	case f.silent != "":
		out.Status = cron.OutputSilent
	}
	for _, d := range result.Deliveries {
		out.Sent = append(out.Sent, platforms.TargetOf(d.Address, false))
	}
	return cron.Outputs{Home: e.o.Home, Keep: e.o.Config().Keep}.Write(out)
}

// took is how long something took, never negative.
func took(from, to time.Time) time.Duration { return max(0, to.Sub(from)) }
