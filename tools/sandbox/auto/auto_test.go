package auto

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/tools/sandbox"
	"herald/tools/sandbox/docker"
	"herald/tools/sandbox/local"
	"herald/tools/sandbox/sandboxtest"
)

// keeping makes a local environment whose background commands are kept in dir and outlive it.
func keeping(t *testing.T, dir string) *local.Environment {
	t.Helper()
	supervisor, err := local.SelfSupervisor()
	require.NoError(t, err)
	l, err := local.New(local.Options{Supervisor: supervisor, Dir: t.TempDir(), Home: t.TempDir(), JobDir: dir, KeepJobs: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// What an earlier daemon left running on this machine is taken up, and can be ended, before it is decided where commands
// run: a start asks no container engine.
func TestAuto_ResumeFindsWhatRunsHere(t *testing.T) {
	dir := t.TempDir()
	first := keeping(t, dir)
	p, err := first.Start(t.Context(), sandbox.Command{Line: "sleep 300", ID: "proc_auto"})
	require.NoError(t, err)
	require.NoError(t, first.Close())

	auto, err := New(Options{Local: keeping(t, dir), Docker: docker.Options{Engine: "unix://" + filepath.Join(dir, "nobody.sock"),
		Request: docker.Request{Persistent: true}, Dir: t.TempDir(), Image: "none"}})
	require.NoError(t, err)
	defer func() { require.NoError(t, auto.Close()) }()
	q, err := auto.Resume(t.Context(), p.Ref(), sandbox.Command{})
	require.NoError(t, err)
	require.Equal(t, "auto", auto.Choice().Backend)
	require.NoError(t, auto.Kill(t.Context(), q))
	require.Equal(t, 143, sandboxtest.Ends(t, q))
	sandboxtest.Gone(t, p.PID())
}
