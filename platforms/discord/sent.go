package discord

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"herald/platforms"
)

const (
	// ownKept is how many of our messages are remembered with the place they were meant for.
	ownKept = 4096
	// attemptsKept is how many sends are remembered by nonce.
	attemptsKept = 1024
	// nonceLength is the most characters of a nonce.
	nonceLength = 25
)

// own remembers the newest messages of ours: Discord does not say whose message a reaction was taken off.
type own struct {
	mu   sync.Mutex
	at   map[string]platforms.Address
	ring []string
	next int
}

func newOwn() *own { return &own{at: map[string]platforms.Address{}} }

func (o *own) add(message string, at platforms.Address) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.at[message]; ok {
		return
	}
	if len(o.ring) < ownKept {
		o.ring = append(o.ring, message)
	} else {
		delete(o.at, o.ring[o.next])
		o.ring[o.next] = message
		o.next = (o.next + 1) % ownKept
	}
	o.at[message] = at
}

// find returns where a message of ours was meant for.
func (o *own) find(message string) (platforms.Address, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, ok := o.at[message]
	return at, ok
}

// attempts remembers sends by their nonce: when they were first made, and which message came of them.
type attempts struct {
	mu    sync.Mutex
	by    map[string]attempt
	order []string
}

type attempt struct {
	at      time.Time
	message string
	channel string
}

func newAttempts() *attempts { return &attempts{by: map[string]attempt{}} }

func (s *attempts) change(nonce string, f func(*attempt)) {
	if nonce == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, known := s.by[nonce]
	f(&t)
	s.by[nonce] = t
	if known {
		return
	}
	if s.order = append(s.order, nonce); len(s.order) > attemptsKept {
		delete(s.by, s.order[0])
		s.order = s.order[1:]
	}
}

// begun notes that a send is attempted now, and where.
func (s *attempts) begun(nonce, channel string) {
	s.change(nonce, func(t *attempt) {
		t.channel = channel
		if t.at.IsZero() {
			t.at = time.Now()
		}
	})
}

// echo notes a message of ours that the gateway tells of.
func (s *attempts) echo(m *message) {
	s.change(m.nonce(), func(t *attempt) { t.message, t.channel = m.ID, m.ChannelID })
}

func (s *attempts) find(nonce string) (attempt, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.by[nonce]
	return t, ok
}

// nonceOf returns a nonce that fits Discord; "" for "".
func nonceOf(nonce string) string {
	if nonce == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(nonce))
	return hex.EncodeToString(sum[:])[:nonceLength]
}
