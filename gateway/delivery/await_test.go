package delivery_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/sessions"
)

// Await returns with the outcome of the rows that were asked for, also where one of them had to be repeated, and not before.
func TestWorker_Await(t *testing.T) {
	s := &service{script: []error{nil, refusal(platforms.Transient, platforms.NotSent, 0)}}
	within(t, s, s, func(t *testing.T, b *bench) {
		first, second, third := final("one"), final("two"), final("three")
		b.post(first, second, third)
		began := time.Now()
		require.NoError(t, b.w.Await(t.Context(), first.ID))
		require.Equal(t, sessions.OutSent, b.row(first.ID).State)
		require.Zero(t, time.Since(began), "the receipt shares the commit of the next attempt")
		require.NoError(t, b.w.Await(t.Context(), second.ID, third.ID))
		require.Equal(t, time.Second+sessions.LaterDelay, time.Since(began), "nothing is slept through: the last receipt waits for company")
		require.Equal(t, sessions.OutSent, b.row(second.ID).State)
		require.Equal(t, sessions.OutSent, b.row(third.ID).State)
		require.NoError(t, b.w.Await(t.Context(), third.ID, 999), "what has ended is not waited for")
	})
}

func TestWorker_AwaitEndsWithItsContextAndItsWorker(t *testing.T) {
	s := &service{script: []error{refusal(platforms.RateLimited, platforms.NotSent, time.Hour)}}
	within(t, s, s, func(t *testing.T, b *bench) {
		row := final("held")
		b.post(row)
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, b.w.Await(short, row.ID), context.DeadlineExceeded)
		require.NoError(t, b.w.Drain(t.Context()), "a row behind a gate is no reason to wait")
		ended := make(chan error, 1)
		go func() { ended <- b.w.Await(context.Background(), row.ID) }()
		synctest.Wait()
		b.w.Close()
		require.NoError(t, <-ended)
	})
}
