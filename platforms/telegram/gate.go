package telegram

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"herald/platforms"
	"herald/platforms/wire"
)

// Telegram asks for at most one message per second in a chat, 20 per minute in a group and 30 per second
// overall (https://core.telegram.org/bots/faq). Each limiter's burst and rate together stay within that.
const (
	chatRate, chatBurst     = rate.Limit(1), 2
	groupPerMinute          = rate.Limit(15.0 / 60)
	groupBurst              = 5
	overallRate, overallTop = rate.Limit(20), 10

	// gateKept is how many chats are remembered before idle ones are forgotten.
	gateKept = 1024
)

// gate keeps requests polite: the rates above, and no request to a chat inside a window that Telegram
// asked to wait (P8).
type gate struct {
	clock   wire.Clock
	limited bool // false: only Telegram's own windows count

	mu      sync.Mutex
	overall *rate.Limiter
	chats   map[int64]*chatGate
}

type chatGate struct {
	second *rate.Limiter
	minute *rate.Limiter // nil for people
	closed time.Time     // until when Telegram asked to wait
	used   time.Time
}

func newGate(clock wire.Clock, limited bool) *gate {
	return &gate{clock: clock, limited: limited, overall: rate.NewLimiter(overallRate, overallTop), chats: map[int64]*chatGate{}}
}

func (g *gate) chat(id int64, now time.Time) *chatGate {
	c := g.chats[id]
	if c == nil {
		if len(g.chats) >= gateKept {
			g.forget(now)
		}
		c = &chatGate{}
		if g.limited {
			c.second = rate.NewLimiter(chatRate, chatBurst)
			if id < 0 { // groups, supergroups and channels have negative ids
				c.minute = rate.NewLimiter(groupPerMinute, groupBurst)
			}
		}
		g.chats[id] = c
	}
	c.used = now
	return c
}

func (g *gate) forget(now time.Time) {
	for id, c := range g.chats {
		if now.Sub(c.used) > time.Minute && now.After(c.closed) {
			delete(g.chats, id)
		}
	}
}

// window returns how long the chat is still closed by Telegram.
func (g *gate) window(chat int64) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.chats[chat]
	if c == nil {
		return 0
	}
	return max(0, c.closed.Sub(g.clock.Now()))
}

// close shuts the chat for d.
func (g *gate) close(chat int64, d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	c := g.chat(chat, now)
	if until := now.Add(d); until.After(c.closed) {
		c.closed = until
	}
}

// pass waits for the chat's turn, or returns a RateLimited error that says how long: at once when skip is
// set and it is not its turn, when Telegram's window is open, and when ctx would end before.
func (g *gate) pass(ctx context.Context, chat int64, skip bool) (time.Duration, error) {
	if d := g.window(chat); d > 0 {
		return 0, tooSoon(d, "Telegram asked to wait")
	}
	if !g.limited {
		return 0, nil
	}
	g.mu.Lock()
	now := g.clock.Now()
	c := g.chat(chat, now)
	reserved := []*rate.Reservation{c.second.ReserveN(now, 1), g.overall.ReserveN(now, 1)}
	if c.minute != nil {
		reserved = append(reserved, c.minute.ReserveN(now, 1))
	}
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
		return 0, tooSoon(wait, "over the rate limit of this chat")
	}
	g.mu.Unlock()
	if wait == 0 {
		return 0, nil
	}
	if err := g.clock.Sleep(ctx, wait); err != nil {
		return 0, &platforms.SendError{Kind: platforms.Transient, Err: err}
	}
	if d := g.window(chat); d > 0 { // closed while we waited
		return wait, tooSoon(d, "Telegram asked to wait")
	}
	return wait, nil
}

func tooSoon(d time.Duration, why string) error {
	return &platforms.SendError{Kind: platforms.RateLimited, RetryAfter: d, Err: fmt.Errorf("%s", why)}
}
