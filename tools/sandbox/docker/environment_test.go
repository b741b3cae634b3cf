package docker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"herald/tools/sandbox"
	"herald/tools/sandbox/sandboxtest"
)

// overDocker is a whole environment in a container of its own.
func overDocker(t *testing.T, image string) *Environment {
	t.Helper()
	e := testEngine(t)
	return newDocker(t, dockerOptions(t, e, func(o *Options) { o.Image, o.SpillDir = image, filepath.Join(t.TempDir(), "spill") }))
}

func newDocker(t *testing.T, o Options) *Environment {
	t.Helper()
	d, err := New(o)
	require.NoError(t, err)
	if o.Engine == "" {
		d.keeper.engine, err = theTestEngine()
		require.NoError(t, err)
	}
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func execIn(t *testing.T, d *Environment, line string) sandbox.Result {
	t.Helper()
	r, err := d.Exec(t.Context(), sandbox.Command{Line: line, Session: "s", Timeout: time.Minute})
	require.NoError(t, err)
	return r
}

// 50 commands at once in one container: each has its own directory, output, variables and exit code.
func TestDocker_Exec_ParallelCommandsKeepApart(t *testing.T) {
	d := overDocker(t, debianImage)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			session, dir := fmt.Sprint("session-", i), fmt.Sprint("/workspace/d", i)
			r, err := d.Exec(t.Context(), sandbox.Command{Line: fmt.Sprintf("mkdir -p %s && cd %s && echo one-%d; exit %d", dir, dir, i, i), Session: session})
			if err != nil || r.Output != fmt.Sprintf("one-%d\n", i) || r.ExitCode != i || r.Dir != dir {
				t.Errorf("command %d: %v %+v", i, err, r)
			}
			r, err = d.Exec(t.Context(), sandbox.Command{Line: `pwd; echo "$WHO"; cat`, Session: session, Env: map[string]string{"WHO": session},
				Stdin: strings.NewReader(session)})
			if err != nil || r.Output != dir+"\n"+session+"\n"+session {
				t.Errorf("command %d: %v %+v", i, err, r)
			}
		})
	}
	wg.Wait()
}

// The container is lost between two commands: the second runs in a new one, says so, and the session goes on.
func TestDocker_Exec_RecoversAVanishedContainer(t *testing.T) {
	e := testEngine(t)
	d := newDocker(t, dockerOptions(t, e, func(o *Options) { o.Image = debianImage }))
	r := execIn(t, d, "mkdir -p /workspace/w && cd /workspace/w && echo data >file && echo gone >/opt/x")
	require.Zero(t, r.ExitCode, r.Output)
	require.False(t, r.Recreated)
	first := containerOf(t, d.keeper)
	require.NoError(t, forceRemove(t.Context(), e, first))

	r = execIn(t, d, "pwd; cat file; cat /opt/x")
	require.True(t, r.Recreated)
	require.Contains(t, r.Note, "new one")
	require.Equal(t, "/workspace/w\ndata\ncat: /opt/x: No such file or directory\n", r.Output)
	require.NotEqual(t, first, containerOf(t, d.keeper))
	require.False(t, execIn(t, d, "true").Recreated, "told once")

	// Files too.
	require.NoError(t, forceRemove(t.Context(), e, containerOf(t, d.keeper)))
	data, err := d.ReadFile(t.Context(), "/workspace/w/file", 100)
	require.NoError(t, err)
	require.Equal(t, "data\n", string(data))

	// Many commands meet the loss at once: one new container.
	require.NoError(t, forceRemove(t.Context(), e, containerOf(t, d.keeper)))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if r, err := d.Exec(t.Context(), sandbox.Command{Line: "cat /workspace/w/file"}); err != nil || r.Output != "data\n" {
				t.Errorf("%v %+v", err, r)
			}
		})
	}
	wg.Wait()
	found, err := listContainers(t.Context(), e, d.opts.labels())
	require.NoError(t, err)
	require.Len(t, found, 1)
}

// The container is lost under a command: that is told, with the output so far, and nothing is run twice.
func TestDocker_Exec_LostUnderACommandIsNotRunTwice(t *testing.T) {
	e := testEngine(t)
	d := newDocker(t, dockerOptions(t, e, nil))
	execIn(t, d, "true")
	id := containerOf(t, d.keeper)
	began := &signalWriter{seen: make(chan struct{})}
	go func() {
		<-began.seen
		_, _ = e.api.ContainerKill(context.WithoutCancel(t.Context()), id, client.ContainerKillOptions{Signal: "KILL"})
	}()
	r, err := d.Exec(t.Context(), sandbox.Command{Line: "echo x >>/workspace/count; echo begun; sleep 4715", Output: began, Timeout: 30 * time.Second})
	require.NoError(t, err)
	require.Equal(t, -1, r.ExitCode)
	require.Contains(t, r.Output, "begun\n")
	require.Contains(t, r.Output, "while the command ran]")
	require.Contains(t, r.Note, "it was not run again")
	r = execIn(t, d, "cat /workspace/count")
	require.Equal(t, "x\n", r.Output)
	require.True(t, r.Recreated)
	require.Equal(t, id, containerOf(t, d.keeper), "started again")
}

// What a process leaves the next one finds: the container runs on, and the files are there also without it.
func TestDocker_PersistsOverRestarts(t *testing.T) {
	e := testEngine(t)
	o := dockerOptions(t, e, func(o *Options) { o.Image = debianImage })
	first, err := New(o)
	require.NoError(t, err)
	r, err := first.Exec(t.Context(), sandbox.Command{Line: "echo kept >/workspace/f; echo installed >/opt/tool"})
	require.NoError(t, err)
	require.Zero(t, r.ExitCode)
	require.NoError(t, first.Close())
	d := newDocker(t, o)
	require.Equal(t, "kept\ninstalled\n", execIn(t, d, "cat /workspace/f /opt/tool").Output)

	host, ok := d.Mounts().HostPath("/workspace/f")
	require.True(t, ok)
	data, err := os.ReadFile(host)
	require.NoError(t, err)
	require.Equal(t, "kept\n", string(data))
	host, ok = d.Mounts().HostPath("/root/x/../y")
	require.True(t, ok)
	require.Equal(t, filepath.Join(o.Dir, "docker", "default", "home", "y"), host)
	for _, none := range []string{"/root/.ssh/id_ed25519", "/root/.herald/x", "/opt/tool", "relative"} {
		_, ok = d.Mounts().HostPath(none)
		require.False(t, ok, none)
	}
}

// HostPath follows the mounts that the container really has: of a shared one the first creator's.
func TestDocker_HostPath_OfTheFirstCreator(t *testing.T) {
	e := testEngine(t)
	o := dockerOptions(t, e, func(o *Options) { o.Request.Shared = "team" })
	mine, theirs := t.TempDir(), t.TempDir()
	o.Volumes = []string{mine + ":/data"}
	execIn(t, newDocker(t, o), "true")
	o.Volumes = []string{theirs + ":/data"}
	second := newDocker(t, o)
	execIn(t, second, "echo hi >/data/f")
	host, ok := second.Mounts().HostPath("/data/f")
	require.True(t, ok)
	require.Equal(t, filepath.Join(mine, "f"), host)
}

// On a timeout nothing of the command stays in the container, also what went into a session of its own.
func TestDocker_Exec_TimeoutKillsEscapees(t *testing.T) {
	for _, image := range []string{busyboxImage, debianImage} {
		t.Run(filepath.Base(image), func(t *testing.T) {
			d := overDocker(t, image)
			r, err := d.Exec(t.Context(), sandbox.Command{Line: "(setsid sh -c 'trap \"\" TERM HUP; sleep 4716; sleep 4717' >/dev/null 2>&1 &); echo partial; sleep 4718", Timeout: 2 * time.Second})
			require.NoError(t, err)
			require.Equal(t, sandbox.ExitTimeout, r.ExitCode)
			require.True(t, r.TimedOut)
			require.Contains(t, r.Output, "partial\n")
			for deadline := time.Now().Add(30 * time.Second); ; {
				out := execIn(t, d, `for p in /proc/[0-9]*; do tr '\0' ' ' <$p/cmdline 2>/dev/null; echo; done | grep 'sleep 471[678]'`).Output
				if out == "" {
					break
				}
				require.False(t, time.Now().After(deadline), "left: %s", out)
			}
		})
	}
}

// docker_env and forwarded variables reach commands with the value of the moment, and nothing of the daemon's else.
func TestDocker_Exec_Variables(t *testing.T) {
	e := testEngine(t)
	value := "one"
	var mu sync.Mutex
	d := newDocker(t, dockerOptions(t, e, func(o *Options) {
		o.Env, o.Forward = map[string]string{"MODE": "m1"}, []string{"GITHUB_TOKEN"}
		o.Lookup = func(string) (string, bool) { mu.Lock(); defer mu.Unlock(); return value, value != "" }
	}))
	require.Equal(t, "m1 one\n", execIn(t, d, `echo "$MODE $GITHUB_TOKEN"`).Output)
	mu.Lock()
	value = ""
	mu.Unlock()
	require.Equal(t, "m1 unset\n", execIn(t, d, `echo "$MODE ${GITHUB_TOKEN-unset}"`).Output, "taken away means gone")
}

func TestDocker_Exec_InterruptWhileTheContainerIsMade(t *testing.T) {
	e := testEngine(t)
	d := newDocker(t, dockerOptions(t, e, nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := d.Exec(ctx, sandbox.Command{Line: "true"})
	require.NoError(t, err)
	require.Equal(t, sandbox.ExitInterrupted, r.ExitCode)
	require.Zero(t, execIn(t, d, "true").ExitCode)
}

func TestDocker_NoEngine(t *testing.T) {
	d, err := New(Options{Engine: "unix:///nowhere/docker.sock", Request: Request{Persistent: true}, Dir: t.TempDir(), Image: "x"})
	require.NoError(t, err)
	defer d.Close()
	_, err = d.Exec(t.Context(), sandbox.Command{Line: "true"})
	require.ErrorIs(t, err, sandbox.ErrUnavailable)
	require.ErrorContains(t, err, "the container engine does not answer")
	dir, ok := d.Dir("s")
	require.False(t, ok)
	require.Equal(t, "/workspace", dir)
}

func TestSuite_Busybox(t *testing.T) { suiteDocker(t, busyboxImage) }

func TestSuite_Debian(t *testing.T) { suiteDocker(t, debianImage) }

func suiteDocker(t *testing.T, image string) {
	o := dockerOptions(t, testEngine(t), func(o *Options) { o.Image, o.SpillDir = image, filepath.Join(t.TempDir(), "spill") })
	sandboxtest.Suite(t, func(t *testing.T) sandbox.Environment { return newDocker(t, o) })
}
