package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usage is what a process group holds and has used.
type usage struct {
	PSS  float64 // proportional set size, MiB
	Anon float64 // its anonymous part, MiB
	CPU  time.Duration
}

// tick is the unit of the CPU times in /proc/<pid>/stat: USER_HZ, which is 100 a second for every Linux
// architecture that Go runs on.
const tick = time.Second / 100

// stat is what is read of /proc/<pid>/stat.
type stat struct {
	group int
	cpu   time.Duration // user and system, without reaped children
}

// parseStat reads the content of /proc/<pid>/stat. The process's name, in parentheses, may hold anything.
func parseStat(b []byte) (stat, error) {
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return stat{}, errors.New("/proc stat: there is no name in parentheses")
	}
	// Fields count from 3, the state: 5 is the process group, 14 and 15 are utime and stime (proc(5)).
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 13 {
		return stat{}, fmt.Errorf("/proc stat: %d fields follow the name, want at least 13", len(f))
	}
	var n [3]int64
	for i, at := range [3]int{5 - 3, 14 - 3, 15 - 3} {
		v, err := strconv.ParseInt(f[at], 10, 64)
		if err != nil {
			return stat{}, fmt.Errorf("/proc stat: field %d is %q, want a number", at+3, f[at])
		}
		n[i] = v
	}
	return stat{group: int(n[0]), cpu: time.Duration(n[1]+n[2]) * tick}, nil
}

// parseRollup reads PSS and its anonymous part, in MiB, of the content of /proc/<pid>/smaps_rollup.
func parseRollup(b []byte) (pss, anon float64, err error) {
	found := false
	for line := range strings.Lines(string(b)) {
		name, rest, _ := strings.Cut(line, ":")
		if name != "Pss" && name != "Pss_Anon" {
			continue
		}
		f := strings.Fields(rest)
		if len(f) != 2 || f[1] != "kB" {
			return 0, 0, fmt.Errorf("/proc smaps_rollup: %s is %q, want a number of kB", name, strings.TrimSpace(rest))
		}
		kib, err := strconv.ParseFloat(f[0], 64)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc smaps_rollup: %s is %q, want a number of kB", name, f[0])
		}
		if name == "Pss" {
			pss, found = kib/1024, true
		} else {
			anon = kib / 1024
		}
	}
	if !found {
		return 0, 0, errors.New("/proc smaps_rollup: there is no Pss line (a kernel before 4.14?)")
	}
	return pss, anon, nil
}

// groupUsage sums over all processes of a process group. A process that ends meanwhile does not count.
func groupUsage(group int) (usage, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return usage{}, err
	}
	var sum usage
	found := false
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		st, err := parseStat(b)
		if err != nil {
			return usage{}, err
		}
		if st.group != group {
			continue
		}
		b, err = os.ReadFile(filepath.Join(filepath.Dir(path), "smaps_rollup"))
		if err != nil || len(b) == 0 {
			continue
		}
		pss, anon, err := parseRollup(b)
		if err != nil {
			return usage{}, err
		}
		found = true
		sum.PSS, sum.Anon, sum.CPU = sum.PSS+pss, sum.Anon+anon, sum.CPU+st.cpu
	}
	if !found {
		return usage{}, fmt.Errorf("process group %d has no process to measure: the daemon has ended (see its log)", group)
	}
	return sum, nil
}

// parseLoad reads the load average of one minute from the content of /proc/loadavg.
func parseLoad(b []byte) (float64, error) {
	first, _, _ := strings.Cut(string(b), " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/loadavg: %q is no number", first)
	}
	return v, nil
}

// machine is the CPU time of the whole machine since it started.
type machine struct{ busy, stolen, all time.Duration }

// parseMachine reads the first line of /proc/stat.
func parseMachine(b []byte) (machine, error) {
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return machine{}, fmt.Errorf("/proc/stat: the first line is %q, want cpu and at least 8 numbers", line)
	}
	// user nice system idle iowait irq softirq steal; the guest times behind them are in user already.
	var m machine
	for i, s := range f[1:9] {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return machine{}, fmt.Errorf("/proc/stat: %q is no number", s)
		}
		d := time.Duration(n) * tick
		m.all += d
		switch i {
		case 3, 4:
		case 7:
			m.stolen += d
		default:
			m.busy += d
		}
	}
	return m, nil
}
