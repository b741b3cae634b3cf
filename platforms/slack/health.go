package slack

import (
	"sync"
	"time"

	"herald/platforms"
	"herald/platforms/wire"
)

// health keeps a state for people and the last sign of life. Hub and adapter have one each.
type health struct {
	clock     wire.Clock
	deafAfter time.Duration // 0: silence is no sign

	mu     sync.Mutex
	state  string
	since  time.Time
	detail string
	alive  time.Time
}

// set changes the state; the same state keeps its beginning.
func (h *health) set(state, detail string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != state {
		h.state, h.since = state, h.clock.Now()
	}
	h.detail = detail
}

// heard notes a sign of life.
func (h *health) heard() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.alive = h.clock.Now()
}

// silent returns how long nothing was heard.
func (h *health) silent() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clock.Now().Sub(h.alive)
}

// now returns the state as of now: connected, but silent for too long, is deaf.
func (h *health) now() platforms.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := platforms.Health{State: h.state, Since: h.since, Detail: h.detail, LastEvent: h.alive, Inbound: h.state == "connected"}
	if deadline := h.alive.Add(h.deafAfter); h.deafAfter > 0 && r.Inbound && h.clock.Now().After(deadline) {
		r.Inbound, r.State, r.Since, r.Detail = false, "deaf", deadline, "Slack gave no sign of life for "+h.deafAfter.String()
	}
	return r
}
