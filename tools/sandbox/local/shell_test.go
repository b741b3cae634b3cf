package local

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/tools/sandbox"
)

func TestLocal_ChosenShell(t *testing.T) {
	l := newLocal(t, func(o *Options) { o.Shell = "sh" })
	r := run(t, l, sandbox.Command{Line: `cd /tmp; echo "$0"; exit 4`, Session: "a"})
	require.Contains(t, r.Output, "sh")
	require.Equal(t, 4, r.ExitCode)
	require.Equal(t, "/tmp", r.Dir, "the directory is reported as with bash")

	bash, err := exec.LookPath("bash")
	if err == nil {
		l = newLocal(t, func(o *Options) { o.Shell = bash })
		require.Equal(t, "yes\n", run(t, l, sandbox.Command{Line: `[[ a == a ]] && echo yes`}).Output)
	}
	for shell, want := range map[string]string{"no-such-shell": "is not there", "/nowhere/bash": "is not there", "true": "does not speak as sh does"} {
		l = newLocal(t, func(o *Options) { o.Shell = shell })
		_, err := l.Exec(t.Context(), sandbox.Command{Line: "echo ok"})
		require.ErrorIs(t, err, sandbox.ErrUnavailable)
		require.ErrorContains(t, err, want)
	}
}
