package docker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConfine(t *testing.T) {
	o := Options{Dir: "/h/sandboxes", HostCwd: "/w/cwd", Volumes: []string{"/srv/data:/data", "/srv/data/deep:/deep", "/srv/read:/read:ro", "named:/x"}}
	for path, want := range map[string]string{
		"/h/sandboxes/docker/default/workspace":     "/h/sandboxes/docker/default/workspace",
		"/h/sandboxes/docker/default/workspace/a/b": "/h/sandboxes/docker/default/workspace",
		"/h/sandboxes/docker/default/home/x":        "/h/sandboxes/docker/default/home",
		"/h/sandboxes/docker/default":               "/h/sandboxes/docker/default",
		"/h/sandboxes/docker":                       "/h/sandboxes/docker",
		"/h/sandboxes":                              "",
		"/h/sandboxes/dockery/x":                    "",
		"/srv/data":                                 "/srv/data",
		"/srv/data/x":                               "/srv/data",
		"/srv/data/deep/x":                          "/srv/data/deep",
		"/srv/read/x":                               "",
		"/w/cwd/x":                                  "/w/cwd",
		"/w/other":                                  "",
		"/":                                         "",
	} {
		require.Equal(t, want, Confine(o, path), path)
	}
	require.Empty(t, Confine(Options{Dir: "/h"}, "/w/x"))
}

// Links on the way to the directory of the containers change nothing.
func TestConfine_ByEitherName(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(base+"/real/docker/default/workspace", 0o700))
	require.NoError(t, os.Symlink("real", base+"/link"))
	for _, dir := range []string{"/real", "/link"} {
		want := base + dir + "/docker/default/workspace"
		require.Equal(t, want, Confine(Options{Dir: base + "/link"}, want+"/x"))
	}
}

// The layouts of a profile: in their order, only those that are there, and never another profile's.
func TestLayouts(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir, Volumes: []string{"/srv/data:/data"}, Request: Request{Persistent: true, Shared: "team", Profile: "work"}}
	for _, key := range []string{"shared:team", "profile:work", "default", "session:a", "session:b", "profile:other"} {
		require.NoError(t, os.MkdirAll(dir+"/docker/"+KeyDir(key), 0o700))
	}
	hosts := func(session string, alone bool) (out []string) {
		for _, m := range Layouts(o, session, alone) {
			host, ok := m.HostPath("/workspace")
			require.True(t, ok)
			out = append(out, host)
			data, ok := m.HostPath("/data/x")
			require.True(t, ok)
			require.Equal(t, "/srv/data/x", data)
		}
		return out
	}
	at := func(key string) string { return dir + "/docker/" + KeyDir(key) + "/workspace" }
	require.Equal(t, []string{at("shared:team"), at("profile:work"), at("session:a")}, hosts("a", false))
	require.Equal(t, []string{at("shared:team"), at("profile:work"), at("default"), at("session:a")}, hosts("a", true))
	require.Equal(t, []string{at("shared:team"), at("profile:work")}, hosts("", false))
	o.Request.Shared, o.Request.Profile = "", "default"
	require.Equal(t, []string{at("default"), at("session:b")}, hosts("b", false))

	require.NoError(t, os.RemoveAll(dir+"/docker/default"))
	require.NoError(t, os.Symlink(dir, dir+"/docker/default"))
	require.Empty(t, hosts("", false), "a link is no directory of a container")
	o.Request.Persistent = false
	require.Empty(t, hosts("b", true))
}
