package workspace

import (
	"cmp"
	"errors"
	"path"
	"path/filepath"
	"strings"

	"herald/sessions"
	"herald/tools/sandbox"
	"herald/tools/sandbox/docker"
	"herald/tools/sandbox/mounts"
)

// ErrElsewhere says that files are in a place that this machine does not see: another host, or a container that keeps
// nothing.
var ErrElsewhere = errors.New("the files are in a place that this machine does not see")

// mounted is an environment that shares directories with this machine.
type mounted interface{ Mounts() mounts.Table }

// Project is a directory of the agent's work by both its names.
type Project struct {
	// Host is its name on this machine.
	Host string
	// mounts translate to the names that the agent and people use; none where they are the same.
	mounts mounts.Table
}

// Shown is the name that people and the agent know a path of this machine by.
func (p Project) Shown(host string) string {
	if name, ok := p.mounts.ContainerPath(host); ok {
		return name
	}
	return host
}

// Project finds a directory of an environment on this machine. Links are resolved as the environment would; a directory that does
// not exist yet is found by its name.
func (s Settings) Project(env sandbox.Environment, dir string) (Project, error) {
	switch backend := env.Backend(); {
	case backend == "local":
		return Project{Host: dir}, nil
	case backend == "auto":
		all := s.Layouts("")
		if len(all) == 0 {
			return Project{Host: dir}, nil // nothing was ever run in a container
		}
		return hosted(all[0], s.containerDir())
	}
	m, ok := env.(mounted)
	if !ok {
		return Project{}, ErrElsewhere
	}
	return hosted(m.Mounts(), dir)
}

// Named finds a directory that a person at a shell names: by the container's name where the profile's files are in one,
// else by its own. An empty name is the current directory cwd where the agent's work can be there, else where the
// container's sessions begin.
func (s Settings) Named(dir, cwd string) (Project, error) {
	var all []mounts.Table
	switch s.Config.Terminal.Backend {
	case "ssh":
		return Project{}, ErrElsewhere
	case "local":
	default:
		all = s.Layouts("")
	}
	if len(all) == 0 {
		if s.Config.Terminal.Backend == "docker" && !s.Config.Terminal.ContainerPersistent && dir == "" && s.Confine(cwd) == "" {
			return Project{}, ErrElsewhere
		}
		return Project{Host: cmp.Or(dir, cwd)}, nil
	}
	if dir == "" {
		if s.Confine(cwd) != "" {
			return Project{cwd, all[0]}, nil
		}
		return hosted(all[0], s.containerDir())
	}
	for _, m := range all {
		if host, err := m.Resolve(dir); err == nil {
			return Project{host, m}, nil
		}
	}
	return Project{dir, all[0]}, nil
}

// Shown is the name that the agent knows a directory of its container by; others keep theirs.
func (s Settings) Shown(host string) string {
	if s.Confine(host) == "" {
		return host
	}
	for _, m := range s.Layouts("") {
		if name, ok := m.ContainerPath(host); ok {
			return name
		}
	}
	return host
}

func hosted(m mounts.Table, dir string) (Project, error) {
	host, err := m.Resolve(dir)
	if err == nil {
		return Project{host, m}, nil
	}
	if host, ok := m.HostPath(dir); ok {
		return Project{host, m}, nil
	}
	return Project{}, ErrElsewhere
}

// containerDir is where sessions of the profile's container begin.
func (s Settings) containerDir() string {
	if s.Config.Terminal.DockerMountCwd {
		return shared
	}
	return docker.ContainerCwd(s.Config.Terminal.Cwd)
}

// Layouts are the mounts of all containers that may have files of a conversation, see docker.Layouts.
func (s Settings) Layouts(of sessions.Key) []mounts.Table {
	o, err := s.Docker("")
	if err != nil {
		return nil
	}
	_, alone := inside(s.sandboxDir(), s.Paths.Home)
	return docker.Layouts(o, string(of), alone)
}

// Confine returns the directory that a container writes in and that holds a path of this machine, see docker.Confine.
// The directories of containers count wherever commands run now; what else is mounted does where they may run in one.
func (s Settings) Confine(p string) string {
	t := s.Config.Terminal
	o := docker.Options{Dir: s.sandboxDir()}
	if t.Backend != "local" && t.Backend != "ssh" {
		o.Volumes = t.DockerVolumes
		if t.DockerMountCwd {
			o.HostCwd = filepath.Clean(s.Config.WorkDir(s.Paths))
		}
	}
	return docker.Confine(o, p)
}

// inside reports whether a path is a directory or below it; rel is the rest of the path.
func inside(p, dir string) (rel string, ok bool) {
	rel, err := filepath.Rel(dir, p)
	return rel, err == nil && filepath.IsLocal(rel)
}

// shared is where commands of a container work on files, wherever they begin.
const shared = "/workspace"

// Projects are the directories that commands of a session may change: the one that they run in, and in a container its
// workspace, which commands name from anywhere. ErrElsewhere when this machine sees none.
func (s Settings) Projects(env sandbox.Environment, session string) (all []Project, err error) {
	dir := startOf(env, session, s)
	p, err := s.Project(env, dir)
	if err == nil {
		all = append(all, p)
	}
	if m, ok := env.(mounted); ok && env.Backend() == "docker" {
		if _, in := inside(dir, shared); !in || err != nil {
			if w, err := hosted(m.Mounts(), shared); err == nil {
				all = append(all, w)
			}
		}
	}
	if len(all) == 0 {
		return nil, ErrElsewhere
	}
	return all, nil
}

// startOf is where a session's commands run in an environment.
func startOf(env sandbox.Environment, session string, s Settings) string {
	if dir, ok := env.Dir(session); ok || env.Backend() != "local" && env.Backend() != "auto" {
		return dir
	}
	return filepath.Clean(s.Config.WorkDir(s.Paths))
}

// hostFile is the name on this machine of a file that a tool names; it need not exist.
func hostFile(s Settings, env sandbox.Environment, file string) (string, error) {
	if env.Backend() == "local" {
		return file, nil
	}
	if !path.IsAbs(file) || strings.HasSuffix(file, "/") {
		return "", ErrElsewhere
	}
	p, err := s.Project(env, path.Dir(path.Clean(file)))
	if err != nil {
		return "", err
	}
	return filepath.Join(p.Host, path.Base(file)), nil
}
