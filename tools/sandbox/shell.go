package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// snapshotTimeout bounds the start files of the user's shell.
const snapshotTimeout = 15 * time.Second

// markName is the variable by which the processes of a command are found, wherever they went. Its value is random for
// each command.
const markName = "HERALD_SANDBOX_EXEC"

// shell is how commands are started: the program with its arguments before the script, the variables they
// see, and a file with functions and aliases of the login shell to source first.
type shell struct {
	argv   []string
	env    map[string]string
	source string
}

// args are the arguments that make the shell run a command. The line is an argument of its own, so that it
// needs no quoting. The report of the directory is an exit trap, so that a command that calls exit reports
// as well; without a marker nothing is reported.
func (s shell) args(line string, m *marker) []string {
	var b strings.Builder
	if s.source != "" {
		fmt.Fprintf(&b, "shopt -s expand_aliases 2>/dev/null; . %s >/dev/null 2>&1\n", quote(s.source))
	}
	if m != nil {
		fmt.Fprintf(&b, "trap %s EXIT\n", quote("__herald_rc=$?; "+m.script()+"; exit $__herald_rc"))
	}
	b.WriteString("__herald_line=$1; shift; eval \"$__herald_line\"\n")
	return append(s.argv[1:len(s.argv):len(s.argv)], b.String(), s.argv[0], line)
}

// quote makes one word of s for a POSIX shell.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// variable is a name that a shell can export.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// newCut makes the text that parts a report, and that output of start files does not contain.
func newCut(id string) string { return "--herald-" + id + "--" }

// snapshotScript is what a login bash runs to report its variables, and its functions and aliases.
func snapshotScript(cut string, initFiles []string) string {
	var b strings.Builder
	for _, f := range initFiles {
		fmt.Fprintf(&b, "[ -r %[1]s ] && . %[1]s >/dev/null 2>&1\n", quote(f))
	}
	fmt.Fprintf(&b, "printf %%s %s; env -0 || exit 9; printf %%s %s; declare -f; alias -p; printf %%s %s\n", quote(cut), quote(cut), quote(cut))
	return b.String()
}

// parseSnapshot reads what snapshotScript printed.
func parseSnapshot(out []byte, cut string, pass, deny []string) (vars map[string]string, functions []byte, err error) {
	parts := bytes.Split(out, []byte(cut))
	if len(parts) != 4 {
		return nil, nil, errors.New("the login shell's report is incomplete")
	}
	vars = Scrub(strings.Split(string(parts[1]), "\x00"), pass, deny)
	for _, name := range []string{"PWD", "OLDPWD", "SHLVL", "_", "BASH_ENV", "ENV", markName} {
		delete(vars, name)
	}
	if vars["PATH"] == "" {
		return nil, nil, errors.New("the login shell has no PATH")
	}
	return vars, parts[2], nil
}
