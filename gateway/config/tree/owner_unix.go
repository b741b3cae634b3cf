//go:build unix

package tree

import (
	"fmt"
	"os"
	"syscall"
)

// Ownership describes mode and owner of a path, and who we are, for messages.
func Ownership(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Sprintf("%s is not accessible to user %d", path, os.Getuid())
	}
	owner := "unknown"
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = fmt.Sprint(st.Uid)
	}
	return fmt.Sprintf("%s has mode %04o and belongs to user %s, and Herald runs as user %d", path, info.Mode().Perm(), owner, os.Getuid())
}
