package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
)

// NewID returns a new random name of 18 letters and digits.
func NewID() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// jobID is what the name of a background command may be, see Command.ID.
var jobID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// ValidID reports whether a background command may have this name, see Command.ID.
func ValidID(id string) bool { return jobID.MatchString(id) }
