package turn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"herald/sessions"
)

// A conversation that nobody goes on with leaves the memory by itself.
func TestCache_Idle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(10, 1<<20)
		c.idle, c.now = time.Hour, time.Now
		put := func(id string) {
			c.put(&cached{id: sessions.ID(id), rows: []sessions.Message{{Content: id}}, total: 1})
		}
		has := func() int { c.mu.Lock(); defer c.mu.Unlock(); return len(c.entries) }
		put("a")
		time.Sleep(40 * time.Minute)
		put("b")
		time.Sleep(21 * time.Minute)
		synctest.Wait()
		require.Equal(t, 1, has(), "a has been idle for an hour, b has not")
		_, ok := c.take("b", 1)
		require.True(t, ok)
		put("b")
		time.Sleep(59 * time.Minute)
		require.Equal(t, 1, has(), "taken and put back, it is new again")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Zero(t, has())
		require.Zero(t, c.bytes)
		put("c")
		c.close()
		put("d")
		require.Zero(t, has())
	})
}

func TestNewest(t *testing.T) {
	user, answer := sessions.Message{Role: sessions.User}, sessions.Message{Role: sessions.Assistant}
	tool, steer := sessions.Message{Role: sessions.Tool}, sessions.Message{Role: sessions.User, Kind: sessions.KindSteer}
	rows := []sessions.Message{user, answer, tool, steer, answer, user, answer}
	require.Len(t, newest(rows, 0), 7)
	require.Len(t, newest(rows, 7), 7)
	require.Len(t, newest(rows, 5), 2, "it begins with a message of a person, never with the result of a call that is gone")
}
