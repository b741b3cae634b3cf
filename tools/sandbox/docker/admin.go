package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"time"

	"github.com/moby/moby/client"

	"herald/tools/sandbox"
	"herald/tools/sandbox/mounts"
)

// ContainerInfo is what a person wants to know of a container.
type ContainerInfo struct {
	ID, Name, Image string
	State           string // "running", "exited"
	Network         string // "default", "none"
	Created         time.Time
	CPU             float64 // cores; 0 is no limit
	MemoryMB        int64   // 0 is no limit
	Mounts          []mounts.Mount
}

// Engine tells which container engine answers. The error wraps ErrUnavailable.
func (d *Environment) Engine(ctx context.Context) (Engine, error) {
	e, err := d.keeper.theEngine(ctx)
	if err != nil {
		return Engine{}, err
	}
	return e.info(), nil
}

// Image is the image of new containers.
func (d *Environment) Image() string { return d.opts.Image }

// FilesDir is where a persistent container's home and workspace are on this machine; empty for a throwaway one.
func (d *Environment) FilesDir() string {
	if !d.opts.Request.Persistent {
		return ""
	}
	return d.opts.filesDir()
}

// Find looks for the container without making one; ok is false where there is none.
func (d *Environment) Find(ctx context.Context) (info ContainerInfo, ok bool, err error) {
	e, err := d.keeper.theEngine(ctx)
	if err != nil {
		return ContainerInfo{}, false, err
	}
	found, err := listContainers(ctx, e, d.opts.labels())
	if err != nil || len(found) == 0 {
		return ContainerInfo{}, false, err
	}
	best := found[0]
	for _, s := range found {
		if rank(s) < rank(best) {
			best = s
		}
	}
	r, err := e.api.ContainerInspect(ctx, best.ID, client.ContainerInspectOptions{})
	if err != nil {
		return ContainerInfo{}, false, err
	}
	c := r.Container
	info = ContainerInfo{ID: shortID(c.ID), Name: trimSlash(c.Name), State: string(state(c))}
	info.Created, _ = time.Parse(time.RFC3339Nano, c.Created)
	if c.Config != nil {
		info.Image = c.Config.Image
	}
	if h := c.HostConfig; h != nil {
		info.Network, info.CPU, info.MemoryMB = string(h.NetworkMode), float64(h.NanoCPUs)/1e9, h.Memory>>20
	}
	mounts, err := d.opts.found(c.Mounts)
	info.Mounts = mounts.All()
	return info, true, err
}

func trimSlash(name string) string {
	if len(name) > 1 && name[0] == '/' {
		return name[1:]
	}
	return name
}

// Discard removes the container, whatever its network is; its files stay. It returns how many there were.
func (d *Environment) Discard(ctx context.Context) (int, error) {
	e, err := d.keeper.theEngine(ctx)
	if err != nil {
		return 0, err
	}
	labels := maps.Clone(d.opts.labels())
	delete(labels, labelEgress)
	found, err := listContainers(ctx, e, labels)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, s := range found {
		errs = append(errs, forceRemove(ctx, e, s.ID))
		d.keeper.lost(s.ID)
	}
	return len(found), errors.Join(errs...)
}

// DiscardFiles deletes the home and the workspace of a persistent container. The container must be gone.
func (d *Environment) DiscardFiles() error {
	dir := d.FilesDir()
	if dir == "" {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("the container's files: %w; what a root user of the container made can be removed by root alone", err)
	}
	return nil
}

// MakeImage builds or pulls the image where the engine does not have it.
func (d *Environment) MakeImage(ctx context.Context, progress func(line string)) error {
	e, err := d.keeper.theEngine(ctx)
	if err != nil {
		return err
	}
	if progress == nil {
		progress = func(string) {}
	}
	_, err = lifecycle{opts: d.opts, engine: e, tell: progress}.image(ctx)
	return err
}

// MakeContainer makes or finds a persistent container ahead of its first command; a throwaway one is left to that. When
// it fails for a profile that never had files in a container, nothing of the attempt is left, so that Used stays false.
func (d *Environment) MakeContainer(ctx context.Context, progress func(line string)) error {
	if !d.opts.Request.Persistent {
		return nil
	}
	used := d.Used()
	_, _, err := d.keeper.ready(ctx, progress)
	if err != nil && !used {
		d.opts.unmakeDirs()
	}
	return err
}

// Used reports whether the key of a persistent container ever had files below the sandbox directory. Once it had, its
// commands must not run anywhere else.
func (d *Environment) Used() bool { return d.opts.Request.Persistent && d.opts.used() }

// Terminal is a person's terminal.
type Terminal struct {
	In            io.Reader
	Out           io.Writer
	Width, Height uint
	// Resized, which may be nil, tells of new sizes.
	Resized <-chan [2]uint // width, height
	// Term is the value of TERM; empty takes xterm.
	Term string
}

// Shell opens a login shell in the container on a terminal and returns its exit code.
func (d *Environment) Shell(ctx context.Context, t Terminal) (int, error) {
	if _, err := d.prepare(ctx, func(line string) { fmt.Fprintf(t.Out, "%s\r\n", line) }); err != nil {
		return 0, err
	}
	api, id, err := d.keeper.container(ctx)
	if err != nil {
		return 0, err
	}
	env := d.opts.commandEnv()
	env["TERM"] = "xterm"
	if t.Term != "" {
		env["TERM"] = t.Term
	}
	size := client.ConsoleSize{Width: t.Width, Height: t.Height}
	made, err := api.ExecCreate(ctx, id, client.ExecCreateOptions{TTY: true, AttachStdin: true, AttachStdout: true, AttachStderr: true,
		Env:        sandbox.Environ(env),
		WorkingDir: d.opts.cwd(), Cmd: []string{"sh", "-c", "command -v bash >/dev/null && exec bash -l; exec sh -l"}})
	if err != nil {
		return 0, fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err)
	}
	// The size is given by a call of its own: engines before API 1.42 don't take it here.
	conn, err := api.ExecAttach(ctx, made.ID, client.ExecAttachOptions{TTY: true})
	if err != nil {
		return 0, fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, conn.Close)()
	resize := func(s client.ConsoleSize) {
		_, _ = api.ExecResize(ctx, made.ID, client.ExecResizeOptions(s))
	}
	if size.Width > 0 && size.Height > 0 {
		resize(size)
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case s := <-t.Resized:
				resize(client.ConsoleSize{Width: s[0], Height: s[1]})
			case <-over:
				return
			}
		}
	}()
	go func() {
		_, _ = io.Copy(conn.Conn, t.In)
		_ = conn.CloseWrite()
	}()
	_, _ = io.Copy(t.Out, conn.Reader)
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return (&carrier{keeper: d.keeper}).result(ctx, api, id, made.ID)
}
