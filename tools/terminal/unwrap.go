package terminal

import (
	"path"
	"regexp"
	"strings"
)

// command is a simple command without its wrappers.
type command struct {
	name     string   // base name of the program
	argv     []string // with the program
	elevated bool     // through sudo or its like
	piped    bool     // its last arguments come from its input (xargs)
}

// wrapper describes a program that runs another one.
type wrapper struct {
	takes    string // its short options that take a value
	skip     int    // operands of its own before the command
	elevates bool
	piped    bool
}

var wrappers = map[string]wrapper{
	"sudo": {takes: "ugpCrtTUDRh", elevates: true}, "doas": {takes: "uC", elevates: true}, "run0": {elevates: true},
	"env": {takes: "uCS"}, "nice": {takes: "n"}, "ionice": {takes: "cnp"}, "nohup": {}, "time": {takes: "fo"},
	"timeout": {takes: "sk", skip: 1}, "exec": {takes: "a"}, "command": {}, "builtin": {}, "stdbuf": {takes: "ioe"},
	"setsid": {}, "xargs": {takes: "nPILdaEs", piped: true}, "parallel": {takes: "jN", piped: true}, "busybox": {}, "toybox": {},
	"chroot": {skip: 1}, "unshare": {}, "strace": {takes: "oepsu"}, "chrt": {takes: "p", skip: 1}, "taskset": {skip: 1},
	"if": {}, "then": {}, "elif": {}, "else": {}, "while": {}, "until": {}, "do": {}, "!": {}, "{": {}, "coproc": {},
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\+?=`)

// unwrap goes through assignments, control words and wrappers to the program that acts.
func unwrap(words []string) command {
	var c command
	for len(words) > 0 {
		w := words[0]
		if assignment.MatchString(w) {
			words = words[1:]
			continue
		}
		name := path.Base(plain(w))
		wr, ok := wrappers[name]
		if !ok {
			c.name, c.argv = name, words
			return c
		}
		c.elevated = c.elevated || wr.elevates
		c.piped = c.piped || wr.piped
		words = afterOptions(words[1:], wr)
	}
	return c
}

// afterOptions skips a wrapper's own arguments.
func afterOptions(words []string, wr wrapper) []string {
	for len(words) > 0 && strings.HasPrefix(words[0], "-") && words[0] != "-" {
		w := words[0]
		words = words[1:]
		if w == "--" {
			break
		}
		last := w[len(w)-1:]
		if !strings.HasPrefix(w, "--") && len(w) == 2 && strings.Contains(wr.takes, last) && len(words) > 0 {
			words = words[1:]
		}
	}
	for skip := wr.skip; skip > 0 && len(words) > 0; words = words[1:] {
		if !assignment.MatchString(words[0]) {
			skip--
		}
	}
	return words
}
