package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"herald/tools/sandbox/remote"
)

// lifecycle finds, starts and makes containers of one set of options.
type lifecycle struct {
	opts   Options
	engine *engine
	tell   func(line string)
}

// take returns a running container of the key: one that is there, else a new one.
func (l lifecycle) take(ctx context.Context) (container.InspectResponse, error) {
	if l.opts.Request.Persistent {
		c, ok, err := l.reuse(ctx)
		if ok || err != nil {
			return c, err
		}
	}
	return l.create(ctx)
}

// reuse looks for a container by all of its labels. A running one is preferred, else the first listed; a stopped one is
// started. ok is false when a new one has to be made.
func (l lifecycle) reuse(ctx context.Context) (c container.InspectResponse, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, attachWait)
	defer cancel()
	found, err := listContainers(ctx, l.engine, l.opts.labels())
	if err != nil {
		return c, false, fmt.Errorf("the container engine does not list its containers: %w", err)
	}
	if err := l.dropOpen(ctx); err != nil {
		return c, false, err
	}
	slices.SortStableFunc(found, func(a, b container.Summary) int { return rank(a) - rank(b) })
	for _, s := range found {
		c, err := l.attach(ctx, s.ID)
		if err == nil {
			return c, true, nil
		}
		if ctx.Err() != nil {
			return c, false, ctx.Err()
		}
		l.opts.Log.Warn().Err(err).Str("container", shortID(s.ID)).Msg("sandbox: a container can't be taken up again; another is used")
	}
	return c, false, nil
}

// rank puts running containers first.
func rank(s container.Summary) int {
	if s.State == container.StateRunning {
		return 0
	}
	return 1
}

// dropOpen removes containers of the same owner that still have a network when it was switched off, and the other way
// round: an owner has one container. Shared ones belong to others too, so they are left to those.
func (l lifecycle) dropOpen(ctx context.Context) error {
	if l.opts.Request.Shared != "" {
		return nil
	}
	other := l.opts.labels()
	other[labelEgress] = map[string]string{"open": "none", "none": "open"}[other[labelEgress]]
	found, err := listContainers(ctx, l.engine, other)
	if err != nil {
		return fmt.Errorf("the container engine does not list its containers: %w", err)
	}
	for _, s := range found {
		if err := forceRemove(ctx, l.engine, s.ID); err != nil {
			return fmt.Errorf("the container with the former network setting: %w", err)
		}
		l.opts.Log.Info().Str("container", shortID(s.ID)).Msg("sandbox: the network setting changed; the former container is removed, its files stay")
	}
	return nil
}

// attach takes a container up. With the network off, one that has a network, or of which that is not known, is removed.
func (l lifecycle) attach(ctx context.Context, id string) (container.InspectResponse, error) {
	r, err := l.engine.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	c := r.Container
	if l.opts.NoNetwork && (err != nil || c.HostConfig == nil || c.HostConfig.NetworkMode != "none") {
		return c, errors.Join(errors.New("the network is off, and this container has one or does not say"), err, forceRemove(ctx, l.engine, id))
	}
	if err != nil {
		return c, err
	}
	return l.wake(ctx, c)
}

// wakeTries is how often a container that does not run is started before another is made: on a busy machine an engine may
// refuse the first time because the container is still on its way into the state that it reported.
const wakeTries = 3

// wake starts a container that does not run.
func (l lifecycle) wake(ctx context.Context, c container.InspectResponse) (container.InspectResponse, error) {
	var last error
	for try := range wakeTries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return c, ctx.Err()
			case <-time.After(300 * time.Millisecond):
			}
			r, err := l.engine.api.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
			if err != nil {
				return c, errors.Join(last, err)
			}
			c = r.Container
		}
		var err error
		switch state(c) {
		case container.StateRunning:
			return c, nil
		case container.StatePaused:
			_, err = l.engine.api.ContainerUnpause(ctx, c.ID, client.ContainerUnpauseOptions{})
		default:
			_, err = l.engine.api.ContainerStart(ctx, c.ID, client.ContainerStartOptions{})
		}
		if err != nil {
			last = fmt.Errorf("it does not start: %w", err)
			continue
		}
		started, err := l.inspectRunning(ctx, c.ID)
		if err == nil {
			return started, nil
		}
		last = err
	}
	return c, last
}

// inspectRunning returns a container that was just started, or an error when it ended at once.
func (l lifecycle) inspectRunning(ctx context.Context, id string) (container.InspectResponse, error) {
	r, err := l.engine.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return container.InspectResponse{}, err
	}
	if state(r.Container) != container.StateRunning {
		return r.Container, fmt.Errorf("the container ended at once (%s); does its image have the program sleep?", state(r.Container))
	}
	return r.Container, nil
}

// only is the one container that was just started.
type only struct {
	api *client.Client
	id  string
}

func (o only) container(context.Context) (*client.Client, string, error) { return o.api, o.id, nil }

func (only) lost(string) {}

func (o only) running(ctx context.Context, id string) (bool, error) {
	return containerRuns(ctx, o.api, id)
}

// create makes a container and starts it. When that fails or takes too long, nothing of it stays.
func (l lifecycle) create(ctx context.Context) (container.InspectResponse, error) {
	entrypoint, err := l.image(ctx)
	if err != nil {
		return container.InspectResponse{}, err
	}
	can := l.engine.probe.limits(ctx, l)
	s, err := l.opts.build(can, entrypoint)
	if err != nil {
		return container.InspectResponse{}, err
	}
	if l.engine.podman && l.opts.HostUser && os.Getuid() != 0 && s.host.UsernsMode == "" {
		s.host.UsernsMode = "keep-id" // rootless Podman has the user under another number otherwise
	}
	l.tell("making the container")
	ctx, cancel := context.WithTimeout(ctx, createWait)
	defer cancel()
	name := containerName()
	c, err := l.launch(ctx, name, s)
	if err != nil && initMissing(err) {
		off := false
		s.host.Init = &off
		l.drop(name)
		c, err = l.launch(ctx, name, s)
	}
	if err != nil {
		return c, errors.Join(fmt.Errorf("the container could not be made: %w", err), l.drop(name))
	}
	l.opts.Log.Info().Str("container", name).Str("image", l.opts.Image).Str("key", l.opts.key()).Bool("limits", can.resources).Msg("sandbox: a container was made")
	return c, nil
}

func (l lifecycle) launch(ctx context.Context, name string, s spec) (container.InspectResponse, error) {
	made, err := l.engine.api.ContainerCreate(ctx, client.ContainerCreateOptions{Config: s.config, HostConfig: s.host, Name: name})
	if err != nil {
		return container.InspectResponse{}, err
	}
	if _, err := l.engine.api.ContainerStart(ctx, made.ID, client.ContainerStartOptions{}); err != nil {
		return container.InspectResponse{}, err
	}
	c, err := l.inspectRunning(ctx, made.ID)
	if err != nil {
		return c, err
	}
	// One whose first process starts another runs for a moment also when that one can't be started.
	code, err := (&carrier{keeper: only{l.engine.api, made.ID}}).Run(ctx, []string{"sleep", "0"}, remote.Streams{})
	if err != nil || code != 0 {
		return c, errors.Join(fmt.Errorf("the container runs no programs (sleep 0 gives %d); does its image have the program sleep?", code), err)
	}
	return c, nil
}

// drop removes by name what an attempt left, however the attempt ended.
func (l lifecycle) drop(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), removeWait)
	defer cancel()
	return forceRemove(ctx, l.engine, name)
}

// initMissing reports whether the engine lacks the program that is the container's first process (Podman's catatonit,
// Environment's docker-init are packages of their own).
func initMissing(err error) bool {
	text := err.Error()
	return strings.Contains(text, "docker-init") || strings.Contains(text, "catatonit") || strings.Contains(text, "container-init")
}

// listContainers lists those that carry all the labels, running or not, in the engine's order.
func listContainers(ctx context.Context, e *engine, labels map[string]string) ([]container.Summary, error) {
	f := client.Filters{}
	for name, value := range labels {
		f.Add("label", name+"="+value)
	}
	r, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: f})
	return r.Items, err
}

// limitsProbe finds out once per engine which limits hold.
type limitsProbe struct {
	mu    sync.Mutex
	known bool
	can   limits
}

// limits starts a throwaway container with the limits. What the engine refuses or ignores is left out later.
func (p *limitsProbe) limits(ctx context.Context, l lifecycle) limits {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known {
		return p.can
	}
	var can limits
	var r container.Resources
	l.opts.limitResources(&r)
	can.resources = l.tryLimits(ctx, &container.HostConfig{NetworkMode: "none", Resources: r}, true)
	if l.opts.DiskMB > 0 && l.overlay(ctx) {
		can.disk = l.tryLimits(ctx, &container.HostConfig{NetworkMode: "none",
			StorageOpt: map[string]string{"size": fmt.Sprintf("%dm", l.opts.DiskMB)}}, false)
	}
	if ctx.Err() == nil {
		p.known, p.can = true, can
	}
	if !can.resources {
		l.opts.Log.Warn().Msg("sandbox: this container engine can't limit processor, memory and processes; the container has no limits")
	}
	return can
}

// overlay reports whether the engine's storage may know a size limit.
func (l lifecycle) overlay(ctx context.Context) bool {
	if runtime.GOOS == "darwin" {
		return false
	}
	i, err := l.engine.api.Info(ctx, client.InfoOptions{})
	return err == nil && i.Info.Driver == "overlay2"
}

// tryLimits makes a container that ends at once, and starts it where start is true.
func (l lifecycle) tryLimits(ctx context.Context, h *container.HostConfig, start bool) bool {
	ctx, cancel := context.WithTimeout(ctx, createWait)
	defer cancel()
	name := containerName() + "-probe"
	defer l.drop(name) // the reaper finds what is left
	labels := map[string]string{labelAgent: "1", labelIdentity: l.opts.labels()[labelIdentity], labelHome: l.opts.labels()[labelHome],
		labelLifetime: "probe"}
	made, err := l.engine.api.ContainerCreate(ctx, client.ContainerCreateOptions{Name: name, HostConfig: h,
		Config: &container.Config{Image: l.opts.Image, Labels: labels, Entrypoint: []string{"sleep"}, Cmd: []string{"0"}}})
	if err != nil {
		return false
	}
	for _, w := range made.Warnings {
		if strings.Contains(w, "discarded") || strings.Contains(w, "not support") {
			return false
		}
	}
	if !start {
		return true
	}
	if _, err := l.engine.api.ContainerStart(ctx, made.ID, client.ContainerStartOptions{}); err != nil {
		return false
	}
	return l.ended(ctx, made.ID)
}

// ended waits for the end of a container and reports whether that was a good one.
func (l lifecycle) ended(ctx context.Context, id string) bool {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		r, err := l.engine.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
		if err != nil {
			return false
		}
		if state(r.Container) == container.StateExited {
			return r.Container.State.ExitCode == 0
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// orphanAge is how long a container must have been ended before it counts as an orphan.
const orphanAge = 600 * time.Second

// reap removes the orphans of a profile: containers of Herald's that ended longer ago than age. One whose end is not
// known is kept, and one that can't be removed does not keep the others from it. It returns how many were removed.
func (l lifecycle) reap(ctx context.Context, now time.Time, age time.Duration) (removed int, err error) {
	own := l.opts.labels()
	found, err := listContainers(ctx, l.engine, map[string]string{labelAgent: "1", labelIdentity: own[labelIdentity],
		labelHome: own[labelHome]})
	if err != nil {
		return 0, fmt.Errorf("the container engine does not list its containers: %w", err)
	}
	for _, s := range found {
		if s.State != container.StateExited {
			continue
		}
		r, err := l.engine.api.ContainerInspect(ctx, s.ID, client.ContainerInspectOptions{})
		if err != nil || !orphaned(r.Container.State, now, age) {
			continue
		}
		if err := forceRemove(ctx, l.engine, s.ID); err != nil {
			l.opts.Log.Warn().Err(err).Msg("sandbox: an orphaned container stays")
			continue
		}
		removed++
	}
	return removed, nil
}

// orphaned reports whether a container ended longer ago than age.
func orphaned(s *container.State, now time.Time, age time.Duration) bool {
	if s == nil || s.Status != container.StateExited {
		return false
	}
	ended, err := time.Parse(time.RFC3339Nano, s.FinishedAt)
	if err != nil || ended.Year() <= 1 {
		return false // it does not say when
	}
	return now.Sub(ended) > age
}
