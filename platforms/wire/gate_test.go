package wire

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"herald/platforms"
)

// stepClock goes on only by sleeping and by step.
type stepClock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *stepClock { return &stepClock{now: time.Unix(1_700_000_000, 0)} }

func (c *stepClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *stepClock) Sleep(ctx context.Context, d time.Duration) error {
	c.step(max(d, 0))
	return ctx.Err()
}

func (c *stepClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func testRates(key string) []Rate {
	switch key {
	case Account:
		return []Rate{{PerSecond: 4, Burst: 3}}
	case "free":
		return nil
	}
	return []Rate{{PerSecond: 1, Burst: 2}}
}

func limitedFor(t require.TestingT, err error) *platforms.SendError {
	require.Error(t, err)
	e := platforms.AsSendError(err)
	require.Equal(t, platforms.RateLimited, e.Kind)
	require.Equal(t, platforms.NotSent, e.Certainty)
	require.Positive(t, e.RetryAfter)
	return e
}

// Whatever is asked, the rates of each key hold: at most Burst + PerSecond * window in every window.
func TestGate_KeepsItsRates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := newClock()
		g := NewGate(GateOptions{Clock: clock, Platform: "Testing", Limited: true, Rates: testRates})
		passed := map[string][]time.Time{}
		for range rapid.IntRange(1, 120).Draw(t, "requests") {
			clock.step(time.Duration(rapid.IntRange(0, 2000).Draw(t, "gap")) * time.Millisecond)
			key := rapid.SampledFrom([]string{"a", "b", Account}).Draw(t, "key")
			if err := g.Pass(t.Context(), rapid.Bool().Draw(t, "skip"), key); err != nil {
				limitedFor(t, err)
				continue
			}
			passed[key] = append(passed[key], clock.Now())
		}
		for key, times := range passed {
			for _, r := range testRates(key) {
				for i := range times {
					for j := i; j < len(times); j++ {
						most := float64(r.Burst) + float64(r.PerSecond)*(times[j].Sub(times[i])+time.Millisecond).Seconds()
						if float64(j-i+1) > most {
							t.Fatalf("%d requests of %q in %s, at most %.2f are allowed", j-i+1, key, times[j].Sub(times[i]), most)
						}
					}
				}
			}
		}
	})
}

// A request counts for all of its keys: it waits for the slowest, and a place that it can't use is free again.
func TestGate_AllKeys(t *testing.T) {
	clock := newClock()
	g := NewGate(GateOptions{Clock: clock, Platform: "Testing", Limited: true, Rates: testRates})
	for _, chat := range []string{"a", "a", "b"} {
		require.NoError(t, g.Pass(t.Context(), true, chat, Account))
	}
	require.InDelta(t, 250*time.Millisecond, limitedFor(t, g.Pass(t.Context(), true, "b", Account)).RetryAfter, float64(time.Millisecond))
	require.InDelta(t, time.Second, limitedFor(t, g.Pass(t.Context(), true, "a", Account)).RetryAfter, float64(time.Millisecond))
	clock.step(250 * time.Millisecond)
	require.NoError(t, g.Pass(t.Context(), true, "b", Account))
	begun := clock.Now()
	require.NoError(t, g.Pass(t.Context(), false, "a", Account))
	require.InDelta(t, 750*time.Millisecond, clock.Now().Sub(begun), float64(time.Millisecond))
}

// One that is turned away says how long it would wait and takes nobody's turn; one that may wait does.
func TestGate_SkipsOrWaits(t *testing.T) {
	clock := newClock()
	var waited time.Duration
	g := NewGate(GateOptions{Clock: clock, Platform: "Testing", Limited: true, Rates: testRates, Waited: func(d time.Duration) { waited += d }})
	for range 2 {
		require.NoError(t, g.Pass(t.Context(), true, "a"))
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	for range 50 {
		require.InDelta(t, time.Second, limitedFor(t, g.Pass(t.Context(), true, "a")).RetryAfter, float64(10*time.Millisecond))
		require.False(t, limitedFor(t, g.Pass(short, false, "a")).AccountWide)
	}
	require.Zero(t, waited)
	require.NoError(t, g.Pass(t.Context(), false, "a"))
	require.InDelta(t, time.Second, waited, float64(10*time.Millisecond))
	require.NoError(t, g.Pass(t.Context(), true, "b"), "another chat is free")
	for range 20 {
		require.NoError(t, g.Pass(t.Context(), true, "free"), "a key without rates")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, platforms.Transient, platforms.AsSendError(g.Pass(gone, false, "a")).Kind)
}

// P8: inside of a window nothing passes, rates or not, and also not what waited for its turn when it opened.
func TestGate_Windows(t *testing.T) {
	for _, limited := range []bool{true, false} {
		clock := newClock()
		g := NewGate(GateOptions{Clock: clock, Platform: "Testing", Limited: limited, Rates: testRates})
		g.Close(10*time.Second, "a", "method")
		g.Close(2*time.Second, "a") // a shorter one does not open it
		clock.step(9 * time.Second)
		e := limitedFor(t, g.Pass(t.Context(), false, "a"))
		require.Equal(t, time.Second, e.RetryAfter)
		require.False(t, e.AccountWide)
		require.ErrorContains(t, e, "Testing asked to wait")
		limitedFor(t, g.Check("b", "method"))
		require.NoError(t, g.Pass(t.Context(), false, "b"))
		clock.step(time.Second)
		require.NoError(t, g.Pass(t.Context(), false, "a", "method"))

		g.Close(time.Minute, Account)
		g.Close(time.Second, "a")
		e = limitedFor(t, g.Check("a", Account))
		require.Equal(t, time.Minute, e.RetryAfter)
		require.True(t, e.AccountWide)
		g.Close(2*time.Minute, "a")
		require.False(t, limitedFor(t, g.Check(Account, "a")).AccountWide)
	}
	clock := newClock()
	var g *Gate
	g = NewGate(GateOptions{Clock: clock, Platform: "Testing", Limited: true, Rates: testRates,
		Waited: func(time.Duration) { g.Close(time.Second, "a") }})
	for range 2 {
		require.NoError(t, g.Pass(t.Context(), false, "a"))
	}
	require.Equal(t, time.Second, limitedFor(t, g.Pass(t.Context(), false, "a")).RetryAfter)
}

// The memory of keys is bounded, and a window is never forgotten.
func TestGate_Forgets(t *testing.T) {
	clock := newClock()
	g := NewGate(GateOptions{Clock: clock, Platform: "Testing", Limited: true, Rates: testRates})
	g.Close(24*time.Hour, "shut")
	for i := range 5 * gateKept {
		clock.step(time.Second)
		require.NoError(t, g.Pass(t.Context(), true, strconv.Itoa(i)))
	}
	require.LessOrEqual(t, len(g.keys), gateKept)
	limitedFor(t, g.Check("shut"))
}
