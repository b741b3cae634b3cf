package jobs

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"herald/cron"
	"herald/gateway/jobs/brief"
	"herald/gateway/router"
	"herald/platforms"
	"herald/sessions"
)

// address is where a run lives: each has its own session.
func (e *Ends) address(run sessions.Run) platforms.Address {
	return platforms.Address{Platform: Platform, Account: e.o.Account, Chat: platforms.ChatID(run.Job), Thread: threadOf(run)}
}

// key is the session key of a run's address.
func (e *Ends) key(at platforms.Address) sessions.Key {
	return sessions.KeyFor(sessions.KeySource{Profile: e.o.Profile, Platform: at.Platform, ChatType: platforms.DM, Chat: at.Chat,
		Thread: at.Thread}, e.o.KeyOptions())
}

func threadOf(run sessions.Run) platforms.ThreadID {
	return platforms.ThreadID(strconv.FormatInt(run.Slot.UnixMilli(), 10))
}

// IsRun reports whether an address is that of a run, which no adapter serves.
func IsRun(at platforms.Address) bool { return at.Platform == Platform }

// JobOf returns the job of a run's address; ok is false for every other address.
func JobOf(at platforms.Address) (id cron.JobID, ok bool) {
	return cron.JobID(at.Chat), at.Platform == Platform
}

// start begins the work of a slot.
func (j *Jobs) start(ctx context.Context, s cron.Start) error {
	leave, ok := j.ends.room.enter()
	if !ok {
		return cron.ErrFull
	}
	t, err := s.Job.Plan.ReadTask()
	if err == nil && j.ends.o.Config().Preflight {
		err = j.preflight(ctx, t)
	}
	staged, text := t.Script != "" || t.Monitored(), ""
	if err == nil && !staged {
		text, err = j.o.Sources.prompt(ctx, s, t, findings{})
	}
	switch {
	case err != nil:
		defer leave()
		return j.settle(ctx, j.blocked(s, t, err), s.Claim, leave)
	case staged:
		err = j.stage(ctx, s, t, leave)
	default:
		err = j.wake(ctx, s, text, s.Claim)
	}
	if err != nil {
		leave()
	}
	return err
}

// preflight reports what keeps a run from being of any use.
func (j *Jobs) preflight(ctx context.Context, t cron.Task) error {
	if targets, problems := j.briefs.Targets(ctx, t.Deliver, t.Origin); len(targets) == 0 && len(problems) > 0 {
		return problems[0]
	}
	if j.o.Ready == nil {
		return nil
	}
	return j.o.Ready(ctx, t)
}

// wake gives the prompt of a run to the agent. with runs in the same transaction.
func (j *Jobs) wake(ctx context.Context, s cron.Start, text string, with func(tx sessions.Tx) (sessions.Run, error)) error {
	at := j.ends.address(s.Run)
	w := router.Wake{ID: fmt.Sprintf("%s:%s", s.Run.Job, at.Thread), Source: string(Platform), Key: j.ends.key(at), Address: at,
		Origin: sessions.Origin{Address: at, ChatType: platforms.DM, ChatName: s.Job.Name}, Text: text}
	return j.o.Router.Wake(ctx, w, func(tx sessions.Tx) error {
		_, err := with(tx)
		return err
	})
}

// blocked is the end of a run whose work can't begin. People are told once, until the reason changes or a run has gone
// well.
func (j *Jobs) blocked(s cron.Start, t cron.Task, why error) finish {
	reason := j.ends.o.Redact(why.Error())
	return finish{Ended: brief.Ended{Job: s.Job, Task: t, Run: s.Run, State: sessions.RunFailed, Reason: "it can't run: " + reason,
		Blocked: reason, Mute: s.Job.Alert == reason}}
}

// missed ends the slot of a one-shot job whose time has passed, and says so.
func (j *Jobs) missed(ctx context.Context, s cron.Start) error {
	t, err := s.Job.Plan.ReadTask()
	if err != nil {
		t = cron.Task{}
	}
	return j.settle(ctx, finish{Ended: brief.Ended{Job: s.Job, Task: t, Run: s.Run, State: sessions.RunMissed, Reason: s.Run.Reason}},
		s.Claim, nil)
}

// lost ends a run whose work a restart has cut off.
func (j *Jobs) lost(ctx context.Context, run sessions.Run) error {
	job, t, err := j.ends.job(ctx, run.Job)
	if err != nil { // what it was to do can't be read, so neither can whom to tell
		return j.scheduler.End(ctx, run.ID, sessions.RunFailed, cron.CutOff, nil)
	}
	return j.settle(ctx, finish{Ended: brief.Ended{Job: job, Task: t, Run: run, State: sessions.RunFailed, Reason: cron.CutOff}}, nil, nil)
}

// alive reports whether the work of a run goes on: a script here, or a turn, which survives this process.
func (j *Jobs) alive(run sessions.Run) bool {
	if j.stages.has(run.ID) {
		return true
	}
	key := j.ends.key(j.ends.address(run))
	alive := true // in doubt it does
	err := j.ends.o.Store.View(context.Background(), func(v sessions.View) error {
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

// settle ends a run in a transaction of its own. It claims the slot first, where claim is set, and calls leave, where that
// is set, before anybody can see the end.
func (j *Jobs) settle(ctx context.Context, f finish, claim func(tx sessions.Tx) (sessions.Run, error), leave func()) error {
	end := j.ends.plan(ctx, f)
	var rows []*sessions.OutboxRow
	err := j.ends.o.Store.Update(context.WithoutCancel(ctx), sessions.EdgeTurnFinish, func(tx sessions.Tx) (err error) {
		run := f.Run
		if claim != nil {
			if run, err = claim(tx); err != nil {
				return err
			}
		}
		if rows, err = end(tx, run); err == nil && leave != nil {
			leave()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("end a run of job %s: %w", f.Job.ID, err)
	}
	j.o.Outbox.Take(rows...)
	return nil
}

// TaskAt returns what the job of a run's address does; ok is false for every other address. A job that was removed since
// does nothing special: its run has what every run has. The error is that of a job that can't be read.
func TaskAt(ctx context.Context, store sessions.Store, at platforms.Address) (t cron.Task, ok bool, err error) {
	id, ok := JobOf(at)
	if !ok {
		return t, false, nil
	}
	err = store.View(ctx, func(v sessions.View) error {
		row, err := v.Job(id)
		if err != nil {
			return err
		}
		t, err = cron.Read(row).Plan.ReadTask()
		return err
	})
	if errors.Is(err, sessions.ErrNotFound) {
		err = nil
	}
	return t, true, err
}
