package terminal

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/tools"
	"herald/tools/sandbox"
)

func TestCheck(t *testing.T) {
	d := Deps{Environment: func(tools.Caller) (sandbox.Environment, error) { return nil, errors.New("engine does not answer") }, DaemonPID: 4242}
	check := func(name string, args map[string]string, typed string) (Check, bool) {
		data, err := json.Marshal(args)
		require.NoError(t, err)
		return d.Check(tools.Call{Name: name, Args: data}, typed)
	}
	keys := func(c Check) (out []string) {
		for _, danger := range c.Dangers {
			out = append(out, danger.Key)
		}
		return out
	}
	c, ok := check("terminal", map[string]string{"command": "sudo rm -rf x"}, "ignored")
	require.True(t, ok)
	require.Equal(t, []string{"recursive-delete"}, keys(c))
	require.Contains(t, c.Candidates, "rm -rf x")
	c, _ = check("terminal", map[string]string{"command": "kill 4242"}, "")
	require.NotEmpty(t, c.Refusal)
	c, _ = check("terminal", map[string]string{"command": "echo 'x"}, "")
	require.Contains(t, c.Refusal, "quoting")

	// What is typed into a running program.
	c, ok = check("process", map[string]string{"action": "submit", "data": "rm -rf x"}, "")
	require.True(t, ok)
	require.Equal(t, []string{"recursive-delete"}, keys(c))
	c, _ = check("process", map[string]string{"action": "write", "data": "f x\n"}, "rm -r")
	require.Equal(t, []string{"recursive-delete"}, keys(c), "a command is no less dangerous in pieces")
	require.True(t, c.Typed)
	c, _ = check("process", map[string]string{"action": "submit", "data": "rm -rf /"}, "")
	require.NotEmpty(t, c.Refusal)
	c, _ = check("process", map[string]string{"action": "submit", "data": "it's fine"}, "")
	require.Empty(t, c.Refusal, "a text for another program than a shell has no quoting")
	require.Empty(t, c.Dangers)

	for _, action := range []string{"poll", "kill", "close", ""} {
		_, ok = check("process", map[string]string{"action": action, "data": "rm -rf x"}, "")
		require.False(t, ok, action)
	}
	_, ok = check("read_file", map[string]string{"command": "rm -rf x"}, "")
	require.False(t, ok)
	_, ok = d.Check(tools.Call{Name: "terminal", Args: json.RawMessage(`no`)}, "")
	require.False(t, ok)
}
