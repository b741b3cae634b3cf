package sandboxtest

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/tools/needtest"
	"herald/tools/sandbox/proc"
)

// Eventually polls with a deadline.
func Eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// FirstPID reads the process id in the first line of an output.
func FirstPID(t *testing.T, out string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(out, "\n", 2)[0]))
	require.NoError(t, err, out)
	return pid
}

// Alive reports whether a process of this machine runs; a zombie does not.
func Alive(pid int) bool {
	p, err := proc.Read(pid)
	return err == nil && !p.Zombie
}

// Gone waits until a process of this machine has ended, at most some seconds.
func Gone(t *testing.T, pid int) {
	t.Helper()
	Eventually(t, "the process ends", func() bool { return !Alive(pid) })
}

// NeedSetsid skips where there is no setsid(1).
func NeedSetsid(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		needtest.Lacking(t, "setsid is not installed")
	}
}
