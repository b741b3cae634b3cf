package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/config"
	"herald/tools/sandbox/docker"
)

// The command line of a profile and all of its chats have one key, and all profiles of a home one sandbox directory.
func TestSettings_KeysOfProfiles(t *testing.T) {
	home := t.TempDir()
	for profile, want := range map[string]struct{ home, key, dir string }{
		config.DefaultProfile: {home, "default", "default"},
		"work":                {filepath.Join(home, "profiles", "work"), "profile:work", "profile_work"},
	} {
		s := Settings{Config: config.Default(), Paths: config.PathsFor(want.home), Profile: profile}
		for _, chat := range []string{"", "telegram:1:2", "slack:c:u"} {
			o, err := s.Docker(chat)
			require.NoError(t, err)
			d, err := docker.New(o)
			require.NoError(t, err)
			require.Equal(t, want.key, d.Key(), chat)
			require.Equal(t, filepath.Join(home, "sandboxes", "docker", want.dir), d.FilesDir())
			require.NoError(t, d.Close())
		}
	}
}

// A person at a shell names directories as the container does; from a directory that has nothing to do with it the shell's
// own stands for where the container's sessions begin.
func TestSettings_NamedAtAShell(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	place := func(backend string) Settings {
		src := config.Source{Home: home, UserHome: home, Environ: []string{"HOME=" + home}, Flags: map[string]string{"terminal.backend": backend, "terminal.ssh_host": "host.example"}}
		cfg, _, err := config.Load(src)
		require.NoError(t, err)
		return Settings{Config: cfg, Paths: config.PathsFor(home), Profile: config.DefaultProfile}
	}
	named := func(backend, dir string) string {
		p, err := place(backend).Named(dir, "/somewhere")
		require.NoError(t, err)
		return p.Host
	}
	require.Equal(t, "/somewhere", named("docker", ""), "nothing was run in a container yet")
	own := filepath.Join(home, "sandboxes", "docker", "default")
	for _, dir := range []string{"home", "workspace/app"} {
		require.NoError(t, os.MkdirAll(filepath.Join(own, dir), 0o700))
	}
	require.Equal(t, own+"/workspace", named("docker", ""))
	require.Equal(t, own+"/workspace/app", named("auto", "/workspace/app"))
	require.Equal(t, "/nowhere", named("docker", "/nowhere"))
	require.Equal(t, "/somewhere", named("local", ""))
	require.Equal(t, "/workspace/app", named("local", "/workspace/app"))
	_, err = place("ssh").Named("", "/somewhere")
	require.ErrorIs(t, err, ErrElsewhere)

	p, err := place("docker").Named("", own+"/workspace/app")
	require.NoError(t, err)
	require.Equal(t, "/workspace/app", p.Shown(p.Host))
	require.Equal(t, "/workspace/app", place("local").Shown(own+"/workspace/app"))
	require.Equal(t, "/elsewhere", place("docker").Shown("/elsewhere"))
}
