//go:build failpoint

package crash

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// binary is the daemon under test, with failpoints and the race detector.
var binary string

// envBinary names a daemon that is built already: for repeated runs by hand.
const envBinary = "HERALD_CRASH_BINARY"

// atATime is how many worlds live at the same time: most of their time is spent waiting, so more than there
// are processors. -parallel asks for another number.
const atATime = "4"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", atATime); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if binary = os.Getenv(envBinary); binary == "" {
		dir, err := os.MkdirTemp("", "herald-crash-*")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "herald")
		build := exec.Command("go", "build", "-race", "-tags", "sqlite_fts5 failpoint", "-o", binary, "herald/cmd/herald")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "the daemon can't be built:", err)
			return 1
		}
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}
