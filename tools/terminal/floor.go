package terminal

import (
	"slices"
	"strings"
)

// Place is where a command would run; the floor needs it to know what a relative name means.
type Place struct {
	Dir  string // absolute working directory
	Home string // absolute home directory of commands
	// DaemonPID is the daemon's own process; 0 when commands can't reach it.
	DaemonPID int
	// Protected are directories whose recursive removal takes the daemon's data with it.
	Protected []string
}

// Refusal returns why a command is never run, or "" when the floor lets it pass. No approval overrides
// it. It is a floor and no wall: it reads the text of the command as a shell would, through wrappers, nested
// shells and substitutions, and can't follow what a program computes. A text that can't be read to its end is refused.
func Refusal(line string, in Place) string {
	why, unreadable := refusal(line, in)
	if why == "" {
		why = unreadable
	}
	return why
}

// refusal is Refusal with what can't be read apart.
func refusal(line string, in Place) (why, unreadable string) {
	w := walk{visit: func(s step) bool {
		if !s.away {
			why = floor{Place: s.in}.step(s)
		}
		return why != ""
	}}
	if forkBomb(split(line).bare) {
		return "it is a fork bomb", ""
	}
	w.read(line, in, false, 0, nil)
	return why, w.unreadable
}

type floor struct {
	Place
}

// step applies the rules to one command.
func (f floor) step(s step) string {
	if forkBomb(s.bare) {
		return "it is a fork bomb"
	}
	for _, w := range s.writes {
		if isDisk(plain(w)) {
			return "it writes to the disk device " + plain(w)
		}
	}
	for _, w := range slices.Concat(s.words, s.reads) {
		if f.daemonView(w) {
			return "it reads the gateway's memory or environment, where its secrets are"
		}
	}
	return f.command(s)
}

var (
	downloaders = []string{"curl", "wget", "fetch", "aria2c"}
	powerVerbs  = []string{"poweroff", "reboot", "halt", "kexec", "soft-reboot", "rescue", "emergency", "exit"}
	stopVerbs   = []string{"stop", "restart", "try-restart", "reload-or-restart", "kill", "disable", "mask", "rm", "remove", "down", "unload", "bootout"}
)

// command applies the rules about programs.
func (f floor) command(s step) string {
	if len(s.argv) == 0 {
		return ""
	}
	args := s.argv[1:]
	switch {
	case slices.Contains(shells, s.name):
		return f.shell(s)
	case s.name == "rm":
		return f.remove(args, s.piped, s.up)
	case s.name == "find":
		return f.find(args)
	case s.name == "chmod", s.name == "chown", s.name == "chgrp":
		return f.modes(s.name, args)
	case strings.HasPrefix(s.name, "mkfs"), slices.Contains([]string{"mke2fs", "mkswap", "shred", "blkdiscard", "tee", "cp"}, s.name):
		return disks(s.name, args)
	case s.name == "wipefs" && hasFlag(args, 'a', "all"):
		return disks(s.name, args)
	case s.name == "dd":
		for _, a := range args {
			if of, ok := strings.CutPrefix(plain(a), "of="); ok && isDisk(of) {
				return "it overwrites the disk device " + of
			}
		}
	case slices.Contains([]string{"shutdown", "reboot", "halt", "poweroff", "telinit", "init", "systemctl", "loginctl"}, s.name):
		return power(s.name, args)
	}
	return f.daemon(s.simple, s.command, s.up)
}

// shell refuses a download that a shell runs as root.
func (f floor) shell(s step) string {
	if !s.elevated {
		return ""
	}
	for _, u := range s.up {
		if slices.Contains(downloaders, unwrap(u.words).name) {
			return "it runs a download in a shell as root"
		}
	}
	return ""
}

// remove refuses recursive removals of the machine, a home, or the daemon's data.
func (f floor) remove(args []string, piped bool, up []simple) string {
	if !hasFlag(args, 'r', "recursive") && !hasFlag(args, 'R', "no-preserve-root") {
		return ""
	}
	targets := operands(args)
	if piped {
		for _, u := range up {
			if e := unwrap(u.words); e.name == "echo" || e.name == "printf" {
				targets = append(targets, operands(e.argv[1:])...)
			}
		}
	}
	for _, t := range targets {
		if what := f.vital(t); what != "" {
			return "it removes " + what
		}
	}
	return ""
}

// find refuses to delete everything below a vital directory; with a test that narrows the search it is
// somebody's ordinary cleaning.
func (f floor) find(args []string) string {
	deletes, narrow := false, false
	for i, a := range args {
		switch {
		case a == "-delete":
			deletes = true
		case (a == "-exec" || a == "-execdir" || a == "-ok") && i+1 < len(args):
			name := unwrap(args[i+1:]).name
			deletes = deletes || name == "rm" || name == "shred" || name == "unlink"
		case slices.Contains([]string{"-name", "-iname", "-path", "-ipath", "-regex", "-iregex", "-wholename"}, a):
			narrow = narrow || i+1 < len(args) && strings.Trim(plain(args[i+1]), "*./") != ""
		case slices.Contains([]string{"-mtime", "-mmin", "-atime", "-ctime", "-newer", "-size", "-empty", "-user", "-inum", "-samefile"}, a):
			narrow = true
		}
	}
	if !deletes || narrow {
		return ""
	}
	for _, a := range args {
		if strings.HasPrefix(a, "-") || a == "(" || a == "!" {
			break
		}
		if what := f.vital(a); what != "" {
			return "it removes everything in " + what
		}
	}
	return ""
}

// modes refuses to change rights or owners of the whole machine.
func (f floor) modes(name string, args []string) string {
	if !hasFlag(args, 'R', "recursive") {
		return ""
	}
	for _, t := range operands(args) {
		if p := f.abs(t); p == "/" || p == "/*" {
			return "it changes every file of the machine (" + name + " on /)"
		}
	}
	return ""
}

func disks(name string, args []string) string {
	for _, a := range args {
		if p := plain(a); isDisk(p) {
			return "it overwrites the disk device " + p + " (" + name + ")"
		}
	}
	return ""
}

func power(name string, args []string) string {
	if len(args) > 0 && (args[0] == "--help" || args[0] == "-c" || args[0] == "--version") {
		return ""
	}
	const why = "it stops the machine"
	switch name {
	case "systemctl", "loginctl":
		verb, units := verbOf(args)
		if slices.Contains(powerVerbs, verb) {
			return why
		}
		return service(verb, units)
	case "init", "telinit":
		if len(args) > 0 && strings.Contains("016sS", args[0]) {
			return why
		}
		return ""
	}
	return why
}

// verbOf returns the first operand and the others.
func verbOf(args []string) (string, []string) {
	ops := operands(args)
	if len(ops) == 0 {
		return "", nil
	}
	return plain(ops[0]), ops[1:]
}
