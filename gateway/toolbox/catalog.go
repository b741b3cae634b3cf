package toolbox

import (
	"context"
	"slices"
	"strings"

	"herald/gateway/model"
	"herald/sessions"
	"herald/tools"
	"herald/tools/cronjob"
)

// Names implements turn.Catalog.
func (b *Toolbox) Names(ctx context.Context, origin sessions.Origin) []string {
	cfg := b.o.Config().Tools
	enabled := cfg.Toolsets
	if own, ok := cfg.PerPlatf[string(origin.Address.Platform)]; ok {
		enabled = own
	}
	task, scheduled := b.o.Task(origin.Address)
	if scheduled {
		enabled = firstSet(task.Toolsets, b.o.Config().Cron.Toolsets, enabled)
	}
	if len(enabled) == 0 {
		enabled = nil
	}
	names, unknown := b.registry.Select(enabled, cfg.Disabled)
	for _, name := range unknown {
		b.o.Log.Warn().Str("toolset", name).Strs("known", b.registry.Toolsets()).Msg("tools: there is no such toolset")
	}
	for _, name := range cfg.Enabled {
		if _, ok := b.registry.Spec(name); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.Contains(cfg.Disabled, name) || scheduled && b.needsSomebody(name)
	})
	defs := b.registry.Definitions(ctx, names)
	out := make([]string, len(defs))
	for i, d := range defs {
		out[i] = d.Name
	}
	return out
}

// needsSomebody reports whether a tool is not for a run of a job: nobody can be asked there, and jobs that make jobs have to
// be allowed.
func (b *Toolbox) needsSomebody(name string) bool {
	spec, _ := b.registry.Spec(name)
	return spec.Attended || name == cronjob.Name && !b.o.Config().Cron.AllowScheduling
}

// firstSet returns the first list that holds something.
func firstSet(lists ...[]string) []string {
	for _, list := range lists {
		if len(list) > 0 {
			return list
		}
	}
	return nil
}

// Definitions implements turn.Catalog. What a set of names looks like changes only with the registry.
func (b *Toolbox) Definitions(ctx context.Context, names []string) []model.ToolDef {
	key := strings.Join(names, "\x00")
	gen := b.registry.Generation()
	b.mu.Lock()
	if gen != b.gen {
		clear(b.memo)
		b.gen = gen
	}
	known, ok := b.memo[key]
	b.mu.Unlock()
	if ok {
		return known
	}
	if names == nil {
		names = []string{}
	}
	defs := b.registry.Definitions(ctx, names)
	out := make([]model.ToolDef, len(defs))
	for i, d := range defs {
		out[i] = model.ToolDef{Name: d.Name, Description: d.Description, Parameters: d.Parameters}
	}
	b.mu.Lock()
	b.memo[key] = out
	b.mu.Unlock()
	return out
}

// Spec implements turn.Catalog.
func (b *Toolbox) Spec(name string) (tools.Spec, bool) { return b.registry.Spec(name) }

// Toolsets are the names of all toolsets, sorted.
func (b *Toolbox) Toolsets() []string { return b.registry.Toolsets() }
