package slack

import (
	"context"

	api "github.com/slack-go/slack"

	"herald/platforms"
)

// directoryPage is how many entries one question brings; Slack recommends at most 200, and takes 1,000.
const directoryPage = 200

// Rooms lists the conversations that the bot is in, and the people of the workspace.
func (a *Adapter) Rooms(ctx context.Context) ([]platforms.Room, error) {
	rooms, err := a.conversations(ctx)
	if err != nil {
		return nil, err
	}
	people, err := a.people(ctx)
	return append(rooms, people...), err
}

func (a *Adapter) conversations(ctx context.Context) ([]platforms.Room, error) {
	var rooms []platforms.Room
	p := &api.GetConversationsForUserParameters{Types: []string{"public_channel", "private_channel", "mpim"}, Limit: directoryPage, ExcludeArchived: true}
	for {
		var page []api.Channel
		next := ""
		err := a.do(ctx, "users.conversations", "", func(ctx context.Context) (err error) {
			page, next, err = a.api.GetConversationsForUserContext(ctx, p)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, c := range page {
			r := roomOf(c)
			rooms = append(rooms, platforms.Room{Address: a.address(c.ID, ""), Type: r.kind, Name: r.name, Scope: platforms.ScopeID(a.self().team)})
		}
		if next == "" {
			return rooms, nil
		}
		p.Cursor = next
	}
}

func (a *Adapter) people(ctx context.Context) ([]platforms.Room, error) {
	var rooms []platforms.Room
	me := a.self()
	page := a.api.GetUsersPaginated(api.GetUsersOptionLimit(directoryPage))
	for {
		err := a.do(ctx, "users.list", "", func(ctx context.Context) error {
			next, err := page.Next(ctx)
			if err == nil {
				page = next
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, u := range page.Users {
			if u.Deleted || u.IsBot || u.ID == me.user || u.ID == "USLACKBOT" {
				continue
			}
			p := personOf(u)
			room := platforms.Room{User: platforms.UserID(u.ID), Type: platforms.DM, Name: p.name, Scope: platforms.ScopeID(me.team)}
			if p.handle != "" && p.handle != p.name {
				room.Aliases = append(room.Aliases, p.handle)
			}
			if real := firstOf(u.RealName, u.Profile.RealName); real != "" && real != p.name {
				room.Aliases = append(room.Aliases, real)
			}
			rooms = append(rooms, room)
		}
		if page.Cursor == "" {
			return rooms, nil
		}
	}
}

// Open returns the direct chat with a person and creates it if necessary.
func (a *Adapter) Open(ctx context.Context, user platforms.UserID) (platforms.Address, error) {
	if id, ok := a.dms.Get(user); ok {
		return a.address(id, ""), nil
	}
	if user == "" {
		return platforms.Address{}, platforms.Failure(platforms.BadRequest, "no person is named")
	}
	var c *api.Channel
	err := a.do(ctx, "conversations.open", "", func(ctx context.Context) (err error) {
		c, _, _, err = a.api.OpenConversationContext(ctx, &api.OpenConversationParameters{Users: []string{string(user)}, ReturnIM: true})
		return err
	})
	if err != nil {
		return platforms.Address{}, err
	}
	if c == nil || c.ID == "" {
		return platforms.Address{}, platforms.Failure(platforms.BadRequest, "no direct chat with %s was named by Slack", user)
	}
	a.dms.Put(user, c.ID)
	return a.address(c.ID, ""), nil
}
