package mounts

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/tools/sandbox"
)

// plant makes files below a directory: names that end in "/" are directories, "a -> b" is a link.
func plant(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		at, target, link := strings.Cut(name, " -> ")
		full := filepath.Join(dir, at)
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		switch {
		case link:
			require.NoError(t, os.Symlink(target, full))
		case strings.HasSuffix(name, "/"):
			require.NoError(t, os.MkdirAll(full, 0o755))
		default:
			require.NoError(t, os.WriteFile(full, []byte(at), 0o644))
		}
	}
}

func mustMounts(t testing.TB, mounts ...Mount) Table {
	t.Helper()
	m, err := New("/root", mounts...)
	require.NoError(t, err)
	return m
}

func TestMounts_HostPath(t *testing.T) {
	m := mustMounts(t, Mount{Container: "/workspace", Host: "/s/workspace"}, Mount{Container: "/root", Host: "/s/home"},
		Mount{Container: "/workspace/data/", Host: "/srv/data", ReadOnly: true}, Mount{Container: "/workspace/data", Host: "/srv/second"},
		Mount{Container: "/root/.herald/cache", Host: "/h/cache", Cache: true})
	for path, want := range map[string]string{
		"/workspace":                       "/s/workspace",
		"/workspace/":                      "/s/workspace",
		"/workspace/a b/c":                 "/s/workspace/a b/c",
		"/workspace//a/./b/../c":           "/s/workspace/a/c",
		"/workspace/data":                  "/srv/data",
		"/workspace/data/x":                "/srv/data/x",
		"/workspace/database":              "/s/workspace/database",
		"/workspace2/x":                    "",
		"/workspace/../etc/passwd":         "",
		"/workspace/data/../../etc/passwd": "",
		"/workspace/../../..":              "",
		"/root/out.png":                    "/s/home/out.png",
		"/root/.cache/x":                   "/s/home/.cache/x",
		"/root/.herald/cache/pic.png":      "/h/cache/pic.png",
		"/root/.herald/cache/.env":         "/h/cache/.env",
		"/root/.herald/cache/../.env":      "",
		"/etc/passwd":                      "",
		"/":                                "",
		"":                                 "",
		"workspace/x":                      "",
		"/workspace/a\x00b":                "",
	} {
		got, ok := m.HostPath(path)
		require.Equal(t, want, got, "%q", path)
		require.Equal(t, want != "", ok, "%q", path)
	}
	got, ok := Table{}.HostPath("/workspace/x")
	require.False(t, ok, got)
}

func TestMounts_CredentialsHaveNoHostPath(t *testing.T) {
	dir := t.TempDir()
	refused := []string{"/root/.herald", "/root/.herald/secrets.env", "/root/.herald-work/config.yaml", "/root/.hermes/x", "/root/.HERALD/x", "/root/.env",
		"/root/app/.env", "/root/app/.env.production", "/root/.ssh/id_ed25519", "/root/.SSH/id_rsa", "/root/.aws/credentials", "/root/.netrc", "/root/.gnupg/x",
		"/root/.config/gh/hosts.yml", "/root/.config/gcloud/x", "/root/.docker/config.json", "/root/.npmrc", "/root/.git-credentials", "/workspace/.env",
		"/workspace/x/.ssh/id_rsa", "/workspace/.env.local", "/root/a/../.ssh/id_rsa", "/root/.herald/cache/../secrets.env"}
	// Every layout: the home mount alone, beside a cache, and under a volume that names the place itself.
	layouts := map[string]Table{
		"home":   mustMounts(t, Mount{Container: "/root", Host: dir}, Mount{Container: "/workspace", Host: dir}),
		"cache":  mustMounts(t, Mount{Container: "/root/.herald/cache", Host: dir, Cache: true}, Mount{Container: "/root", Host: dir}, Mount{Container: "/workspace", Host: dir}),
		"volume": mustMounts(t, Mount{Container: "/root/.ssh", Host: dir}, Mount{Container: "/root", Host: dir}, Mount{Container: "/workspace", Host: dir}),
	}
	for name, m := range layouts {
		for _, path := range refused {
			got, ok := m.HostPath(path)
			require.False(t, ok, "%s: %s is %s", name, path, got)
		}
		for _, path := range []string{"/root/notes.md", "/root/heraldry.txt", "/root/a.env", "/root/.environment", "/workspace/.env.example", "/workspace/.docker/Dockerfile", "/workspace/ssh/x"} {
			_, ok := m.HostPath(path)
			require.True(t, ok, "%s: %s", name, path)
		}
	}
	got, ok := layouts["cache"].HostPath("/root/.herald/cache/.env")
	require.True(t, ok)
	require.Equal(t, dir+"/.env", got)

	// By a link they are found too.
	plant(t, dir, ".ssh/id_rsa", "key -> .ssh/id_rsa", "dir -> .ssh", "abs -> /root/.ssh/id_rsa")
	for _, path := range []string{"/root/key", "/root/dir/id_rsa", "/root/abs", "/root/.ssh/id_rsa"} {
		_, err := layouts["home"].Resolve(path)
		require.ErrorIs(t, err, ErrCredentials, path)
		_, err = layouts["home"].Open(path)
		require.ErrorIs(t, err, ErrCredentials, path)
	}
}

func TestMounts_ResolveFollowsLinksAsTheContainerDoes(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, "outside/secret", "ws/real/a.txt", "ws/rel -> real/a.txt", "ws/up -> ../outside/secret", "ws/host -> "+dir+"/outside/secret",
		"ws/home -> /root/b.txt", "ws/dir -> /root/deep", "ws/self -> /workspace/real", "ws/loop -> loop", "ws/etc -> /etc/passwd", "ws/rootdir -> /",
		"ws/gone -> nothing", "ws/updown -> /root/../workspace/real/a.txt", "home/b.txt", "home/deep/c.txt", "home/back -> ../workspace/real/a.txt", "data/d.txt")
	m := mustMounts(t, Mount{Container: "/workspace", Host: dir + "/ws"}, Mount{Container: "/root", Host: dir + "/home"}, Mount{Container: "/mnt/data", Host: dir + "/data"})
	for path, want := range map[string]string{
		"/workspace/real/a.txt":         dir + "/ws/real/a.txt",
		"/workspace/rel":                dir + "/ws/real/a.txt",
		"/workspace/home":               dir + "/home/b.txt",
		"/workspace/dir/c.txt":          dir + "/home/deep/c.txt",
		"/workspace/self/a.txt":         dir + "/ws/real/a.txt",
		"/workspace/rootdir/root/b.txt": dir + "/home/b.txt",
		"/workspace/updown":             dir + "/ws/real/a.txt",
		"/root/back":                    dir + "/ws/real/a.txt",
		"/mnt/data/d.txt":               dir + "/data/d.txt",
		"/workspace":                    dir + "/ws",
	} {
		got, err := m.Resolve(path)
		require.NoError(t, err, path)
		require.Equal(t, want, got, path)
	}
	for path, want := range map[string]error{
		"/workspace/up":          ErrNoHostPath, // /outside of the container, which is no mount
		"/workspace/host":        ErrNoHostPath,
		"/workspace/etc":         ErrNoHostPath,
		"/workspace/rootdir":     ErrNoHostPath,
		"/workspace/loop":        syscall.ELOOP,
		"/workspace/gone":        fs.ErrNotExist,
		"/workspace/missing/x":   fs.ErrNotExist,
		"/workspace/rel/x":       syscall.ENOTDIR,
		"/opt/x":                 ErrNoHostPath,
		"/workspace/../opt/x":    ErrNoHostPath,
		"relative":               ErrNoHostPath,
		"/workspace/rel\x00/etc": ErrNoHostPath,
	} {
		_, err := m.Resolve(path)
		require.ErrorIs(t, err, want, path)
		_, err = m.Open(path)
		require.ErrorIs(t, err, want, path)
	}
	f, err := m.Open("/workspace/home")
	require.NoError(t, err)
	text, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, "home/b.txt", string(text))
	_, err = m.Open("/workspace")
	require.ErrorIs(t, err, sandbox.ErrNotRegular)
	require.NoError(t, syscall.Mkfifo(dir+"/ws/pipe", 0o600))
	_, err = m.Open("/workspace/pipe")
	require.ErrorIs(t, err, sandbox.ErrNotRegular)
}

func TestMounts_EqualDirectoriesInTheirOrder(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, "one/a", "two/a", "two/b")
	m := mustMounts(t, Mount{Container: "/workspace", Host: dir + "/one"}, Mount{Container: "/workspace", Host: dir + "/two"})
	got, ok := m.HostPath("/workspace/b")
	require.True(t, ok)
	require.Equal(t, dir+"/one/b", got)
	for path, want := range map[string]string{"/workspace/a": "/one/a", "/workspace/b": "/two/b"} {
		got, err := m.Resolve(path)
		require.NoError(t, err)
		require.Equal(t, dir+want, got)
	}
}

func TestMounts_ContainerPath(t *testing.T) {
	m := mustMounts(t, Mount{Container: "/workspace", Host: "/s/workspace"}, Mount{Container: "/root", Host: "/s/home"}, Mount{Container: "/data", Host: "/s/workspace/data"})
	for host, want := range map[string]string{"/s/workspace": "/workspace", "/s/workspace/a/b": "/workspace/a/b", "/s/workspace/data/x": "/data/x", "/s/home/x": "/root/x", "/s": "", "/s/workspaces": "", "x": ""} {
		got, ok := m.ContainerPath(host)
		require.Equal(t, want, got, host)
		require.Equal(t, want != "", ok, host)
	}
}

func TestNewMounts_RefusesWhatIsNotAbsolute(t *testing.T) {
	for _, bad := range []Mount{{Container: "a", Host: "/b"}, {Container: "/a", Host: "b"}, {Container: "", Host: "/b"}, {Container: "/a\x00", Host: "/b"}} {
		_, err := New("", bad)
		require.Error(t, err, "%+v", bad)
	}
}

func TestParseVolume(t *testing.T) {
	for text, want := range map[string]Mount{
		"/srv/data:/data":        {Container: "/data", Host: "/srv/data"},
		"/srv/data/:/data/:ro":   {Container: "/data", Host: "/srv/data", ReadOnly: true},
		"/srv/a:b:/data:z,ro":    {Container: "/data", Host: "/srv/a:b", ReadOnly: true},
		"/srv/data:/data:rw":     {Container: "/data", Host: "/srv/data"},
		"/srv/data:/d/../e:rro":  {Container: "/e", Host: "/srv/data"},
		"/srv/data:/data:ro,rro": {Container: "/data", Host: "/srv/data", ReadOnly: true},
	} {
		got, bind, err := ParseVolume(text)
		require.NoError(t, err, text)
		require.True(t, bind, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"cache:/var/cache", "my_volume-1:/x:ro"} {
		_, bind, err := ParseVolume(text)
		require.NoError(t, err, text)
		require.False(t, bind, text)
	}
	for _, text := range []string{"", "/srv/data", "/srv/data:data", ":/data", "./x:/data", "../x:/data", "~/x:/data", "/srv:/", "/srv:/data/.."} {
		_, _, err := ParseVolume(text)
		require.Error(t, err, text)
	}
}

// FuzzMounts: whatever the path, what comes back is in the directory of a mount, and no credential.
func FuzzMounts(f *testing.F) {
	for _, p := range []string{"/workspace/a", "/workspace/../root/.ssh/x", "/root/./.env", "/workspace/link/../../etc", "/root/.herald/cache/../x", "//workspace//..//root", "/\x00"} {
		f.Add(p)
	}
	dir := f.TempDir()
	for _, d := range []string{"/ws/sub", "/home", "/cache", "/out"} {
		require.NoError(f, os.MkdirAll(dir+d, 0o755))
	}
	require.NoError(f, os.WriteFile(dir+"/out/secret", []byte("secret"), 0o600))
	for name, target := range map[string]string{"/ws/l": "../../out/secret", "/ws/m": dir + "/out", "/ws/sub/up": "../..", "/home/.x": "/root/.ssh"} {
		require.NoError(f, os.Symlink(target, dir+name))
	}
	m := mustMounts(f, Mount{Container: "/workspace", Host: dir + "/ws"}, Mount{Container: "/root", Host: dir + "/home"},
		Mount{Container: "/root/.herald/cache", Host: dir + "/cache", Cache: true})
	inside := func(host string) bool {
		for _, d := range []string{"/ws", "/home", "/cache"} {
			if _, ok := Below(host, dir+d); ok {
				return true
			}
		}
		return false
	}
	f.Fuzz(func(t *testing.T, p string) {
		if host, ok := m.HostPath(p); ok {
			require.True(t, inside(host), host)
			require.Equal(t, filepath.Clean(host), host)
			if !strings.HasPrefix(host, dir+"/cache") {
				require.NotContains(t, split(strings.ToLower(host)), ".ssh")
			}
			back, ok := m.ContainerPath(host)
			require.True(t, ok)
			again, ok := m.HostPath(back)
			require.True(t, ok)
			require.Equal(t, host, again)
		}
		if host, err := m.Resolve(p); err == nil {
			require.True(t, inside(host), host)
			real, err := filepath.EvalSymlinks(host)
			require.NoError(t, err)
			require.True(t, inside(real), real)
		}
		if _, err := m.Open(p); err == nil {
			t.Fatalf("%q: a file was opened; there is none in the mounts", p)
		}
		_, _, _ = ParseVolume(p)
	})
}
