package wire

import (
	"context"
	"time"
)

// Clock is the time as an adapter sees it.
type Clock interface {
	// Now returns the current time, with a monotonic reading where there is one.
	Now() time.Time
	// Sleep waits for d and returns nil, or returns the context's error as soon as it ends.
	Sleep(ctx context.Context, d time.Duration) error
}

// System is the machine's own clock.
type System struct{}

// Now implements Clock.
func (System) Now() time.Time { return time.Now() }

// Sleep implements Clock.
func (System) Sleep(ctx context.Context, d time.Duration) error { return Sleep(ctx, d) }

// Sleep waits for d and returns nil, or returns the context's error as soon as it ends.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
