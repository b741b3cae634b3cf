// Package shell has what is said to a shell, wherever it runs: quoting, the script that runs one command and reports its
// directory, the snapshot of a login shell, and the markers by which reports are told from output. It starts nothing and
// reads no files.
package shell

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"herald/tools/sandbox"
)

// SnapshotTimeout bounds the start files of the user's shell.
const SnapshotTimeout = 15 * time.Second

// MarkName is the variable by which the processes of a command are found, wherever they went. Its value is random for
// each command.
const MarkName = "HERALD_SANDBOX_EXEC"

// Shell is how commands are started: the program with its arguments before the script, the variables they
// see, and a file with functions and aliases of the login shell to source first.
type Shell struct {
	Argv   []string
	Env    map[string]string
	Source string
}

// Args are the arguments that make the shell run a command. The line is an argument of its own, so that it
// needs no quoting. The report of the directory is an exit trap, so that a command that calls exit reports
// as well; without a marker nothing is reported.
func (s Shell) Args(line string, m *Marker) []string {
	var b strings.Builder
	if s.Source != "" {
		fmt.Fprintf(&b, "shopt -s expand_aliases 2>/dev/null; . %s >/dev/null 2>&1\n", Quote(s.Source))
	}
	if m != nil {
		fmt.Fprintf(&b, "trap %s EXIT\n", Quote("__herald_rc=$?; "+m.script()+"; exit $__herald_rc"))
	}
	b.WriteString("__herald_line=$1; shift; eval \"$__herald_line\"\n")
	return append(s.Argv[1:len(s.Argv):len(s.Argv)], b.String(), s.Argv[0], line)
}

// Quote makes one word of s for a POSIX shell.
func Quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Exportable reports whether a shell can export a variable of this name.
func Exportable(name string) bool { return variable.MatchString(name) }

// NewCut makes the text that parts a report, and that output of start files does not contain.
func NewCut(id string) string { return "--herald-" + id + "--" }

// SnapshotScript is what a login bash runs to report its variables, and its functions and aliases.
func SnapshotScript(cut string, initFiles []string) string {
	var b strings.Builder
	for _, f := range initFiles {
		fmt.Fprintf(&b, "[ -r %[1]s ] && . %[1]s >/dev/null 2>&1\n", Quote(f))
	}
	fmt.Fprintf(&b, "printf %%s %s; env -0 || exit 9; printf %%s %s; declare -f; alias -p; printf %%s %s\n", Quote(cut), Quote(cut), Quote(cut))
	return b.String()
}

// ParseSnapshot reads what SnapshotScript printed.
func ParseSnapshot(out []byte, cut string, pass, deny []string) (vars map[string]string, functions []byte, err error) {
	parts := bytes.Split(out, []byte(cut))
	if len(parts) != 4 {
		return nil, nil, errors.New("the login shell's report is incomplete")
	}
	vars = sandbox.Scrub(strings.Split(string(parts[1]), "\x00"), pass, deny)
	for _, name := range []string{"PWD", "OLDPWD", "SHLVL", "_", "BASH_ENV", "ENV", MarkName} {
		delete(vars, name)
	}
	if vars["PATH"] == "" {
		return nil, nil, errors.New("the login shell has no PATH")
	}
	return vars, parts[2], nil
}
