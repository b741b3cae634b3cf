package discordtest

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// user is a person or bot.
type user struct {
	User
	closedDMs bool
	dm        ID
}

type role struct {
	id          ID
	name        string
	permissions Permissions
	managed     bool
	bot         ID // whose role it is, for the one of a bot
}

type member struct {
	user   *user
	nick   string
	roles  []ID
	joined time.Time
}

type guild struct {
	id      ID
	name    string
	tier    int
	owner   ID
	roles   []*role
	members []*member
	order   []ID // of channels, without threads
	botRole ID
	out     bool // unavailable
}

type overwrite struct {
	who         ID
	role        bool
	allow, deny Permissions
}

// channel is a channel, thread or direct channel, with its messages.
type channel struct {
	Channel
	guild      *guild
	overwrites []overwrite
	messages   map[ID]*message
	order      []ID
	archivedAt time.Time
	autoClose  int  // minutes
	started    bool // a thread from a message
	last       ID
	slow       int
}

func (c *channel) isThread() bool {
	return c.Type == AnnouncementThread || c.Type == PublicThread || c.Type == PrivateThread
}

// keepUser stores a user. The caller holds mu, or nobody else has d yet.
func (d *Discord) keepUser(u User) *user {
	if u.ID == "" {
		u.ID = d.newID()
	}
	if u.Username == "" {
		u.Username = "user" + string(u.ID[max(0, len(u.ID)-4):])
	}
	kept := &user{User: u}
	d.users[u.ID] = kept
	return kept
}

// AddUser makes a person, or another bot.
func (d *Discord) AddUser(u User) ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.keepUser(u).ID
}

// AddGuild makes a guild with the bot and the people in it, and tells connected bots. Tier is the boost level, which
// sets the upload limit: 0 and 1 10 MiB, 2 50 MiB, 3 100 MiB.
func (d *Discord) AddGuild(name string, tier int, people ...ID) ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := &guild{id: d.newID(), name: name, tier: tier, owner: d.bot.ID}
	g.roles = []*role{{id: g.id, name: "@everyone", permissions: MemberPermissions}}
	g.botRole = d.newID()
	g.roles = append(g.roles, &role{id: g.botRole, name: d.bot.Username, managed: true, bot: d.bot.ID})
	g.members = []*member{{user: d.bot, roles: []ID{g.botRole}, joined: time.Now()}}
	for _, id := range people {
		if u := d.users[id]; u != nil {
			g.members = append(g.members, &member{user: u, joined: time.Now()})
		}
	}
	g.owner = d.newID() // nobody who acts: an owner may do everything
	if len(people) > 0 {
		g.owner = people[0]
	}
	d.guilds = append(d.guilds, g)
	d.dispatch(event{name: "GUILD_CREATE", intent: IntentGuilds, per: func(s *session) any { return d.wireGuildCreate(g, s.intents) }})
	return g.id
}

// guild returns a guild, or nil. The caller holds mu.
func (d *Discord) guild(id ID) *guild {
	for _, g := range d.guilds {
		if g.id == id {
			return g
		}
	}
	return nil
}

// member returns a member, or nil.
func (g *guild) member(id ID) *member {
	for _, m := range g.members {
		if m.user.ID == id {
			return m
		}
	}
	return nil
}

// role returns a role, or nil.
func (g *guild) role(id ID) *role {
	for _, r := range g.roles {
		if r.id == id {
			return r
		}
	}
	return nil
}

// AddMember puts a person into a guild, with roles.
func (d *Discord) AddMember(guild, user ID, roles ...ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g, u := d.guild(guild), d.users[user]
	if g == nil || u == nil {
		return
	}
	m, name := g.member(user), "GUILD_MEMBER_UPDATE"
	if m == nil {
		m, name = &member{user: u, joined: time.Now()}, "GUILD_MEMBER_ADD"
		g.members = append(g.members, m)
	}
	m.roles = append(m.roles, roles...)
	if u == d.bot && name == "GUILD_MEMBER_ADD" {
		m.roles = append(m.roles, g.botRole)
		d.dispatch(event{name: "GUILD_CREATE", intent: IntentGuilds, per: func(s *session) any { return d.wireGuildCreate(g, s.intents) }})
		return
	}
	d.memberChanged(g, m, name)
}

func (d *Discord) memberChanged(g *guild, m *member, name string) {
	d.dispatch(event{name: name, intent: IntentMembers, data: struct {
		wireMember
		Guild ID `json:"guild_id"`
	}{d.wireMember(m), g.id}})
}

// RemoveMember takes somebody out of a guild. When it is the bot, the guild is gone for it.
func (d *Discord) RemoveMember(guild, user ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.guild(guild)
	if g == nil || g.member(user) == nil {
		return
	}
	g.members = slices.DeleteFunc(g.members, func(m *member) bool { return m.user.ID == user })
	if user == d.bot.ID {
		d.dispatch(event{name: "GUILD_DELETE", intent: IntentGuilds, data: wireUnavailable{ID: g.id}})
		return
	}
	d.dispatch(event{name: "GUILD_MEMBER_REMOVE", intent: IntentMembers, data: struct {
		Guild ID       `json:"guild_id"`
		User  wireUser `json:"user"`
	}{g.id, wireUserOf(d.users[user])}})
}

// SetNick sets a member's name in a guild.
func (d *Discord) SetNick(guild, user ID, nick string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.guild(guild); g != nil {
		if m := g.member(user); m != nil {
			m.nick = nick
			d.memberChanged(g, m, "GUILD_MEMBER_UPDATE")
		}
	}
}

// BotRole returns the bot's own managed role in a guild. Its permissions are set with SetRole.
func (d *Discord) BotRole(guild ID) ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.guild(guild); g != nil {
		return g.botRole
	}
	return ""
}

// AddRole makes a role.
func (d *Discord) AddRole(guild ID, name string, p Permissions) ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.guild(guild)
	if g == nil {
		return ""
	}
	r := &role{id: d.newID(), name: name, permissions: p}
	g.roles = append(g.roles, r)
	d.roleChanged(g, r, "GUILD_ROLE_CREATE")
	return r.id
}

// SetRole changes what a role may do. The guild's own id is the role @everyone.
func (d *Discord) SetRole(guild, role ID, p Permissions) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.guild(guild); g != nil {
		if r := g.role(role); r != nil {
			d.sighted(g, func() {
				r.permissions = p
				d.roleChanged(g, r, "GUILD_ROLE_UPDATE")
			})
		}
	}
}

func (d *Discord) roleChanged(g *guild, r *role, name string) {
	d.dispatch(event{name: name, intent: IntentGuilds, data: struct {
		Guild ID       `json:"guild_id"`
		Role  wireRole `json:"role"`
	}{g.id, wireRoleOf(g, r)}})
}

// Overwrite sets what a role or user may and may not do in a channel, on top of the roles.
func (d *Discord) Overwrite(channel, who ID, allow, deny Permissions) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.channels[channel]
	if c == nil || c.guild == nil {
		return
	}
	d.sighted(c.guild, func() {
		c.overwrites = slices.DeleteFunc(c.overwrites, func(o overwrite) bool { return o.who == who })
		c.overwrites = append(c.overwrites, overwrite{who, c.guild.role(who) != nil, allow, deny})
		d.channelChanged(c, "CHANNEL_UPDATE")
	})
}

// AddChannel makes a channel of a guild. Only ID (made when empty), Guild, Parent, Type, Name and Topic are used.
func (d *Discord) AddChannel(c Channel) ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.guild(c.Guild)
	if g == nil {
		return ""
	}
	kept := d.keepChannel(Channel{ID: c.ID, Guild: c.Guild, Parent: c.Parent, Type: c.Type, Name: c.Name, Topic: c.Topic})
	g.order = append(g.order, kept.ID)
	d.channelChanged(kept, "CHANNEL_CREATE")
	return kept.ID
}

func (d *Discord) keepChannel(c Channel) *channel {
	if c.ID == "" {
		c.ID = d.newID()
	}
	kept := &channel{Channel: c, guild: d.guild(c.Guild), messages: map[ID]*message{}, autoClose: 1440}
	d.channels[c.ID] = kept
	return kept
}

// channelChanged tells about a channel, or about a thread that the bot sees.
func (d *Discord) channelChanged(c *channel, name string) {
	if c.guild == nil || c.guild.out || c.isThread() && !d.sees(d.bot.ID, c) {
		return
	}
	d.dispatch(event{name: name, intent: IntentGuilds, data: d.wireChannel(c, true)})
}

// DM returns the direct channel of the bot and a person, and makes it when it is new.
func (d *Discord) DM(user ID) ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	u := d.users[user]
	if u == nil {
		return ""
	}
	return d.direct(u).ID
}

func (d *Discord) direct(u *user) *channel {
	if u.dm == "" {
		u.dm = d.keepChannel(Channel{Type: DirectChannel, Members: []ID{u.ID}}).ID
	}
	return d.channels[u.dm]
}

// CloseDMs makes the person refuse direct messages of the bot (50007), or take them again.
func (d *Discord) CloseDMs(user ID, closed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if u := d.users[user]; u != nil {
		u.closedDMs = closed
	}
}

// Channel returns a channel or thread as it stands.
func (d *Discord) Channel(id ID) (Channel, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.channels[id]
	if c == nil {
		return Channel{}, false
	}
	out := c.Channel
	out.Members = slices.Clone(c.Members)
	return out, true
}

// Threads returns the threads of a channel, oldest first.
func (d *Discord) Threads(parent ID) []Channel {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []Channel
	for _, c := range d.channels {
		if c.isThread() && c.Parent == parent {
			out = append(out, c.Channel)
		}
	}
	slices.SortFunc(out, func(a, b Channel) int { return cmp.Compare(a.ID.number(), b.ID.number()) })
	return out
}

// DropChannel deletes a channel or thread.
func (d *Discord) DropChannel(id ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.channels[id]; c != nil {
		d.dropChannel(c)
	}
}

func (d *Discord) dropChannel(c *channel) {
	seen := d.sees(d.bot.ID, c)
	if !c.isThread() {
		for _, other := range d.channels {
			if other.isThread() && other.Parent == c.ID {
				delete(d.channels, other.ID)
			}
		}
	}
	delete(d.channels, c.ID)
	if c.guild == nil {
		return
	}
	c.guild.order = slices.DeleteFunc(c.guild.order, func(id ID) bool { return id == c.ID })
	if c.guild.out {
		return
	}
	if c.isThread() {
		if !seen {
			return
		}
		d.dispatch(event{name: "THREAD_DELETE", intent: IntentGuilds, data: wireThreadGone{c.ID, c.Guild, c.Parent, c.Type}})
		return
	}
	d.dispatch(event{name: "CHANNEL_DELETE", intent: IntentGuilds, data: d.wireChannel(c, true)})
}

// SetThread archives or opens, and locks or unlocks, a thread.
func (d *Discord) SetThread(thread ID, archived, locked bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.channels[thread]; c != nil && c.isThread() {
		d.setThread(c, archived, locked)
	}
}

func (d *Discord) setThread(c *channel, archived, locked bool) {
	if c.Archived != archived {
		c.archivedAt = time.Now()
	}
	c.Archived, c.Locked = archived, locked
	d.channelChanged(c, "THREAD_UPDATE")
}

// GuildOutage makes a guild unavailable, or available again.
func (d *Discord) GuildOutage(guild ID, out bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.guild(guild)
	if g == nil || g.out == out {
		return
	}
	g.out = out
	if out {
		d.dispatch(event{name: "GUILD_DELETE", intent: IntentGuilds, data: wireUnavailable{g.id, true}})
		return
	}
	d.dispatch(event{name: "GUILD_CREATE", intent: IntentGuilds, per: func(s *session) any { return d.wireGuildCreate(g, s.intents) }})
}

// usual returns who acts in a channel when nobody is named.
func (d *Discord) usual(c *channel, who ID) *user {
	if u := d.users[who]; u != nil {
		return u
	}
	if c.guild == nil {
		return d.users[c.Members[0]]
	}
	for _, m := range c.guild.members {
		if !m.user.Bot {
			return m.user
		}
	}
	u := d.keepUser(User{Username: "ann", GlobalName: "Ann"})
	c.guild.members = append(c.guild.members, &member{user: u, joined: time.Now()})
	return u
}

// mentions reads <@ID>, <@!ID> and <@&ROLE> in a text.
func mentions(text, mark string) []ID {
	var out []ID
	for _, part := range strings.Split(text, "<@"+mark)[1:] {
		digits, _, ok := strings.Cut(part, ">")
		digits = strings.TrimPrefix(digits, "!")
		if ok && ID(digits).number() != 0 && !slices.Contains(out, ID(digits)) {
			out = append(out, ID(digits))
		}
	}
	return out
}
