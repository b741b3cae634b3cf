package teams

import (
	"sync"
	"time"

	"herald/platforms"
	"herald/platforms/wire"
)

// health keeps what Health reports. Writers are Run and the webhook handler.
type health struct {
	clock wire.Clock

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

// fine notes a proof of life and that activities can come in.
func (h *health) fine() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.alive = h.clock.Now()
	if h.state != "connected" {
		h.state, h.since = "connected", h.alive
	}
	h.detail = ""
}

// heard is fine for the handler: it never revives an adapter that has stopped.
func (h *health) heard() {
	h.mu.Lock()
	stopped := h.state == "stopped"
	h.mu.Unlock()
	if !stopped {
		h.fine()
	}
}

func (h *health) now() platforms.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return platforms.Health{Inbound: h.state == "connected", State: h.state, Since: h.since, Detail: h.detail, LastEvent: h.alive}
}
