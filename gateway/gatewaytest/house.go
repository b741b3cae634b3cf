package gatewaytest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"herald/gateway"
	"herald/gateway/config"
	"herald/gateway/model/modeltest"
	"herald/platforms"
	"herald/platforms/all"
	"herald/platforms/platformtest/telegramtest"
	"herald/sessions/sqlite"
	"herald/tools/redact"
)

// BotToken is the token of the fake Telegram's bot.
const BotToken = "4242:a-token-of-the-house-tests-00000"

// House is a whole daemon in this process, between a fake Telegram and a scripted model. Nothing inside it is mocked: the
// store, the bus and the tools are the real ones, on real files. Env, Set, Now and Kinds are read by Open.
type House struct {
	T        *testing.T
	Home     string // the home of the profile
	Telegram *telegramtest.Server
	Model    *modeltest.Script
	API      *modeltest.Server // serves Model
	Env      []string          // "NAME=value"
	Set      map[string]string // settings as from flags: they win over Env and config.yaml
	Now      func() time.Time  // nil: the real time
	Kinds    []platforms.Kind  // beside all others

	Gateway *gateway.Gateway // nil until it runs
	Log     *Log

	adapters []platforms.Adapter // beside those of the configuration
	stop     context.CancelFunc
	done     chan error
}

// Build makes a house that is not started yet. It is halted when the test ends.
func Build(t *testing.T, script *modeltest.Script) *House {
	h := &House{T: t, Home: t.TempDir(), Model: script, Log: &Log{}, Set: map[string]string{}}
	h.Telegram = telegramtest.New(telegramtest.Options{Token: BotToken})
	base, err := h.Telegram.Start()
	require.NoError(t, err)
	t.Cleanup(h.Telegram.Close)
	h.API = modeltest.Serve(script)
	t.Cleanup(h.API.Close)
	h.Env = []string{"HOME=" + h.Home, "PATH=" + os.Getenv("PATH"), "TELEGRAM_BOT_TOKEN=" + BotToken, "HERALD_TELEGRAM_BASE_URL=" + base,
		"HERALD_TELEGRAM_ALLOW_FROM=*", "HERALD_TELEGRAM_RATE_LIMIT=off", "OPENAI_API_KEY=sk-house-tests-0123456789", "OPENAI_BASE_URL=" + h.API.OpenAI(),
		"HERALD_MODEL=house-model", "HERALD_GATEWAY_LOCK_DIR=" + h.Home + "/locks"}
	h.Set["http.listen"] = "127.0.0.1:0"
	h.Set["terminal.backend"] = "local" // a container only where a test asks for one
	h.Set["agent.restart_drain_timeout"] = "2s"
	t.Cleanup(func() {
		h.Halt()
		if t.Failed() {
			t.Log(h.Log.String())
			acts := h.Telegram.Acts(7)
			for _, a := range acts[max(0, len(acts)-100):] {
				t.Logf("%s %s %d %.200q", a.At.Format("05.000"), a.Verb, a.Message, a.Text)
			}
		}
	})
	return h
}

// Start makes a house, lets each function tune it, and runs it.
func Start(t *testing.T, script *modeltest.Script, tune ...func(*House)) *House {
	h := Build(t, script)
	for _, f := range tune {
		f(h)
	}
	h.Run()
	return h
}

// Open makes a daemon of what the house is set to, without running it. A configuration that is refused is an error.
func (h *House) Open() (*gateway.Gateway, error) {
	src := config.Source{Kinds: append(all.Kinds(), h.Kinds...), Home: h.Home, Environ: h.Env, Flags: h.Set, UserHome: h.Home}
	cfg, report, err := config.Load(src)
	if err != nil {
		return nil, err
	}
	secrets := redact.New(cfg.Secrets()...)
	return gateway.New(context.Background(), gateway.Options{Config: cfg, Report: report, Source: src, Paths: config.PathsFor(h.Home),
		Profile: config.DefaultProfile, Version: "test", Log: zerolog.New(h.Log).Level(zerolog.DebugLevel), Redactor: secrets, Now: h.Now,
		Adapters: h.adapters})
}

// Run opens a daemon and runs it.
func (h *House) Run() {
	h.T.Helper()
	g, err := h.Open()
	require.NoError(h.T, err)
	h.RunOpened(g)
}

// RunOpened runs a daemon that Open has made.
func (h *House) RunOpened(g *gateway.Gateway) {
	h.Gateway = g
	ctx, stop := context.WithCancel(context.Background())
	h.stop, h.done = stop, make(chan error, 1)
	go func() { h.done <- g.Run(ctx) }()
}

// Halt stops the daemon as SIGTERM does, and waits up to 30 seconds. A house that does not run is left alone.
func (h *House) Halt() {
	if h.stop == nil {
		return
	}
	h.stop()
	h.stop = nil
	select {
	case err := <-h.done:
		require.NoError(h.T, err)
	case <-time.After(30 * time.Second):
		h.T.Fatal("the daemon did not stop")
	}
}

// Store opens the stopped house's database.
func (h *House) Store() *sqlite.Store {
	h.T.Helper()
	s, err := sqlite.Open(context.Background(), sqlite.Options{Path: config.PathsFor(h.Home).DB})
	require.NoError(h.T, err)
	h.T.Cleanup(func() { _ = s.Close() })
	return s
}
