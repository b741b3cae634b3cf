//go:build unix && !linux

package proc

import (
	"slices"
	"syscall"

	ps "github.com/shirou/gopsutil/v4/process"
)

// List reads the process table through gopsutil. Rows that vanish while they are read are left out.
func List() ([]Process, error) {
	pids, err := ps.Pids()
	if err != nil {
		return nil, err
	}
	table := make([]Process, 0, len(pids))
	for _, pid := range pids {
		if p, err := Read(int(pid)); err == nil {
			table = append(table, p)
		}
	}
	return table, nil
}

// Read returns the row of one process. It is an error when there is no such process.
func Read(pid int) (Process, error) {
	p, err := ps.NewProcess(int32(pid))
	if err != nil {
		return Process{}, err
	}
	ppid, err := p.Ppid()
	if err != nil {
		return Process{}, err
	}
	start, err := p.CreateTime()
	if err != nil {
		return Process{}, err
	}
	group, err := syscall.Getpgid(pid)
	if err != nil {
		return Process{}, err
	}
	status, _ := p.Status()
	return Process{PID: pid, Parent: int(ppid), Group: group, Start: uint64(start), Zombie: slices.Contains(status, ps.Zombie)}, nil
}

// Carrying returns the processes of table whose environment has the entry, where the system lets us look.
func Carrying(table []Process, entry string) []Process {
	var out []Process
	for _, row := range table {
		p, err := ps.NewProcess(int32(row.PID))
		if err != nil {
			continue
		}
		if env, err := p.Environ(); err == nil && slices.Contains(env, entry) {
			out = append(out, row)
		}
	}
	return out
}
