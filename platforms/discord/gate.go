package discord

import (
	"context"
	"errors"
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

	// bucketsKept is how many buckets are remembered before those that are full again are forgotten.
	bucketsKept = 1024
	// bucketPatience is how long a request waits for its bucket; a longer wait is the caller's to plan.
	bucketPatience = 5 * time.Second
)

// gate is the gate of wire, with the buckets that Discord describes in its headers: how many requests of a route are left
// until when. A window that one request got closes everything about the same channel.
type gate struct {
	*wire.Gate
	limited bool // false: only Discord's own windows count
	waited  func(time.Duration)

	mu      sync.Mutex
	buckets map[string]bucket // by route and channel
}

type bucket struct {
	left  int
	reset time.Time
}

func newGate(s settings) *gate {
	return &gate{limited: s.limited, waited: s.Metrics.GateWaited, buckets: map[string]bucket{}, Gate: wire.NewGate(wire.GateOptions{
		Clock: wire.System{}, Platform: "Discord", Limited: s.limited, Rates: rates, Waited: s.Metrics.GateWaited,
	})}
}

// rates are those of the account; channels have buckets.
func rates(key string) []wire.Rate {
	if key == wire.Account {
		return []wire.Rate{{PerSecond: overallRate, Burst: overallBurst}}
	}
	return nil
}

// windowKey is the key of the windows of a channel, a guild or a webhook, or of what belongs to none.
func windowKey(major string) string { return "#" + major }

// pass waits for the turn of a request, or returns a RateLimited error that says how long to wait: at once inside Discord's
// windows and when skip is set, and when the wait is too long for ctx or for the gate.
func (g *gate) pass(ctx context.Context, route, major string, skip bool) error {
	keys := []string{wire.Account, windowKey(major)}
	for g.limited {
		if err := g.Check(keys...); err != nil {
			return err
		}
		wait := g.take(route + " " + major)
		if wait == 0 {
			break
		}
		if deadline, bounded := ctx.Deadline(); skip || wait > bucketPatience || bounded && time.Until(deadline) < wait {
			return &platforms.SendError{Kind: platforms.RateLimited, RetryAfter: wait, Err: errors.New("over the rate limit of this channel")}
		}
		if err := wire.Sleep(ctx, wait); err != nil {
			return &platforms.SendError{Kind: platforms.Transient, Err: err}
		}
		g.waited(wait)
	}
	err := g.Pass(ctx, skip, keys...)
	if err != nil {
		g.giveBack(route + " " + major)
	}
	return err
}

// take takes a place in a bucket and returns 0, or how long the bucket is empty. What no bucket is known of is free.
func (g *gate) take(key string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	b, known := g.buckets[key]
	left := time.Until(b.reset)
	if !known || left <= 0 {
		return 0
	}
	if b.left <= 0 {
		return left
	}
	b.left--
	g.buckets[key] = b
	return 0
}

// giveBack undoes take for a request that was not made.
func (g *gate) giveBack(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if b, known := g.buckets[key]; known && time.Now().Before(b.reset) {
		b.left++
		g.buckets[key] = b
	}
}

// learn reads the headers of an answer.
func (g *gate) learn(route, major string, h http.Header) {
	left, err := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	after := wire.Seconds(h.Get("X-RateLimit-Reset-After"))
	if err != nil || after <= 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.buckets) >= bucketsKept {
		now := time.Now()
		for key, b := range g.buckets {
			if now.After(b.reset) {
				delete(g.buckets, key)
			}
		}
	}
	g.buckets[route+" "+major] = bucket{left: left, reset: time.Now().Add(after)}
}

// shut makes a window of d for a channel, or for everything.
func (g *gate) shut(major string, d time.Duration, everywhere bool) {
	if everywhere {
		g.Close(d, wire.Account)
		return
	}
	g.Close(d, windowKey(major))
}
