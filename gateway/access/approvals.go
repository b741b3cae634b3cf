package access

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"herald/platforms"
	"herald/sessions"
)

// The values of approvals.approval_scope: who may approve what waits for a person.
const (
	ScopeOwner  = "owner"  // the person whose message began the work, or an admin by name
	ScopeAdmins = "admins" // admins
	ScopeAny    = "any"    // everyone who may talk
)

// MayDecide reports whether the sender of an event may decide what waits for requester's sake, by d, the gate's
// decision about the event. An unknown scope lets nobody decide, and so does a requester that nobody knows, except for
// named admins. A bot decides only when its id is in a list of admins.
func (d Decision) MayDecide(scope string, requester platforms.UserID, sender platforms.User) bool {
	switch {
	case !d.Allowed:
		return false
	case d.Named:
		return true
	case sender.IsBot || sender.ID == "":
		return false
	}
	switch scope {
	case ScopeOwner:
		return requester != "" && (sender.ID == requester || sender.Alt == requester)
	case ScopeAdmins:
		return d.Tier == TierAdmin
	case ScopeAny:
		return true
	}
	return false
}

// Denied returns the first of the operator's patterns that one of texts matches, "" for none. In a pattern * is any
// text and ? is one character; letters match without regard to case.
func Denied(patterns, texts []string) string {
	for _, p := range patterns {
		pattern := []rune(strings.ToLower(strings.TrimSpace(p)))
		if len(pattern) == 0 {
			continue
		}
		for _, text := range texts {
			if glob(pattern, []rune(strings.ToLower(text))) {
				return p
			}
		}
	}
	return ""
}

// glob matches a whole text in time that grows with both lengths multiplied, at most.
func glob(pattern, text []rune) bool {
	p, t, star, mark := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// Grant is what a person has allowed for one session. It ends with the session.
type Grant struct {
	// Kinds are the kinds of danger that need no approval any more, in the order in which they were allowed.
	Kinds []string `json:"kinds,omitempty"`
	// Yolo: nothing needs one.
	Yolo bool `json:"yolo,omitempty"`
}

// SessionGrant returns what is allowed for a session; the zero value when nothing is.
func SessionGrant(v sessions.View, id sessions.ID) (Grant, error) {
	var g Grant
	value, err := v.Value(sessions.SpaceGrant, string(id))
	if errors.Is(err, sessions.ErrNotFound) {
		return g, nil
	}
	if err == nil {
		err = json.Unmarshal(value.Data, &g)
	}
	return g, err
}

// SetSessionGrant replaces what is allowed for a session.
func SetSessionGrant(tx sessions.Tx, id sessions.ID, g Grant, now time.Time) error {
	if len(g.Kinds) == 0 && !g.Yolo {
		return tx.SetValue(sessions.SpaceGrant, string(id), nil, now)
	}
	data, err := json.Marshal(g)
	if err != nil {
		return err
	}
	return tx.SetValue(sessions.SpaceGrant, string(id), data, now)
}

// Allow adds kinds to what is allowed for a session.
func Allow(tx sessions.Tx, id sessions.ID, kinds []string, now time.Time) error {
	g, err := SessionGrant(tx, id)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		if !slices.Contains(g.Kinds, k) {
			g.Kinds = append(g.Kinds, k)
		}
	}
	return SetSessionGrant(tx, id, g, now)
}

// SweepGrants forgets what was allowed for sessions that have ended, or that are not there any more.
func SweepGrants(tx sessions.Tx, now time.Time) error {
	values, err := tx.Values(sessions.SpaceGrant)
	if err != nil {
		return err
	}
	for _, v := range values {
		s, err := tx.Session(sessions.ID(v.Name))
		if err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return err
		}
		if err == nil && s.EndedAt.IsZero() {
			continue
		}
		if err := tx.SetValue(sessions.SpaceGrant, v.Name, nil, now); err != nil {
			return err
		}
	}
	return nil
}
