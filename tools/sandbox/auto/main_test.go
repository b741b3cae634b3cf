package auto

import (
	"os"
	"testing"

	"herald/tools/sandbox/local"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if local.IsSupervisor(os.Args) {
		os.Exit(local.Supervise())
	}
	goleak.VerifyTestMain(m)
}
