package telegram

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"herald/platforms"
	"herald/platforms/wire"
)

// Whatever is asked, no window of Telegram's rules is ever exceeded.
func TestGate_KeepsTelegramsRates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := &manualClock{now: time.Unix(1_700_000_000, 0)}
		g := newGate(settings{Options: Options{Clock: clock, Metrics: platforms.NoMetrics{}}, limited: true})
		passed := map[int64][]time.Time{}
		var all []time.Time
		for range rapid.IntRange(1, 120).Draw(t, "sends") {
			clock.advance(time.Duration(rapid.IntRange(0, 3000).Draw(t, "gap")) * time.Millisecond)
			chat := rapid.Int64Range(-3, 3).Filter(func(n int64) bool { return n != 0 }).Draw(t, "chat")
			err := g.Pass(t.Context(), rapid.Bool().Draw(t, "skip"), gateKey(chat), wire.Account)
			if err != nil {
				e := platforms.AsSendError(err)
				if e.Kind != platforms.RateLimited || e.Certainty != platforms.NotSent || e.RetryAfter <= 0 {
					t.Fatalf("skipped with %v", err)
				}
				continue
			}
			passed[chat] = append(passed[chat], clock.Now())
			all = append(all, clock.Now())
		}
		within := func(times []time.Time, window time.Duration, most int) {
			for i := range times {
				if i >= most && times[i].Sub(times[i-most]) < window-time.Millisecond {
					t.Fatalf("%d sends within %s, at most %d are allowed", most+1, times[i].Sub(times[i-most]), most)
				}
			}
		}
		for chat, times := range passed {
			within(times, 2*time.Second, 4) // about one a second
			if chat < 0 {
				within(times, time.Minute, 20)
			}
		}
		within(all, time.Second, 30)
	})
}

func TestGate_InterimIsSkippedFinalWaits(t *testing.T) {
	clock := &manualClock{now: time.Unix(1_700_000_000, 0)}
	g := newGate(settings{Options: Options{Clock: clock, Metrics: platforms.NoMetrics{}}, limited: true})
	begun := clock.Now()
	for range chatBurst {
		require.NoError(t, g.Pass(t.Context(), true, gateKey(5), wire.Account))
		require.Equal(t, begun, clock.Now())
	}
	e := platforms.AsSendError(g.Pass(t.Context(), true, gateKey(5), wire.Account))
	require.Equal(t, platforms.RateLimited, e.Kind)
	require.InDelta(t, time.Second, e.RetryAfter, float64(10*time.Millisecond))
	require.NoError(t, g.Pass(t.Context(), false, gateKey(5), wire.Account))
	require.InDelta(t, time.Second, clock.Now().Sub(begun), float64(10*time.Millisecond), "the skipped one has taken nobody's turn")
	require.NoError(t, g.Pass(t.Context(), true, gateKey(6), wire.Account), "another chat is free")
}

// P8: inside Telegram's own window nothing passes, rate limit or not.
func TestGate_Window(t *testing.T) {
	for _, limited := range []bool{true, false} {
		clock := &manualClock{now: time.Unix(1_700_000_000, 0)}
		g := newGate(settings{Options: Options{Clock: clock, Metrics: platforms.NoMetrics{}}, limited: limited})
		g.Close(10*time.Second, gateKey(5))
		clock.advance(9 * time.Second)
		err := g.Pass(t.Context(), false, gateKey(5), wire.Account)
		require.Equal(t, time.Second, platforms.AsSendError(err).RetryAfter)
		require.NoError(t, g.Pass(t.Context(), false, gateKey(6), wire.Account))
		clock.advance(time.Second)
		require.NoError(t, g.Pass(t.Context(), false, gateKey(5), wire.Account))
	}
}

// The limit is on by default: over it an interim edit is skipped without a request.
func TestSend_RateLimit(t *testing.T) {
	w, a := sender(t, func(o *Options) { o.RateLimit = nil })
	receipt, err := a.Send(t.Context(), outgoing(person, "0"))
	require.NoError(t, err)
	skipped := 0
	for _, text := range []string{"1", "2", "3"} {
		out := outgoing(person, text)
		out.Edit, out.Interim = receipt.Message, true
		if _, err := a.Send(t.Context(), out); err != nil {
			require.Equal(t, platforms.RateLimited, platforms.AsSendError(err).Kind)
			skipped++
		}
	}
	require.GreaterOrEqual(t, skipped, 2)
	require.Equal(t, 3-skipped, w.fake.Calls("editMessageText"))
	out := outgoing(person, "final")
	out.Edit = receipt.Message
	_, err = a.Send(t.Context(), out)
	require.NoError(t, err)
	require.Equal(t, "final", w.fake.Visible(person)[0].Text)
}
