package terminal

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// command is a simple command without its wrappers.
type command struct {
	name     string   // base name of the program
	argv     []string // with the program
	elevated bool     // through sudo or its like
	piped    bool     // its last arguments come from its input (xargs)
	detached bool     // through nohup or its like
	dir      string   // the directory that a wrapper changes to; "" for none
	scripts  []string // shell texts among the wrappers' own arguments
	sets     []string // assignments before it
}

// wrapper describes a program that runs another one.
type wrapper struct {
	takes    string // its short options that take a value
	skip     int    // operands of its own before the command
	elevates bool
	piped    bool
	detaches bool
	dir      string // the short option that names a directory
	script   string // the short option that holds a shell text
}

var wrappers = map[string]wrapper{
	"sudo": {takes: "ugpCrtTUDRh", elevates: true, dir: "D"}, "doas": {takes: "uC", elevates: true}, "run0": {elevates: true}, "pkexec": {elevates: true},
	"gosu": {skip: 1, elevates: true}, "su-exec": {skip: 1, elevates: true},
	"env": {takes: "uCS", dir: "C", script: "S"}, "nice": {takes: "n"}, "ionice": {takes: "cnp"}, "nohup": {detaches: true}, "time": {takes: "fo"},
	"timeout": {takes: "sk", skip: 1}, "exec": {takes: "a"}, "command": {}, "builtin": {}, "stdbuf": {takes: "ioe"},
	"setsid": {detaches: true}, "daemonize": {takes: "aceopluE", detaches: true}, "systemd-run": {takes: "pEHMut", detaches: true}, "xargs": {takes: "nPILdaEs", piped: true}, "parallel": {takes: "jN", piped: true},
	"busybox": {}, "toybox": {}, "chroot": {skip: 1}, "unshare": {}, "nsenter": {takes: "tSG"}, "strace": {takes: "oepsu"}, "ltrace": {takes: "oepsu"},
	"chrt": {takes: "p", skip: 1}, "taskset": {skip: 1}, "numactl": {takes: "NCmip"}, "flock": {takes: "wEc", skip: 1, script: "c"}, "watch": {takes: "nq"},
	"script": {takes: "cIOBTEo", script: "c"}, "unbuffer": {}, "entr": {}, "fakeroot": {}, "caffeinate": {takes: "tw"}, "setarch": {}, "runcon": {skip: 1}, "prlimit": {},
	"if": {}, "then": {}, "elif": {}, "else": {}, "while": {}, "until": {}, "do": {}, "!": {}, "{": {}, "coproc": {}, "function": {skip: 1},
}

// longTakes are long options of wrappers whose value is the next word.
var longTakes = []string{
	"--user", "--group", "--prompt", "--chdir", "--host", "--close-from", "--role", "--type", "--command-timeout", "--chroot", "--unset", "--split-string",
	"--adjustment", "--signal", "--kill-after", "--max-args", "--max-procs", "--max-lines", "--delimiter", "--arg-file", "--max-chars", "--replace", "--class",
	"--classdata", "--interval", "--command", "--unit", "--property", "--setenv", "--slice", "--jobs", "--target", "--timeout", "--output",
	"--git-dir", "--work-tree", "--namespace",
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\+?=`)

// unwrap goes through assignments, control words and wrappers to the program that acts.
func unwrap(words []string) command {
	var c command
	for len(words) > 0 {
		w := words[0]
		if assignment.MatchString(w) {
			c.sets = append(c.sets, w)
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
		c.detached = c.detached || wr.detaches
		words = c.afterOptions(words[1:], wr)
		if name == "watch" && len(words) > 0 {
			c.scripts = append(c.scripts, strings.Join(words, " ")) // it hands its words to a shell
		}
	}
	return c
}

// afterOptions skips a wrapper's own arguments, keeping those that matter.
func (c *command) afterOptions(words []string, wr wrapper) []string {
	for len(words) > 0 && strings.HasPrefix(words[0], "-") && words[0] != "-" {
		w := words[0]
		words = words[1:]
		if w == "--" {
			break
		}
		words = c.option(w, words, wr)
	}
	for skip := wr.skip; skip > 0 && len(words) > 0; words = words[1:] {
		if !assignment.MatchString(words[0]) {
			skip--
		}
	}
	// Some take options behind their operand (flock FILE -c TEXT).
	if wr.skip > 0 && wr.script != "" && len(words) > 1 && words[0] == "-"+wr.script {
		c.scripts = append(c.scripts, plain(words[1]))
		words = words[2:]
	}
	return words
}

// option takes one option and returns the words behind it and its value.
func (c *command) option(w string, rest []string, wr wrapper) []string {
	take := func(value string) {
		letter := w[len(w)-1:]
		switch {
		case wr.dir != "" && (letter == wr.dir || strings.HasPrefix(w, "--chdir")):
			c.dir = value
		case wr.script != "" && (letter == wr.script || strings.HasPrefix(w, "--split") || strings.HasPrefix(w, "--command")):
			c.scripts = append(c.scripts, plain(value))
		}
	}
	if strings.HasPrefix(w, "--") {
		name, value, has := strings.Cut(w, "=")
		if !has && slices.Contains(longTakes, name) && len(rest) > 0 {
			value, rest, has = rest[0], rest[1:], true
		}
		if has {
			w = name
			take(value)
		}
		return rest
	}
	for i := 1; i < len(w); i++ {
		if !strings.Contains(wr.takes, w[i:i+1]) {
			continue
		}
		value := w[i+1:]
		if value == "" && len(rest) > 0 {
			value, rest = rest[0], rest[1:]
		}
		w = w[:i+1]
		take(value)
		break
	}
	return rest
}
