package discord

import (
	"sync"
	"time"

	"herald/platforms"
)

// health keeps what Health reports. The gateway's loop writes it.
type health struct {
	mu     sync.Mutex
	state  string
	since  time.Time
	detail string
	alive  time.Time     // the last proof of life
	silent time.Duration // how long a live connection is silent at most; 0: unknown
}

// set changes the state; the same state keeps its beginning.
func (h *health) set(state, detail string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != state {
		h.state, h.since = state, time.Now()
	}
	h.detail = detail
}

// heard notes a proof of life.
func (h *health) heard() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.alive = time.Now()
}

// expect says how long a live connection is silent at most.
func (h *health) expect(silent time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silent = silent
}

func (h *health) now() platforms.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := platforms.Health{State: h.state, Since: h.since, Detail: h.detail, LastEvent: h.alive, Inbound: h.state == "connected"}
	if deadline := h.alive.Add(h.silent); r.Inbound && h.silent > 0 && time.Now().After(deadline) {
		r.Inbound, r.State, r.Since, r.Detail = false, "deaf", deadline, deafDetail
	}
	return r
}
