package tools

import (
	"maps"
	"slices"
	"strings"
)

// composite is a toolset that no tool names as its own.
type composite struct {
	includes []string // toolsets whose tools are in it
	// core puts all core tools in it. Disabling such a toolset takes away only what is not core.
	core    bool
	without []string // toolsets that are left out of the core
}

// composites are the toolsets that the product puts together. All others are what the registered tools name in Spec.Toolset,
// so that a new tool needs no entry here.
var composites = map[string]composite{
	"core":      {core: true},
	"coding":    {core: true, without: []string{"cronjob"}},
	"debugging": {includes: []string{"terminal", "file"}},
}

// toolsetMemo keeps resolved toolsets of one generation.
type toolsetMemo struct {
	gen uint64
	of  map[string][]string
}

// toolsetEntries is how many resolved toolsets are kept.
const toolsetEntries = 256

// Toolsets returns the names of all toolsets: the composites, those of registered tools, and aliases. Sorted.
func (r *Registry) Toolsets() []string {
	names := map[string]bool{}
	for name := range composites {
		names[name] = true
	}
	for _, e := range r.snapshot() {
		names[e.tool.Toolset] = true
	}
	for alias := range r.allAliases() {
		names[alias] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Resolve returns the registered tools of a toolset, sorted. "all" and "*" are every tool. An alias that is
// also the name of a toolset gives both. known is false for a name that is no toolset.
func (r *Registry) Resolve(name string) (names []string, known bool) {
	gen := r.Generation()
	r.mu.RLock()
	if cached, ok := r.memo.of[name]; ok && r.memo.gen == gen {
		r.mu.RUnlock()
		return slices.Clone(cached), true
	}
	r.mu.RUnlock()

	entries, aliases := r.snapshot(), r.allAliases()
	found := map[string]bool{}
	if name == "all" || name == "*" {
		known = true
		for n := range entries {
			found[n] = true
		}
	} else {
		known = collect(name, entries, aliases, found, map[string]bool{})
	}
	if !known {
		return nil, false
	}
	names = slices.Sorted(maps.Keys(found))

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memo.gen != gen || r.memo.of == nil || len(r.memo.of) >= toolsetEntries {
		r.memo = toolsetMemo{gen: gen, of: map[string][]string{}}
	}
	r.memo.of[name] = names
	return slices.Clone(names), true
}

// collect adds the registered tools of a toolset to found. visited makes cycles and diamonds harmless.
func collect(name string, entries map[string]*entry, aliases map[string]string, found, visited map[string]bool) bool {
	if visited[name] {
		return true
	}
	visited[name] = true
	known := false
	if c, ok := composites[name]; ok {
		known = true
		for n, e := range entries {
			if c.core && e.tool.Core && !slices.Contains(c.without, e.tool.Toolset) {
				found[n] = true
			}
		}
		for _, other := range c.includes {
			collect(other, entries, aliases, found, visited)
		}
	}
	for n, e := range entries {
		if e.tool.Toolset == name {
			known = true
			found[n] = true
		}
	}
	if canonical, ok := aliases[name]; ok {
		known = true
		collect(canonical, entries, aliases, found, visited)
	}
	return known
}

// Select returns the tools that a session gets, sorted, and the names that are no toolset. enabled nil means
// every tool, empty none. disabled is taken away last.
func (r *Registry) Select(enabled, disabled []string) (names, unknown []string) {
	if enabled == nil {
		enabled = []string{"all"}
	}
	chosen := map[string]bool{}
	for _, set := range enabled {
		tools, known := r.Resolve(set)
		if !known {
			unknown = append(unknown, set)
		}
		for _, n := range tools {
			chosen[n] = true
		}
	}
	for _, set := range disabled {
		tools, known := r.Resolve(set)
		if !known {
			unknown = append(unknown, set)
		}
		for _, n := range tools {
			if spec, _ := r.Spec(n); composites[set].core && spec.Core {
				continue
			}
			delete(chosen, n)
		}
	}
	return slices.Sorted(maps.Keys(chosen)), unknown
}

// allAliases returns the aliases, the base's included.
func (r *Registry) allAliases() map[string]string {
	all := map[string]string{}
	if r.base != nil {
		all = r.base.allAliases()
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	maps.Copy(all, r.aliases)
	return all
}

// SourceLabel is the name of a toolset in listings: without the prefix of MCP toolsets, "other" when empty.
func SourceLabel(toolset string) string {
	if s := strings.TrimPrefix(toolset, MCPPrefix); s != "" {
		return s
	}
	return "other"
}
