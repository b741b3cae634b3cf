package sqlite

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"herald/sessions"
)

func set(name string) func(sessions.Tx) error {
	return func(tx sessions.Tx) error { return tx.SetValue("later", name, []byte("1"), clock) }
}

func has(t *testing.T, s *Store, name string) bool {
	t.Helper()
	found := false
	viewing(t, s, func(v sessions.View) {
		_, err := v.Value("later", name)
		if found = err == nil; !found {
			require.ErrorIs(t, err, sessions.ErrNotFound)
		}
	})
	return found
}

// What nobody waits for shares the commit of the next Update and runs before it.
func TestStore_Later_SharesTheNextCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "herald.db")
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Options{Path: path})
		require.NoError(t, err)
		before := s.Metrics()
		told := make(chan error, 2)
		s.Later(sessions.EdgeReceipt, set("a"), func(err error) { told <- err })
		s.Later(sessions.EdgeReceipt, func(sessions.Tx) error { return errors.New("boom") }, func(err error) { told <- err })
		synctest.Wait()
		require.False(t, has(t, s, "a"), "it waits")
		require.NoError(t, s.Update(t.Context(), sessions.EdgeState, func(tx sessions.Tx) error {
			_, err := tx.Value("later", "a")
			return err
		}), "an Update sees what was queued before it")
		require.NoError(t, <-told)
		require.EqualError(t, <-told, "boom", "an error is its own alone")
		require.Equal(t, int64(1), s.Metrics().Commits-before.Commits)
		require.True(t, has(t, s, "a"))
		require.NoError(t, s.Close())
	})
}

// Without an Update to join it gets a commit of its own, after LaterDelay and not sooner.
func TestStore_Later_HasABound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "herald.db")
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Options{Path: path})
		require.NoError(t, err)
		began := time.Now()
		told := make(chan error, 1)
		s.Later(sessions.EdgeReceipt, set("a"), func(err error) { told <- err })
		time.Sleep(sessions.LaterDelay / 2)
		s.Later(sessions.EdgeReceipt, set("b"), nil)
		require.NoError(t, <-told)
		require.Equal(t, sessions.LaterDelay, time.Since(began))
		require.True(t, has(t, s, "a"))
		require.True(t, has(t, s, "b"), "one commit does for both")
		s.Later(sessions.EdgeReceipt, set("c"), nil)
		require.NoError(t, s.Close(), "what waits is kept")
		s.Later(sessions.EdgeReceipt, set("d"), func(err error) { told <- err })
		require.ErrorIs(t, <-told, sessions.ErrClosed)
	})
	s := openAt(t, path)
	require.True(t, has(t, s, "c"))
	require.False(t, has(t, s, "d"))
}

// The first request of a commit has no savepoint; where it fails, all that it wrote is undone and the others are kept.
func TestStore_Later_TheFirstOfABatchFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "herald.db")
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Options{Path: path})
		require.NoError(t, err)
		boom := errors.New("boom")
		before := s.Metrics()
		failed := make(chan error, 2)
		for _, name := range []string{"a", "b"} {
			s.Later(sessions.EdgeState, func(tx sessions.Tx) error {
				if err := set(name)(tx); err != nil {
					return err
				}
				return boom
			}, func(err error) { failed <- err })
		}
		s.Later(sessions.EdgeState, set("c"), nil)
		require.NoError(t, s.Update(t.Context(), sessions.EdgeState, set("d")))
		require.Equal(t, boom, <-failed)
		require.Equal(t, boom, <-failed)
		require.Equal(t, int64(1), s.Metrics().Commits-before.Commits)
		for name, want := range map[string]bool{"a": false, "b": false, "c": true, "d": true} {
			require.Equal(t, want, has(t, s, name), name)
		}
		require.NoError(t, s.Close())
	})
}
