package local

import (
	"cmp"
	"errors"
	"syscall"
	"time"

	"herald/tools/sandbox/execution"
	"herald/tools/sandbox/proc"
)

// killer ends process trees. Its functions are fields so that tests can break them.
type killer struct {
	list     func() ([]proc.Process, error)
	carrying func(table []proc.Process, entry string) []proc.Process
	signal   func(pid int, sig syscall.Signal) error
	ownGroup func() int
	grace    time.Duration // after TERM; 0 takes execution.TermGrace
}

func newKiller() killer {
	return killer{list: proc.List, carrying: proc.Carrying, signal: syscall.Kill, ownGroup: syscall.Getpgrp, grace: execution.TermGrace}
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
		known := proc.Descendants(before, t.leader)
		k.killGroup(t.leader, known)
		k.killEscaped(t, known)
	}
	k.killMarked(t) // whoever has the leader's number
}

// table lists the processes; a listing that panics is a failed one.
func (k killer) table() (table []proc.Process, err error) {
	defer func() {
		if recover() != nil {
			table, err = nil, errors.New("process listing failed")
		}
	}()
	return k.list()
}

// groupIsOurs refuses groups that are not the command's: init's, the daemon's, or that of a stranger who
// got the leader's number after it ended.
func (k killer) groupIsOurs(t tree, table []proc.Process) bool {
	if t.leader <= 1 || t.leader == k.ownGroup() {
		return false
	}
	for _, p := range table {
		if p.PID == t.leader && t.start != 0 && p.Start != t.start {
			return false
		}
	}
	return true
}

// killGroup signals the group, and the known members one by one where signalling the group is not
// permitted.
func (k killer) killGroup(group int, known []proc.Process) {
	k.signalGroup(group, known, syscall.SIGTERM)
	if k.waitGroup(group, cmp.Or(k.grace, execution.TermGrace)) {
		return
	}
	k.signalGroup(group, known, syscall.SIGKILL)
	k.waitGroup(group, execution.KillGrace)
}

func (k killer) signalGroup(group int, known []proc.Process, sig syscall.Signal) {
	if err := k.signal(-group, sig); !errors.Is(err, syscall.EPERM) {
		return
	}
	_ = k.signal(group, sig)
	for _, p := range known {
		if p.Group == group && k.same(p) {
			_ = k.signal(p.PID, sig)
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
		if p.Group == group && !p.Zombie {
			return true
		}
	}
	return false
}

// killEscaped kills the known processes that live on outside the group, and what they started meanwhile.
func (k killer) killEscaped(t tree, known []proc.Process) {
	if len(known) == 0 {
		return
	}
	table, err := k.table()
	if err != nil {
		table = nil
	}
	for _, p := range known {
		now, ok := k.now(p, table)
		if !ok || now.Group == t.leader {
			continue
		}
		young := proc.Descendants(table, p.PID)
		k.killOne(now)
		for _, c := range young {
			if c.Group != t.leader && k.same(c) {
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

func (k killer) killOne(p proc.Process) {
	if p.PID <= 1 || p.Zombie {
		return
	}
	_ = k.signal(p.PID, syscall.SIGKILL)
}

// now returns the row of p as it is, or ok false when p ended, also when another process has its number.
func (k killer) now(p proc.Process, table []proc.Process) (proc.Process, bool) {
	if table == nil {
		row, err := proc.Read(p.PID)
		return row, err == nil && row.Start == p.Start && !row.Zombie
	}
	for _, row := range table {
		if row.PID == p.PID {
			return row, row.Start == p.Start && !row.Zombie
		}
	}
	return proc.Process{}, false
}

// same reports whether p is still the process that was written down.
func (k killer) same(p proc.Process) bool {
	_, ok := k.now(p, nil)
	return ok
}
