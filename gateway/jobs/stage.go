package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"herald/cron"
	"herald/sessions"
)

// findings are what a run has found before its agent is asked; nil where there was nothing to look at.
type findings struct {
	script  *cron.ScriptRun
	watched *cron.Watched
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
		seen, err := j.o.Watcher.Look(ctx, t, s.Job.Watched)
		f.watched = seen.State
		switch {
		case err != nil:
			f.state, f.reason = sessions.RunFailed, "the monitor "+j.o.Redact(err.Error())
			j.over(f)
			return
		case !seen.Changed && s.Run.Kind != sessions.RunManual:
			f.silent = "no_change"
			j.over(f)
			return
		}
		found.watched = seen.News
	}
	if t.Script != "" {
		run := j.o.Scripts.Run(ctx, t.Script, t.Workdir)
		found.script = &run
		if done := j.afterScript(&f, found); done {
			j.over(f)
			return
		}
	}
	if j.life.Err() != nil {
		return // stopping: the next process ends the run, since its work is gone
	}
	text, err := j.prompt(s, t, found)
	if err != nil {
		j.over(j.blocked(s, t, err))
		return
	}
	seen := func(tx sessions.Tx) (sessions.Run, error) { return s.Run, j.expect(tx, s.Job.ID, f.watched) }
	if err := j.wake(ctx, s, text, seen); err != nil {
		f.state, f.reason = sessions.RunFailed, fmt.Sprintf("its prompt could not be given to the agent: %v", err)
		j.over(f)
	}
}

// afterScript decides what a script's output means; done is true when the run ends with it.
func (j *Jobs) afterScript(f *finish, found findings) (done bool) {
	why, idle := found.script.Idle()
	switch {
	case idle && f.task.NoAgent && strings.TrimSpace(found.script.Stdout) == "":
		f.silent, f.reason = "silent", why
	case idle:
		f.silent, f.reason, f.whole = "no_change", why, found.script.Stdout
	case !f.task.NoAgent:
		return false // the agent is told, also of a failure
	case found.script.Err != "":
		f.state, f.reason, f.whole = sessions.RunFailed, found.script.Err, found.script.Stdout
	default:
		f.text = strings.TrimSpace(found.script.Stdout)
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

// expect notes what the monitor has seen with a job whose agent is about to be told of it.
func (j *Jobs) expect(tx sessions.Tx, id cron.JobID, seen json.RawMessage) error {
	if seen == nil {
		return nil
	}
	return cron.Amend(tx, id, func(job *cron.Job) bool {
		job.Seen = seen
		return true
	})
}
