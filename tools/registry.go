package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// The refusals of a Registry. Each error wraps one and names the tool.
var (
	// ErrInvalidSpec: the declaration is malformed; the text says where.
	ErrInvalidSpec = errors.New("invalid tool declaration")
	// ErrNameTaken: another toolset has a tool of that name.
	ErrNameTaken = errors.New("tool name is taken")
	// ErrReserved: the name belongs to the tool search bridge.
	ErrReserved = errors.New("tool name is reserved")
	// ErrNotPermitted: the owner may not do that (replace or remove what is not its own).
	ErrNotPermitted = errors.New("not permitted")
	// ErrUnknownTool: there is no such tool.
	ErrUnknownTool = errors.New("unknown tool")
)

// BridgeToolset is the only toolset that may register the reserved names.
const BridgeToolset = "tool_search"

// The names of the bridge to deferred tools.
const (
	BridgeSearch   = "tool_search"
	BridgeDescribe = "tool_describe"
	BridgeCall     = "tool_call"
)

// MCPPrefix starts the name of the toolset of an MCP server.
const MCPPrefix = "mcp-"

// nameForm is what model providers accept as a tool name.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// RegistryOptions configure a Registry. The zero value is usable.
type RegistryOptions struct {
	// Base holds the tools that all profiles share; the registry's own come first. It can't be changed
	// through this registry. Nil: none.
	Base *Registry
	// AllowOverride says whether a plugin may replace a tool of another toolset
	// (plugins.entries.<id>.allow_tool_override). Nil: none may.
	AllowOverride func(owner string) bool
	// Clock returns the time; nil takes time.Now.
	Clock func() time.Time
	Log   zerolog.Logger
}

// Registry holds the tools of one profile. Safe for concurrent use: MCP servers come and go while turns
// read, so every reader works on a snapshot.
type Registry struct {
	base          *Registry
	allowOverride func(owner string) bool
	log           zerolog.Logger
	checks        *availability

	mu      sync.RWMutex
	gen     uint64
	tools   map[string]*entry
	aliases map[string]string
	memo    toolsetMemo
}

// entry is one registered tool. It is never changed once it is in the map.
type entry struct {
	tool   Tool
	owner  string
	schema *schemaCache
}

// NewRegistry returns an empty registry.
func NewRegistry(o RegistryOptions) *Registry {
	clock := o.Clock
	if clock == nil {
		clock = time.Now
	}
	return &Registry{
		base: o.Base, allowOverride: o.AllowOverride, log: o.Log,
		checks:  newAvailability(clock, o.Log),
		tools:   map[string]*entry{},
		aliases: map[string]string{},
	}
}

// RegisterOption changes one registration.
type RegisterOption func(*registration)

type registration struct {
	owner    string
	override bool
}

// OwnedBy names the plugin that the tool's code comes from. Empty is the product itself.
func OwnedBy(plugin string) RegisterOption { return func(r *registration) { r.owner = plugin } }

// Override allows replacing a tool of another toolset. For a plugin the operator must have allowed it.
// One MCP server never replaces another's tool.
func Override() RegisterOption { return func(r *registration) { r.override = true } }

// Register adds a tool. The same name with the same toolset replaces the former one silently, which is
// what a reconnecting MCP server does. Errors: ErrInvalidSpec, ErrReserved, ErrNameTaken, ErrNotPermitted.
func (r *Registry) Register(t Tool, opts ...RegisterOption) error {
	var reg registration
	for _, o := range opts {
		o(&reg)
	}
	if err := checkTool(t); err != nil {
		return err
	}
	if isBridge(t.Name) && t.Toolset != BridgeToolset {
		return fmt.Errorf("register %s of toolset %s: %w: only toolset %s may use it", t.Name, t.Toolset, ErrReserved, BridgeToolset)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.find(t.Name); old != nil && old.tool.Toolset != t.Toolset {
		if err := r.mayReplace(old, t, reg); err != nil {
			r.log.Error().Err(err).Str("tool", t.Name).Str("toolset", t.Toolset).Msg("tool not registered")
			return err
		}
	}
	r.tools[t.Name] = &entry{tool: t, owner: reg.owner, schema: &schemaCache{}}
	r.gen++
	return nil
}

// mayReplace decides about a name that another toolset has.
func (r *Registry) mayReplace(old *entry, t Tool, reg registration) error {
	switch {
	case strings.HasPrefix(old.tool.Toolset, MCPPrefix) && strings.HasPrefix(t.Toolset, MCPPrefix):
		return fmt.Errorf("register %s of toolset %s: %w by toolset %s, and MCP servers never replace each other's tools",
			t.Name, t.Toolset, ErrNameTaken, old.tool.Toolset)
	case !reg.override:
		return fmt.Errorf("register %s of toolset %s: %w by toolset %s", t.Name, t.Toolset, ErrNameTaken, old.tool.Toolset)
	case reg.owner != "" && (r.allowOverride == nil || !r.allowOverride(reg.owner)):
		return fmt.Errorf("register %s of toolset %s: %w: set plugins.entries.%s.allow_tool_override to true to let the plugin replace it",
			t.Name, t.Toolset, ErrNotPermitted, reg.owner)
	}
	return nil
}

// Deregister removes a tool. owner is who asks, empty for the product itself; a plugin removes only what
// it registered, except in toolsets of MCP servers. Tools of the base registry can't be removed here.
// With the last tool of a toolset its aliases go too. Errors: ErrUnknownTool, ErrNotPermitted.
func (r *Registry) Deregister(name, owner string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.tools[name]
	if !ok {
		if r.base != nil && r.base.lookup(name) != nil {
			return fmt.Errorf("deregister %s: %w: it belongs to all profiles", name, ErrNotPermitted)
		}
		return fmt.Errorf("deregister %s: %w", name, ErrUnknownTool)
	}
	if owner != "" && e.owner != owner && !strings.HasPrefix(e.tool.Toolset, MCPPrefix) {
		return fmt.Errorf("deregister %s: %w: %q does not own it", name, ErrNotPermitted, owner)
	}
	delete(r.tools, name)
	r.gen++
	last := true
	for _, other := range r.tools {
		last = last && other.tool.Toolset != e.tool.Toolset
	}
	if last {
		maps.DeleteFunc(r.aliases, func(_, toolset string) bool { return toolset == e.tool.Toolset })
	}
	return nil
}

// Alias lets a toolset be named by another name too. A former meaning of the alias is replaced with a warning.
func (r *Registry) Alias(alias, toolset string) error {
	if alias == "" || toolset == "" || alias == toolset {
		return fmt.Errorf("alias %q of toolset %q: %w: two different names are needed", alias, toolset, ErrInvalidSpec)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.aliases[alias]; ok && old != toolset {
		r.log.Warn().Str("alias", alias).Str("was", old).Str("now", toolset).Msg("toolset alias replaced")
	}
	r.aliases[alias] = toolset
	r.gen++
	return nil
}

// Generation rises with each change of the registry or its base. What was computed from a registry holds
// as long as it stays the same.
func (r *Registry) Generation() uint64 {
	r.mu.RLock()
	gen := r.gen
	r.mu.RUnlock()
	if r.base != nil {
		gen += r.base.Generation()
	}
	return gen
}

// Lookup returns a tool; ok is false when there is none of that name.
func (r *Registry) Lookup(name string) (Tool, bool) {
	e := r.lookup(name)
	if e == nil {
		return Tool{}, false
	}
	return e.tool, true
}

// Spec is Lookup for those that need the declaration only, such as Plan.
func (r *Registry) Spec(name string) (Spec, bool) {
	t, ok := r.Lookup(name)
	return t.Spec, ok
}

// Names returns the names of all tools, sorted.
func (r *Registry) Names() []string {
	return slices.Sorted(maps.Keys(r.snapshot()))
}

func (r *Registry) lookup(name string) *entry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.find(name)
}

// find needs the lock. The registry's own tools hide those of the base.
func (r *Registry) find(name string) *entry {
	if e, ok := r.tools[name]; ok {
		return e
	}
	if r.base != nil {
		return r.base.lookup(name)
	}
	return nil
}

// snapshot returns all entries by name, the base's included.
func (r *Registry) snapshot() map[string]*entry {
	var all map[string]*entry
	if r.base != nil {
		all = r.base.snapshot()
	} else {
		all = map[string]*entry{}
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	maps.Copy(all, r.tools)
	return all
}

// checkTool refuses what would fail only when a model is asked.
func checkTool(t Tool) error {
	switch {
	case !nameForm.MatchString(t.Name):
		return fmt.Errorf("register %q: %w: a name is 1 to 64 of the characters A-Z a-z 0-9 _ -", t.Name, ErrInvalidSpec)
	case t.Toolset == "":
		return fmt.Errorf("register %s: %w: toolset is empty", t.Name, ErrInvalidSpec)
	case t.Run == nil:
		return fmt.Errorf("register %s: %w: it has no handler", t.Name, ErrInvalidSpec)
	case t.Parallel < Sequential || t.Parallel > Barrier:
		return fmt.Errorf("register %s: %w: parallel is %d, allowed are Sequential, Safe, PathScoped, Barrier", t.Name, ErrInvalidSpec,
			t.Parallel)
	case t.Parallel == PathScoped && t.Paths == nil:
		return fmt.Errorf("register %s: %w: a path-scoped tool needs Paths", t.Name, ErrInvalidSpec)
	}
	if err := checkParameters(t.Parameters); err != nil {
		return fmt.Errorf("register %s: %w: parameters: %w", t.Name, ErrInvalidSpec, err)
	}
	return nil
}

// checkParameters accepts nil and a JSON object whose type is object.
func checkParameters(p json.RawMessage) error {
	if p == nil {
		return nil
	}
	if trimmed := bytes.TrimSpace(p); len(trimmed) == 0 || trimmed[0] != '{' {
		return fmt.Errorf("%.40q is not a JSON object", p)
	}
	var head struct {
		Type json.RawMessage `json:"type"`
	}
	if err := json.Unmarshal(p, &head); err != nil {
		return err
	}
	if string(head.Type) != `"object"` {
		return fmt.Errorf(`type is %s, must be "object"`, orNone(string(head.Type)))
	}
	return nil
}

func isBridge(name string) bool {
	return name == BridgeSearch || name == BridgeDescribe || name == BridgeCall
}

func orNone(s string) string {
	if s == "" {
		return "missing"
	}
	return s
}
