package sandbox

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if IsSupervisor(os.Args) {
		os.Exit(Supervise())
	}
	code := m.Run()
	closeTestEngine()
	if err := goleak.Find(); code == 0 && err != nil {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}
