package signal

import (
	"sync"
	"time"

	"herald/platforms"
	"herald/platforms/wire"
)

// health is the health of wire, with what can be wrong while the stream is connected.
type health struct {
	*wire.Health
	silence time.Duration

	mu      sync.Mutex
	refused bool   // the core takes nothing
	revoked string // Signal does not take the account any more: why
}

func newHealth(silence time.Duration) *health {
	return &health{Health: wire.NewHealth(wire.System{}, ""), silence: silence}
}

// set is Set without phone numbers.
func (h *health) set(state, detail string) { h.Set(state, Mask(detail)) }

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
	r := h.Now()
	switch deadline := r.LastEvent.Add(h.silence); {
	case !r.Inbound:
	case h.revoked != "":
		r.Inbound, r.State, r.Detail = false, "unlinked", h.revoked
	case h.refused:
		r.Inbound, r.State, r.Detail = false, "waiting", "the store cannot take events now; they are held"
	case time.Now().After(deadline):
		r.Inbound, r.State, r.Since = false, wire.Deaf, deadline
		r.Detail = "no sign of life on the event stream for " + h.silence.String()
	}
	return r
}
