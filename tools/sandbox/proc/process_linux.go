package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// List reads the process table from /proc. One read of one stat file gives parent, group, state
// and start time of a process as of one moment; gopsutil (used on other systems) reads them one by one
// and does not know groups.
func List() ([]Process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	table := make([]Process, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		p, err := Read(pid)
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

// Read reads one row.
func Read(pid int) (Process, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Process{}, err
	}
	return parseStat(pid, b)
}

// parseStat reads proc_pid_stat(5). The command name in parentheses may hold anything, so the fields are
// counted from the last closing one: state 3, ppid 4, pgrp 5, starttime 22.
func parseStat(pid int, b []byte) (Process, error) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return Process{}, fmt.Errorf("process %d: stat has no command name", pid)
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 20 {
		return Process{}, fmt.Errorf("process %d: stat has %d fields", pid, len(f)+2)
	}
	ppid, err1 := strconv.Atoi(f[1])
	group, err2 := strconv.Atoi(f[2])
	start, err3 := strconv.ParseUint(f[19], 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return Process{}, fmt.Errorf("process %d: stat: %w", pid, err)
	}
	return Process{PID: pid, Parent: ppid, Group: group, Start: start, Zombie: f[0] == "Z" || f[0] == "X"}, nil
}

// Carrying returns the processes of table whose environment has the entry. It finds those that left the
// tree before anybody looked: a double fork with a session of its own keeps its environment.
func Carrying(table []Process, entry string) []Process {
	want := []byte(entry)
	var out []Process
	for _, p := range table {
		if p.Zombie {
			continue
		}
		b, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/environ")
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
