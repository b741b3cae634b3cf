package jobs

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"herald/cron"
	"herald/gateway/router"
	"herald/platforms"
	"herald/sessions"
)

// address is where a run lives: each has its own session.
func (j *Jobs) address(run sessions.Run) platforms.Address {
	return platforms.Address{Platform: Platform, Account: j.o.Account, Chat: platforms.ChatID(run.Job), Thread: threadOf(run)}
}

func threadOf(run sessions.Run) platforms.ThreadID {
	return platforms.ThreadID(strconv.FormatInt(run.Slot.UnixMilli(), 10))
}

// JobOf returns the job of a run's address; ok is false for every other address.
func JobOf(at platforms.Address) (id cron.JobID, ok bool) {
	return cron.JobID(at.Chat), at.Platform == Platform
}

// start begins the work of a slot.
func (j *Jobs) start(ctx context.Context, s cron.Start) error {
	if !j.enter() {
		return cron.ErrFull
	}
	t, err := s.Job.Plan.ReadTask()
	if err == nil && j.o.Config().Preflight {
		err = j.preflight(ctx, t)
	}
	staged, text := t.Script != "" || t.Monitored(), ""
	if err == nil && !staged {
		text, err = j.prompt(s, t, findings{})
	}
	switch {
	case err != nil:
		defer j.leave()
		return j.settleWith(ctx, j.blocked(s, t, err), s.Claim)
	case staged:
		err = j.stage(ctx, s, t)
	default:
		err = j.wake(ctx, s, text, s.Claim)
	}
	if err != nil {
		j.leave()
	}
	return err
}

// preflight reports what keeps a run from being of any use.
func (j *Jobs) preflight(ctx context.Context, t cron.Task) error {
	if targets, problems := j.targets(ctx, t.Deliver, t.Origin); len(targets) == 0 && len(problems) > 0 {
		return problems[0]
	}
	if j.o.Ready == nil {
		return nil
	}
	return j.o.Ready(ctx, t)
}

// enter takes one of Config.MaxParallel runs.
func (j *Jobs) enter() bool {
	limit := j.o.Config().MaxParallel
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closing || limit > 0 && j.running >= limit {
		return false
	}
	j.running++
	return true
}

// leave gives it back: a slot that waits may begin.
func (j *Jobs) leave() {
	j.mu.Lock()
	j.running = max(0, j.running-1) // a turn that an earlier process has begun was never counted
	j.mu.Unlock()
	if j.o.Config().MaxParallel > 0 {
		j.scheduler.Poke()
	}
}

// wake gives the prompt of a run to the agent. with runs in the same transaction.
func (j *Jobs) wake(ctx context.Context, s cron.Start, text string, with func(tx sessions.Tx) (sessions.Run, error)) error {
	at := j.address(s.Run)
	w := router.Wake{ID: fmt.Sprintf("%s:%s", s.Run.Job, at.Thread), Source: string(Platform), Key: j.o.Key(at), Address: at,
		Origin: sessions.Origin{Address: at, ChatType: platforms.DM, ChatName: s.Job.Name}, Text: text}
	return j.o.Router.Wake(ctx, w, func(tx sessions.Tx) error {
		_, err := with(tx)
		return err
	})
}

// blocked is the end of a run whose work can't begin. It is told once, until the reason is another one or a run has gone
// well.
func (j *Jobs) blocked(s cron.Start, t cron.Task, why error) finish {
	reason := j.o.Redact(why.Error())
	return finish{job: s.Job, task: t, run: s.Run, state: sessions.RunFailed, reason: "it can't run: " + reason, blocked: reason, mute: s.Job.Alert == reason}
}

// missed ends the slot of a one-shot job whose time has passed, and says so.
func (j *Jobs) missed(ctx context.Context, s cron.Start) error {
	t, err := s.Job.Plan.ReadTask()
	if err != nil {
		t = cron.Task{}
	}
	return j.settleWith(ctx, finish{job: s.Job, task: t, run: s.Run, state: sessions.RunMissed, reason: s.Run.Reason}, s.Claim)
}

// lost ends a run whose work a restart has cut off.
func (j *Jobs) lost(ctx context.Context, run sessions.Run) error {
	job, t, err := j.of(ctx, run.Job)
	if err != nil { // what it was to do can't be read, so neither can whom to tell
		return j.scheduler.End(ctx, run.ID, sessions.RunFailed, cron.CutOff, nil)
	}
	return j.settle(ctx, finish{job: job, task: t, run: run, state: sessions.RunFailed, reason: cron.CutOff})
}

// of returns a job and what it does.
func (j *Jobs) of(ctx context.Context, id cron.JobID) (job cron.Job, t cron.Task, err error) {
	err = j.o.Store.View(ctx, func(v sessions.View) error {
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

// alive reports whether the work of a run goes on: a script here, or a turn, which survives this process.
func (j *Jobs) alive(run sessions.Run) bool {
	j.mu.Lock()
	here := j.staged[run.ID]
	j.mu.Unlock()
	if here {
		return true
	}
	key := j.o.Key(j.address(run))
	alive := true // in doubt it does
	err := j.o.Store.View(context.Background(), func(v sessions.View) error {
		items, err := v.InboxOpen()
		if err != nil {
			return err
		}
		turns, err := v.TurnsRunning()
		if err != nil {
			return err
		}
		alive = false
		for _, item := range items {
			alive = alive || item.Key == key
		}
		for _, t := range turns {
			alive = alive || t.Key == key
		}
		return nil
	})
	if err != nil {
		j.o.Log.Error().Err(err).Str("job", string(run.Job)).Msg("cron: whether a run goes on can't be read")
	}
	return alive
}

// settle ends a run that was claimed, in a transaction of its own.
func (j *Jobs) settle(ctx context.Context, f finish) error {
	return j.settleWith(ctx, f, nil)
}

// settleWith claims the slot first, where claim is set.
func (j *Jobs) settleWith(ctx context.Context, f finish, claim func(tx sessions.Tx) (sessions.Run, error)) error {
	end := j.plan(ctx, f)
	var rows []*sessions.OutboxRow
	err := j.o.Store.Update(context.WithoutCancel(ctx), sessions.EdgeTurnFinish, func(tx sessions.Tx) (err error) {
		run := f.run
		if claim != nil {
			if run, err = claim(tx); err != nil {
				return err
			}
		}
		rows, err = end(tx, run)
		return err
	})
	if err != nil {
		return fmt.Errorf("end a run of job %s: %w", f.job.ID, err)
	}
	j.o.Take(rows...)
	return nil
}

// openRun returns the run of a turn's address; ErrNotFound when it has ended or never was.
func (j *Jobs) openRun(ctx context.Context, at platforms.Address) (run sessions.Run, err error) {
	id, _ := JobOf(at)
	err = j.o.Store.View(ctx, func(v sessions.View) error {
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

// took is how long something took, never negative.
func took(from, to time.Time) time.Duration { return max(0, to.Sub(from)) }

// oneLine is a text in one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
