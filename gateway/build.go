package gateway

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"herald/gateway/access"
	"herald/gateway/accounts"
	"herald/gateway/approval"
	"herald/gateway/command"
	"herald/gateway/config"
	"herald/gateway/delivery"
	"herald/gateway/jobs"
	"herald/gateway/model"
	"herald/gateway/router"
	"herald/gateway/toolbox"
	"herald/gateway/turn"
	"herald/gateway/turn/ask"
	"herald/gateway/workspace"
	"herald/locales"
	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
	"herald/tools"
)

// openStore opens the database and its lock.
func (g *Gateway) openStore(ctx context.Context) error {
	store, err := sqlite.Open(ctx, sqlite.Options{Path: g.opt.Paths.DB, Log: g.log, Clock: g.now, Home: g.opt.Paths.Home,
		Profile: g.opt.Profile, Observe: g.metrics.Commit})
	if err != nil {
		return err
	}
	g.store = store
	return nil
}

// buildAccounts makes the adapters that the configuration names.
func (g *Gateway) buildAccounts() (err error) {
	g.accounts, err = accounts.New(accounts.Options{
		Config: g.cfg, Paths: g.opt.Paths, Profile: g.opt.Profile, Version: g.opt.Version, Store: g.store,
		Metrics:  func(name platforms.Name) platforms.Metrics { return g.metrics.Adapter(name) },
		Commands: command.New(command.Services{}).Infos(), Address: g.listener.Addr().String(),
		More: g.opt.Adapters, Log: g.log, Now: g.now,
	})
	return err
}

// buildTools makes the tools with what they work on.
func (g *Gateway) buildTools(runs *turn.Runs, asker *ask.Asker) (err error) {
	g.processes = toolbox.NewProcesses(toolbox.ProcessOptions{Config: g.cfg, Store: g.store, Workspace: g.workspace, Printer: g.printer,
		Row:    g.worker.Notice,
		Redact: g.opt.Redactor.String, Ended: g.metrics.ProcessEnded, Log: g.log, Now: g.now})
	commands := toolbox.Terminal(g.cfg(), g.opt.Paths.Home, g.workspace, g.processes, g.now)
	g.approvals = approval.New(approval.Options{Store: g.store, Settings: g.config, Checker: commands, Decide: g.workspace.Decide,
		Asker: asker,
		Judge: func() (model.Model, error) { return g.models.Get("") }, Printer: g.printer, Notice: g.worker.Notice, Outbox: g.worker,
		Redact: g.opt.Redactor.String, Metrics: g.metrics, Log: g.log, Now: g.now})
	g.toolbox, err = toolbox.New(toolbox.Options{Config: g.cfg, Paths: g.opt.Paths, Store: g.store, Workspace: g.workspace,
		Checkpoints: g.checkpoints,
		Processes:   g.processes, Terminal: commands, Todos: g.todos, Approver: g.approvals, Journal: turn.NewJournal(runs), Asker: asker,
		Origin: runs.Origin,
		Task:   g.terms.Task, Trusted: g.accounts.IsTrusted, More: []tools.Tool{g.scheduled.desk.Tool()}, Observe: g.metrics.Tool,
		Redactor: g.opt.Redactor, Log: g.log, Now: g.now})
	return err
}

// wakeForProcess brings the news of a background process to its conversation.
func (g *Gateway) wakeForProcess(ctx context.Context, n toolbox.News, keep func(sessions.Tx) error) error {
	return g.router.Wake(ctx, router.Wake{ID: n.ID, Source: "process", Key: n.Key, Session: n.Session, Address: n.Address, User: n.User,
		Text: n.Text, Notice: n.Notice}, keep)
}

// place says where the profile's commands run.
func (g *Gateway) place() workspace.Settings {
	return workspace.Settings{Config: g.cfg(), Paths: g.opt.Paths, Profile: g.opt.Profile, Log: g.log, Now: g.now,
		Supervisor: g.opt.Supervisor}
}

// listen takes the HTTP address. The default port gives way to a free one when something else has it; a
// port that was asked for does not.
func (g *Gateway) listen() error {
	cfg := g.cfg()
	listener, err := net.Listen("tcp", cfg.HTTP.Listen)
	if err != nil && cfg.HTTP.Listen == config.Default().HTTP.Listen {
		host, _, serr := net.SplitHostPort(cfg.HTTP.Listen)
		if serr != nil {
			return serr
		}
		g.log.Warn().Str("http.listen", cfg.HTTP.Listen).Err(err).Msg("the default port is taken; using a free one")
		listener, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return fmt.Errorf("http.listen %q: %w (stop what uses the port, or set http.listen to another one; port 0 takes a free one)", cfg.HTTP.Listen, err)
	}
	g.listener = listener
	return nil
}

// buildCore wires delivery, turns, commands and the router.
func (g *Gateway) buildCore() error {
	g.openJobs()
	g.worker = delivery.New(delivery.Options{Store: g.store, Adapters: g.accounts, Printer: g.printer, Redact: g.opt.Redactor.String,
		Observer: g.metrics, Log: g.log, Now: g.now,
		FreshFinal: func() time.Duration { return g.cfg().Streaming.FreshFinal }, Settled: g.scheduled.briefs.Settled})
	runs := turn.NewRuns()
	asker := ask.New(ask.Options{Store: g.store, Turns: runs, Outbox: g.worker, Adapters: g.accounts, Printer: g.printer,
		Allow:  func(tx sessions.Tx, s sessions.ID, kinds []string) error { return access.Allow(tx, s, kinds, g.now()) },
		Redact: g.opt.Redactor.String, Log: g.log, Now: g.now})
	g.toolLog = toolbox.NewCallLog(filepath.Join(g.opt.Paths.Logs, "tool_calls.log"), g.opt.Redactor.String, g.log)
	if err := g.buildTools(runs, asker); err != nil {
		return err
	}
	g.runner = turn.NewRunner(turn.Services{
		Runs: runs, Asker: asker,
		Store: g.store, Bus: g.toolbox.Bus(), Catalog: g.toolbox, Outbox: g.worker, Adapters: g.accounts, Printer: g.printer,
		Model: g.models.Get, Prompt: g.prompt, Display: g.terms.Display, Settings: g.terms.Turn, Origin: g.terms.Origin, Dir: g.terms.Dir,
		Background: g.scheduled.ends, Channel: g.terms.Channel, Reminder: g.todos.Reminder, ToolLog: g.toolLog.Write,
		CacheSize: g.cfg().Agent.CacheSize, CacheIdle: g.cfg().Agent.CacheIdle,
		Compacted: g.toolbox.Forget,
		Redact:    g.opt.Redactor.String, Profile: g.opt.Profile, Metrics: g.metrics, Log: g.log, Now: g.now,
	})
	g.commands = command.New(command.Services{
		Store: g.store, Printer: g.printer, Render: g.worker.Controls, Take: g.worker.Take, Origin: g.terms.Origin,
		Tier:    func(e platforms.Event) access.Tier { return g.entrance.Decide(e).Tier },
		May:     func(e platforms.Event, name string) bool { return g.entrance.Decide(e).MayCommand(name) },
		Named:   func(e platforms.Event) bool { return g.entrance.Decide(e).Named },
		SetHome: g.directory.SetHome, Forget: g.forget, Processes: g.processes, Checkpoints: g.checkpoints.Store(),
		Project: g.checkpoints.Project, Recovered: g.checkpoints.Recovered, Now: g.now, Models: g.models, Status: g.summary(),
		Compress: g.models.Summarise,
		Resend:   g.worker.Resend, AnswerAsk: asker.AnswerClick, AnswerClick: g.accounts.AnswerClick,
		MayDecide: func(e platforms.Event, requester platforms.UserID) bool {
			return g.entrance.Decide(e).MayDecide(g.cfg().Approvals.Scope, requester, e.Sender)
		},
		Decide: asker.Decide, Wake: asker.Wake, Jobs: func(e platforms.Event) command.Jobs { return g.scheduled.desk.OfEvent(e) }, Approvals: g.approvals, Confirm: func() bool { return g.cfg().Approvals.ConfirmSlash },
		BusyMode: func(at platforms.Address) string { return g.terms.Shown(at).BusyInputMode },
		Progress: func(at platforms.Address) string { return g.terms.Shown(at).ToolProgress }, Log: g.log,
	})
	porter := &access.Porter{Pairing: g.pairing, Limits: func() access.LoopLimits { return access.LoopLimitsOf(g.cfg()) },
		Printer: g.printer, Outbox: g.worker, Log: g.log, Now: g.now}
	g.router = router.New(router.Options{
		Store: g.store, Runner: g.runner, Access: admission{g.entrance, porter}, Commands: g.commands, Outbox: g.worker, Printer: g.printer,
		Metrics: g.metrics,
		Key: func(e platforms.Event) sessions.Key {
			return sessions.KeyFor(sessions.SourceOf(g.opt.Profile, e), g.terms.KeyOptions())
		},
		Mode: g.terms.Busy, Acks: g.terms.Acks,
		Freshness: func(at platforms.Address) time.Duration {
			if jobs.IsRun(at) {
				return 0 // nobody would write there again
			}
			return g.cfg().Agent.AutoContinue
		},
		MaxActive: func() int { return g.cfg().MaxConcurrentSessions },
		MaxText:   func() int64 { return int64(g.cfg().Gateway.MaxMessage) },
		Stranger:  porter.Stranger, QueueMax: g.cfg().Gateway.MaxPending, Log: g.log, Now: g.now,
	})
	g.startJobs()
	return nil
}

// summary describes the daemon to /status.
func (g *Gateway) summary() command.Summary {
	return command.Summary{Release: g.opt.Version, Started: g.started, Accounts: g.accounts.States, Sandbox: g.sandbox,
		Waiting: g.worker.Depth,
		Redact:  g.opt.Redactor.String, Now: g.now}
}

// prompt builds the system prompt of a new session.
func (g *Gateway) prompt(_ context.Context, s sessions.Session, names []string, m model.Info) string {
	return g.terms.Prompt(s, names, m, g.toolbox.Remembered)
}

// printer speaks the profile's language and writes commands as they are typed at an address.
func (g *Gateway) printer(at platforms.Address) *locales.Printer {
	p := g.texts.Choose(g.cfg().Display.Language)
	adapter, ok := g.accounts.Adapter(at.AccountOf())
	if !ok {
		return p
	}
	return p.Commands(adapter.Traits().PrefixIn(at))
}

// forget drops what is remembered of a session whose transcript a command has changed.
func (g *Gateway) forget(id sessions.ID) {
	g.runner.Invalidate(id)
	g.toolbox.Forget(id)
}

// admission is the entrance as the router asks it.
type admission struct {
	access.Entrance
	*access.Porter
}

// Decide implements router.Access.
func (a admission) Decide(e platforms.Event) router.Decision {
	d := a.Entrance.Decide(e)
	return router.Decision{Allowed: d.Allowed, Reason: d.Reason, Pair: d.Pairing, Bot: e.Sender.IsBot}
}
