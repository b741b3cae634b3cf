package tools_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/tools"
)

// The names of stored results can be guessed: a link in the place of one is replaced, its target stays, and the folder is
// the owner's alone. A folder that is a link is refused.
func TestResultStore_PlantedLink(t *testing.T) {
	base := t.TempDir()
	dir, target := filepath.Join(base, "spillover"), filepath.Join(base, "target")
	store := tools.NewResultStore(dir, tools.ResultOptions{})
	path, err := store.Save("call_1", "first")
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(target, []byte("precious"), 0o644))
	require.NoError(t, os.Symlink(target, path))
	again, err := store.Save("call_1", "second")
	require.NoError(t, err)
	require.Equal(t, path, again)
	data, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "precious", string(data))
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	info, err = os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	link := filepath.Join(base, "link")
	require.NoError(t, os.Symlink(dir, link))
	_, err = tools.NewResultStore(link, tools.ResultOptions{}).Save("call_2", "x")
	require.Error(t, err)
}
