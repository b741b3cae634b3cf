package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"herald/tools"
	"herald/tools/sandbox"
	"herald/tools/sandbox/auto"
	"herald/tools/sandbox/docker"
)

// Workspace hands out the environments of a profile: its own, and where containers keep nothing one for each
// conversation. It is safe for concurrent use.
type Workspace struct {
	set Settings
	own sandbox.Environment

	mu        sync.Mutex
	throwaway map[string]*throwaway // by the key of the conversation
	closed    bool
}

// throwaway is the container of one conversation.
type throwaway struct {
	env  *docker.Environment
	idle *time.Timer
}

// Open makes the profile's own environment. Close it.
func Open(s Settings) (*Workspace, error) {
	own, err := s.Open()
	if err != nil {
		return nil, err
	}
	return &Workspace{set: s, own: own, throwaway: map[string]*throwaway{}}, nil
}

// Settings returns what it was made from.
func (w *Workspace) Settings() Settings { return w.set }

// Environment is where a caller's commands run.
func (w *Workspace) Environment(caller tools.Caller) (sandbox.Environment, error) {
	if w.set.Config.Terminal.ContainerPersistent || caller.Key == "" || w.own.Backend() != "docker" {
		return w.own, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, fmt.Errorf("%w: the daemon is stopping", sandbox.ErrUnavailable)
	}
	r := w.throwaway[caller.Key]
	if r == nil {
		o, err := w.set.Docker(caller.Key)
		if err != nil {
			return nil, err
		}
		env, err := docker.New(o)
		if err != nil {
			return nil, err
		}
		r = &throwaway{env: env}
		w.throwaway[caller.Key] = r
		r.idle = time.AfterFunc(w.set.Config.Terminal.Lifetime, func() { w.leave(caller.Key) })
	}
	r.idle.Reset(w.set.Config.Terminal.Lifetime)
	return r.env, nil
}

// leave closes a container that was not used for its lifetime. One in which something runs is kept for another.
func (w *Workspace) leave(key string) {
	w.mu.Lock()
	r := w.throwaway[key]
	if r == nil || w.closed {
		w.mu.Unlock()
		return
	}
	if r.env.Busy() {
		r.idle.Reset(w.set.Config.Terminal.Lifetime)
		w.mu.Unlock()
		return
	}
	delete(w.throwaway, key)
	w.mu.Unlock()
	if err := r.env.Close(); err != nil {
		w.set.Log.Warn().Err(err).Msg("a throwaway container could not be removed")
	}
}

// Close closes all of them at once.
func (w *Workspace) Close() error {
	w.mu.Lock()
	w.closed = true
	all := []sandbox.Environment{w.own}
	for _, r := range w.throwaway {
		r.idle.Stop()
		all = append(all, r.env)
	}
	w.mu.Unlock()
	errs := make([]error, len(all))
	var closing sync.WaitGroup
	for i, env := range all {
		if env != nil {
			closing.Go(func() { errs[i] = env.Close() })
		}
	}
	closing.Wait()
	return errors.Join(errs...)
}

// Choice says where commands run and why. It does not wait.
func (w *Workspace) Choice() auto.Choice {
	if auto, ok := w.own.(*auto.Environment); ok {
		return auto.Choice()
	}
	return auto.Choice{Backend: w.own.Backend(), Reason: "terminal.backend is " + w.set.Config.Terminal.Backend}
}

// OnHost reports whether commands surely run on this machine.
func (w *Workspace) OnHost() bool { return w.Choice().Backend == "local" }

// Deciding is a tool that lets backend auto decide first: calls that only read have no checkpoint that would.
func (w *Workspace) Deciding(t tools.Tool) tools.Tool {
	run := t.Run
	t.Run = func(ctx context.Context, call tools.Call) (tools.Result, error) {
		w.Decide(ctx, t.Spec)
		r, err := run(ctx, call)
		if w.set.Config.Terminal.DegradedMode == "fail" {
			r = ordinary(r)
		}
		return r, err
	}
	return t
}

// ordinary makes a plain error of a result that says that the environment can't be reached.
func ordinary(r tools.Result) tools.Result {
	var d struct{ Status, Error string }
	if !r.IsError || json.Unmarshal([]byte(r.Content), &d) != nil || d.Status != "degraded" {
		return r
	}
	return tools.Failure("%s", d.Error)
}

// Decide waits for the decision of backend auto where a tool needs it.
func (w *Workspace) Decide(ctx context.Context, spec tools.Spec) {
	if auto, ok := w.own.(*auto.Environment); ok && needsWorkspace(spec) {
		_, _ = auto.Decide(ctx, func(line string) { tools.Progress(ctx, line) })
	}
}

// needsWorkspace reports whether a tool works with files or commands.
func needsWorkspace(spec tools.Spec) bool {
	return spec.ChangesFiles || spec.Paths != nil || slices.Contains([]string{"terminal", "file"}, spec.Toolset)
}

// Start is where the tools of a new session begin, "" where only the environment itself knows.
func (w *Workspace) Start() string {
	if !w.OnHost() {
		return ""
	}
	return strings.TrimSuffix(w.set.Config.WorkDir(w.set.Paths), "/")
}

// Dir is where a session's tools are now, "" where only the environment itself knows.
func (w *Workspace) Dir(session string) string {
	if dir, ok := w.own.Dir(session); ok {
		return dir
	}
	return w.Start()
}

// Present is where a conversation's commands run, without making a throwaway container for it: the profile's own
// environment takes the place of one that is gone.
func (w *Workspace) Present(key string) sandbox.Environment {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.throwaway[key]; r != nil {
		return r.env
	}
	return w.own
}

// of is where a call's commands run; one whose container can't be made has no files.
func (w *Workspace) of(caller tools.Caller) sandbox.Environment {
	env, err := w.Environment(caller)
	if err != nil {
		return w.own
	}
	return env
}

// Survives reports whether background processes of a backend run on when the daemon stops in order.
func (s Settings) Survives(backend string) bool {
	if backend == "docker" { // they live as long as their container
		return s.Config.Terminal.ContainerPersistent && s.Config.Terminal.DockerKeep
	}
	return s.Config.Processes.OnStop == "keep"
}
