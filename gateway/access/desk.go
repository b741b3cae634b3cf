package access

import (
	"context"
	"fmt"

	"herald/platforms"
)

// PairingArgs is one action of the command line on pairing codes.
type PairingArgs struct {
	Action   string `json:"action"` // list, approve, revoke, clear
	Platform string `json:"platform,omitempty"`
	Code     string `json:"code,omitempty"`
	User     string `json:"user,omitempty"`
}

// PairingList is who waits for an approval and who has one.
type PairingList struct {
	Waiting  []Pending  `json:"waiting"`
	Approved []Approval `json:"approved"`
}

// PairingCleared says how many codes were removed.
type PairingCleared struct {
	Cleared int `json:"cleared"`
}

// Do does what the command line asks: list returns a PairingList, approve an Approval, revoke nothing, clear a
// PairingCleared.
func (p *Pairing) Do(ctx context.Context, a PairingArgs) (any, error) {
	switch a.Action {
	case "list":
		waiting, approved, err := p.List(ctx)
		return PairingList{waiting, approved}, err
	case "approve":
		return p.Approve(ctx, platforms.Name(a.Platform), a.Code)
	case "revoke":
		found, err := p.Revoke(ctx, platforms.Name(a.Platform), platforms.UserID(a.User))
		if err == nil && !found {
			err = fmt.Errorf("%s user %q was not paired", a.Platform, a.User)
		}
		return nil, err
	case "clear":
		n, err := p.Clear(ctx, platforms.Name(a.Platform))
		return PairingCleared{n}, err
	}
	return nil, fmt.Errorf("action %q: want list, approve, revoke or clear", a.Action)
}
