package terminal

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

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
		return ownVerb(args)
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

// ownVerb refuses the verbs that end the gateway, or that change what it lets the agent do: those belong to people.
// The words before the verb may be values of options.
func ownVerb(args []string) string {
	ops := operands(args)
	for i, op := range ops[:min(len(ops), 3)] {
		next := ""
		if i+1 < len(ops) {
			next = plain(ops[i+1])
		}
		switch verb := plain(op); {
		case slices.Contains([]string{"stop", "restart", "shutdown", "kill"}, verb):
			return "it stops the gateway that runs this session"
		case verb == "approvals" && next != "list" && next != "" && (next != "suggest" || hasFlag(args, 0, "apply")),
			verb == "pairing" && next != "list" && next != "":
			return "it changes what the gateway lets the agent or other people do"
		case slices.Contains([]string{"send", "sessions", "logs", "rollback"}, verb):
			return "" // what follows is text
		}
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

// processView finds the files of /proc that show what a process holds.
var processView = regexp.MustCompile(`/proc/([^/]+)/(?:task/[^/]+/)?(?:environ|mem|fd/[^/]*)$`)

// daemonView reports whether a word names such a file of the daemon: by its number, as a shell's parent, or
// by a pattern that takes all processes.
func (f floor) daemonView(word string) bool {
	if f.DaemonPID <= 0 || strings.Contains(word, string(literal)+"$") {
		return false
	}
	m := processView.FindStringSubmatch(plain(word))
	if m == nil {
		return false
	}
	return m[1] == "$PPID" || m[1] == "${PPID}" || m[1] == strconv.Itoa(f.DaemonPID) || strings.ContainsAny(m[1], "*?[")
}
