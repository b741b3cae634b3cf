package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A link in the place of a record that is about to be written is replaced; what it names stays as it is.
func TestWriteAtomic_PlantedLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, path := filepath.Join(dir, "target"), filepath.Join(dir, "record.json")
	require.NoError(t, os.WriteFile(target, []byte("precious"), 0o644))
	require.NoError(t, os.Symlink(target, path+".new"))
	require.NoError(t, os.Symlink(target, path))
	require.NoError(t, newBench(t, Options{}).store.writeAtomic(path, []byte("new")))
	data, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "precious", string(data))
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode(), "a private file and no link")
}

// The lock's place can't be made to lead elsewhere.
func TestLock_PlantedLink(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	target := filepath.Join(b.base, "target")
	require.NoError(t, os.Symlink(target, b.store.lockPath()))
	_, err := b.store.Take(t.Context(), b.dir, "t", "x")
	require.Error(t, err)
	require.NoFileExists(t, target)
}
