package slacktest

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// visible finds the channel of a call for reading. The scopes are asked of the kind of channel.
func (s *Server) visible(t *team, c *call, scope func(*channel) string) (*channel, error) {
	ch := t.find(c.channel())
	if ch == nil || ch.WithoutBot && ch.Kind != Public {
		return nil, refuse("channel_not_found")
	}
	return ch, t.need(scope(ch))
}

func (s *Server) conversationsInfo(t *team, c *call) (object, error) {
	ch, err := s.visible(t, c, (*channel).readScope)
	if err != nil {
		return nil, err
	}
	out := s.wireChannel(ch)
	if c.bool("include_num_members") {
		out["num_members"] = len(ch.everybody())
	}
	return object{"channel": out}, nil
}

// everybody is all members, the bot included.
func (c *channel) everybody() []string {
	all := slices.Clone(c.Members)
	if !c.WithoutBot {
		all = append(all, c.team.BotUser)
	}
	return all
}

func (s *Server) wireChannel(c *channel) object {
	if c.Kind == IM {
		return object{"id": c.ID, "created": c.created, "is_archived": c.Archived, "is_im": true, "is_org_shared": false, "user": c.Members[0], "is_user_deleted": false, "priority": 0, "context_team_id": c.team.ID, "is_open": true}
	}
	return object{
		"id": c.ID, "name": c.Name, "name_normalized": c.Name, "is_channel": c.Kind == Public, "is_group": c.Kind == Private, "is_im": false, "is_mpim": c.Kind == MPIM,
		"is_private": c.Kind != Public, "created": c.created, "is_archived": c.Archived, "is_general": false, "is_shared": false, "is_ext_shared": false, "is_org_shared": false,
		"context_team_id": c.team.ID, "is_member": !c.WithoutBot, "creator": "U0CREATOR",
		"topic": object{"value": c.Topic, "creator": "", "last_set": 0}, "purpose": object{"value": c.Purpose, "creator": "", "last_set": 0},
	}
}

// listed returns the channels of a listing call.
func (s *Server) listed(t *team, c *call, which func(*channel) bool) (object, error) {
	kinds := c.get("types")
	fill(&kinds, "public_channel")
	names := map[string]ChannelKind{"public_channel": Public, "private_channel": Private, "im": IM, "mpim": MPIM}
	var wanted []ChannelKind
	for name := range strings.SplitSeq(kinds, ",") {
		kind, ok := names[strings.TrimSpace(name)]
		if !ok {
			return nil, refuse("invalid_types")
		}
		if err := t.need(scopeWord[kind] + ":read"); err != nil {
			return nil, err
		}
		wanted = append(wanted, kind)
	}
	var all []object
	for _, ch := range t.channels {
		if slices.Contains(wanted, ch.Kind) && which(ch) && !(ch.Archived && c.bool("exclude_archived")) {
			all = append(all, s.wireChannel(ch))
		}
	}
	page, next, err := paged(c, all, 100)
	return object{"channels": page, "response_metadata": object{"next_cursor": next}}, err
}

// paged cuts a page out of a list by limit and cursor.
func paged[T any](c *call, all []T, otherwise int) (page []T, next string, err error) {
	from := 0
	if cursor := c.get("cursor"); cursor != "" {
		raw, err := base64.StdEncoding.DecodeString(cursor)
		n, bad := strconv.Atoi(strings.TrimPrefix(string(raw), "next:"))
		if err != nil || bad != nil || n < 0 || n > len(all) {
			return nil, "", refuse("invalid_cursor")
		}
		from = n
	}
	limit := c.int("limit", otherwise)
	if limit <= 0 || limit > 1000 {
		limit = otherwise
	}
	to := min(len(all), from+limit)
	if to < len(all) {
		next = base64.StdEncoding.EncodeToString([]byte("next:" + strconv.Itoa(to)))
	}
	return append([]T{}, all[from:to]...), next, nil
}

func (s *Server) usersConversations(t *team, c *call) (object, error) {
	who := c.get("user")
	fill(&who, t.BotUser)
	return s.listed(t, c, func(ch *channel) bool { return ch.member(who) })
}

func (s *Server) conversationsOpen(t *team, c *call) (object, error) {
	if id := c.get("channel"); id != "" {
		if ch := t.find(id); ch != nil && (ch.Kind == IM || ch.Kind == MPIM) {
			return object{"no_op": true, "already_open": true, "channel": s.opened(ch, c)}, nil
		}
		return nil, refuse("channel_not_found")
	}
	if c.get("users") == "" {
		return nil, refuse("users_list_not_supplied")
	}
	users := strings.Split(c.get("users"), ",")
	for _, id := range users {
		switch u := t.user(id); {
		case u == nil:
			return nil, refuse("user_not_found")
		case u.Deleted:
			return nil, refuse("user_disabled")
		case id == t.BotUser:
			return nil, refuse("cannot_dm_bot")
		}
	}
	if len(users) == 1 {
		if err := t.need("im:write"); err != nil {
			return nil, err
		}
		ch, made := s.dm(t, users[0])
		return object{"no_op": !made, "already_open": !made, "channel": s.opened(ch, c)}, nil
	}
	if err := t.need("mpim:write"); err != nil {
		return nil, err
	}
	slices.Sort(users)
	for _, ch := range t.channels {
		if ch.Kind == MPIM && slices.Equal(slices.Sorted(slices.Values(ch.Members)), users) {
			return object{"no_op": true, "already_open": true, "channel": s.opened(ch, c)}, nil
		}
	}
	return object{"channel": s.opened(s.addChannel(t, Channel{Kind: MPIM, Members: users}), c)}, nil
}

func (s *Server) opened(ch *channel, c *call) object {
	if c.bool("return_im") {
		return s.wireChannel(ch)
	}
	return object{"id": ch.ID}
}

// between says whether a message is in the span that a call asks for.
func between(c *call, ts string) bool {
	oldest, latest, inclusive := c.get("oldest"), c.get("latest"), c.bool("inclusive")
	after := oldest == "" || oldest == "0" || ts > oldest || inclusive && ts == oldest
	before := latest == "" || ts < latest || inclusive && ts == latest
	return after && before
}

func (s *Server) conversationsHistory(t *team, c *call) (object, error) {
	ch, err := s.visible(t, c, (*channel).historyScope)
	switch {
	case err != nil:
		return nil, err
	case ch.WithoutBot:
		return nil, refuse("not_in_channel")
	}
	var all []object
	for _, m := range slices.Backward(ch.messages) {
		if m.Ephemeral == "" && (m.Thread == "" || m.Broadcast) && between(c, m.TS) {
			all = append(all, s.history(ch, m, c.bool("include_all_metadata")))
		}
	}
	page, next, err := paged(c, all, 100)
	return object{"messages": page, "has_more": next != "", "pin_count": 0, "response_metadata": object{"next_cursor": next}}, err
}

func (s *Server) conversationsReplies(t *team, c *call) (object, error) {
	ch, err := s.visible(t, c, (*channel).historyScope)
	switch {
	case err != nil:
		return nil, err
	case ch.WithoutBot:
		return nil, refuse("not_in_channel")
	case c.get("ts") == "":
		return nil, missing("ts")
	}
	root := ch.message(c.get("ts"))
	if root == nil || root.Ephemeral != "" {
		return nil, refuse("thread_not_found")
	}
	if up := ch.message(root.Thread); root.Thread != "" && up != nil {
		// Asked with a reply's ts, Slack answers that reply alone.
		return object{"messages": []object{s.history(ch, root, c.bool("include_all_metadata"))}, "has_more": false, "response_metadata": object{"next_cursor": ""}}, nil
	}
	all := []object{s.history(ch, root, c.bool("include_all_metadata"))} // always there, whatever the span
	for _, m := range ch.replies(root.TS) {
		if between(c, m.TS) {
			all = append(all, s.history(ch, m, c.bool("include_all_metadata")))
		}
	}
	page, next, err := paged(c, all, 1000)
	return object{"messages": page, "has_more": next != "", "response_metadata": object{"next_cursor": next}}, err
}

func (s *Server) usersInfo(t *team, c *call) (object, error) {
	u := t.user(c.get("user"))
	if u == nil {
		return nil, refuse("user_not_found")
	}
	return object{"user": wireUser(t, u)}, nil
}

func (s *Server) usersList(t *team, c *call) (object, error) {
	var all []object
	for _, u := range t.users {
		all = append(all, wireUser(t, u))
	}
	page, next, err := paged(c, all, 1000)
	return object{"members": page, "cache_ts": 1700000000, "response_metadata": object{"next_cursor": next}}, err
}

func wireUser(t *team, u *User) object {
	profile := object{
		"real_name": u.RealName, "real_name_normalized": u.RealName, "display_name": u.DisplayName, "display_name_normalized": u.DisplayName, "team": t.ID,
		"avatar_hash": "slacktest", "image_48": "https://a.slack-edge.com/48.png", "status_text": "", "status_emoji": "",
	}
	if u.Email != "" && t.granted("users:read.email") {
		profile["email"] = u.Email
	}
	if u.IsBot {
		profile["bot_id"], profile["api_app_id"] = u.BotID, u.AppID
	}
	return object{
		"id": u.ID, "team_id": t.ID, "name": u.Name, "deleted": u.Deleted, "color": "9f69e7", "real_name": u.RealName, "tz": u.TZ, "tz_label": u.TZ, "tz_offset": 3600,
		"profile": profile, "is_admin": false, "is_owner": false, "is_primary_owner": false, "is_restricted": u.Guest, "is_ultra_restricted": false, "is_bot": u.IsBot,
		"is_app_user": false, "is_stranger": u.Stranger, "updated": 1700000000, "is_email_confirmed": true, "who_can_share_contact_card": "EVERYONE",
	}
}
