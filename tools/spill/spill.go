// Package spill writes files into places that others can reach: caches, spill folders, /tmp. It promises
// that a planted symbolic link never redirects a write, that private files and folders are the owner's
// alone, and that a failed write leaves no half file behind.
//
// It knows nothing of tools, results or sessions: it takes paths and bytes.
package spill

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Modes of what this package makes. Shared ones are narrowed by the process's umask.
const (
	PrivateDir  fs.FileMode = 0o700
	SharedDir   fs.FileMode = 0o777
	PrivateFile fs.FileMode = 0o600
	SharedFile  fs.FileMode = 0o666
)

// The refusals of this package; every error wraps one of them or comes from the operating system.
var (
	// ErrNotDir: the place of a folder is taken by something else, a symbolic link included.
	ErrNotDir = errors.New("not a real directory")
	// ErrNotOwned: a folder in a shared place belongs to another user.
	ErrNotOwned = errors.New("owned by another user")
	// ErrIsDir: the place of a file is taken by a folder.
	ErrIsDir = errors.New("is a directory")
)

// EnsureDir makes path and its missing parents and checks that path itself is a real directory, not a
// symbolic link. With private set, what it makes has mode 0700 and an existing directory is tightened to
// it; else the umask decides. Links among the parents are followed: they are the operator's choice.
func EnsureDir(path string, private bool) error {
	mode := SharedDir
	if private {
		mode = PrivateDir
	}
	if err := os.MkdirAll(path, mode); err != nil {
		// MkdirAll also fails on a dangling link and on a file; say which.
		if info, lerr := os.Lstat(path); lerr == nil && !info.IsDir() {
			return fmt.Errorf("make directory %s: %w (it is a %s)", path, ErrNotDir, kind(info.Mode()))
		}
		return fmt.Errorf("make directory %s: %w", path, err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("check directory %s: %w", path, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("check directory %s: %w (it is a %s)", path, ErrNotDir, kind(info.Mode()))
	}
	if private && info.Mode().Perm() != PrivateDir {
		if err := os.Chmod(path, PrivateDir); err != nil {
			return fmt.Errorf("make directory %s private: %w", path, err)
		}
	}
	return nil
}

// EnsureOwnedPrivateDir is EnsureDir for a place that all users of the machine can write to, such as /tmp:
// the directory must also belong to this user. Only the last element of path is made.
func EnsureOwnedPrivateDir(path string) error {
	if err := os.Mkdir(path, PrivateDir); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make directory %s: %w", path, err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("check directory %s: %w", path, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("check directory %s: %w (it is a %s)", path, ErrNotDir, kind(info.Mode()))
	}
	if !owned(info) {
		return fmt.Errorf("check directory %s: %w", path, ErrNotOwned)
	}
	if info.Mode().Perm() != PrivateDir {
		if err := os.Chmod(path, PrivateDir); err != nil {
			return fmt.Errorf("make directory %s private: %w", path, err)
		}
	}
	return nil
}

// OpenExclusive creates path for writing and never opens what is there. With overwrite set, an existing
// file or link is unlinked first (the link itself, never its target) and a directory is refused with
// ErrIsDir; without it an existing path is fs.ErrExist. Private files have mode 0600 whatever the umask.
func OpenExclusive(path string, private, overwrite bool) (*os.File, error) {
	if overwrite {
		info, err := os.Lstat(path)
		switch {
		case err == nil && info.IsDir():
			return nil, fmt.Errorf("replace %s: %w", path, ErrIsDir)
		case err == nil:
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("replace %s: %w", path, err)
			}
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("replace %s: %w", path, err)
		}
	}
	mode := SharedFile
	if private {
		mode = PrivateFile
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|noFollow, mode)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	return f, nil
}

// WriteExclusive writes a whole file by OpenExclusive. When the write or the close fails it removes what it made.
func WriteExclusive(path string, data []byte, private, overwrite bool) error {
	f, err := OpenExclusive(path, private, overwrite)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(path)
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// SecureParentDir narrows the directory of a credential file to its owner (0700) and reports whether it
// did. It is for files that hold secrets, written to a place that the user chose, and refuses three kinds
// of directory, whose mode is not ours to change:
//
//  1. "/", which would lock everyone out of the machine;
//  2. a top-level directory ("/etc", "/tmp", "/home"), which others live in;
//  3. installDir and everything below it, the tree Herald itself was installed to, which a service
//     account may have to read. Empty installDir means that there is none.
//
// Links are resolved first, so a link to "/" is "/". A directory that can't be resolved or changed is left
// as it is: the file's own 0600 still protects it. Callers that want to tell the operator use the reason,
// empty when the directory is private now.
func SecureParentDir(path, installDir string) (reason string) {
	dir, err := resolved(filepath.Dir(path))
	if err != nil {
		return fmt.Sprintf("%s can't be resolved: %v", filepath.Dir(path), err)
	}
	parts := components(dir)
	switch {
	case len(parts) == 0:
		return dir + " is the root directory"
	case len(parts) == 1:
		return dir + " is a top-level directory"
	}
	if installDir != "" {
		if root, err := resolved(installDir); err == nil && within(dir, root) {
			return dir + " belongs to the installation in " + root
		}
	}
	if err := os.Chmod(dir, PrivateDir); err != nil {
		return err.Error()
	}
	return ""
}

// resolved returns the absolute path with links followed.
func resolved(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// within reports whether path is root or below it; both are absolute and clean.
func within(path, root string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

// components splits an absolute path behind its volume name; "/" has none.
func components(path string) []string {
	path = path[len(filepath.VolumeName(path)):]
	return strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator })
}

// kind names a file type for people.
func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m.IsRegular():
		return "file"
	case m.IsDir():
		return "directory"
	}
	return "special file"
}
