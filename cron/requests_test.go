package cron_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/sessions"
)

// A run that is asked for begins in the scheduler that works, once at a time; without one nobody waits forever.
func TestRequests_Run(t *testing.T) {
	b := newBench(t)
	s := b.scheduler()
	j := b.job("report", "every 1h", func(p *cron.Plan) { p.Paused = true })
	early, giveUp := context.WithCancel(t.Context())
	giveUp()
	_, err := b.asks.Run(early, j.ID, "")
	require.ErrorIs(t, err, context.Canceled, "nothing works yet")

	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- s.Run(ctx) }()
	run, err := b.asks.Run(t.Context(), j.ID, "now")
	require.NoError(t, err)
	require.Equal(t, sessions.RunManual, run.Kind)
	require.Equal(t, run.ID, b.runs(j.ID)[0].ID)
	_, err = b.asks.Run(t.Context(), j.ID, "")
	require.ErrorIs(t, err, cron.ErrRunning)
	_, err = b.asks.Run(t.Context(), "aaaaaaaaaaaa", "")
	require.ErrorIs(t, err, sessions.ErrNotFound)

	stop()
	require.NoError(t, <-over)
	_, err = b.asks.Run(t.Context(), j.ID, "")
	require.ErrorIs(t, err, cron.ErrStopped)
	b.asks.Poke()
	b.asks.Poke() // never waits
}
