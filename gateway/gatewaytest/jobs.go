package gatewaytest

import (
	"context"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/jobs/brief"
	"herald/sessions"
)

// Job makes a job that no chat has made, at 9 every day when it has no schedule.
func (h *House) Job(c cron.Change) cron.Job {
	h.T.Helper()
	if c.Schedule == nil {
		c.Schedule = new("every day at 9am")
	}
	j, err := h.Gateway.Scheduled().Book.Create(context.Background(), c, cron.By{Source: cron.FromCLI})
	require.NoError(h.T, err)
	return j
}

// Ran runs a job now and waits for its end and what follows from it.
func (h *House) Ran(id cron.JobID) (sessions.Run, brief.Result) {
	h.T.Helper()
	run, err := h.Gateway.Scheduled().Requests.Run(context.Background(), id, "")
	require.NoError(h.T, err)
	return h.Ended(id, run.ID)
}

// Ended waits for the end of a run, and for the platforms to have answered for its briefs.
func (h *House) Ended(id cron.JobID, run sessions.RunID) (found sessions.Run, result brief.Result) {
	h.T.Helper()
	h.Until("the run has ended", func() bool {
		runs, err := h.Gateway.Scheduled().Book.Runs(context.Background(), id, 100)
		require.NoError(h.T, err)
		for _, r := range runs {
			if r.ID == run && r.State.Ended() {
				found, result = r, brief.ReadResult(r)
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
