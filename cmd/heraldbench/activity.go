package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

// activity is what the machine did during a run: figures of a busy machine say little about the daemon.
type activity struct {
	LoadBefore float64 `json:"load_before"` // average of one minute
	LoadAfter  float64 `json:"load_after"`
	Ours       float64 `json:"cpu_ours_percent"`   // of all cores: the daemon and the benchmark
	Others     float64 `json:"cpu_others_percent"` // of all cores: everybody else
	Stolen     float64 `json:"cpu_stolen_percent"` // taken by the host of a virtual machine
	Seconds    float64 `json:"seconds"`
}

// noisy is the share of all cores, in percent, from which others spoil the figures.
const noisy = 10

func (a activity) String() string {
	s := fmt.Sprintf("%d cores. Other programs took %.0f %% of them during the %.0f s of the run (load average %.1f before, %.1f after).",
		runtime.NumCPU(), a.Others, a.Seconds, a.LoadBefore, a.LoadAfter)
	if a.Others+a.Stolen >= noisy {
		s += " The machine was busy: times are longer than they would be, CPU and memory figures hold."
	}
	return s
}

// watch begins to look at the machine; the function that it returns ends it.
func watch() (func() (activity, error), error) {
	began := time.Now()
	load, m, err := look()
	if err != nil {
		return nil, err
	}
	own, err := ownCPU()
	if err != nil {
		return nil, err
	}
	return func() (activity, error) {
		loadAfter, after, err := look()
		if err != nil {
			return activity{}, err
		}
		ownAfter, err := ownCPU()
		if err != nil {
			return activity{}, err
		}
		return judge(load, loadAfter, m, after, ownAfter-own, time.Since(began)), nil
	}, nil
}

// judge is the arithmetic of watch.
func judge(load, loadAfter float64, before, after machine, ours, took time.Duration) activity {
	all := float64(after.all - before.all)
	a := activity{LoadBefore: load, LoadAfter: loadAfter, Seconds: took.Seconds()}
	a.Ours = 100 * ratio(float64(ours), all)
	a.Others = max(0, 100*ratio(float64(after.busy-before.busy-ours), all))
	a.Stolen = 100 * ratio(float64(after.stolen-before.stolen), all)
	return a
}

func look() (float64, machine, error) {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, machine{}, err
	}
	load, err := parseLoad(b)
	if err != nil {
		return 0, machine{}, err
	}
	if b, err = os.ReadFile("/proc/stat"); err != nil {
		return 0, machine{}, err
	}
	m, err := parseMachine(b)
	return load, m, err
}

// ownCPU is the CPU time of the benchmark and of its children that have ended.
func ownCPU() (time.Duration, error) {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		d, err := cpuOf(who)
		if err != nil {
			return 0, err
		}
		sum += d
	}
	return sum, nil
}

// cpuOf is user and system time of RUSAGE_SELF or RUSAGE_CHILDREN.
func cpuOf(who int) (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
