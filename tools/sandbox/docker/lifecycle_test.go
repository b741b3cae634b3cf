package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"herald/tools/needtest"
	"herald/tools/sandbox"
	"herald/tools/sandbox/remote"
)

// Images that .ci/engine makes.
const (
	busyboxImage = "herald-test/busybox"
	debianImage  = "herald-test/debian"
)

// theTestEngine is the real engine, with one probe of its limits for all tests.
var theTestEngine = sync.OnceValues(func() (*engine, error) { return findEngine(context.Background(), "") })

// closeTestEngine ends its idle connections, for the look at what leaks.
func closeTestEngine() {
	if e, err := theTestEngine(); err == nil {
		_ = e.close()
	}
}

// testEngine lets the test run beside the others of the engine.
func testEngine(t *testing.T) *engine {
	t.Helper()
	needtest.Heavy(t, "a container engine")
	t.Parallel()
	e, err := theTestEngine()
	if err != nil {
		needtest.Lacking(t, "no container engine (run .ci/engine): %v", err)
	}
	if _, err := e.api.ImageInspect(t.Context(), busyboxImage); err != nil {
		needtest.Lacking(t, "the image %s is not there (run .ci/engine): %v", busyboxImage, err)
	}
	return e
}

// dockerOptions are of a durable container whose sandbox directory no other test has, so that no other test's containers
// match. All of them are removed at the end.
func dockerOptions(t *testing.T, e *engine, change func(*Options)) Options {
	t.Helper()
	o := Options{Request: Request{Persistent: true}, KeepRunning: true, KeepOrphans: true, Dir: t.TempDir(), Image: busyboxImage,
		Now: time.Now}
	if change != nil {
		change(&o)
	}
	t.Cleanup(func() { removeAll(t, e, o.Dir) })
	return o
}

func removeAll(t *testing.T, e *engine, dir string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	found, err := listContainers(ctx, e, map[string]string{labelHome: digest(dir)})
	require.NoError(t, err)
	for _, c := range found {
		require.NoError(t, forceRemove(ctx, e, c.ID))
	}
}

// takePlace makes a place of its own, as another process would.
func takePlace(t *testing.T, o Options) *keeper {
	t.Helper()
	p := newPlace(t, o)
	t.Cleanup(func() { require.NoError(t, p.close()) })
	return p
}

func newPlace(t *testing.T, o Options) *keeper {
	t.Helper()
	p, err := newKeeper(o)
	require.NoError(t, err)
	if o.Engine == "" {
		p.engine, err = theTestEngine()
		require.NoError(t, err)
	}
	return p
}

func containerOf(t *testing.T, p *keeper) string {
	t.Helper()
	_, id, err := p.container(t.Context())
	require.NoError(t, err)
	return id
}

// sh runs a script through the carrier.
func sh(t *testing.T, p *keeper, script string) (out string, code int) {
	t.Helper()
	var b bytes.Buffer
	code, err := (&carrier{keeper: p}).Run(t.Context(), []string{"sh", "-c", script}, remote.Streams{Out: &b, Err: &b})
	require.NoError(t, err)
	return b.String(), code
}

func inspect(t *testing.T, e *engine, id string) container.InspectResponse {
	t.Helper()
	r, err := e.api.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
	require.NoError(t, err)
	return r.Container
}

func TestDockerCarrier_Run(t *testing.T) {
	e := testEngine(t)
	p := takePlace(t, dockerOptions(t, e, nil))
	d := &carrier{keeper: p}

	var out, errs bytes.Buffer
	code, err := d.Run(t.Context(), []string{"sh", "-c", `echo "out:$NAME:$PWD"; echo err >&2; cat; exit 7`},
		remote.Streams{In: strings.NewReader(strings.Repeat("x", 300_000)), Out: &out, Err: &errs, Env: map[string]string{"NAME": "v=1"}})
	require.NoError(t, err)
	require.Equal(t, 7, code)
	require.Equal(t, "out:v=1:/\n"+strings.Repeat("x", 300_000), out.String())
	require.Equal(t, "err\n", errs.String())

	for script, want := range map[string]int{"exit 0": 0, "kill -9 $$": 137, "nosuchprogram": 127, "exit 128": 128} {
		_, code := sh(t, p, script)
		require.Equal(t, want, code, script)
	}
	code, err = d.Run(t.Context(), []string{"/no/such/program"}, remote.Streams{})
	require.NoError(t, err)
	require.Contains(t, []int{126, 127}, code)

	code, err = d.Run(t.Context(), []string{"cat"}, remote.Streams{})
	require.NoError(t, err, "a nil reader is an empty input")
	require.Zero(t, code)

	text, _ := sh(t, p, `read -r pid name state ppid group session rest </proc/self/stat; [ "$session" = "$group" ] && echo leader`)
	require.Equal(t, "leader\n", text, "a session of its own")
	require.NoError(t, d.Close())
}

func TestDockerCarrier_Run_CancelDropsTheConnection(t *testing.T) {
	e := testEngine(t)
	p := takePlace(t, dockerOptions(t, e, nil))
	d := &carrier{keeper: p}
	ctx, cancel := context.WithCancel(t.Context())
	started := &signalWriter{seen: make(chan struct{})}
	go func() { <-started.seen; cancel() }()
	_, err := d.Run(ctx, []string{"sh", "-c", "echo begun; sleep 4711"}, remote.Streams{Out: started})
	require.ErrorIs(t, err, context.Canceled)
	text, _ := sh(t, p, "ps")
	require.Contains(t, text, "sleep 4711", "the program is left alone")
	require.NoError(t, d.Close())
}

type signalWriter struct {
	once sync.Once
	seen chan struct{}
}

func (w *signalWriter) Write(b []byte) (int, error) {
	w.once.Do(func() { close(w.seen) })
	return len(b), nil
}

// A child in the background holds the output; the program's own end counts.
func TestDockerCarrier_Run_BackgroundChildDoesNotHold(t *testing.T) {
	e := testEngine(t)
	p := takePlace(t, dockerOptions(t, e, nil))
	text, code := sh(t, p, "sleep 4712 & echo done; exit 3")
	require.Equal(t, "done\n", text)
	require.Equal(t, 3, code)
}

func TestDockerCarrier_Run_VanishedContainer(t *testing.T) {
	e := testEngine(t)
	p := takePlace(t, dockerOptions(t, e, nil))
	d := &carrier{keeper: p}
	id := containerOf(t, p)

	require.NoError(t, forceRemove(t.Context(), e, id))
	_, err := d.Run(t.Context(), []string{"true"}, remote.Streams{})
	require.ErrorIs(t, err, remote.ErrVanished)
	require.ErrorIs(t, err, errNotStarted, "it may be run again")
	second := containerOf(t, p)
	require.NotEqual(t, id, second, "a new one is made")

	// Stopped under a command: what it did is not known.
	started := &signalWriter{seen: make(chan struct{})}
	go func() {
		<-started.seen
		_, _ = e.api.ContainerKill(context.WithoutCancel(t.Context()), second, client.ContainerKillOptions{Signal: "KILL"})
	}()
	_, err = d.Run(t.Context(), []string{"sh", "-c", "echo begun; sleep 4713"}, remote.Streams{Out: started})
	require.ErrorIs(t, err, remote.ErrVanished)
	require.NotErrorIs(t, err, errNotStarted, "it must not be run again")
	require.Equal(t, second, containerOf(t, p), "the stopped one is started again")

	_, err = (&carrier{keeper: takePlace(t, Options{Engine: "unix:///nowhere/docker.sock", Image: "x", Now: time.Now})}).Run(t.Context(), []string{"true"}, remote.Streams{})
	require.ErrorIs(t, err, sandbox.ErrUnavailable)
	require.NotErrorIs(t, err, remote.ErrVanished)
}

// What the engine enforces, seen from inside.
func TestDocker_Hardening_SeenFromInside(t *testing.T) {
	e := testEngine(t)
	o := dockerOptions(t, e, func(o *Options) { o.CPU, o.MemoryMB, o.DiskMB, o.Shm = 1, 128, 51200, "64m" })
	p := takePlace(t, o)
	status, _ := sh(t, p, "cat /proc/self/status")
	// DAC_OVERRIDE(1), CHOWN(0), FOWNER(3), SETGID(6), SETUID(7)
	require.Contains(t, status, "CapEff:\t00000000000000cb")
	require.Contains(t, status, "CapBnd:\t00000000000000cb")
	require.Contains(t, status, "NoNewPrivs:\t1")
	require.Contains(t, status, "Seccomp:\t2")
	mounts, _ := sh(t, p, "cat /proc/mounts")
	for dir, flags := range map[string][]string{"/tmp": {"nosuid"}, "/var/tmp": {"nosuid", "noexec"}, "/run": {"nosuid", "noexec"}} {
		line := mountLine(mounts, dir)
		for _, f := range flags {
			require.Contains(t, line, f, dir)
		}
	}
	require.NotContains(t, mountLine(mounts, "/tmp"), "noexec")
	require.Contains(t, mountLine(mounts, "/dev/shm"), "size=65536k")
	first, _ := sh(t, p, "tr '\\0' ' ' </proc/1/cmdline")
	require.Contains(t, first, "init", "a first process that reaps")

	c := inspect(t, e, containerOf(t, p))
	if e.probe.limits(t.Context(), lifecycle{opts: o, engine: e}).resources {
		require.Equal(t, int64(128<<20), c.HostConfig.Memory)
		require.Equal(t, int64(1e9), c.HostConfig.NanoCPUs)
		require.Equal(t, int64(256), *c.HostConfig.PidsLimit)
		_, code := sh(t, p, "head -c 300m /dev/zero | tail -c 290m >/dev/null")
		require.NotZero(t, code, "more than the memory limit")
	}
	probes, err := listContainers(t.Context(), e, map[string]string{labelHome: digest(o.Dir), labelLifetime: "probe"})
	require.NoError(t, err)
	require.Empty(t, probes, "the probe leaves nothing")
}

func mountLine(mounts, dir string) string {
	for _, line := range strings.Split(mounts, "\n") {
		if strings.Contains(line, " "+dir+" ") {
			return line
		}
	}
	return ""
}

func TestDocker_HostUser_RunsAsTheDaemonsUser(t *testing.T) {
	e := testEngine(t)
	p := takePlace(t, dockerOptions(t, e, func(o *Options) { o.HostUser = true }))
	out, code := sh(t, p, `id -u; id -g; echo "$HOME"; touch /root/x && echo wrote`)
	require.Zero(t, code)
	require.Equal(t, fmt.Sprintf("%d\n%d\n/root\nwrote\n", os.Getuid(), os.Getgid()), out)
	status, _ := sh(t, p, "grep CapBnd /proc/self/status")
	require.Equal(t, "CapBnd:\t000000000000000b\n", status, "no SETUID, no SETGID")
}

func TestDocker_NetworkOff(t *testing.T) {
	e := testEngine(t)
	o := dockerOptions(t, e, nil)
	open := takePlace(t, o)
	text, _ := sh(t, open, "ls /sys/class/net")
	require.Contains(t, text, "eth0")
	first := containerOf(t, open)

	o.NoNetwork = true
	off := takePlace(t, o)
	text, _ = sh(t, off, "ls /sys/class/net")
	require.NotContains(t, text, "eth0")
	_, code := sh(t, off, "wget -T 2 -q -O - http://192.0.2.1/")
	require.NotZero(t, code)
	_, err := e.api.ContainerInspect(t.Context(), first, client.ContainerInspectOptions{})
	require.Error(t, err, "the owner's container with a network is gone: one container per owner")
	require.Equal(t, containerOf(t, off), containerOf(t, takePlace(t, o)), "the closed one is taken up again")
}

// A container that carries all labels of a closed one, but has a network, is removed and replaced.
func TestDocker_NetworkOff_LyingContainerIsReplaced(t *testing.T) {
	e := testEngine(t)
	o := dockerOptions(t, e, func(o *Options) { o.NoNetwork = true })
	liar, err := e.api.ContainerCreate(t.Context(), client.ContainerCreateOptions{Name: containerName(),
		Config: &container.Config{Image: busyboxImage, Labels: o.labels(), Cmd: []string{"sleep", "infinity"}}})
	require.NoError(t, err)
	_, err = e.api.ContainerStart(t.Context(), liar.ID, client.ContainerStartOptions{})
	require.NoError(t, err)
	p := takePlace(t, o)
	require.NotEqual(t, liar.ID, containerOf(t, p))
	_, err = e.api.ContainerInspect(t.Context(), liar.ID, client.ContainerInspectOptions{})
	require.Error(t, err)
}

func TestDocker_Reuse(t *testing.T) {
	e := testEngine(t)
	o := dockerOptions(t, e, nil)
	id := containerOf(t, takePlace(t, o))
	require.Equal(t, id, containerOf(t, takePlace(t, o)), "a running one")
	grace := 0
	_, err := e.api.ContainerStop(t.Context(), id, client.ContainerStopOptions{Timeout: &grace})
	require.NoError(t, err)
	require.Equal(t, id, containerOf(t, takePlace(t, o)), "a stopped one is started")
	_, err = e.api.ContainerPause(t.Context(), id, client.ContainerPauseOptions{})
	require.NoError(t, err)
	require.Equal(t, id, containerOf(t, takePlace(t, o)), "a paused one goes on")

	// First creator wins: another image does not make another container.
	again := o
	again.Image = debianImage
	require.Equal(t, id, containerOf(t, takePlace(t, again)))

	// Each label alone keeps others out.
	for name := range o.labels() {
		labels := o.labels()
		labels[name] = "other"
		made, err := e.api.ContainerCreate(t.Context(), client.ContainerCreateOptions{Name: containerName(),
			Config: &container.Config{Image: busyboxImage, Labels: labels, Cmd: []string{"sleep", "infinity"}}})
		require.NoError(t, err)
		t.Cleanup(func() { _ = forceRemove(context.WithoutCancel(t.Context()), e, made.ID) })
		_, err = e.api.ContainerStart(t.Context(), made.ID, client.ContainerStartOptions{})
		require.NoError(t, err)
	}
	require.NoError(t, forceRemove(t.Context(), e, id))
	fresh := containerOf(t, takePlace(t, o))
	require.Equal(t, o.labels(), inspect(t, e, fresh).Config.Labels, "none of the others was taken")
}

// Many at once, of one process and as of several, get one container.
func TestDocker_Create_OnlyOnce(t *testing.T) {
	e := testEngine(t)
	o := dockerOptions(t, e, nil)
	ids := make(chan string, 12)
	for range 3 {
		p := takePlace(t, o)
		for range 4 {
			go func() {
				_, id, err := p.container(t.Context())
				ids <- fmt.Sprint(id, errText(err))
			}()
		}
	}
	first := <-ids
	for range 11 {
		require.Equal(t, first, <-ids)
	}
	found, err := listContainers(t.Context(), e, o.labels())
	require.NoError(t, err)
	require.Len(t, found, 1)
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Two profiles are apart, a shared key brings them together, and keys that look alike stay apart.
func TestDocker_ProfilesAndSharedKeys(t *testing.T) {
	e := testEngine(t)
	base := dockerOptions(t, e, nil)
	of := func(profile, shared string) *keeper {
		o := base
		o.Request.Profile, o.Request.Shared, o.Request.Session = profile, shared, "chat"
		return takePlace(t, o)
	}
	one, two := of("one", ""), of("two", "")
	_, code := sh(t, one, "echo secret >/root/mine && echo secret >/workspace/mine && sleep 4714 >/dev/null 2>&1 &")
	require.Zero(t, code)
	out, _ := sh(t, two, "cat /root/mine /workspace/mine; ps | grep 'sleep 471[4]'")
	require.NotContains(t, out, "secret\n")
	require.NotContains(t, out, "sleep 4714", "no process of the other profile is seen")
	require.NotEqual(t, containerOf(t, one), containerOf(t, two))

	a, b := of("one", "team/workspace"), of("two", "team/workspace")
	require.Equal(t, containerOf(t, a), containerOf(t, b), "a shared key is one container")
	_, code = sh(t, a, "echo both >/workspace/note")
	require.Zero(t, code)
	out, _ = sh(t, b, "cat /workspace/note")
	require.Equal(t, "both\n", out)

	alike := of("one", "team_workspace")
	require.NotEqual(t, containerOf(t, a), containerOf(t, alike))
	out, _ = sh(t, alike, "cat /workspace/note")
	require.NotContains(t, out, "both", "and not one directory either")
	long := strings.Repeat("k", 70)
	require.NotEqual(t, containerOf(t, of("one", long+"1")), containerOf(t, of("one", long+"2")))
}

func TestDocker_Throwaway_KeepsNothing(t *testing.T) {
	e := testEngine(t)
	o := dockerOptions(t, e, func(o *Options) { o.Request.Persistent, o.Request.Session = false, "chat" })
	p := newPlace(t, o)
	id := containerOf(t, p)
	_, code := sh(t, p, "echo x >/root/x; echo x >/workspace/x; echo x >/home/x")
	require.Zero(t, code)
	require.NoError(t, p.close())
	_, err := e.api.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
	require.Error(t, err, "removed at Close")
	entries, err := os.ReadDir(o.Dir)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing on this machine")
	require.False(t, o.used())
}

func TestDocker_Close_Policy(t *testing.T) {
	e := testEngine(t)
	for _, tc := range []struct {
		keep   bool
		shared string
		stays  bool
	}{{true, "", true}, {false, "", false}, {false, "team", true}} {
		o := dockerOptions(t, e, func(o *Options) { o.KeepRunning, o.Request.Shared = tc.keep, tc.shared })
		p := newPlace(t, o)
		id := containerOf(t, p)
		_, code := sh(t, p, "echo kept >/root/file")
		require.Zero(t, code)
		require.NoError(t, p.close())
		r, err := e.api.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
		require.Equal(t, tc.stays, err == nil, "%+v", tc)
		if tc.stays {
			require.True(t, r.Container.State.Running)
		}
		require.True(t, o.used())
		out, _ := sh(t, takePlace(t, o), "cat /root/file")
		require.Equal(t, "kept\n", out, "the files outlive the container: %+v", tc)
		_, _, err = p.container(t.Context())
		require.ErrorIs(t, err, sandbox.ErrUnavailable, "after Close")
	}
}

// A container that can't start leaves nothing behind.
func TestDocker_Create_FailureLeavesNothing(t *testing.T) {
	e := testEngine(t)
	o := dockerOptions(t, e, func(o *Options) { o.Extra = []string{"--runtime=nosuchruntime"} })
	_, _, err := takePlace(t, o).container(t.Context())
	require.ErrorIs(t, err, sandbox.ErrUnavailable)
	require.ErrorContains(t, err, "the container could not be made")
	o.Extra = []string{"--tmpfs=/bin:noexec"} // it is created, and has no sleep to start
	_, _, err = takePlace(t, o).container(t.Context())
	require.ErrorIs(t, err, sandbox.ErrUnavailable)
	found, err := listContainers(t.Context(), e, map[string]string{labelHome: digest(o.Dir)})
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestDocker_Image_MissingIsSaidAndBuilt(t *testing.T) {
	e := testEngine(t)
	o := dockerOptions(t, e, func(o *Options) { o.Image = "herald-test.invalid/nosuch:1" })
	_, _, err := takePlace(t, o).container(t.Context())
	require.ErrorIs(t, err, sandbox.ErrUnavailable)
	require.ErrorContains(t, err, "could not be pulled")
	require.ErrorContains(t, err, "terminal.docker_image")

	o.Dockerfile = fmt.Appendf(nil, "FROM %s\nRUN echo %s >/made\n", busyboxImage, sandbox.NewID())
	o.Image = BuiltImage(o.Dockerfile)
	built := o.Image
	t.Cleanup(func() {
		_, _ = e.api.ImageRemove(context.WithoutCancel(t.Context()), built, client.ImageRemoveOptions{Force: true, PruneChildren: true})
	})
	t.Cleanup(func() { removeAll(t, e, o.Dir) })
	var mu sync.Mutex
	var lines []string
	o.Progress = func(line string) { mu.Lock(); defer mu.Unlock(); lines = append(lines, line) }
	p := takePlace(t, o)
	out, code := sh(t, p, "cat /made")
	require.Zero(t, code, out)
	mu.Lock()
	require.Contains(t, strings.Join(lines, "\n"), "building the image "+o.Image)
	mu.Unlock()

	o.Dockerfile = []byte("FROM " + busyboxImage + "\nRUN echo why >&2; exit 3\n")
	o.Image, o.Dir = BuiltImage(o.Dockerfile), t.TempDir()
	_, _, err = takePlace(t, o).container(t.Context())
	require.ErrorContains(t, err, "could not be built")
}

func TestOrphaned(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(-d).Format(time.RFC3339Nano) }
	for _, tc := range []struct {
		state *container.State
		want  bool
	}{
		{&container.State{Status: "exited", FinishedAt: at(601 * time.Second)}, true},
		{&container.State{Status: "exited", FinishedAt: at(600 * time.Second)}, false},
		{&container.State{Status: "exited", FinishedAt: at(10 * time.Second)}, false},
		{&container.State{Status: "running", FinishedAt: at(time.Hour)}, false},
		{&container.State{Status: "created", FinishedAt: at(time.Hour)}, false},
		{&container.State{Status: "exited", FinishedAt: "0001-01-01T00:00:00Z"}, false},
		{&container.State{Status: "exited", FinishedAt: ""}, false},
		{&container.State{Status: "exited", FinishedAt: "yesterday"}, false},
		{nil, false},
	} {
		require.Equal(t, tc.want, orphaned(tc.state, now, orphanAge), "%+v", tc.state)
	}
}

func TestDocker_Reaper(t *testing.T) {
	e := testEngine(t)
	o := dockerOptions(t, e, nil)
	mine := containerOf(t, takePlace(t, o))
	make := func(labels map[string]string, cmd ...string) string {
		made, err := e.api.ContainerCreate(t.Context(), client.ContainerCreateOptions{Name: containerName(),
			Config: &container.Config{Image: busyboxImage, Labels: labels, Cmd: cmd}})
		require.NoError(t, err)
		t.Cleanup(func() { _ = forceRemove(context.WithoutCancel(t.Context()), e, made.ID) })
		_, err = e.api.ContainerStart(t.Context(), made.ID, client.ContainerStartOptions{})
		require.NoError(t, err)
		return made.ID
	}
	orphan := o.labels()
	orphan[labelTask] = "session_old"
	stranger := o.labels()
	stranger[labelIdentity] = "somebody"
	ended := make(orphan, "true")
	running := make(orphan, "sleep", "infinity")
	others := make(stranger, "true")
	l := lifecycle{opts: o, engine: e}
	for _, id := range []string{ended, others} {
		require.True(t, l.ended(t.Context(), id))
	}
	there := func(id string) bool {
		_, err := e.api.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
		return err == nil
	}
	n, err := l.reap(t.Context(), time.Now(), orphanAge)
	require.NoError(t, err)
	require.Zero(t, n, "it ended just now")
	require.True(t, there(ended))

	n, err = l.reap(t.Context(), time.Now().Add(11*time.Minute), orphanAge)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.False(t, there(ended))
	for what, id := range map[string]string{"the place's own": mine, "one that runs": running, "another profile's": others} {
		require.True(t, there(id), what)
	}
}

// The command's secrets are not in what the engine tells anybody who asks.
func TestDocker_NoSecretInTheEngine(t *testing.T) {
	e := testEngine(t)
	secret := "s3cr3t-" + sandbox.NewID()
	p := takePlace(t, dockerOptions(t, e, nil))
	d := &carrier{keeper: p}
	var out bytes.Buffer
	done := errors.New("looked")
	_, err := d.Run(t.Context(), []string{"sh", "-c", `printf %s "$TOKEN"; cat`}, remote.Streams{Env: map[string]string{"TOKEN": secret}, Out: &out,
		In: readerFunc(func([]byte) (int, error) {
			r, err := e.api.ContainerInspect(t.Context(), containerOf(t, p), client.ContainerInspectOptions{})
			if err != nil {
				return 0, err
			}
			if strings.Contains(string(r.Raw), secret) {
				t.Error("the secret is in the inspection of the container")
			}
			for _, exec := range r.Container.ExecIDs {
				i, err := e.api.ExecInspect(t.Context(), exec, client.ExecInspectOptions{})
				if err == nil && strings.Contains(fmt.Sprint(i), secret) {
					t.Error("the secret is in the inspection of the exec")
				}
			}
			if top, err := e.api.ContainerTop(t.Context(), containerOf(t, p), client.ContainerTopOptions{}); err == nil &&
				strings.Contains(fmt.Sprint(top), secret) {
				t.Error("the secret is in an argument list")
			}
			return 0, done
		})})
	require.NoError(t, err)
	require.Equal(t, secret, out.String(), "and the command sees it")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
