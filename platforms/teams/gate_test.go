package teams

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest"
	"herald/platforms/platformtest/faults"
	"herald/platforms/platformtest/teamstest"
)

// P8: inside a window of the login server nothing is asked of it, neither by Run nor by sends.
func TestTokens_Window(t *testing.T) {
	w := startWorld(t, teamstest.Options{})
	w.fake.Break(teamstest.Fault{Kind: faults.Status, Status: 429, RetryAfter: time.Second, On: teamstest.Token})
	r := &run{world: w, t: t, sink: &platformtest.Sink{}}
	r.a = w.adapter(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.a.Run(ctx, r.sink) }()
	r.until("the first question is refused", func() bool { return w.fake.Calls(teamstest.Token) == 1 })
	_, err := r.send(platforms.Outgoing{Address: r.atDM(), Text: text("hello")})
	e := sendErrorOf(t, err)
	require.Equal(t, platforms.Transient, e.Kind)
	require.Equal(t, platforms.NotSent, e.Certainty)
	r.until("it hears after the window", func() bool { return r.a.Health().Inbound })
	require.Empty(t, w.fake.Violations())
	require.Equal(t, 2, w.fake.Calls(teamstest.Token))
	cancel()
	require.NoError(t, <-ended)
}

// P8 beside the chats: lists of teams and new chats keep their windows too.
func TestQuery_Windows(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	r.fake.Say(r.thread(), "hello")
	r.events(1)
	for _, on := range []teamstest.Endpoint{teamstest.Teams, teamstest.Create} {
		r.fake.Break(teamstest.Fault{Kind: faults.Status, Status: 429, RetryAfter: time.Second, On: on})
	}
	for range 3 {
		_, err := r.a.Rooms(t.Context())
		require.NoError(t, err)
		_, err = r.a.Open(t.Context(), platforms.UserID(r.fake.AddUser("Kim Li").AAD))
		require.Equal(t, platforms.RateLimited, sendErrorOf(t, err).Kind)
	}
	require.Equal(t, 1, r.fake.Calls(teamstest.Teams))
	require.Equal(t, 1, r.fake.Calls(teamstest.Create))
	require.Empty(t, r.fake.Violations())
}

// tickClock goes on only by sleeping.
type tickClock struct{ now time.Time }

func (c *tickClock) Now() time.Time { return c.now }

func (c *tickClock) Sleep(ctx context.Context, d time.Duration) error {
	c.now = c.now.Add(max(d, 0))
	return ctx.Err()
}

// Whatever is sent as fast as the gate lets it, Teams' limits hold: 7 in a second, 8 in two, 60 in thirty, 1,800 in an hour.
func TestGate_KeepsTeamsLimits(t *testing.T) {
	clock := &tickClock{now: time.Unix(1e9, 0)}
	g := newGate(settings{Options: Options{Clock: clock, Metrics: platforms.NoMetrics{}}, limited: true})
	var sent []time.Time
	for range 4000 {
		err := g.Pass(context.Background(), false, "a:1")
		require.NoError(t, err)
		sent = append(sent, clock.now)
	}
	for _, limit := range []struct {
		n      int
		within time.Duration
	}{{7, time.Second}, {8, 2 * time.Second}, {60, 30 * time.Second}, {1800, time.Hour}} {
		for i := limit.n; i < len(sent); i++ {
			require.GreaterOrEqual(t, sent[i].Sub(sent[i-limit.n]), limit.within, "%d messages in %s", limit.n+1, limit.within)
		}
	}
}

// An interim edit does not wait, and one whose time is short says so at once; both give their place back.
func TestGate_SkipsAndGivesBack(t *testing.T) {
	clock := &tickClock{now: time.Unix(1e9, 0)}
	g := newGate(settings{Options: Options{Clock: clock, Metrics: platforms.NoMetrics{}}, limited: true})
	for range quickBurst {
		err := g.Pass(t.Context(), true, "a:1")
		require.NoError(t, err)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	for range 100 {
		err := g.Pass(t.Context(), true, "a:1")
		require.Equal(t, platforms.RateLimited, sendErrorOf(t, err).Kind)
		err = g.Pass(short, false, "a:1")
		require.Equal(t, platforms.RateLimited, sendErrorOf(t, err).Kind)
	}
	err := g.Pass(t.Context(), true, "a:2")
	require.NoError(t, err, "another chat has its own allowance")
	clock.now = clock.now.Add(time.Second)
	err = g.Pass(t.Context(), true, "a:1")
	require.NoError(t, err)
}
