package discordtest

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

type wireUser struct {
	ID            ID      `json:"id"`
	Username      string  `json:"username"`
	Discriminator string  `json:"discriminator"`
	GlobalName    *string `json:"global_name"`
	Avatar        *string `json:"avatar"`
	Bot           bool    `json:"bot,omitempty"`
	Flags         int     `json:"public_flags"`
}

func wireUserOf(u *user) wireUser {
	w := wireUser{ID: u.ID, Username: u.Username, Discriminator: "0", Bot: u.Bot}
	if u.Bot {
		w.Discriminator = "0001"
	}
	if u.GlobalName != "" {
		w.GlobalName = &u.GlobalName
	}
	return w
}

type wireMember struct {
	User        *wireUser `json:"user,omitempty"`
	Nick        *string   `json:"nick"`
	Avatar      *string   `json:"avatar"`
	Roles       []ID      `json:"roles"`
	Joined      string    `json:"joined_at"`
	Premium     *string   `json:"premium_since"`
	Deaf        bool      `json:"deaf"`
	Mute        bool      `json:"mute"`
	Flags       int       `json:"flags"`
	Pending     bool      `json:"pending"`
	Timeout     *string   `json:"communication_disabled_until"`
	Permissions string    `json:"permissions,omitempty"`
}

func (d *Discord) wireMember(m *member) wireMember {
	u := wireUserOf(m.user)
	w := wireMember{User: &u, Roles: append([]ID{}, m.roles...), Joined: stamp(m.joined)}
	if m.nick != "" {
		w.Nick = &m.nick
	}
	return w
}

type wireRole struct {
	ID          ID      `json:"id"`
	Name        string  `json:"name"`
	Color       int     `json:"color"`
	Colors      any     `json:"colors"`
	Hoist       bool    `json:"hoist"`
	Icon        *string `json:"icon"`
	Emoji       *string `json:"unicode_emoji"`
	Position    int     `json:"position"`
	Permissions string  `json:"permissions"`
	Managed     bool    `json:"managed"`
	Mentionable bool    `json:"mentionable"`
	Flags       int     `json:"flags"`
	Tags        any     `json:"tags,omitempty"`
}

func wireRoleOf(g *guild, r *role) wireRole {
	w := wireRole{
		ID: r.id, Name: r.name, Managed: r.managed, Position: slices.Index(g.roles, r), Permissions: r.permissions.String(),
		Colors: map[string]any{"primary_color": 0, "secondary_color": nil, "tertiary_color": nil},
	}
	if r.bot != "" {
		w.Tags = map[string]any{"bot_id": r.bot}
	}
	return w
}

// String is the decimal form that the API uses.
func (p Permissions) String() string { return strconv.FormatUint(uint64(p&(1<<53-1)), 10) }

type wireUnavailable struct {
	ID          ID   `json:"id"`
	Unavailable bool `json:"unavailable,omitempty"`
}

type wireGuild struct {
	ID            ID         `json:"id"`
	Name          string     `json:"name"`
	Icon          *string    `json:"icon"`
	Splash        *string    `json:"splash"`
	Banner        *string    `json:"banner"`
	Owner         ID         `json:"owner_id"`
	Region        string     `json:"region"`
	AFK           *string    `json:"afk_channel_id"`
	AFKTimeout    int        `json:"afk_timeout"`
	Verification  int        `json:"verification_level"`
	Notifications int        `json:"default_message_notifications"`
	Explicit      int        `json:"explicit_content_filter"`
	Roles         []wireRole `json:"roles"`
	Emojis        []any      `json:"emojis"`
	Stickers      []any      `json:"stickers"`
	Features      []string   `json:"features"`
	MFA           int        `json:"mfa_level"`
	System        *string    `json:"system_channel_id"`
	SystemFlags   int        `json:"system_channel_flags"`
	Rules         *string    `json:"rules_channel_id"`
	Vanity        *string    `json:"vanity_url_code"`
	Description   *string    `json:"description"`
	Tier          int        `json:"premium_tier"`
	Locale        string     `json:"preferred_locale"`
	NSFW          int        `json:"nsfw_level"`
	Members       int        `json:"approximate_member_count,omitempty"`
	ProgressBar   bool       `json:"premium_progress_bar_enabled"`
}

func (d *Discord) wireGuild(g *guild) wireGuild {
	w := wireGuild{
		ID: g.id, Name: g.name, Owner: g.owner, Region: "deprecated", AFKTimeout: 300, Tier: g.tier, Locale: "en-US",
		Emojis: []any{}, Stickers: []any{}, Features: []string{}, Roles: []wireRole{},
	}
	for _, r := range g.roles {
		w.Roles = append(w.Roles, wireRoleOf(g, r))
	}
	return w
}

type wireGuildCreate struct {
	wireGuild
	Joined     string         `json:"joined_at"`
	Large      bool           `json:"large"`
	Away       bool           `json:"unavailable"`
	Count      int            `json:"member_count"`
	Voice      []any          `json:"voice_states"`
	People     []wireMember   `json:"members"`
	Channels   []*wireChannel `json:"channels"`
	Threads    []*wireChannel `json:"threads"`
	Presences  []any          `json:"presences"`
	Stages     []any          `json:"stage_instances"`
	Events     []any          `json:"guild_scheduled_events"`
	Soundboard []any          `json:"soundboard_sounds"`
}

// wireGuildCreate is a guild as a session with those intents sees it.
func (d *Discord) wireGuildCreate(g *guild, intents Intents) wireGuildCreate {
	w := wireGuildCreate{
		wireGuild: d.wireGuild(g), Count: len(g.members), Voice: []any{}, People: []wireMember{}, Channels: []*wireChannel{},
		Threads: []*wireChannel{}, Presences: []any{}, Stages: []any{}, Events: []any{}, Soundboard: []any{},
	}
	for _, m := range g.members {
		if m.user == d.bot {
			w.Joined = stamp(m.joined)
		}
		if m.user == d.bot || intents&IntentMembers != 0 {
			w.People = append(w.People, d.wireMember(m))
		}
	}
	for _, id := range g.order {
		if c := d.channels[id]; c != nil {
			// Channels that the bot may not view are in the list too, as the service has it.
			w.Channels = append(w.Channels, d.wireChannel(c, false))
		}
	}
	w.Threads = d.activeThreads(g)
	return w
}

// activeThreads lists the threads of a guild that are open and that the bot sees, newest first.
func (d *Discord) activeThreads(g *guild) []*wireChannel {
	out := []*wireChannel{}
	for _, c := range d.channels {
		if c.guild == g && c.isThread() && !c.Archived && d.sees(d.bot.ID, c) {
			out = append(out, d.wireChannel(c, false))
		}
	}
	slices.SortFunc(out, func(a, b *wireChannel) int { return compareIDs(b.ID, a.ID) })
	return out
}

func compareIDs(a, b ID) int {
	switch x, y := a.number(), b.number(); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

type wireOverwrite struct {
	ID    ID     `json:"id"`
	Type  int    `json:"type"`
	Allow string `json:"allow"`
	Deny  string `json:"deny"`
}

type wireThreadMeta struct {
	Archived  bool   `json:"archived"`
	At        string `json:"archive_timestamp"`
	AutoClose int    `json:"auto_archive_duration"`
	Locked    bool   `json:"locked"`
	Invitable *bool  `json:"invitable,omitempty"`
	Created   string `json:"create_timestamp"`
}

type wireThreadMember struct {
	ID     ID          `json:"id,omitempty"`
	User   ID          `json:"user_id,omitempty"`
	Joined string      `json:"join_timestamp"`
	Flags  int         `json:"flags"`
	Member *wireMember `json:"member,omitempty"`
}

type wireThreadGone struct {
	ID     ID          `json:"id"`
	Guild  ID          `json:"guild_id"`
	Parent ID          `json:"parent_id"`
	Type   ChannelType `json:"type"`
}

type wireChannel struct {
	ID          ID                `json:"id"`
	Type        ChannelType       `json:"type"`
	Guild       ID                `json:"guild_id,omitempty"`
	Name        string            `json:"name,omitempty"`
	Topic       *string           `json:"topic,omitempty"`
	Position    *int              `json:"position,omitempty"`
	Parent      *ID               `json:"parent_id,omitempty"`
	Last        *ID               `json:"last_message_id"`
	NSFW        bool              `json:"nsfw"`
	Slow        int               `json:"rate_limit_per_user"`
	Overwrites  []wireOverwrite   `json:"permission_overwrites,omitempty"`
	Recipients  []wireUser        `json:"recipients,omitempty"`
	Owner       ID                `json:"owner_id,omitempty"`
	Thread      *wireThreadMeta   `json:"thread_metadata,omitempty"`
	Member      *wireThreadMember `json:"member,omitempty"`
	Count       *int              `json:"message_count,omitempty"`
	Members     *int              `json:"member_count,omitempty"`
	Sent        *int              `json:"total_message_sent,omitempty"`
	Flags       int               `json:"flags"`
	Tags        []ID              `json:"applied_tags,omitempty"`
	ForumTags   []any             `json:"available_tags,omitempty"`
	Permissions string            `json:"permissions,omitempty"`
	New         bool              `json:"newly_created,omitempty"`
	Message     *wireMessage      `json:"message,omitempty"` // of a new forum post
}

// wireChannel is a channel as the bot sees it, with its guild's id where withGuild.
func (d *Discord) wireChannel(c *channel, withGuild bool) *wireChannel {
	w := &wireChannel{ID: c.ID, Type: c.Type, Name: c.Name, Slow: c.slow}
	if c.last != "" {
		w.Last = &c.last
	}
	if withGuild || c.isThread() {
		w.Guild = c.Guild
	}
	switch {
	case c.guild == nil:
		for _, id := range c.Members {
			w.Recipients = append(w.Recipients, wireUserOf(d.users[id]))
		}
	case c.isThread():
		d.threadParts(w, c)
	default:
		position := slices.Index(c.guild.order, c.ID)
		w.Position, w.Overwrites = &position, []wireOverwrite{}
		if c.Parent != "" {
			w.Parent = &c.Parent
		}
		if c.Topic != "" {
			w.Topic = &c.Topic
		}
		for _, o := range c.overwrites {
			kind := 1
			if o.role {
				kind = 0
			}
			w.Overwrites = append(w.Overwrites, wireOverwrite{o.who, kind, o.allow.String(), o.deny.String()})
		}
	}
	return w
}

func (d *Discord) threadParts(w *wireChannel, c *channel) {
	count, members := 0, len(c.Members)
	for _, id := range c.order {
		if m := c.messages[id]; m != nil && m.typ != 21 && m.seenBy == "" && id != c.ID {
			count++
		}
	}
	w.Owner, w.Parent, w.Count, w.Members, w.Sent = c.Owner, &c.Parent, &count, &members, &count
	at := c.archivedAt
	if at.IsZero() {
		at = c.ID.Time()
	}
	w.Thread = &wireThreadMeta{Archived: c.Archived, At: stamp(at), AutoClose: c.autoClose, Locked: c.Locked, Created: stamp(c.ID.Time())}
	if c.Type == PrivateThread {
		yes := true
		w.Thread.Invitable = &yes
	}
	if slices.Contains(c.Members, d.bot.ID) {
		w.Member = &wireThreadMember{ID: c.ID, User: d.bot.ID, Joined: stamp(c.ID.Time())}
	}
}

type wireFile struct {
	ID          ID      `json:"id"`
	Name        string  `json:"filename"`
	Size        int     `json:"size"`
	URL         string  `json:"url"`
	Proxy       string  `json:"proxy_url"`
	Type        string  `json:"content_type,omitempty"`
	Description string  `json:"description,omitempty"`
	Ephemeral   bool    `json:"ephemeral,omitempty"`
	Duration    float64 `json:"duration_secs,omitempty"`
	Waveform    string  `json:"waveform,omitempty"`
}

type wireReference struct {
	Type    int `json:"type"`
	Message ID  `json:"message_id,omitempty"`
	Channel ID  `json:"channel_id"`
	Guild   ID  `json:"guild_id,omitempty"`
}

type wireEmoji struct {
	ID   *ID    `json:"id"`
	Name string `json:"name"`
}

type wireReaction struct {
	Emoji  wireEmoji      `json:"emoji"`
	Count  int            `json:"count"`
	Detail map[string]int `json:"count_details"`
	Colors []string       `json:"burst_colors"`
	BurstM bool           `json:"me_burst"`
	Burst  int            `json:"burst_count"`
	Me     bool           `json:"me"`
}

type wireMention struct {
	wireUser
	Member *wireMember `json:"member,omitempty"`
}

type wireInteractionMeta struct {
	ID       ID                `json:"id"`
	Type     int               `json:"type"`
	Name     string            `json:"name,omitempty"`
	User     wireUser          `json:"user"`
	Owners   map[string]string `json:"authorizing_integration_owners,omitempty"`
	Message  ID                `json:"interacted_message_id,omitempty"`
	Original ID                `json:"original_response_message_id,omitempty"`
}

type wireSnapshot struct {
	Message struct {
		Type        int             `json:"type"`
		Content     string          `json:"content"`
		Embeds      json.RawMessage `json:"embeds"`
		Attachments []wireFile      `json:"attachments"`
		Timestamp   string          `json:"timestamp"`
		Edited      *string         `json:"edited_timestamp"`
		Flags       int             `json:"flags"`
		Mentions    []wireUser      `json:"mentions"`
		Roles       []ID            `json:"mention_roles"`
		Components  json.RawMessage `json:"components"`
	} `json:"message"`
}

type wireMessage struct {
	Type        int                  `json:"type"`
	Content     string               `json:"content"`
	Mentions    []wireMention        `json:"mentions"`
	Roles       []ID                 `json:"mention_roles"`
	Attachments []wireFile           `json:"attachments"`
	Embeds      json.RawMessage      `json:"embeds"`
	Timestamp   string               `json:"timestamp"`
	Edited      *string              `json:"edited_timestamp"`
	Flags       int                  `json:"flags"`
	Components  json.RawMessage      `json:"components"`
	ID          ID                   `json:"id"`
	Channel     ID                   `json:"channel_id"`
	Author      wireUser             `json:"author"`
	Pinned      bool                 `json:"pinned"`
	Everyone    bool                 `json:"mention_everyone"`
	TTS         bool                 `json:"tts"`
	Nonce       json.RawMessage      `json:"nonce,omitempty"`
	Reference   *wireReference       `json:"message_reference,omitempty"`
	Referenced  json.RawMessage      `json:"referenced_message,omitempty"`
	Snapshots   []wireSnapshot       `json:"message_snapshots,omitempty"`
	Reactions   []wireReaction       `json:"reactions,omitempty"`
	Webhook     ID                   `json:"webhook_id,omitempty"`
	Application ID                   `json:"application_id,omitempty"`
	Interaction *wireInteractionMeta `json:"interaction_metadata,omitempty"`
	Legacy      *wireInteractionMeta `json:"interaction,omitempty"`
	Thread      *wireChannel         `json:"thread,omitempty"`
	Position    *int                 `json:"position,omitempty"`
	Guild       ID                   `json:"guild_id,omitempty"`
	Member      *wireMember          `json:"member,omitempty"`
	ChannelType *ChannelType         `json:"channel_type,omitempty"`
}

// stampOrNil is null for a zero time.
func stampOrNil(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}
