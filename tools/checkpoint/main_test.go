package checkpoint

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// childDir, when set, makes the test binary a process to be killed: it takes a checkpoint of <dir>/project and goes
// back to the oldest one.
const (
	childDir    = "HERALD_CHECKPOINT_CHILD"
	childMoment = "HERALD_CHECKPOINT_MOMENT" // the number of the moment in which it dies; 0: it counts them
)

func TestMain(m *testing.M) {
	if base := os.Getenv(childDir); base != "" {
		at, _ := strconv.Atoi(os.Getenv(childMoment))
		count := 0
		moment := func() {
			if count++; count == at {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}
		if err := child(base, moment); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("moments", count)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func child(base string, moment func()) error {
	ctx, dir := context.Background(), filepath.Join(base, "project")
	s := Open(Options{Dir: filepath.Join(base, "checkpoints"), Enabled: true, Moment: moment, Home: filepath.Join(base, "home")})
	if _, err := s.Take(ctx, dir, "child", "before the kill"); err != nil {
		return err
	}
	_, err := s.Rollback(ctx, dir, Target{Ref: "2", All: true})
	return err
}
