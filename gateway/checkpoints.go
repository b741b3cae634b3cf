package gateway

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"herald/sessions/failpoint"
	"herald/tools"
	"herald/tools/checkpoint"
)

// checkpoints takes pictures of the files that a call may change, and notes which it did change.
type checkpoints struct {
	g     *Gateway
	store *checkpoint.Store

	recovered map[string]checkpoint.Result // of this start, by the directory
}

// OpenCheckpoints returns a profile's checkpoints as its configuration has them, for the daemon and for the command line.
func OpenCheckpoints(s Sandbox) *checkpoint.Store {
	c := s.Config.Checkpoints
	return checkpoint.Open(checkpoint.Options{Dir: s.Paths.Checkpoint, Enabled: c.Enabled, MaxSnapshots: c.MaxSnapshots,
		MaxTotal: int64(c.MaxTotalMB) << 20, MaxFile: int64(c.MaxFileMB) << 20, Timeout: c.Timeout, Confine: s.Confine, Moment: func() { failpoint.Hit("checkpoint") }, Now: s.Now, Log: s.Log})
}

// openCheckpoints makes the daemon's.
func (g *Gateway) openCheckpoints() {
	c := g.cfg().Checkpoints
	g.checkpoints = checkpoints{g: g, store: OpenCheckpoints(g.sandboxes.sandbox)}
	if c.Enabled && !g.checkpoints.store.On() {
		g.log.Warn().Msg("git is not installed, so there are no checkpoints and no /rollback; install git, or set checkpoints.enabled to false")
	}
}

// recover finishes what a crash interrupted, and says so in the log. The person's command is answered by its own row.
func (c *checkpoints) recover(ctx context.Context) {
	results, err := c.store.Recover(ctx)
	if err != nil {
		c.g.log.Error().Err(err).Msg("interrupted rollbacks can't be looked at; they are tried again at the next start")
	}
	c.recovered = map[string]checkpoint.Result{}
	for _, r := range results {
		c.recovered[r.Directory] = r
		c.g.log.Warn().Str("directory", r.Directory).Str("checkpoint", r.RestoredTo).Int("restored", len(r.Restored)).Int("kept", len(r.Edited)).
			Int("failed", len(r.FailedDeletes)+len(r.FailedRestores)).Msg("a rollback that the last process began is finished")
	}
}

// finished is command.Services.Recovered.
func (c *checkpoints) finished(dir string) (checkpoint.Result, bool) {
	r, ok := c.recovered[dir]
	return r, ok
}

// Begin implements tools.Checkpointer.
func (c checkpoints) Begin(ctx context.Context, call tools.Call, spec tools.Spec) (func(context.Context, tools.Result), error) {
	if !c.store.On() {
		return nil, nil
	}
	turn := fmt.Sprintf("%s/%d", call.Caller.Session, call.Caller.Turn)
	if call.Caller.Turn == 0 {
		turn += "/" + string(call.ID)
	}
	var watches []*checkpoint.Watch
	var errs []error
	for _, dir := range c.dirs(call, spec) {
		w, err := c.store.Begin(ctx, dir, turn, "before "+spec.Name)
		if err != nil {
			if _, refused := c.store.Dir(dir); refused != nil {
				c.g.log.Debug().Err(refused).Msg("no checkpoint is taken")
				continue
			}
		}
		errs = append(errs, err)
		if w != nil {
			watches = append(watches, w)
		}
	}
	return func(ctx context.Context, _ tools.Result) {
		for _, w := range watches {
			if _, err := w.End(ctx); err != nil {
				c.g.log.Warn().Err(err).Str("tool", spec.Name).Msg("what a call changed is not known; /rollback keeps those files")
			}
		}
	}, errors.Join(errs...)
}

// dirs are the directories of this machine that a call may change files of. What this machine does not see has none.
func (c checkpoints) dirs(call tools.Call, spec tools.Spec) []string {
	env, place := c.g.placeOf(call.Caller), c.g.sandboxes.sandbox
	if spec.ChangesFiles {
		all, err := place.Projects(env, call.Caller.Session)
		if err != nil {
			return nil
		}
		var dirs []string
		for _, p := range all {
			dirs = append(dirs, c.store.RootFor(filepath.Join(p.Host, "x")))
		}
		return dirs
	}
	if spec.Paths == nil {
		return nil
	}
	paths, write, ok := spec.Paths(call)
	if !write || !ok {
		return nil
	}
	var dirs []string
	for _, path := range paths {
		host, err := hostFile(place, env, path)
		if err != nil {
			continue
		}
		if dir := c.store.RootFor(host); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// prune is housekeeping.
func (c checkpoints) prune(ctx context.Context) {
	set := c.g.cfg().Checkpoints
	if !set.AutoPrune || !c.store.On() || !c.g.due(ctx, "checkpoints", time.Duration(set.MinInterval)*time.Hour) {
		return
	}
	r, err := c.store.Prune(ctx, checkpoint.PruneOptions{Retention: time.Duration(set.RetentionDays) * 24 * time.Hour})
	if err != nil {
		c.g.log.Warn().Err(err).Msg("old checkpoints could not be pruned")
		return
	}
	c.g.log.Debug().Int("stale", r.Stale).Int64("freed", r.Freed).Msg("checkpoints are pruned")
}
