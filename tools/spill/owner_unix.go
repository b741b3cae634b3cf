//go:build unix

package spill

import (
	"io/fs"
	"os"
	"syscall"
)

// noFollow makes an open fail on a link that appears between the check and the open.
const noFollow = syscall.O_NOFOLLOW

// owned reports whether the file belongs to this process's effective user.
func owned(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
