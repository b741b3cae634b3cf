package gateway

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"herald/gateway/admin"
	"herald/gateway/config"
	"herald/gateway/delivery"
	"herald/locales"
	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
	"herald/sessions/sqlite"
)

// status describes the daemon to /status.
type status struct{ g *Gateway }

// Version implements command.Status.
func (s status) Version() string { return s.g.opt.Version }

// Lines implements command.Status.
func (s status) Lines(p *locales.Printer) []string {
	var lines []string
	for _, st := range s.g.accounts.states() {
		name, state := format.EscapeMarkdown(st.account.String()), st.health.State
		if st.health.Detail == "" {
			lines = append(lines, p.T("command.status.account", locales.Str("platform", name), locales.Str("state", state)))
			continue
		}
		lines = append(lines, p.T("command.status.account_detail", locales.Str("platform", name), locales.Str("state", state),
			locales.Str("detail", format.EscapeMarkdown(s.g.opt.Redactor.String(st.health.Detail)))))
	}
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
	for _, s := range g.accounts.states() {
		a := admin.AccountOf(s.account, s.health)
		a.Detail = g.opt.Redactor.String(a.Detail)
		h.Accounts = append(h.Accounts, a)
		h.Ready = h.Ready && a.Ready
	}
	if err := g.writable(); err != nil {
		h.Ready, h.State = false, "the store can't take messages"
		h.Problems = append(h.Problems, err.Error())
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
	g.accounts.mount(g.mux)
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
	g.metrics.Gauge("accounts_ready", "Accounts whose inbound flows.", func() float64 {
		n := 0
		for _, s := range g.accounts.states() {
			if s.health.Inbound {
				n++
			}
		}
		return float64(n)
	})
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

// StatusReply is what the status verb returns.
type StatusReply struct {
	Version  string          `json:"version"`
	PID      int             `json:"pid"`
	Home     string          `json:"home"`
	Profile  string          `json:"profile"`
	URL      string          `json:"url"`
	Model    string          `json:"model"`
	Because  string          `json:"because"`
	Started  time.Time       `json:"started"`
	Health   admin.Health    `json:"health"`
	Running  int             `json:"running"`
	Queued   int             `json:"queued"`
	Waiting  int             `json:"outbox_waiting"`
	Counts   sessions.Counts `json:"counts"`
	Draining bool            `json:"draining"`
}

// SendArgs asks to send a message to a chat.
type SendArgs struct {
	// Target is platform:chat or platform:chat:thread.
	Target string `json:"target"`
	Text   string `json:"text"`
}

// SendReply says what became of it.
type SendReply struct {
	Rows []sessions.OutboxID `json:"rows"`
	// State is the state of the last row after at most the wait of the verb.
	State string `json:"state"`
	Error string `json:"error,omitempty"`
}

// verbs are what the control socket can do.
func (g *Gateway) verbs() map[string]admin.Verb {
	return map[string]admin.Verb{
		"identify": func(context.Context, json.RawMessage) (any, error) {
			return map[string]string{"version": g.opt.Version, "home": g.opt.Paths.Home, "profile": g.opt.Profile}, nil
		},
		"status":   func(ctx context.Context, _ json.RawMessage) (any, error) { return g.statusReply(ctx) },
		"sessions": g.sessionsVerb,
		"send":     g.sendVerb,
		"backup":   g.backupVerb,
		"check":    func(ctx context.Context, _ json.RawMessage) (any, error) { return g.store.Check(ctx) },
		"pairing":  g.pairingVerb,
	}
}

func (g *Gateway) statusReply(ctx context.Context) (StatusReply, error) {
	stats := g.router.Stats()
	r := StatusReply{Version: g.opt.Version, PID: os.Getpid(), Home: g.opt.Paths.Home, Profile: g.opt.Profile, URL: g.URL(),
		Model: g.models.Current("").String(), Because: g.models.reason(), Started: g.started, Health: g.health(), Running: stats.Running,
		Queued: stats.Queued, Waiting: g.worker.Depth(), Draining: stats.Draining}
	err := g.store.View(ctx, func(v sessions.View) (err error) {
		r.Counts, err = v.Counts()
		return err
	})
	return r, err
}

// SessionLine is one session for the command line.
type SessionLine struct {
	ID       string    `json:"id"`
	Key      string    `json:"key"`
	Title    string    `json:"title,omitempty"`
	Platform string    `json:"platform"`
	Chat     string    `json:"chat"`
	Updated  time.Time `json:"updated"`
	Messages int       `json:"messages"`
	Live     bool      `json:"live"`
}

// SessionsArgs selects sessions.
type SessionsArgs struct {
	Search string `json:"search,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	Live   bool   `json:"live,omitempty"`
}

func (g *Gateway) sessionsVerb(ctx context.Context, raw json.RawMessage) (any, error) {
	var args SessionsArgs
	if err := decodeArgs(raw, &args); err != nil {
		return nil, err
	}
	return ListSessions(ctx, g.store, args)
}

// ListSessions lists sessions for the command line, from any open store.
func ListSessions(ctx context.Context, store sessions.Store, args SessionsArgs) ([]SessionLine, error) {
	lines := []SessionLine{}
	err := store.View(ctx, func(v sessions.View) error {
		list, err := v.Sessions(sessions.SessionQuery{TitleIn: args.Search, Limit: args.Limit, Live: args.Live})
		for _, s := range list {
			lines = append(lines, SessionLine{ID: string(s.ID), Key: string(s.Key), Title: s.Title, Platform: string(s.Origin.Address.Platform),
				Chat: string(s.Origin.Address.Chat), Updated: s.UpdatedAt, Messages: s.Messages, Live: s.EndedAt.IsZero()})
		}
		return err
	})
	return lines, err
}

// sendWait is how long the send verb waits for the platform's answer.
const sendWait = 15 * time.Second

func (g *Gateway) sendVerb(ctx context.Context, raw json.RawMessage) (any, error) {
	var args SendArgs
	if err := decodeArgs(raw, &args); err != nil {
		return nil, err
	}
	at, err := g.target(args.Target)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(args.Text) == "" {
		return nil, errors.New("the text is empty")
	}
	rows := g.rows(sessions.OutSend, at, args.Text)
	err = g.store.Update(ctx, sessions.EdgeQueue, func(tx sessions.Tx) error {
		if err := tx.PutOutbox(rows...); err != nil {
			return err
		}
		return g.mirror(tx, at, args.Text)
	})
	if err != nil {
		return nil, err
	}
	g.worker.Take(rows...)
	reply := SendReply{}
	for _, row := range rows {
		reply.Rows = append(reply.Rows, row.ID)
	}
	return g.awaitSent(ctx, reply)
}

// mirror keeps what was sent in the chat's own conversation, so that an answer to it is understood.
func (g *Gateway) mirror(tx sessions.Tx, at platforms.Address, text string) error {
	list, err := tx.Sessions(sessions.SessionQuery{Platform: at.Platform, Account: at.Account, Chat: at.Chat, Live: true, Limit: 20})
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Origin.Address.Thread != at.Thread {
			continue
		}
		err := tx.Append(&sessions.Message{Session: s.ID, Role: sessions.Assistant, Kind: sessions.KindMirror, Content: text, At: g.now(), Active: true})
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitSent polls the rows until they have an outcome or the wait is over.
func (g *Gateway) awaitSent(ctx context.Context, reply SendReply) (SendReply, error) {
	ctx, cancel := context.WithTimeout(ctx, sendWait)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var last sessions.OutboxRow
		err := g.store.View(context.WithoutCancel(ctx), func(v sessions.View) (err error) {
			last, err = v.OutboxRow(reply.Rows[len(reply.Rows)-1])
			return err
		})
		if err != nil {
			return reply, err
		}
		reply.State, reply.Error = string(last.State), last.Error
		if last.State != sessions.OutPending && last.State != sessions.OutAttempting {
			return reply, nil
		}
		select {
		case <-ctx.Done():
			return reply, nil
		case <-tick.C:
		}
	}
}

// target resolves platform[:chat[:thread]] to an address. A bare platform, and the name of the home channel, mean the
// home channel.
func (g *Gateway) target(s string) (platforms.Address, error) {
	name, rest, _ := strings.Cut(s, ":")
	name = strings.ToLower(strings.TrimSpace(name))
	var known []string
	for _, account := range g.accounts.names() {
		known = append(known, string(account.Platform))
		if string(account.Platform) != name {
			continue
		}
		at := platforms.Address{Platform: account.Platform, Account: account.ID}
		chat, thread, _ := strings.Cut(rest, ":")
		at.Chat, at.Thread = platforms.ChatID(chat), platforms.ThreadID(thread)
		if home := g.platform(account.Platform).HomeChannel; at.Chat == "" || (home.IsSet() && strings.EqualFold(rest, home.Name)) {
			if !home.IsSet() {
				return at, fmt.Errorf("target %q names no chat and %s has no home channel: write %s:<chat> or set platforms.%s.home_channel", s, name, name, name)
			}
			at.Chat, at.Thread = platforms.ChatID(home.Chat), platforms.ThreadID(home.Thread)
		}
		return at, nil
	}
	return platforms.Address{}, fmt.Errorf("target %q: no such platform runs here; running: %s", s, strings.Join(known, ", "))
}

// BackupArgs names the file to write.
type BackupArgs struct {
	Dest string `json:"dest"`
}

func (g *Gateway) backupVerb(ctx context.Context, raw json.RawMessage) (any, error) {
	var args BackupArgs
	if err := decodeArgs(raw, &args); err != nil {
		return nil, err
	}
	return args, g.store.Backup(ctx, args.Dest)
}

// PairingArgs is one action on pairing codes.
type PairingArgs struct {
	Action   string `json:"action"` // list, approve, revoke, clear
	Platform string `json:"platform,omitempty"`
	Code     string `json:"code,omitempty"`
	User     string `json:"user,omitempty"`
}

func (g *Gateway) pairingVerb(ctx context.Context, raw json.RawMessage) (any, error) {
	var args PairingArgs
	if err := decodeArgs(raw, &args); err != nil {
		return nil, err
	}
	switch args.Action {
	case "list":
		waiting, approved, err := g.pairing.List(ctx)
		return map[string]any{"waiting": waiting, "approved": approved}, err
	case "approve":
		return g.pairing.Approve(ctx, platforms.Name(args.Platform), args.Code)
	case "revoke":
		found, err := g.pairing.Revoke(ctx, platforms.Name(args.Platform), platforms.UserID(args.User))
		if err == nil && !found {
			err = fmt.Errorf("%s user %q was not paired", args.Platform, args.User)
		}
		return nil, err
	case "clear":
		n, err := g.pairing.Clear(ctx, platforms.Name(args.Platform))
		return map[string]int{"cleared": n}, err
	}
	return nil, fmt.Errorf("action %q: want list, approve, revoke or clear", args.Action)
}

func decodeArgs(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("the request's arguments: %w", err)
	}
	return nil
}

// sweep is one round of housekeeping.
func (g *Gateway) sweep(ctx context.Context) {
	cfg := g.cfg().Sessions
	if cfg.AutoPrune && g.due(ctx, "prune", time.Duration(cfg.MinIntervalHours)*time.Hour) {
		pruned, err := g.store.Prune(ctx, sqlite.Retention{Ended: time.Duration(cfg.RetentionDays) * 24 * time.Hour})
		if err != nil {
			g.log.Warn().Err(err).Msg("old rows could not be removed")
		} else {
			g.log.Debug().Interface("removed", pruned).Msg("old rows were removed")
		}
	}
	if cfg.VacuumAfterPrune && g.due(ctx, "vacuum", time.Duration(cfg.MinVacuumIntervalDays)*24*time.Hour) {
		if freed, err := g.store.Vacuum(ctx); err != nil {
			g.log.Warn().Err(err).Msg("free pages could not be given back")
		} else if freed > 0 {
			g.log.Info().Int64("bytes", freed).Msg("free pages were given back to the disk")
		}
	}
	if _, err := g.catalog.results.Prune(); err != nil {
		g.log.Debug().Err(err).Msg("old tool results could not be removed")
	}
	if err := g.sweepValues(ctx); err != nil {
		g.log.Warn().Err(err).Msg("old notes of the core could not be removed")
	}
}

// passing are the spaces of values that mean nothing any more once they are old: gates that have opened,
// questions of ended turns, messages that /retry has taken up.
var passing = []string{delivery.SpaceGate, "prompt", "retry"}

func (g *Gateway) sweepValues(ctx context.Context) error {
	limit := g.now().Add(-sqlite.DefaultFinished)
	return g.store.Update(ctx, sessions.EdgeKeep, func(tx sessions.Tx) error {
		for _, space := range passing {
			values, err := tx.Values(space)
			if err != nil {
				return err
			}
			for _, v := range values {
				if v.At.After(limit) {
					continue
				}
				if err := tx.SetValue(space, v.Name, nil, g.now()); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// due reports whether a piece of housekeeping was not done for so long, also by earlier processes, and notes that it is
// done now.
func (g *Gateway) due(ctx context.Context, what string, every time.Duration) bool {
	ok := false
	err := g.store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		last, err := tx.Value("housekeeping", what)
		if err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return err
		}
		if ok = err != nil || g.now().Sub(last.At) >= every; !ok {
			return nil
		}
		return tx.SetValue("housekeeping", what, json.RawMessage(`1`), g.now())
	})
	if err != nil {
		g.log.Warn().Err(err).Str("what", what).Msg("housekeeping is put off")
	}
	return ok && err == nil
}

// announceEvery is the least time between two words about a restart: a daemon that crashes again and again must not
// fill the home channels.
const announceEvery = time.Minute

// announceStart says in the home channels that Herald runs again. The first start with a home channel is no restart.
func (g *Gateway) announceStart(ctx context.Context) {
	var rows []*sessions.OutboxRow
	for _, account := range g.accounts.names() {
		p := g.platform(account.Platform)
		if !p.RestartNotice || !p.HomeChannel.IsSet() {
			continue
		}
		at := platforms.Address{Platform: account.Platform, Account: account.ID, Chat: platforms.ChatID(p.HomeChannel.Chat), Thread: platforms.ThreadID(p.HomeChannel.Thread)}
		rows = append(rows, g.noticeRow(at, g.texts.say(at, "restart.done", locales.Str("version", g.opt.Version))))
	}
	if len(rows) == 0 {
		return
	}
	again := false
	err := g.store.Update(ctx, sessions.EdgeQueue, func(tx sessions.Tx) error {
		last, err := tx.Value("gateway", "started")
		if err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return err
		}
		again = err == nil && g.now().Sub(last.At) >= announceEvery
		if err := tx.SetValue("gateway", "started", json.RawMessage(`1`), g.now()); err != nil || !again {
			return err
		}
		return tx.PutOutbox(rows...)
	})
	if err != nil {
		g.log.Warn().Err(err).Msg("the home channels can't be told of the restart")
		return
	}
	if again {
		g.worker.Take(rows...)
	}
}

// watchConfig applies changes of the configuration while the daemon runs.
func (g *Gateway) watchConfig(ctx context.Context) {
	if g.opt.Source.Home == "" {
		return
	}
	g.wg.Add(1)
	go func() {
		defer g.wg.Done()
		err := config.Watch(ctx, g.opt.Source, g.cfg(), config.WatchOptions{}, g.reload)
		if err != nil && ctx.Err() == nil {
			g.log.Warn().Err(err).Msg("changes of the configuration are not seen any more; restart Herald to apply them")
		}
	}()
}

// reload takes a new configuration over as far as a running daemon can.
func (g *Gateway) reload(cfg *config.Config, report *config.Report, changes []config.Change) {
	if err := report.Err(); err != nil {
		g.log.Error().Err(err).Msg("the changed configuration has errors; the old one stays in force")
		return
	}
	old := g.cfg()
	cfg = config.InForce(old, cfg)
	g.config.Store(cfg)
	g.gate.Set(policyOf(cfg))
	if g.opt.SetLevel != nil && old.Log.Level != cfg.Log.Level {
		g.opt.SetLevel(cfg.Log.Level)
	}
	again, model := map[platforms.Name]bool{}, false
	for _, c := range changes {
		e := g.log.Info()
		note := "a setting has changed"
		switch c.Reload {
		case config.ReloadRestart:
			e, note = g.log.Warn(), "a setting has changed that needs a restart of Herald to take effect"
		case config.ReloadAdapter:
			note = "a setting has changed; its platform is started anew"
			again[c.Platform] = true
		case config.ReloadSession:
			note = "a setting has changed; new sessions follow it"
		}
		model = model || modelKey(c.Key)
		e.Str("key", c.Key).Str("plan", string(c.Reload)).Msg(note)
	}
	g.restartAccounts(again)
	if !model {
		return
	}
	if err := g.models.reload(context.Background()); err != nil {
		g.log.Error().Err(err).Msg("the model of the changed configuration can't be used; the old one stays in force")
		return
	}
	g.log.Info().Str("model", g.models.Current("").String()).Str("because", g.models.reason()).Msg("the next turns use the model of the changed configuration")
}

// modelKey reports whether a key says which model answers, or how it is called.
func modelKey(key string) bool {
	switch key {
	case "agent.api_max_retries", "agent.empty_max_retries", "agent.model_call_timeout":
		return true
	}
	return strings.HasPrefix(key, "model.") || strings.HasPrefix(key, "providers.")
}

// protected reports files that never leave through a chat: what the home keeps beside the caches and the
// workspace, and the usual places of credentials.
func (g *Gateway) protected(path string) bool {
	home := g.opt.Paths.Home
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	inside := func(dir string) bool {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		rel, err := filepath.Rel(dir, path)
		return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
	}
	if inside(home) {
		return !inside(g.opt.Paths.Cache) && !inside(g.cfg().WorkDir(g.opt.Paths))
	}
	user, err := os.UserHomeDir()
	if err == nil {
		for _, dir := range []string{".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".config/gh", ".config/gcloud", ".netrc", ".pgpass",
			".npmrc", ".pypirc", ".git-credentials", ".herald", ".hermes"} {
			if inside(filepath.Join(user, dir)) {
				return true
			}
		}
	}
	base := filepath.Base(path)
	return strings.HasPrefix(path, "/etc/") || strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/sys/") || base == ".env" ||
		(strings.HasPrefix(base, ".env.") && base != ".env.example")
}
