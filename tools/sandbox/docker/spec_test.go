package docker

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/mount"
	"github.com/stretchr/testify/require"
)

func specOptions(t *testing.T, change func(*Options)) Options {
	t.Helper()
	o := Options{Request: Request{Persistent: true, Profile: "work", Session: "s"}, Dir: t.TempDir(), Image: "image", CPU: 1.5,
		MemoryMB: 512, DiskMB: 1024, Shm: "1g"}
	if change != nil {
		change(&o)
	}
	require.NoError(t, o.check())
	require.NoError(t, o.makeDirs())
	return o
}

func TestDockerOptions_Build_Hardening(t *testing.T) {
	s, err := specOptions(t, nil).build(limits{resources: true}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"ALL"}, s.host.CapDrop)
	require.ElementsMatch(t, []string{"DAC_OVERRIDE", "CHOWN", "FOWNER", "SETUID", "SETGID"}, s.host.CapAdd)
	require.Equal(t, []string{"no-new-privileges"}, s.host.SecurityOpt)
	require.False(t, s.host.Privileged)
	require.Equal(t, map[string]string{"/tmp": "rw,exec,nosuid,size=512m", "/var/tmp": "rw,noexec,nosuid,size=256m", "/run": "rw,noexec,nosuid,size=64m"}, s.host.Tmpfs)
	require.True(t, *s.host.Init)
	require.Equal(t, "sleep infinity", strings.Join(append(s.config.Entrypoint, s.config.Cmd...), " "))
	require.Equal(t, int64(1_500_000_000), s.host.NanoCPUs)
	require.Equal(t, int64(512<<20), s.host.Memory)
	require.Equal(t, int64(256), *s.host.PidsLimit)
	require.Equal(t, int64(1<<30), s.host.ShmSize)
	require.Empty(t, s.host.StorageOpt)
	require.Equal(t, "default", string(s.host.NetworkMode))
	require.Empty(t, s.config.Env)
}

func TestDockerOptions_Build_Variants(t *testing.T) {
	s, err := specOptions(t, func(o *Options) { o.HostUser = true }).build(limits{}, nil)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"DAC_OVERRIDE", "CHOWN", "FOWNER"}, s.host.CapAdd)
	require.NotEmpty(t, s.config.User)
	require.Zero(t, s.host.Memory+s.host.NanoCPUs, "no limits where they do not hold")
	require.Nil(t, s.host.PidsLimit)

	s, err = specOptions(t, func(o *Options) { o.Snap, o.Shm = true, "0" }).build(limits{disk: true}, nil)
	require.NoError(t, err)
	require.Empty(t, s.host.SecurityOpt)
	require.False(t, *s.host.Init)
	require.Zero(t, s.host.ShmSize)
	require.Equal(t, map[string]string{"size": "1024m"}, s.host.StorageOpt)

	s, err = specOptions(t, nil).build(limits{}, []string{"/init"})
	require.NoError(t, err)
	require.False(t, *s.host.Init, "s6 is the first process itself")
	require.Nil(t, s.config.Entrypoint)
	require.Equal(t, "rw,exec,nosuid,size=64m", s.host.Tmpfs["/run"])

	s, err = specOptions(t, func(o *Options) { o.NoNetwork, o.Extra = true, []string{"--network=none"} }).build(limits{}, nil)
	require.NoError(t, err)
	require.Equal(t, "none", string(s.host.NetworkMode))
	require.Equal(t, "none", s.config.Labels[labelEgress])
}

func TestDockerOptions_Build_Mounts(t *testing.T) {
	cred, dir := filepath.Join(t.TempDir(), "token"), t.TempDir()
	require.NoError(t, os.WriteFile(cred, nil, 0o600))
	o := specOptions(t, func(o *Options) {
		o.Volumes = []string{"/srv:/srv:ro", "cache:/cache"}
		o.Files = []ReadOnlyFile{{Host: cred, Container: "/run/secrets/token"}, {Host: dir, Container: "/skills", Dir: true},
			{Host: cred, Container: "/wrong", Dir: true}, {Host: dir, Container: "/wrong2"}, {Host: dir + "/missing", Container: "/missing", Dir: true}}
	})
	s, err := o.build(limits{}, nil)
	require.NoError(t, err)
	require.Equal(t, o.Volumes, s.host.Binds)
	require.ElementsMatch(t, []mount.Mount{
		{Type: mount.TypeBind, Source: filepath.Join(o.Dir, "docker", "profile_work", "home"), Target: "/root"},
		{Type: mount.TypeBind, Source: filepath.Join(o.Dir, "docker", "profile_work", "workspace"), Target: "/workspace"},
		{Type: mount.TypeBind, Source: cred, Target: "/run/secrets/token", ReadOnly: true},
		{Type: mount.TypeBind, Source: dir, Target: "/skills", ReadOnly: true},
	}, s.host.Mounts)
	st, err := os.Stat(filepath.Join(o.Dir, "docker", "profile_work", "home"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), st.Mode().Perm())

	o = specOptions(t, func(o *Options) { o.Volumes = []string{"/srv:/workspace"} })
	s, err = o.build(limits{}, nil)
	require.NoError(t, err)
	require.Len(t, s.host.Mounts, 1, "the operator's /workspace wins")

	o = specOptions(t, func(o *Options) { o.HostCwd = dir })
	s, err = o.build(limits{}, nil)
	require.NoError(t, err)
	require.True(t, slices.Contains(s.host.Mounts, mount.Mount{Type: mount.TypeBind, Source: dir, Target: "/workspace"}))
	require.Equal(t, "/workspace", s.config.WorkingDir)

	o = specOptions(t, func(o *Options) { o.Request.Persistent = false })
	s, err = o.build(limits{}, nil)
	require.NoError(t, err)
	require.Empty(t, s.host.Mounts)
	require.Equal(t, "rw,exec,size=10g", s.host.Tmpfs["/workspace"])
	require.Equal(t, "rw,exec,size=1g", s.host.Tmpfs["/root"])
	require.Equal(t, "rw,exec,size=1g", s.host.Tmpfs["/home"])
}

func TestDockerOptions_Check(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"terminal.docker_image":                      func(o *Options) { o.Image = "" },
		"terminal.sandbox_dir":                       func(o *Options) { o.Dir = "rel" },
		"terminal.docker_mount_cwd_to_workspace":     func(o *Options) { o.HostCwd = "rel" },
		"terminal.docker_shm_size":                   func(o *Options) { o.Shm = "much" },
		"terminal.docker_volumes":                    func(o *Options) { o.Volumes = []string{"nocolon"} },
		"terminal.docker_env":                        func(o *Options) { o.Env = map[string]string{"A=B": ""} },
		`"--privileged" is not supported; allowed`:   func(o *Options) { o.Extra = []string{"--privileged"} },
		`asks for the network "host"`:                func(o *Options) { o.NoNetwork, o.Extra = true, []string{"--network", "host"} },
		`asks for the network "bridge"`:              func(o *Options) { o.NoNetwork, o.Extra = true, []string{"--net=bridge"} },
		"names that begin with herald- are Herald's": func(o *Options) { o.Extra = []string{"--label", "herald-profile=x"} },
		"--gpus needs a value":                       func(o *Options) { o.Extra = []string{"--gpus"} },
		"--memory \"lots\": want a size":             func(o *Options) { o.Extra = []string{"--memory=lots"} },
	} {
		o := Options{Request: Request{Persistent: true}, Dir: "/sandboxes", Image: "image"}
		change(&o)
		require.ErrorContains(t, o.check(), want)
	}
}

func TestDockerOptions_Extra_WinsLast(t *testing.T) {
	o := specOptions(t, func(o *Options) {
		o.Extra = []string{"--memory=2g", "--cpus", "3", "-v", "/a:/b", "--gpus all", "--dns=9.9.9.9", "--add-host=db:10.0.0.1", "--hostname=box",
			"--user=1000:1000", "--ulimit", "nofile=64:128", "--shm-size=2g", "--pids-limit=-1", "--device=/dev/fuse", "--tmpfs=/x:size=1m", "--label=a=b",
			"--sysctl=net.core.somaxconn=1", "--read-only", "--cap-add=NET_RAW", "--network=lab", "--group-add=44", "--runtime=runsc", "--userns=host", "--security-opt=label=disable"}
	})
	s, err := o.build(limits{resources: true}, nil)
	require.NoError(t, err)
	require.Equal(t, int64(2<<30), s.host.Memory)
	require.Equal(t, int64(3e9), s.host.NanoCPUs)
	require.Equal(t, []string{"/a:/b"}, s.host.Binds)
	require.Equal(t, -1, s.host.DeviceRequests[0].Count)
	require.Equal(t, "9.9.9.9", s.host.DNS[0].String())
	require.Equal(t, int64(-1), *s.host.PidsLimit)
	require.Equal(t, "lab", string(s.host.NetworkMode))
	require.Equal(t, "b", s.config.Labels["a"])
	require.True(t, s.host.ReadonlyRootfs)
	require.Contains(t, s.host.CapAdd, "NET_RAW")
	require.Equal(t, "1000:1000", s.config.User)
	require.Equal(t, "/dev/fuse", s.host.Devices[0].PathInContainer)
}

func TestContainerCwd(t *testing.T) {
	for in, want := range map[string]string{"": "/workspace", "workspace": "/workspace", "/home/me/work": "/workspace", "/Users/me": "/workspace", `C:\work`: "/workspace", "C:/work": "/workspace", "/srv/app": "/srv/app", "/workspace/": "/workspace", "~": "/workspace"} {
		require.Equal(t, want, ContainerCwd(in), in)
	}
}

// Nothing secret is in what the engine is told about the container, and what is forwarded has the value of the moment.
func TestDockerOptions_Env_NotInTheContainer(t *testing.T) {
	value := "one"
	o := specOptions(t, func(o *Options) {
		o.Env, o.Forward = map[string]string{"MODE": "m1"}, []string{"GITHUB_TOKEN", "ABSENT"}
		o.Lookup = func(name string) (string, bool) { return value, name == "GITHUB_TOKEN" }
	})
	s, err := o.build(limits{}, nil)
	require.NoError(t, err)
	require.Empty(t, s.config.Env)
	require.Equal(t, map[string]string{"MODE": "m1", "GITHUB_TOKEN": "one"}, o.commandEnv())
	value = "two"
	require.Equal(t, "two", o.commandEnv()["GITHUB_TOKEN"])
}

func TestEngineAddresses(t *testing.T) {
	dir := t.TempDir()
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	list, chosen := engineAddresses("unix:///a.sock", env("DOCKER_HOST", "unix:///b.sock"), 1000)
	require.Equal(t, []string{"unix:///a.sock"}, list)
	require.True(t, chosen)
	list, chosen = engineAddresses("", env("DOCKER_HOST", "unix:///b.sock"), 1000)
	require.Equal(t, []string{"unix:///b.sock"}, list)
	require.True(t, chosen)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"currentContext":"default"}`), 0o600))
	list, chosen = engineAddresses("", env("DOCKER_CONFIG", dir, "HOME", dir, "XDG_RUNTIME_DIR", dir), 1000)
	require.False(t, chosen)
	for _, a := range list {
		require.True(t, strings.HasPrefix(a, "unix:///"), a)
	}

	// The Environment client's context, by the directory name that it gives it: the SHA-256 of the name.
	meta := filepath.Join(dir, "contexts", "meta", "f24fd3749c1368328e2b149bec149cb6795619f244c5b584e844961215dadd16")
	require.NoError(t, os.MkdirAll(meta, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(meta, "meta.json"), []byte(`{"Name":"colima","Endpoints":{"docker":{"Host":"unix:///colima.sock"}}}`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"currentContext":"colima"}`), 0o600))
	list, chosen = engineAddresses("", env("DOCKER_CONFIG", dir), 1000)
	require.Equal(t, []string{"unix:///colima.sock"}, list)
	require.True(t, chosen)
	list, _ = engineAddresses("", env("DOCKER_CONFIG", dir, "DOCKER_CONTEXT", "default"), 1000)
	require.NotContains(t, list, "unix:///colima.sock")
}
