package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	image "herald/deploy/sandbox"
	"herald/gateway/config"
	"herald/tools/sandbox"
	"herald/tools/sandbox/auto"
	"herald/tools/sandbox/docker"
	"herald/tools/sandbox/local"
	"herald/tools/sandbox/ssh"
)

// Settings say where a profile works, for the daemon and for the command line.
type Settings struct {
	// Config is a loaded configuration; what is read of it needs a restart to change.
	Config  *config.Config
	Paths   config.Paths
	Profile string
	Log     zerolog.Logger
	Now     func() time.Time
	// Supervisor keeps background commands on this machine; empty: there are none.
	Supervisor []string
}

// Open makes the environment of the profile that terminal.backend names. Nothing is asked of a container engine or of
// another host before the first command. Close it.
func (s Settings) Open() (sandbox.Environment, error) {
	switch backend := s.Config.Terminal.Backend; backend {
	case "docker":
		o, err := s.Docker("")
		if err != nil {
			return nil, err
		}
		d, err := docker.New(o)
		if err != nil {
			return nil, err
		}
		return d, nil
	case "local":
		return s.local()
	case "ssh":
		return s.ssh()
	default:
		o, err := s.Docker("")
		if err != nil {
			return nil, err
		}
		local, err := s.local()
		if err != nil {
			return nil, err
		}
		auto, err := auto.New(auto.Options{Local: local, Docker: o, Log: s.Log})
		if err != nil {
			return nil, errors.Join(err, local.Close())
		}
		return auto, nil
	}
}

// local is this machine.
func (s Settings) local() (sandbox.Environment, error) {
	t := s.Config.Terminal
	dir := filepath.Clean(s.Config.WorkDir(s.Paths))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("terminal.cwd %q: %w (set terminal.cwd to a directory that can be written)", dir, err)
	}
	home, err := s.commandHome()
	if err != nil {
		return nil, err
	}
	init := slices.Clone(t.InitFiles)
	if t.Bashrc {
		if rc, err := bashrc(home); err == nil {
			init = append(init, rc)
		}
	}
	return local.New(local.Options{Dir: dir, Home: home, SpillDir: s.spillDir(), Passthrough: t.EnvPassthrough,
		Deny: SecretNames(s.Config, os.Environ()), InitFiles: init, Shell: t.Shell, Window: s.Config.Tools.Output.MaxBytes, Now: s.Now,
		Supervisor: s.Supervisor, JobDir: filepath.Join(s.Paths.Home, "processes"), JobLog: int64(s.Config.Processes.LogMB) << 20,
		KeepJobs: s.Config.Processes.OnStop == "keep", JobGrace: s.Config.Processes.Grace})
}

// ssh is another host.
func (s Settings) ssh() (sandbox.Environment, error) {
	t := s.Config.Terminal
	dir := "~"
	if filepath.IsAbs(t.Cwd) || strings.HasPrefix(t.Cwd, "~/") {
		dir = t.Cwd
	}
	known := t.SSHKnownHosts
	if known == "" {
		known = filepath.Join(s.Paths.Home, "known_hosts")
	}
	p := s.Config.Processes
	return ssh.New(ssh.Options{Host: t.SSHHost, User: t.SSHUser, Port: t.SSHPort, Key: t.SSHKey, KnownHosts: known, Dir: dir,
		SpillDir: s.spillDir(), Passthrough: t.EnvPassthrough, Deny: SecretNames(s.Config, os.Environ()), InitFiles: t.InitFiles,
		Window:   s.Config.Tools.Output.MaxBytes,
		KeepJobs: p.OnStop == "keep", JobGrace: p.Grace, JobLog: int64(p.LogMB) << 20})
}

func bashrc(home string) (string, error) {
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		home = user
	}
	return filepath.Join(home, ".bashrc"), nil
}

// commandHome is what commands on this machine see as HOME; "" is the user's own (terminal.home_mode).
func (s Settings) commandHome() (string, error) {
	switch mode := s.Config.Terminal.HomeMode; {
	case mode == "real", mode == "auto" && s.Profile == config.DefaultProfile:
		return "", nil
	}
	dir := filepath.Join(s.Paths.Home, "home")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("the home of commands: %w (make it writable, or set terminal.home_mode to real)", err)
	}
	return dir, nil
}

func (s Settings) spillDir() string { return filepath.Join(s.Paths.Cache, "terminal-output") }

// Docker returns the options of the container of a conversation; an empty key is the profile's own. Where containers
// persist both are the same one.
func (s Settings) Docker(key string) (docker.Options, error) {
	t := s.Config.Terminal
	if key == "" && t.ContainerPersistent {
		key = "profile" // so that the command line of a named profile lands where its chats do
	}
	o := docker.Options{
		Engine:      t.DockerHost,
		Request:     docker.Request{Persistent: t.ContainerPersistent, Shared: t.DockerSharedKey, Profile: s.Profile, Session: key},
		KeepRunning: t.DockerKeep, KeepOrphans: !t.DockerReaper, Dir: s.sandboxDir(),
		Image: t.DockerImage, Cwd: t.Cwd, Volumes: t.DockerVolumes, Env: t.DockerEnv, Forward: t.DockerForward,
		Lookup: s.variable, Extra: t.DockerExtra,
		NoNetwork: !t.DockerNetwork, HostUser: t.DockerHostUser, Shm: t.DockerShm, CPU: t.ContainerCPU, MemoryMB: int64(t.ContainerMemoryMB),
		JobGrace: s.Config.Processes.Grace, JobLog: int64(s.Config.Processes.LogMB) << 20,
		DiskMB: int64(t.ContainerDiskMB), Snap: t.DockerSnap, SpillDir: s.spillDir(), Window: s.Config.Tools.Output.MaxBytes,
		Now: s.Now, Log: s.Log,
	}
	if o.Image == "" {
		o.Image, o.Dockerfile = docker.BuiltImage(image.Dockerfile), image.Dockerfile
	}
	if t.DockerMountCwd {
		o.HostCwd = s.Config.WorkDir(s.Paths)
		if err := os.MkdirAll(o.HostCwd, 0o700); err != nil {
			return o, fmt.Errorf("terminal.cwd %q: %w (set terminal.cwd to a directory that can be written)", o.HostCwd, err)
		}
	}
	var err error
	o.Files, err = s.shown()
	return o, err
}

// shown are the directories of the profile that a container sees under their own names, read-only: what people sent,
// long outputs, and skills. A container that other profiles share sees none of them.
func (s Settings) shown() ([]docker.ReadOnlyFile, error) {
	if s.Config.Terminal.DockerSharedKey != "" {
		return nil, nil
	}
	var files []docker.ReadOnlyFile
	for _, dir := range []string{s.Paths.Media, s.spillDir(), s.Paths.Spill} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("the cache of the home: %w", err)
		}
		files = append(files, docker.ReadOnlyFile{Host: dir, Container: dir, Dir: true, Cache: true})
	}
	if st, err := os.Stat(s.Paths.Skills); err == nil && st.IsDir() {
		files = append(files, docker.ReadOnlyFile{Host: s.Paths.Skills, Container: s.Paths.Skills, Dir: true})
	}
	return files, nil
}

// sandboxDir is where the files of persistent containers are: one directory for all profiles of a home, so that profiles
// with a shared key have the same files.
func (s Settings) sandboxDir() string {
	if dir := s.Config.Terminal.SandboxDir; dir != "" {
		return dir
	}
	home := s.Paths.Home
	if profiles := filepath.Dir(home); s.Profile != config.DefaultProfile && filepath.Base(profiles) == "profiles" {
		home = filepath.Dir(profiles)
	}
	return filepath.Join(home, "sandboxes")
}

// variable returns one of the daemon's variables for terminal.docker_forward_env: of the environment, else of the
// profile's .env.
func (s Settings) variable(name string) (string, bool) {
	if value, ok := os.LookupEnv(name); ok {
		return value, true
	}
	data, err := os.ReadFile(s.Paths.EnvFile)
	if err != nil {
		return "", false
	}
	list, _ := config.ParseDotEnv(data)
	for _, v := range list {
		if v.Name == name {
			return v.Value, true
		}
	}
	return "", false
}

// SecretNames returns the names of variables that must not reach commands: Herald's own, and whatever the
// configuration treats as a secret.
func SecretNames(cfg *config.Config, environ []string) []string {
	prefixes := append(cfg.Platforms.EnvPrefixes(), "HERALD_")
	var out []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		for _, prefix := range prefixes {
			if strings.HasPrefix(name, prefix) {
				out = append(out, name)
			}
		}
	}
	return out
}
