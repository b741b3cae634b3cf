package docker

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"

	"herald/tools/sandbox/mounts"
)

// spec is a container as the engine is asked for it.
type spec struct {
	config *container.Config
	host   *container.HostConfig
}

// limits are what an engine can enforce.
type limits struct{ resources, disk bool }

// build makes the container's description: security, user, writable mounts, resources, volumes, and the operator's own
// options last. entrypoint is the image's.
func (o Options) build(can limits, entrypoint []string) (spec, error) {
	s6 := slices.Equal(entrypoint, []string{"/init"})
	init := !s6 && !o.Snap
	s := spec{
		config: &container.Config{Image: o.Image, WorkingDir: o.cwd(), Labels: o.labels(), Entrypoint: []string{"sleep"}, Cmd: []string{"infinity"}},
		host:   &container.HostConfig{Tmpfs: map[string]string{}, Sysctls: map[string]string{}, Init: &init, NetworkMode: "default"},
	}
	if s6 {
		s.config.Entrypoint, s.config.Cmd = nil, []string{"sleep", "infinity"}
	}
	o.harden(s, s6)
	if err := o.mountAll(s.host); err != nil {
		return spec{}, err
	}
	o.limit(s, can)
	if o.NoNetwork {
		s.host.NetworkMode = "none"
	}
	changes, err := parseExtra(o.Extra, o.NoNetwork)
	if err != nil {
		return spec{}, err
	}
	for _, change := range changes {
		change(s.config, s.host)
	}
	return s, nil
}

// harden takes away what commands don't need.
func (o Options) harden(s spec, s6 bool) {
	s.host.CapDrop = []string{"ALL"}
	s.host.CapAdd = []string{"DAC_OVERRIDE", "CHOWN", "FOWNER"}
	if o.HostUser {
		s.config.User = fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
		s.config.Env = []string{"HOME=/root"} // the image does not know the user
	} else {
		s.host.CapAdd = append(s.host.CapAdd, "SETUID", "SETGID") // for package managers, which drop root
	}
	if !o.Snap {
		s.host.SecurityOpt = []string{"no-new-privileges"}
	}
	run := "rw,noexec,nosuid,size=64m"
	if s6 {
		run = "rw,exec,nosuid,size=64m" // it copies its programs there
	}
	s.host.Tmpfs["/tmp"] = "rw,exec,nosuid,size=512m"
	s.host.Tmpfs["/var/tmp"] = "rw,noexec,nosuid,size=256m"
	s.host.Tmpfs["/run"] = run
}

// limit sets the limits that hold here.
func (o Options) limit(s spec, can limits) {
	if can.resources {
		o.limitResources(&s.host.Resources)
	}
	if can.disk && o.DiskMB > 0 {
		s.host.StorageOpt = map[string]string{"size": fmt.Sprintf("%dm", o.DiskMB)}
	}
	s.host.ShmSize, _ = shmSize(o.Shm) // checked
}

func (o Options) limitResources(r *container.Resources) {
	pids := int64(maxPids)
	r.NanoCPUs, r.Memory, r.PidsLimit = int64(o.CPU*1e9), o.MemoryMB<<20, &pids
}

// mountAll mounts home and workspace, the operator's volumes, and the read-only files.
func (o Options) mountAll(h *container.HostConfig) error {
	taken := map[string]bool{}
	for _, v := range o.Volumes {
		m, _, err := mounts.ParseVolume(v)
		if err != nil {
			return fmt.Errorf("terminal.docker_volumes: %w", err)
		}
		taken[m.Container] = true
		h.Binds = append(h.Binds, v)
	}
	own := o.writable()
	if len(own) == 0 {
		for dir, size := range map[string]string{workspaceDir: "10g", "/home": "1g", "/root": "1g"} {
			if !taken[dir] && (dir != workspaceDir || o.HostCwd == "") {
				h.Tmpfs[dir] = "rw,exec,size=" + size
			}
		}
	}
	for _, m := range own {
		if taken[m.Container] {
			continue
		}
		if err := isKind(m.Host, true); err != nil {
			return fmt.Errorf("the directory for %s can't be mounted: %w", m.Container, err)
		}
		h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeBind, Source: m.Host, Target: m.Container})
		taken[m.Container] = true
	}
	for _, f := range o.Files {
		if err := isKind(f.Host, f.Dir); err != nil {
			o.Log.Warn().Err(err).Str("container_path", f.Container).Msg("sandbox: a read-only mount is skipped")
			continue
		}
		if path.IsAbs(f.Container) && !taken[f.Container] {
			h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeBind, Source: f.Host, Target: f.Container, ReadOnly: true})
			taken[f.Container] = true
		}
	}
	return nil
}

// writable are the directories of this machine that commands work in: a persistent container's own, and the mounted
// working directory.
func (o Options) writable() []mounts.Mount { return o.writableIn(o.filesDir()) }

// writableIn is writable with a container's own directories below dir.
func (o Options) writableIn(dir string) []mounts.Mount {
	var out []mounts.Mount
	if o.HostCwd != "" {
		out = append(out, mounts.Mount{Container: workspaceDir, Host: o.HostCwd})
	}
	if o.Request.Persistent {
		out = append(out, mounts.Mount{Container: "/root", Host: filepath.Join(dir, "home")})
		if o.HostCwd == "" {
			out = append(out, mounts.Mount{Container: workspaceDir, Host: filepath.Join(dir, "workspace")})
		}
	}
	return out
}

// makeDirs makes a persistent container's own directories, for this user alone.
func (o Options) makeDirs() error {
	for _, m := range o.writable() {
		if m.Host == o.HostCwd {
			continue
		}
		if err := os.MkdirAll(m.Host, 0o700); err != nil {
			return fmt.Errorf("sandbox directory: %w", err)
		}
	}
	return nil
}

// unmakeDirs takes back the directories of a container that never came to be. What holds a file stays.
func (o Options) unmakeDirs() {
	for _, name := range []string{"home", "workspace", lockName, ""} {
		_ = os.Remove(filepath.Join(o.filesDir(), name))
	}
}

// planned are the mounts that a container made from these options has.
func (o Options) planned() (mounts.Table, error) { return o.laidOut(o.filesDir()) }

// laidOut is planned with a container's own directories below dir.
func (o Options) laidOut(dir string) (mounts.Table, error) {
	var table []mounts.Mount
	for _, v := range o.Volumes {
		if m, bind, err := mounts.ParseVolume(v); err == nil && bind {
			table = append(table, m)
		}
	}
	table = append(table, o.writableIn(dir)...)
	for _, f := range o.Files {
		table = append(table, mounts.Mount{Container: f.Container, Host: f.Host, ReadOnly: true, Cache: f.Cache})
	}
	return mounts.New("/root", table...)
}

// found are the mounts that a container has: who made it decides, not these options.
func (o Options) found(points []container.MountPoint) (mounts.Table, error) {
	var table []mounts.Mount
	for _, p := range points {
		if p.Type == mount.TypeBind {
			cache := slices.ContainsFunc(o.Files, func(f ReadOnlyFile) bool { return f.Cache && f.Container == p.Destination && f.Host == p.Source })
			table = append(table, mounts.Mount{Container: p.Destination, Host: p.Source, ReadOnly: !p.RW, Cache: cache})
		}
	}
	return mounts.New("/root", table...)
}

// isKind returns nil for a directory, or for a regular file, as wanted.
func isKind(p string, dir bool) error {
	st, err := os.Stat(p)
	switch {
	case err != nil:
		return err
	case dir && !st.IsDir():
		return fmt.Errorf("%s is no directory", p)
	case !dir && !st.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file", p)
	}
	return nil
}
