package teams

import (
	"context"

	"herald/platforms"
)

// Describe tells what events from a conversation carry. It makes no request: what is not known of one is told by its id.
func (a *Adapter) Describe(ctx context.Context, at platforms.Address) (platforms.Room, error) {
	t, err := a.target(ctx, at)
	if err != nil {
		return platforms.Room{}, err
	}
	room := a.roomFor(t.chat, t.room)
	room.Address.Thread = platforms.ThreadID(t.thread)
	return room, nil
}
