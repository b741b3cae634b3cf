package discord

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/bwmarrin/discordgo"

	"herald/platforms"
)

// roomsKept is how many channels and threads are remembered; more push others out.
const roomsKept = 20000

// place is a channel or thread as events need it.
type place struct {
	channel string // what requests go to
	parent  string // the channel a thread hangs in, else the channel itself
	guild   string // "" in a direct chat
	kind    discordgo.ChannelType
	name    string
	topic   string
	owner   string // who started a thread
	tags    []string
}

func (p place) dm() bool {
	return p.guild == "" && p.kind != discordgo.ChannelTypeGroupDM || p.kind == discordgo.ChannelTypeDM
}

func (p place) thread() bool { return isThread(p.kind) }

// forum reports whether messages there are posts, which are threads.
func (p place) forum() bool {
	return p.kind == discordgo.ChannelTypeGuildForum || p.kind == discordgo.ChannelTypeGuildMedia
}

func isThread(t discordgo.ChannelType) bool {
	return t == discordgo.ChannelTypeGuildPublicThread || t == discordgo.ChannelTypeGuildPrivateThread ||
		t == discordgo.ChannelTypeGuildNewsThread
}

func placeOf(c channel) place {
	p := place{channel: c.ID, parent: c.ID, guild: c.GuildID, kind: c.Type, name: c.Name, topic: c.Topic, owner: c.OwnerID}
	if p.thread() && snowflake(c.ParentID) != 0 {
		p.parent = c.ParentID
	}
	if p.dm() && len(c.Recipients) > 0 {
		p.name = nameOf(c.Recipients[0], nil)
	}
	for _, t := range c.Tags {
		if !t.Moderated {
			p.tags = append(p.tags, t.ID)
		}
	}
	return p
}

// server is a guild as far as it is remembered.
type server struct {
	name    string
	tier    int
	botRole map[string]bool // the roles that stand for the bot itself
}

// rooms remembers the channels, threads and guilds that the gateway has described.
type rooms struct {
	mu      sync.Mutex
	places  map[string]place
	servers map[string]server
	member  map[string]bool // the guilds that the bot is in; nil until a new session has told them
}

func newRooms() *rooms { return &rooms{places: map[string]place{}, servers: map[string]server{}} }

// begin takes in the guilds of a new session.
func (r *rooms) begin(guilds []guild) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.member = make(map[string]bool, len(guilds))
	for _, g := range guilds {
		r.member[g.ID] = true
	}
}

// left notes that the bot is no longer in a guild.
func (r *rooms) left(guild string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.member, guild)
}

func (r *rooms) put(p place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.places) >= roomsKept {
		for id := range r.places { // any one: it is asked for again when it is needed
			delete(r.places, id)
			break
		}
	}
	r.places[p.channel] = p
}

func (r *rooms) drop(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.places, id)
}

func (r *rooms) get(id string) (place, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.places[id]
	return p, ok
}

func (r *rooms) server(id string) (server, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.servers[id]
	return s, ok
}

// guildIDs returns the guilds that the bot is in; known is false when only Discord can tell.
func (r *rooms) guildIDs() (ids []string, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.member {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, r.member != nil
}

// learn notes what the gateway says about a guild.
func (r *rooms) learn(g *guild, bot string) server {
	for _, list := range [][]channel{g.Channels, g.Threads} {
		for _, c := range list {
			c.GuildID = g.ID
			r.put(placeOf(c))
		}
	}
	s := server{name: g.Name, tier: g.Tier, botRole: map[string]bool{}}
	for _, role := range g.Roles {
		if role.Tags != nil && role.Tags.BotID == bot {
			s.botRole[role.ID] = true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers[g.ID] = s
	if r.member != nil {
		r.member[g.ID] = true
	}
	return s
}

func (r *rooms) forget(guild string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.servers, guild)
}

// placeFor returns what is known of a channel, and asks Discord when nothing is. A channel that Discord does not
// show is taken for a plain one: its id alone is enough to answer there.
func (a *Adapter) placeFor(ctx context.Context, id, guild string) (place, error) {
	if p, ok := a.rooms.get(id); ok {
		return p, nil
	}
	if guild == "" { // events of guilds carry the guild
		p := place{channel: id, parent: id, kind: discordgo.ChannelTypeDM}
		a.rooms.put(p)
		return p, nil
	}
	p, err := a.look(ctx, id)
	if err != nil && statusOf(err) >= 400 && statusOf(err) < 500 && statusOf(err) != http.StatusTooManyRequests {
		return place{channel: id, parent: id, guild: guild}, nil
	}
	return p, err
}

// channelOf returns what is known of a channel, and asks Discord when nothing is.
func (a *Adapter) channelOf(ctx context.Context, id string) (place, error) {
	if p, ok := a.rooms.get(id); ok {
		return p, nil
	}
	return a.look(ctx, id)
}

// look asks Discord for a channel and remembers it.
func (a *Adapter) look(ctx context.Context, id string) (place, error) {
	var c channel
	err := a.do(ctx, call{method: http.MethodGet, route: "/channels/{channel}", major: id, path: "/channels/" + id}, &c)
	if err != nil {
		return place{}, err
	}
	p := placeOf(c)
	a.rooms.put(p)
	return p, nil
}

// serverFor returns what is known of a guild, and asks Discord when nothing is.
func (a *Adapter) serverFor(ctx context.Context, id string) (server, error) {
	if s, ok := a.rooms.server(id); ok || id == "" {
		return s, nil
	}
	var g guild
	if err := a.do(ctx, call{method: http.MethodGet, route: "/guilds/{guild}", major: id, path: "/guilds/" + id}, &g); err != nil {
		return server{}, err
	}
	return a.rooms.learn(&g, a.me().id), nil
}

// uploadLimit returns how many bytes one file may have in a place, by the boosts of its guild.
func (a *Adapter) uploadLimit(ctx context.Context, channel string) int64 {
	p, _ := a.channelOf(ctx, channel)
	if p.guild == "" {
		return freeUpload
	}
	s, err := a.serverFor(ctx, p.guild)
	if err != nil {
		return freeUpload
	}
	switch s.tier {
	case 1:
		return 25 << 20
	case 2:
		return 50 << 20
	case 3:
		return 100 << 20
	}
	return freeUpload
}

// addressOf returns where an answer to something in the place goes.
func (a *Adapter) addressOf(p place) platforms.Address {
	at := platforms.Address{Platform: Platform, Account: a.s.account.ID, Chat: platforms.ChatID(p.parent)}
	if p.channel != p.parent {
		at.Thread = platforms.ThreadID(p.channel)
	}
	return at
}

// envelope fills in what every event from a place has.
func (a *Adapter) envelope(id platforms.EventID, p place) platforms.Event {
	e := platforms.Event{ID: id, Address: a.addressOf(p), Scope: platforms.ScopeID(p.guild), ChatName: p.name, Topic: p.topic}
	switch {
	case p.dm():
		e.ChatType = platforms.DM
	case p.thread():
		e.ChatType, e.Topic = platforms.Thread, p.name
		if p.parent != p.channel {
			e.ParentChat = platforms.ChatID(p.parent)
		}
		if parent, ok := a.rooms.get(p.parent); ok {
			e.ChatName = parent.name
		}
	default:
		e.ChatType = platforms.Channel
	}
	return e
}

// nameOf returns what people call somebody in a room.
func nameOf(u *discordgo.User, m *member) string {
	switch {
	case m != nil && m.Nick != "":
		return m.Nick
	case u == nil:
		return ""
	case u.GlobalName != "":
		return u.GlobalName
	}
	return u.Username
}

func userOf(u *discordgo.User, m *member) platforms.User {
	if u == nil {
		return platforms.User{}
	}
	out := platforms.User{ID: platforms.UserID(u.ID), Name: nameOf(u, m), Username: u.Username, IsBot: u.Bot, Language: u.Locale}
	if m != nil {
		out.Roles = m.Roles
	}
	return out
}
