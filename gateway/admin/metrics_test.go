package admin_test

import (
	"io"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/admin"
	"herald/sessions"
)

// scrape is what the metrics say.
func scrape(t *testing.T, m *admin.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body, err := io.ReadAll(w.Result().Body)
	require.NoError(t, err)
	return string(body)
}

func TestMetrics_Cron(t *testing.T) {
	m := admin.NewMetrics()
	m.RunEnded(sessions.RunOnTime, sessions.RunRan, 3*time.Second, time.Minute)
	m.RunEnded(sessions.RunLate, sessions.RunFailed, 20*time.Minute, time.Second)
	m.RunEnded(sessions.RunLate, sessions.RunMissed, time.Hour, 0)
	m.Missed(7)
	m.Delivered("telegram", sessions.OutSent)
	m.Mirrored("thread")
	m.Looked(time.Unix(1_800_000_000, 500_000_000))
	states := map[string]float64{"scheduled": 3, "paused": 1}
	m.Gauges("cron_jobs", "Jobs by state.", "state", func() map[string]float64 { return states })
	got := scrape(t, m)
	for _, line := range []string{
		`herald_cron_runs_total{end="ran",kind="on_time"} 1`,
		`herald_cron_runs_total{end="failed",kind="late"} 1`,
		`herald_cron_runs_total{end="missed",kind="late"} 1`,
		`herald_cron_late_seconds_bucket{kind="on_time",le="5"} 1`,
		`herald_cron_late_seconds_count{kind="late"} 1`, // what was missed has not begun
		`herald_cron_run_seconds_sum{end="ran"} 60`,
		`herald_cron_slots_missed_total 7`,
		`herald_cron_deliveries_total{outcome="sent",platform="telegram"} 1`,
		`herald_cron_mirrors_total{kind="thread"} 1`,
		`herald_cron_last_look_timestamp_seconds 1.8000000005e+09`,
		`herald_cron_jobs{state="scheduled"} 3`,
		`herald_cron_jobs{state="paused"} 1`,
	} {
		require.Contains(t, got, line+"\n")
	}
	states = nil
	require.NotContains(t, scrape(t, m), "herald_cron_jobs{")
}
