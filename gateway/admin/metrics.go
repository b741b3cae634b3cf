package admin

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"herald/gateway/model"
	"herald/platforms"
	"herald/sessions"
	"herald/tools"
	"herald/tools/process"
)

// Metrics is what a profile counts. It implements the observers of the core's parts. Labels are platform
// names, kinds and outcomes, never people.
type Metrics struct {
	registry *prometheus.Registry
	ready    atomic.Bool

	inbound     *prometheus.CounterVec
	turns       *prometheus.CounterVec
	turnTime    *prometheus.HistogramVec
	calls       *prometheus.CounterVec
	callTime    *prometheus.HistogramVec
	sends       *prometheus.CounterVec
	sendTime    *prometheus.HistogramVec
	gateWait    *prometheus.CounterVec
	interim     *prometheus.CounterVec
	polls       *prometheus.CounterVec
	adapterDrop *prometheus.CounterVec
	commits     *prometheus.HistogramVec
	batch       prometheus.Histogram
	modelCalls  *prometheus.CounterVec
	modelTokens *prometheus.CounterVec
	processes   *prometheus.CounterVec
	approvals   *prometheus.CounterVec
	cron        cronMetrics
}

// NewMetrics returns metrics with a registry of their own.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "herald_" + name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "herald_" + name, Help: help, Buckets: buckets}, labels)
		m.registry.MustRegister(h)
		return h
	}
	quick := []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .25, .5, 1, 5}
	slow := []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
	m.inbound = counter("inbound_events_total", "Events from platforms, by what became of them.", "platform", "kind", "outcome")
	m.turns = counter("turns_total", "Ended turns, by how.", "platform", "state")
	m.turnTime = histogram("turn_seconds", "How long turns took.", slow, "platform")
	m.calls = counter("tool_calls_total", "Ended tool calls, by how.", "tool", "exit")
	m.callTime = histogram("tool_call_seconds", "How long tool calls took.", slow, "tool")
	m.sends = counter("sends_total", "Attempts to send a message, by outcome.", "platform", "kind", "outcome")
	m.sendTime = histogram("send_seconds", "How long attempts to send took.", quick, "platform")
	m.gateWait = counter("gate_wait_seconds_total", "Time that messages were held back by retry-after windows.", "platform")
	m.interim = counter("interim_dropped_total", "Previews and progress that were not shown.", "platform", "what")
	m.polls = counter("polls_total", "Polls for updates, by outcome.", "platform", "outcome")
	m.adapterDrop = counter("adapter_dropped_total", "Updates that made no event, by reason.", "platform", "reason")
	m.commits = histogram("commit_seconds", "Time from an update to its commit.", quick, "edge")
	m.batch = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "herald_commit_batch", Help: "Updates that shared a commit.", Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128}})
	m.modelCalls = counter("model_calls_total", "Answers of models.", "provider", "model")
	m.modelTokens = counter("model_tokens_total", "Tokens, by kind.", "provider", "model", "kind")
	m.processes = counter("background_processes_ended_total", "Ended background processes, by how.", "state")
	m.approvals = counter("approvals_total", "Approvals of dangerous commands: asked, and what came of them.", "outcome")
	m.cron = newCronMetrics(m.registry, counter, histogram)
	m.registry.MustRegister(m.batch, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Gauge adds a value that is read at each scrape.
func (m *Metrics) Gauge(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "herald_" + name, Help: help}, read))
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Approval counts what came of a dangerous command: "asked" and then "once", "session", "always", "deny", "timeout" or
// "void"; or, without a question, "judged_safe", "unattended", "rule" and "refused".
func (m *Metrics) Approval(outcome string) { m.approvals.WithLabelValues(outcome).Inc() }

// SetReady says whether the daemon as a whole takes work.
func (m *Metrics) SetReady(ready bool) { m.ready.Store(ready) }

// Ready returns what SetReady said.
func (m *Metrics) Ready() bool { return m.ready.Load() }

// Inbound implements router.Metrics.
func (m *Metrics) Inbound(platform platforms.Name, kind, outcome string) {
	m.inbound.WithLabelValues(string(platform), kind, outcome).Inc()
}

// TurnEnded implements turn.Metrics.
func (m *Metrics) TurnEnded(platform platforms.Name, state sessions.TurnState, took time.Duration) {
	m.turns.WithLabelValues(string(platform), string(state)).Inc()
	m.turnTime.WithLabelValues(string(platform)).Observe(took.Seconds())
}

// ModelUsed implements turn.Metrics.
func (m *Metrics) ModelUsed(i model.Info, u model.Usage) {
	m.modelCalls.WithLabelValues(i.Provider, i.Name).Inc()
	for _, t := range []struct {
		kind string
		n    int64
	}{{"input", u.Input}, {"output", u.Output}, {"cache_read", u.CacheRead}, {"cache_write", u.CacheWrite}, {"reasoning", u.Reasoning}} {
		if t.n > 0 {
			m.modelTokens.WithLabelValues(i.Provider, i.Name, t.kind).Add(float64(t.n))
		}
	}
}

// ProcessEnded counts a background process that has ended.
func (m *Metrics) ProcessEnded(state process.State) {
	m.processes.WithLabelValues(string(state)).Inc()
}

// Tool is a subscriber of the bus.
func (m *Metrics) Tool(e tools.Event) {
	if e.Phase != tools.PhaseFinished || e.Result == nil {
		return
	}
	name := e.Spec.Name
	if e.Result.Exit == tools.ExitInvalid && e.Spec.Toolset == "" {
		name = "unknown" // a name that a model made up is no label
	}
	m.calls.WithLabelValues(name, e.Result.Exit).Inc()
	m.callTime.WithLabelValues(name).Observe(e.Result.Took.Seconds())
}

// Sent implements delivery.Observer.
func (m *Metrics) Sent(platform platforms.Name, kind sessions.OutboxKind, outcome string, took time.Duration) {
	m.sends.WithLabelValues(string(platform), string(kind), outcome).Inc()
	m.sendTime.WithLabelValues(string(platform)).Observe(took.Seconds())
}

// Gated implements delivery.Observer.
func (m *Metrics) Gated(platform platforms.Name, wait time.Duration) {
	m.gateWait.WithLabelValues(string(platform)).Add(wait.Seconds())
}

// Dropped implements delivery.Observer.
func (m *Metrics) Dropped(platform platforms.Name, what string) {
	m.interim.WithLabelValues(string(platform), what).Inc()
}

// Adapter is the part of the metrics that one platform's adapter counts in.
type Adapter struct {
	m        *Metrics
	platform string
}

// Adapter returns the counters of a platform.
func (m *Metrics) Adapter(platform platforms.Name) Adapter { return Adapter{m, string(platform)} }

// Polled counts a poll for updates.
func (a Adapter) Polled(outcome string) { a.m.polls.WithLabelValues(a.platform, outcome).Inc() }

// Dropped counts an update that made no event.
func (a Adapter) Dropped(reason string) { a.m.adapterDrop.WithLabelValues(a.platform, reason).Inc() }

// GateWaited adds the time that a send waited for the adapter's own rate gate.
func (a Adapter) GateWaited(wait time.Duration) {
	a.m.gateWait.WithLabelValues(a.platform).Add(wait.Seconds())
}

// Commit is the store's observer. It runs on the writer.
func (m *Metrics) Commit(edge sessions.Edge, latency time.Duration, batch int) {
	m.commits.WithLabelValues(string(edge)).Observe(latency.Seconds())
	m.batch.Observe(float64(batch))
}
