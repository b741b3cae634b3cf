package terminal

import (
	"regexp"
	"slices"
	"strings"
)

var (
	sqlClients   = []string{"psql", "mysql", "mariadb", "sqlite", "duckdb", "clickhouse-client", "clickhouse", "cockroach", "sqlcmd", "usql", "bq", "snowsql", "mycli", "pgcli"}
	sqlDrop      = regexp.MustCompile(`(?i)\bdrop\s+(table|database|schema|view|index|user|role|collection|keyspace|column)\b`)
	sqlTruncate  = regexp.MustCompile(`(?i)\btruncate\s+(table\s+)?["'\x60\[\w]`)
	sqlDelete    = regexp.MustCompile(`(?i)\bdelete\s+from\b`)
	sqlWhere     = regexp.MustCompile(`(?i)\bwhere\b`)
	sqlComment   = regexp.MustCompile(`(?s)/\*.*?\*/|--[^\n]*`)
	shellSystem  = regexp.MustCompile(`\bsystem\s*\(|\|\s*"|\|\s*getline`)
	interpreters = []string{"python", "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "tclsh", "osascript", "pwsh", "powershell", "Rscript", "julia", "elixir", "groovy"}
	decoders     = []string{"base64", "base32", "xxd", "openssl", "uudecode", "gunzip", "zcat", "xz", "bunzip2", "gpg", "rev", "tr"}
)

// sql are statements that take rows or tables away, in the arguments or the input of a database's client.
func (d *dangers) sql(s step) {
	switch s.name {
	case "dropdb", "dropuser":
		d.add("sql-drop")
	case "mysqladmin":
		if hasSlash(s.argv[1:], "drop") {
			d.add("sql-drop")
		}
	case "redis-cli":
		if hasSlash(s.argv[1:], "flushall") || hasSlash(s.argv[1:], "flushdb") {
			d.add("sql-truncate")
		}
	}
	if !is(s.name, sqlClients...) {
		return
	}
	texts := append(slices.Clone(s.input), prints(s.up)...)
	for _, a := range s.argv[1:] {
		texts = append(texts, plain(a))
	}
	for _, text := range texts {
		text = sqlComment.ReplaceAllString(text, " ")
		if sqlDrop.MatchString(text) {
			d.add("sql-drop")
		}
		if sqlTruncate.MatchString(text) {
			d.add("sql-truncate")
		}
		for statement := range strings.SplitSeq(text, ";") {
			if sqlDelete.MatchString(statement) && !sqlWhere.MatchString(statement) {
				d.add("sql-delete")
			}
		}
	}
}

// git are commands that lose work or history.
func (d *dangers) git(s step) {
	if s.name != "git" {
		return
	}
	var c command
	rest := c.afterOptions(s.argv[1:], wrapper{takes: "Cc"})
	if len(rest) == 0 {
		return
	}
	args := make([]string, len(rest)-1)
	for i, a := range rest[1:] {
		args[i] = plain(a)
	}
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(args, w) })
	}
	switch plain(rest[0]) {
	case "reset":
		if has("--hard", "--merge") {
			d.add("git-discard")
		}
	case "clean":
		if hasFlag(args, 'f', "force") {
			d.add("git-discard")
		}
	case "checkout", "restore", "switch":
		if has("--", ".", "-f", "--force", "--discard-changes") && !has("--staged") {
			d.add("git-discard")
		}
	case "stash":
		if has("drop", "clear") {
			d.add("git-discard")
		}
	case "push":
		forced := slices.ContainsFunc(args, func(a string) bool {
			return strings.HasPrefix(a, "--force") || strings.HasPrefix(a, "+") || a == "--mirror" || a == "--delete" || strings.HasPrefix(a, ":")
		})
		if forced || hasFlag(args, 'f', "force") || hasFlag(args, 'd', "delete") {
			d.add("git-rewrite")
		}
	case "filter-branch", "filter-repo":
		d.add("git-rewrite")
	case "branch", "tag":
		if hasFlag(args, 'D', "delete") || hasFlag(args, 'd', "delete") && plain(rest[0]) == "tag" {
			d.add("git-rewrite")
		}
	case "update-ref":
		if hasFlag(args, 'd', "delete") {
			d.add("git-rewrite")
		}
	case "reflog":
		if has("expire", "delete") {
			d.add("git-rewrite")
		}
	}
}

// services are the machine's services.
func (d *dangers) services(s step) {
	args := s.argv[1:]
	verb, rest := verbOf(args)
	stops := func(v string) bool { return slices.Contains(stopVerbs, v) || v == "isolate" }
	switch s.name {
	case "systemctl", "launchctl", "supervisorctl", "initctl", "sv", "s6-svc", "brew":
		if s.name == "brew" {
			if verb != "services" || len(rest) == 0 {
				return
			}
			verb = plain(rest[0])
		}
		if stops(verb) {
			d.add("service-control")
		}
	case "service", "rc-service", "invoke-rc.d":
		if len(rest) > 0 && stops(plain(rest[0])) {
			d.add("service-control")
		}
	case "update-rc.d", "chkconfig", "rc-update":
		d.add("service-control")
	}
}

// processes are programs that are killed, and a gateway that is started.
func (d *dangers) processes(s step) {
	args := s.argv[1:]
	switch s.name {
	case "pkill", "killall", "skill":
		hard := slices.ContainsFunc(args, func(a string) bool {
			a = strings.ToUpper(plain(a))
			return a == "-9" || a == "-KILL" || a == "-SIGKILL" || a == "--SIGNAL=9" || a == "--SIGNAL=KILL" || a == "--SIGNAL=SIGKILL"
		})
		for _, v := range valueOf(args, "-s", "--signal", "--signal") {
			v = strings.ToUpper(plain(v))
			hard = hard || v == "9" || strings.HasSuffix(v, "KILL")
		}
		if hard {
			d.add("kill-many")
		}
	case "herald":
		if ops := operands(args); slices.ContainsFunc(ops[:min(len(ops), 3)], func(o string) bool { return plain(o) == "run" }) &&
			!hasFlag(args, 'h', "help") {
			d.add("second-gateway")
		}
	}
}

var (
	engines        = []string{"docker", "podman", "nerdctl", "docker-compose", "podman-compose"}
	containerVerbs = []string{"stop", "kill", "rm", "restart", "pause", "rmi", "prune", "down", "remove", "delete", "update", "rename"}
	wholeDomains   = []string{"container", "image", "volume", "network", "system", "compose", "stack", "swarm", "builder", "pod"}
)

// containers are lifecycle commands of container engines.
func (d *dangers) containers(s step) {
	if s.name == "kubectl" || s.name == "helm" {
		if verb, _ := verbOf(s.argv[1:]); slices.Contains([]string{"delete", "drain", "uninstall", "cordon"}, verb) {
			d.add("container-control")
		}
		return
	}
	if !is(s.name, engines...) {
		return
	}
	args := s.argv[1:]
	for i, a := range args {
		a = plain(a)
		if a == "-H" || a == "-c" || strings.HasPrefix(a, "--host") || strings.HasPrefix(a, "--context") || a == "--url" || a == "--connection" {
			if s.name != "docker-compose" && i < 4 {
				d.add("container-engine")
			}
		}
		if !strings.HasPrefix(a, "-") {
			break
		}
	}
	verb, rest := verbOf(args)
	if slices.Contains(wholeDomains, verb) && len(rest) > 0 {
		verb = plain(rest[0])
	}
	switch {
	case slices.Contains(containerVerbs, verb):
		d.add("container-control")
	case verb == "use", verb == "context":
		if slices.ContainsFunc(args, func(a string) bool { return plain(a) == "use" }) {
			d.add("container-engine")
		}
	case slices.Contains([]string{"run", "create", "exec", "up"}, verb):
		if privileged(args) {
			d.add("container-engine")
		}
	}
}

// privileged reports whether options of a container give it the machine.
func privileged(args []string) bool {
	for i, a := range args {
		a = plain(a)
		value := ""
		if i+1 < len(args) {
			value = plain(args[i+1])
		}
		if name, v, ok := strings.Cut(a, "="); ok && strings.HasPrefix(a, "--") {
			a, value = name, v
		}
		switch a {
		case "--privileged", "--device":
			return value != "false" || a == "--device"
		case "--pid", "--ipc", "--userns", "--uts", "--network", "--net":
			if value == "host" && a != "--network" && a != "--net" {
				return true
			}
		case "--cap-add":
			return true
		case "-v", "--volume", "--mount":
			source, _, _ := strings.Cut(value, ":")
			if a == "--mount" {
				for part := range strings.SplitSeq(value, ",") {
					if v, ok := strings.CutPrefix(part, "source="); ok {
						source = v
					} else if v, ok := strings.CutPrefix(part, "src="); ok {
						source = v
					}
				}
			}
			if source == "/" || strings.HasSuffix(source, "docker.sock") || within(source, "/etc", "/root", "/proc", "/sys", "/dev", "/boot") {
				return true
			}
		}
	}
	return false
}

// containerHost finds DOCKER_HOST and its like, which turn to another engine.
func (d *dangers) containerHost(s step) {
	words := append(slices.Clone(s.sets), s.words...)
	for _, w := range words {
		name, _, ok := strings.Cut(w, "=")
		if ok && slices.Contains([]string{"DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST", "DOCKER_CONFIG"}, name) {
			d.add("container-engine")
		}
	}
}

// scripts are programs whose text can't be seen, or comes from somewhere else.
func (d *dangers) scripts(s step) {
	args := s.argv[1:]
	shell := slices.Contains(shells, s.name) || slices.Contains([]string{"eval", "source", "."}, s.name)
	runs := shell || is(s.name, interpreters...)
	if strings.HasPrefix(s.argv[0], string(literal)) && plain(s.argv[0]) == "" {
		d.add("computed-command")
	}
	if name := plain(s.argv[0]); name == "$@" || name == "$*" || strings.HasSuffix(name, "[@]}") || strings.HasSuffix(name, "[*]}") {
		d.add("computed-command")
	}
	if s.process && runs {
		d.add("process-substitution")
	}
	for _, u := range s.sources(shell) {
		switch name := unwrap(u.words).name; {
		case slices.Contains(downloaders, name):
			d.add("remote-script")
		case slices.Contains(decoders, name):
			d.add("hidden-script")
		}
	}
	switch {
	case is(s.name, interpreters...):
		if codeOption(s.name, args) || len(s.input) > 0 && !slices.ContainsFunc(operands(args), func(a string) bool { return plain(a) != "-" }) {
			d.add("interpreter-code")
		}
	case is(s.name, "awk", "gawk", "mawk", "nawk"):
		if slices.ContainsFunc(args, func(a string) bool { return shellSystem.MatchString(plain(a)) }) {
			d.add("interpreter-code")
		}
	case shell && s.name != "eval" && len(prints(s.up)) == 0 && len(s.up) > 0 && len(operands(args)) == 0:
		if e := unwrap(s.up[len(s.up)-1].words); slices.Contains([]string{"sed", "awk", "perl", "python"}, e.name) {
			d.add("computed-command")
		}
	}
}

// sources returns the commands whose output a shell or an interpreter runs: what comes in on its input, unless that is
// data for a program that it was given, and what its arguments have as a script.
func (s step) sources(shell bool) []simple {
	args := s.argv[1:]
	var out []simple
	switch {
	case shell:
		out = slices.Clone(s.up)
	case !is(s.name, interpreters...):
		return nil
	case !codeOption(s.name, args) && !slices.ContainsFunc(operands(args), func(a string) bool { return plain(a) != "-" }):
		out = slices.Clone(s.up)
	}
	if shell || s.process || codeOption(s.name, args) {
		for _, text := range s.nested {
			out = append(out, split(text).commands...)
		}
	}
	return out
}

// codeOption finds the option of an interpreter that holds its program.
func codeOption(name string, args []string) bool {
	letters := "ce"
	switch {
	case is(name, "python", "pypy"):
		letters = "c"
	case is(name, "perl"):
		letters = "eE"
	case is(name, "php"):
		letters = "rBRE"
	case is(name, "node", "nodejs", "bun", "deno"):
		letters = "ep"
	}
	for i, a := range args {
		a = plain(a)
		if i == 0 && a == "eval" && is(name, "deno", "bun") {
			return true
		}
		if !strings.HasPrefix(a, "-") || a == "-" || a == "--" {
			return false // the program's own arguments follow
		}
		if slices.Contains([]string{"--eval", "--print", "-Command", "-EncodedCommand", "--command", "--execute"}, a) || strings.HasPrefix(a, "--eval=") {
			return true
		}
		if !strings.HasPrefix(a, "--") && strings.ContainsAny(a[1:], letters) {
			return true
		}
		if is(name, "python", "pypy") && a == "-m" {
			return false
		}
	}
	return false
}
