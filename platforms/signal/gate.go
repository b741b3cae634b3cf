package signal

import (
	"errors"
	"sync"
	"time"

	"herald/platforms"
)

// gate makes no request inside a window that Signal asked to wait (P8). Signal limits the account, so there is one
// window for all chats.
type gate struct {
	mu     sync.Mutex
	closed time.Time
}

// pass returns a RateLimited error with the time left while the window is open.
func (g *gate) pass() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if left := time.Until(g.closed); left > 0 {
		return &platforms.SendError{Kind: platforms.RateLimited, RetryAfter: left, AccountWide: true, Err: errors.New("inside a window that Signal asked to wait")}
	}
	return nil
}

// note closes the gate when err is RateLimited, and returns err.
func (g *gate) note(err *platforms.SendError) *platforms.SendError {
	if err == nil || err.Kind != platforms.RateLimited {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := time.Now().Add(err.RetryAfter); until.After(g.closed) {
		g.closed = until
	}
	return err
}
