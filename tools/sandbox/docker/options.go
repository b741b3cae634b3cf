package docker

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/rs/zerolog"

	"herald/tools/sandbox/mounts"
)

const (
	// workspaceDir is where the workspace is mounted, and where sessions start.
	workspaceDir = "/workspace"
	// maxPids is how many processes a container may have.
	maxPids = 256
)

// Options configure an environment in a container. Key, Image and, where Persistent, Dir are needed; everything else
// has a zero value that works, but mind that a zero CPU, MemoryMB or DiskMB means no limit.
type Options struct {
	// Engine is the engine's address; empty looks for one (see findEngine).
	Engine string
	// Request says whose container it is; the key comes from it.
	Request Request
	// KeepRunning leaves a persistent container running at Close, for the next process to take up.
	KeepRunning bool
	// JobGrace and JobLog are as in local.Options. Background commands live as long as their container.
	JobGrace time.Duration
	JobLog   int64
	// KeepOrphans leaves containers that ended long ago (see Environment.Reap).
	KeepOrphans bool
	// Dir is the sandbox directory, absolute: the files of all persistent containers are below it.
	Dir string

	// Image is the image's name. Dockerfile, when it is not empty, is what the image is built from where the engine
	// does not have it; without it the image is pulled.
	Image      string
	Dockerfile []byte
	// Cwd is where sessions start; a relative path and one of this machine (see ContainerCwd) are ignored.
	Cwd string
	// HostCwd, absolute, is mounted at /workspace in place of the container's own workspace; sessions start there.
	HostCwd string

	// Volumes are "host:container[:options]", as the engine has them; the host may be a named volume.
	Volumes []string
	// Files are mounted read-only. Those that are missing or of the wrong kind are skipped with a warning.
	Files []ReadOnlyFile
	// Env reaches every command. Forward names variables of Lookup that reach every command, with the value they have
	// then. Neither is in the container's configuration or in an argument list.
	Env     map[string]string
	Forward []string
	Lookup  func(name string) (value string, ok bool)
	// Extra are further options, of those that ExtraFlags lists.
	Extra []string

	// NoNetwork cuts the container off.
	NoNetwork bool
	// HostUser runs commands as the daemon's user instead of the image's.
	HostUser bool
	// Shm is the size of /dev/shm such as "1g"; "" and "0" leave it to the engine.
	Shm string
	// CPU is a number of cores; MemoryMB and DiskMB are megabytes. 0 is no limit. They hold where the engine can.
	CPU      float64
	MemoryMB int64
	DiskMB   int64
	// Snap leaves out what an engine from a snap package can't do.
	Snap bool

	// SpillDir and Window are as in local.Options; Passthrough and Deny do not matter, since the daemon's variables never
	// get into a container.
	SpillDir string
	Window   int
	Now      func() time.Time
	Log      zerolog.Logger
	// Progress receives a line now and then while an image is pulled or built; nil drops it.
	Progress func(line string)
}

// ReadOnlyFile is a file or directory of this machine that the container sees.
type ReadOnlyFile struct {
	Host, Container string // absolute
	Dir             bool   // it must be a directory; else it must be a regular file
	// Cache marks a directory of Herald's cache: paths in it are translated whatever their name is.
	Cache bool
}

// hostPath begins paths that can only mean this machine.
var hostPath = regexp.MustCompile(`^(/Users/|/home/|[A-Za-z]:[\\/])`)

// ContainerCwd returns where sessions of a container start: the configured directory where it can be one of the
// container, else /workspace; /root is a home directory, of which no checkpoint is taken. Relative paths, and those that
// can only be of a user's machine (below /Users or /home, or with a drive letter), are ignored.
func ContainerCwd(configured string) string {
	if !path.IsAbs(configured) || hostPath.MatchString(configured) {
		return workspaceDir
	}
	return path.Clean(configured)
}

// cwd is where sessions start.
func (o Options) cwd() string {
	if o.HostCwd != "" {
		return workspaceDir
	}
	return ContainerCwd(o.Cwd)
}

// check finds what can't work before an engine is asked.
func (o Options) check() error {
	var errs []error
	if o.Image == "" {
		errs = append(errs, errors.New("no image is named; set terminal.docker_image"))
	}
	if o.Request.Persistent && !filepath.IsAbs(o.Dir) {
		errs = append(errs, fmt.Errorf("sandbox directory %q is not absolute; set terminal.sandbox_dir", o.Dir))
	}
	if o.HostCwd != "" && !filepath.IsAbs(o.HostCwd) {
		errs = append(errs, fmt.Errorf("the directory to mount, %q, is not absolute; set terminal.cwd to an absolute path, or terminal.docker_mount_cwd_to_workspace to false", o.HostCwd))
	}
	if _, err := shmSize(o.Shm); err != nil {
		errs = append(errs, err)
	}
	for _, v := range o.Volumes {
		if _, _, err := mounts.ParseVolume(v); err != nil {
			errs = append(errs, fmt.Errorf("terminal.docker_volumes: %w", err))
		}
	}
	if o.CPU < 0 || o.MemoryMB < 0 || o.DiskMB < 0 {
		errs = append(errs, errors.New("terminal.container_cpu, container_memory and container_disk can't be negative"))
	}
	for name := range o.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			errs = append(errs, fmt.Errorf("terminal.docker_env: %q can't be the name of a variable", name))
		}
	}
	if _, err := parseExtra(o.Extra, o.NoNetwork); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// key is whose container it is.
func (o Options) key() string { return containerKey(o.Request) }

// labels are what the container is found again by.
func (o Options) labels() map[string]string {
	shared := o.Request.Shared
	if !o.Request.Persistent {
		shared = ""
	}
	l := map[string]string{labelAgent: "1", labelTask: labelText(o.key()), labelIdentity: identity(o.Request.Profile, shared),
		labelEgress: "open", labelLifetime: "throwaway", labelHome: digest(o.Dir)}
	if o.NoNetwork {
		l[labelEgress] = "none"
	}
	if o.Request.Persistent {
		l[labelLifetime] = "durable"
	}
	return l
}

// commandEnv is what every command of the container sees.
func (o Options) commandEnv() map[string]string {
	env := make(map[string]string, len(o.Env)+len(o.Forward))
	for name, value := range o.Env {
		env[name] = value
	}
	for _, name := range o.Forward {
		if o.Lookup == nil {
			break
		}
		if value, ok := o.Lookup(name); ok {
			env[name] = value
		}
	}
	return env
}

// shmSize reads the size of /dev/shm; 0 leaves it to the engine.
func shmSize(text string) (int64, error) {
	if text == "" || text == "0" {
		return 0, nil
	}
	n, err := units.RAMInBytes(text)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("terminal.docker_shm_size %q: want a size such as 1g or 512m, or 0 for the engine's own", text)
	}
	return n, nil
}

// filesDir is where a persistent container's files are on this machine.
func (o Options) filesDir() string { return filepath.Join(o.Dir, "docker", KeyDir(o.key())) }
