package jobs_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/gatewaytest"
	"herald/gateway/jobs/view"
	"herald/gateway/model/modeltest"
	"herald/sessions"
)

// provide writes a file of jobs.
func provide(h *gatewaytest.House, name, text string) {
	h.T.Helper()
	require.NoError(h.T, os.MkdirAll(filepath.Join(h.Home, "cron.d"), 0o700))
	require.NoError(h.T, os.WriteFile(filepath.Join(h.Home, "cron.d", name), []byte(text), 0o600))
}

// A file in the home provides jobs, is followed while the daemon runs, and tells where it is wrong where
// people look. What there is and what became of it is seen without the log.
func TestCron_AFileOfTheHomeProvidesJobs(t *testing.T) {
	h := gatewaytest.Build(t, modeltest.Answering(func(modeltest.Request) modeltest.Reply { return modeltest.Text("All is well.") }))
	h.Env = append(h.Env, "TELEGRAM_HOME_CHANNEL=7")
	provide(h, "team.yaml", "jobs:\n  morning: {schedule: every day at 9am, prompt: Look around, deliver: origin}\n")
	h.Run()
	id := cron.ProvidedID("cron.d/team.yaml", "morning")
	h.Until("the job is there", func() bool {
		_, err := h.Gateway.Scheduled().Book.Find(context.Background(), string(id))
		return err == nil
	})
	h.Telegram.Say(7, "/whoami")
	h.Until("a command was answered", func() bool { return len(h.Texts(7)) > 0 })
	run, result := h.Ran(id)
	require.Equal(t, sessions.RunRan, run.State, run.Reason)
	require.Equal(t, cron.FromFallback, result.Deliveries[0].From)
	h.Await(7, "All is well.")

	provide(h, "team.yaml", "jobs:\n  morning: {schedule: every day at 9am, promt: Look around}\n")
	const problem = `cron.d/team.yaml:2:41: job "morning": "promt": no such field; did you mean prompt?`
	h.Until("the mistake is told", func() bool {
		issues, err := h.Gateway.Scheduled().Jobs.Doctor(context.Background())
		require.NoError(t, err)
		return len(issues) == 1 && issues[0].Kind == view.IssueFile && issues[0].Text == problem
	})
	st, err := h.Gateway.Scheduled().Jobs.Status(context.Background())
	require.NoError(t, err)
	require.True(t, st.Alive)
	require.Equal(t, 1, st.Ran)
	require.Equal(t, []string{problem}, st.Files[0].Problems)
	require.Equal(t, map[view.State]int{view.StateScheduled: 1}, st.Jobs)

	_, metrics := h.Get("/metrics")
	for _, line := range []string{`herald_cron_runs_total{end="ran",kind="manual"} 1`, `herald_cron_jobs{state="scheduled"} 1`, `herald_cron_jobs{state="broken"} 0`,
		`herald_cron_deliveries_total{outcome="sent",platform="telegram"} 1`, `herald_cron_mirrors_total{kind="dm"} 1`, "herald_cron_jobs_overdue 0", "herald_cron_last_look_timestamp_seconds 1"} {
		require.Contains(t, metrics, line)
	}
	require.NotContains(t, metrics, string(id))
}

// A failure that a person has acknowledged is not reported again; another one of the same job is.
func TestCron_AnAcknowledgedFailureIsNotTold(t *testing.T) {
	answers := make(chan string, 4)
	h := gatewaytest.Build(t, modeltest.Answering(func(modeltest.Request) modeltest.Reply { return modeltest.Text(<-answers) }))
	h.Set["agent.empty_max_retries"] = "0"
	h.Run()
	j := h.Job(cron.Change{Name: new("Silent"), Prompt: new("x"), Deliver: new("telegram:7")})
	for range 4 {
		answers <- ""
	}
	h.Telegram.Say(7, "/whoami")
	h.Until("a command was answered", func() bool { return len(h.Texts(7)) > 0 })
	run, _ := h.Ran(j.ID)
	require.Equal(t, sessions.RunFailed, run.State)
	h.Await(7, "Silent")
	told := h.Count(7, "Silent")
	v := h.Gateway.Scheduled().Views
	list, err := v.Incidents(context.Background(), false)
	require.NoError(t, err)
	require.Len(t, list, 1)
	_, err = v.Ack(context.Background(), list[0].ID, false)
	require.NoError(t, err)
	run, result := h.Ran(j.ID)
	require.Equal(t, sessions.RunFailed, run.State)
	require.Empty(t, result.Deliveries)
	require.Equal(t, told, h.Count(7, "Silent"))
	_, err = v.Ack(context.Background(), list[0].ID, true)
	require.NoError(t, err)
	_, result = h.Ran(j.ID)
	require.Len(t, result.Deliveries, 1)
}

// A job that is removed while it runs ends without a word, and gives its place back to the others.
func TestCron_AJobThatIsRemovedWhileItRuns(t *testing.T) {
	asked, answer := make(chan struct{}, 8), make(chan struct{})
	h := gatewaytest.Build(t, modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if strings.Contains(r.LastUser(), "slowly") {
			asked <- struct{}{}
			<-answer
		}
		return modeltest.Text("Done with it.")
	}))
	h.Set["cron.max_parallel_jobs"] = "1"
	h.Run()
	h.Telegram.Say(7, "/whoami")
	h.Until("a command was answered", func() bool { return len(h.Texts(7)) > 0 })
	ctx := context.Background()
	slow := h.Job(cron.Change{Name: new("Slow"), Prompt: new("Work slowly."), Deliver: new("telegram:7")})
	next := h.Job(cron.Change{Name: new("Next"), Prompt: new("Work."), Deliver: new("telegram:7")})
	_, err := h.Gateway.Scheduled().Requests.Run(ctx, slow.ID, "")
	require.NoError(t, err)
	<-asked
	_, err = h.Gateway.Scheduled().Book.Remove(ctx, slow.ID)
	require.NoError(t, err)
	close(answer)
	var run sessions.Run
	h.Until("its place is free", func() bool {
		run, err = h.Gateway.Scheduled().Requests.Run(ctx, next.ID, "")
		return err == nil
	})
	h.Ended(next.ID, run.ID)
	h.Await(7, "Next")
	require.Zero(t, h.Count(7, "Slow"))
	require.NotContains(t, h.Log.String(), `"level":"error"`)
}

// A scheduler that has stopped to look for due jobs is told where people look; messages are answered all the same, so
// Herald stays ready.
func TestCron_AStuckSchedulerIsTold(t *testing.T) {
	var ahead atomic.Int64
	h := gatewaytest.Build(t, modeltest.Answering(func(modeltest.Request) modeltest.Reply { return modeltest.Text("x") }))
	h.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	h.Run()
	h.Until("Herald is ready", func() bool { status, _ := h.Get("/readyz"); return status == http.StatusOK })
	require.Empty(t, h.Ready().Problems)
	h.Until("the clock says that nobody has looked for an hour", func() bool {
		ahead.Add(int64(time.Hour)) // it looks by itself twice a minute, so now and then this comes too late
		health := h.Ready()
		return health.Ready && len(health.Problems) == 1 && strings.Contains(health.Problems[0], "scheduled jobs are not looked for since")
	})
	ahead.Add(int64(time.Hour))
	issues, err := h.Gateway.Scheduled().Jobs.Doctor(context.Background())
	require.NoError(t, err)
	require.NotEmpty(t, issues)
	require.Equal(t, view.IssueScheduler, issues[0].Kind)
}

// What was missed while nobody was there is seen without the log: counted, in the history, and first on the page.
func TestCron_WhatWasMissedIsSeen(t *testing.T) {
	h := gatewaytest.Build(t, modeltest.Answering(func(modeltest.Request) modeltest.Reply { return modeltest.Text("Here I am.") }))
	h.Run()
	j := h.Job(cron.Change{Name: new("Often"), Prompt: new("x"), Schedule: new("every 30m")})
	h.Halt()
	store := h.Store()
	j.Next = time.Now().Add(-3 * time.Hour)
	row, err := j.Row()
	require.NoError(t, err)
	require.NoError(t, store.Update(context.Background(), sessions.EdgeState, func(tx sessions.Tx) error { return tx.PutJob(row) }))
	require.NoError(t, store.Close())
	h.Run()
	h.Until("the job was caught up", func() bool {
		view, _, err := h.Gateway.Scheduled().Views.Job(context.Background(), j.ID, 10)
		require.NoError(t, err)
		return view.Last != nil && view.Last.State == sessions.RunRan
	})
	view, runs, err := h.Gateway.Scheduled().Views.Job(context.Background(), j.ID, 10)
	require.NoError(t, err)
	require.Len(t, runs, 2, "one run for all, and one row for those before it")
	require.Equal(t, sessions.RunMissed, runs[1].State)
	require.Equal(t, 6, runs[1].Slots)
	require.Equal(t, 6, view.Missed)
	h.Until("they are counted", func() bool { return strings.Contains(h.Metrics(), "herald_cron_slots_missed_total 6\n") })
	_, page := h.Get("/jobs")
	top, _, ok := strings.Cut(page, "</section>")
	require.True(t, ok)
	require.Contains(t, top, "Often</a>: it was missed 6 times in the last 24 hours")
}
