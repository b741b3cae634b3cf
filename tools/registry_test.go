package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stub is a tool that does nothing.
func stub(name, toolset string) Tool {
	return Tool{Spec: Spec{Name: name, Toolset: toolset, Description: name},
		Run: func(context.Context, Call) (Result, error) { return Result{Content: toolset}, nil }}
}

// core makes stubs core tools.
func core(tools ...Tool) []Tool {
	for i := range tools {
		tools[i].Core = true
	}
	return tools
}

func newRegistry(t *testing.T, tools ...Tool) *Registry {
	t.Helper()
	r := NewRegistry(RegistryOptions{})
	for _, tool := range tools {
		require.NoError(t, r.Register(tool))
	}
	return r
}

func TestRegistry_Register_Refuses(t *testing.T) {
	with := func(change func(*Tool)) Tool {
		tool := stub("good", "set")
		change(&tool)
		return tool
	}
	for _, tt := range []struct {
		name string
		tool Tool
		want error
		says string
	}{
		{"no name", with(func(t *Tool) { t.Name = "" }), ErrInvalidSpec, "1 to 64"},
		{"a name that providers refuse", with(func(t *Tool) { t.Name = "a b" }), ErrInvalidSpec, `"a b"`},
		{"no toolset", with(func(t *Tool) { t.Toolset = "" }), ErrInvalidSpec, "toolset"},
		{"no handler", with(func(t *Tool) { t.Run = nil }), ErrInvalidSpec, "handler"},
		{"parameters that are a list", with(func(t *Tool) { t.Parameters = json.RawMessage(`[]`) }), ErrInvalidSpec, "good"},
		{"parameters that are a text", with(func(t *Tool) { t.Parameters = json.RawMessage(`"x"`) }), ErrInvalidSpec, "not a JSON object"},
		{"parameters that are blank", with(func(t *Tool) { t.Parameters = json.RawMessage(` `) }), ErrInvalidSpec, "not a JSON object"},
		{"parameters that are broken", with(func(t *Tool) { t.Parameters = json.RawMessage(`{"type":`) }), ErrInvalidSpec, "good"},
		{"parameters of another type", with(func(t *Tool) { t.Parameters = json.RawMessage(`{"type":"string"}`) }), ErrInvalidSpec, `must be "object"`},
		{"parameters without a type", with(func(t *Tool) { t.Parameters = json.RawMessage(`{}`) }), ErrInvalidSpec, "missing"},
		{"path-scoped without paths", with(func(t *Tool) { t.Parallel = PathScoped }), ErrInvalidSpec, "Paths"},
		{"unknown parallel", with(func(t *Tool) { t.Parallel = 9 }), ErrInvalidSpec, "9"},
		{"reserved name", with(func(t *Tool) { t.Name = "tool_call" }), ErrReserved, "tool_call"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := NewRegistry(RegistryOptions{})
			err := r.Register(tt.tool)
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, tt.says)
			require.Empty(t, r.Names())
			require.Zero(t, r.Generation())
		})
	}
	require.NoError(t, NewRegistry(RegistryOptions{}).Register(stub("tool_call", BridgeToolset)))
}

func TestRegistry_Register_SameName(t *testing.T) {
	for _, tt := range []struct {
		name        string
		first, then string
		opts        []RegisterOption
		want        error
	}{
		{"same toolset replaces", "a", "a", nil, nil},
		{"another toolset is refused", "a", "b", nil, ErrNameTaken},
		{"the product may override", "a", "b", []RegisterOption{Override()}, nil},
		{"a plugin may not override", "a", "b", []RegisterOption{Override(), OwnedBy("bad")}, ErrNotPermitted},
		{"a plugin may override when the operator says so", "a", "b", []RegisterOption{Override(), OwnedBy("good")}, nil},
		{"an MCP server never shadows another", "mcp-a", "mcp-b", []RegisterOption{Override()}, ErrNameTaken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := NewRegistry(RegistryOptions{AllowOverride: func(owner string) bool { return owner == "good" }})
			require.NoError(t, r.Register(stub("x", tt.first)))
			gen := r.Generation()
			err := r.Register(stub("x", tt.then), tt.opts...)
			got, _ := r.Lookup("x")
			if tt.want != nil {
				require.ErrorIs(t, err, tt.want)
				require.Equal(t, tt.first, got.Toolset, "the former one stays")
				require.Equal(t, gen, r.Generation())
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.then, got.Toolset)
			require.Greater(t, r.Generation(), gen)
		})
	}
}

func TestRegistry_Deregister(t *testing.T) {
	base := newRegistry(t, stub("shared", "base"))
	r := NewRegistry(RegistryOptions{Base: base})
	require.NoError(t, r.Register(stub("own", "plug"), OwnedBy("p1")))
	require.NoError(t, r.Register(stub("m1", "mcp-x")))
	require.NoError(t, r.Register(stub("m2", "mcp-x")))
	require.NoError(t, r.Alias("x", "mcp-x"))

	require.ErrorIs(t, r.Deregister("nope", ""), ErrUnknownTool)
	require.ErrorIs(t, r.Deregister("shared", ""), ErrNotPermitted, "the base belongs to all profiles")
	require.ErrorIs(t, r.Deregister("own", "p2"), ErrNotPermitted)
	require.NoError(t, r.Deregister("own", "p1"))
	gen := r.Generation()
	require.NoError(t, r.Deregister("m1", "p2"), "tools of MCP servers have no owner")
	require.Greater(t, r.Generation(), gen)
	names, known := r.Resolve("x")
	require.True(t, known)
	require.Equal(t, []string{"m2"}, names)
	require.NoError(t, r.Deregister("m2", ""))
	_, known = r.Resolve("x")
	require.False(t, known, "the last tool takes the aliases along")
}

func TestRegistry_Base(t *testing.T) {
	base := newRegistry(t, stub("a", "base"), stub("b", "base"))
	one, two := NewRegistry(RegistryOptions{Base: base}), NewRegistry(RegistryOptions{Base: base})
	require.ErrorIs(t, one.Register(stub("a", "other")), ErrNameTaken)
	require.NoError(t, one.Register(stub("a", "other"), Override()))
	require.NoError(t, one.Register(stub("c", "mine")))
	require.Equal(t, []string{"a", "b", "c"}, one.Names())
	require.Equal(t, []string{"a", "b"}, two.Names(), "one profile's tools are not another's (P6)")
	got, _ := one.Lookup("a")
	require.Equal(t, "other", got.Toolset)
	got, _ = two.Lookup("a")
	require.Equal(t, "base", got.Toolset)
	gen := one.Generation()
	require.NoError(t, base.Register(stub("d", "base")))
	require.Greater(t, one.Generation(), gen)
}

func TestRegistry_Concurrent(t *testing.T) {
	r := newRegistry(t, stub("a", "mcp-s"))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 50 {
				_ = r.Register(stub(fmt.Sprintf("t%d_%d", i, n), "mcp-s"))
				r.Definitions(t.Context(), nil)
				r.Resolve("all")
				_ = r.Deregister(fmt.Sprintf("t%d_%d", i, n), "")
			}
		})
	}
	wg.Wait()
	require.Equal(t, []string{"a"}, r.Names())
}

func TestRegistry_Resolve(t *testing.T) {
	r := newRegistry(t, append(core(stub("terminal", "terminal"), stub("process", "terminal"), stub("web_search", "web"), stub("read_file", "file"),
		stub("cronjob", "cronjob")), stub("mcp__x__y", "mcp-x"), stub("mcp__web__z", "mcp-web"))...)
	require.NoError(t, r.Alias("x", "mcp-x"))
	require.NoError(t, r.Alias("web", "mcp-web"))
	require.NoError(t, r.Alias("loop1", "loop2"))
	require.NoError(t, r.Alias("loop2", "loop1"))
	require.Error(t, r.Alias("a", "a"))
	for _, tt := range []struct {
		set   string
		want  []string
		known bool
	}{
		{"terminal", []string{"process", "terminal"}, true},
		{"web", []string{"mcp__web__z", "web_search"}, true}, // an alias that is also a toolset
		{"mcp-x", []string{"mcp__x__y"}, true},
		{"x", []string{"mcp__x__y"}, true},
		{"browser", nil, false}, // no tool of it is registered
		{"debugging", []string{"process", "read_file", "terminal"}, true},
		{"coding", []string{"process", "read_file", "terminal", "web_search"}, true},
		{"core", []string{"cronjob", "process", "read_file", "terminal", "web_search"}, true},
		{"all", []string{"cronjob", "mcp__web__z", "mcp__x__y", "process", "read_file", "terminal", "web_search"}, true},
		{"*", []string{"cronjob", "mcp__web__z", "mcp__x__y", "process", "read_file", "terminal", "web_search"}, true},
		{"loop1", []string{}, true},
		{"nope", nil, false},
	} {
		for range 2 { // the second answer comes from the memo
			got, known := r.Resolve(tt.set)
			require.Equal(t, tt.known, known, tt.set)
			require.ElementsMatch(t, tt.want, got, tt.set)
			require.IsNonDecreasing(t, got, tt.set)
		}
	}
	require.NoError(t, r.Register(stub("browser_back", "browser")))
	got, _ := r.Resolve("browser")
	require.Equal(t, []string{"browser_back"}, got, "the memo follows the generation")
	got[0] = "changed"
	got, _ = r.Resolve("browser")
	require.Equal(t, []string{"browser_back"}, got, "the memo is not shared")
	require.Contains(t, r.Toolsets(), "mcp-x")
	require.Contains(t, r.Toolsets(), "loop1")
	require.Contains(t, r.Toolsets(), "core")
}

func TestRegistry_Select(t *testing.T) {
	r := newRegistry(t, append(core(stub("terminal", "terminal"), stub("web_search", "web"), stub("cronjob", "cronjob")), stub("extra", "extra"))...)
	names, unknown := r.Select(nil, nil)
	require.Equal(t, []string{"cronjob", "extra", "terminal", "web_search"}, names)
	require.Empty(t, unknown)
	names, _ = r.Select([]string{}, nil)
	require.Empty(t, names)
	names, unknown = r.Select([]string{"web", "typo"}, []string{"also"})
	require.Equal(t, []string{"web_search"}, names)
	require.Equal(t, []string{"typo", "also"}, unknown)
	names, _ = r.Select(nil, []string{"terminal"})
	require.Equal(t, []string{"cronjob", "extra", "web_search"}, names)
	names, _ = r.Select(nil, []string{"coding"})
	require.Equal(t, []string{"cronjob", "extra", "terminal", "web_search"}, names, "a bundle takes no core tools away")
}

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *clock) add(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.now = c.now.Add(d) }

func TestRegistry_Available(t *testing.T) {
	c := &clock{now: time.Unix(1_000_000, 0)}
	r := NewRegistry(RegistryOptions{Clock: c.Now})
	good, probes := true, 0
	tool := stub("x", "s")
	tool.Check = func(context.Context) bool { probes++; return good }
	require.NoError(t, r.Register(tool))
	ask := func(want bool, wantProbes int, why string) {
		t.Helper()
		require.Equal(t, want, r.Available(t.Context(), "x"), why)
		require.Equal(t, wantProbes, probes, why)
	}
	_, known := r.PeekAvailable("x")
	require.False(t, known)
	require.Zero(t, probes, "peeking does not probe")

	ask(true, 1, "first")
	ask(true, 1, "cached")
	ok, known := r.PeekAvailable("x")
	require.True(t, ok && known)
	c.add(CheckTTL - 1)
	ask(true, 1, "still cached")
	c.add(1)
	good = false
	ask(true, 2, "a failure soon after a success is a flap")
	ask(true, 3, "and is not cached")
	_, known = r.PeekAvailable("x")
	require.False(t, known)
	c.add(CheckFlap - CheckTTL)
	ask(false, 4, "a failure that lasts counts")
	ask(false, 4, "and is cached")
	good = true
	c.add(CheckTTL)
	ask(true, 5, "recovered")
	good = false
	r.InvalidateChecks()
	ask(false, 6, "after invalidate nothing is remembered, the last success included")
	require.False(t, r.Available(t.Context(), "nope"))
}

func TestRegistry_Available_PanicIsNoAndCancelSaysNothing(t *testing.T) {
	r := NewRegistry(RegistryOptions{})
	bad := stub("bad", "s")
	bad.Check = func(context.Context) bool { panic("boom") }
	require.NoError(t, r.Register(bad))
	require.False(t, r.Available(t.Context(), "bad"))

	slow := stub("slow", "s")
	slow.Check = func(ctx context.Context) bool { return ctx.Err() == nil }
	require.NoError(t, r.Register(slow))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.False(t, r.Available(ctx, "slow"))
	require.True(t, r.Available(t.Context(), "slow"), "a cancelled probe is not remembered")
	require.True(t, r.ToolsetAvailable(t.Context(), "s"), "one tool is enough")
	require.False(t, r.ToolsetAvailable(t.Context(), "web"))
}

func TestRegistry_Definitions_ProbesEachFunctionOnce(t *testing.T) {
	r := NewRegistry(RegistryOptions{})
	probes := 0
	shared := func(context.Context) bool { probes++; return false }
	is := func(v bool) func(context.Context) bool { return func(context.Context) bool { return v } }
	for i, check := range []func(context.Context) bool{shared, shared, shared, is(true), is(false), nil} {
		tool := stub(fmt.Sprintf("t%d", i), "s")
		tool.Check = check
		require.NoError(t, r.Register(tool))
	}
	var names []string
	for _, d := range r.Definitions(t.Context(), nil) {
		names = append(names, d.Name)
	}
	require.Equal(t, []string{"t3", "t5"}, names, "closures over different values are different checks")
	require.Equal(t, 1, probes)
}

func TestAvailability_IsBounded(t *testing.T) {
	a := newAvailability(time.Now, RegistryOptions{}.Log)
	for i := range checkEntries + 10 {
		a.ok(t.Context(), "x", func(context.Context) bool { return i >= 0 })
	}
	require.Len(t, a.verdicts, checkEntries)
	require.Len(t, a.order, checkEntries)
}

func TestRegistry_Definitions(t *testing.T) {
	r := NewRegistry(RegistryOptions{})
	b := stub("b", "s")
	b.Parameters = json.RawMessage("{ \"type\": \"object\",\n \"properties\": {\"z\": {\"type\":\"string\"}, \"a\": {\"type\":\"string\"}} }")
	a := stub("a", "s")
	a.Describe = func() (string, json.RawMessage, error) {
		return "now", json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`), nil
	}
	e := stub("e", "s")
	e.Describe = func() (string, json.RawMessage, error) { return "lost", nil, errors.New("no") }
	p := stub("p", "s")
	p.Describe = func() (string, json.RawMessage, error) { panic("no") }
	w := stub("w", "s")
	w.Describe = func() (string, json.RawMessage, error) { return "lost", json.RawMessage(`[]`), nil }
	for _, tool := range []Tool{w, p, b, a, e} {
		require.NoError(t, r.Register(tool))
	}
	empty := `{"type":"object","properties":{}}`
	want := []Definition{
		{"a", "now", json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)},
		{"b", "b", json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}`)}, // in its order
		{"e", "e", json.RawMessage(empty)},
		{"p", "p", json.RawMessage(empty)},
		{"w", "w", json.RawMessage(empty)},
	}
	require.Equal(t, want, r.Definitions(t.Context(), nil))
	require.Equal(t, want[:2], r.Definitions(t.Context(), []string{"b", "nope", "a", "b"}))
	require.Empty(t, r.Definitions(t.Context(), []string{}))
}

func TestSanitizeSchema(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing to do", `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer","minimum":1}},"required":["a"]}`, ""},
		{"no type at the root", `{"properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"type":"string"}}}`},
		{"no properties", `{"type":"object"}`, `{"type":"object","properties":{}}`},
		{"nested object without properties", `{"type":"object","properties":{"a":{"type":"object"}}}`, `{"type":"object","properties":{"a":{"type":"object","properties":{}}}}`},
		{"combinators at the root", `{"type":"object","properties":{},"anyOf":[{"required":["a"]}],"not":{}}`, `{"type":"object","properties":{}}`},
		{"a bare type", `{"type":"object","properties":{"a":"string"}}`, `{"type":"object","properties":{"a":{"type":"string"}}}`},
		{"a property that is called type", `{"type":"object","properties":{"type":{"type":"string"},"properties":{"type":"string"}}}`, ""},
		{"type list with null", `{"type":"object","properties":{"a":{"type":["string","null"]}}}`, `{"type":"object","properties":{"a":{"type":"string","nullable":true}}}`},
		{"type list of two", `{"type":"object","properties":{"a":{"type":["string","array"]}}}`, `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"array","items":{}}]}}}`},
		{"only null", `{"type":"object","properties":{"a":{"type":["null"]}}}`, `{"type":"object","properties":{"a":{"type":"null"}}}`},
		{"anyOf with null", `{"type":"object","properties":{"a":{"description":"d","anyOf":[{"type":"integer","description":"i"},{"type":"null"}]}}}`, `{"type":"object","properties":{"a":{"description":"d","type":"integer","nullable":true}}}`},
		{"anyOf of three with null", `{"type":"object","properties":{"a":{"anyOf":[{"type":"integer"},{"type":"string"},{"type":"null"}]}}}`, `{"type":"object","properties":{"a":{"anyOf":[{"type":"integer"},{"type":"string"}],"nullable":true}}}`},
		{"array without items", `{"type":"object","properties":{"a":{"type":"array"}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{}}}}`},
		{"required that is not there", `{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b",3]}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`},
		{"required that becomes empty", `{"type":"object","properties":{},"required":["b"]}`, `{"type":"object","properties":{}}`},
		{"literals are data", `{"type":"object","properties":{"a":{"type":"string","default":{"type":["string","null"]},"enum":["string","object"],"const":{"type":"object"}}}}`, ""},
		{"inside items and definitions", `{"type":"object","properties":{"a":{"type":"array","items":{"type":["integer","null"]}}},"$defs":{"x":{"type":"object"}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer","nullable":true}}},"$defs":{"x":{"type":"object","properties":{}}}}`},
		{"additionalProperties", `{"type":"object","properties":{"m":{"type":"object","properties":{},"additionalProperties":{"type":["string","null"]}}},"additionalProperties":false}`, `{"type":"object","properties":{"m":{"type":"object","properties":{},"additionalProperties":{"type":"string","nullable":true}}},"additionalProperties":false}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := SanitizeSchema(json.RawMessage(tt.in))
			require.NoError(t, err)
			if tt.want == "" {
				require.Equal(t, tt.in, string(got), "untouched, in its order")
				return
			}
			require.JSONEq(t, tt.want, string(got))
			again, err := SanitizeSchema(got)
			require.NoError(t, err)
			require.JSONEq(t, string(got), string(again), "twice is the same")
		})
	}
	_, err := SanitizeSchema(json.RawMessage(`[]`))
	require.Error(t, err)
	_, err = SanitizeSchema(json.RawMessage(`{`))
	require.Error(t, err)
}
