package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"herald/platforms"
	"herald/sessions"
)

// cronMetrics is what is counted of scheduled jobs. Neither names nor ids of jobs are labels: there may be many.
type cronMetrics struct {
	runs       *prometheus.CounterVec
	late       *prometheus.HistogramVec
	took       *prometheus.HistogramVec
	missed     prometheus.Counter
	deliveries *prometheus.CounterVec
	mirrors    *prometheus.CounterVec
	looked     prometheus.Gauge
}

func newCronMetrics(registry *prometheus.Registry, counter func(name, help string, labels ...string) *prometheus.CounterVec,
	histogram func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec) cronMetrics {
	m := cronMetrics{
		runs:       counter("cron_runs_total", "Ended runs of scheduled jobs, by how they ended and why they ran when they did.", "end", "kind"),
		late:       histogram("cron_late_seconds", "How long after its slot a run began.", []float64{1, 2, 5, 15, 30, 60, 120, 300, 900, 3600, 7200, 86400}, "kind"),
		took:       histogram("cron_run_seconds", "How long runs took.", []float64{.1, .5, 1, 2.5, 5, 10, 30, 60, 300, 600, 1800, 3600}, "end"),
		deliveries: counter("cron_deliveries_total", "Messages of briefs that a platform has answered for, by outcome.", "platform", "outcome"),
		mirrors:    counter("cron_mirrors_total", "Briefs that became part of a conversation, by how.", "kind"),
		missed:     prometheus.NewCounter(prometheus.CounterOpts{Name: "herald_cron_slots_missed_total", Help: "Slots of scheduled jobs that nobody was there to run."}),
		looked: prometheus.NewGauge(prometheus.GaugeOpts{Name: "herald_cron_last_look_timestamp_seconds",
			Help: "When due slots were last looked for, as Unix time; it is no older than half a minute while the scheduler works."}),
	}
	registry.MustRegister(m.missed, m.looked)
	return m
}

// RunEnded counts the end of a run. How late it began and how long it took is only known of those that have begun.
func (m *Metrics) RunEnded(kind sessions.RunKind, end sessions.RunState, late, took time.Duration) {
	m.cron.runs.WithLabelValues(string(end), string(kind)).Inc()
	if end != sessions.RunRan && end != sessions.RunFailed {
		return
	}
	m.cron.late.WithLabelValues(string(kind)).Observe(late.Seconds())
	m.cron.took.WithLabelValues(string(end)).Observe(took.Seconds())
}

// Missed counts slots that nobody was there to run.
func (m *Metrics) Missed(slots int) { m.cron.missed.Add(float64(slots)) }

// Delivered counts a message of a brief that a platform has answered for.
func (m *Metrics) Delivered(platform platforms.Name, outcome sessions.OutboxState) {
	m.cron.deliveries.WithLabelValues(string(platform), string(outcome)).Inc()
}

// Mirrored counts a brief that became part of a conversation.
func (m *Metrics) Mirrored(kind string) { m.cron.mirrors.WithLabelValues(kind).Inc() }

// Looked notes that due slots were looked for.
func (m *Metrics) Looked(at time.Time) { m.cron.looked.Set(float64(at.UnixMilli()) / 1000) }

// Gauges adds values by one label that are read at each scrape. read returns nil when they can't be known now.
func (m *Metrics) Gauges(name, help, label string, read func() map[string]float64) {
	m.registry.MustRegister(&gauges{prometheus.NewDesc("herald_"+name, help, []string{label}, nil), read})
}

// gauges is a collector of values by one label.
type gauges struct {
	desc *prometheus.Desc
	read func() map[string]float64
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(to chan<- *prometheus.Desc) { to <- g.desc }

// Collect implements prometheus.Collector.
func (g *gauges) Collect(to chan<- prometheus.Metric) {
	for label, value := range g.read() {
		to <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, value, label)
	}
}
