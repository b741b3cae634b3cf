package docker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/gofrs/flock"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"herald/tools/sandbox"
	"herald/tools/sandbox/attempt"
	"herald/tools/sandbox/mounts"
)

// Time limits of the life of a container.
const (
	createWait = 120 * time.Second // to make and start one
	attachWait = 60 * time.Second  // to find one and start it
	imageWait  = 15 * time.Minute  // to pull or build an image
	removeWait = 15 * time.Second  // to stop and remove one, together
	stopGrace  = 10                // seconds between TERM and KILL
)

// lockName is the file by which two processes keep from making the same container at once.
const lockName = "container.lock"

// keeper owns the container of one key: it finds or makes it when a program wants to run, and again when it was
// lost. It is safe for concurrent use.
type keeper struct {
	opts     Options
	ctx      context.Context // ends with close
	cancel   context.CancelFunc
	routines sync.WaitGroup

	mu     sync.Mutex
	engine *engine
	id     string
	gen    int // counts the containers, and the starts of a stopped one
	mounts mounts.Table
	making *attempt.Attempt
	reaped bool
	closed bool
}

func newKeeper(o Options) (*keeper, error) {
	planned, err := o.planned()
	if err != nil {
		return nil, err
	}
	p := &keeper{opts: o, mounts: planned}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// container returns the engine and the id of the running container.
func (p *keeper) container(ctx context.Context) (*client.Client, string, error) {
	id, _, err := p.ready(ctx, nil)
	if err != nil {
		return nil, "", err
	}
	e, err := p.theEngine(ctx)
	if err != nil {
		return nil, "", err
	}
	return e.api, id, nil
}

// ready returns the container and how many there were before it. A caller that gives up does not end the attempt: the
// next one finds it further on. progress, which may be nil, receives lines meanwhile.
func (p *keeper) ready(ctx context.Context, progress func(string)) (id string, gen int, err error) {
	for {
		p.mu.Lock()
		switch {
		case p.closed:
			p.mu.Unlock()
			return "", 0, sandbox.ErrClosed
		case p.id != "":
			defer p.mu.Unlock()
			return p.id, p.gen, nil
		}
		m := p.making
		if m == nil {
			m = attempt.New()
			p.making = m
			p.routines.Go(func() { p.make(m) })
		}
		p.mu.Unlock()
		if err := m.Wait(ctx, progress); err != nil {
			return "", 0, err
		}
	}
}

// make is one attempt.
func (p *keeper) make(m *attempt.Attempt) {
	id, shared, err := p.findOrCreate(m)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.making = nil
	if err != nil {
		if !errors.Is(err, sandbox.ErrUnavailable) {
			err = fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err)
		}
	} else {
		p.id, p.mounts = id, shared
		p.gen++
	}
	m.End(err)
}

func (p *keeper) findOrCreate(m *attempt.Attempt) (id string, shared mounts.Table, err error) {
	e, err := p.theEngine(p.ctx)
	if err != nil {
		return "", mounts.Table{}, err
	}
	unlock, err := p.lock(p.ctx)
	if err != nil {
		return "", mounts.Table{}, err
	}
	defer unlock()
	l := lifecycle{opts: p.opts, engine: e, tell: func(line string) {
		m.Tell(line)
		if p.opts.Progress != nil {
			p.opts.Progress(line)
		}
	}}
	c, err := l.take(p.ctx)
	if err != nil {
		return "", mounts.Table{}, err
	}
	p.reapOnce(l)
	shared, err = p.opts.found(c.Mounts)
	return c.ID, shared, err
}

// reapOnce removes orphans in the background, once. The keeper's own container runs by now, so it is not among them.
func (p *keeper) reapOnce(l lifecycle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped || p.opts.KeepOrphans {
		return
	}
	p.reaped = true
	p.routines.Go(func() {
		n, err := l.reap(p.ctx, p.opts.Now(), orphanAge)
		if n > 0 || err != nil && p.ctx.Err() == nil {
			p.opts.Log.Info().Err(err).Int("removed", n).Msg("sandbox: containers that ended long ago are removed")
		}
	})
}

// theEngine finds the engine once. One that was lost is asked again at the same address by the client itself.
func (p *keeper) theEngine(ctx context.Context) (*engine, error) {
	p.mu.Lock()
	e := p.engine
	p.mu.Unlock()
	if e != nil {
		return e, nil
	}
	e, err := findEngine(ctx, p.opts.Engine)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.engine != nil {
		_ = e.close()
		return p.engine, nil
	}
	p.engine = e
	return e, nil
}

// lock keeps two processes, and two profiles of one, from making the same container at once.
func (p *keeper) lock(ctx context.Context) (unlock func(), err error) {
	if !p.opts.Request.Persistent {
		return func() {}, nil
	}
	if err := p.opts.makeDirs(); err != nil {
		return nil, err
	}
	f := flock.New(filepath.Join(p.opts.filesDir(), lockName))
	ctx, cancel := context.WithTimeout(ctx, imageWait+createWait)
	defer cancel()
	if _, err := f.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return nil, fmt.Errorf("waiting for another process that makes the container: %w", err)
	}
	return func() { _ = f.Unlock() }, nil
}

// lost notes that a container is gone.
func (p *keeper) lost(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.id == id {
		p.id = ""
	}
}

// running reports whether a container can run programs.
func (p *keeper) running(ctx context.Context, id string) (bool, error) {
	e, err := p.theEngine(ctx)
	if err != nil {
		return false, err
	}
	return containerRuns(ctx, e.api, id)
}

// containerRuns asks the engine whether a container can run programs. One that is gone can't, and is no error.
func containerRuns(ctx context.Context, api *client.Client, id string) (bool, error) {
	r, err := api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if cerrdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return r.Container.State != nil && r.Container.State.Running && !r.Container.State.Paused, nil
}

// table is the mounts: those of the container where it is known, else those that it will have.
func (p *keeper) table() mounts.Table {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mounts
}

// close drops the handle. A container that does not outlive the process is stopped and removed.
func (p *keeper) close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.routines.Wait() // an attempt that is cut off removes what it made
	p.mu.Lock()
	e, id := p.engine, p.id
	p.mu.Unlock()
	if e == nil {
		return nil
	}
	var err error
	if id != "" && !p.opts.outlives() {
		err = removeContainer(e, id)
	}
	return errors.Join(err, e.close())
}

// outlives reports whether the container is left running for the next process. One that others share is never ended by
// one of them.
func (o Options) outlives() bool {
	return o.Request.Persistent && (o.KeepRunning || o.Request.Shared != "")
}

// removeContainer stops and removes a container; one that is gone already is fine.
func removeContainer(e *engine, id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), removeWait)
	defer cancel()
	grace := stopGrace
	if _, err := e.api.ContainerStop(ctx, id, client.ContainerStopOptions{Timeout: &grace}); err != nil && cerrdefs.IsNotFound(err) {
		return nil
	}
	return forceRemove(ctx, e, id)
}

// forceRemove removes a container with its anonymous volumes.
func forceRemove(ctx context.Context, e *engine, id string) error {
	_, err := e.api.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !cerrdefs.IsNotFound(err) && !cerrdefs.IsConflict(err) { // conflict: it is being removed already
		return fmt.Errorf("container %s is left: %w; remove it with docker rm -f", shortID(id), err)
	}
	return nil
}

func shortID(id string) string { return id[:min(12, len(id))] }

// containerName is a new one, such as herald-1f2e3d4c.
func containerName() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return "herald-" + hex.EncodeToString(b[:])
}

// used reports whether the key ever had files below the sandbox directory.
func (o Options) used() bool {
	_, err := os.Lstat(o.filesDir())
	return !errors.Is(err, os.ErrNotExist)
}

// state returns the state of a container as the engine has it, "" when it does not say.
func state(c container.InspectResponse) container.ContainerState {
	if c.State == nil {
		return ""
	}
	return c.State.Status
}
