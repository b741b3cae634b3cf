package web

import (
	"context"

	"herald/platforms"
)

// Describe tells what events from a chat carry: each is the owner's own.
func (a *Adapter) Describe(_ context.Context, at platforms.Address) (platforms.Room, error) {
	e := a.event(at.Chat, "", "")
	return platforms.Room{Address: e.Address, Type: e.ChatType, User: e.Sender.ID, Name: e.Sender.Name}, nil
}
