package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"herald/sessions"
)

// P11: the log gets its room in a quiet moment. What is committed before and after is there after a crash, which leaves the
// zeros behind, and a clean end leaves no log.
func TestKeeper_FillsTheLog(t *testing.T) {
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "herald.db"), filepath.Join(dir, "copy.db")
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Options{Path: path})
		require.NoError(t, err)
		require.NoError(t, s.Update(t.Context(), sessions.EdgeState, set("before")))
		time.Sleep(2 * idleAfter)
		synctest.Wait()
		require.GreaterOrEqual(t, fileSize(path+"-wal"), int64(logRoom))
		require.NoError(t, s.Update(t.Context(), sessions.EdgeState, set("after")))
		// The files as a crash would leave them.
		for _, suffix := range []string{"", "-wal"} {
			data, err := os.ReadFile(path + suffix)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(copied+suffix, data, 0o600))
		}
		grown := fileSize(path + "-wal")
		for i := range 3 * commitsPerCheckpoint {
			require.NoError(t, s.Update(t.Context(), sessions.EdgeState, set(fmt.Sprint(i))))
			if i%quietCheckpoint == 0 {
				time.Sleep(2 * idleAfter)
			}
		}
		require.Equal(t, grown, fileSize(path+"-wal"), "it is written over, not made longer")
		require.NoError(t, s.Close())
		require.NoFileExists(t, path+"-wal")
	})
	s := openAt(t, copied)
	require.True(t, has(t, s, "before"))
	require.True(t, has(t, s, "after"))
	report, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, report.Problems())
}

// A log that can't be made longer stays as it is.
func TestLengthen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	_, err := lengthen(path, 100, 50)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	more, err := lengthen(path, 100, 50)
	require.NoError(t, err)
	require.False(t, more, "an empty one was not begun")
	require.NoError(t, os.WriteFile(path, []byte("begun"), 0o600))
	for _, want := range []int64{55, 105} {
		more, err = lengthen(path, 100, 50)
		require.NoError(t, err)
		require.True(t, more)
		require.Equal(t, want, fileSize(path))
	}
	more, err = lengthen(path, 100, 50)
	require.NoError(t, err)
	require.False(t, more)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "begun", string(data[:5]))
}
