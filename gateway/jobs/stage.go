package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"herald/cron"
	"herald/gateway/jobs/brief"
	"herald/sessions"
)

// findings are what a run has found before its agent is asked; nil where there was none.
type findings struct {
	script  *cron.ScriptRun
	watched *cron.Watched
}

// stage claims a slot and does in the background what comes before the agent or replaces it: the monitor and the script. It
// is not begun again after a restart: scripts have effects.
func (j *Jobs) stage(ctx context.Context, s cron.Start, t cron.Task, leave func()) error {
	err := j.ends.o.Store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) (err error) {
		if s.Run, err = s.Claim(tx); err == nil {
			j.stages.add(s.Run.ID) // before anybody can see the claim
		}
		return err
	})
	if err != nil {
		j.stages.remove(s.Run.ID)
		return err
	}
	j.stages.work.Go(func() {
		defer j.stages.remove(s.Run.ID)
		j.work(s, t, leave)
	})
	return nil
}

// stages are the runs whose script or monitor runs in this process.
type stages struct {
	work sync.WaitGroup
	mu   sync.Mutex
	ids  map[sessions.RunID]bool
	none chan struct{} // closed while there are none
}

func newStages() *stages {
	s := &stages{ids: map[sessions.RunID]bool{}, none: make(chan struct{})}
	close(s.none)
	return s
}

func (s *stages) add(id sessions.RunID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ids) == 0 {
		s.none = make(chan struct{})
	}
	s.ids[id] = true
}

func (s *stages) remove(id sessions.RunID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ids[id] {
		return
	}
	delete(s.ids, id)
	if len(s.ids) == 0 {
		close(s.none)
	}
}

func (s *stages) has(id sessions.RunID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[id]
}

// drain waits until there are none, or ctx ends.
func (s *stages) drain(ctx context.Context) error {
	s.mu.Lock()
	none := s.none
	s.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// work is what a stage does. Its run ends here, or continues as a turn.
func (j *Jobs) work(s cron.Start, t cron.Task, leave func()) {
	ctx := j.life
	f := finish{Ended: brief.Ended{Job: s.Job, Task: t, Run: s.Run, State: sessions.RunRan}}
	var found findings
	if t.Monitored() {
		seen, err := j.o.Watcher.Look(ctx, t, s.Job.Watched)
		f.watched = seen.State
		switch {
		case err != nil:
			f.State, f.Reason = sessions.RunFailed, "the monitor "+j.ends.o.Redact(err.Error())
			j.over(f, leave)
			return
		case !seen.Changed && s.Run.Kind != sessions.RunManual:
			f.silent = "no_change"
			j.over(f, leave)
			return
		}
		found.watched = seen.News
	}
	if t.Script != "" {
		run := j.o.Scripts.Run(ctx, t.Script, t.Workdir)
		found.script = &run
		if done := afterScript(&f, found); done {
			j.over(f, leave)
			return
		}
	}
	if j.life.Err() != nil {
		return // stopping: the next process ends the run, since its work is gone
	}
	text, err := j.o.Sources.prompt(ctx, s, t, found)
	if err != nil {
		j.over(j.blocked(s, t, err), leave)
		return
	}
	seen := func(tx sessions.Tx) (sessions.Run, error) { return s.Run, expect(tx, s.Job.ID, f.watched) }
	if err := j.wake(ctx, s, text, seen); err != nil {
		f.State, f.Reason = sessions.RunFailed, fmt.Sprintf("its prompt could not be given to the agent: %v", err)
		j.over(f, leave)
	}
}

// afterScript decides what a script's output means; done is true when the run ends with it.
func afterScript(f *finish, found findings) (done bool) {
	why, idle := found.script.Idle()
	switch {
	case idle && f.Task.NoAgent && strings.TrimSpace(found.script.Stdout) == "":
		f.silent, f.Reason = "silent", why
	case idle:
		f.silent, f.Reason, f.whole = "no_change", why, found.script.Stdout
	case !f.Task.NoAgent:
		return false // the agent reads it, also a failure
	case found.script.Err != "":
		f.State, f.Reason, f.whole = sessions.RunFailed, found.script.Err, found.script.Stdout
	default:
		f.Text = strings.TrimSpace(found.script.Stdout)
	}
	return true
}

// over ends the run of a stage, unless the daemon stops: then the next process does.
func (j *Jobs) over(f finish, leave func()) {
	if j.life.Err() != nil {
		return
	}
	defer leave()
	if err := j.settle(j.life, f, nil, leave); err != nil {
		j.o.Log.Error().Err(err).Str("job", string(f.Job.ID)).Msg("cron: the end of a run can't be written down; it is ended as cut off")
	}
}

// expect notes with a job what the monitor has seen, when its agent is about to read it.
func expect(tx sessions.Tx, id cron.JobID, seen json.RawMessage) error {
	if seen == nil {
		return nil
	}
	return cron.Amend(tx, id, func(job *cron.Job) bool {
		job.Seen = seen
		return true
	})
}
