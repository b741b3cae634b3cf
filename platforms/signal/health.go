package signal

import (
	"sync"
	"time"

	"herald/platforms"
)

// health keeps what Health reports. Writers are the receiving loops.
type health struct {
	silence time.Duration

	mu      sync.Mutex
	state   string
	since   time.Time
	detail  string
	alive   time.Time // the last sign of life of the stream
	refused bool      // the core takes nothing
	revoked string    // Signal does not take the account any more: why
}

// set changes the state; the same state keeps its beginning.
func (h *health) set(state, detail string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != state {
		h.state, h.since = state, time.Now()
	}
	h.detail = Mask(detail)
}

// heard notes a sign of life: the stream is connected.
func (h *health) heard() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.alive = time.Now()
	if h.state != "connected" {
		h.state, h.since = "connected", h.alive
	}
	h.detail = ""
}

// quiet returns how long the stream has been without a sign of life.
func (h *health) quiet() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.alive)
}

// touch restarts the clock of silence without saying that all is well.
func (h *health) touch() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.alive = time.Now()
}

// revoke notes that Signal does not take the account, or with "" that it does. It returns whether that is news.
func (h *health) revoke(why string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	news := (h.revoked == "") != (why == "")
	h.revoked = Mask(why)
	return news
}

// refuse notes whether the core takes events.
func (h *health) refuse(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused = on
}

func (h *health) isRefused() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.refused
}

func (h *health) now() platforms.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := platforms.Health{State: h.state, Since: h.since, Detail: h.detail, LastEvent: h.alive}
	r.Inbound = h.state == "connected"
	switch deadline := h.alive.Add(h.silence); {
	case !r.Inbound:
	case h.revoked != "":
		r.Inbound, r.State, r.Detail = false, "unlinked", h.revoked
	case h.refused:
		r.Inbound, r.State, r.Detail = false, "waiting", "the store cannot take events now; they are held"
	case time.Now().After(deadline):
		r.Inbound, r.State, r.Since = false, "deaf", deadline
		r.Detail = "no sign of life on the event stream for " + h.silence.String()
	}
	return r
}
