package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	image "herald/deploy/sandbox"
	"herald/gateway/config"
	"herald/tools"
	"herald/tools/sandbox"
)

// Sandbox is what the profile's place for commands is made from, for the daemon and for the command line.
type Sandbox struct {
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
func (s Sandbox) Open() (sandbox.Environment, error) {
	switch backend := s.Config.Terminal.Backend; backend {
	case "docker":
		o, err := s.Docker("")
		if err != nil {
			return nil, err
		}
		d, err := sandbox.NewDocker(o)
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
		auto, err := sandbox.NewAuto(sandbox.AutoOptions{Local: local, Docker: o, Log: s.Log})
		if err != nil {
			return nil, errors.Join(err, local.Close())
		}
		return auto, nil
	}
}

// local is this machine.
func (s Sandbox) local() (sandbox.Environment, error) {
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
	return sandbox.NewLocal(sandbox.LocalOptions{Dir: dir, Home: home, SpillDir: s.spillDir(), Passthrough: t.EnvPassthrough, Deny: secretNames(os.Environ()),
		InitFiles: init, Shell: t.Shell, Window: s.Config.Tools.Output.MaxBytes, Now: s.Now,
		Supervisor: s.Supervisor, JobDir: filepath.Join(s.Paths.Home, "processes"), JobLog: int64(s.Config.Processes.LogMB) << 20,
		KeepJobs: s.Config.Processes.OnStop == "keep", JobGrace: s.Config.Processes.Grace})
}

// ssh is another host.
func (s Sandbox) ssh() (sandbox.Environment, error) {
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
	return sandbox.NewSSH(sandbox.SSHOptions{Host: t.SSHHost, User: t.SSHUser, Port: t.SSHPort, Key: t.SSHKey, KnownHosts: known, Dir: dir,
		SpillDir: s.spillDir(), Passthrough: t.EnvPassthrough, Deny: secretNames(os.Environ()), InitFiles: t.InitFiles, Window: s.Config.Tools.Output.MaxBytes,
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
func (s Sandbox) commandHome() (string, error) {
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

func (s Sandbox) spillDir() string { return filepath.Join(s.Paths.Cache, "terminal-output") }

// Docker returns the options of the container of a conversation; an empty key is the profile's own. Where containers
// persist both are the same one.
func (s Sandbox) Docker(key string) (sandbox.DockerOptions, error) {
	t := s.Config.Terminal
	if key == "" && t.ContainerPersistent {
		key = "profile" // so that the command line of a named profile lands where its chats do
	}
	o := sandbox.DockerOptions{
		Engine:      t.DockerHost,
		Request:     sandbox.Request{Backend: "docker", Persistent: t.ContainerPersistent, Shared: t.DockerSharedKey, Profile: s.Profile, Session: key},
		KeepRunning: t.DockerKeep, KeepOrphans: !t.DockerReaper, Dir: s.sandboxDir(),
		Image: t.DockerImage, Cwd: t.Cwd, Volumes: t.DockerVolumes, Env: t.DockerEnv, Forward: t.DockerForward, Lookup: s.variable, Extra: t.DockerExtra,
		NoNetwork: !t.DockerNetwork, HostUser: t.DockerHostUser, Shm: t.DockerShm, CPU: t.ContainerCPU, MemoryMB: int64(t.ContainerMemoryMB),
		JobGrace: s.Config.Processes.Grace, JobLog: int64(s.Config.Processes.LogMB) << 20,
		DiskMB: int64(t.ContainerDiskMB), Snap: t.DockerSnap, SpillDir: s.spillDir(), Window: s.Config.Tools.Output.MaxBytes, Now: s.Now, Log: s.Log,
	}
	if o.Image == "" {
		o.Image, o.Dockerfile = sandbox.BuiltImage(image.Dockerfile), image.Dockerfile
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
func (s Sandbox) shown() ([]sandbox.ReadOnlyFile, error) {
	if s.Config.Terminal.DockerSharedKey != "" {
		return nil, nil
	}
	var files []sandbox.ReadOnlyFile
	for _, dir := range []string{s.Paths.Media, s.spillDir(), s.Paths.Spill} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("the cache of the home: %w", err)
		}
		files = append(files, sandbox.ReadOnlyFile{Host: dir, Container: dir, Dir: true, Cache: true})
	}
	if st, err := os.Stat(s.Paths.Skills); err == nil && st.IsDir() {
		files = append(files, sandbox.ReadOnlyFile{Host: s.Paths.Skills, Container: s.Paths.Skills, Dir: true})
	}
	return files, nil
}

// sandboxDir is where the files of persistent containers are. It is one for all profiles of a home, so that those with a
// shared key find the same.
func (s Sandbox) sandboxDir() string {
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
func (s Sandbox) variable(name string) (string, bool) {
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

// sandboxes hands out the environments of the profile: its own, and where containers keep nothing one for each
// conversation.
type sandboxes struct {
	sandbox Sandbox
	own     sandbox.Environment

	mu     sync.Mutex
	rooms  map[string]*room // by the key of the conversation
	closed bool
}

// room is a throwaway container of one conversation.
type room struct {
	env  *sandbox.Docker
	idle *time.Timer
}

// openSandboxes makes the profile's own environment.
func (g *Gateway) openSandboxes() error {
	s := Sandbox{Config: g.cfg(), Paths: g.opt.Paths, Profile: g.opt.Profile, Log: g.log, Now: g.now, Supervisor: g.opt.Supervisor}
	g.sandboxes = &sandboxes{sandbox: s, rooms: map[string]*room{}}
	own, err := s.Open()
	if err != nil {
		return err
	}
	g.sandboxes.own, g.env = own, own
	return nil
}

// environment is where a caller's commands run.
func (p *sandboxes) environment(caller tools.Caller) (sandbox.Environment, error) {
	if p.sandbox.Config.Terminal.ContainerPersistent || caller.Key == "" || p.own.Backend() != "docker" {
		return p.own, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("%w: the daemon is stopping", sandbox.ErrUnavailable)
	}
	r := p.rooms[caller.Key]
	if r == nil {
		o, err := p.sandbox.Docker(caller.Key)
		if err != nil {
			return nil, err
		}
		env, err := sandbox.NewDocker(o)
		if err != nil {
			return nil, err
		}
		r = &room{env: env}
		p.rooms[caller.Key] = r
		r.idle = time.AfterFunc(p.sandbox.Config.Terminal.Lifetime, func() { p.leave(caller.Key) })
	}
	r.idle.Reset(p.sandbox.Config.Terminal.Lifetime)
	return r.env, nil
}

// leave closes a room that was not used for its lifetime. One in which something runs is kept for another.
func (p *sandboxes) leave(key string) {
	p.mu.Lock()
	r := p.rooms[key]
	if r == nil || p.closed {
		p.mu.Unlock()
		return
	}
	if r.env.Busy() {
		r.idle.Reset(p.sandbox.Config.Terminal.Lifetime)
		p.mu.Unlock()
		return
	}
	delete(p.rooms, key)
	p.mu.Unlock()
	if err := r.env.Close(); err != nil {
		p.sandbox.Log.Warn().Err(err).Msg("a throwaway container could not be removed")
	}
}

// close closes all of them at once.
func (p *sandboxes) close() error {
	p.mu.Lock()
	p.closed = true
	all := []sandbox.Environment{p.own}
	for _, r := range p.rooms {
		r.idle.Stop()
		all = append(all, r.env)
	}
	p.mu.Unlock()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, env := range all {
		if env != nil {
			wg.Go(func() { errs[i] = env.Close() })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// choice says where commands run and why. It does not wait.
func (p *sandboxes) choice() sandbox.Choice {
	if auto, ok := p.own.(*sandbox.Auto); ok {
		return auto.Choice()
	}
	return sandbox.Choice{Backend: p.own.Backend(), Reason: "terminal.backend is " + p.sandbox.Config.Terminal.Backend}
}

// onHost reports whether commands surely run on this machine.
func (p *sandboxes) onHost() bool { return p.choice().Backend == "local" }

// decidingFor lets backend auto decide before a call that needs the place, with a word about what it waits for, and then
// takes the picture. A decision that fails is told by the call itself.
type decidingFor struct {
	sandboxes *sandboxes
	next      tools.Checkpointer
}

// Begin implements tools.Checkpointer.
func (d decidingFor) Begin(ctx context.Context, call tools.Call, spec tools.Spec) (func(context.Context, tools.Result), error) {
	d.sandboxes.decide(ctx, spec)
	return d.next.Begin(ctx, call, spec)
}

// deciding is the tool with the decision before it: calls that only read have no checkpoint.
func (p *sandboxes) deciding(t tools.Tool) tools.Tool {
	run := t.Run
	t.Run = func(ctx context.Context, call tools.Call) (tools.Result, error) {
		p.decide(ctx, t.Spec)
		r, err := run(ctx, call)
		if p.sandbox.Config.Terminal.DegradedMode == "fail" {
			r = plain(r)
		}
		return r, err
	}
	return t
}

// plain makes an ordinary error of a result that says that the place can't be reached.
func plain(r tools.Result) tools.Result {
	var d struct{ Status, Error string }
	if !r.IsError || json.Unmarshal([]byte(r.Content), &d) != nil || d.Status != "degraded" {
		return r
	}
	return tools.Failure("%s", d.Error)
}

// decide waits for the decision of backend auto where a tool needs it.
func (p *sandboxes) decide(ctx context.Context, spec tools.Spec) {
	if auto, ok := p.own.(*sandbox.Auto); ok && needsPlace(spec) {
		_, _ = auto.Decide(ctx, func(line string) { tools.Progress(ctx, line) })
	}
}

// needsPlace reports whether a tool works with files or commands.
func needsPlace(spec tools.Spec) bool {
	return spec.ChangesFiles || spec.Paths != nil || slices.Contains([]string{"terminal", "file", "code"}, spec.Toolset)
}

// workDir is where a session's tools begin, "" where only the place itself knows.
func (g *Gateway) workDir() string {
	if !g.sandboxes.onHost() {
		return ""
	}
	return strings.TrimSuffix(g.cfg().WorkDir(g.opt.Paths), "/")
}
