package gateway_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/jobs"
	"herald/gateway/model/modeltest"
	"herald/sessions"
)

func ptr[T any](v T) *T { return &v }

// job makes a job that no chat has made.
func (h *house) job(c cron.Change) cron.Job {
	h.t.Helper()
	if c.Schedule == nil {
		c.Schedule = ptr("every day at 9am")
	}
	j, err := h.gateway.Jobs().Book().Create(context.Background(), c, cron.By{Source: cron.FromCLI})
	require.NoError(h.t, err)
	return j
}

// ran runs a job now and waits for its end and what follows from it.
func (h *house) ran(id cron.JobID) (sessions.Run, jobs.Result) {
	h.t.Helper()
	run, err := h.gateway.Jobs().Trigger(context.Background(), id, "")
	require.NoError(h.t, err)
	return h.ended(id, run.ID)
}

// ended waits for the end of a run, and for the platforms to have answered for its briefs.
func (h *house) ended(id cron.JobID, run sessions.RunID) (found sessions.Run, result jobs.Result) {
	h.t.Helper()
	h.until("the run has ended", func() bool {
		runs, err := h.gateway.Jobs().Book().Runs(context.Background(), id, 100)
		require.NoError(h.t, err)
		for _, r := range runs {
			if r.ID == run && r.State.Ended() {
				found, result = r, jobs.ReadResult(r)
				for _, d := range result.Deliveries {
					if d.State == sessions.OutPending {
						return false
					}
				}
				return true
			}
		}
		return false
	})
	return found, result
}

// The field's bug: a job without an origin comes to a home DM, and the reply meets an agent that knows nothing of it.
// P4, P5, P6, P9.
func TestCron_ABriefOfAHomeChannelCanBeAnswered(t *testing.T) {
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		switch {
		case strings.Contains(r.System, "scheduled job (cron)"):
			return modeltest.Text("Three mails wait for you.")
		default:
			lines := strings.Split(r.LastUser(), "\n")
			return modeltest.Text("You asked: " + lines[len(lines)-1])
		}
	})
	h := build(t, script)
	h.env = append(h.env, "TELEGRAM_HOME_CHANNEL=7")
	h.run()
	h.tg.Say(8, "a secret of chat eight")
	h.await(8, "You asked")
	h.tg.Say(7, "/whoami") // a bot may not write first; the chat has no conversation yet
	h.until("a command was answered", func() bool { return len(h.texts(7)) > 0 })
	j := h.job(cron.Change{Name: ptr("Mail brief"), Prompt: ptr("Look at the mail."), Deliver: ptr("origin")})
	run, result := h.ran(j.ID)
	require.Equal(t, sessions.RunRan, run.State, run.Reason)
	require.Len(t, result.Deliveries, 1)
	require.Equal(t, sessions.OutSent, result.Deliveries[0].State)
	require.Equal(t, cron.FromFallback, result.Deliveries[0].From)
	require.Equal(t, []string{"dm"}, result.Deliveries[0].Mirrored)
	require.NotEmpty(t, result.Output)
	brief := h.await(7, "Three mails wait for you.")
	require.Contains(t, brief.Text, "Mail brief")
	require.Contains(t, brief.Text, string(j.ID))

	before := len(script.Requests())
	h.tg.Say(7, "who wrote the second one?")
	h.await(7, "You asked: who wrote")
	asked := script.Requests()[before:]
	require.Len(t, asked, 1)
	told := 0
	for _, m := range asked[0].Messages {
		if n := strings.Count(m.Text, "Three mails wait for you."); n > 0 {
			require.Equal(t, "user", m.Role)
			require.Contains(t, m.Text, "[Cron delivery: Mail brief]")
			require.NotContains(t, m.Text, "/cron pause")
			told += n
		}
		require.NotContains(t, m.Text, "chat eight")
	}
	require.Equal(t, 1, told)
	require.Equal(t, 1, h.count(7, "Three mails wait for you."))
}
