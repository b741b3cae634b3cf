package jobs

import (
	"context"
	"encoding/json"
	"fmt"

	"herald/cron"
	"herald/sessions"
)

// findings are what a run has found before its agent is asked.
type findings struct {
	// script is what a script printed, scriptErr why it failed; ran says that there was one.
	ran               bool
	script, scriptErr string
	// change is what a monitor has seen, for the agent; empty where nothing is watched.
	change string
}

// sight is one look of a monitor.
type sight struct {
	// changed says that it differs from the last one; news is what the agent is told of it.
	changed bool
	news    string
	state   json.RawMessage // to be compared with the next time
}

// stage claims a slot and does, beside everything else, what goes before the agent or in its place: the monitor and the
// script. It is not begun again when a restart cuts it off: scripts have effects.
func (j *Jobs) stage(ctx context.Context, s cron.Start, t cron.Task) error {
	err := j.o.Store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) (err error) {
		if s.Run, err = s.Claim(tx); err == nil {
			j.mark(s.Run.ID, true) // before anybody can see the claim
		}
		return err
	})
	if err != nil {
		j.mark(s.Run.ID, false)
		return err
	}
	j.stages.Add(1)
	go func() {
		defer j.stages.Done()
		defer j.mark(s.Run.ID, false)
		j.work(s, t)
	}()
	return nil
}

func (j *Jobs) mark(id sessions.RunID, on bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if on {
		j.staged[id] = true
	} else {
		delete(j.staged, id)
	}
}

// work is what a stage does. Its run ends here, or goes on as a turn.
func (j *Jobs) work(s cron.Start, t cron.Task) {
	ctx := j.life
	f := finish{job: s.Job, task: t, run: s.Run, state: sessions.RunRan}
	var found findings
	if t.Monitored() {
		seen, err := j.look(ctx, t, s.Job.Watched)
		f.watched = seen.state
		switch {
		case err != nil:
			f.state, f.reason = sessions.RunFailed, "the monitor: "+j.o.Redact(err.Error())
			j.over(f)
			return
		case !seen.changed && s.Run.Kind != sessions.RunManual:
			f.silent = "no_change"
			j.over(f)
			return
		}
		found.change = seen.news
	}
	if t.Script != "" {
		out, err := j.script(ctx, t.Script, t.Workdir)
		found.ran, found.script = true, out
		if err != nil {
			found.scriptErr = j.o.Redact(err.Error())
		}
		if done := j.afterScript(&f, found); done {
			j.over(f)
			return
		}
	}
	if j.life.Err() != nil {
		return // stopping: the next process ends the run, since its work is gone
	}
	watched := func(tx sessions.Tx) (sessions.Run, error) { return s.Run, j.remember(tx, f, &Result{}) }
	if err := j.wake(ctx, s, t, found, watched); err != nil {
		f.state, f.reason = sessions.RunFailed, fmt.Sprintf("its prompt could not be given to the agent: %v", err)
		j.over(f)
	}
}

// afterScript decides what a script's output means; done is true when the run ends with it.
func (j *Jobs) afterScript(f *finish, found findings) (done bool) {
	switch {
	case f.task.NoAgent && found.scriptErr != "":
		f.state, f.reason = sessions.RunFailed, found.scriptErr
		f.whole = found.script
	case found.scriptErr != "":
		return false // the agent is told
	case asleep(found.script):
		f.silent, f.whole = "no_change", found.script
	case f.task.NoAgent:
		f.text = found.script
		if f.text == "" {
			f.silent = "silent"
		}
	case found.script == "":
		f.silent = "no_change"
	default:
		return false
	}
	return true
}

// over ends the run of a stage, unless the daemon stops: then the next process does.
func (j *Jobs) over(f finish) {
	if j.life.Err() != nil {
		return
	}
	defer j.leave()
	if err := j.settle(j.life, f); err != nil {
		j.o.Log.Error().Err(err).Str("job", string(f.job.ID)).Msg("cron: the end of a run can't be written down; it is ended as cut off")
	}
}
