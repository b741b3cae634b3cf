package telegram

import (
	"sync"
	"time"

	"herald/platforms"
	"herald/platforms/wire"
)

// health keeps what Health reports. Writers are the receiving loop and the webhook handler.
type health struct {
	clock     wire.Clock
	polling   bool
	deafAfter time.Duration

	mu     sync.Mutex
	state  string
	since  time.Time
	detail string
	alive  time.Time // the last proof of life
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

// heard notes a proof of life and that all is well.
func (h *health) heard() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.alive = h.clock.Now()
	if h.state != "connected" {
		h.state, h.since = "connected", h.alive
	}
	h.detail = ""
}

func (h *health) now() platforms.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := platforms.Health{State: h.state, Since: h.since, Detail: h.detail, LastEvent: h.alive}
	r.Inbound = h.state == "connected"
	if deadline := h.alive.Add(h.deafAfter); h.polling && r.Inbound && h.clock.Now().After(deadline) {
		r.Inbound, r.State, r.Since = false, "deaf", deadline
		r.Detail = "no poll was answered for " + h.deafAfter.String()
	}
	return r
}
