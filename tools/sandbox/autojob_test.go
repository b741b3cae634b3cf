package sandbox

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What an earlier daemon left running on this machine is taken up, and can be ended, before it is decided where commands
// run: a start asks no container engine.
func TestAuto_ResumeFindsWhatRunsHere(t *testing.T) {
	dir := t.TempDir()
	first := keeping(t, dir)
	p, err := first.Start(t.Context(), Command{Line: "sleep 300", ID: "proc_auto"})
	require.NoError(t, err)
	require.NoError(t, first.Close())

	auto, err := NewAuto(AutoOptions{Local: keeping(t, dir), Docker: DockerOptions{Engine: "unix://" + filepath.Join(dir, "nobody.sock"),
		Request: Request{Persistent: true}, Dir: t.TempDir(), Image: "none"}})
	require.NoError(t, err)
	defer func() { require.NoError(t, auto.Close()) }()
	q, err := auto.Resume(t.Context(), p.Ref(), Command{})
	require.NoError(t, err)
	require.Equal(t, "auto", auto.Choice().Backend)
	require.NoError(t, auto.Kill(t.Context(), q))
	require.Equal(t, 143, ends(t, q))
	gone(t, p.PID())
}
