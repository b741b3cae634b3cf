package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"herald/sessions"
	"herald/sessions/failpoint"
	"herald/tools"
	"herald/tools/checkpoint"
)

// Checkpoints takes pictures of the files that a call may change, and notes which it did change. It is safe for concurrent
// use.
type Checkpoints struct {
	space *Workspace
	store *checkpoint.Store
	log   zerolog.Logger

	mu        sync.Mutex
	recovered map[string]checkpoint.Result // of this start, by the directory
}

// Checkpoints opens a profile's checkpoints as its configuration has them, for the daemon and for the command line.
func (s Settings) Checkpoints() *checkpoint.Store {
	c := s.Config.Checkpoints
	return checkpoint.Open(checkpoint.Options{Dir: s.Paths.Checkpoint, Enabled: c.Enabled, MaxSnapshots: c.MaxSnapshots,
		MaxTotal: int64(c.MaxTotalMB) << 20, MaxFile: int64(c.MaxFileMB) << 20, Timeout: c.Timeout, Confine: s.Confine,
		Moment: func() { failpoint.Hit("checkpoint") }, Now: s.Now, Log: s.Log})
}

// NewCheckpoints makes the daemon's. Close them.
func NewCheckpoints(space *Workspace) *Checkpoints {
	c := &Checkpoints{space: space, store: space.set.Checkpoints(), log: space.set.Log}
	if space.set.Config.Checkpoints.Enabled && !c.store.On() {
		c.log.Warn().Msg("git is not installed, so there are no checkpoints and no /rollback; install git, or set checkpoints.enabled to false")
	}
	return c
}

// Store is where they are kept.
func (c *Checkpoints) Store() *checkpoint.Store { return c.store }

// Close waits for a rollback that is changing files, at most until ctx ends.
func (c *Checkpoints) Close(ctx context.Context) error { return c.store.Close(ctx) }

// Recover finishes what a crash interrupted, and says so in the log. The person's command is answered by its own row.
func (c *Checkpoints) Recover(ctx context.Context) {
	results, err := c.store.Recover(ctx)
	if err != nil {
		c.log.Error().Err(err).Msg("interrupted rollbacks can't be looked at; they are tried again at the next start")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recovered = map[string]checkpoint.Result{}
	for _, r := range results {
		c.recovered[r.Directory] = r
		c.log.Warn().Str("directory", r.Directory).Str("checkpoint", r.RestoredTo).Int("restored", len(r.Restored)).Int("kept", len(r.Edited)).
			Int("failed", len(r.FailedDeletes)+len(r.FailedRestores)).Msg("a rollback that the last process began is finished")
	}
}

// Recovered returns the rollback of a directory that the last process began and this one has finished.
func (c *Checkpoints) Recovered(dir string) (checkpoint.Result, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.recovered[dir]
	return r, ok
}

// Begin implements tools.Checkpointer. Backend auto decides first, since there are no files to look at before; that it
// can't is an error of the call itself.
func (c *Checkpoints) Begin(ctx context.Context, call tools.Call, spec tools.Spec) (func(context.Context, tools.Result), error) {
	c.space.Decide(ctx, spec)
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
				c.log.Debug().Err(refused).Msg("no checkpoint is taken")
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
				c.log.Warn().Err(err).Str("tool", spec.Name).Msg("what a call changed is not known; /rollback keeps those files")
			}
		}
	}, errors.Join(errs...)
}

// dirs are the directories of this machine that a call may change files of. What this machine does not see has none.
func (c *Checkpoints) dirs(call tools.Call, spec tools.Spec) []string {
	env, set := c.space.of(call.Caller), c.space.set
	if spec.ChangesFiles {
		all, err := set.Projects(env, call.Caller.Session)
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
		host, err := hostFile(set, env, path)
		if err != nil {
			continue
		}
		if dir := c.store.RootFor(host); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Project returns the directory that a session's /rollback is about, and what people call a path of it: of the directories
// that the session may change the one where the agent changed something last. ErrElsewhere when this machine sees none.
func (c *Checkpoints) Project(s sessions.Session) (dir string, shown func(host string) string, err error) {
	all, err := c.space.set.Projects(c.space.Present(string(s.Key)), string(s.ID))
	if err != nil {
		return "", nil, err
	}
	var dirs []string
	for _, p := range all {
		dirs = append(dirs, c.store.RootFor(filepath.Join(p.Host, "x")))
	}
	return c.store.Latest(dirs...), all[0].Shown, nil
}

// Prune removes what the settings say is too old. It does nothing where there are no checkpoints.
func (c *Checkpoints) Prune(ctx context.Context, retention time.Duration) {
	if !c.store.On() {
		return
	}
	r, err := c.store.Prune(ctx, checkpoint.PruneOptions{Retention: retention})
	if err != nil {
		c.log.Warn().Err(err).Msg("old checkpoints could not be pruned")
		return
	}
	c.log.Debug().Int("stale", r.Stale).Int64("freed", r.Freed).Msg("checkpoints are pruned")
}
