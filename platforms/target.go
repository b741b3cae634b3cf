package platforms

import (
	"fmt"
	"strings"
)

// The words of a target that name no place of a platform.
const (
	TargetOrigin = "origin" // where the thing was asked for
	TargetLocal  = "local"  // nowhere: it is only kept
)

// Target is what a person writes to say where a message goes:
//
//	origin | local | <platform>[/<account>] | <platform>[/<account>]:<place>
//	place = <chat> | <chat>:<thread> | #<name>[:<thread>] | @<person> | <name of the home channel>
//
// Platform names are taken in any case, ids exactly as they are. The account is needed only where several accounts of
// a platform run and the place does not say which one is meant.
type Target struct {
	// Word is TargetOrigin or TargetLocal, and then nothing else is set.
	Word string
	// Platform is in lower case; Account is empty where none is named.
	Platform Name
	Account  AccountID
	// Place is what stands behind the colon; empty is the home channel.
	Place string
}

// ParseTarget reads a target. It knows no platforms. The error is a *TargetError, and then the target has what could be read.
func ParseTarget(s string) (Target, error) {
	text := strings.TrimSpace(s)
	head, place, placed := strings.Cut(text, ":")
	name, account, qualified := strings.Cut(head, "/")
	t := Target{Platform: Name(strings.ToLower(strings.TrimSpace(name))), Account: AccountID(strings.TrimSpace(account)),
		Place: strings.TrimSpace(place)}
	switch {
	case t.Platform == "":
		return t, &TargetError{Target: s, Reason: "names no platform"}
	case qualified && t.Account == "":
		return t, &TargetError{Target: s, Reason: "names no account behind the slash"}
	case placed && t.Place == "":
		return t, &TargetError{Target: s, Reason: "names no chat behind the colon; without the colon it means the home channel"}
	case !placed && !qualified && (t.Platform == TargetOrigin || t.Platform == TargetLocal):
		return Target{Word: string(t.Platform)}, nil
	}
	return t, nil
}

// TargetError says why a target can't be used, and what could have been meant.
type TargetError struct {
	Target string
	Reason string
	// Candidates are targets that would do; there are few.
	Candidates []string
}

// Error returns one line.
func (e *TargetError) Error() string {
	s := fmt.Sprintf("target %q: %s", e.Target, e.Reason)
	if len(e.Candidates) > 0 {
		s += ": " + strings.Join(e.Candidates, ", ")
	}
	return s
}

// TargetOf writes an address as a target. withAccount names the account.
func TargetOf(at Address, withAccount bool) string {
	s := string(at.Platform)
	if withAccount {
		s = at.AccountOf().String()
	}
	s += ":" + string(at.Chat)
	if at.Thread != "" {
		s += ":" + string(at.Thread)
	}
	return s
}
