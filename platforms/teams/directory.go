package teams

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"herald/platforms"
)

// teamInfo is what the connector says of a team.
type teamInfo struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Group string `json:"aadGroupId"`
}

// general is the name of a team's first channel, whose name Teams leaves out.
const general = "General"

// Rooms lists the conversations that the bot was seen in, and all channels of the teams among them.
func (a *Adapter) Rooms(ctx context.Context) ([]platforms.Room, error) {
	known, ids, err := a.rooms.list(ctx)
	if err != nil {
		return nil, &platforms.SendError{Kind: platforms.Transient, Err: err}
	}
	var out []platforms.Room
	listed := map[string]bool{} // channels and teams that are done
	for _, chat := range ids {
		if r := known[chat]; r.Type == channel && r.Team != "" && !listed[r.Team] {
			listed[r.Team] = true
			channels, err := a.channels(ctx, r)
			if err != nil {
				a.s.Log.Warn().Err(err).Str("team", r.Team).Msg("the channels of a team can't be listed")
				continue
			}
			for _, one := range channels {
				listed[string(one.Address.Chat)] = true
			}
			out = append(out, channels...)
		}
	}
	for _, chat := range ids {
		if r := known[chat]; !listed[chat] && (r.Type != channel || r.Name != "") {
			out = append(out, a.roomFor(chat, r))
		}
	}
	return out, nil
}

func (a *Adapter) roomFor(chat string, r room) platforms.Room {
	one := platforms.Room{Address: a.addressOf(chat), Name: r.Name, Scope: platforms.ScopeID(r.Tenant), Parent: r.TeamName}
	switch r.Type {
	case personal:
		one.Type, one.User, one.Name = platforms.DM, platforms.UserID(r.User), r.UserName
	case channel:
		one.Type = platforms.Channel
	default:
		one.Type = platforms.Group
	}
	return one
}

func (a *Adapter) addressOf(chat string) platforms.Address {
	return platforms.Address{Platform: Platform, Account: a.s.account.ID, Chat: platforms.ChatID(chat)}
}

// channels lists a team's channels.
func (a *Adapter) channels(ctx context.Context, r room) ([]platforms.Room, error) {
	team, err := a.team(ctx, r)
	if err != nil {
		return nil, err
	}
	var got struct {
		Conversations []struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"conversations"`
	}
	if err := a.query(ctx, topicTeams, request{method: http.MethodGet, url: a.teamURL(r) + "/conversations"}, &got); err != nil {
		return nil, err
	}
	var out []platforms.Room
	for _, c := range got.Conversations {
		if !chatPattern.MatchString(c.ID) {
			continue
		}
		if c.Name == "" {
			c.Name = general
		}
		out = append(out, a.roomFor(c.ID, room{Type: channel, Name: c.Name, TeamName: team.Name, Tenant: r.Tenant}))
	}
	return out, nil
}

func (a *Adapter) teamURL(r room) string {
	service, ok := a.s.serves(r.ServiceURL)
	if !ok {
		service = a.s.ServiceURL
	}
	return service + "v3/teams/" + url.PathEscape(r.Team)
}

// team asks for a team's name and group.
func (a *Adapter) team(ctx context.Context, r room) (teamInfo, error) {
	var team teamInfo
	err := a.query(ctx, topicTeams, request{method: http.MethodGet, url: a.teamURL(r)}, &team)
	return team, err
}

// Open finds or makes the personal chat with a person, by the directory's id or by Teams' own ("29:…"). The app must be
// installed for the person.
func (a *Adapter) Open(ctx context.Context, user platforms.UserID) (platforms.Address, error) {
	id := string(user)
	if !chatPattern.MatchString(id) {
		return platforms.Address{}, platforms.Failure(platforms.BadRequest, "user %q is no Teams user id: want the Entra object id", user)
	}
	known, ids, err := a.rooms.list(ctx)
	if err != nil {
		return platforms.Address{}, &platforms.SendError{Kind: platforms.Transient, Err: err}
	}
	tenant := a.s.TenantID
	service := a.s.ServiceURL
	for _, chat := range ids {
		r := known[chat]
		if r.Type == personal && strings.EqualFold(r.User, id) {
			return a.addressOf(chat), nil
		}
		if r.Tenant != "" {
			tenant = r.Tenant
		}
		if s, ok := a.s.serves(r.ServiceURL); ok {
			service = s // people of a tenant are served in the same region
		}
	}
	body := struct {
		Bot         outParty            `json:"bot"`
		Members     []outParty          `json:"members"`
		TenantID    string              `json:"tenantId"`
		IsGroup     bool                `json:"isGroup"`
		ChannelData map[string]outParty `json:"channelData"`
	}{outParty{"28:" + a.s.ClientID}, []outParty{{id}}, tenant, false, map[string]outParty{"tenant": {tenant}}}
	var got created
	if err := a.query(ctx, topicCreate, request{method: http.MethodPost, url: service + "v3/conversations", body: body}, &got); err != nil {
		return platforms.Address{}, err
	}
	if !chatPattern.MatchString(got.ID) {
		return platforms.Address{}, &platforms.SendError{Kind: platforms.Transient, Err: errGarbled}
	}
	if err := a.rooms.note(ctx, got.ID, room{ServiceURL: service, Type: personal, Tenant: tenant, User: plainUser(id)}); err != nil {
		a.s.Log.Warn().Err(err).Msg("a conversation can't be noted")
	}
	return a.addressOf(got.ID), nil
}

// plainUser returns an id as Event.Sender has it: those of the directory in lower case.
func plainUser(id string) string {
	if guidPattern.MatchString(id) {
		return strings.ToLower(id)
	}
	return id
}
