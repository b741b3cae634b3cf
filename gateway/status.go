package gateway

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"time"

	"herald/gateway/admin"
	"herald/locales"
	"herald/platforms/format"
	"herald/sessions"
)

// status describes the daemon to /status.
type status struct{ g *Gateway }

// Version implements command.Status.
func (s status) Version() string { return s.g.opt.Version }

// Lines implements command.Status.
func (s status) Lines(p *locales.Printer) []string {
	var lines []string
	for _, st := range s.g.accounts.States() {
		name, state := format.EscapeMarkdown(st.Account.String()), st.Health.State
		if st.Health.Detail == "" {
			lines = append(lines, p.T("command.status.account", locales.Str("platform", name), locales.Str("state", state)))
			continue
		}
		lines = append(lines, p.T("command.status.account_detail", locales.Str("platform", name), locales.Str("state", state),
			locales.Str("detail", format.EscapeMarkdown(s.g.opt.Redactor.String(st.Health.Detail)))))
	}
	where := s.g.workspace.Choice()
	lines = append(lines, p.T("command.status.sandbox", locales.Str("backend", where.Backend), locales.Str("reason", format.EscapeMarkdown(s.g.opt.Redactor.String(where.Reason)))))
	if n := s.g.worker.Depth(); n > 0 {
		lines = append(lines, p.N("command.status.outbox", n))
	}
	return append(lines, p.T("command.status.uptime", locales.Dur("time", s.g.now().Sub(s.g.started)), locales.Str("version", s.g.opt.Version)))
}

// health is the truth about inbound, for /readyz.
func (g *Gateway) health() admin.Health {
	h := admin.Health{Ready: g.metrics.Ready(), State: "running"}
	if !h.Ready {
		h.State = "starting or stopping"
	}
	for _, s := range g.accounts.States() {
		a := admin.AccountOf(s.Account, s.Health)
		a.Detail = g.opt.Redactor.String(a.Detail)
		h.Accounts = append(h.Accounts, a)
		h.Ready = h.Ready && a.Ready
	}
	if err := g.writable(); err != nil {
		h.Ready, h.State = false, "the store can't take messages"
		h.Problems = append(h.Problems, err.Error())
	}
	if since, stuck := g.scheduled.jobs.Stuck(); stuck && h.Ready { // messages are taken all the same
		h.Problems = append(h.Problems, "scheduled jobs are not looked for since "+since.UTC().Format(time.RFC3339)+"; see the log")
	}
	return h
}

// writable reports why the store can't take a message now.
func (g *Gateway) writable() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return g.store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		return tx.SetValue("probe", "writable", json.RawMessage(`1`), g.now())
	})
}

// mount puts everything that answers HTTP on the listener.
func (g *Gateway) mount() error {
	g.mux = http.NewServeMux()
	g.accounts.Mount(g.mux)
	g.mountJobs()
	g.mux.Handle("GET /healthz", admin.HealthHandler())
	g.mux.Handle("GET /readyz", admin.ReadyHandler(g.health, g.known))
	if g.cfg().Metrics.Enabled {
		g.mux.Handle("GET /metrics", g.guarded(g.metrics.Handler()))
	}
	g.http = &http.Server{Handler: g.mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	g.admin = admin.NewServer(g.log, g.verbs())
	g.metrics.Gauge("outbox_waiting", "Messages that wait to be delivered.", func() float64 { return float64(g.worker.Depth()) })
	g.metrics.Gauge("turns_running", "Turns that run now.", func() float64 { return float64(g.runner.Active()) })
	g.metrics.Gauge("inbox_waiting", "Messages that wait for their turn.", func() float64 { return float64(g.router.Stats().Queued) })
	g.metrics.Gauge("background_processes_running", "Background processes that run now.", func() float64 { return float64(g.processes.Running()) })
	g.countJobs()
	g.metrics.Gauge("accounts_ready", "Accounts whose inbound flows.", func() float64 { return float64(g.accounts.Ready()) })
	return nil
}

// known reports whether a request may see details: it comes from this machine, or carries the token.
func (g *Gateway) known(r *http.Request) bool {
	if token := g.cfg().HTTP.Token; token.IsSet() {
		given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(given), []byte(token.Reveal())) == 1 {
			return true
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	forwarded := r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Forwarded") != ""
	return err == nil && ip != nil && ip.IsLoopback() && !forwarded
}

// guarded lets only known callers through.
func (g *Gateway) guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.known(r) {
			http.Error(w, "metrics are for this machine, or for who sends the token (HERALD_HTTP_TOKEN) as a bearer token", http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
