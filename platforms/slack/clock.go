package slack

import (
	"context"
	"time"
)

// Clock is the time as the adapter sees it.
type Clock interface {
	// Now returns the current time, with a monotonic reading where there is one.
	Now() time.Time
	// Sleep waits for d and returns nil, or returns the context's error as soon as it ends.
	Sleep(ctx context.Context, d time.Duration) error
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
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
