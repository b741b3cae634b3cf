package local

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if IsSupervisor(os.Args) {
		os.Exit(Supervise())
	}
	goleak.VerifyTestMain(m)
}
