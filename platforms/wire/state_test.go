package wire

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"herald/platforms"
)

// P12: a loop that has died without a word is noticed by the clock alone.
func TestHealth_Deaf(t *testing.T) {
	clock := newClock()
	h := NewHealth(clock, "no poll was answered")
	begun := clock.Now()
	require.Equal(t, platforms.Health{State: "starting", Since: begun}, h.Now())
	clock.step(time.Second)
	h.Fine()
	fine := clock.Now()
	require.Equal(t, platforms.Health{Inbound: true, State: Connected, Since: fine, LastEvent: fine}, h.Now())
	clock.step(time.Hour)
	require.True(t, h.Now().Inbound, "silence says nothing yet")

	h.Expect(100 * time.Second)
	require.Equal(t, time.Hour, h.Silent())
	require.Equal(t, platforms.Health{State: Deaf, Since: fine.Add(100 * time.Second), LastEvent: fine, Detail: "no poll was answered for 1m40s"}, h.Now())
	h.Heard()
	require.True(t, h.Now().Inbound)
	clock.step(100 * time.Second)
	require.True(t, h.Now().Inbound)
	clock.step(time.Nanosecond)
	require.Equal(t, Deaf, h.Now().State)

	h.Set("reconnecting", "no route")
	since := clock.Now()
	clock.step(time.Second)
	h.Set("reconnecting", "still no route")
	h.Heard()
	got := h.Now()
	require.Equal(t, platforms.Health{State: "reconnecting", Since: since, Detail: "still no route", LastEvent: clock.Now()}, got)
	h.Fine()
	require.Empty(t, h.Now().Detail)
}

func TestBackoff(t *testing.T) {
	b := NewBackoff(100*time.Millisecond, time.Second)
	for range 3 {
		for _, about := range []time.Duration{100, 200, 400, 800, 1000, 1000, 1000} {
			about *= time.Millisecond
			require.InDelta(t, about, b.Next(), 0.31*float64(about))
		}
		b.Reset()
	}
	clock := newClock()
	begun := clock.Now()
	require.NoError(t, b.Wait(t.Context(), clock, time.Minute))
	require.Equal(t, time.Minute, clock.Now().Sub(begun), "as long as the server asked for")
	begun = clock.Now()
	require.NoError(t, b.Wait(t.Context(), clock, 0))
	require.InDelta(t, 200*time.Millisecond, clock.Now().Sub(begun), float64(70*time.Millisecond))
}

// Recent holds what a list of the newest would hold.
func TestRecent_IsAListOfTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 4
		r := NewRecent[int, int](most)
		var order []int
		values := map[int]int{}
		drop := func(key int) {
			for i, k := range order {
				if k == key {
					order = append(order[:i:i], order[i+1:]...)
				}
			}
		}
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := rapid.IntRange(0, 7).Draw(t, "key")
			switch rapid.SampledFrom([]string{"put", "change", "take", "get"}).Draw(t, "what") {
			case "put":
				r.Put(key, step)
				drop(key)
				order, values[key] = append(order, key), step
			case "change":
				r.Change(key, func(v *int) { *v++ })
				drop(key)
				order = append(order, key)
				values[key]++
			case "take":
				got, ok := r.Take(key)
				want, known := values[key]
				require.Equal(t, known, ok)
				require.Equal(t, want, got)
				drop(key)
				delete(values, key)
			}
			if len(order) > most {
				delete(values, order[0])
				order = order[1:]
			}
			for k := range 8 {
				got, ok := r.Get(k)
				want, known := values[k]
				require.Equal(t, known, ok)
				require.Equal(t, want, got)
				require.Equal(t, known, r.Has(k))
			}
			require.Equal(t, len(order), r.Len())
		}
	})
}

// A step is repeated while it certainly was not done and may be later, for as long as there are tries and time.
func TestBackoff_Insist(t *testing.T) {
	busy := platforms.Failure(platforms.RateLimited, "busy")
	busy.RetryAfter = time.Minute
	for _, c := range []struct {
		name  string
		errs  []error // of the steps; the last one repeats
		calls int
		waits time.Duration // at least
	}{
		{"done at once", []error{nil}, 1, 0},
		{"done after trouble", []error{platforms.Failure(platforms.Transient, "away"), busy, nil}, 3, time.Minute},
		{"given up", []error{busy}, 4, 3 * time.Minute},
		{"for good", []error{platforms.Failure(platforms.Forbidden, "no")}, 1, 0},
		{"unknown", []error{&platforms.SendError{Kind: platforms.Transient, Certainty: platforms.Unknown}}, 1, 0},
		{"any other error", []error{errFailing}, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock, calls := newClock(), 0
			begun := clock.Now()
			step := func() error {
				calls++
				return c.errs[min(calls, len(c.errs))-1]
			}
			err := NewBackoff(time.Millisecond, time.Second).Insist(t.Context(), clock, 4, step)
			require.Equal(t, c.errs[len(c.errs)-1], err)
			require.Equal(t, c.calls, calls)
			require.GreaterOrEqual(t, clock.Now().Sub(begun), c.waits)
		})
	}
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	calls := 0
	err := NewBackoff(time.Millisecond, time.Second).Insist(short, newClock(), 4, func() error { calls++; return busy })
	require.Equal(t, busy, err)
	require.Equal(t, 1, calls, "the next try would come too late")
}
