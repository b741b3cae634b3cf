package wire

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"herald/platforms"
)

// Account is the key of what belongs to a whole account and not to one chat or method of it.
const Account = ""

// gateKept is how many keys a gate remembers before it forgets idle ones.
const gateKept = 1024

// Rate is a token bucket: Burst requests at once, and PerSecond after them.
type Rate struct {
	PerSecond rate.Limit
	Burst     int
}

// GateOptions configures a Gate.
type GateOptions struct {
	Clock Clock
	// Platform is the platform's name for people.
	Platform string
	// Limited false lets only the platform's own windows count, for a private server.
	Limited bool
	// Rates returns the rates of a key; none where only windows count. It is asked when a key is first used.
	Rates func(key string) []Rate
	// Idle is how long a key is unused, at least, before it may be forgotten with what is left of its rates. 0 is a minute.
	Idle time.Duration
	// Waited is called with the time that a request has waited for its turn. nil: nobody wants to know.
	Waited func(time.Duration)
}

// Gate keeps requests polite: none inside a window that the platform asked to wait (P8), and none over our own rates. What a
// window or a rate counts for is a key: a chat, a method, or Account. It is safe for concurrent use.
type Gate struct {
	o GateOptions

	mu   sync.Mutex
	keys map[string]*gateKey
}

type gateKey struct {
	rates  []*rate.Limiter
	closed time.Time // until when the platform asked to wait
	used   time.Time
}

// NewGate returns a gate without windows.
func NewGate(o GateOptions) *Gate {
	if o.Idle == 0 {
		o.Idle = time.Minute
	}
	if o.Waited == nil {
		o.Waited = func(time.Duration) {}
	}
	return &Gate{o: o, keys: map[string]*gateKey{}}
}

// Close makes a window of d for each key. A longer one that is open stays.
func (g *Gate) Close(d time.Duration, keys ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.o.Clock.Now()
	for _, name := range keys {
		k := g.keys[name]
		if k == nil {
			k = g.addLocked(name, now)
		}
		if until := now.Add(d); until.After(k.closed) {
			k.closed = until
		}
	}
}

// Check returns a RateLimited error with the longest time left while the platform's window of one of the keys is open. It is
// AccountWide when that is Account's.
func (g *Gate) Check(keys ...string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.checkLocked(g.o.Clock.Now(), keys)
}

func (g *Gate) checkLocked(now time.Time, keys []string) error {
	var longest time.Duration
	account := false
	for _, name := range keys {
		if k := g.keys[name]; k != nil {
			if d := k.closed.Sub(now); d > longest {
				longest, account = d, name == Account
			}
		}
	}
	if longest == 0 {
		return nil
	}
	return &platforms.SendError{Kind: platforms.RateLimited, RetryAfter: longest, AccountWide: account, Err: errors.New(g.o.Platform + " asked to wait")}
}

// Pass waits until a request that counts for all of the keys may leave, or returns a RateLimited error that says how long it
// would have to wait: at once inside of a window, where it is not its turn and skip is set, and where ctx would end before. One
// that is turned away takes nothing from the rates.
func (g *Gate) Pass(ctx context.Context, skip bool, keys ...string) error {
	wait, err := g.reserve(ctx, skip, keys)
	if err != nil || wait == 0 {
		return err
	}
	if err := g.o.Clock.Sleep(ctx, wait); err != nil {
		return &platforms.SendError{Kind: platforms.Transient, Err: err}
	}
	g.o.Waited(wait)
	return g.Check(keys...) // a window may have opened while it waited
}

// reserve takes a place in the rates of all keys and returns how long it is away.
func (g *Gate) reserve(ctx context.Context, skip bool, keys []string) (time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.o.Clock.Now()
	if err := g.checkLocked(now, keys); err != nil || !g.o.Limited {
		return 0, err
	}
	var wait time.Duration
	taken := make([]*rate.Reservation, 0, 4)
	for _, name := range keys {
		k := g.keys[name]
		if k == nil {
			k = g.addLocked(name, now)
		}
		k.used = now
		for _, l := range k.rates {
			r := l.ReserveN(now, 1)
			taken, wait = append(taken, r), max(wait, r.DelayFrom(now))
		}
	}
	if deadline, bounded := ctx.Deadline(); wait > 0 && (skip || bounded && time.Until(deadline) < wait) {
		for _, r := range taken {
			r.CancelAt(now)
		}
		return 0, &platforms.SendError{Kind: platforms.RateLimited, RetryAfter: wait, Err: errors.New("over the rate limit of " + g.o.Platform)}
	}
	return wait, nil
}

// addLocked adds a key, for which idle ones without a window may be forgotten.
func (g *Gate) addLocked(name string, now time.Time) *gateKey {
	if len(g.keys) >= gateKept {
		for other, k := range g.keys {
			if now.Sub(k.used) > g.o.Idle && now.After(k.closed) {
				delete(g.keys, other)
			}
		}
	}
	k := &gateKey{used: now}
	if g.o.Limited && g.o.Rates != nil {
		for _, r := range g.o.Rates(name) {
			k.rates = append(k.rates, rate.NewLimiter(r.PerSecond, r.Burst))
		}
	}
	g.keys[name] = k
	return k
}
