package jobs_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/gatewaytest"
	"herald/gateway/jobs/brief"
	"herald/gateway/model/modeltest"
	"herald/sessions"
)

// watching is a house whose clock a test moves, with a page that a job may watch.
type watching struct {
	*gatewaytest.House
	script *modeltest.Script
	url    string

	mu    sync.Mutex
	now   time.Time
	page  string
	fails bool // the model refuses
}

func watch(t *testing.T) *watching {
	w := &watching{now: time.Date(2026, 11, 2, 8, 59, 0, 0, time.UTC), page: "version 1"}
	w.script = briefer(func(modeltest.Request) modeltest.Reply {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.fails {
			return modeltest.Failing(400, "invalid_request_error", "the request is malformed")
		}
		return modeltest.Text("There is news.")
	})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		_, _ = rw.Write([]byte(w.page))
	}))
	t.Cleanup(server.Close)
	w.url = server.URL + "/feed"
	w.House = gatewaytest.Build(t, w.script)
	w.House.Now = func() time.Time {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.now
	}
	w.Set["timezone"] = "UTC"
	w.Set["gateway.download_hosts"] = server.URL
	w.Run()
	hello(w.House, 7)
	return w
}

// next lets a minute pass and returns the run of the slot in it, the n-th of its job.
func (w *watching) next(id cron.JobID, n int) (sessions.Run, brief.Result) {
	w.T.Helper()
	w.mu.Lock()
	w.now = w.now.Add(time.Minute)
	w.mu.Unlock()
	w.Gateway.Scheduled().Requests.Poke()
	return w.Ended(id, runsOf(w.House, id, n)[0].ID)
}

func (w *watching) change(page string, fails bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.page, w.fails = page, fails
}

// The agent is asked when what is watched has changed, and is told what; the first look only records.
func TestCron_Monitor_URL(t *testing.T) {
	w := watch(t)
	j := w.Job(cron.Change{Name: new("Feed"), Prompt: new("Tell me."), Monitor: new(w.url),
		Schedule: new("every minute"), Deliver: new("telegram:7")})
	for n := range 2 {
		run, result := w.next(j.ID, n+1)
		require.Equal(t, sessions.RunRan, run.State, run.Reason)
		require.Equal(t, "no_change", result.Silent)
	}
	require.Empty(t, w.script.Requests(), "no agent is asked")
	w.change("version 2", false)
	run, result := w.next(j.ID, 3)
	require.Equal(t, sessions.RunRan, run.State, run.Reason)
	require.Empty(t, result.Silent)
	require.Equal(t, 1, w.Count(7, "There is news."))
	asked := w.script.Requests()
	require.Len(t, asked, 1)
	require.Contains(t, asked[0].LastUser(), "## Changed: "+w.url)
	require.Contains(t, asked[0].LastUser(), "version 1")
	require.Contains(t, asked[0].LastUser(), "version 2")
	require.Contains(t, asked[0].LastUser(), "Tell me.")
	_, result = w.next(j.ID, 4)
	require.Equal(t, "no_change", result.Silent, "a change is told once")
}

// A change counts when a run has told of it: one that fails leaves it for the next.
func TestCron_Monitor_AFailedRunLosesNoChange(t *testing.T) {
	w := watch(t)
	j := w.Job(cron.Change{Name: new("Feed"), Prompt: new("Tell me."), Monitor: new(w.url),
		Schedule: new("every minute"), Deliver: new("telegram:7")})
	_, result := w.next(j.ID, 1)
	require.Equal(t, "no_change", result.Silent)
	w.change("version 2", true)
	run, _ := w.next(j.ID, 2)
	require.Equal(t, sessions.RunFailed, run.State)
	w.change("version 2", false)
	run, _ = w.next(j.ID, 3)
	require.Equal(t, sessions.RunRan, run.State, run.Reason)
	require.Equal(t, 1, w.Count(7, "There is news."))
	_, result = w.next(j.ID, 4)
	require.Equal(t, "no_change", result.Silent)
}

// A page inside the operator's network is not watched, and a script may be watched instead.
func TestCron_Monitor_Refused(t *testing.T) {
	w := watch(t)
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	j := w.Job(cron.Change{Name: new("Inner"), Prompt: new("Tell me."), Monitor: new(other.URL + "/?key=hunter2"), Deliver: new("telegram:7")})
	run, _ := w.Ran(j.ID)
	require.Equal(t, sessions.RunFailed, run.State)
	require.Contains(t, run.Reason, "127.0.0.1")
	require.NotContains(t, run.Reason, "hunter2")
	require.Equal(t, 1, w.Count(7, "Inner has failed"))
	require.Zero(t, w.Count(7, "hunter2"))
	require.Empty(t, w.script.Requests())
	_, err := w.Gateway.Scheduled().Book.Create(context.Background(),
		cron.Change{Prompt: new("x"), Schedule: new("every hour"), Monitor: new("../x.sh")}, cron.By{Source: cron.FromCLI})
	require.ErrorContains(t, err, "monitor")

	dir := filepath.Join(w.Home, "scripts")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w.sh"), []byte("cat n\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "n"), []byte("41\n"), 0o600))
	s := w.Job(cron.Change{Name: new("Count"), Prompt: new("Tell me."), Monitor: new("w.sh"),
		Schedule: new("every minute"), Deliver: new("telegram:7")})
	_, result := w.next(s.ID, 1)
	require.Equal(t, "no_change", result.Silent)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "n"), []byte("42\n"), 0o600))
	run, _ = w.next(s.ID, 2)
	require.Equal(t, sessions.RunRan, run.State, run.Reason)
	require.Equal(t, 1, w.Count(7, "There is news."))
}
