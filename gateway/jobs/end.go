package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"herald/cron"
	"herald/gateway/delivery"
	"herald/gateway/model"
	"herald/gateway/turn"
	"herald/sessions"
)

// finish is the end of a run before it is written down.
type finish struct {
	job  cron.Job
	task cron.Task
	run  sessions.Run
	// of is the session that the run had; empty for none. It ends with it.
	of     sessions.Key
	state  sessions.RunState
	reason string
	text   string // what is delivered of a run that went well; empty: nothing
	whole  string // what is kept in the output file; empty: text
	silent string // why nothing is delivered of a run that went well: "silent" or "no_change"; empty: something is
	// blocked is why the job can't run at all; mute keeps its notice back, because it was told before.
	blocked string
	mute    bool
	// unreachable says that the model was never reached, so that the run may be tried again.
	unreachable bool
	// watched is what the monitor has seen; nil is nothing. It is noted with the job, for the next time, when the run has
	// gone well.
	watched json.RawMessage
}

// Result is what sessions.Run.Result holds.
type Result struct {
	// Output is the path of the output file; empty when it could not be written.
	Output string `json:"output,omitempty"`
	// Silent is why nothing was sent of a run that went well: "silent", "no_change".
	Silent string `json:"silent,omitempty"`
	// Blocked says that the job could not begin.
	Blocked bool `json:"blocked,omitempty"`
	// Retry is when the run is tried again.
	Retry time.Time `json:"retry,omitzero"`
	// Deliveries are the places that the output goes to; Problems what was wrong with the targets.
	Deliveries []Delivery `json:"deliveries,omitempty"`
	Problems   []string   `json:"problems,omitempty"`
}

// Delivery is one place that a brief goes to.
type Delivery struct {
	cron.Target
	// State is pending until the platform has answered for every part of the brief; then sent, failed or unknown, the
	// worst of them.
	State sessions.OutboxState `json:"state"`
	Error string               `json:"error,omitempty"`
	Rows  []sessions.OutboxID  `json:"rows,omitempty"`
	// Mirrored says how the brief became part of conversations there: "thread", "channel", "dm", "mirror".
	Mirrored []string `json:"mirrored,omitempty"`
}

// ReadResult reads what a run left; the zero Result when it can't be read.
func ReadResult(run sessions.Run) Result {
	var r Result
	if json.Unmarshal(run.Result, &r) != nil {
		return Result{}
	}
	return r
}

// End implements turn.Background: the run of a turn ends with it.
func (j *Jobs) End(ctx context.Context, e turn.End) func(tx sessions.Tx) ([]*sessions.OutboxRow, error) {
	of := j.o.Key(e.Turn.Address)
	over := func(tx sessions.Tx) error { return tx.EndSession(of, "the run has ended", j.o.Now()) }
	run, err := j.openRun(ctx, e.Turn.Address)
	var job cron.Job
	var t cron.Task
	if err == nil {
		job, t, err = j.of(ctx, run.Job)
	}
	if err != nil { // removed meanwhile, or ended by somebody: there is nobody to tell
		if !errors.Is(err, sessions.ErrNotFound) {
			j.o.Log.Error().Err(err).Str("job", string(e.Turn.Address.Chat)).Msg("cron: the run of a turn can't be read; its answer stays in its session")
		}
		return j.leaving(func(tx sessions.Tx) ([]*sessions.OutboxRow, error) { return nil, over(tx) })
	}
	f := ofTurn(e)
	f.job, f.task, f.run, f.of = job, t, run, of
	end := j.plan(ctx, f)
	return j.leaving(func(tx sessions.Tx) ([]*sessions.OutboxRow, error) {
		if _, err := tx.Run(run.ID); errors.Is(err, sessions.ErrNotFound) { // removed since it was read
			return nil, over(tx)
		}
		return end(tx, run)
	})
}

// leaving gives the place of a run back when its end is written, once.
func (j *Jobs) leaving(end func(tx sessions.Tx) ([]*sessions.OutboxRow, error)) func(tx sessions.Tx) ([]*sessions.OutboxRow, error) {
	left := false
	return func(tx sessions.Tx) ([]*sessions.OutboxRow, error) {
		rows, err := end(tx)
		if err == nil && !left {
			left = true
			j.leave()
		}
		return rows, err
	}
}

// ofTurn says how the end of a turn ends its run.
func ofTurn(e turn.End) finish {
	f := finish{state: sessions.RunFailed, reason: e.Reason, unreachable: !e.Reached && e.Kind == model.Down && cron.CauseOf(e.Reason) == cron.CauseUnreachable}
	switch {
	case e.State == sessions.TurnStopped, e.State == sessions.TurnInterrupted:
		f.reason, f.mute = "a person stopped it", true
	case e.State != sessions.TurnDone:
		if e.Idle {
			f.reason = "no activity for too long: " + e.Reason
		}
	default:
		f.whole, f.text = e.Text, cron.Deliverable(e.Text)
		switch {
		case cron.Silent(f.text):
			f.state, f.reason, f.silent, f.text = sessions.RunRan, "", "silent", ""
		case f.text == "":
			f.reason = "the agent gave no answer"
		default:
			f.state, f.reason = sessions.RunRan, ""
		}
	}
	return f
}

// plan does what must be done before a run can end: it keeps the output, finds the places it goes to, and renders it for
// each. The function it returns writes the end down. It changes nothing when the run has an end already.
func (j *Jobs) plan(ctx context.Context, f finish) func(tx sessions.Tx, run sessions.Run) ([]*sessions.OutboxRow, error) {
	f.mute = f.mute || f.state == sessions.RunFailed && j.acknowledged(ctx, f)
	result := Result{Silent: f.silent, Blocked: f.blocked != ""}
	briefs := j.briefs(ctx, f, &result)
	if path, err := j.keep(f, result); err != nil {
		j.o.Log.Error().Err(err).Str("job", string(f.job.ID)).Msg("cron: the output of a run can't be kept in its file; it is delivered all the same")
		result.Problems = append(result.Problems, j.o.Redact(err.Error()))
	} else {
		result.Output = path
	}
	return func(tx sessions.Tx, run sessions.Run) ([]*sessions.OutboxRow, error) {
		result := result // anew each time that the transaction is tried
		result.Deliveries = slices.Clone(result.Deliveries)
		return j.conclude(tx, f, run, &result, briefs)
	}
}

// acknowledged reports whether a person has said to want no more notices of such a failure of the job.
func (j *Jobs) acknowledged(ctx context.Context, f finish) (yes bool) {
	err := j.o.Store.View(context.WithoutCancel(ctx), func(v sessions.View) (err error) {
		yes, err = acknowledged(v, f.job.ID, f.reason)
		return err
	})
	if err != nil {
		j.o.Log.Error().Err(err).Str("job", string(f.job.ID)).Msg("cron: whether a failure was acknowledged can't be read; it is told")
	}
	return err == nil && yes
}

// conclude is the last transaction of a run.
func (j *Jobs) conclude(tx sessions.Tx, f finish, run sessions.Run, result *Result, briefs []brief) ([]*sessions.OutboxRow, error) {
	now := j.o.Now()
	if f.unreachable {
		at, again, err := j.scheduler.Again(tx, run)
		if err != nil {
			return nil, err
		}
		if again {
			result.Retry, result.Deliveries, briefs = at, nil, nil
		}
	}
	rows, err := j.queue(tx, run, result, briefs)
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
		err = j.scheduler.EndIn(tx, run.ID, f.state, f.reason, data)
	}
	if err != nil {
		return nil, err
	}
	if err := j.remember(tx, f, result); err != nil {
		return nil, err
	}
	if _, err := tx.TrimRuns(run.Job, keepRuns); err != nil {
		return nil, err
	}
	if f.of != "" {
		if err := tx.EndSession(f.of, "the run has ended", now); err != nil {
			return nil, err
		}
	}
	if j.o.Metrics != nil {
		j.o.Metrics.RunEnded(run.Kind, f.state, took(run.Slot, run.Began), took(run.Began, now))
	}
	return rows, nil
}

// keepRuns is how many ended runs of a job are kept.
const keepRuns = 500

// remember notes with the job what a run has left for the next one.
func (j *Jobs) remember(tx sessions.Tx, f finish, result *Result) error {
	return cron.Amend(tx, f.job.ID, func(job *cron.Job) bool {
		before := job.Progress
		job.Alert, job.Undelivered, job.Seen = f.blocked, "", nil
		if seen := cmp.Or(string(f.watched), string(before.Seen)); seen != "" && f.state == sessions.RunRan {
			job.Watched = json.RawMessage(seen)
		}
		if len(result.Problems) > 0 {
			job.Undelivered = oneLine(result.Problems[0])
		}
		return job.Alert != before.Alert || job.Undelivered != before.Undelivered || f.watched != nil || before.Seen != nil
	})
}

// keep writes the output file of a run.
func (j *Jobs) keep(f finish, result Result) (string, error) {
	out := cron.Output{Job: f.job.ID, Name: j.o.Redact(f.job.Name), Slot: f.run.Slot, Ended: j.o.Now(), Status: cron.OutputOK, Why: f.reason, Body: f.whole}
	if out.Body == "" {
		out.Body = f.text
	}
	out.Body = j.o.Redact(out.Body)
	switch {
	case f.state == sessions.RunMissed:
		out.Status = cron.OutputMissed
	case f.state != sessions.RunRan:
		out.Status = cron.OutputFailed
	case f.silent == "no_change":
		out.Status = cron.OutputNoChange
	case f.silent != "":
		out.Status = cron.OutputSilent
	}
	for _, d := range result.Deliveries {
		out.Sent = append(out.Sent, delivery.TargetOf(d.Address, false))
	}
	return cron.Outputs{Home: j.o.Home, Keep: j.o.Config().Keep}.Write(out)
}
