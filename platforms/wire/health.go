package wire

import (
	"sync"
	"time"

	"herald/platforms"
)

// The states that Health knows itself; adapters have others beside them.
const (
	Connected = "connected" // events flow in
	Deaf      = "deaf"      // connected, but silent for too long
)

// Health keeps what an adapter's Health reports: the state for people and the last sign of life. It is safe for concurrent use.
type Health struct {
	clock  Clock
	silent string

	mu      sync.Mutex
	silence time.Duration
	state   string
	since   time.Time
	detail  string
	alive   time.Time
}

// NewHealth returns a Health that is starting. silent is the detail of an account that has become deaf, which the allowed
// silence is appended to; see Expect.
func NewHealth(clock Clock, silent string) *Health {
	return &Health{clock: clock, silent: silent, state: "starting", since: clock.Now()}
}

// Expect says how long a live connection is silent at most: after that Connected is Deaf. 0, as at the beginning: silence is no
// sign of anything.
func (h *Health) Expect(silence time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silence = silence
}

// Set changes the state and its detail, which is free of secrets. The same state keeps its beginning.
func (h *Health) Set(state, detail string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.setLocked(state, detail)
}

func (h *Health) setLocked(state, detail string) {
	if h.state != state {
		h.state, h.since = state, h.clock.Now()
	}
	h.detail = detail
}

// Heard notes a sign of life; the state stays.
func (h *Health) Heard() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.alive = h.clock.Now()
}

// Fine notes a sign of life which shows that all is well: the state is Connected.
func (h *Health) Fine() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.alive = h.clock.Now()
	h.setLocked(Connected, "")
}

// Silent returns how long there was no sign of life.
func (h *Health) Silent() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clock.Now().Sub(h.alive)
}

// Now returns the health as of now.
func (h *Health) Now() platforms.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := platforms.Health{Inbound: h.state == Connected, State: h.state, Since: h.since, Detail: h.detail, LastEvent: h.alive}
	if deadline := h.alive.Add(h.silence); r.Inbound && h.silence > 0 && h.clock.Now().After(deadline) {
		r.Inbound, r.State, r.Since, r.Detail = false, Deaf, deadline, h.silent+" for "+h.silence.String()
	}
	return r
}
