//go:build !linux

package checkpoint

import "os/exec"

func runBound(cmd *exec.Cmd) error { return cmd.Run() }
