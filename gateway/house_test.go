package gateway_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"herald/gateway"
	"herald/gateway/config"
	"herald/gateway/model/modeltest"
	"herald/platforms"
	"herald/platforms/all"
	"herald/platforms/platformtest/telegramtest"
	"herald/sessions/sqlite"
	"herald/tools/redact"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const botToken = "4242:a-token-of-the-house-tests-00000"

// house is a whole daemon in this process, between a fake Telegram and a scripted model. Nothing inside it
// is mocked: the store, the bus and the tools are the real ones, on real files.
type house struct {
	t    *testing.T
	home string
	tg   *telegramtest.Server
	base string
	llm  *modeltest.Script
	api  *modeltest.Server
	env  []string
	set  map[string]string
	now  func() time.Time // nil: the real time
	// adapters are platforms beside those of the configuration.
	adapters []platforms.Adapter
	kinds    []platforms.Kind // beside all others

	gateway *gateway.Gateway
	stop    context.CancelFunc
	done    chan error
	log     *logs
}

// logs keeps the daemon's log for assertions, and shows it when a test fails.
type logs struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// build makes a house that is not started yet.
func build(t *testing.T, script *modeltest.Script) *house {
	h := &house{t: t, home: t.TempDir(), llm: script, log: &logs{}, set: map[string]string{}}
	h.tg = telegramtest.New(telegramtest.Options{Token: botToken})
	base, err := h.tg.Start()
	require.NoError(t, err)
	h.base = base
	t.Cleanup(h.tg.Close)
	h.api = modeltest.Serve(script)
	t.Cleanup(h.api.Close)
	h.env = []string{"HOME=" + h.home, "PATH=" + os.Getenv("PATH"), "TELEGRAM_BOT_TOKEN=" + botToken, "HERALD_TELEGRAM_BASE_URL=" + base,
		"HERALD_TELEGRAM_ALLOW_FROM=*", "HERALD_TELEGRAM_RATE_LIMIT=off", "OPENAI_API_KEY=sk-house-tests-0123456789", "OPENAI_BASE_URL=" + h.api.OpenAI(),
		"HERALD_MODEL=house-model", "HERALD_GATEWAY_LOCK_DIR=" + h.home + "/locks"}
	h.set["http.listen"] = "127.0.0.1:0"
	h.set["terminal.backend"] = "local" // a container only where a test asks for one
	h.set["agent.restart_drain_timeout"] = "2s"
	t.Cleanup(func() {
		h.halt()
		if t.Failed() {
			t.Log(h.log.String())
			acts := h.tg.Acts(7)
			for _, a := range acts[max(0, len(acts)-100):] {
				t.Logf("%s %s %d %.200q", a.At.Format("05.000"), a.Verb, a.Message, a.Text)
			}
		}
	})
	return h
}

// start makes the house and runs it.
func start(t *testing.T, script *modeltest.Script, tune ...func(*house)) *house {
	h := build(t, script)
	for _, f := range tune {
		f(h)
	}
	h.run()
	return h
}

func (h *house) open() (*gateway.Gateway, error) {
	src := config.Source{Kinds: append(all.Kinds(), h.kinds...), Home: h.home, Environ: h.env, Flags: h.set, UserHome: h.home}
	cfg, report, err := config.Load(src)
	if err != nil {
		return nil, err
	}
	secrets := redact.New(cfg.Secrets()...)
	return gateway.New(context.Background(), gateway.Options{Config: cfg, Report: report, Source: src, Paths: config.PathsFor(h.home),
		Profile: config.DefaultProfile, Version: "test", Log: zerolog.New(h.log).Level(zerolog.DebugLevel), Redactor: secrets, Now: h.now,
		Adapters: h.adapters})
}

func (h *house) run() {
	h.t.Helper()
	g, err := h.open()
	require.NoError(h.t, err)
	h.run1(g)
}

// run1 runs a daemon that is open.
func (h *house) run1(g *gateway.Gateway) {
	h.gateway = g
	ctx, stop := context.WithCancel(context.Background())
	h.stop, h.done = stop, make(chan error, 1)
	go func() { h.done <- g.Run(ctx) }()
}

// halt stops the daemon as SIGTERM does.
func (h *house) halt() {
	if h.stop == nil {
		return
	}
	h.stop()
	h.stop = nil
	select {
	case err := <-h.done:
		require.NoError(h.t, err)
	case <-time.After(30 * time.Second):
		h.t.Fatal("the daemon did not stop")
	}
}

// store opens the stopped house's database.
func (h *house) store() *sqlite.Store {
	h.t.Helper()
	s, err := sqlite.Open(context.Background(), sqlite.Options{Path: config.PathsFor(h.home).DB})
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = s.Close() })
	return s
}

// until polls a condition with a deadline.
func (h *house) until(what string, cond func() bool) {
	h.t.Helper()
	h.untilWithin(30*time.Second, what, cond)
}

func (h *house) untilWithin(limit time.Duration, what string, cond func() bool) {
	h.t.Helper()
	deadline := time.Now().Add(limit)
	for !cond() {
		if time.Now().After(deadline) {
			h.t.Fatalf("gave up waiting until %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// texts returns what the bot's messages in a chat read now.
func (h *house) texts(chat int64) []string {
	var out []string
	for _, m := range h.tg.Visible(chat) {
		if m.Bot {
			out = append(out, m.Text)
		}
	}
	return out
}

// await returns the bot's first message in a chat that contains part.
func (h *house) await(chat int64, part string) telegramtest.Message {
	h.t.Helper()
	var found telegramtest.Message
	h.until(fmt.Sprintf("chat %d shows %q; it shows %q", chat, part, h.texts(chat)), func() bool {
		for _, m := range h.tg.Visible(chat) {
			if m.Bot && strings.Contains(m.Text, part) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// untilStatus asks for the status, one answer at a time, until it contains part.
func (h *house) untilStatus(chat int64, part string) {
	h.t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for {
		n := len(h.texts(chat))
		h.tg.Say(chat, "/status")
		h.until("the status is answered", func() bool { return len(h.texts(chat)) > n })
		if h.count(chat, part) > 0 {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("the status never says %q", part)
		}
	}
}

// count returns how many visible messages of the bot contain part.
func (h *house) count(chat int64, part string) int {
	n := 0
	for _, text := range h.texts(chat) {
		n += strings.Count(text, part)
	}
	return n
}

// echo answers each request with "re: " and the newest user message.
func echo() *modeltest.Script {
	return modeltest.Answering(func(r modeltest.Request) modeltest.Reply { return modeltest.Text("re: " + r.LastUser()) })
}
