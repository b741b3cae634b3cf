package sandbox

import (
	"cmp"
	"errors"
	"syscall"
	"time"
)

// killer ends process trees. Its functions are fields so that tests can break them.
type killer struct {
	list     func() ([]process, error)
	carrying func(table []process, entry string) []process
	signal   func(pid int, sig syscall.Signal) error
	ownGroup func() int
	grace    time.Duration // after TERM; 0 takes termGrace
}

func newKiller() killer {
	return killer{list: listProcesses, carrying: carrying, signal: syscall.Kill, ownGroup: syscall.Getpgrp, grace: termGrace}
}

// tree is what is known about a command's processes from its start: the leader, which is also the id of its
// group, and the environment entry that all of them carry.
type tree struct {
	leader int
	start  uint64 // of the leader; 0 when it could not be read
	mark   string // "NAME=value"; empty when there is none
}

// kill ends the tree. The descendants are written down before the first signal, because those of a dead
// leader belong to init and can't be found any more. Then the group gets TERM, a grace, KILL and a grace;
// then what was written down and lives on outside the group gets KILL, and last what carries the mark. A
// listing that fails makes the kill less thorough and never stops it.
func (k killer) kill(t tree) {
	before, _ := k.table()
	if k.groupIsOurs(t, before) {
		known := descendants(before, t.leader)
		k.killGroup(t.leader, known)
		k.killEscaped(t, known)
	}
	k.killMarked(t) // whoever has the leader's number
}

// table lists the processes; a listing that panics is a failed one.
func (k killer) table() (table []process, err error) {
	defer func() {
		if recover() != nil {
			table, err = nil, errors.New("process listing failed")
		}
	}()
	return k.list()
}

// groupIsOurs refuses groups that are not the command's: init's, the daemon's, or that of a stranger who
// got the leader's number after it ended.
func (k killer) groupIsOurs(t tree, table []process) bool {
	if t.leader <= 1 || t.leader == k.ownGroup() {
		return false
	}
	for _, p := range table {
		if p.pid == t.leader && t.start != 0 && p.start != t.start {
			return false
		}
	}
	return true
}

// killGroup signals the group, and the known members one by one where signalling the group is not
// permitted.
func (k killer) killGroup(group int, known []process) {
	k.signalGroup(group, known, syscall.SIGTERM)
	if k.waitGroup(group, cmp.Or(k.grace, termGrace)) {
		return
	}
	k.signalGroup(group, known, syscall.SIGKILL)
	k.waitGroup(group, killGrace)
}

func (k killer) signalGroup(group int, known []process, sig syscall.Signal) {
	if err := k.signal(-group, sig); !errors.Is(err, syscall.EPERM) {
		return
	}
	_ = k.signal(group, sig)
	for _, p := range known {
		if p.group == group && k.same(p) {
			_ = k.signal(p.pid, sig)
		}
	}
}

// waitGroup waits until the group has no living member, at most for d.
func (k killer) waitGroup(group int, d time.Duration) bool {
	deadline := time.Now().Add(d)
	pause := 5 * time.Millisecond
	for {
		if !k.groupAlive(group) {
			return true
		}
		if !time.Now().Before(deadline) {
			return false
		}
		time.Sleep(pause)
		pause = min(pause*2, 200*time.Millisecond)
	}
}

// groupAlive asks the kernel first, and then the process table: a zombie that nobody reaps (init of a
// container) still counts for the kernel.
func (k killer) groupAlive(group int) bool {
	if errors.Is(k.signal(-group, 0), syscall.ESRCH) {
		return false
	}
	table, err := k.table()
	if err != nil {
		return true
	}
	for _, p := range table {
		if p.group == group && !p.zombie {
			return true
		}
	}
	return false
}

// killEscaped kills the known processes that live on outside the group, and what they started meanwhile.
func (k killer) killEscaped(t tree, known []process) {
	if len(known) == 0 {
		return
	}
	table, err := k.table()
	if err != nil {
		table = nil
	}
	for _, p := range known {
		now, ok := k.now(p, table)
		if !ok || now.group == t.leader {
			continue
		}
		young := descendants(table, p.pid)
		k.killOne(now)
		for _, c := range young {
			if c.group != t.leader && k.same(c) {
				k.killOne(c)
			}
		}
	}
}

// killMarked kills the processes that carry the tree's mark, again until a look finds none: one that
// forks while it is being killed is found on the next look.
func (k killer) killMarked(t tree) {
	if t.mark == "" {
		return
	}
	for round := range 5 {
		if round > 0 {
			time.Sleep(5 * time.Millisecond)
		}
		table, err := k.table()
		if err != nil {
			return
		}
		found := k.carrying(table, t.mark)
		if len(found) == 0 {
			return
		}
		for _, p := range found {
			if k.same(p) {
				k.killOne(p)
			}
		}
	}
}

func (k killer) killOne(p process) {
	if p.pid <= 1 || p.zombie {
		return
	}
	_ = k.signal(p.pid, syscall.SIGKILL)
}

// now returns the row of p as it is, or ok false when p ended, also when another process has its number.
func (k killer) now(p process, table []process) (process, bool) {
	if table == nil {
		row, err := readProcess(p.pid)
		return row, err == nil && row.start == p.start && !row.zombie
	}
	for _, row := range table {
		if row.pid == p.pid {
			return row, row.start == p.start && !row.zombie
		}
	}
	return process{}, false
}

// same reports whether p is still the process that was written down.
func (k killer) same(p process) bool {
	_, ok := k.now(p, nil)
	return ok
}
