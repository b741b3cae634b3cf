package teams

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"herald/platforms"
	"herald/platforms/wire"
)

// Teams takes of a bot in one conversation 7 messages in a second, 8 in two, 60 in thirty and 1,800 in an hour
// (https://learn.microsoft.com/microsoftteams/platform/bots/how-to/rate-limit). Each limiter's burst and rate together
// stay within that.
const (
	quickRate, quickBurst = rate.Limit(1.8), 4
	hourRate, hourBurst   = rate.Limit(0.4), 300

	// gateKept is how many chats are remembered before idle ones are forgotten.
	gateKept = 1024
)

// gate keeps requests polite: the rates above, and no request to a chat inside a window that Teams asked to wait (P8).
type gate struct {
	clock   wire.Clock
	limited bool // false: only Teams' own windows count

	mu    sync.Mutex
	chats map[string]*chatGate
}

type chatGate struct {
	quick, hour *rate.Limiter
	closed      time.Time // until when Teams asked to wait
	used        time.Time
}

func newGate(clock wire.Clock, limited bool) *gate {
	return &gate{clock: clock, limited: limited, chats: map[string]*chatGate{}}
}

func (g *gate) chat(id string, now time.Time) *chatGate {
	c := g.chats[id]
	if c == nil {
		if len(g.chats) >= gateKept {
			g.forget(now)
		}
		c = &chatGate{}
		if g.limited {
			c.quick, c.hour = rate.NewLimiter(quickRate, quickBurst), rate.NewLimiter(hourRate, hourBurst)
		}
		g.chats[id] = c
	}
	c.used = now
	return c
}

// forget drops chats that are idle, whose hourly allowance is a little freer then than it should be.
func (g *gate) forget(now time.Time) {
	for id, c := range g.chats {
		if now.Sub(c.used) > 10*time.Minute && now.After(c.closed) {
			delete(g.chats, id)
		}
	}
}

// window returns how long the chat is still closed by Teams.
func (g *gate) window(chat string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.chats[chat]
	if c == nil {
		return 0
	}
	return max(0, c.closed.Sub(g.clock.Now()))
}

// open returns a RateLimited error while the chat is closed by Teams.
func (g *gate) open(chat string) error {
	if d := g.window(chat); d > 0 {
		return tooSoon(d, errWindow)
	}
	return nil
}

// close shuts the chat for d.
func (g *gate) close(chat string, d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	c := g.chat(chat, now)
	if until := now.Add(d); until.After(c.closed) {
		c.closed = until
	}
}

// pass waits for the chat's turn and returns how long it waited, or a RateLimited error that says how long it would be: at
// once when skip is set and it is not its turn, when Teams' window is open, and when ctx would end before.
func (g *gate) pass(ctx context.Context, chat string, skip bool) (time.Duration, error) {
	if err := g.open(chat); err != nil {
		return 0, err
	}
	if !g.limited {
		return 0, nil
	}
	g.mu.Lock()
	now := g.clock.Now()
	c := g.chat(chat, now)
	reserved := []*rate.Reservation{c.quick.ReserveN(now, 1), c.hour.ReserveN(now, 1)}
	var wait time.Duration
	for _, r := range reserved {
		wait = max(wait, r.DelayFrom(now))
	}
	deadline, bounded := ctx.Deadline()
	late := bounded && time.Until(deadline) < wait
	if wait > 0 && (skip || late) {
		for _, r := range reserved {
			r.CancelAt(now)
		}
		g.mu.Unlock()
		return 0, tooSoon(wait, errPace)
	}
	g.mu.Unlock()
	if wait == 0 {
		return 0, nil
	}
	if err := g.clock.Sleep(ctx, wait); err != nil {
		return 0, &platforms.SendError{Kind: platforms.Transient, Err: err}
	}
	return wait, g.open(chat) // it may have been closed while we waited
}

var (
	errWindow = errors.New("asked by Teams to wait")
	errPace   = errors.New("over the rate limit of this chat")
)

func tooSoon(d time.Duration, why error) error {
	return &platforms.SendError{Kind: platforms.RateLimited, RetryAfter: d, Err: why}
}
