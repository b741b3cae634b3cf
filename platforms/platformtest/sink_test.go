package platformtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
)

func event(id platforms.EventID) platforms.Event {
	return platforms.Event{ID: id, Address: platforms.Address{Platform: "p", Account: "a", Chat: "c"}, Message: &platforms.Message{ID: "1"}}
}

func TestSink(t *testing.T) {
	s := &Sink{}
	changed := s.Changed()
	require.NoError(t, s.Accept(t.Context(), event("1"), event("2"), event("1")))
	<-changed
	require.Len(t, s.Events(), 2)
	require.Len(t, s.Offered(), 3)

	failure := errors.New("full disk")
	s.Fail(failure)
	require.ErrorIs(t, s.Accept(t.Context(), event("3")), failure)
	require.Len(t, s.Events(), 2)
	s.Fail(nil)

	release := s.Block()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Accept(ctx, event("3")), context.Canceled)
	done := make(chan error, 1)
	go func() { done <- s.Accept(t.Context(), event("3")) }()
	require.Eventually(t, func() bool { return len(s.Offered()) == 6 }, 10*time.Second, time.Millisecond)
	require.Len(t, s.Events(), 2)
	release()
	release()
	require.NoError(t, <-done)
	require.Len(t, s.Events(), 3)

	require.NoError(t, s.Accept(t.Context(), platforms.Event{ID: "4"}), "the core drops what is invalid")
	require.Len(t, s.Events(), 3)
	require.Len(t, s.Invalid(), 1)
}
