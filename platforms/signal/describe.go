package signal

import (
	"context"
	"strings"

	"herald/platforms"
)

// Describe tells what events from a group or a person's chat carry. It makes no request.
func (a *Adapter) Describe(ctx context.Context, at platforms.Address) (platforms.Room, error) {
	if at.AccountOf() != a.s.account {
		return platforms.Room{}, platforms.Failure(platforms.BadRequest, "address %s is not of account %s", at, a.s.account)
	}
	if strings.HasPrefix(string(at.Chat), groupPrefix) {
		at.Thread = ""
		return platforms.Room{Address: at, Type: platforms.Group}, nil
	}
	chat, err := a.Open(ctx, platforms.UserID(at.Chat))
	if err != nil {
		return platforms.Room{}, err
	}
	who := a.people.find(string(at.Chat))
	return platforms.Room{Address: chat, Type: platforms.DM, User: platforms.UserID(who.id()), Name: who.name}, nil
}
