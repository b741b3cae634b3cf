// Package mounts translates between the paths of a container and those of this machine, and refuses those that hold
// credentials. It knows the table of mounts alone: no engine, and no configuration.
package mounts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"herald/tools/sandbox"
)

// ErrNoHostPath is wrapped by errors about a path of a container that has no name on this machine.
var ErrNoHostPath = errors.New("the path has no name on this machine")

// ErrCredentials is wrapped by errors about a path that is never translated because it holds credentials.
var ErrCredentials = errors.New("the path holds credentials")

// maxLinks is how many symbolic links one path may go through, as the kernel has it.
const maxLinks = 40

// Mount is a directory of this machine that a container sees.
type Mount struct {
	// Container is the directory in the container, absolute.
	Container string
	// Host is the directory on this machine, absolute.
	Host string
	// ReadOnly: the container can't write there.
	ReadOnly bool
	// Cache marks a directory of Herald's own cache. Paths in it are translated whatever their name is; in all
	// others those that hold credentials are not.
	Cache bool
}

// Table says which directories of a container are which of this machine. The zero value has none. It is not changed
// after it was made, so it is safe for concurrent use.
type Table struct {
	home string
	list []Mount // longest container directory first, equal ones in the order they came in
}

// New makes the table. home is the home directory of the container's user, where most credentials are; empty
// takes /root. Of mounts with the same container directory the first one counts.
func New(home string, mounts ...Mount) (Table, error) {
	if home == "" {
		home = "/root"
	}
	m := Table{home: path.Clean(home)}
	for _, one := range mounts {
		if !path.IsAbs(one.Container) || !filepath.IsAbs(one.Host) {
			return Table{}, fmt.Errorf("mount of %q at %q: both must be absolute", one.Host, one.Container)
		}
		if strings.ContainsRune(one.Container+one.Host, 0) {
			return Table{}, fmt.Errorf("mount of %q at %q: a name holds a NUL", one.Host, one.Container)
		}
		one.Container, one.Host = path.Clean(one.Container), filepath.Clean(one.Host)
		m.list = append(m.list, one)
	}
	slices.SortStableFunc(m.list, func(a, b Mount) int { return len(b.Container) - len(a.Container) })
	return m, nil
}

// All returns the mounts, the longest container directory first.
func (m Table) All() []Mount { return slices.Clone(m.list) }

// HostPath returns the name that an absolute path of the container has on this machine: the mount with the longest
// container directory that is the path's own or above it decides. The path is cleaned first, so that "..", which the
// kernel would resolve after links, leads nowhere else than its text says. Credentials have no host path, and the file
// need not exist.
func (m Table) HostPath(p string) (host string, ok bool) {
	p, err := cleanPath(p)
	if err != nil {
		return "", false
	}
	at := m.at(p)
	if len(at) == 0 || m.credentials(at[0], p) {
		return "", false
	}
	return at[0].host(p), true
}

// ContainerPath is the way back: the name that a path of this machine has in the container. Of several the one with the
// longest host directory is taken.
func (m Table) ContainerPath(host string) (p string, ok bool) {
	if !filepath.IsAbs(host) {
		return "", false
	}
	host = filepath.Clean(host)
	longest := -1
	for _, one := range m.list {
		rel, inside := Below(host, one.Host)
		if inside && len(one.Host) > longest {
			p, ok, longest = path.Join(one.Container, filepath.ToSlash(rel)), true, len(one.Host)
		}
	}
	return p, ok
}

// Resolve returns the name on this machine of an existing path, with no symbolic link in it. Links mean what they mean
// in the container: one to /root/x leads through the mounts again and never to this machine's /root. Errors wrap
// ErrNoHostPath, ErrCredentials, and fs.ErrNotExist where the file is not there.
//
// Who writes in the container may exchange the path at once; read it with Open.
func (m Table) Resolve(p string) (host string, err error) {
	one, rel, err := m.resolve(p)
	if err != nil {
		return "", err
	}
	return filepath.Join(one.Host, rel), nil
}

// Open opens a regular file for reading as Resolve finds it. Whatever the container exchanges meanwhile, the file is
// one below the mount's directory.
func (m Table) Open(p string) (*os.File, error) {
	one, rel, err := m.resolve(p)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(one.Host)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(filepath.Join(".", rel), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: p, Err: sandbox.ErrNotRegular}
	}
	return f, nil
}

// resolve follows the links of a path, each by its meaning in the container.
func (m Table) resolve(p string) (one Mount, rel string, err error) {
	if p, err = cleanPath(p); err != nil {
		return one, "", err
	}
	refuse := func(why error) (Mount, string, error) {
		return Mount{}, "", &fs.PathError{Op: "translate", Path: p, Err: why}
	}
	at, todo, links := "/", split(p), 0
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		if name == ".." {
			at = path.Dir(at)
			continue
		}
		target, link, err := m.link(path.Join(at, name))
		switch {
		case err != nil:
			return refuse(err)
		case !link:
			at = path.Join(at, name)
			continue
		}
		if links++; links > maxLinks {
			return refuse(syscall.ELOOP)
		}
		if path.IsAbs(target) {
			at = "/"
		}
		todo = append(split(target), todo...)
	}
	one, err = m.existing(at)
	if err != nil {
		return refuse(err)
	}
	if m.credentials(one, p) || m.credentials(one, at) {
		return refuse(ErrCredentials)
	}
	rel, _ = Below(one.host(at), one.Host)
	return one, rel, nil
}

// link reads a path of the container whose directory has no link in it. Of a path above all mounts nothing is known; it
// is taken for a directory.
func (m Table) link(p string) (target string, is bool, err error) {
	one, err := m.existing(p)
	switch {
	case errors.Is(err, ErrNoHostPath):
		return "", false, nil
	case err != nil:
		return "", false, err
	case p == one.Container:
		return "", false, nil // the engine has resolved it
	}
	host := one.host(p)
	st, err := os.Lstat(host)
	if err != nil || st.Mode()&fs.ModeSymlink == 0 {
		return "", false, err
	}
	target, err = os.Readlink(host)
	return target, err == nil, err
}

// existing returns the first mount of those at a path where the path is there.
func (m Table) existing(p string) (Mount, error) {
	err := ErrNoHostPath
	for _, one := range m.at(p) {
		if _, err = os.Lstat(one.host(p)); err == nil {
			return one, nil
		}
	}
	return Mount{}, err
}

// at returns the mounts that hold a clean path: those with the longest container directory, in their order. What a
// deeper mount hides is not looked at.
func (m Table) at(p string) []Mount {
	var found []Mount
	for _, one := range m.list {
		if len(found) > 0 && len(one.Container) < len(found[0].Container) {
			break
		}
		if _, inside := Below(p, one.Container); inside {
			found = append(found, one)
		}
	}
	return found
}

// host is the name on this machine of a path in the mount.
func (m Mount) host(p string) string {
	rel, _ := Below(p, m.Container)
	return filepath.Join(m.Host, filepath.FromSlash(rel))
}

// Below returns the way from dir to p, "" when they are the same.
func Below(p, dir string) (rel string, ok bool) {
	if p == dir {
		return "", true
	}
	return strings.CutPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

func split(p string) []string {
	return strings.FieldsFunc(p, func(r rune) bool { return r == '/' })
}

// cleanPath refuses what is no absolute path, and resolves "." and "..".
func cleanPath(p string) (string, error) {
	if !path.IsAbs(p) || strings.ContainsRune(p, 0) {
		return "", &fs.PathError{Op: "translate", Path: p, Err: fmt.Errorf("%w: it is not absolute", ErrNoHostPath)}
	}
	return path.Clean(p), nil
}

// ParseVolume reads one entry of terminal.docker_volumes: "host:container[:options]", divided at the first ":/". bind is
// false for a named volume of the engine, which has no directory here.
func ParseVolume(text string) (m Mount, bind bool, err error) {
	host, rest, ok := strings.Cut(text, ":/")
	if !ok || host == "" {
		return Mount{}, false, fmt.Errorf("volume %q: want host:container with absolute paths, such as /srv/data:/data:ro", text)
	}
	container, options, _ := strings.Cut("/"+rest, ":")
	if path.Clean(container) == "/" {
		return Mount{}, false, fmt.Errorf("volume %q: the container's root can't be a volume", text)
	}
	m = Mount{Container: path.Clean(container), Host: host, ReadOnly: slices.Contains(strings.Split(options, ","), "ro")}
	if !filepath.IsAbs(host) {
		if strings.ContainsAny(host, "/\\~") {
			return Mount{}, false, fmt.Errorf("volume %q: the directory of this machine must be absolute", text)
		}
		return m, false, nil
	}
	m.Host = filepath.Clean(host)
	return m, true, nil
}
