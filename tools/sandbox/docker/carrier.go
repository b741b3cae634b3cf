package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"herald/tools/sandbox"
	"herald/tools/sandbox/remote"
)

// errNotStarted is wrapped beside remote.ErrVanished or ErrUnavailable when the program certainly did not run, so that it may
// be run again.
var errNotStarted = errors.New("the program was not started")

// The pauses between two looks whether a program ended, while its output is open and after that.
const (
	lookOpen   = 500 * time.Millisecond
	lookClosed = 250 * time.Millisecond
	dyingLook  = 100 * time.Millisecond // between looks whether the container is dying too
)

// containers hands out the container that programs run in.
type containers interface {
	// container returns the engine and the id of a running container, which is made where there is none.
	container(ctx context.Context) (api *client.Client, id string, err error)
	// lost says that a container was seen to be gone or not to run.
	lost(id string)
	// running asks the engine.
	running(ctx context.Context, id string) (bool, error)
}

// carrier runs programs in a container through the engine's exec calls.
type carrier struct {
	keeper containers
	feeds  sync.WaitGroup
}

// Backend implements remote.Carrier.
func (d *carrier) Backend() string { return "docker" }

// Run implements remote.Carrier. The engine starts programs in a session of their own.
func (d *carrier) Run(ctx context.Context, argv []string, s remote.Streams) (int, error) {
	api, id, err := d.keeper.container(ctx)
	if err != nil {
		return 0, d.failed(ctx, err, true)
	}
	made, err := api.ExecCreate(ctx, id, client.ExecCreateOptions{
		AttachStdin: s.In != nil, AttachStdout: true, AttachStderr: true, Env: sandbox.Environ(s.Env), WorkingDir: "/", Cmd: argv,
	})
	if err != nil {
		return 0, d.refused(ctx, id, err)
	}
	conn, err := api.ExecAttach(ctx, made.ID, client.ExecAttachOptions{})
	switch {
	case err == nil:
	case strings.Contains(err.Error(), "unable to upgrade to"):
		return 0, d.refused(ctx, id, d.why(ctx, id, err)) // the engine said no
	default:
		return 0, d.failed(ctx, err, false)
	}
	defer conn.Close()
	d.feed(conn, s.In)
	if err := attend(ctx, api, made.ID, conn, s); err != nil {
		return 0, d.broken(ctx, id, err)
	}
	return d.result(ctx, api, id, made.ID)
}

// feed copies the input from a goroutine, which ends with the connection.
func (d *carrier) feed(conn client.ExecAttachResult, in io.Reader) {
	if in == nil {
		return
	}
	d.feeds.Go(func() {
		_, _ = io.Copy(conn.Conn, in)
		_ = conn.CloseWrite()
	})
}

// idleDrain is how long nothing may come any more, after the engine saw the program's end, before its output is taken to
// be held by somebody else: a busy machine is slow to hand over the rest.
const idleDrain = 5 * time.Second

// counted counts what was written.
type counted struct {
	to io.Writer
	n  *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	c.n.Add(1)
	if c.to == nil {
		return len(p), nil
	}
	return c.to.Write(p)
}

// attend passes the output on until the program ended. A child that holds the output open, and is silent, is not waited
// for.
func attend(ctx context.Context, api *client.Client, exec string, conn client.ExecAttachResult, s remote.Streams) error {
	var came atomic.Int64
	read := make(chan error, 1)
	go func() {
		_, err := stdcopy.StdCopy(counted{s.Out, &came}, counted{s.Err, &came}, conn.Reader)
		read <- err
	}()
	tick := time.NewTicker(lookOpen)
	defer tick.Stop()
	var seen int64
	var since time.Time // the engine says that the program does not run, and nothing came
	for {
		select {
		case err := <-read:
			return err
		case <-ctx.Done():
			conn.Close()
			<-read
			return ctx.Err()
		case <-tick.C:
		}
		st, err := api.ExecInspect(ctx, exec, client.ExecInspectOptions{})
		switch n := came.Load(); {
		case err != nil || st.Running || n != seen || since.IsZero(): // not running is also one that begins just now
			since, seen = time.Now(), n
		case time.Since(since) > idleDrain:
			conn.Close()
			<-read
			return nil
		}
	}
}

// result waits until the engine has seen the program's end, and returns its exit code. A code that a dying container
// gives is looked at twice.
func (d *carrier) result(ctx context.Context, api *client.Client, id, exec string) (int, error) {
	pause := time.Millisecond
	for {
		st, err := api.ExecInspect(ctx, exec, client.ExecInspectOptions{})
		if err != nil {
			return 0, d.broken(ctx, id, err)
		}
		if !st.Running {
			if d.died(ctx, id, st.ExitCode) {
				d.keeper.lost(id)
				return 0, fmt.Errorf("%w: the container ended while the command ran", remote.ErrVanished)
			}
			return st.ExitCode, nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, lookClosed)
	}
}

// died reports whether a program ended because its container did. Only the codes of a program that was killed or could
// not be started leave a doubt; the engine notes the end of the container a moment after that of its programs.
func (d *carrier) died(ctx context.Context, id string, code int) bool {
	if code >= 0 && code != 126 && code != 127 && code <= 128 {
		return false
	}
	for range 5 {
		if alive, err := d.keeper.running(ctx, id); err == nil && !alive {
			return true
		}
		if code != 137 { // of SIGKILL
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(dyingLook):
		}
	}
	return false
}

// why replaces the client's words, which leave out the reason, by what the container's state says.
func (d *carrier) why(ctx context.Context, id string, err error) error {
	if alive, e := d.keeper.running(ctx, id); e == nil && !alive {
		return fmt.Errorf("the container is not running: %w", err)
	}
	return err
}

// refused is an error before the program could start.
func (d *carrier) refused(ctx context.Context, id string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if notRunning(err) {
		d.keeper.lost(id)
		return fmt.Errorf("%w: %w: %w", remote.ErrVanished, errNotStarted, err)
	}
	return d.failed(ctx, err, true)
}

// broken is an error after the program may have started.
func (d *carrier) broken(ctx context.Context, id string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	alive, e := d.keeper.running(ctx, id)
	if notRunning(err) || e == nil && !alive {
		d.keeper.lost(id)
		return fmt.Errorf("%w while the command ran: %w", remote.ErrVanished, err)
	}
	return d.failed(ctx, err, false)
}

// failed is an engine that did not do what it was asked.
func (d *carrier) failed(ctx context.Context, err error, before bool) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, sandbox.ErrUnavailable), errors.Is(err, remote.ErrVanished):
	case before:
		err = fmt.Errorf("%w: container engine: %w", sandbox.ErrUnavailable, err)
	default:
		err = fmt.Errorf("%w: container engine: %w; the command may have run", sandbox.ErrUnavailable, err)
	}
	if before {
		err = fmt.Errorf("%w: %w", errNotStarted, err)
	}
	return err
}

// Close implements remote.Carrier. The container lives on.
func (d *carrier) Close() error {
	d.feeds.Wait()
	return nil
}
