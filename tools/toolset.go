package tools

import (
	"maps"
	"slices"
	"strings"
)

// toolset is a named group that the product ships: tools by name, and other groups.
type toolset struct {
	tools    []string
	includes []string
	// bundle groups are pictures of a whole surface: subtracting one takes away only what is not core.
	bundle bool
}

// coreTools is what the full surface offers where it is registered.
var coreTools = []string{
	"web_search", "web_extract", "terminal", "process", "read_file", "write_file", "patch", "search_files",
	"vision_analyze", "skills_list", "skill_view", "skill_manage",
	"browser_navigate", "browser_snapshot", "browser_click", "browser_type", "browser_scroll", "browser_back",
	"browser_press", "browser_get_images", "browser_vision", "browser_console", "browser_cdp", "browser_dialog",
	"todo", "memory", "session_search", "clarify", "execute_code", "delegate_task", "cronjob", "computer_use",
}

// notCoding is what the coding posture leaves out of the core.
var notCoding = []string{"cronjob", "computer_use"}

// toolsets are the groups by name. Tools that are not registered resolve to nothing.
var toolsets = map[string]toolset{
	"web":            {tools: []string{"web_search", "web_extract"}},
	"search":         {tools: []string{"web_search"}},
	"terminal":       {tools: []string{"terminal", "process"}},
	"file":           {tools: []string{"read_file", "write_file", "patch", "search_files"}},
	"todo":           {tools: []string{"todo"}},
	"memory":         {tools: []string{"memory"}},
	"session_search": {tools: []string{"session_search"}},
	"clarify":        {tools: []string{"clarify"}},
	"code_execution": {tools: []string{"execute_code"}},
	"delegation":     {tools: []string{"delegate_task"}},
	"cronjob":        {tools: []string{"cronjob"}},
	"messaging":      {tools: []string{"send_message"}},
	"skills":         {tools: []string{"skills_list", "skill_view", "skill_manage"}},
	"browser": {tools: []string{"browser_navigate", "browser_snapshot", "browser_click", "browser_type",
		"browser_scroll", "browser_back", "browser_press", "browser_get_images", "browser_vision",
		"browser_console", "browser_cdp", "browser_dialog"}},
	"vision":       {tools: []string{"vision_analyze"}},
	"computer_use": {tools: []string{"computer_use"}},

	"core":      {tools: coreTools, bundle: true},
	"safe":      {includes: []string{"web", "vision"}},
	"debugging": {includes: []string{"terminal", "web", "file"}},
	"coding": {tools: slices.DeleteFunc(slices.Clone(coreTools),
		func(n string) bool { return slices.Contains(notCoding, n) }), bundle: true},
}

// toolsetMemo keeps resolved toolsets of one generation.
type toolsetMemo struct {
	gen uint64
	of  map[string][]string
}

// toolsetEntries is how many resolved toolsets are kept.
const toolsetEntries = 256

// Toolsets returns the names of all toolsets: the shipped ones, those of registered tools, and aliases. Sorted.
func (r *Registry) Toolsets() []string {
	names := map[string]bool{}
	for name := range toolsets {
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
// also the name of a shipped toolset gives both. known is false for a name that is no toolset.
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
	if t, ok := toolsets[name]; ok {
		known = true
		for _, n := range t.tools {
			if _, registered := entries[n]; registered {
				found[n] = true
			}
		}
		for _, other := range t.includes {
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

// Select returns the tools that a session gets, sorted, and the names that are no toolset. enabled nil is
// every tool, empty is none. disabled is taken away last; a bundle there takes away only what is not core.
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
			if !(toolsets[set].bundle && slices.Contains(coreTools, n)) {
				delete(chosen, n)
			}
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

// SourceLabel is how a toolset is called in listings: without the prefix of MCP toolsets, "other" when empty.
func SourceLabel(toolset string) string {
	if s := strings.TrimPrefix(toolset, MCPPrefix); s != "" {
		return s
	}
	return "other"
}
