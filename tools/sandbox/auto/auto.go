// Package auto is the environment that decides by itself where commands run: in a container where an engine answers, else on
// this machine. It has no commands and no files of its own.
package auto

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/rs/zerolog"

	"herald/tools/sandbox"
	"herald/tools/sandbox/attempt"
	"herald/tools/sandbox/docker"
)

// Choice is where commands run and why.
type Choice struct {
	// Backend is "local", "docker" or "ssh"; "auto" before the first command decided.
	Backend string
	// Reason is a sentence for people.
	Reason string
}

// Options configure an environment that decides by itself where commands run.
type Options struct {
	// local.Environment is used where no container engine answers. It is closed when a container is used.
	Local sandbox.Environment
	// docker.Environment is used where an engine answers and the image is there or can be made.
	Docker docker.Options
	Log    zerolog.Logger
}

// Environment is an environment that the first command decides on: a container where an engine answers and the image is there
// or can be made, else this machine. The decision holds until the process ends. A profile whose files are in a container
// already never runs anywhere else: when its engine does not answer, commands fail with ErrUnavailable. It is safe for
// concurrent use.
type Environment struct {
	opts     Options
	docker   *docker.Environment
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	routines sync.WaitGroup

	mu       sync.Mutex
	chosen   sandbox.Environment
	choice   Choice
	deciding *attempt.Attempt
	closed   bool
}

// New checks the options. Nothing is asked before the first command.
func New(o Options) (*Environment, error) {
	d, err := docker.New(o.Docker)
	if err != nil {
		return nil, err
	}
	a := &Environment{opts: o, docker: d, choice: Choice{"auto", "the first command decides"}}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a, nil
}

// Choice returns what was decided. It does not wait.
func (a *Environment) Choice() Choice {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.choice
}

// Decide returns the environment that commands run in, and decides on it where that was not done. progress, which may be
// nil, receives lines while an image is made. A ctx that ends does not end the decision: the next caller finds it further
// on.
func (a *Environment) Decide(ctx context.Context, progress func(string)) (sandbox.Environment, error) {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil, sandbox.ErrClosed
	}
	if env := a.chosen; env != nil {
		a.mu.Unlock()
		return env, nil
	}
	m := a.deciding
	if m == nil {
		m = attempt.New()
		a.deciding = m
		a.routines.Go(func() { a.decide(m) })
	}
	a.mu.Unlock()
	if err := m.Wait(ctx, progress); err != nil {
		return nil, err
	}
	return a.now(), nil
}

// decide is one attempt. An error is one that leaves it open.
func (a *Environment) decide(m *attempt.Attempt) {
	env, choice, err := a.look(m)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deciding = nil
	switch {
	case err != nil:
		a.choice.Reason = err.Error()
	case env == a.opts.Local:
		a.chosen, a.choice = env, choice
	default:
		a.chosen, a.choice = env, choice
		local := a.opts.Local
		a.routines.Go(func() { _ = local.Close() })
	}
	if err == nil {
		a.opts.Log.Info().Str("backend", choice.Backend).Str("because", choice.Reason).Msg("sandbox: where commands run is decided")
	}
	m.End(err)
}

// look finds out where commands can run.
func (a *Environment) look(m *attempt.Attempt) (sandbox.Environment, Choice, error) {
	used := a.docker.Used()
	engine, err := a.docker.Engine(a.ctx)
	if err != nil {
		return a.without(used, "no container engine answers", err)
	}
	if err := a.docker.MakeImage(a.ctx, m.Tell); err != nil {
		return a.without(used, "there is no image for a container", err)
	}
	if err := a.docker.MakeContainer(a.ctx, m.Tell); err != nil {
		return a.without(used, "the container engine answers, but makes no container", err)
	}
	return a.docker, Choice{"docker", fmt.Sprintf("%s %s answers at %s", engine.Name, engine.Version, engine.Address)}, nil
}

// without decides for this machine where that is allowed.
func (a *Environment) without(used bool, what string, err error) (sandbox.Environment, Choice, error) {
	switch {
	case a.ctx.Err() != nil:
		return nil, Choice{}, sandbox.ErrClosed
	case used:
		return nil, Choice{}, fmt.Errorf("%w: the files of this profile are in a container, and %s: %w; to run commands on this machine all the same, set terminal.backend to local", sandbox.ErrUnavailable, what, err)
	}
	a.opts.Log.Debug().Err(err).Msg("sandbox: no container")
	return a.opts.Local, Choice{"local", what}, nil
}

// now is the environment that was decided on; before that it is the one on this machine, for what needs no command.
func (a *Environment) now() sandbox.Environment {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.chosen != nil {
		return a.chosen
	}
	return a.opts.Local
}

// Backend is "auto" before the decision, then that of the environment.
func (a *Environment) Backend() string { return a.Choice().Backend }

// Home is that of the environment; before the decision the one on this machine.
func (a *Environment) Home() string { return a.now().Home() }

// Dir is that of the environment; before the decision where it would be on this machine.
func (a *Environment) Dir(session string) (string, bool) { return a.now().Dir(session) }

// Forget implements Environment.
func (a *Environment) Forget(session string) { a.now().Forget(session) }

// Exec implements Environment.
func (a *Environment) Exec(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	var progress func(string)
	if c.Output != nil {
		progress = func(line string) { _, _ = io.WriteString(c.Output, line+"\n") }
	}
	env, err := a.Decide(ctx, progress)
	switch {
	case err == nil:
		return env.Exec(ctx, c)
	case ctx.Err() != nil:
		return a.opts.Local.Exec(ctx, c) // it tells an interrupt as such and runs nothing
	}
	return sandbox.Result{}, err
}

// Start implements Environment.
func (a *Environment) Start(ctx context.Context, c sandbox.Command) (sandbox.Process, error) {
	return decided(ctx, a, func(env sandbox.Environment) (sandbox.Process, error) { return env.Start(ctx, c) })
}

// Resume implements Environment. What an earlier daemon started on this machine is found here whatever is decided now.
func (a *Environment) Resume(ctx context.Context, ref sandbox.Ref, c sandbox.Command) (sandbox.Process, error) {
	p, err := a.opts.Local.Resume(ctx, ref, c)
	if err == nil || !errors.Is(err, sandbox.ErrGone) && !errors.Is(err, sandbox.ErrClosed) {
		return p, err
	}
	return decided(ctx, a, func(env sandbox.Environment) (sandbox.Process, error) { return env.Resume(ctx, ref, c) })
}

// Kill implements Environment.
func (a *Environment) Kill(ctx context.Context, p sandbox.Process) error {
	if err := a.opts.Local.Kill(ctx, p); !errors.Is(err, sandbox.ErrForeign) {
		return err
	}
	_, err := decided(ctx, a, func(env sandbox.Environment) (struct{}, error) { return struct{}{}, env.Kill(ctx, p) })
	return err
}

// decided does something in the environment that is decided on.
func decided[T any](ctx context.Context, a *Environment, do func(sandbox.Environment) (T, error)) (v T, err error) {
	env, err := a.Decide(ctx, nil)
	if err != nil {
		return v, err
	}
	return do(env)
}

func (a *Environment) do(ctx context.Context, do func(sandbox.Environment) error) error {
	_, err := decided(ctx, a, func(env sandbox.Environment) (struct{}, error) { return struct{}{}, do(env) })
	return err
}

// Stat implements Files.
func (a *Environment) Stat(ctx context.Context, path string) (sandbox.FileInfo, error) {
	return decided(ctx, a, func(env sandbox.Environment) (sandbox.FileInfo, error) { return env.Stat(ctx, path) })
}

// Lstat implements Files.
func (a *Environment) Lstat(ctx context.Context, path string) (sandbox.FileInfo, error) {
	return decided(ctx, a, func(env sandbox.Environment) (sandbox.FileInfo, error) { return env.Lstat(ctx, path) })
}

// RealPath implements Files.
func (a *Environment) RealPath(ctx context.Context, path string) (string, error) {
	return decided(ctx, a, func(env sandbox.Environment) (string, error) { return env.RealPath(ctx, path) })
}

// List implements Files.
func (a *Environment) List(ctx context.Context, dir string) ([]sandbox.FileInfo, error) {
	return decided(ctx, a, func(env sandbox.Environment) ([]sandbox.FileInfo, error) { return env.List(ctx, dir) })
}

// Open implements Files.
func (a *Environment) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	return decided(ctx, a, func(env sandbox.Environment) (io.ReadCloser, error) { return env.Open(ctx, path) })
}

// ReadFile implements Files.
func (a *Environment) ReadFile(ctx context.Context, path string, max int64) ([]byte, error) {
	return decided(ctx, a, func(env sandbox.Environment) ([]byte, error) { return env.ReadFile(ctx, path, max) })
}

// WriteFile implements Files.
func (a *Environment) WriteFile(ctx context.Context, path string, data []byte, mode fs.FileMode) error {
	return a.do(ctx, func(env sandbox.Environment) error { return env.WriteFile(ctx, path, data, mode) })
}

// MkdirAll implements Files.
func (a *Environment) MkdirAll(ctx context.Context, dir string, mode fs.FileMode) error {
	return a.do(ctx, func(env sandbox.Environment) error { return env.MkdirAll(ctx, dir, mode) })
}

// Chmod implements Files.
func (a *Environment) Chmod(ctx context.Context, path string, mode fs.FileMode) error {
	return a.do(ctx, func(env sandbox.Environment) error { return env.Chmod(ctx, path, mode) })
}

// Remove implements Files.
func (a *Environment) Remove(ctx context.Context, path string) error {
	return a.do(ctx, func(env sandbox.Environment) error { return env.Remove(ctx, path) })
}

// Rename implements Files.
func (a *Environment) Rename(ctx context.Context, from, to string) error {
	return a.do(ctx, func(env sandbox.Environment) error { return env.Rename(ctx, from, to) })
}

// Close closes both.
func (a *Environment) Close() error {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil
	}
	a.closed = true
	a.mu.Unlock()
	a.cancel()
	a.routines.Wait()
	return errors.Join(a.opts.Local.Close(), a.docker.Close())
}
