package sessions

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// Key says which conversation an event belongs to. Only KeyFor makes one. It is unique within a profile's
// store and stable: it is how a returning chat finds its session.
type Key string

// ID names one session: a stretch of conversation under a key, between two /new. NewID makes one; it is
// unique in the store.
type ID string

// TurnID, InboxID, OutboxID and RowID are row numbers that the store assigns; each is unique in its table
// and grows with time.
type (
	TurnID   int64
	InboxID  int64
	OutboxID int64
	RowID    int64
)

// NewID returns a session id for a session that starts at now: UTC time to the second and 8 random hex
// digits, such as 20261129_164940_1f2e3d4c.
func NewID(now time.Time) ID {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return ID(now.UTC().Format("20060102_150405") + "_" + hex.EncodeToString(b[:]))
}

// NewJobID returns a new job's id: 12 random lower-case hex digits.
func NewJobID() JobID {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return JobID(hex.EncodeToString(b[:]))
}
