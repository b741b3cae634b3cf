package terminal

import (
	"path"
	"regexp"
	"slices"
	"strconv"
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

var heraldUnit = regexp.MustCompile(`^herald([@-][^/]*)?(\.service)?$`)

func service(verb string, units []string) string {
	if !slices.Contains(stopVerbs, verb) {
		return ""
	}
	for _, u := range units {
		if heraldUnit.MatchString(plain(u)) {
			return "it stops the gateway that runs this session (" + plain(u) + ")"
		}
	}
	return ""
}

// daemon refuses what would end the daemon itself.
func (f floor) daemon(s simple, c command, up []simple) string {
	const why = "it stops the gateway that runs this session"
	args := c.argv[1:]
	switch c.name {
	case "herald":
		if verb, _ := verbOf(args); slices.Contains([]string{"stop", "restart", "shutdown", "kill"}, verb) {
			return why
		}
	case "service", "rc-service":
		if ops := operands(args); len(ops) > 1 {
			return service(plain(ops[1]), ops[:1])
		}
	case "launchctl", "supervisorctl", "docker", "podman":
		verb, units := verbOf(args)
		if verb == "container" && len(units) > 0 {
			verb, units = plain(units[0]), units[1:]
		}
		return service(verb, units)
	case "kill":
		return f.kill(s, args, c.piped, up)
	case "pkill", "skill":
		return pkill(args)
	case "killall":
		for _, a := range operands(args) {
			if plain(a) == "herald" {
				return why
			}
		}
	case "killall5":
		return "it kills every process"
	}
	return ""
}

// kill refuses the daemon, its group, its parent-id variable (the daemon is a shell's parent) and "all".
func (f floor) kill(s simple, args []string, piped bool, up []simple) string {
	const why = "it kills the gateway that runs this session"
	if len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "--" {
		takes := args[0] == "-s" || args[0] == "-n"
		args = args[1:]
		if takes && len(args) > 0 {
			args = args[1:]
		}
	}
	for _, a := range args {
		n, err := strconv.Atoi(plain(a))
		switch {
		case a == "$PPID" || a == "${PPID}":
			return why
		case err != nil:
		case n == -1:
			return "it kills every process"
		case f.DaemonPID > 0 && (n == f.DaemonPID || n == -f.DaemonPID):
			return why
		}
	}
	for _, text := range s.nested {
		if findsDaemon(split(text).commands) {
			return why
		}
	}
	if piped && findsDaemon(up) {
		return why
	}
	return ""
}

// findsDaemon reports whether commands look for the daemon's process id.
func findsDaemon(commands []simple) bool {
	looks, names := false, false
	for _, c := range commands {
		cmd := unwrap(c.words)
		switch cmd.name {
		case "pgrep", "pidof", "ps", "lsof":
			looks = true
		}
		for _, a := range cmd.argv {
			names = names || path.Base(strings.Trim(plain(a), "^$[]")) == "herald" || strings.HasPrefix(plain(a), "herald ") || plain(a) == "[h]erald"
		}
	}
	return looks && names
}

// pkill takes a pattern that is matched against names, or with -f against command lines.
func pkill(args []string) string {
	exact, broad := hasFlag(args, 'x', "exact"), false
	var pattern string
	for i := 0; i < len(args); i++ {
		a := plain(args[i])
		if !strings.HasPrefix(a, "-") {
			pattern = a
			continue
		}
		if slices.Contains([]string{"-u", "-U", "-g", "-G", "-s", "-t", "-P"}, a) {
			broad = broad || a == "-u" || a == "-U" || a == "-G"
			i++
		}
	}
	if pattern == "" {
		if broad {
			return "it kills every process of a user"
		}
		return ""
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return ""
	}
	if exact && pattern != "herald" || !exact && !re.MatchString("herald") && !(hasFlag(args, 'f', "full") && re.MatchString("herald run")) {
		return ""
	}
	return "it kills the gateway that runs this session"
}

// hasFlag looks for a short letter in any group of short options, or for a long name.
func hasFlag(args []string, short byte, long string) bool {
	for _, a := range args {
		a = plain(a)
		switch {
		case a == "--":
			return false
		case strings.HasPrefix(a, "--"):
			if a == "--"+long {
				return true
			}
		case strings.HasPrefix(a, "-") && strings.IndexByte(a, short) > 0:
			return true
		}
	}
	return false
}

// operands returns the arguments that are not options.
func operands(args []string) []string {
	var out []string
	for i, a := range args {
		if a == "--" {
			return append(out, args[i+1:]...)
		}
		if !strings.HasPrefix(a, "-") {
			out = append(out, a)
		}
	}
	return out
}

// systemDirs are what a machine does not live without.
var systemDirs = []string{
	"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/proc", "/root", "/sbin", "/sys", "/usr", "/var",
	"/usr/bin", "/usr/lib", "/usr/sbin", "/usr/share", "/var/lib", "/System", "/Library", "/Users", "/Applications",
}

// everything matches patterns that take all names of a directory.
var everything = regexp.MustCompile(`^(\.?[*?]+|\.?\[[^\]]*\][*?]*|\{[^}]*\*[^}]*\}|\.\?\?\*)$`)

// vital names what a target is when removing it must not happen, or "".
func (f floor) vital(target string) string {
	p := f.abs(target)
	dir, last := path.Split(p)
	if everything.MatchString(last) {
		p = path.Clean(dir)
	}
	switch {
	case p == "/":
		return "the root directory"
	case slices.Contains(systemDirs, p):
		return "the system directory " + p
	case f.Home != "" && p == path.Clean(f.Home):
		return "the home directory " + p
	}
	for _, d := range f.Protected {
		if d = path.Clean(d); d == p || strings.HasPrefix(d, p+"/") {
			return "the gateway's own data in " + d
		}
	}
	return ""
}

// abs resolves a word as the shell would: home, then the working directory. Quoted characters stay names.
func (f floor) abs(word string) string {
	for _, prefix := range []string{"~", "$HOME", "${HOME}"} {
		if rest, ok := strings.CutPrefix(word, prefix); ok && (rest == "" || rest[0] == '/') {
			return path.Join(f.Home, plain(rest))
		}
	}
	quotedGlob := strings.Contains(word, string(literal))
	p := plain(word)
	if !strings.HasPrefix(p, "/") {
		p = path.Join(f.Dir, p)
	}
	p = path.Clean(p)
	if quotedGlob && everything.MatchString(path.Base(p)) {
		p += "\x00" // a file whose name is a star
	}
	return p
}

var disk = regexp.MustCompile(`^/dev/(r?disk\d|disk/|[shv]d[a-z]|xvd[a-z]|nvme\d|mmcblk\d|md\d|dm-\d|mapper/)`)

func isDisk(p string) bool { return disk.MatchString(path.Clean(p)) }

// forkBomb looks for a function that pipes into itself in the background. bare has no quoted text.
func forkBomb(bare string) bool {
	for at := 0; ; {
		i := strings.Index(bare[at:], "(){")
		if i < 0 {
			return false
		}
		i += at
		at = i + 3
		begin := i
		for begin > 0 && !strings.ContainsRune(";&|(){}", rune(bare[begin-1])) {
			begin--
		}
		name := strings.TrimPrefix(bare[begin:i], "function")
		body, _, _ := strings.Cut(bare[at:], "}")
		if name != "" && strings.Contains(body, name+"|"+name+"&") {
			return true
		}
	}
}
