package slack

import (
	"context"
	"strings"
	"time"

	api "github.com/slack-go/slack"

	"herald/platforms"
	"herald/platforms/wire"
)

const (
	namesKept = 5000
	nameFor   = time.Hour
	roomFor   = 10 * time.Minute
	// failedFor is how long a name that could not be had is not asked for again.
	failedFor = 30 * time.Second
)

// person is what is known of a user.
type person struct {
	name, handle string
	bot          bool
	until        time.Time
}

// room is what is known of a conversation.
type room struct {
	kind        platforms.ChatType
	name, topic string
	until       time.Time
}

// names remembers people and conversations. What is not known in time goes by its id.
type names struct {
	a      *Adapter
	people *wire.Recent[string, person]
	rooms  *wire.Recent[string, room]
}

func newNames(a *Adapter) *names {
	return &names{a: a, people: wire.NewRecent[string, person](namesKept), rooms: wire.NewRecent[string, room](namesKept)}
}

// mentions reports whether m itself names the user.
func (n *names) mentions(m wireMessage, user string) bool {
	return m.Type == "app_mention" || user != "" && (strings.Contains(m.Text, "<@"+user+">") || strings.Contains(m.Text, "<@"+user+"|") ||
		strings.Contains(string(m.Blocks), `"user_id":"`+user+`"`))
}

// user returns a person, asking Slack when they are not known.
func (n *names) user(ctx context.Context, id string) person {
	now := n.a.s.Clock.Now()
	p, ok := n.people.Get(id)
	if ok && now.Before(p.until) {
		return p
	}
	var u *api.User
	err := n.a.do(ctx, "users.info", "", func(ctx context.Context) (err error) {
		u, err = n.a.api.GetUserInfoContext(ctx, id)
		return err
	})
	if err != nil || u == nil {
		if !ok {
			p.name = id
		}
		p.until = now.Add(failedFor)
	} else {
		p = personOf(*u)
		p.until = now.Add(nameFor)
	}
	n.people.Put(id, p)
	return p
}

func personOf(u api.User) person {
	return person{name: firstOf(u.Profile.DisplayName, u.Profile.RealName, u.RealName, u.Name, u.ID), handle: u.Name, bot: u.IsBot}
}

// room returns a conversation. kind is Slack's channel_type where the event tells it.
func (a *Adapter) room(ctx context.Context, id, kind string) room {
	n := a.names
	now := a.s.Clock.Now()
	r, ok := n.rooms.Get(id)
	if ok && now.Before(r.until) {
		return r
	}
	if kind == "im" || kind == "" && strings.HasPrefix(id, "D") {
		return room{kind: platforms.DM}
	}
	var c *api.Channel
	err := a.do(ctx, "conversations.info", "", func(ctx context.Context) (err error) {
		c, err = a.api.GetConversationInfoContext(ctx, &api.GetConversationInfoInput{ChannelID: id})
		return err
	})
	if err != nil || c == nil {
		if !ok {
			r = room{kind: platforms.Channel}
		}
		r.until = now.Add(failedFor)
	} else {
		r = roomOf(*c)
		r.until = now.Add(roomFor)
	}
	if kind == "mpim" {
		r.kind = platforms.Group
	}
	n.rooms.Put(id, r)
	return r
}

func roomOf(c api.Channel) room {
	r := room{kind: platforms.Channel, name: c.Name, topic: c.Topic.Value}
	switch {
	case c.IsIM:
		r.kind, r.name = platforms.DM, ""
	case c.IsMpIM:
		r.kind = platforms.Group
		if c.Purpose.Value != "" {
			r.name = c.Purpose.Value
		}
	}
	return r
}

// in returns the names as a resolver that asks within ctx.
func (n *names) in(ctx context.Context) resolver { return asking{n.a, ctx} }

type asking struct {
	a   *Adapter
	ctx context.Context
}

func (r asking) userName(id string) string {
	id, _, _ = strings.Cut(clearText(id), "|")
	if id == r.a.self().user {
		return ownMark
	}
	if id == "" || r.ctx.Err() != nil {
		return "@" + id
	}
	return "@" + r.a.names.user(r.ctx, id).name
}

func (r asking) channelName(id string) string {
	id = clearText(id)
	if id == "" || r.ctx.Err() != nil {
		return "#" + id
	}
	if room := r.a.room(r.ctx, id, ""); room.name != "" {
		return "#" + room.name
	}
	return "#" + id
}
