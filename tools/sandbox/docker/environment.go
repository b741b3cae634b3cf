// Package docker is the environment in a container of Docker or Podman: which container a request gets, how it is made,
// hardened, found again, replaced when it vanished, and removed. It asks the engine alone who owns a container, by labels.
// What runs in it is package remote's; the package never falls back to this machine.
package docker

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"time"

	"herald/tools/sandbox"
	"herald/tools/sandbox/execution"
	"herald/tools/sandbox/mounts"
	"herald/tools/sandbox/remote"
)

// Environment runs commands in a container. The container is found or made by the first command, survives the process where
// the options say so, and is replaced when it vanished. It is safe for concurrent use.
type Environment struct {
	inside *remote.Environment
	opts   Options
	keeper *keeper

	mu  sync.Mutex
	gen int // of the container that the remote knows
}

// New checks the options. No engine is asked before the first command.
func New(o Options) (*Environment, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	keeper, err := newKeeper(o)
	if err != nil {
		return nil, err
	}
	r := remote.New(&carrier{keeper: keeper}, remote.Options{Dir: o.cwd(), SpillDir: o.SpillDir, Window: o.Window, Env: o.commandEnv,
		KeepJobs: o.outlives(), JobGrace: o.JobGrace, JobLog: o.JobLog, Now: o.Now})
	return &Environment{inside: r, opts: o, keeper: keeper}, nil
}

// Key is whose container it is, see containerKey.
func (d *Environment) Key() string { return d.opts.key() }

// Backend is "docker".
func (d *Environment) Backend() string { return d.inside.Backend() }

// Home is the home directory of commands.
func (d *Environment) Home() string { return d.inside.Home() }

// Forget drops the directory of a session.
func (d *Environment) Forget(session string) { d.inside.Forget(session) }

// Dir returns where the session left off, or where a new one starts. It asks nothing of the engine.
func (d *Environment) Dir(session string) (string, bool) { return d.inside.Dir(session) }

// mounts.Table are the directories that the container shares with this machine: its own where it is known, else those that it
// will have.
func (d *Environment) Mounts() mounts.Table { return d.keeper.table() }

// prepare makes sure that there is a container, and that the remote knows it. It returns how many there were before.
func (d *Environment) prepare(ctx context.Context, progress func(string)) (gen int, err error) {
	_, gen, err = d.keeper.ready(ctx, progress)
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if gen > d.gen {
		if d.gen > 0 {
			d.inside.Reset()
		}
		d.gen = gen
	}
	return gen, nil
}

// known is the container of the last command, 0 before the first.
func (d *Environment) known() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gen
}

// again reports whether what failed may be done once more: the container is gone and the program surely did not start.
func again(err error) bool {
	return errors.Is(err, remote.ErrVanished) && errors.Is(err, errNotStarted)
}

// recreatedNote is for the reader of a result.
const recreatedNote = "The container was gone, so this ran in a new one: files below /root and /workspace are as they were, everything else is new, and background processes have ended."

// Exec implements Environment. While an image is pulled or built for the first command, c.Output receives lines about
// that. When the container vanished before the command started, a new one is made and the command runs there
// (Result.Recreated); one that vanished under a running command is reported, and the command is not run again.
func (d *Environment) Exec(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	before := d.known()
	var progress func(string)
	if c.Output != nil {
		progress = func(line string) { _, _ = io.WriteString(c.Output, line+"\n") }
	}
	var r sandbox.Result
	var gen int
	var err error
	for try := 0; try < 2; try++ {
		if gen, err = d.prepare(ctx, progress); err != nil && ctx.Err() == nil {
			return sandbox.Result{}, err
		}
		r, err = d.inside.Exec(ctx, c) // tells an interrupt as such
		if !again(err) {
			break
		}
	}
	if errors.Is(err, remote.ErrStarted) {
		return d.cutOff(r, err), nil
	}
	if err == nil && before > 0 && gen > before {
		r.Recreated = true
		r.Note = execution.AddLine(r.Note, recreatedNote)
	}
	return r, err
}

// cutOff is the result of a command whose container or engine was lost under it.
func (d *Environment) cutOff(r sandbox.Result, err error) sandbox.Result {
	r.ExitCode = -1
	why := "the connection to the container engine was lost"
	if errors.Is(err, remote.ErrVanished) {
		why = "the container was stopped or removed"
	}
	r.Output = execution.AddLine(r.Output, "["+why+" while the command ran]")
	r.Note = execution.AddLine(r.Note, "The command had started and may have had an effect; it was not run again.")
	return r
}

// Start implements Environment.
func (d *Environment) Start(ctx context.Context, c sandbox.Command) (p sandbox.Process, err error) {
	err = d.attempt(ctx, func() error {
		p, err = d.inside.Start(ctx, c)
		return err
	})
	return p, err
}

// Resume implements Environment.
func (d *Environment) Resume(ctx context.Context, ref sandbox.Ref, c sandbox.Command) (sandbox.Process, error) {
	return d.inside.Resume(ctx, ref, c)
}

// Kill implements Environment.
func (d *Environment) Kill(ctx context.Context, p sandbox.Process) error {
	return d.inside.Kill(ctx, p)
}

// attempt does something that needs the container, once more when the container turned out to be gone.
func (d *Environment) attempt(ctx context.Context, do func() error) error {
	var err error
	for try := 0; try < 2; try++ {
		if _, err = d.prepare(ctx, nil); err != nil {
			return err
		}
		if err = do(); !again(err) {
			break
		}
	}
	return err
}

// attempted is attempt for what has a result.
func attempted[T any](ctx context.Context, d *Environment, do func() (T, error)) (v T, err error) {
	err = d.attempt(ctx, func() error {
		v, err = do()
		return err
	})
	return v, err
}

// Stat implements Files.
func (d *Environment) Stat(ctx context.Context, path string) (sandbox.FileInfo, error) {
	return attempted(ctx, d, func() (sandbox.FileInfo, error) { return d.inside.Stat(ctx, path) })
}

// Lstat implements Files.
func (d *Environment) Lstat(ctx context.Context, path string) (sandbox.FileInfo, error) {
	return attempted(ctx, d, func() (sandbox.FileInfo, error) { return d.inside.Lstat(ctx, path) })
}

// RealPath implements Files.
func (d *Environment) RealPath(ctx context.Context, path string) (string, error) {
	return attempted(ctx, d, func() (string, error) { return d.inside.RealPath(ctx, path) })
}

// List implements Files.
func (d *Environment) List(ctx context.Context, dir string) ([]sandbox.FileInfo, error) {
	return attempted(ctx, d, func() ([]sandbox.FileInfo, error) { return d.inside.List(ctx, dir) })
}

// Open implements Files.
func (d *Environment) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	return attempted(ctx, d, func() (io.ReadCloser, error) { return d.inside.Open(ctx, path) })
}

// ReadFile implements Files.
func (d *Environment) ReadFile(ctx context.Context, path string, max int64) ([]byte, error) {
	return attempted(ctx, d, func() ([]byte, error) { return d.inside.ReadFile(ctx, path, max) })
}

// WriteFile implements Files.
func (d *Environment) WriteFile(ctx context.Context, path string, data []byte, mode fs.FileMode) error {
	return d.attempt(ctx, func() error { return d.inside.WriteFile(ctx, path, data, mode) })
}

// MkdirAll implements Files.
func (d *Environment) MkdirAll(ctx context.Context, dir string, mode fs.FileMode) error {
	return d.attempt(ctx, func() error { return d.inside.MkdirAll(ctx, dir, mode) })
}

// Chmod implements Files.
func (d *Environment) Chmod(ctx context.Context, path string, mode fs.FileMode) error {
	return d.attempt(ctx, func() error { return d.inside.Chmod(ctx, path, mode) })
}

// Remove implements Files.
func (d *Environment) Remove(ctx context.Context, path string) error {
	return d.attempt(ctx, func() error { return d.inside.Remove(ctx, path) })
}

// Rename implements Files.
func (d *Environment) Rename(ctx context.Context, from, to string) error {
	return d.attempt(ctx, func() error { return d.inside.Rename(ctx, from, to) })
}

// Busy reports whether a command of Exec runs.
func (d *Environment) Busy() bool { return d.inside.Busy() }

// Reap removes containers of the profile that ended longer ago than age; 0 takes ten minutes. It returns how many.
func (d *Environment) Reap(ctx context.Context, age time.Duration) (int, error) {
	e, err := d.keeper.theEngine(ctx)
	if err != nil {
		return 0, err
	}
	if age <= 0 {
		age = orphanAge
	}
	return lifecycle{opts: d.opts, engine: e}.reap(ctx, d.opts.Now(), age)
}

// Close ends the commands that run and drops the container: a persistent one is left running where the options say so,
// with its background processes, and else it is stopped and removed.
func (d *Environment) Close() error { return errors.Join(d.inside.Close(), d.keeper.close()) }
