package slack

import (
	"context"

	"herald/platforms"
)

// Describe tells what events from a channel carry. The person of a direct chat is not among it.
func (a *Adapter) Describe(ctx context.Context, at platforms.Address) (platforms.Room, error) {
	channel, err := a.channelOf(ctx, at)
	if err != nil {
		return platforms.Room{}, err
	}
	r := a.room(ctx, channel, "")
	return platforms.Room{Address: a.address(channel, string(at.Thread)), Type: r.kind, Name: r.name,
		Scope: platforms.ScopeID(a.self().team)}, nil
}
