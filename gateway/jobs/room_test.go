package jobs

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/sessions"
)

// No more runs begin than may; each gives its room back once, and the scheduler hears of it.
func TestRoom(t *testing.T) {
	most, freed := 1, 0
	r := &room{most: func() int { return most }, freed: func() { freed++ }}
	leave, ok := r.enter()
	require.True(t, ok)
	_, ok = r.enter()
	require.False(t, ok)
	leave()
	leave()
	require.Equal(t, 1, freed)
	require.Zero(t, r.runs)
	_, ok = r.enter()
	require.True(t, ok)
	r.leave()
	r.leave() // a turn that an earlier process has begun
	require.Zero(t, r.runs)
	most = 0
	for range 3 {
		_, ok = r.enter()
		require.True(t, ok, "0 is no limit")
	}
	r.close()
	_, ok = r.enter()
	require.False(t, ok)
}

// A drain returns as soon as the last stage has ended, and with its context otherwise.
func TestStages_Drain(t *testing.T) {
	s := newStages()
	require.NoError(t, s.drain(t.Context()))
	s.add(1)
	s.add(1) // a transaction that is tried again
	s.add(2)
	require.True(t, s.has(2))
	short, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.drain(short), context.Canceled)
	done := make(chan error, 1)
	go func() { done <- s.drain(context.Background()) }()
	for _, id := range []sessions.RunID{1, 7, 2} {
		s.remove(id)
	}
	require.NoError(t, <-done)
	require.False(t, s.has(1))
}
