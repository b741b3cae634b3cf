package gateway

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"herald/gateway/access"
	"herald/gateway/accounts"
	"herald/gateway/admin"
	"herald/gateway/approval"
	"herald/gateway/command"
	"herald/gateway/config"
	"herald/gateway/delivery"
	"herald/gateway/directory"
	"herald/gateway/jobs"
	"herald/gateway/model"
	"herald/gateway/model/pool"
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
	"herald/tools/redact"
)

// Options is what a Gateway is made from.
type Options struct {
	// Config and Report are a loaded configuration without errors; Source is where they came from, for reloads.
	Config *config.Config
	Report *config.Report
	Source config.Source
	Paths  config.Paths
	// Profile is the profile's name, config.DefaultProfile for the main one.
	Profile string
	Version string
	Log     zerolog.Logger
	// Redactor is the one that the log uses; it learns the profile's secrets.
	Redactor *redact.Redactor
	// SetLevel changes the least level of the log while it runs; nil: the level stays.
	SetLevel func(level string)
	// Supervisor is the command that keeps background processes (local.SelfSupervisor); empty: there is no background.
	Supervisor []string
	// Adapters are further ones that the configuration does not name (tests).
	Adapters []platforms.Adapter
	Now      func() time.Time
}

// Gateway is one profile, running.
type Gateway struct {
	opt     Options
	log     zerolog.Logger
	now     func() time.Time
	started time.Time

	config  *inForce
	texts   *texts
	metrics *admin.Metrics

	store       *sqlite.Store
	workspace   *workspace.Workspace
	toolbox     *toolbox.Toolbox
	toolLog     *toolbox.CallLog
	todos       toolbox.Todos
	processes   *toolbox.Processes
	checkpoints *workspace.Checkpoints
	approvals   *approval.Approver
	courier     *workspace.Courier
	models      *pool.Pool
	gate        *access.Gate
	entrance    access.Entrance
	pairing     *access.Pairing
	accounts    *accounts.Accounts
	rules       platforms.Rulebook // of every kind of platform
	// directory knows rooms and people by name.
	directory *directory.Directory
	worker    *delivery.Worker
	runner    *turn.Runner
	commands  *command.Registry
	router    *router.Router
	scheduled scheduled
	admin     *admin.Server
	mux       *http.ServeMux
	listener  net.Listener
	http      *http.Server

	wg sync.WaitGroup
}

// New opens the profile's store and wires everything. Nothing runs and nothing is sent yet. On an error
// everything that was opened is closed again.
func New(ctx context.Context, opt Options) (g *Gateway, err error) {
	g = &Gateway{opt: opt, log: opt.Log, now: opt.Now, rules: opt.Config.Platforms.Rules()}
	opened := g // what is returned on an error is nil
	if g.now == nil {
		g.now = time.Now
	}
	g.started = g.now()
	g.config = newInForce(opt.Config, cmp.Or(opt.Source.File, opt.Paths.Config))
	defer func() {
		if err != nil {
			opened.close()
		}
	}()
	catalogs, err := locales.New(locales.Options{Overlay: opt.Paths.Locales, Problem: func(err error) {
		g.log.Warn().Err(err).Msg("a file of texts can't be used")
	}})
	if err != nil {
		return nil, err
	}
	g.texts = &texts{g: g, catalogs: catalogs}
	g.metrics = admin.NewMetrics()
	if err := g.openStore(ctx); err != nil {
		return nil, err
	}
	g.secureHome()
	if g.workspace, err = workspace.Open(g.place()); err != nil {
		return nil, err
	}
	g.checkpoints = workspace.NewCheckpoints(g.workspace)
	g.courier = g.workspace.Courier(func() []string { return g.cfg().Gateway.MediaAllowDirs })
	g.todos = toolbox.NewTodos(g.store, g.log, g.now)
	if g.models, err = pool.Open(ctx, pool.Options{Config: g.cfg, Reminder: g.todos.Reminder, Log: g.log}); err != nil {
		return nil, err
	}
	if g.pairing, err = access.NewPairing(ctx, g.store, g.rules, g.now); err != nil {
		return nil, fmt.Errorf("read who was let in: %w", err)
	}
	g.gate = access.New(access.PolicyOf(opt.Config), g.pairing)
	if err := g.listen(); err != nil {
		return nil, err
	}
	if err := g.buildAccounts(); err != nil {
		return nil, err
	}
	g.entrance = access.Entrance{Gate: g.gate, Trusted: g.accounts.IsTrusted}
	if g.directory, err = directory.Open(ctx, directory.Options{Store: g.store, Accounts: g.accounts, Config: g.cfg, Rules: g.rules, Log: g.log, Now: g.now}); err != nil {
		return nil, err
	}
	if err := g.buildCore(); err != nil {
		return nil, err
	}
	g.mount()
	return g, nil
}

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
	g.processes = toolbox.NewProcesses(toolbox.ProcessOptions{Config: g.cfg, Store: g.store, Workspace: g.workspace, Printer: g.texts.printer, Row: g.worker.Notice,
		Redact: g.opt.Redactor.String, Ended: g.metrics.ProcessEnded, Log: g.log, Now: g.now})
	commands := toolbox.Terminal(g.cfg(), g.opt.Paths.Home, g.workspace, g.processes, g.now)
	g.approvals = approval.New(approval.Options{Store: g.store, Settings: g.config, Checker: commands, Decide: g.workspace.Decide, Asker: asker,
		Judge: func() (model.Model, error) { return g.models.Get("") }, Printer: g.texts.printer, Notice: g.worker.Notice, Outbox: g.worker,
		Redact: g.opt.Redactor.String, Metrics: g.metrics, Log: g.log, Now: g.now})
	g.toolbox, err = toolbox.New(toolbox.Options{Config: g.cfg, Paths: g.opt.Paths, Store: g.store, Workspace: g.workspace, Checkpoints: g.checkpoints,
		Processes: g.processes, Terminal: commands, Todos: g.todos, Approver: g.approvals, Journal: turn.NewJournal(runs), Asker: asker, Origin: runs.Origin,
		Task: g.task, Trusted: g.accounts.IsTrusted, More: []tools.Tool{g.scheduled.desk.Tool()}, Observe: g.metrics.Tool,
		Redactor: g.opt.Redactor, Log: g.log, Now: g.now})
	return err
}

// wakeForProcess brings the news of a background process to its conversation.
func (g *Gateway) wakeForProcess(ctx context.Context, n toolbox.News, keep func(sessions.Tx) error) error {
	return g.router.Wake(ctx, router.Wake{ID: n.ID, Source: "process", Key: n.Key, Session: n.Session, Address: n.Address, User: n.User, Text: n.Text, Notice: n.Notice}, keep)
}

// place says where the profile's commands run.
func (g *Gateway) place() workspace.Settings {
	return workspace.Settings{Config: g.cfg(), Paths: g.opt.Paths, Profile: g.opt.Profile, Log: g.log, Now: g.now, Supervisor: g.opt.Supervisor}
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
	g.worker = delivery.New(delivery.Options{Store: g.store, Adapters: g.accounts, Printer: g.texts.printer, Redact: g.opt.Redactor.String,
		Observer: g.metrics, Log: g.log, Now: g.now,
		FreshFinal: func() time.Duration { return g.cfg().Streaming.FreshFinal }, Settled: g.scheduled.briefs.Settled})
	runs := turn.NewRuns()
	asker := ask.New(ask.Options{Store: g.store, Turns: runs, Outbox: g.worker, Adapters: g.accounts, Printer: g.texts.printer,
		Allow:  func(tx sessions.Tx, s sessions.ID, kinds []string) error { return access.Allow(tx, s, kinds, g.now()) },
		Redact: g.opt.Redactor.String, Log: g.log, Now: g.now})
	g.toolLog = toolbox.NewCallLog(filepath.Join(g.opt.Paths.Logs, "tool_calls.log"), g.opt.Redactor.String, g.log)
	if err := g.buildTools(runs, asker); err != nil {
		return err
	}
	g.runner = turn.NewRunner(turn.Services{
		Runs: runs, Asker: asker,
		Store: g.store, Bus: g.toolbox.Bus(), Catalog: g.toolbox, Outbox: g.worker, Adapters: g.accounts, Printer: g.texts.printer,
		Model: g.models.Get, Prompt: g.prompt, Display: g.display, Settings: g.settings, Origin: g.origin, Dir: g.dir,
		Background: g.scheduled.ends, Channel: g.channel, Reminder: g.todos.Reminder, ToolLog: g.toolLog.Write,
		CacheSize: g.cfg().Agent.CacheSize, CacheIdle: g.cfg().Agent.CacheIdle,
		Compacted: g.toolbox.Forget,
		Redact:    g.opt.Redactor.String, Profile: g.opt.Profile, Metrics: g.metrics, Log: g.log, Now: g.now,
	})
	g.commands = command.New(command.Services{
		Store: g.store, Printer: g.texts.printer, Render: g.worker.Controls, Take: g.worker.Take, Origin: g.origin,
		Tier:    func(e platforms.Event) access.Tier { return g.entrance.Decide(e).Tier },
		May:     func(e platforms.Event, name string) bool { return g.entrance.Decide(e).MayCommand(name) },
		Named:   func(e platforms.Event) bool { return g.entrance.Decide(e).Named },
		SetHome: g.directory.SetHome, Forget: g.forget, Processes: g.processes, Checkpoints: g.checkpoints.Store(), Project: g.checkpoints.Project, Recovered: g.checkpoints.Recovered, Now: g.now, Models: g.models, Status: g.summary(), Compress: g.models.Summarise,
		Resend: g.worker.Resend, AnswerAsk: asker.AnswerClick, AnswerClick: g.accounts.AnswerClick,
		MayDecide: func(e platforms.Event, requester platforms.UserID) bool {
			return g.entrance.Decide(e).MayDecide(g.cfg().Approvals.Scope, requester, e.Sender)
		},
		Decide: asker.Decide, Wake: asker.Wake, Jobs: func(e platforms.Event) command.Jobs { return g.scheduled.desk.OfEvent(e) }, Approvals: g.approvals, Confirm: func() bool { return g.cfg().Approvals.ConfirmSlash },
		BusyMode: func(at platforms.Address) string { return g.shown(at).BusyInputMode },
		Progress: func(at platforms.Address) string { return g.shown(at).ToolProgress }, Log: g.log,
	})
	porter := &access.Porter{Pairing: g.pairing, Limits: func() access.LoopLimits { return access.LoopLimitsOf(g.cfg()) },
		Printer: g.texts.printer, Outbox: g.worker, Log: g.log, Now: g.now}
	g.router = router.New(router.Options{
		Store: g.store, Runner: g.runner, Access: admission{g.entrance, porter}, Commands: g.commands, Outbox: g.worker, Printer: g.texts.printer, Metrics: g.metrics,
		Key: func(e platforms.Event) sessions.Key {
			return sessions.KeyFor(sessions.SourceOf(g.opt.Profile, e), g.keyOptions())
		},
		Mode: g.busyMode, Acks: g.acks,
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
	return command.Summary{Release: g.opt.Version, Started: g.started, Accounts: g.accounts.States, Sandbox: g.sandbox, Waiting: g.worker.Depth,
		Redact: g.opt.Redactor.String, Now: g.now}
}

// checkpointGrace is how long a stop waits for a rollback that is changing files.
const checkpointGrace = 20 * time.Second

func (g *Gateway) cfg() *config.Config { return g.config.Load() }

// URL returns where the browser chat answers.
func (g *Gateway) URL() string { return "http://" + g.listener.Addr().String() + "/" }

// Run takes up what the last process left, starts the platforms, and returns after ctx has ended and
// everything has stopped in order. An error is one that keeps the daemon from running at all.
func (g *Gateway) Run(ctx context.Context) error {
	defer g.close()
	run, stop := context.WithCancel(context.Background())
	defer stop()
	for _, w := range g.gate.Warnings(g.accounts.Trusted()...) {
		g.log.Warn().Msg(w)
	}
	g.checkpoints.Recover(ctx)
	if err := g.recover(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // it was told to stop before it had started: everything waits on disk for the next process
		}
		return err
	}
	g.accounts.Start(run, g.router)
	g.announceStart(ctx)
	g.wg.Add(1)
	go g.serve()
	if err := g.admin.Listen(g.opt.Paths.Socket); err != nil {
		g.log.Error().Err(err).Msg("the control socket can't be opened: herald status, send and the like will not work")
	}
	g.wg.Add(1)
	go g.keepHouse(run)
	g.wg.Add(1)
	go func() {
		defer g.wg.Done()
		g.directory.Keep(run)
	}()
	g.wg.Add(1)
	go g.runJobs(run)
	g.watchConfig(run)
	g.log.Info().Str("version", g.opt.Version).Str("home", g.opt.Paths.Home).Str("model", g.models.Current("").String()).
		Str("because", g.models.Reason()).Dur("took", g.now().Sub(g.started)).Msg("Herald is running")
	g.metrics.SetReady(true)
	if g.cfg().Platforms.DoorOpen() {
		soon, cancel := context.WithTimeout(ctx, time.Second)
		g.accounts.AwaitDoor(soon)
		cancel()
		g.log.Info().Str("url", g.URL()).Msg("the browser chat is at " + g.URL())
	}
	<-ctx.Done()
	g.shutdown(stop)
	return nil
}

// recover takes up what an earlier process left: messages that wait, turns that run, background processes.
func (g *Gateway) recover(ctx context.Context) error {
	if err := g.worker.Recover(ctx); err != nil {
		return err
	}
	g.processes.Start(g.wakeForProcess)
	if err := g.router.Recover(ctx); err != nil {
		return err
	}
	return g.processes.Recover(ctx)
}

// shutdown stops in order: nothing new comes in, what runs may end within the drain budget, what is ready is
// delivered, and the rest waits on disk for the next process.
func (g *Gateway) shutdown(stop context.CancelFunc) {
	cfg := g.cfg()
	g.log.Info().Dur("budget", cfg.Agent.DrainTimeout).Msg("stopping: running turns may end, the rest goes on after the next start")
	g.metrics.SetReady(false)
	g.accounts.Pause()
	ctx, cancel := context.WithTimeout(context.Background(), cfg.Agent.DrainTimeout)
	if err := g.router.Drain(ctx); err != nil {
		g.log.Warn().Int("turns", g.runner.Active()).Msg("turns are still running; they go on after the next start")
	}
	if err := g.scheduled.jobs.Drain(ctx); err != nil {
		g.log.Warn().Msg("scripts of jobs are still running; they are ended, and the next start reports it")
	}
	cancel()
	g.runner.Close()
	g.router.Wait()
	ctx, cancel = context.WithTimeout(context.Background(), min(cfg.Agent.DrainTimeout, 5*time.Second)+time.Second)
	if err := g.worker.Drain(ctx); err != nil {
		g.log.Warn().Int("messages", g.worker.Depth()).Msg("messages are still waiting; they are sent after the next start")
	}
	cancel()
	g.worker.Close()
	stop()
	ctx, cancel = context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := g.http.Shutdown(ctx); err != nil {
		_ = g.http.Close()
	}
	g.admin.Close()
	g.accounts.Wait()
	g.models.Close()
	g.wg.Wait()
	g.log.Info().Msg("stopped")
}

// close releases what New opened. It is safe to call twice.
func (g *Gateway) close() {
	if g.runner != nil {
		g.runner.Close()
	}
	if g.worker != nil {
		g.worker.Close()
	}
	if g.toolbox != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_ = g.toolbox.Close(ctx)
		cancel()
	}
	if g.toolLog != nil {
		g.toolLog.Close()
	}
	if g.processes != nil && g.router != nil {
		ctx, cancel := context.WithTimeout(context.Background(), g.cfg().Processes.Grace+10*time.Second)
		g.processes.Close(ctx)
		cancel()
	}
	if g.workspace != nil {
		if err := g.workspace.Close(); err != nil {
			g.log.Warn().Err(err).Msg("the workspace did not close cleanly")
		}
	}
	if g.checkpoints != nil {
		ctx, cancel := context.WithTimeout(context.Background(), checkpointGrace)
		if err := g.checkpoints.Close(ctx); err != nil {
			g.log.Warn().Err(err).Msg("the checkpoints did not close in time; the next start finishes what was begun")
		}
		cancel()
	}
	if g.accounts != nil {
		g.accounts.Release()
	}
	if g.listener != nil {
		_ = g.listener.Close()
	}
	if g.store != nil {
		if err := g.store.Close(); err != nil {
			g.log.Error().Err(err).Msg("the database did not close cleanly; nothing that was accepted is lost")
		}
		g.store = nil
	}
}
