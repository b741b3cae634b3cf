package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/tools/sandbox"
)

// A command runs as the same user and knows the names: a link that it plants in the place of a job's record, or of the
// snapshot that the next shell reads, is replaced, and what it names stays as it is.
func TestWriters_PlantedLinks(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	require.NoError(t, os.WriteFile(target, []byte("precious"), 0o644))
	require.NoError(t, os.Symlink(target, filepath.Join(dir, "state.json.new")))
	require.NoError(t, writeWhole(dir, "state.json", []byte("{}")))

	l, err := New(Options{Dir: dir, Home: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	require.NoError(t, os.Symlink(target, filepath.Join(l.private, "snapshot.sh")))
	r, err := l.Exec(t.Context(), sandbox.Command{Line: "echo ran"})
	require.NoError(t, err)
	require.Equal(t, "ran\n", r.Output)
	data, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "precious", string(data))
	for _, made := range []string{filepath.Join(dir, "state.json"), filepath.Join(l.private, "snapshot.sh")} {
		info, err := os.Lstat(made)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode(), made)
	}
	info, err := os.Stat(l.private)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}
