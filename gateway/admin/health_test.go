package admin_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/admin"
	"herald/gateway/model"
	"herald/platforms"
	"herald/sessions"
	"herald/tools"
)

func get(h http.Handler) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w
}

// P12: ready means that every account takes messages now. Why not is for those who are known.
func TestHealth(t *testing.T) {
	w := get(admin.HealthHandler())
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "ok\n", w.Body.String())

	account := platforms.Account{Platform: "telegram", ID: "bot"}
	health := admin.Health{Ready: true, State: "running", Accounts: []admin.AccountHealth{
		admin.AccountOf(account, platforms.Health{Inbound: true, State: "polling"}),
		admin.AccountOf(account, platforms.Health{State: "down", Detail: "token of the secret bot refused"}),
	}, Problems: []string{"the secret disk is full"}}
	known := false
	h := admin.ReadyHandler(func() admin.Health { return health }, func(*http.Request) bool { return known })
	w = get(h)
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.NotContains(t, w.Body.String(), "secret")
	require.Contains(t, w.Body.String(), `"ready":false,"state":"down"`)
	known, health.Ready = true, false
	w = get(h)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), "token of the secret bot refused", "the first answer changed nothing")
	require.Contains(t, w.Body.String(), "the secret disk is full")
}

// Metrics have stable names, and no label that names a person, a chat or a made-up tool.
func TestMetrics(t *testing.T) {
	m := admin.NewMetrics()
	m.Inbound("telegram", "message", "accepted")
	m.TurnEnded("telegram", sessions.TurnDone, time.Second)
	m.ModelUsed(model.Info{Provider: "x", Name: "m"}, model.Usage{Input: 3})
	m.Sent("telegram", sessions.OutFinal, "sent", time.Second)
	m.Gated("telegram", time.Second)
	m.Dropped("telegram", "preview")
	m.Commit(sessions.EdgeAccept, time.Millisecond, 2)
	m.Adapter("telegram").Polled("ok")
	m.Adapter("telegram").Dropped("edited")
	m.Adapter("telegram").GateWaited(time.Second)
	m.Gauge("inbox_new", "Messages that wait.", func() float64 { return 4 })
	m.Tool(tools.Event{Phase: tools.PhaseStarted})
	m.Tool(tools.Event{Phase: tools.PhaseFinished, Spec: tools.Spec{Name: "terminal", Toolset: "terminal"},
		Call:   tools.Call{Caller: tools.Caller{User: "4711", Chat: "4712"}},
		Result: &tools.Result{Exit: tools.ExitOK}})
	m.Tool(tools.Event{Phase: tools.PhaseFinished, Spec: tools.Spec{Name: "made_up_4713"}, Result: &tools.Result{Exit: tools.ExitInvalid}})
	text := get(m.Handler()).Body.String()
	for _, line := range []string{
		`herald_inbound_events_total{kind="message",outcome="accepted",platform="telegram"} 1`,
		`herald_turns_total{platform="telegram",state="done"} 1`,
		`herald_turn_seconds_count{platform="telegram"} 1`,
		`herald_model_calls_total{model="m",provider="x"} 1`,
		`herald_model_tokens_total{kind="input",model="m",provider="x"} 3`,
		`herald_sends_total{kind="final",outcome="sent",platform="telegram"} 1`,
		`herald_send_seconds_count{platform="telegram"} 1`,
		`herald_gate_wait_seconds_total{platform="telegram"} 2`,
		`herald_interim_dropped_total{platform="telegram",what="preview"} 1`,
		`herald_commit_seconds_count{edge="accept"} 1`,
		`herald_commit_batch_sum 2`,
		`herald_polls_total{outcome="ok",platform="telegram"} 1`,
		`herald_adapter_dropped_total{platform="telegram",reason="edited"} 1`,
		`herald_inbox_new 4`,
		`herald_tool_calls_total{exit="ok",tool="terminal"} 1`,
		`herald_tool_calls_total{exit="invalid",tool="unknown"} 1`,
	} {
		require.Contains(t, text, line+"\n")
	}
	require.NotRegexp(t, "471[0-9]", text)
	labels := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^herald_[a-z_]+\{([^}]*)\}`).FindAllStringSubmatch(text, -1) {
		for _, label := range strings.Split(match[1], ",") {
			name, _, _ := strings.Cut(label, "=")
			labels[name] = true
		}
	}
	for _, name := range []string{"platform", "kind", "outcome", "state", "tool", "exit", "what", "edge", "provider", "model", "reason", "le"} {
		delete(labels, name)
	}
	require.Empty(t, labels, "a new label: can it name a person?")
	require.False(t, m.Ready())
	m.SetReady(true)
	require.True(t, m.Ready())
}
