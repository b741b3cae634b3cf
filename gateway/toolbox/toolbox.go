package toolbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"herald/cron"
	"herald/gateway/approval"
	"herald/gateway/config"
	"herald/gateway/model"
	"herald/gateway/workspace"
	"herald/platforms"
	"herald/sessions"
	"herald/tools"
	"herald/tools/clarify"
	"herald/tools/files"
	"herald/tools/memory"
	"herald/tools/process"
	"herald/tools/redact"
	"herald/tools/sessionsearch"
	"herald/tools/terminal"
	"herald/tools/todo"
)

// Options is what a Toolbox is made from. All fields are needed but More, Observe and Log.
type Options struct {
	Config      func() *config.Config
	Paths       config.Paths
	Store       sessions.Store
	Workspace   *workspace.Workspace
	Checkpoints *workspace.Checkpoints
	Processes   *Processes
	Terminal    terminal.Deps // see Terminal
	Todos       Todos
	Approver    *approval.Approver
	Journal     tools.Journal
	Asker       clarify.Asker
	// Origin returns where a running turn comes from; ok is false when none of that id runs.
	Origin func(turn sessions.TurnID) (o sessions.Origin, ok bool)
	// Task returns what the scheduled job of a run's address does; ok is false for other addresses.
	Task func(at platforms.Address) (t cron.Task, ok bool)
	// Trusted reports accounts through which only the profile's owner comes.
	Trusted func(account platforms.Account) bool
	// More are tools that are made elsewhere.
	More []tools.Tool
	// Observe gets the events of all calls. It must return quickly.
	Observe  func(tools.Event)
	Redactor *redact.Redactor
	Log      zerolog.Logger
	Now      func() time.Time
}

// Toolbox is the profile's tools. It is safe for concurrent use.
type Toolbox struct {
	o        Options
	registry *tools.Registry
	results  *tools.ResultStore
	files    *files.Family
	memory   *memories // nil: nothing is remembered
	bus      *tools.Bus

	mu   sync.Mutex
	memo map[string][]model.ToolDef // by generation and names
	gen  uint64
}

// New registers every tool and makes the bus that runs them. Close it.
func New(o Options) (*Toolbox, error) {
	cfg := o.Config()
	b := &Toolbox{o: o, memo: map[string][]model.ToolDef{}, registry: tools.NewRegistry(tools.RegistryOptions{Clock: o.Now, Log: o.Log}),
		results: tools.NewResultStore(o.Paths.Spill, tools.ResultOptions{Clock: o.Now,
			Preview: onOff(cfg.Tools.Output.PreviewChars > 0, cfg.Tools.Output.PreviewChars)})}
	b.files = files.New(files.Deps{Environment: o.Workspace.Environment, Home: o.Paths.Home, Root: o.Paths.Home,
		SafeRoots: cfg.Security.WriteRoots, Approve: o.Approver.ApproveWrite, Now: o.Now})
	if m := cfg.Memory; m.Enabled || m.UserProfileEnabled {
		b.memory = newMemories(o, memory.Options{Dir: o.Paths.Memory,
			MemoryLimit: onOff(m.Enabled, m.CharLimit), UserLimit: onOff(m.UserProfileEnabled, m.UserCharLimit)})
	}
	var errs []error
	for _, t := range append(b.tools(cfg), o.More...) {
		errs = append(errs, b.registry.Register(o.Workspace.Deciding(t)))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	b.bus = b.newBus(cfg)
	return b, nil
}

// tools are the families of the product. A new one is added here.
func (b *Toolbox) tools(cfg *config.Config) []tools.Tool {
	all := append(b.files.Tools(),
		terminal.New(b.o.Terminal),
		b.o.Processes.Tool(process.ToolOptions{MaxWait: cfg.Terminal.Timeout}),
		todo.New(b.o.Todos),
		clarify.New(b.o.Asker),
		sessionsearch.New(sessionsearch.Options{Archive: archive{b.o.Store}, Direct: b.direct}))
	if b.memory != nil {
		all = append(all, memory.NewFor(b.memory.of(sessions.Origin{}).Targets(), b.memory.caller))
	}
	return all
}

// Terminal is what the terminal tool works with, and the check of what a call would do.
func Terminal(cfg *config.Config, home string, w *workspace.Workspace, p *Processes, now func() time.Time) terminal.Deps {
	return terminal.Deps{Environment: w.Environment, Protected: []string{home}, Timeout: cfg.Terminal.Timeout,
		Processes: p.Processes, Now: now}
}

// newBus makes the dispatch bus over the registry. It redacts what looks like a secret, or the configured secrets alone.
func (b *Toolbox) newBus(cfg *config.Config) *tools.Bus {
	var redactor tools.Redactor = b.o.Redactor
	if !cfg.Security.RedactSecrets {
		redactor = b.o.Redactor.Known()
	}
	bus := tools.NewBus(tools.Options{Registry: b.registry, Journal: b.o.Journal, Approver: b.o.Approver, Checkpointer: b.o.Checkpoints,
		Redactor: redactor, Results: b.results, Clock: b.o.Now, Log: b.o.Log,
		DefaultTimeout: cfg.Tools.Timeouts.Sequential, BatchTimeout: cfg.Tools.Timeouts.Batch, Grace: cfg.Agent.InterruptGrace,
		MaxResult: cfg.Tools.Output.MaxChars, BatchMax: cfg.Tools.Output.TurnMaxChars})
	if b.o.Observe != nil {
		bus.Subscribe(b.o.Observe)
	}
	bus.Subscribe(b.files.Observe)
	return bus
}

// Bus runs the tools.
func (b *Toolbox) Bus() *tools.Bus { return b.bus }

// Close refuses new calls and waits for those that run, at most until ctx ends.
func (b *Toolbox) Close(ctx context.Context) error { return b.bus.Close(ctx) }

// Prune removes stored results that are too old.
func (b *Toolbox) Prune() error {
	_, err := b.results.Prune()
	return err
}

// Forget drops what the tools know of a session whose transcript was changed: which files it has read.
func (b *Toolbox) Forget(session sessions.ID) { b.files.Forget(string(session)) }

// Remembered is what the prompt of a conversation says of its memory and of its person, "" for nothing.
func (b *Toolbox) Remembered(o sessions.Origin) (notes, person string) {
	if b.memory == nil {
		return "", ""
	}
	return b.memory.of(o).Snapshot()
}

// direct reports whether a call comes from a chat with one person alone.
func (b *Toolbox) direct(c tools.Caller) bool {
	o, ok := b.o.Origin(sessions.TurnID(c.Turn))
	return ok && o.ChatType == platforms.DM
}

// onOff is a limit, or -1 where there is nothing to limit.
func onOff(on bool, limit int) int {
	if on {
		return limit
	}
	return -1
}
