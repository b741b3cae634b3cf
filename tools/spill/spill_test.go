package spill

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info.Mode()
}

// Regression: a link planted at the predictable path of a spill file must not redirect the write.
func TestWriteExclusive_PlantedLink_ReplacedAndTargetUntouched(t *testing.T) {
	dir := t.TempDir()
	target, path := filepath.Join(dir, "target"), filepath.Join(dir, "spill.txt")
	require.NoError(t, os.WriteFile(target, []byte("precious"), 0o644))
	require.NoError(t, os.Symlink(target, path))

	require.ErrorIs(t, WriteExclusive(path, []byte("new"), true, false), fs.ErrExist, "without overwrite the link is refused")
	require.NoError(t, WriteExclusive(path, []byte("new"), true, true))

	got, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "precious", string(got))
	require.True(t, mode(t, path).IsRegular(), "the link is a file now")
	require.Equal(t, PrivateFile, mode(t, path).Perm())
	got, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "new", string(got))
}

func TestOpenExclusive_DanglingLink_IsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "spill.txt")
	require.NoError(t, os.Symlink(filepath.Join(dir, "not-there"), path))
	_, err := OpenExclusive(path, true, false)
	require.ErrorIs(t, err, fs.ErrExist)
	f, err := OpenExclusive(path, true, true)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoFileExists(t, filepath.Join(dir, "not-there"))
}

func TestWriteExclusive_Table(t *testing.T) {
	old := syscall.Umask(0o022)
	t.Cleanup(func() { syscall.Umask(old) })
	for _, tt := range []struct {
		name               string
		prepare            func(path string) error
		private, overwrite bool
		want               error
		mode               fs.FileMode
	}{
		{"new private", nil, true, false, nil, 0o600},
		{"new shared", nil, false, false, nil, 0o644},
		{"existing without overwrite", func(p string) error { return os.WriteFile(p, []byte("old"), 0o644) }, true, false, fs.ErrExist, 0},
		{"existing with overwrite", func(p string) error { return os.WriteFile(p, []byte("a longer old text"), 0o644) }, true, true, nil, 0o600},
		{"directory with overwrite", func(p string) error { return os.Mkdir(p, 0o755) }, true, true, ErrIsDir, 0},
		{"fifo with overwrite", func(p string) error { return syscall.Mkfifo(p, 0o600) }, true, true, nil, 0o600},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			if tt.prepare != nil {
				require.NoError(t, tt.prepare(path))
			}
			err := WriteExclusive(path, []byte("new"), tt.private, tt.overwrite)
			if tt.want != nil {
				require.ErrorIs(t, err, tt.want)
				return
			}
			require.NoError(t, err)
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, "new", string(got))
			require.Equal(t, tt.mode, mode(t, path).Perm())
		})
	}
}

func TestEnsureDir(t *testing.T) {
	old := syscall.Umask(0o022)
	t.Cleanup(func() { syscall.Umask(old) })
	base := t.TempDir()

	private := filepath.Join(base, "a", "b")
	require.NoError(t, EnsureDir(private, true))
	require.Equal(t, PrivateDir, mode(t, private).Perm())

	shared := filepath.Join(base, "c")
	require.NoError(t, EnsureDir(shared, false))
	require.Equal(t, fs.FileMode(0o755), mode(t, shared).Perm())
	require.NoError(t, EnsureDir(shared, true), "an existing one is tightened")
	require.Equal(t, PrivateDir, mode(t, shared).Perm())

	link := filepath.Join(base, "link")
	require.NoError(t, os.Symlink(shared, link))
	require.ErrorIs(t, EnsureDir(link, true), ErrNotDir)
	dangling := filepath.Join(base, "dangling")
	require.NoError(t, os.Symlink(filepath.Join(base, "nowhere"), dangling))
	require.ErrorIs(t, EnsureDir(dangling, false), ErrNotDir)
	file := filepath.Join(base, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorIs(t, EnsureDir(file, false), ErrNotDir)
}

func TestEnsureOwnedPrivateDir(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "herald-results")
	require.NoError(t, EnsureOwnedPrivateDir(dir))
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, EnsureOwnedPrivateDir(dir))
	require.Equal(t, PrivateDir, mode(t, dir).Perm())

	link := filepath.Join(base, "link")
	require.NoError(t, os.Symlink(dir, link))
	require.ErrorIs(t, EnsureOwnedPrivateDir(link), ErrNotDir)
	require.Error(t, EnsureOwnedPrivateDir(filepath.Join(base, "missing", "child")), "parents are not made in a shared place")

	if os.Geteuid() == 0 {
		foreign := filepath.Join(base, "foreign")
		require.NoError(t, os.Mkdir(foreign, 0o777))
		require.NoError(t, os.Chown(foreign, 12345, 12345))
		require.ErrorIs(t, EnsureOwnedPrivateDir(foreign), ErrNotOwned)
	}
}

func TestSecureParentDir(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	install := filepath.Join(base, "opt", "herald")
	inner := filepath.Join(install, "etc")
	creds := filepath.Join(base, "creds")
	for _, d := range []string{inner, creds} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	rootLink := filepath.Join(base, "rootlink")
	require.NoError(t, os.Symlink("/", rootLink))
	tmpBefore := mode(t, os.TempDir())

	require.Empty(t, SecureParentDir(filepath.Join(creds, "token.json"), install))
	require.Equal(t, PrivateDir, mode(t, creds).Perm())

	require.Contains(t, SecureParentDir("/token.json", install), "root directory")
	require.Contains(t, SecureParentDir(filepath.Join(rootLink, "token.json"), install), "root directory", "links are resolved first")
	require.Contains(t, SecureParentDir("/tmp/token.json", install), "top-level")
	require.Contains(t, SecureParentDir(filepath.Join(install, "token.json"), install), "installation")
	require.Contains(t, SecureParentDir(filepath.Join(inner, "token.json"), install), "installation")
	require.NotEmpty(t, SecureParentDir(filepath.Join(base, "missing", "token.json"), install))

	require.Equal(t, fs.FileMode(0o755), mode(t, inner).Perm())
	require.Equal(t, fs.FileMode(0o755), mode(t, install).Perm())
	require.Equal(t, tmpBefore, mode(t, os.TempDir()))
	require.Equal(t, fs.FileMode(0o755), mode(t, filepath.Join(base, "opt")).Perm())
	require.Empty(t, SecureParentDir(filepath.Join(base, "opt", "x"), install), "above the installation is not inside it")
}
