package slack

import (
	"sync"

	"herald/platforms"
)

// hands remembers who spoke last in a place: Slack wants to know for whom a stream is.
type hands struct {
	mu   sync.Mutex
	last bounded[platforms.UserID]
}

func newHands() *hands { return &hands{last: newBounded[platforms.UserID](4096)} }

func (h *hands) heard(at platforms.Address, user platforms.UserID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last.put(at.String(), user)
}

func (h *hands) who(at platforms.Address) platforms.UserID {
	h.mu.Lock()
	defer h.mu.Unlock()
	user, _ := h.last.get(at.String())
	return user
}
