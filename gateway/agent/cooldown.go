package agent

import (
	"sync"
	"time"
)

// cooldowns are how long a conversation is left as it is after its 1st, 2nd and every later failed summary in a row
// of each session.
var cooldowns = [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute}

// Cooldown remembers failed summaries of one session. The zero value is ready. Safe for concurrent use.
type Cooldown struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

// Cold reports whether a summary may be tried. A nil Cooldown is always ready for one.
func (c *Cooldown) Cold(now time.Time) bool {
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !now.Before(c.until)
}

// Failing reports whether the last summary failed.
func (c *Cooldown) Failing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failures > 0
}

// Note takes the outcome of a summary in.
func (c *Cooldown) Note(ok bool, now time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok {
		c.failures, c.until = 0, time.Time{}
		return
	}
	c.until = now.Add(cooldowns[min(c.failures, len(cooldowns)-1)])
	c.failures++
}
