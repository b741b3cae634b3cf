package gateway

import (
	"errors"
	"net/http"
	"time"

	"herald/gateway/admin"
)

// mount puts everything that answers HTTP on the listener, and the verbs on the control socket.
func (g *Gateway) mount() {
	view := &admin.Overview{
		Identity: admin.Identity{Version: g.opt.Version, Home: g.opt.Paths.Home, Profile: g.opt.Profile},
		URL:      g.URL(), Started: g.started, Store: g.store, Ready: g.metrics.Ready, Accounts: g.accounts.States,
		Model:   func() (name, because string) { return g.models.Current("").String(), g.models.Reason() },
		Sandbox: g.sandbox, Load: g.load, Stuck: g.scheduled.jobs.Stuck, Redact: g.opt.Redactor.String, Now: g.now,
	}
	guard := admin.Guard{Token: func() string { return g.cfg().HTTP.Token.Reveal() }}
	g.mux = http.NewServeMux()
	g.accounts.Mount(g.mux)
	g.mountJobs()
	g.mux.Handle("GET /healthz", admin.HealthHandler())
	g.mux.Handle("GET /readyz", admin.ReadyHandler(view.Health, guard.Known))
	if g.cfg().Metrics.Enabled {
		g.mux.Handle("GET /metrics", guard.Only(g.metrics.Handler()))
	}
	g.http = &http.Server{Handler: g.mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	g.admin = admin.NewServer(g.log, g.verbs(view))
	g.gauges()
}

// gauges are the metrics that are read at each scrape.
func (g *Gateway) gauges() {
	for _, m := range []struct {
		name, help string
		read       func() int
	}{
		{"outbox_waiting", "Messages that wait to be delivered.", g.worker.Depth},
		{"turns_running", "Turns that run now.", g.runner.Active},
		{"inbox_waiting", "Messages that wait for their turn.", func() int { return g.router.Stats().Queued }},
		{"background_processes_running", "Background processes that run now.", g.processes.Running},
		{"accounts_ready", "Accounts whose inbound flows.", g.accounts.Ready},
	} {
		g.metrics.Gauge(m.name, m.help, func() float64 { return float64(m.read()) })
	}
	g.countJobs()
}

// load is what the daemon has to do now.
func (g *Gateway) load() admin.Load {
	stats := g.router.Stats()
	return admin.Load{Running: stats.Running, Queued: stats.Queued, Waiting: g.worker.Depth(), Draining: stats.Draining}
}

// sandbox says where commands run, and why.
func (g *Gateway) sandbox() (backend, because string) {
	where := g.workspace.Choice()
	return where.Backend, where.Reason
}

func (g *Gateway) serve() {
	defer g.wg.Done()
	if err := g.http.Serve(g.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		g.log.Error().Err(err).Msg("the HTTP listener has ended")
	}
}
