package workspace

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/config"
	"herald/sessions"
	"herald/tools"
	"herald/tools/needtest"
)

// at are settings of a home, with commands on this machine.
func at(t *testing.T, change func(*config.Config)) Settings {
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	cfg := config.Default()
	cfg.Terminal.Backend = "local"
	if change != nil {
		change(cfg)
	}
	return Settings{Config: cfg, Paths: config.PathsFor(home), Profile: config.DefaultProfile, Now: time.Now}
}

// What of the home and of the machine never leaves through a chat.
func TestSettings_Protected(t *testing.T) {
	s := at(t, nil)
	user := t.TempDir()
	t.Setenv("HOME", user)
	home := s.Paths.Home
	for path, want := range map[string]bool{
		home + "/config.yaml": true, home + "/.env": true, home + "/herald.db": true, home + "/memories/MEMORY.md": true, home: true,
		s.Paths.Cache + "/media/out/x/a.png": false, s.Config.WorkDir(s.Paths) + "/plan.txt": false, s.Config.WorkDir(s.Paths): false,
		s.Config.WorkDir(s.Paths) + "x/plan.txt": true,
		user + "/.ssh/id_ed25519":                true, user + "/.aws/credentials": true, user + "/.config/gh/hosts.yml": true, user + "/.netrc": true,
		user + "/.herald/config.yaml": true, user + "/notes.txt": false, user + "/.sshx": false, user + "/.config/other": false,
		"/srv/app/.env": true, "/srv/app/.env.local": true, "/srv/app/.env.example": false, "/srv/app/env": false,
		"/etc/passwd": true, "/proc/1/environ": true, "/sys/x": true, "/etcetera": false,
	} {
		require.Equal(t, want, s.Protected(path), path)
	}
}

// A home that is reached by a link protects the directory behind it.
func TestSettings_ProtectedBehindALink(t *testing.T) {
	s := at(t, nil)
	link := filepath.Join(t.TempDir(), "home")
	require.NoError(t, os.Symlink(s.Paths.Home, link))
	linked := s
	linked.Paths = config.PathsFor(link)
	require.True(t, linked.Protected(s.Paths.Home+"/config.yaml"))
	require.NoError(t, os.MkdirAll(linked.Config.WorkDir(linked.Paths), 0o700))
	require.False(t, linked.Protected(s.Config.WorkDir(s.Paths)+"/plan.txt"))
}

// Whether background processes run on after a stop: a container that goes takes them with it.
func TestSettings_Survives(t *testing.T) {
	for _, c := range []struct {
		backend    string
		keep       bool
		persistent bool
		onStop     string
		want       bool
	}{
		{"local", true, true, "keep", true}, {"local", true, true, "stop", false}, {"ssh", false, false, "keep", true},
		{"docker", true, true, "stop", true}, {"docker", false, true, "keep", false}, {"docker", true, false, "keep", false},
	} {
		s := at(t, func(cfg *config.Config) {
			cfg.Terminal.DockerKeep, cfg.Terminal.ContainerPersistent, cfg.Processes.OnStop = c.keep, c.persistent, c.onStop
		})
		require.Equal(t, c.want, s.Survives(c.backend), "%+v", c)
	}
}

// On this machine all conversations share one environment, whose directories are known before a command has run.
func TestWorkspace_OnThisMachine(t *testing.T) {
	w, err := Open(at(t, nil))
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Close()) }()
	require.True(t, w.OnHost())
	one, err := w.Environment(tools.Caller{Key: "a"})
	require.NoError(t, err)
	two, err := w.Environment(tools.Caller{Key: "b"})
	require.NoError(t, err)
	require.Same(t, one, two)
	require.Same(t, one, w.Present("c"))
	dir := filepath.Join(w.set.Paths.Home, "workspace")
	require.Equal(t, dir, w.Start())
	require.Equal(t, dir, w.Dir("s1"))
}

// Where containers keep nothing, each conversation has its own; asking where one is makes none, and after Close there is
// no new one.
func TestWorkspace_Throwaway(t *testing.T) {
	w, err := Open(at(t, func(cfg *config.Config) { cfg.Terminal.Backend, cfg.Terminal.ContainerPersistent = "docker", false }))
	require.NoError(t, err)
	require.Equal(t, "", w.Start(), "the container knows")
	own := w.Present("a")
	a, err := w.Environment(tools.Caller{Key: "a"})
	require.NoError(t, err)
	b, err := w.Environment(tools.Caller{Key: "b"})
	require.NoError(t, err)
	again, err := w.Environment(tools.Caller{Key: "a"})
	require.NoError(t, err)
	require.NotSame(t, own, a)
	require.NotSame(t, a, b)
	require.Same(t, a, again)
	require.Same(t, a, w.Present("a"))
	nobody, err := w.Environment(tools.Caller{})
	require.NoError(t, err)
	require.Same(t, own, nobody, "a call outside a conversation has the profile's own")
	w.leave("b")
	require.Same(t, own, w.Present("b"))
	require.NoError(t, w.Close())
	_, err = w.Environment(tools.Caller{Key: "new"})
	require.ErrorContains(t, err, "stopping")
}

// degraded_mode decides whether the model reads "degraded" or a plain error when the environment can't be reached.
func TestWorkspace_Deciding(t *testing.T) {
	for mode, want := range map[string]string{"fail": `{"error":"no engine"}`, "warn": `{"status":"degraded","error":"no engine"}`} {
		w, err := Open(at(t, func(cfg *config.Config) { cfg.Terminal.DegradedMode = mode }))
		require.NoError(t, err)
		tool := w.Deciding(tools.Tool{Spec: tools.Spec{Name: "terminal", Toolset: "terminal"}, Run: func(context.Context, tools.Call) (tools.Result, error) {
			return tools.Result{IsError: true, Content: `{"status":"degraded","error":"no engine"}`}, nil
		}})
		got, err := tool.Run(t.Context(), tools.Call{})
		require.NoError(t, err)
		require.JSONEq(t, want, got.Content)
		require.NoError(t, w.Close())
	}
}

// A call that may change files has a checkpoint of what was there before, and a rollback is about the directory that was
// changed; a call that only reads has none.
func TestCheckpoints_BeforeACall(t *testing.T) {
	w, err := Open(at(t, nil))
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Close()) }()
	c := NewCheckpoints(w)
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	if !c.Store().On() {
		needtest.Lacking(t, "git is not installed")
	}
	file := filepath.Join(w.Start(), "plan.txt")
	require.NoError(t, os.WriteFile(file, []byte("the plan"), 0o600))
	call := tools.Call{ID: "c1", Name: "terminal", Caller: tools.Caller{Session: "s1", Key: "k", Turn: 1}}
	end, err := c.Begin(t.Context(), call, tools.Spec{Name: "terminal", ChangesFiles: true})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte("broken"), 0o600))
	end(t.Context(), tools.Result{})
	dir, shown, err := c.Project(sessions.Session{ID: "s1", Key: "k"})
	require.NoError(t, err)
	require.Equal(t, w.Start(), dir)
	require.Equal(t, file, shown(file))
	list, err := c.Store().List(t.Context(), dir)
	require.NoError(t, err)
	require.Len(t, list, 1)

	call.ID, call.Caller.Turn = "c2", 2
	end, err = c.Begin(t.Context(), call, tools.Spec{Name: "read_file"})
	require.NoError(t, err)
	end(t.Context(), tools.Result{})
	list, err = c.Store().List(t.Context(), dir)
	require.NoError(t, err)
	require.Len(t, list, 1)

	_, ok := c.Recovered(dir)
	require.False(t, ok, "nothing was interrupted")
}
