//go:build unix

package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// stamp is how a path looks without reading it. Two equal stamps are taken for the same content: the change time
// moves with every write and can't be set back.
type stamp struct {
	Size  int64  `json:"s,omitempty"`
	MTime int64  `json:"m,omitempty"` // nanoseconds
	CTime int64  `json:"c,omitempty"`
	Ino   uint64 `json:"i,omitempty"`
	Mode  uint32 `json:"p,omitempty"`
	UID   uint32 `json:"u,omitempty"`
	GID   uint32 `json:"g,omitempty"`
}

// stampOf returns the zero stamp for what is not there.
func stampOf(path string) stamp { return stampAt(unix.AT_FDCWD, path) }

// stampAt is stampOf of a name in an open directory.
func stampAt(dir int, name string) stamp {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return stamp{}
	}
	return stamp{Size: st.Size, MTime: st.Mtim.Nano(), CTime: st.Ctim.Nano(), Ino: st.Ino, Mode: uint32(st.Mode), UID: st.Uid, GID: st.Gid}
}

// identity is what tells a directory from another one at the same place.
func identity(dir string) (dev, ino uint64, ok bool) {
	var st syscall.Stat_t
	if syscall.Lstat(dir, &st) != nil {
		return 0, 0, false
	}
	return uint64(st.Dev), st.Ino, true
}

// openRegular opens a file for reading and follows no link; a pipe that took its place does not block.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNoContent}
	}
	return f, nil
}

func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
