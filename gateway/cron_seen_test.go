package gateway_test

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
	"herald/gateway/jobs/view"
	"herald/gateway/model/modeltest"
	"herald/sessions"
)

// provide writes a file of jobs.
func (h *house) provide(name, text string) {
	h.t.Helper()
	require.NoError(h.t, os.MkdirAll(filepath.Join(h.home, "cron.d"), 0o700))
	require.NoError(h.t, os.WriteFile(filepath.Join(h.home, "cron.d", name), []byte(text), 0o600))
}

// Issue item 6: a file in the home provides jobs, is followed while the daemon runs, and tells where it is wrong where
// people look. Issue item 7: what there is and what became of it is seen without the log.
func TestCron_AFileOfTheHomeProvidesJobs(t *testing.T) {
	h := build(t, modeltest.Answering(func(modeltest.Request) modeltest.Reply { return modeltest.Text("All is well.") }))
	h.env = append(h.env, "TELEGRAM_HOME_CHANNEL=7")
	h.provide("team.yaml", "jobs:\n  morning: {schedule: every day at 9am, prompt: Look around, deliver: origin}\n")
	h.run()
	id := cron.ProvidedID("cron.d/team.yaml", "morning")
	h.until("the job is there", func() bool {
		_, err := h.gateway.Book().Find(context.Background(), string(id))
		return err == nil
	})
	h.tg.Say(7, "/whoami")
	h.until("a command was answered", func() bool { return len(h.texts(7)) > 0 })
	run, result := h.ran(id)
	require.Equal(t, sessions.RunRan, run.State, run.Reason)
	require.Equal(t, cron.FromFallback, result.Deliveries[0].From)
	h.await(7, "All is well.")

	h.provide("team.yaml", "jobs:\n  morning: {schedule: every day at 9am, promt: Look around}\n")
	const problem = `cron.d/team.yaml:2:41: job "morning": "promt": no such field; did you mean prompt?`
	h.until("the mistake is told", func() bool {
		issues, err := h.gateway.Jobs().Doctor(context.Background())
		require.NoError(t, err)
		return len(issues) == 1 && issues[0].Kind == view.IssueFile && issues[0].Text == problem
	})
	st, err := h.gateway.Jobs().Status(context.Background())
	require.NoError(t, err)
	require.True(t, st.Alive)
	require.Equal(t, 1, st.Ran)
	require.Equal(t, []string{problem}, st.Files[0].Problems)
	require.Equal(t, map[view.State]int{view.StateScheduled: 1}, st.Jobs)

	_, metrics := h.get("/metrics")
	for _, line := range []string{`herald_cron_runs_total{end="ran",kind="manual"} 1`, `herald_cron_jobs{state="scheduled"} 1`, `herald_cron_jobs{state="broken"} 0`,
		`herald_cron_deliveries_total{outcome="sent",platform="telegram"} 1`, `herald_cron_mirrors_total{kind="dm"} 1`, "herald_cron_jobs_overdue 0", "herald_cron_last_look_timestamp_seconds 1"} {
		require.Contains(t, metrics, line)
	}
	require.NotContains(t, metrics, string(id))
}

// A failure that a person has acknowledged is not reported again; another one of the same job is.
func TestCron_AnAcknowledgedFailureIsNotTold(t *testing.T) {
	answers := make(chan string, 4)
	h := build(t, modeltest.Answering(func(modeltest.Request) modeltest.Reply { return modeltest.Text(<-answers) }))
	h.set["agent.empty_max_retries"] = "0"
	h.run()
	j := h.job(cron.Change{Name: ptr("Silent"), Prompt: ptr("x"), Deliver: ptr("telegram:7")})
	for range 4 {
		answers <- ""
	}
	h.tg.Say(7, "/whoami")
	h.until("a command was answered", func() bool { return len(h.texts(7)) > 0 })
	run, _ := h.ran(j.ID)
	require.Equal(t, sessions.RunFailed, run.State)
	h.await(7, "Silent")
	told := h.count(7, "Silent")
	v := h.gateway.JobViews()
	list, err := v.Incidents(context.Background(), false)
	require.NoError(t, err)
	require.Len(t, list, 1)
	_, err = v.Ack(context.Background(), list[0].ID, false)
	require.NoError(t, err)
	run, result := h.ran(j.ID)
	require.Equal(t, sessions.RunFailed, run.State)
	require.Empty(t, result.Deliveries)
	require.Equal(t, told, h.count(7, "Silent"))
	_, err = v.Ack(context.Background(), list[0].ID, true)
	require.NoError(t, err)
	_, result = h.ran(j.ID)
	require.Len(t, result.Deliveries, 1)
}

// A job that is removed while it runs ends without a word, and gives its place back to the others.
func TestCron_AJobThatIsRemovedWhileItRuns(t *testing.T) {
	asked, answer := make(chan struct{}, 8), make(chan struct{})
	h := build(t, modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if strings.Contains(r.LastUser(), "slowly") {
			asked <- struct{}{}
			<-answer
		}
		return modeltest.Text("Done with it.")
	}))
	h.set["cron.max_parallel_jobs"] = "1"
	h.run()
	h.tg.Say(7, "/whoami")
	h.until("a command was answered", func() bool { return len(h.texts(7)) > 0 })
	ctx := context.Background()
	slow := h.job(cron.Change{Name: ptr("Slow"), Prompt: ptr("Work slowly."), Deliver: ptr("telegram:7")})
	next := h.job(cron.Change{Name: ptr("Next"), Prompt: ptr("Work."), Deliver: ptr("telegram:7")})
	_, err := h.gateway.JobRequests().Run(ctx, slow.ID, "")
	require.NoError(t, err)
	<-asked
	_, err = h.gateway.Book().Remove(ctx, slow.ID)
	require.NoError(t, err)
	close(answer)
	var run sessions.Run
	h.until("its place is free", func() bool {
		run, err = h.gateway.JobRequests().Run(ctx, next.ID, "")
		return err == nil
	})
	h.ended(next.ID, run.ID)
	h.await(7, "Next")
	require.Zero(t, h.count(7, "Slow"))
	require.NotContains(t, h.log.String(), `"level":"error"`)
}

// A scheduler that has stopped to look for due jobs is told where people look; messages are answered all the same, so
// Herald stays ready.
func TestCron_AStuckSchedulerIsTold(t *testing.T) {
	var ahead atomic.Int64
	h := build(t, modeltest.Answering(func(modeltest.Request) modeltest.Reply { return modeltest.Text("x") }))
	h.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	h.run()
	h.until("Herald is ready", func() bool { status, _ := h.get("/readyz"); return status == http.StatusOK })
	require.Empty(t, h.ready().Problems)
	h.until("the clock says that nobody has looked for an hour", func() bool {
		ahead.Add(int64(time.Hour)) // it looks by itself twice a minute, so now and then this comes too late
		health := h.ready()
		return health.Ready && len(health.Problems) == 1 && strings.Contains(health.Problems[0], "scheduled jobs are not looked for since")
	})
	ahead.Add(int64(time.Hour))
	issues, err := h.gateway.Jobs().Doctor(context.Background())
	require.NoError(t, err)
	require.NotEmpty(t, issues)
	require.Equal(t, view.IssueScheduler, issues[0].Kind)
}

// Issue item 7: what was missed while nobody was there is seen without the log: counted, in the history, and first on the page.
func TestCron_WhatWasMissedIsSeen(t *testing.T) {
	h := build(t, modeltest.Answering(func(modeltest.Request) modeltest.Reply { return modeltest.Text("Here I am.") }))
	h.run()
	j := h.job(cron.Change{Name: ptr("Often"), Prompt: ptr("x"), Schedule: ptr("every 30m")})
	h.halt()
	store := h.store()
	j.Next = time.Now().Add(-3 * time.Hour)
	row, err := j.Row()
	require.NoError(t, err)
	require.NoError(t, store.Update(context.Background(), sessions.EdgeState, func(tx sessions.Tx) error { return tx.PutJob(row) }))
	require.NoError(t, store.Close())
	h.run()
	h.until("the job was caught up", func() bool {
		view, _, err := h.gateway.JobViews().Job(context.Background(), j.ID, 10)
		require.NoError(t, err)
		return view.Last != nil && view.Last.State == sessions.RunRan
	})
	view, runs, err := h.gateway.JobViews().Job(context.Background(), j.ID, 10)
	require.NoError(t, err)
	require.Len(t, runs, 2, "one run for all, and one row for those before it")
	require.Equal(t, sessions.RunMissed, runs[1].State)
	require.Equal(t, 6, runs[1].Slots)
	require.Equal(t, 6, view.Missed)
	h.until("they are counted", func() bool { return strings.Contains(h.metrics(), "herald_cron_slots_missed_total 6\n") })
	_, page := h.get("/jobs")
	top, _, ok := strings.Cut(page, "</section>")
	require.True(t, ok)
	require.Contains(t, top, "Often</a>: it was missed 6 times in the last 24 hours")
}
