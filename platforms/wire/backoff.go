package wire

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"

	"herald/platforms"
)

// Backoff is the wait between attempts that fail in a row: twice as long each time, with up to 30 percent added or taken off
// at random. One goroutine uses it.
type Backoff struct {
	waits backoff.ExponentialBackOff
}

// NewBackoff returns a Backoff that begins at least and grows to most.
func NewBackoff(least, most time.Duration) *Backoff {
	b := &Backoff{waits: backoff.ExponentialBackOff{InitialInterval: least, MaxInterval: most, Multiplier: 2, RandomizationFactor: 0.3}}
	b.waits.Reset()
	return b
}

// Next returns how long to wait now, and makes the next wait longer.
func (b *Backoff) Next() time.Duration { return b.waits.NextBackOff() }

// Reset starts again at the shortest wait: an attempt has succeeded.
func (b *Backoff) Reset() { b.waits.Reset() }

// Wait waits for Next, and at least as long as the server asked for. It returns the context's error as soon as that ends.
func (b *Backoff) Wait(ctx context.Context, clock Clock, asked time.Duration) error {
	return clock.Sleep(ctx, max(b.Next(), asked))
}

// Insist repeats a step that certainly was not done and may be done later, at most tries times in all, with the waits between
// that the server asks for. It ends early when ctx would end before the next try. The error is that of the last one.
func (b *Backoff) Insist(ctx context.Context, clock Clock, tries int, step func() error) error {
	for try := 1; ; try++ {
		err := step()
		e := platforms.AsSendError(err)
		if e == nil || try >= tries || e.Certainty == platforms.Unknown || e.Kind != platforms.Transient && e.Kind != platforms.RateLimited {
			return err
		}
		pause := max(b.Next(), e.RetryAfter)
		if deadline, bounded := ctx.Deadline(); bounded && time.Until(deadline) < pause || clock.Sleep(ctx, pause) != nil {
			return err
		}
	}
}
