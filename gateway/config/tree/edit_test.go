package tree

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestSetList_KeepsTheRest(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", "command_allowlist:\n  - x\n"},
		{"comments only", "# mine\n", "# mine\ncommand_allowlist:\n  - x\n"},
		{"no newline at the end", "model: demo # best", "model: demo # best\ncommand_allowlist:\n  - x\n"},
		{"other keys", "# head\nmodel: demo\nlog: {level: info} # flow\n\n# tail\n", "# head\nmodel: demo\nlog: {level: info} # flow\ncommand_allowlist:\n  - x\n\n# tail\n"},
		{"empty list", "command_allowlist: [] # none yet\nmodel: demo\n", "command_allowlist: [\"x\"] # none yet\nmodel: demo\n"},
		{"null", "command_allowlist:\nmodel: demo\n", "command_allowlist: [\"x\"]\nmodel: demo\n"},
		{"flow list", "command_allowlist: ['a # b', \"c\"] # d\n", "command_allowlist: [\"x\"] # d\n"},
		{"block list", "command_allowlist:\n  # why\n  - x # this\nmodel: demo\n", "command_allowlist:\n  # why\n  - x # this\nmodel: demo\n"},
		{"block list grows", "command_allowlist:\n- a # one\n\n# end\nmodel: demo\n", "command_allowlist:\n- x\n\n# end\nmodel: demo\n"},
		{"long text before", "agent:\n  instructions: >\n    one\n    two\n\n    three\nmodel: demo\n", "agent:\n  instructions: >\n    one\n    two\n\n    three\nmodel: demo\ncommand_allowlist:\n  - x\n"},
		{"long text at the end", "agent:\n  instructions: |\n    one\n    two\n", "agent:\n  instructions: |\n    one\n    two\ncommand_allowlist:\n  - x\n"},
	} {
		got, err := SetList([]byte(c.in), "command_allowlist", []string{"x"})
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, string(got), c.name)
	}
	got, err := SetList([]byte("command_allowlist:\n  - a # one\n  - b\n"), "command_allowlist", []string{"a", "b", "rm -rf 'x': #"})
	require.NoError(t, err)
	require.Equal(t, "command_allowlist:\n  - a # one\n  - b\n  - 'rm -rf ''x'': #'\n", string(got))
	got, err = SetList([]byte("command_allowlist: # mine\n  - a # one\n  - b\n"), "command_allowlist", nil)
	require.NoError(t, err)
	require.Equal(t, "command_allowlist: [] # mine\n", string(got))
}

func TestSetText_KeepsTheRest(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"no block", "model: demo\n", "model: demo\napprovals:\n  mode: manual\n"},
		{"empty block", "approvals:\nmodel: demo\n", "approvals:\n  mode: manual\nmodel: demo\n"},
		{"other keys of the block", "approvals:\n    timeout: 60s # short\nmodel: demo\n", "approvals:\n    timeout: 60s # short\n    mode: manual\nmodel: demo\n"},
		{"set", "approvals:\n  mode: 'off'   # careful\n  timeout: 60s\n", "approvals:\n  mode: manual   # careful\n  timeout: 60s\n"},
		{"set without a value", "approvals:\n  mode:\n  timeout: 60s\n", "approvals:\n  mode: manual\n  timeout: 60s\n"},
	} {
		got, err := SetText([]byte(c.in), "approvals.mode", "manual")
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, string(got), c.name)
	}
}

func TestEdit_RefusesWhatItCantChangeSafely(t *testing.T) {
	for _, in := range []string{
		"a: [", "{model: demo}", "- a\n", "approvals: {mode: off}", "approvals: &x\n  mode: off\nb: *x\n", "approvals: text", "approvals:\n  mode: >\n    off\n", "approvals:\n  mode: &m off\n",
		"x: &x {mode: off}\napprovals: *x\n", "approvals:\n  \"mode\": off\n", "mode: 1\nmode: 2\n",
	} {
		_, err := SetText([]byte(in), "approvals.mode", "manual")
		require.ErrorIs(t, err, ErrHandmade, in)
	}
	name := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(name, []byte("a: ["), 0o640))
	require.Error(t, Edit(name, func(text []byte) ([]byte, error) { return SetText(text, "approvals.mode", "manual") }))
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "a: [", string(data))
}

func TestEdit_ReplacesTheFileAndKeepsItsModeAndLink(t *testing.T) {
	dir := t.TempDir()
	name, link := filepath.Join(dir, "real.yaml"), filepath.Join(dir, "config.yaml")
	set := func(text []byte) ([]byte, error) { return SetText(text, "approvals.mode", "manual") }
	require.NoError(t, Edit(filepath.Join(dir, "new.yaml"), set))
	info, err := os.Stat(filepath.Join(dir, "new.yaml"))
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	require.NoError(t, os.WriteFile(name, []byte("# mine\n"), 0o640))
	require.NoError(t, os.Symlink(name, link))
	require.NoError(t, Edit(link, set))
	info, err = os.Lstat(name)
	require.NoError(t, err)
	require.EqualValues(t, 0o640, info.Mode().Perm())
	data, err := os.ReadFile(link)
	require.NoError(t, err)
	require.Equal(t, "# mine\napprovals:\n  mode: manual\n", string(data))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3, "nothing is left beside the files")
}

// Whatever the file is, an edit changes the one value, or nothing.
func FuzzEdit(f *testing.F) {
	for _, s := range []string{"", "a: b\n", "approvals:\n  mode: off # x\n", "command_allowlist:\n- a\n- b\n", "command_allowlist: [a, 'b#']", "x: |\n  a\n\n  b\n", "a: {b: c}\n# d\n", "approvals:\n", "\tx", "a: &b\n  c: d\ne: *b\n", "--- \na: 1\n...\n", "a: \"x\ny\"\n", "? a\n: b\n", "!"} {
		f.Add(s, "recursive-delete")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		before := map[string]any{}
		if yaml.Unmarshal([]byte(text), &before) != nil {
			return
		}
		for _, key := range []string{"approvals.mode", "command_allowlist"} {
			var out []byte
			var err error
			if key == "command_allowlist" {
				out, err = SetList([]byte(text), key, []string{value})
			} else {
				out, err = SetText([]byte(text), key, value)
			}
			if err != nil {
				continue
			}
			after := map[string]any{}
			if err := yaml.Unmarshal(out, &after); err != nil {
				t.Fatalf("%q became %q: %v", text, out, err)
			}
			for name, old := range before {
				if name != "approvals" && name != "command_allowlist" && !reflect.DeepEqual(old, after[name]) {
					t.Fatalf("%q became %q", text, out)
				}
			}
		}
	})
}
