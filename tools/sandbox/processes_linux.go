package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// listProcesses reads the process table from /proc. One read of one stat file gives parent, group, state
// and start time of a process as of one moment; gopsutil (used on other systems) reads them one by one
// and does not know groups.
func listProcesses() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	table := make([]process, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		p, err := readProcess(pid)
		if err != nil {
			continue // it ended between the listing and the read
		}
		table = append(table, p)
	}
	if len(table) == 0 {
		return nil, errors.New("/proc lists no process")
	}
	return table, nil
}

// readProcess reads one row.
func readProcess(pid int) (process, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, err
	}
	return parseStat(pid, b)
}

// parseStat reads proc_pid_stat(5). The command name in parentheses may hold anything, so the fields are
// counted from the last closing one: state 3, ppid 4, pgrp 5, starttime 22.
func parseStat(pid int, b []byte) (process, error) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return process{}, fmt.Errorf("process %d: stat has no command name", pid)
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 20 {
		return process{}, fmt.Errorf("process %d: stat has %d fields", pid, len(f)+2)
	}
	ppid, err1 := strconv.Atoi(f[1])
	group, err2 := strconv.Atoi(f[2])
	start, err3 := strconv.ParseUint(f[19], 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return process{}, fmt.Errorf("process %d: stat: %w", pid, err)
	}
	return process{pid: pid, ppid: ppid, group: group, start: start, zombie: f[0] == "Z" || f[0] == "X"}, nil
}

// carrying returns the processes of table whose environment has the entry. It finds those that left the
// tree before anybody looked: a double fork with a session of its own keeps its environment.
func carrying(table []process, entry string) []process {
	want := []byte(entry)
	var out []process
	for _, p := range table {
		if p.zombie {
			continue
		}
		b, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
		if err != nil {
			continue
		}
		for v := range bytes.SplitSeq(b, []byte{0}) {
			if bytes.Equal(v, want) {
				out = append(out, p)
				break
			}
		}
	}
	return out
}
