package discord

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/bwmarrin/discordgo"

	"herald/platforms"
)

var errNoUser = errors.New("that is no Discord user: want the id, a whole number")

// membersPage is the most members of one page.
const membersPage = 1000

// guilds returns the servers that the bot is in.
func (a *Adapter) guilds(ctx context.Context) ([]guild, error) {
	var all []guild
	for after := "0"; ; {
		var page []guild
		err := a.do(ctx, call{method: http.MethodGet, route: "/users/@me/guilds", path: "/users/@me/guilds?limit=200&after=" + after}, &page)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < 200 {
			return all, nil
		}
		after = page[len(page)-1].ID
	}
}

// Rooms lists the channels, forums and active threads of every server of the bot, and the people in them where
// Discord lists them (the Server Members intent). It pages through everything, within ctx.
func (a *Adapter) Rooms(ctx context.Context) ([]platforms.Room, error) {
	list, err := a.guilds(ctx)
	if err != nil {
		return nil, err
	}
	var out []platforms.Room
	people := map[string]bool{a.me().id: true}
	for _, g := range list {
		rooms, err := a.roomsOf(ctx, g)
		if err != nil {
			return nil, err
		}
		out = append(out, rooms...)
		members, err := a.membersOf(ctx, g, people)
		if err != nil {
			return nil, err
		}
		out = append(out, members...)
	}
	return out, nil
}

func (a *Adapter) roomsOf(ctx context.Context, g guild) ([]platforms.Room, error) {
	var channels []channel
	err := a.do(ctx, call{method: http.MethodGet, route: "/guilds/{guild}/channels", major: g.ID, path: "/guilds/" + g.ID + "/channels"}, &channels)
	if err != nil {
		return nil, err
	}
	var active struct {
		Threads []channel `json:"threads"`
	}
	err = a.do(ctx, call{method: http.MethodGet, route: "/guilds/{guild}/threads/active", major: g.ID, path: "/guilds/" + g.ID + "/threads/active"}, &active)
	if err != nil && statusOf(err) != http.StatusForbidden {
		return nil, err
	}
	names := map[string]string{}
	var out []platforms.Room
	for _, c := range append(channels, active.Threads...) {
		c.GuildID = g.ID
		p := placeOf(c)
		names[c.ID] = c.Name
		switch c.Type {
		case discordgo.ChannelTypeGuildText, discordgo.ChannelTypeGuildNews, discordgo.ChannelTypeGuildForum, discordgo.ChannelTypeGuildMedia:
		default:
			if !p.thread() {
				continue // categories, voice
			}
		}
		a.rooms.put(p)
		r := platforms.Room{Address: a.addressOf(p), Type: platforms.Channel, Name: c.Name, Scope: platforms.ScopeID(g.ID), Parent: g.Name}
		if p.thread() {
			r.Type = platforms.Thread
			if names[c.ParentID] != "" {
				r.Parent = names[c.ParentID]
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// membersOf lists the people of a server that are not in seen yet. A server that does not list them has none.
func (a *Adapter) membersOf(ctx context.Context, g guild, seen map[string]bool) ([]platforms.Room, error) {
	var out []platforms.Room
	for after := "0"; ; {
		var page []member
		err := a.do(ctx, call{
			method: http.MethodGet, route: "/guilds/{guild}/members", major: g.ID,
			path: "/guilds/" + g.ID + "/members?limit=" + strconv.Itoa(membersPage) + "&after=" + after,
		}, &page)
		if statusOf(err) == http.StatusForbidden {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range page {
			u := page[i].User
			if u == nil || u.Bot || seen[u.ID] {
				continue
			}
			seen[u.ID] = true
			r := platforms.Room{User: platforms.UserID(u.ID), Type: platforms.DM, Name: nameOf(u, &page[i]), Scope: platforms.ScopeID(g.ID),
				Parent: g.Name}
			for _, alias := range []string{u.Username, u.GlobalName} {
				if alias != "" && alias != r.Name {
					r.Aliases = append(r.Aliases, alias)
				}
			}
			out = append(out, r)
		}
		if len(page) < membersPage || page[len(page)-1].User == nil {
			return out, nil
		}
		after = page[len(page)-1].User.ID
	}
}

// Open returns the direct chat with a person, and creates it if necessary.
func (a *Adapter) Open(ctx context.Context, user platforms.UserID) (platforms.Address, error) {
	if snowflake(string(user)) == 0 {
		return platforms.Address{}, &platforms.SendError{Kind: platforms.NotFound, Err: errNoUser}
	}
	var c channel
	err := a.do(ctx, call{method: http.MethodPost, route: "/users/@me/channels", path: "/users/@me/channels", body: map[string]string{"recipient_id": string(user)}}, &c)
	if err != nil {
		return platforms.Address{}, err
	}
	p := placeOf(c)
	a.rooms.put(p)
	return a.addressOf(p), nil
}
