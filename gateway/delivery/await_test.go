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

// posted commits rows, hands them over and returns their ids.
func (b *bench) posted(rows ...*sessions.OutboxRow) (ids []sessions.OutboxID) {
	b.t.Helper()
	require.NoError(b.t, b.store.Update(b.t.Context(), sessions.EdgeQueue, func(tx sessions.Tx) error { return tx.PutOutbox(rows...) }))
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	b.w.Take(rows...)
	return ids
}

// Await returns with the outcome of the rows that were asked for, also where one of them had to be repeated, and not before.
func TestWorker_Await(t *testing.T) {
	s := &service{script: []error{nil, refusal(platforms.Transient, platforms.NotSent, 0)}}
	within(t, s, s, func(t *testing.T, b *bench) {
		ids := b.posted(final("one"), final("two"), final("three"))
		first, second, third := ids[0], ids[1], ids[2]
		began := time.Now()
		require.NoError(t, b.w.Await(t.Context(), first))
		require.Equal(t, sessions.OutSent, b.row(first).State)
		require.Zero(t, time.Since(began), "the receipt shares the commit of the next attempt")
		require.NoError(t, b.w.Await(t.Context(), second, third))
		require.Equal(t, time.Second+sessions.LaterDelay, time.Since(began), "nothing is slept through: the last receipt waits for company")
		require.Equal(t, sessions.OutSent, b.row(second).State)
		require.Equal(t, sessions.OutSent, b.row(third).State)
		require.NoError(t, b.w.Await(t.Context(), third, 999), "what has ended is not waited for")
	})
}

func TestWorker_AwaitEndsWithItsContextAndItsWorker(t *testing.T) {
	s := &service{script: []error{refusal(platforms.RateLimited, platforms.NotSent, time.Hour)}}
	within(t, s, s, func(t *testing.T, b *bench) {
		row := b.posted(final("held"))[0]
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, b.w.Await(short, row), context.DeadlineExceeded)
		require.NoError(t, b.w.Drain(t.Context()), "a row behind a gate is no reason to wait")
		ended := make(chan error, 1)
		go func() { ended <- b.w.Await(context.Background(), row) }()
		synctest.Wait()
		b.w.Close()
		require.NoError(t, <-ended)
	})
}
