package slack

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"herald/platforms"
	"herald/platforms/wire"
)

// Slack asks for about one message per second in a channel, with bursts, and gives each method its own limit in a
// workspace (https://docs.slack.dev/apis/web-api/rate-limits). Each limiter's burst and rate together stay within
// that.
const (
	chatRate, chatBurst     = rate.Limit(1), 5
	editRate, editBurst     = rate.Limit(40.0 / 60), 10 // chat.update: 50 a minute
	streamRate, streamBurst = rate.Limit(10.0 / 60), 8  // chat.startStream: 20 a minute
	appendRate, appendBurst = rate.Limit(80.0 / 60), 20 // chat.appendStream: 100 a minute

	// gateKept is how many chats are remembered before idle ones are forgotten.
	gateKept = 1024
)

// gate keeps requests polite: the rates above, and no request inside a window that Slack asked to wait (P8).
type gate struct {
	clock   wire.Clock
	limited bool // false: only Slack's own windows count
	posts   rate.Limit

	mu      sync.Mutex
	closed  map[string]time.Time // "#chat" or method: until when
	chats   map[string]*chatGate
	methods map[string]*rate.Limiter
}

type chatGate struct {
	posts *rate.Limiter
	used  time.Time
}

func newGate(clock wire.Clock, limited bool, perSecond float64) *gate {
	posts := chatRate
	if perSecond > 0 {
		posts = rate.Limit(perSecond)
	}
	return &gate{clock: clock, limited: limited, posts: posts, closed: map[string]time.Time{}, chats: map[string]*chatGate{}, methods: map[string]*rate.Limiter{
		"chat.update":       rate.NewLimiter(editRate, editBurst),
		"chat.startStream":  rate.NewLimiter(streamRate, streamBurst),
		"chat.appendStream": rate.NewLimiter(appendRate, appendBurst),
	}}
}

// window returns how long the method or the chat is still closed by Slack.
func (g *gate) window(method, chat string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	return max(0, g.closed[method].Sub(now), g.closed["#"+chat].Sub(now))
}

// close shuts the chat for d, and the method for all of them where its limit is the workspace's: messages alone are
// counted by channel.
func (g *gate) close(method, chat string, d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	for key, until := range g.closed {
		if !until.After(now) {
			delete(g.closed, key)
		}
	}
	until := now.Add(d)
	shut := func(key string) {
		if until.After(g.closed[key]) {
			g.closed[key] = until
		}
	}
	if chat != "" {
		shut("#" + chat)
	}
	if chat == "" || method != "chat.postMessage" {
		shut(method)
	}
}

// pass waits for the turn of a request, or returns a RateLimited error that says how long: at once when skip is set
// and it is not its turn, when Slack's window is open, and when ctx would end before.
func (g *gate) pass(ctx context.Context, method, chat string, skip bool) (time.Duration, error) {
	if d := g.window(method, chat); d > 0 {
		return 0, tooSoon(d, "Slack asked to wait")
	}
	if !g.limited {
		return 0, nil
	}
	wait, err := g.reserve(ctx, method, chat, skip)
	if wait == 0 || err != nil {
		return 0, err
	}
	if err := g.clock.Sleep(ctx, wait); err != nil {
		return 0, &platforms.SendError{Kind: platforms.Transient, Err: err}
	}
	if d := g.window(method, chat); d > 0 { // closed while we waited
		return wait, tooSoon(d, "Slack asked to wait")
	}
	return wait, nil
}

func (g *gate) reserve(ctx context.Context, method, chat string, skip bool) (time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	limiter := g.methods[method]
	if limiter == nil {
		limiter = g.chat(chat, now).posts
	}
	r := limiter.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	deadline, bounded := ctx.Deadline()
	if wait > 0 && (skip || bounded && time.Until(deadline) < wait) {
		r.CancelAt(now)
		return 0, tooSoon(wait, "over the rate limit")
	}
	return wait, nil
}

func (g *gate) chat(id string, now time.Time) *chatGate {
	c := g.chats[id]
	if c == nil {
		if len(g.chats) >= gateKept {
			for id, c := range g.chats {
				if now.Sub(c.used) > time.Minute {
					delete(g.chats, id)
				}
			}
		}
		c = &chatGate{posts: rate.NewLimiter(g.posts, chatBurst)}
		g.chats[id] = c
	}
	c.used = now
	return c
}

func tooSoon(d time.Duration, why string) error {
	return &platforms.SendError{Kind: platforms.RateLimited, RetryAfter: d, Err: errors.New(why)}
}
