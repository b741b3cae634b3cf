package gateway

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
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
	"herald/gateway/model/pool"
	"herald/gateway/router"
	"herald/gateway/terms"
	"herald/gateway/toolbox"
	"herald/gateway/turn"
	"herald/gateway/workspace"
	"herald/locales"
	"herald/platforms"
	"herald/sessions/sqlite"
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
	texts   *locales.Catalogs
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
	terms       *terms.Terms
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
	g.texts = catalogs
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
	g.terms = terms.New(terms.Options{Config: g.cfg, Paths: opt.Paths, Store: g.store, Adapters: g.accounts, Workspace: g.workspace,
		Resolve: g.courier.Resolve, Rules: g.rules, Log: g.log, Now: g.now})
	if g.directory, err = directory.Open(ctx, directory.Options{Store: g.store, Accounts: g.accounts, Config: g.cfg, Rules: g.rules,
		Log: g.log, Now: g.now}); err != nil {
		return nil, err
	}
	if err := g.buildCore(); err != nil {
		return nil, err
	}
	g.mount()
	return g, nil
}

func (g *Gateway) cfg() *config.Config { return g.config.Load() }

// URL returns where the browser chat answers.
func (g *Gateway) URL() string { return "http://" + g.listener.Addr().String() + "/" }
