package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"herald/gateway/model"
	"herald/gateway/turn"
	"herald/sessions"
	"herald/tools"
	"herald/tools/clarify"
	"herald/tools/cronjob"
	"herald/tools/files"
	"herald/tools/memory"
	"herald/tools/sessionsearch"
	"herald/tools/terminal"
	"herald/tools/todo"
)

// catalog is the profile's tools.
type catalog struct {
	g        *Gateway
	registry *tools.Registry
	results  *tools.ResultStore
	asker    *asker
	files    *files.Family
	terminal terminal.Deps

	mu   sync.Mutex
	memo map[string][]model.ToolDef // by generation and names
	gen  uint64
}

// asker puts questions through the runner, which exists only after the bus.
type asker struct{ runner *turn.Runner }

func (a *asker) Ask(ctx context.Context, call tools.Call, question string, choices []string) (string, error) {
	return a.runner.Ask(ctx, call, question, choices)
}

// buildTools makes the environment and registers every tool.
func (g *Gateway) buildTools() error {
	cfg := g.cfg()
	g.catalog = &catalog{g: g, registry: tools.NewRegistry(tools.RegistryOptions{Clock: g.now, Log: g.log}), asker: &asker{},
		results: tools.NewResultStore(g.opt.Paths.Spill, tools.ResultOptions{Clock: g.now, Preview: onOff(cfg.Tools.Output.PreviewChars > 0, cfg.Tools.Output.PreviewChars)}), memo: map[string][]model.ToolDef{}}
	environment := g.workspace.Environment
	var all []tools.Tool
	g.catalog.files = files.New(files.Deps{Environment: environment, Home: g.opt.Paths.Home, Root: g.opt.Paths.Home, SafeRoots: cfg.Security.WriteRoots, Approve: g.approvals.ApproveWrite, Now: g.now})
	all = append(all, g.catalog.files.Tools()...)
	all = append(all, g.newProcesses(environment)...)
	g.catalog.terminal = terminal.Deps{Environment: environment, Protected: []string{g.opt.Paths.Home}, Timeout: cfg.Terminal.Timeout, Processes: g.processes, Now: g.now}
	all = append(all, terminal.New(g.catalog.terminal),
		todo.New(todos{g}), clarify.New(g.catalog.asker), sessionsearch.New(sessionsearch.Options{Archive: searcher{g}, Direct: g.direct}), g.scheduled.desk.Tool())
	if cfg.Memory.Enabled || cfg.Memory.UserProfileEnabled {
		g.memory = newMemories(g, memory.Options{Dir: g.opt.Paths.Memory,
			MemoryLimit: onOff(cfg.Memory.Enabled, cfg.Memory.CharLimit), UserLimit: onOff(cfg.Memory.UserProfileEnabled, cfg.Memory.UserCharLimit)})
		all = append(all, memory.NewFor(g.memory.of(sessions.Origin{}).Targets(), g.memory.caller))
	}
	var errs []error
	for _, t := range all {
		errs = append(errs, g.catalog.registry.Register(g.workspace.Deciding(t)))
	}
	return errors.Join(errs...)
}

// onOff is a limit, or -1 where there is nothing to limit.
func onOff(on bool, limit int) int {
	if on {
		return limit
	}
	return -1
}

// toolRedactor takes secrets out of tool results: what looks like one, or the configured ones alone.
func (g *Gateway) toolRedactor() tools.Redactor {
	if g.cfg().Security.RedactSecrets {
		return g.opt.Redactor
	}
	return g.opt.Redactor.Known()
}

// bus makes the dispatch bus over the registry.
func (c *catalog) bus(journal tools.Journal) *tools.Bus {
	cfg := c.g.cfg()
	bus := tools.NewBus(tools.Options{Registry: c.registry, Journal: journal, Approver: c.g.approvals, Checkpointer: c.g.checkpoints, Redactor: c.g.toolRedactor(), Results: c.results, Clock: c.g.now,
		Log: c.g.log, DefaultTimeout: cfg.Tools.Timeouts.Sequential, BatchTimeout: cfg.Tools.Timeouts.Batch, Grace: cfg.Agent.InterruptGrace,
		MaxResult: cfg.Tools.Output.MaxChars, BatchMax: cfg.Tools.Output.TurnMaxChars})
	bus.Subscribe(c.g.metrics.Tool)
	bus.Subscribe(c.files.Observe)
	return bus
}

// Names implements turn.Catalog.
func (c *catalog) Names(ctx context.Context, origin sessions.Origin) []string {
	cfg := c.g.cfg().Tools
	enabled := cfg.Toolsets
	if own, ok := cfg.PerPlatf[string(origin.Address.Platform)]; ok {
		enabled = own
	}
	task, scheduled := c.g.task(origin.Address)
	if scheduled {
		enabled = firstSet(task.Toolsets, c.g.cfg().Cron.Toolsets, enabled)
	}
	if len(enabled) == 0 {
		enabled = nil
	}
	names, unknown := c.registry.Select(enabled, cfg.Disabled)
	for _, name := range unknown {
		c.g.log.Warn().Str("toolset", name).Strs("known", c.registry.Toolsets()).Msg("tools: there is no such toolset")
	}
	for _, name := range cfg.Enabled {
		if _, ok := c.registry.Spec(name); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return slices.Contains(cfg.Disabled, name) || scheduled && c.needsSomebody(name)
	})
	defs := c.registry.Definitions(ctx, names)
	out := make([]string, len(defs))
	for i, d := range defs {
		out[i] = d.Name
	}
	return out
}

// needsSomebody reports whether a tool is not for a run of a job: nobody can be asked there, its output is delivered by
// itself, and jobs that make jobs have to be allowed.
func (c *catalog) needsSomebody(name string) bool {
	spec, _ := c.registry.Spec(name)
	return name == clarify.Name || spec.Toolset == "messaging" || name == cronjob.Name && !c.g.cfg().Cron.AllowScheduling
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
func (c *catalog) Definitions(ctx context.Context, names []string) []model.ToolDef {
	key := strings.Join(names, "\x00")
	gen := c.registry.Generation()
	c.mu.Lock()
	if gen != c.gen {
		clear(c.memo)
		c.gen = gen
	}
	known, ok := c.memo[key]
	c.mu.Unlock()
	if ok {
		return known
	}
	if names == nil {
		names = []string{}
	}
	defs := c.registry.Definitions(ctx, names)
	out := make([]model.ToolDef, len(defs))
	for i, d := range defs {
		out[i] = model.ToolDef{Name: d.Name, Description: d.Description, Parameters: d.Parameters}
	}
	c.mu.Lock()
	c.memo[key] = out
	c.mu.Unlock()
	return out
}

// Spec implements turn.Catalog.
func (c *catalog) Spec(name string) (tools.Spec, bool) { return c.registry.Spec(name) }

// todos keeps the lists of the todo tool as durable values.
type todos struct{ g *Gateway }

const spaceTodo = "todo"

func (t todos) Load(ctx context.Context, session string) (todo.List, error) {
	var l todo.List
	err := t.g.store.View(ctx, func(v sessions.View) error {
		value, err := v.Value(spaceTodo, session)
		if err != nil {
			return err
		}
		return json.Unmarshal(value.Data, &l)
	})
	if errors.Is(err, sessions.ErrNotFound) {
		err = nil
	}
	return l, err
}

func (t todos) Save(ctx context.Context, session string, l todo.List) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return t.g.store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		return tx.SetValue(spaceTodo, session, data, t.g.now())
	})
}
