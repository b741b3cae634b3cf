package discordtest

import (
	"slices"
)

// permissions computes what a user may do in a channel, as the documentation's algorithm does.
func (d *Discord) permissions(id ID, c *channel) Permissions {
	g := c.guild
	if g == nil {
		if id == d.bot.ID || slices.Contains(c.Members, id) {
			return MemberPermissions &^ (CreatePublicThreads | CreatePrivateThreads | SendInThreads)
		}
		return 0
	}
	m := g.member(id)
	if m == nil {
		return 0
	}
	if g.owner == id {
		return ^Permissions(0)
	}
	p := g.roles[0].permissions
	for _, r := range m.roles {
		if role := g.role(r); role != nil {
			p |= role.permissions
		}
	}
	if p&Administrator != 0 {
		return ^Permissions(0)
	}
	at := c
	if c.isThread() {
		if at = d.channels[c.Parent]; at == nil {
			return 0
		}
	}
	return applyOverwrites(p, at.overwrites, g.id, m)
}

func applyOverwrites(p Permissions, list []overwrite, everyone ID, m *member) Permissions {
	var allow, deny Permissions
	for _, o := range list {
		if o.who == everyone {
			p = p&^o.deny | o.allow
		} else if o.role && slices.Contains(m.roles, o.who) {
			allow, deny = allow|o.allow, deny|o.deny
		}
	}
	p = p&^deny | allow
	for _, o := range list {
		if o.who == m.user.ID {
			p = p&^o.deny | o.allow
		}
	}
	return p
}

// sees reports whether a user may view a channel: a private thread only from inside, or with ManageThreads.
func (d *Discord) sees(id ID, c *channel) bool {
	p := d.permissions(id, c)
	if p&ViewChannel == 0 {
		return false
	}
	return c.Type != PrivateThread || p&ManageThreads != 0 || slices.Contains(c.Members, id)
}

// sighted makes a change of permissions and tells the bot the threads of the channels that it sees since.
func (d *Discord) sighted(g *guild, change func()) {
	saw := map[ID]bool{}
	for _, id := range g.order {
		saw[id] = d.sees(d.bot.ID, d.channels[id])
	}
	change()
	for _, id := range g.order {
		if saw[id] || !d.sees(d.bot.ID, d.channels[id]) {
			continue
		}
		threads := []*wireChannel{}
		for _, t := range d.activeThreads(g) {
			if *t.Parent == id {
				threads = append(threads, t)
			}
		}
		d.dispatch(event{name: "THREAD_LIST_SYNC", intent: IntentGuilds, data: map[string]any{
			"guild_id": g.id, "channel_ids": []ID{id}, "threads": threads, "members": membersOf(threads),
		}})
	}
}
