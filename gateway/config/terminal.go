package config

import (
	"strings"
	"time"
)

// Terminal is where and how commands run. The variables of its keys are also known without Herald's prefix, as TERMINAL_
// and the key.
type Terminal struct {
	Backend        string        `yaml:"backend" default:"auto" oneof:"auto,local,docker,ssh" env:"TERMINAL_ENV" doc:"where commands run: local: on this machine; docker: in a container; ssh: on another host; auto: in a container where a container engine answers at the first command, else on this machine"`
	Cwd            string        `yaml:"cwd" default:"workspace" check:"text" env:"TERMINAL_CWD" doc:"working directory; a relative one is below the home; a container takes only an absolute one of its own, and else begins in /workspace; ssh likewise, and else begins in the home directory there"`
	Timeout        time.Duration `yaml:"timeout" default:"180s" min:"1s" max:"24h" env:"TERMINAL_TIMEOUT" doc:"time limit of a foreground command that names none; one may ask for this or 10m, whichever is longer"`
	Lifetime       time.Duration `yaml:"lifetime_seconds" default:"300s" min:"10s" max:"168h" env:"TERMINAL_LIFETIME_SECONDS" doc:"how long a throwaway container is kept after its last command"`
	EnvPassthrough []string      `yaml:"env_passthrough" check:"envname" env:"TERMINAL_ENV_PASSTHROUGH" doc:"names of variables that commands may see although they look like secrets"`
	HomeMode       string        `yaml:"home_mode" default:"auto" oneof:"auto,real,profile" doc:"which HOME commands on this machine see: the real one, one of their own below the profile, or auto: the real one in the default profile and an own one in the others"`
	Shell          string        `yaml:"shell" check:"text" doc:"the shell on this machine, by name or path: one that speaks as sh does; unset: bash where it is installed, else sh"`
	InitFiles      []string      `yaml:"shell_init_files" check:"text" env:"TERMINAL_SHELL_INIT_FILES" doc:"files that the login shell reads before its variables and functions are taken over, with absolute paths"`
	Bashrc         bool          `yaml:"auto_source_bashrc" default:"true" env:"TERMINAL_AUTO_SOURCE_BASHRC" doc:"on this machine the login shell also reads ~/.bashrc"`
	DegradedMode   string        `yaml:"degraded_mode" default:"warn" oneof:"warn,fail" env:"TERMINAL_DEGRADED_MODE" doc:"what the agent gets when the place for commands can't be reached: warn: a result that says so and how to go on; fail: an error"`
	SandboxDir     string        `yaml:"sandbox_dir" check:"abspath" env:"TERMINAL_SANDBOX_DIR" doc:"directory of the files of persistent containers; unset: sandboxes in the main home"`

	SSHHost       string `yaml:"ssh_host" check:"text" env:"TERMINAL_SSH_HOST" doc:"the host for backend ssh: a name, an address, or an alias of the SSH client's configuration"`
	SSHUser       string `yaml:"ssh_user" check:"text" env:"TERMINAL_SSH_USER" doc:"the user there; unset: what the SSH client's configuration says"`
	SSHPort       int    `yaml:"ssh_port" default:"0" min:"0" max:"65535" env:"TERMINAL_SSH_PORT" doc:"the port there; 0: what the SSH client's configuration says, else 22"`
	SSHKey        string `yaml:"ssh_key" check:"abspath" env:"TERMINAL_SSH_KEY" doc:"the file of the private key; unset: what the SSH client finds itself"`
	SSHKnownHosts string `yaml:"ssh_known_hosts" check:"abspath" env:"TERMINAL_SSH_KNOWN_HOSTS" doc:"the file with the keys of hosts; a new host is added, one with another key than before is refused; unset: known_hosts in the home"`

	ContainerCPU        float64 `yaml:"container_cpu" default:"1" min:"0" max:"1024" env:"TERMINAL_CONTAINER_CPU" doc:"processor cores of a container; 0: no limit"`
	ContainerMemoryMB   int     `yaml:"container_memory" default:"5120" min:"0" max:"10000000" env:"TERMINAL_CONTAINER_MEMORY" doc:"megabytes of memory of a container; 0: no limit"`
	ContainerDiskMB     int     `yaml:"container_disk" default:"51200" min:"0" max:"100000000" env:"TERMINAL_CONTAINER_DISK" doc:"megabytes of disk of a container, where its engine can limit that; 0: no limit"`
	ContainerPersistent bool    `yaml:"container_persistent" default:"true" env:"TERMINAL_CONTAINER_PERSISTENT" doc:"one lasting container for the profile, whose /root and /workspace are kept on this machine; false: a throwaway one for each conversation"`

	DockerHost      string            `yaml:"docker_host" check:"text" env:"TERMINAL_DOCKER_HOST" doc:"address of the container engine, such as unix:///run/podman/podman.sock; unset: DOCKER_HOST, the Docker client's context, or the socket of Docker or Podman"`
	DockerImage     string            `yaml:"docker_image" check:"text" env:"TERMINAL_DOCKER_IMAGE" doc:"image of the container; one that is not there is pulled; unset: Herald's own, which is built at the first use"`
	DockerVolumes   []string          `yaml:"docker_volumes" check:"text" env:"TERMINAL_DOCKER_VOLUMES" doc:"more mounts, as host:container or host:container:ro; what is mounted for writing can be changed by the agent"`
	DockerEnv       map[string]string `yaml:"docker_env" env:"TERMINAL_DOCKER_ENV" doc:"variables of every command in the container; for secrets take docker_forward_env"`
	DockerForward   []string          `yaml:"docker_forward_env" check:"envname" env:"TERMINAL_DOCKER_FORWARD_ENV" doc:"names of variables of the daemon that commands in the container see, also secrets"`
	DockerExtra     []string          `yaml:"docker_extra_args" check:"text" env:"TERMINAL_DOCKER_EXTRA_ARGS" doc:"further options as docker run has them, of those that docs/sandbox.md lists"`
	DockerNetwork   bool              `yaml:"docker_network" default:"true" env:"TERMINAL_DOCKER_NETWORK" doc:"the container has a network; false: it is cut off"`
	DockerHostUser  bool              `yaml:"docker_run_as_host_user" default:"false" env:"TERMINAL_DOCKER_RUN_AS_HOST_USER" doc:"commands in the container run as the user of the daemon, so that files on this machine belong to them"`
	DockerMountCwd  bool              `yaml:"docker_mount_cwd_to_workspace" default:"false" env:"TERMINAL_DOCKER_MOUNT_CWD_TO_WORKSPACE" doc:"terminal.cwd of this machine is the container's /workspace, and commands begin there"`
	DockerShm       string            `yaml:"docker_shm_size" default:"1g" check:"text" env:"TERMINAL_DOCKER_SHM_SIZE" doc:"size of the container's /dev/shm; 0: the engine's own"`
	DockerKeep      bool              `yaml:"docker_persist_across_processes" default:"true" env:"TERMINAL_DOCKER_PERSIST_ACROSS_PROCESSES" doc:"a persistent container runs on when the daemon stops; false: it is removed then, its files stay"`
	DockerReaper    bool              `yaml:"docker_orphan_reaper" default:"true" env:"TERMINAL_DOCKER_ORPHAN_REAPER" doc:"remove containers of this profile that ended more than ten minutes ago"`
	DockerSharedKey string            `yaml:"docker_shared_container_key" check:"text" env:"TERMINAL_DOCKER_SHARED_CONTAINER_KEY" doc:"profiles with the same key share one container; what its image and mounts are is decided by the one that makes it"`
	DockerSnap      bool              `yaml:"docker_snap_compat" default:"false" env:"TERMINAL_DOCKER_SNAP_COMPAT" doc:"leave out what Docker from a snap package can't do: no-new-privileges and the init process"`
}

// validateTerminal checks what backend ssh needs.
func (c *Config) validateTerminal(r *Report) {
	if c.Terminal.Backend == "ssh" && c.Terminal.SSHHost == "" {
		r.Errorf("terminal.ssh_host", r.Origin("terminal.backend"),
			"is missing: terminal.backend is ssh; set it to the host's name, or choose another backend")
	}
}

// containerOnly begin the keys that only containers have.
var containerOnly = [...]string{"terminal.container_", "terminal.docker_"}

// spareOthers makes warnings of what is wrong with keys of containers when commands never run in one: such a value must
// not keep the daemon from starting.
func (c *Config) spareOthers(r *Report) {
	if b := c.Terminal.Backend; b != "local" && b != "ssh" {
		return
	}
	var errors []Problem
	for _, p := range r.Errors {
		spare := false
		for _, prefix := range containerOnly {
			spare = spare || strings.HasPrefix(p.Key, prefix)
		}
		if spare {
			p.Text += "; it is not used, because terminal.backend is " + c.Terminal.Backend
			r.Warnings = append(r.Warnings, p)
			continue
		}
		errors = append(errors, p)
	}
	r.Errors = errors
}
