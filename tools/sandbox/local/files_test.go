package local

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/tools/sandbox"
)

func TestLocalFiles_RealPath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	in := func(p string) string { return filepath.Join(dir, p) }
	require.NoError(t, os.MkdirAll(in("real/sub"), 0o755))
	for name, to := range map[string]string{"link": "real", "dangling": "nowhere/x", "two": "dangling", "real/up": "../real/new", "abs": in("real/sub"), "loop": "loop"} {
		require.NoError(t, os.Symlink(to, in(name)))
	}
	var f files
	for path, want := range map[string]string{
		"real/sub": "real/sub", "link/sub": "real/sub", "link/new/file": "real/new/file", "dangling": "nowhere/x", "two": "nowhere/x",
		"link/up": "real/new", "abs/x": "real/sub/x", "nothing": "nothing", "link/../x": "x",
	} {
		got, err := f.RealPath(t.Context(), in(path))
		require.NoError(t, err, path)
		require.Equal(t, in(want), got, path)
	}
	_, err = f.RealPath(t.Context(), in("loop"))
	require.Error(t, err)
	_, err = f.RealPath(t.Context(), "relative")
	require.ErrorContains(t, err, "not absolute")
}

func TestLocalFiles_WriteFile(t *testing.T) {
	dir := t.TempDir()
	var f files
	path := filepath.Join(dir, "a")
	require.NoError(t, f.WriteFile(t.Context(), path, []byte("one"), 0o640))
	st, err := f.Stat(t.Context(), path)
	require.NoError(t, err)
	require.Zero(t, st.Mode.Perm()&^0o640)
	require.NoError(t, f.Chmod(t.Context(), path, 0o604))
	require.NoError(t, f.WriteFile(t.Context(), path, []byte("two"), 0o666))
	st, err = f.Stat(t.Context(), path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o604), st.Mode, "an existing file keeps its mode")

	// A planted link is neither followed nor replaced.
	require.NoError(t, os.Symlink(path, filepath.Join(dir, "link")))
	require.ErrorIs(t, f.WriteFile(t.Context(), filepath.Join(dir, "link"), []byte("x"), 0o644), sandbox.ErrNotRegular)
	_, err = f.Open(t.Context(), filepath.Join(dir, "link"))
	require.ErrorIs(t, err, sandbox.ErrNotRegular)
	b, err := f.ReadFile(t.Context(), path, 3)
	require.NoError(t, err)
	require.Equal(t, "two", string(b))

	require.ErrorIs(t, f.WriteFile(t.Context(), filepath.Join(dir, "no", "dir"), nil, 0o644), fs.ErrNotExist)
	require.ErrorIs(t, f.WriteFile(t.Context(), dir, nil, 0o644), sandbox.ErrNotRegular)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, f.WriteFile(ctx, path, []byte("x"), 0o644), context.Canceled)
	left, err := f.List(t.Context(), dir)
	require.NoError(t, err)
	require.Len(t, left, 2, "no temporary file is left")
}

func TestLocalFiles_Reading(t *testing.T) {
	dir := t.TempDir()
	var f files
	path := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(path, []byte("12345"), 0o644))
	_, err := f.ReadFile(t.Context(), path, 4)
	require.ErrorIs(t, err, sandbox.ErrTooLarge)
	r, err := f.Open(t.Context(), path)
	require.NoError(t, err)
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, "12345", string(b))

	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o644))
	for _, p := range []string{pipe, dir} {
		_, err = f.Open(t.Context(), p)
		require.ErrorIs(t, err, sandbox.ErrNotRegular, p)
	}
	_, err = f.Open(t.Context(), filepath.Join(dir, "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestLocalFiles_RenameKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	var f files
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	require.NoError(t, os.WriteFile(a, []byte("a"), 0o644))
	require.NoError(t, os.WriteFile(b, []byte("b"), 0o644))
	require.ErrorIs(t, f.Rename(t.Context(), a, b), fs.ErrExist)
	require.NoError(t, f.Remove(t.Context(), b))
	require.NoError(t, f.Rename(t.Context(), a, b))
	require.NoError(t, f.MkdirAll(t.Context(), filepath.Join(dir, "x", "y"), 0o755))
	names, err := f.List(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, []string{"b", "x"}, []string{names[0].Name, names[1].Name})
}
