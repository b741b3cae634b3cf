package discord

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"herald/platforms"
	"herald/platforms/wire"
)

const (
	// Discord takes at most 50 requests a second from a bot
	// (https://discord.com/developers/docs/topics/rate-limits#global-rate-limit).
	overallRate, overallBurst = rate.Limit(40), 8

	// gateKept is how many buckets are remembered before those that are full again are forgotten.
	gateKept = 1024
	// gatePatience is how long a request waits for its bucket; a longer wait is the caller's to plan.
	gatePatience = 5 * time.Second
)

// gate keeps requests polite: it follows the buckets that Discord tells of in its headers, and lets no request
// through inside a window that Discord asked to wait (P8). A window that one request got closes everything
// about the same channel.
type gate struct {
	limited bool // false: only Discord's own windows count

	mu      sync.Mutex
	overall *rate.Limiter
	all     time.Time            // until when the whole account has to wait
	closed  map[string]time.Time // by channel
	buckets map[string]bucket    // by route and channel
}

type bucket struct {
	left  int
	reset time.Time
}

func newGate(limited bool) *gate {
	return &gate{limited: limited, overall: rate.NewLimiter(overallRate, overallBurst), closed: map[string]time.Time{}, buckets: map[string]bucket{}}
}

// window returns how long Discord's own window is still open, and whether it is the account's.
func (g *gate) window(major string, now time.Time) (left time.Duration, everywhere bool) {
	if d := g.all.Sub(now); d > 0 {
		return d, true
	}
	until, ok := g.closed[major]
	if d := until.Sub(now); d > 0 {
		return d, false
	} else if ok {
		delete(g.closed, major)
	}
	return 0, false
}

// pass waits for the turn of a request, or returns a RateLimited error that says how long to wait: at once
// inside Discord's windows and when skip is set, and when the wait is too long for ctx or for the gate.
func (g *gate) pass(ctx context.Context, route, major string, skip bool) (time.Duration, error) {
	var waited time.Duration
	for {
		wait, err := g.reserve(ctx, route+" "+major, major, skip)
		if err != nil || wait == 0 {
			return waited, err
		}
		if err := wire.Sleep(ctx, wait); err != nil {
			return waited, &platforms.SendError{Kind: platforms.Transient, Err: err}
		}
		waited += wait
	}
}

// reserve takes a place in the bucket, or says how long to wait for one.
func (g *gate) reserve(ctx context.Context, key, major string, skip bool) (time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if d, everywhere := g.window(major, now); d > 0 {
		return 0, tooSoon(d, everywhere, "Discord asked to wait")
	}
	if !g.limited {
		return 0, nil
	}
	wait := time.Duration(0)
	b, known := g.buckets[key]
	if known && b.left <= 0 {
		wait = b.reset.Sub(now)
	}
	if wait <= 0 {
		r := g.overall.ReserveN(now, 1)
		if d := r.DelayFrom(now); d > 0 {
			r.CancelAt(now)
			wait = d
		}
	}
	if wait <= 0 {
		if known && now.Before(b.reset) {
			b.left--
			g.buckets[key] = b
		}
		return 0, nil
	}
	deadline, bounded := ctx.Deadline()
	if skip || wait > gatePatience || bounded && deadline.Sub(now) < wait {
		return 0, tooSoon(wait, false, "over the rate limit of this channel")
	}
	return wait, nil
}

// learn reads the headers of an answer.
func (g *gate) learn(route, major string, h http.Header) {
	left, err := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	after := seconds(h.Get("X-RateLimit-Reset-After"))
	if err != nil || after <= 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.buckets) >= gateKept {
		now := time.Now()
		for key, b := range g.buckets {
			if now.After(b.reset) {
				delete(g.buckets, key)
			}
		}
	}
	g.buckets[route+" "+major] = bucket{left: left, reset: time.Now().Add(after)}
}

// close shuts a channel, or everything, for d.
func (g *gate) close(major string, d time.Duration, everywhere bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	until := now.Add(d)
	if everywhere {
		if until.After(g.all) {
			g.all = until
		}
		return
	}
	if len(g.closed) >= gateKept {
		for key, t := range g.closed {
			if now.After(t) {
				delete(g.closed, key)
			}
		}
	}
	if until.After(g.closed[major]) {
		g.closed[major] = until
	}
}

func tooSoon(d time.Duration, everywhere bool, why string) error {
	return &platforms.SendError{Kind: platforms.RateLimited, RetryAfter: d, AccountWide: everywhere, Err: errors.New(why)}
}

// seconds reads a number of seconds with a fraction, at most a day; 0 when it is none.
func seconds(text string) time.Duration {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || s <= 0 || math.IsNaN(s) {
		return 0
	}
	return time.Duration(min(s, 86400) * float64(time.Second))
}
