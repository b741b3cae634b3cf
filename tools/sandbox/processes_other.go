//go:build unix && !linux

package sandbox

import (
	"slices"
	"syscall"

	ps "github.com/shirou/gopsutil/v4/process"
)

// listProcesses reads the process table through gopsutil. Rows that vanish while they are read are left out.
func listProcesses() ([]process, error) {
	pids, err := ps.Pids()
	if err != nil {
		return nil, err
	}
	table := make([]process, 0, len(pids))
	for _, pid := range pids {
		if p, err := readProcess(int(pid)); err == nil {
			table = append(table, p)
		}
	}
	return table, nil
}

func readProcess(pid int) (process, error) {
	p, err := ps.NewProcess(int32(pid))
	if err != nil {
		return process{}, err
	}
	ppid, err := p.Ppid()
	if err != nil {
		return process{}, err
	}
	start, err := p.CreateTime()
	if err != nil {
		return process{}, err
	}
	group, err := syscall.Getpgid(pid)
	if err != nil {
		return process{}, err
	}
	status, _ := p.Status()
	return process{pid: pid, ppid: int(ppid), group: group, start: uint64(start), zombie: slices.Contains(status, ps.Zombie)}, nil
}

// carrying returns the processes of table whose environment has the entry, where the system lets us look.
func carrying(table []process, entry string) []process {
	var out []process
	for _, row := range table {
		p, err := ps.NewProcess(int32(row.pid))
		if err != nil {
			continue
		}
		if env, err := p.Environ(); err == nil && slices.Contains(env, entry) {
			out = append(out, row)
		}
	}
	return out
}
