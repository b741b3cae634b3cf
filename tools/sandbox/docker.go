package sandbox

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"time"
)

// Docker runs commands in a container. The container is found or made by the first command, survives the process where
// the options say so, and is replaced when it vanished. It is safe for concurrent use.
type Docker struct {
	inside *remote
	opts   DockerOptions
	place  *dockerPlace

	mu  sync.Mutex
	gen int // of the container that the remote knows
}

// NewDocker checks the options. No engine is asked before the first command.
func NewDocker(o DockerOptions) (*Docker, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	place, err := newDockerPlace(o)
	if err != nil {
		return nil, err
	}
	r := newRemote(&dockerCarrier{place: place}, remoteOptions{Dir: o.cwd(), SpillDir: o.SpillDir, Window: o.Window, Env: o.commandEnv, KeepJobs: o.outlives(), JobGrace: o.JobGrace, JobLog: o.JobLog, Now: o.Now})
	return &Docker{inside: r, opts: o, place: place}, nil
}

// Key is whose container it is, see ContainerKey.
func (d *Docker) Key() string { return d.opts.key() }

// Backend is "docker".
func (d *Docker) Backend() string { return d.inside.Backend() }

// Home is the home directory of commands.
func (d *Docker) Home() string { return d.inside.Home() }

// Forget drops the directory of a session.
func (d *Docker) Forget(session string) { d.inside.Forget(session) }

// Dir returns where the session left off, or where a new one starts. It asks nothing of the engine.
func (d *Docker) Dir(session string) (string, bool) { return d.inside.Dir(session) }

// Mounts are the directories that the container shares with this machine: its own where it is known, else those that it
// will have.
func (d *Docker) Mounts() Mounts { return d.place.table() }

// prepare makes sure that there is a container, and that the remote knows it. It returns how many there were before.
func (d *Docker) prepare(ctx context.Context, progress func(string)) (gen int, err error) {
	_, gen, err = d.place.ready(ctx, progress)
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if gen > d.gen {
		if d.gen > 0 {
			d.inside.reset()
		}
		d.gen = gen
	}
	return gen, nil
}

// known is the container of the last command, 0 before the first.
func (d *Docker) known() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gen
}

// again reports whether what failed may be done once more: the container is gone and the program surely did not start.
func again(err error) bool { return errors.Is(err, errVanished) && errors.Is(err, errNotStarted) }

// recreatedNote is for the reader of a result.
const recreatedNote = "The container was gone, so this ran in a new one: files below /root and /workspace are as they were, everything else is new, and background processes have ended."

// Exec implements Environment. While an image is pulled or built for the first command, c.Output receives lines about
// that. When the container vanished before the command started, it is made anew and the command runs there
// (Result.Recreated); one that vanished under a running command is reported, and the command is not run again.
func (d *Docker) Exec(ctx context.Context, c Command) (Result, error) {
	before := d.known()
	var progress func(string)
	if c.Output != nil {
		progress = func(line string) { _, _ = io.WriteString(c.Output, line+"\n") }
	}
	var r Result
	var gen int
	var err error
	for try := 0; try < 2; try++ {
		if gen, err = d.prepare(ctx, progress); err != nil && ctx.Err() == nil {
			return Result{}, err
		}
		r, err = d.inside.Exec(ctx, c) // tells an interrupt as such
		if !again(err) {
			break
		}
	}
	if errors.Is(err, errStarted) {
		return d.cutOff(r, err), nil
	}
	if err == nil && before > 0 && gen > before {
		r.Recreated = true
		r.Note = addLine(r.Note, recreatedNote)
	}
	return r, err
}

// cutOff is the result of a command whose container or engine was lost under it.
func (d *Docker) cutOff(r Result, err error) Result {
	r.ExitCode = -1
	why := "the connection to the container engine was lost"
	if errors.Is(err, errVanished) {
		why = "the container was stopped or removed"
	}
	r.Output = addLine(r.Output, "["+why+" while the command ran]")
	r.Note = addLine(r.Note, "The command had started and may have had an effect; it was not run again.")
	return r
}

// Start implements Environment.
func (d *Docker) Start(ctx context.Context, c Command) (p Process, err error) {
	err = d.attempt(ctx, func() error {
		p, err = d.inside.Start(ctx, c)
		return err
	})
	return p, err
}

// Resume implements Environment.
func (d *Docker) Resume(ctx context.Context, ref Ref, c Command) (Process, error) {
	return d.inside.Resume(ctx, ref, c)
}

// Kill implements Environment.
func (d *Docker) Kill(ctx context.Context, p Process) error { return d.inside.Kill(ctx, p) }

// attempt does something that needs the container, once more when the container turned out to be gone.
func (d *Docker) attempt(ctx context.Context, do func() error) error {
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
func attempted[T any](ctx context.Context, d *Docker, do func() (T, error)) (v T, err error) {
	err = d.attempt(ctx, func() error {
		v, err = do()
		return err
	})
	return v, err
}

// Stat implements Files.
func (d *Docker) Stat(ctx context.Context, path string) (FileInfo, error) {
	return attempted(ctx, d, func() (FileInfo, error) { return d.inside.Stat(ctx, path) })
}

// Lstat implements Files.
func (d *Docker) Lstat(ctx context.Context, path string) (FileInfo, error) {
	return attempted(ctx, d, func() (FileInfo, error) { return d.inside.Lstat(ctx, path) })
}

// RealPath implements Files.
func (d *Docker) RealPath(ctx context.Context, path string) (string, error) {
	return attempted(ctx, d, func() (string, error) { return d.inside.RealPath(ctx, path) })
}

// List implements Files.
func (d *Docker) List(ctx context.Context, dir string) ([]FileInfo, error) {
	return attempted(ctx, d, func() ([]FileInfo, error) { return d.inside.List(ctx, dir) })
}

// Open implements Files.
func (d *Docker) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	return attempted(ctx, d, func() (io.ReadCloser, error) { return d.inside.Open(ctx, path) })
}

// ReadFile implements Files.
func (d *Docker) ReadFile(ctx context.Context, path string, max int64) ([]byte, error) {
	return attempted(ctx, d, func() ([]byte, error) { return d.inside.ReadFile(ctx, path, max) })
}

// WriteFile implements Files.
func (d *Docker) WriteFile(ctx context.Context, path string, data []byte, mode fs.FileMode) error {
	return d.attempt(ctx, func() error { return d.inside.WriteFile(ctx, path, data, mode) })
}

// MkdirAll implements Files.
func (d *Docker) MkdirAll(ctx context.Context, dir string, mode fs.FileMode) error {
	return d.attempt(ctx, func() error { return d.inside.MkdirAll(ctx, dir, mode) })
}

// Chmod implements Files.
func (d *Docker) Chmod(ctx context.Context, path string, mode fs.FileMode) error {
	return d.attempt(ctx, func() error { return d.inside.Chmod(ctx, path, mode) })
}

// Remove implements Files.
func (d *Docker) Remove(ctx context.Context, path string) error {
	return d.attempt(ctx, func() error { return d.inside.Remove(ctx, path) })
}

// Rename implements Files.
func (d *Docker) Rename(ctx context.Context, from, to string) error {
	return d.attempt(ctx, func() error { return d.inside.Rename(ctx, from, to) })
}

// Busy reports whether a command of Exec runs.
func (d *Docker) Busy() bool { return d.inside.Busy() }

// Reap removes containers of the profile that ended longer ago than age; 0 takes ten minutes. It returns how many.
func (d *Docker) Reap(ctx context.Context, age time.Duration) (int, error) {
	e, err := d.place.theEngine(ctx)
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
func (d *Docker) Close() error { return errors.Join(d.inside.Close(), d.place.close()) }
