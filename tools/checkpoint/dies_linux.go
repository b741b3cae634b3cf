package checkpoint

import (
	"os/exec"
	"runtime"
	"syscall"
)

// runBound runs a command that dies with this process: a git that outlives a killed daemon would work on the store
// beside the next one. The kernel binds the child to the thread that started it, so the thread is kept.
func runBound(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return cmd.Run()
}
