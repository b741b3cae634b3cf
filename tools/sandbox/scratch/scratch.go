// Package scratch makes the directories of a running daemon that only its user may enter, and removes those of daemons that
// were killed.
package scratch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// privatePrefix begins the names of private directories, before the process id of their daemon.
const privatePrefix = "herald-shell-"

// leftoverAge is how old a private directory must be before it is taken for a dead daemon's.
const leftoverAge = time.Hour

// Make makes a directory in base that only the user may enter; an empty base is the system's directory for
// temporary files.
func Make(base string) (string, error) {
	return os.MkdirTemp(base, fmt.Sprintf("%s%d-", privatePrefix, os.Getpid())) // 0700
}

// Sweep removes the private directories of daemons that were killed.
func Sweep(now time.Time) {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), privatePrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		name, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), privatePrefix), "-")
		pid, err := strconv.Atoi(name)
		if err != nil || pid <= 1 || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		if st, err := os.Lstat(dir); err == nil && st.IsDir() && now.Sub(st.ModTime()) > leftoverAge {
			_ = os.RemoveAll(dir) // others' directories refuse
		}
	}
}
