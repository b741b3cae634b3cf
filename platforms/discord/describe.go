package discord

import (
	"context"

	"herald/platforms"
)

// Describe tells what events from a channel or thread carry. The id of a thread alone stands for the thread in its channel.
// The person of a direct chat is not among it.
func (a *Adapter) Describe(ctx context.Context, at platforms.Address) (platforms.Room, error) {
	if err := a.checkAddress(at); err != nil {
		return platforms.Room{}, err
	}
	id := string(at.Thread)
	if id == "" {
		id = string(at.Chat)
	}
	p, err := a.channelOf(ctx, id)
	if err != nil {
		return platforms.Room{}, err
	}
	e := a.envelope("", p)
	return platforms.Room{Address: e.Address, Type: e.ChatType, Name: e.ChatName, Scope: e.Scope}, nil
}
