// Package proc reads the process table of this machine. It signals nothing.
package proc

import (
	"os"
	"syscall"
)

// Process is one row of the process table. start tells apart two processes that had the same pid; its unit
// is the platform's own and it is only compared for equality.
type Process struct {
	PID, Parent, Group int
	Start              uint64
	Zombie             bool
}

// Descendants returns all processes below root, not root itself, parents before children.
func Descendants(table []Process, root int) []Process {
	children := make(map[int][]Process, len(table))
	for _, p := range table {
		children[p.Parent] = append(children[p.Parent], p)
	}
	var out []Process
	seen := map[int]bool{root: true}
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, c := range children[queue[0]] {
			if seen[c.PID] {
				continue
			}
			seen[c.PID] = true
			out = append(out, c)
			queue = append(queue, c.PID)
		}
	}
	return out
}

// ExitCode follows the shell's habit for signals.
func ExitCode(s *os.ProcessState) int {
	if s == nil {
		return -1
	}
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}
