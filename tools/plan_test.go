package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// planSpecs are declarations like those of the product.
func planSpecs(name string) (Spec, bool) {
	pathOf := func(write bool) func(Call) ([]string, bool, bool) {
		return func(c Call) ([]string, bool, bool) {
			var a struct {
				Path  string   `json:"path"`
				Paths []string `json:"paths"`
				Panic bool     `json:"panic"`
			}
			if json.Unmarshal(c.Args, &a) != nil {
				return nil, write, false
			}
			if a.Panic {
				panic("no path")
			}
			if a.Path != "" {
				a.Paths = append(a.Paths, a.Path)
			}
			return a.Paths, write, len(a.Paths) > 0
		}
	}
	specs := map[string]Spec{
		"web_search":             {Parallel: Safe},
		"tool_search":            {Parallel: Safe},
		"tool_describe":          {Parallel: Safe},
		"mcp__linear__list":      {Parallel: Safe},
		"mcp__slack__post":       {},
		"read_file":              {Parallel: PathScoped, Paths: pathOf(false)},
		"write_file":             {Parallel: PathScoped, Paths: pathOf(true)},
		"terminal":               {},
		"clarify":                {Parallel: Barrier},
		"path_scoped_but_no_fun": {Parallel: PathScoped},
	}
	s, ok := specs[name]
	return s, ok
}

// show writes segments as "P0-2 S2-3".
func show(segments []Segment) string {
	var parts []string
	for _, s := range segments {
		kind := "S"
		if s.Parallel {
			kind = "P"
		}
		parts = append(parts, fmt.Sprintf("%s%d-%d", kind, s.Start, s.End))
	}
	return strings.Join(parts, " ")
}

func TestPlan(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "real"), 0o755))
	require.NoError(t, os.Symlink("real", filepath.Join(dir, "link")))
	for _, tt := range []struct {
		name  string
		calls []string // tool and arguments
		want  string
	}{
		{"none", nil, ""},
		{"one safe call is sequential", []string{`web_search {}`}, "S0-1"},
		{"safe calls run together", []string{`web_search {}`, `web_search {"q":1}`}, "P0-2"},
		{"blank arguments are an empty object", []string{`web_search`, `web_search {}`}, "P0-2"},
		{"bridge lookups batch", []string{`tool_search {"queries":["a"]}`, `tool_describe {"names":["a"]}`}, "P0-2"},
		{"unknown tool is alone", []string{`web_search {}`, `nope {}`, `web_search {}`}, "S0-3"},
		{"barrier splits", []string{`web_search {}`, `web_search {}`, `clarify {}`, `web_search {}`, `web_search {}`}, "P0-2 S2-3 P3-5"},
		{"neighbours that are sequential merge", []string{`terminal {}`, `clarify {}`, `web_search {}`, `terminal {}`}, "S0-4"},
		{"broken arguments", []string{`web_search {}`, `web_search {"a"`, `web_search {}`}, "S0-3"},
		{"arguments that are no object", []string{`web_search {}`, `web_search [1]`}, "S0-2"},
		{"readers of one file", []string{`read_file {"path":"a"}`, `read_file {"path":"a"}`}, "P0-2"},
		{"writers of different files", []string{`write_file {"path":"a"}`, `write_file {"path":"b"}`}, "P0-2"},
		{"names that only begin alike", []string{`write_file {"path":"a"}`, `write_file {"path":"ab"}`}, "P0-2"},
		{"writer over reader starts a new run", []string{`read_file {"path":"a"}`, `read_file {"path":"b"}`, `write_file {"path":"a"}`, `read_file {"path":"c"}`}, "P0-2 P2-4"},
		{"reader below a written folder", []string{`write_file {"path":"d"}`, `read_file {"path":"d/x/y"}`}, "S0-2"},
		{"folder above a written file", []string{`write_file {"path":"d/x/y"}`, `read_file {"path":"d"}`}, "S0-2"},
		{"dots are resolved", []string{`write_file {"path":"d/../a"}`, `read_file {"path":"./a"}`}, "S0-2"},
		{"links are resolved", []string{`write_file {"path":"real/new"}`, `read_file {"path":"link/new"}`}, "S0-2"},
		{"absolute and relative", []string{`write_file {"path":"a"}`, `read_file {"path":"` + dir + `/a"}`}, "S0-2"},
		{"no path is a barrier", []string{`web_search {}`, `read_file {}`, `web_search {}`}, "S0-3"},
		{"a panic is a barrier", []string{`web_search {}`, `read_file {"panic":true}`}, "S0-2"},
		{"no function is a barrier", []string{`web_search {}`, `path_scoped_but_no_fun {}`}, "S0-2"},
		{"several paths", []string{`write_file {"paths":["a","b"]}`, `read_file {"path":"c"}`, `read_file {"path":"b"}`}, "P0-2 S2-3"},
		{"safe beside scoped", []string{`web_search {}`, `write_file {"path":"a"}`, `read_file {"path":"b"}`}, "P0-3"},

		{"bridged parallel call beside a direct one", []string{`tool_call {"name":"mcp__linear__list","arguments":{}}`, `web_search {}`}, "P0-2"},
		{"bridged call of a server that did not opt in", []string{`web_search {}`, `tool_call {"name":"mcp__slack__post","arguments":{}}`, `web_search {}`}, "S0-3"},
		{"arguments as text", []string{`tool_call {"name":"web_search","arguments":"{\"a\":1}"}`, `web_search {}`}, "P0-2"},
		{"arguments blank or null", []string{`tool_call {"name":"web_search","arguments":""}`, `tool_call {"name":"web_search","arguments":null}`, `tool_call {"name":"web_search"}`}, "P0-3"},
		{"unparseable wrapper", []string{`web_search {}`, `tool_call {"name":`}, "S0-2"},
		{"unparseable inner arguments", []string{`web_search {}`, `tool_call {"name":"web_search","arguments":"{"}`}, "S0-2"},
		{"inner arguments no object", []string{`web_search {}`, `tool_call {"name":"web_search","arguments":[1]}`}, "S0-2"},
		{"nameless wrapper", []string{`web_search {}`, `tool_call {"arguments":{}}`}, "S0-2"},
		{"wrapper in a wrapper", []string{`web_search {}`, `tool_call {"name":"tool_call","arguments":{"name":"web_search"}}`}, "S0-2"},
		{"bridged write and read of one path", []string{`tool_call {"name":"write_file","arguments":{"path":"a"}}`, `read_file {"path":"a"}`}, "S0-2"},
		{"bridged write and read of two paths", []string{`tool_call {"name":"write_file","arguments":{"path":"a"}}`, `read_file {"path":"b"}`}, "P0-2"},
		{"list shape", []string{`tool_call {"calls":[{"name":"web_search","arguments":{}}]}`, `web_search {}`}, "P0-2"},
		{"list shape as one object or text", []string{`tool_call {"calls":{"name":"web_search"}}`, `tool_call {"calls":"[{\"name\":\"web_search\"}]"}`}, "P0-2"},
		{"list with one that is not safe", []string{`tool_call {"calls":[{"name":"web_search"},{"name":"terminal"}]}`, `web_search {}`}, "S0-2"},
		{"empty list", []string{`tool_call {"calls":[]}`, `web_search {}`}, "S0-2"},
		{"both shapes at once", []string{`tool_call {"name":"web_search","calls":[{"name":"web_search"}]}`, `web_search {}`}, "S0-2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var calls []Call
			for i, c := range tt.calls {
				name, args, _ := strings.Cut(c, " ")
				calls = append(calls, Call{ID: CallID(fmt.Sprint(i)), Name: name, Args: json.RawMessage(args), Caller: Caller{Dir: dir}})
			}
			require.Equal(t, tt.want, show(Plan(calls, planSpecs)))
		})
	}
}

// Order never changes, nothing is lost, and no two calls of one parallel segment touch the same path when one writes.
func TestPlan_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type touch struct {
			path  string
			write bool
		}
		var calls []Call
		var touches []touch
		for i := range rapid.IntRange(0, 14).Draw(t, "n") {
			name := rapid.SampledFrom([]string{"web_search", "terminal", "clarify", "read_file", "write_file", "tool_call"}).Draw(t, "tool")
			path := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 1, 3).Draw(t, "path"), "/")
			args := fmt.Sprintf(`{"path":%q}`, path)
			tch := touch{}
			switch name {
			case "read_file", "write_file":
				tch = touch{path, name == "write_file"}
			case "tool_call":
				inner := rapid.SampledFrom([]string{"read_file", "write_file"}).Draw(t, "inner")
				args = fmt.Sprintf(`{"name":%q,"arguments":%s}`, inner, args)
				tch = touch{path, inner == "write_file"}
			}
			calls = append(calls, Call{ID: CallID(fmt.Sprint(i)), Name: name, Args: json.RawMessage(args), Caller: Caller{Dir: "/nonexistent"}})
			touches = append(touches, tch)
		}
		next := 0
		wasSequential := false
		for _, s := range Plan(calls, planSpecs) {
			require.Equal(t, next, s.Start)
			require.Greater(t, s.End, s.Start)
			next = s.End
			require.False(t, wasSequential && !s.Parallel, "sequential neighbours merge")
			wasSequential = !s.Parallel
			if !s.Parallel {
				continue
			}
			require.Greater(t, s.End-s.Start, 1)
			for i := s.Start; i < s.End; i++ {
				require.NotContains(t, []string{"terminal", "clarify"}, calls[i].Name)
				for j := i + 1; j < s.End; j++ {
					a, b := touches[i], touches[j]
					if a.path == "" || b.path == "" || !a.write && !b.write {
						continue
					}
					pa, pb := strings.Split(a.path, "/"), strings.Split(b.path, "/")
					n := min(len(pa), len(pb))
					require.False(t, slices.Equal(pa[:n], pb[:n]), "%s beside %s", a.path, b.path)
				}
			}
		}
		require.Equal(t, len(calls), next)
	})
}

func TestCanonicalPath(t *testing.T) {
	_, ok := CanonicalPath("", "relative")
	require.False(t, ok)
	_, ok = CanonicalPath("/a", "")
	require.False(t, ok)
	_, ok = CanonicalPath("/a", "x\x00y")
	require.False(t, ok)
	got, ok := CanonicalPath("/nonexistent", "b/../c")
	require.True(t, ok)
	require.Equal(t, "/nonexistent/c", got)
}
