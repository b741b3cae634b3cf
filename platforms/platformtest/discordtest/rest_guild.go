package discordtest

import (
	"slices"
	"strconv"
)

// guildRoutes are those about the bot, its guilds and their people.
func (d *Discord) guildRoutes() map[string]handler {
	return map[string]handler{
		"GET /gateway":                       d.getGateway,
		"GET /gateway/bot":                   d.getGatewayBot,
		"GET /users/@me":                     func(*call) (int, any, error) { return 200, d.wireSelf(), nil },
		"GET /users/{user}":                  d.getUser,
		"GET /users/@me/guilds":              d.getMyGuilds,
		"POST /users/@me/channels":           d.createDM,
		"GET /guilds/{guild}":                d.getGuild,
		"GET /guilds/{guild}/channels":       d.getGuildChannels,
		"GET /guilds/{guild}/members":        d.getMembers,
		"GET /guilds/{guild}/members/search": d.searchMembers,
		"GET /guilds/{guild}/members/{user}": d.getMember,
		"GET /guilds/{guild}/threads/active": d.getActiveThreads,
		"GET /channels/{channel}":            d.getChannel,
		"PATCH /channels/{channel}":          d.patchChannel,
	}
}

func (d *Discord) gatewayURL(c *call) string { return "ws" + c.base[len("http"):] + "/gateway" }

func (d *Discord) getGateway(c *call) (int, any, error) {
	return 200, map[string]string{"url": d.gatewayURL(c)}, nil
}

func (d *Discord) getGatewayBot(c *call) (int, any, error) {
	return 200, map[string]any{
		"url": d.gatewayURL(c), "shards": 1,
		"session_start_limit": map[string]int{"total": 1000, "remaining": max(0, 1000-d.identifies), "reset_after": 86400000, "max_concurrency": 1},
	}, nil
}

type wireSelf struct {
	wireUser
	Verified bool    `json:"verified"`
	Email    *string `json:"email"`
	MFA      bool    `json:"mfa_enabled"`
	Flags    int     `json:"flags"`
	Locale   string  `json:"locale"`
	Bio      string  `json:"bio"`
}

func (d *Discord) wireSelf() wireSelf {
	return wireSelf{wireUser: wireUserOf(d.bot), Verified: true, MFA: true, Locale: "en-US"}
}

func (d *Discord) getUser(c *call) (int, any, error) {
	u := d.users[c.id("user")]
	if u == nil {
		return 0, nil, errUnknownUser
	}
	return 200, wireUserOf(u), nil
}

// applicationFlags tell which privileged intents the portal grants, as those of a bot in few guilds.
func (d *Discord) applicationFlags() (flags int) {
	for intent, flag := range map[Intents]int{IntentPresences: 1 << 13, IntentMembers: 1 << 15, IntentMessageContent: 1 << 19} {
		if d.o.WithoutIntents&intent == 0 {
			flags |= flag
		}
	}
	return flags
}

func (d *Discord) getMyGuilds(*call) (int, any, error) {
	out := []any{}
	for _, g := range d.guilds {
		m := g.member(d.bot.ID)
		if m == nil {
			continue
		}
		p := g.roles[0].permissions
		for _, r := range m.roles {
			if role := g.role(r); role != nil {
				p |= role.permissions
			}
		}
		out = append(out, map[string]any{"id": g.id, "name": g.name, "icon": nil, "owner": false, "permissions": p.String(), "features": []string{}})
	}
	return 200, out, nil
}

func (d *Discord) createDM(c *call) (int, any, error) {
	var body struct {
		Recipient ID `json:"recipient_id"`
	}
	if err := c.decode(&body); err != nil {
		return 0, nil, err
	}
	u := d.users[body.Recipient]
	switch {
	case u == nil:
		return 0, nil, errUnknownUser
	case u.Bot:
		return 0, nil, errNoDM
	}
	return 200, d.wireChannel(d.direct(u), false), nil
}

// mine finds a guild that the bot is in.
func (d *Discord) mine(c *call) (*guild, error) {
	g := d.guild(c.id("guild"))
	switch {
	case g == nil:
		return nil, errUnknownGuild
	case g.member(d.bot.ID) == nil:
		return nil, errAccess
	}
	return g, nil
}

func (d *Discord) getGuild(c *call) (int, any, error) {
	g, err := d.mine(c)
	if err != nil {
		return 0, nil, err
	}
	w := d.wireGuild(g)
	if c.r.URL.Query().Get("with_counts") == "true" {
		w.Members = len(g.members)
	}
	return 200, w, nil
}

func (d *Discord) getGuildChannels(c *call) (int, any, error) {
	g, err := d.mine(c)
	if err != nil {
		return 0, nil, err
	}
	out := []*wireChannel{}
	for _, id := range g.order {
		if ch := d.channels[id]; ch != nil {
			out = append(out, d.wireChannel(ch, true))
		}
	}
	return 200, out, nil
}

func (d *Discord) getMembers(c *call) (int, any, error) {
	g, err := d.mine(c)
	if err != nil {
		return 0, nil, err
	}
	if d.o.WithoutIntents&IntentMembers != 0 {
		return 0, nil, errAccess
	}
	most, after := queryInt(c, "limit", 1), ID(c.r.URL.Query().Get("after")).number()
	out := []wireMember{}
	sorted := slices.SortedFunc(slices.Values(g.members), func(a, b *member) int { return compareIDs(a.user.ID, b.user.ID) })
	for _, m := range sorted {
		if m.user.ID.number() > after && len(out) < most {
			out = append(out, d.wireMember(m))
		}
	}
	return 200, out, nil
}

func queryInt(c *call, name string, otherwise int) int {
	n, err := strconv.Atoi(c.r.URL.Query().Get(name))
	if err != nil {
		return otherwise
	}
	return n
}

func (d *Discord) searchMembers(c *call) (int, any, error) {
	g, err := d.mine(c)
	if err != nil {
		return 0, nil, err
	}
	query := c.r.URL.Query().Get("query")
	found, _ := g.search(nil, &query, queryInt(c, "limit", 1))
	out := []wireMember{}
	for _, m := range found {
		out = append(out, d.wireMember(m))
	}
	return 200, out, nil
}

func (d *Discord) getMember(c *call) (int, any, error) {
	g, err := d.mine(c)
	if err != nil {
		return 0, nil, err
	}
	if m := g.member(c.id("user")); m != nil {
		return 200, d.wireMember(m), nil
	}
	if d.users[c.id("user")] == nil {
		return 0, nil, errUnknownUser
	}
	return 0, nil, errUnknownMember
}

func (d *Discord) getChannel(c *call) (int, any, error) {
	ch, err := d.reach(c.id("channel"), 0)
	if err != nil {
		return 0, nil, err
	}
	return 200, d.wireChannel(ch, true), nil
}

// patchChannel renames channels, and archives, locks and renames threads.
func (d *Discord) patchChannel(c *call) (int, any, error) {
	ch, err := d.reach(c.id("channel"), 0)
	if err != nil {
		return 0, nil, err
	}
	var body struct {
		Name     *string `json:"name"`
		Topic    *string `json:"topic"`
		Archived *bool   `json:"archived"`
		Locked   *bool   `json:"locked"`
		Minutes  *int    `json:"auto_archive_duration"`
	}
	if err := c.decode(&body); err != nil {
		return 0, nil, err
	}
	p := d.permissions(d.bot.ID, ch)
	switch {
	case ch.guild == nil:
		return 0, nil, errChannelType
	case !ch.isThread() && p&ManageChannels == 0:
		return 0, nil, errPermissions
	case ch.isThread() && p&ManageThreads == 0 && (ch.Owner != d.bot.ID || body.Locked != nil):
		return 0, nil, errPermissions
	case ch.Archived && (body.Archived == nil || *body.Archived):
		return 0, nil, errArchived
	}
	if body.Name != nil {
		if err := checkName(*body.Name); err != nil {
			return 0, nil, err
		}
		ch.Name = *body.Name
	}
	if body.Topic != nil {
		ch.Topic = *body.Topic
	}
	if !ch.isThread() {
		d.channelChanged(ch, "CHANNEL_UPDATE")
		return 200, d.wireChannel(ch, true), nil
	}
	if body.Minutes != nil {
		if err := checkMinutes(*body.Minutes); err != nil {
			return 0, nil, err
		}
		ch.autoClose = *body.Minutes
	}
	archived, locked := ch.Archived, ch.Locked
	if body.Archived != nil {
		archived = *body.Archived
	}
	if body.Locked != nil {
		locked = *body.Locked
	}
	d.setThread(ch, archived, locked)
	return 200, d.wireChannel(ch, true), nil
}
