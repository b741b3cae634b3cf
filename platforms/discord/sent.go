package discord

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"herald/platforms/wire"
)

const (
	// ownKept is how many of our messages are remembered with the place they were meant for: Discord does not say whose
	// message a reaction was taken off.
	ownKept = 4096
	// attemptsKept is how many sends are remembered by nonce.
	attemptsKept = 1024
	// nonceLength is the most characters of a nonce.
	nonceLength = 25
)

// attempts remembers sends by their nonce: when they were first made, and which message came of them.
type attempts struct {
	by *wire.Recent[string, attempt]
}

type attempt struct {
	at      time.Time
	message string
	channel string
}

func newAttempts() *attempts { return &attempts{by: wire.NewRecent[string, attempt](attemptsKept)} }

// begun notes that a send is attempted now, and where.
func (s *attempts) begun(nonce, channel string) {
	if nonce == "" {
		return
	}
	s.by.Change(nonce, func(t *attempt) {
		t.channel = channel
		if t.at.IsZero() {
			t.at = time.Now()
		}
	})
}

// echo notes a message of ours that the gateway reports.
func (s *attempts) echo(m *message) {
	if nonce := m.nonce(); nonce != "" {
		s.by.Change(nonce, func(t *attempt) { t.message, t.channel = m.ID, m.ChannelID })
	}
}

// nonceOf returns a nonce that fits Discord; "" for "".
func nonceOf(nonce string) string {
	if nonce == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(nonce))
	return hex.EncodeToString(sum[:])[:nonceLength]
}
