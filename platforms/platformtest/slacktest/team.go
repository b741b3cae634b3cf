package slacktest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// team is a workspace and what is in it.
type team struct {
	Team
	code     string // the refusal of its bot token
	users    []*User
	channels []*channel
	starts   []time.Time // of chat.startStream within a minute
	stops    []time.Time
}

// channel is a conversation and what is in it.
type channel struct {
	Channel
	team     *team
	messages []*message
	threads  map[string]*assistantThread
	created  int64
}

// AddTeam makes a workspace with the app installed and returns it with everything filled in.
func (s *Server) AddTeam(t Team) Team {
	s.mu.Lock()
	defer s.mu.Unlock()
	fill(&t.ID, s.id("T"))
	fill(&t.Name, "Herald Test")
	fill(&t.Domain, strings.ToLower(strings.ReplaceAll(t.Name, " ", "-")))
	fill(&t.BotUser, s.id("U"))
	fill(&t.BotID, s.id("B"))
	fill(&t.BotName, "herald")
	fill(&t.BotToken, fmt.Sprintf("xoxb-%d-%d-slacktest%d", 1000+s.ids, 2000+s.ids, s.ids))
	if t.Scopes == nil {
		t.Scopes = AllScopes()
	}
	made := &team{Team: t}
	made.users = []*User{{ID: t.BotUser, Name: t.BotName, RealName: t.BotName, IsBot: true, BotID: t.BotID, AppID: s.o.AppID, TZ: "America/Los_Angeles"}}
	s.teams = append(s.teams, made)
	return t
}

// SetScopes changes what the bot token of a workspace was granted, as a reinstallation does.
func (s *Server) SetScopes(team string, scopes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.team(team).Scopes = slices.Clone(scopes)
}

// AddUser makes a person or another app's bot and returns it with everything filled in. In all methods an
// empty team is the only one.
func (s *Server) AddUser(team string, u User) User {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.team(team)
	fill(&u.ID, s.id("U"))
	fill(&u.RealName, "Pat Doe")
	fill(&u.Name, strings.ToLower(strings.ReplaceAll(u.RealName, " ", ".")))
	fill(&u.TZ, "Europe/Berlin")
	if u.IsBot {
		fill(&u.BotID, s.id("B"))
		fill(&u.AppID, s.id("A"))
	}
	t.users = append(t.users, &u)
	return u
}

// AddChannel makes a conversation and returns it with everything filled in.
func (s *Server) AddChannel(team string, c Channel) Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addChannel(s.team(team), c).Channel
}

func (s *Server) addChannel(t *team, c Channel) *channel {
	fill(&c.Kind, Public)
	fill(&c.ID, s.id(map[ChannelKind]string{IM: "D", Private: "C", Public: "C", MPIM: "C"}[c.Kind]))
	if c.Kind != IM {
		fill(&c.Name, strings.ToLower(c.ID))
	}
	c.Members = slices.Clone(c.Members)
	made := &channel{Channel: c, team: t, threads: map[string]*assistantThread{}, created: time.Now().Unix()}
	t.channels = append(t.channels, made)
	return made
}

// OpenDM returns the direct message channel of the bot and a person, and makes it when there is none.
func (s *Server) OpenDM(team, user string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, _ := s.dm(s.team(team), user)
	return c.ID
}

func (s *Server) dm(t *team, user string) (c *channel, made bool) {
	for _, c := range t.channels {
		if c.Kind == IM && !c.WithoutBot && slices.Equal(c.Members, []string{user}) {
			return c, false
		}
	}
	return s.addChannel(t, Channel{Kind: IM, Members: []string{user}}), true
}

// Join makes a user a member, the bot too; events say so.
func (s *Server) Join(team, channel, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.team(team)
	c := t.channel(channel)
	if user == t.BotUser {
		c.WithoutBot = false
	} else if !slices.Contains(c.Members, user) {
		c.Members = append(c.Members, user)
	}
	s.write(c, &message{Message: Message{User: user, Subtype: "channel_join", Raw: "<@" + user + "> has joined the channel"}})
	s.event(c.team, c, "member_joined_channel", object{
		"type": "member_joined_channel", "user": user, "channel": c.ID, "channel_type": c.letter(), "team": t.ID, "event_ts": s.ts(),
	})
}

// Leave ends a membership; events say so.
func (s *Server) Leave(team, channel, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.team(team)
	c := t.channel(channel)
	c.Members = slices.DeleteFunc(c.Members, func(m string) bool { return m == user })
	if user == t.BotUser {
		kind := map[ChannelKind]string{Private: "group_left"}[c.Kind]
		kind = cmp.Or(kind, "channel_left")
		s.event(t, c, kind, object{"type": kind, "channel": c.ID, "actor_id": user, "event_ts": s.ts()})
		c.WithoutBot = true
		return
	}
	s.event(t, c, "member_left_channel", object{
		"type": "member_left_channel", "user": user, "channel": c.ID, "channel_type": c.letter(), "team": t.ID, "event_ts": s.ts(),
	})
}

// SetChannel changes a channel by f: archive it, rename it, refuse posts.
func (s *Server) SetChannel(team, channel string, f func(*Channel)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.team(team).channel(channel).Channel)
}

// team finds a workspace for people's acts. A wrong id is a mistake of the test.
func (s *Server) team(id string) *team {
	if id == "" && len(s.teams) == 1 {
		return s.teams[0]
	}
	for _, t := range s.teams {
		if t.ID == id {
			return t
		}
	}
	panic(fmt.Sprintf("slacktest: no workspace %q among %d", id, len(s.teams)))
}

// channel finds a channel for people's acts.
func (t *team) channel(id string) *channel {
	c := t.find(id)
	if c == nil {
		panic(fmt.Sprintf("slacktest: workspace %s has no channel %q", t.ID, id))
	}
	return c
}

func (t *team) find(id string) *channel {
	for _, c := range t.channels {
		if c.ID == id {
			return c
		}
	}
	return nil
}

func (t *team) user(id string) *User {
	for _, u := range t.users {
		if u.ID == id {
			return u
		}
	}
	return nil
}

func (t *team) granted(scope string) bool { return slices.Contains(t.Scopes, scope) }

// member says whether a user is in the channel.
func (c *channel) member(user string) bool {
	if user == c.team.BotUser {
		return !c.WithoutBot
	}
	return slices.Contains(c.Members, user)
}

// person returns the user who acts: the one who is named, or the first member that is no bot.
func (c *channel) person(user string) *User {
	for _, id := range c.Members {
		if u := c.team.user(id); u != nil && user == "" && !u.IsBot {
			return u
		}
	}
	u := c.team.user(user)
	if u == nil {
		panic(fmt.Sprintf("slacktest: no user %q for channel %s", user, c.ID))
	}
	return u
}

// letter is the channel_type of membership events.
func (c *channel) letter() string {
	if c.Kind == Private {
		return "G"
	}
	return c.ID[:1]
}

// historyScope is what reading and hearing the channel needs, readScope what knowing of it needs.
func (c *channel) historyScope() string { return scopeWord[c.Kind] + ":history" }

func (c *channel) readScope() string { return scopeWord[c.Kind] + ":read" }

var scopeWord = map[ChannelKind]string{Public: "channels", Private: "groups", IM: "im", MPIM: "mpim"}
