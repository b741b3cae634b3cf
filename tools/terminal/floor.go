package terminal

import (
	"slices"
	"strings"
)

// maxNesting bounds how deep scripts inside scripts are read.
const maxNesting = 8

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
// shells and substitutions, and can't follow what a program computes.
func Refusal(line string, in Place) string {
	return floor{Place: in}.script(line, 0)
}

type floor struct {
	Place
}

// script checks all commands of a text; cd moves the directory for those after it.
func (f floor) script(text string, depth int) string {
	if depth > maxNesting {
		return ""
	}
	s := split(text)
	if forkBomb(s.bare) {
		return "it is a fork bomb"
	}
	for i, c := range s.commands {
		for _, inner := range c.nested {
			if why := f.script(inner, depth+1); why != "" {
				return why
			}
		}
		for _, w := range c.writes {
			if isDisk(plain(w)) {
				return "it writes to the disk device " + plain(w)
			}
		}
		for _, w := range slices.Concat(c.words, c.reads) {
			if f.daemonView(w) {
				return "it reads the gateway's memory or environment, where its secrets are"
			}
		}
		up := upstream(s.commands, i)
		cmd := unwrap(c.words)
		if why := f.command(c, cmd, up, depth); why != "" {
			return why
		}
		if len(cmd.argv) > 1 && cmd.name == "cd" {
			f.Dir = f.abs(cmd.argv[1])
		}
	}
	return ""
}

// upstream returns the commands whose output commands[i] reads.
func upstream(commands []simple, i int) []simple {
	first := i
	for first > 0 && commands[first-1].pipeline == commands[i].pipeline {
		first--
	}
	return commands[first:i]
}

var (
	shells      = []string{"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"}
	downloaders = []string{"curl", "wget", "fetch", "aria2c"}
	powerVerbs  = []string{"poweroff", "reboot", "halt", "kexec", "soft-reboot", "rescue", "emergency", "exit"}
	stopVerbs   = []string{"stop", "restart", "try-restart", "reload-or-restart", "kill", "disable", "mask", "rm", "remove", "down", "unload", "bootout"}
)

// command applies the rules to one command.
func (f floor) command(s simple, c command, up []simple, depth int) string {
	if len(c.argv) == 0 {
		return ""
	}
	args := c.argv[1:]
	switch {
	case slices.Contains(shells, c.name):
		return f.shell(s, c, up, depth)
	case c.name == "eval", c.name == "su", c.name == "runuser":
		return f.inner(c, depth)
	case c.name == "rm":
		return f.remove(args, c.piped, up)
	case c.name == "find":
		return f.find(args)
	case c.name == "chmod", c.name == "chown", c.name == "chgrp":
		return f.modes(c.name, args)
	case strings.HasPrefix(c.name, "mkfs"), slices.Contains([]string{"mke2fs", "mkswap", "shred", "blkdiscard", "tee", "cp"}, c.name):
		return disks(c.name, args)
	case c.name == "wipefs" && hasFlag(args, 'a', "all"):
		return disks(c.name, args)
	case c.name == "dd":
		for _, a := range args {
			if of, ok := strings.CutPrefix(plain(a), "of="); ok && isDisk(of) {
				return "it overwrites the disk device " + of
			}
		}
	case slices.Contains([]string{"shutdown", "reboot", "halt", "poweroff", "telinit", "init", "systemctl", "loginctl"}, c.name):
		return power(c.name, args)
	}
	return f.daemon(s, c, up)
}

// shell checks what a shell was told to run: by -c, by its input, or straight from the network.
func (f floor) shell(s simple, c command, up []simple, depth int) string {
	if c.elevated {
		for _, u := range up {
			if slices.Contains(downloaders, unwrap(u.words).name) {
				return "it runs a download in a shell as root"
			}
		}
	}
	for _, text := range s.input {
		if why := f.script(text, depth+1); why != "" {
			return why
		}
	}
	for _, u := range up {
		if e := unwrap(u.words); e.name == "echo" || e.name == "printf" {
			if why := f.script(plain(strings.Join(e.argv[1:], " ")), depth+1); why != "" {
				return why
			}
		}
	}
	return f.inner(c, depth)
}

// inner checks the script of -c, or the arguments of eval.
func (f floor) inner(c command, depth int) string {
	if c.name == "eval" {
		return f.script(plain(strings.Join(c.argv[1:], " ")), depth+1)
	}
	for i, a := range c.argv[1:] {
		short := strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.Contains(a, "c")
		if (short || a == "--command") && i+2 < len(c.argv) {
			return f.script(plain(c.argv[i+2]), depth+1)
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
