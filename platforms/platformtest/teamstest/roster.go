package teamstest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// create is POST v3/conversations: a personal chat, or a new thread of a channel.
func (s *Server) create(c *call) (int, any, error) {
	var want struct {
		Bot         account         `json:"bot"`
		IsGroup     bool            `json:"isGroup"`
		TenantID    string          `json:"tenantId"`
		Members     []account       `json:"members"`
		Activity    json.RawMessage `json:"activity"`
		ChannelData struct {
			Tenant  resource `json:"tenant"`
			Channel resource `json:"channel"`
		} `json:"channelData"`
	}
	if json.Unmarshal(c.body, &want) != nil {
		return 0, nil, refuse(400, "BadSyntax", "Invalid conversation parameters")
	}
	if want.ChannelData.Channel.ID != "" {
		return s.createThread(want.ChannelData.Channel.ID, want.Activity)
	}
	switch {
	case want.Bot.ID != "" && want.Bot.ID != s.o.AppID && want.Bot.ID != s.BotID():
		return 0, nil, refuse(400, "BadSyntax", "Incorrect conversation creation parameters: another bot")
	case want.IsGroup || len(want.Members) != 1:
		return 0, nil, refuse(400, "BadSyntax", "Incorrect conversation creation parameters: bots can't create group chats")
	case cmp.Or(want.TenantID, want.ChannelData.Tenant.ID) == "":
		return 0, nil, refuse(400, "BadSyntax", "Tenant id must be provided in the conversation creation parameters")
	}
	u, ok := s.person(want.Members[0].ID)
	if !ok {
		return 0, nil, refuse(400, "BadArgument", "Failed to decrypt pairwise id")
	}
	if cmp.Or(want.TenantID, want.ChannelData.Tenant.ID) != u.Tenant {
		return 0, nil, refuse(403, "BotDisabledByAdmin", wording(403, "BotDisabledByAdmin"))
	}
	r := s.personal(u)
	if !r.installed {
		return 0, nil, refuse(403, "ForbiddenOperationException", wording(403, "ForbiddenOperationException"))
	}
	s.act(Act{Verb: "create", Room: r.ID, Bot: true})
	return http.StatusCreated, resource{r.ID}, nil
}

func (s *Server) createThread(channel string, raw json.RawMessage) (int, any, error) {
	r, err := s.place(&call{room: channel})
	if err != nil {
		return 0, nil, err
	}
	if len(raw) == 0 || string(raw) == "null" {
		return 0, nil, refuse(400, "BadSyntax", "Incorrect conversation creation parameters: an initial activity is required")
	}
	a, err := s.read(raw)
	if err != nil {
		return 0, nil, err
	}
	if err := a.whole(); err != nil {
		return 0, nil, err
	}
	m, err := s.deliver(r, "", a)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, map[string]string{"id": r.ID + ";messageid=" + m.ID, "activityId": m.ID}, nil
}

// person finds somebody by the bot's id or the Entra id.
func (s *Server) person(id string) (User, bool) {
	for _, u := range s.users {
		if u.ID == id || u.AAD == id {
			return u, true
		}
	}
	return User{}, false
}

// member is a person as the roster shows them.
type member struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Given     string `json:"givenName"`
	Surname   string `json:"surname"`
	Object    string `json:"objectId"`
	AAD       string `json:"aadObjectId"`
	Email     string `json:"email"`
	Principal string `json:"userPrincipalName"`
	Tenant    string `json:"tenantId"`
	Role      string `json:"userRole"`
}

func (s *Server) rosterEntry(u User) member {
	given, surname, _ := strings.Cut(u.Name, " ")
	return member{u.ID, u.Name, given, surname, u.AAD, u.AAD, u.Email, u.Email, u.Tenant,
		map[bool]string{true: "user", false: "guest"}[u.Tenant == s.o.TenantID]}
}

// pageSize is how many members a page has when the bot does not say; it has 50 to 500.
const pageSize = 200

// members answers members, pagedmembers and members/{id}.
func (s *Server) members(req *http.Request, r *room, c *call) (int, any, error) {
	if c.rest[0] == "members" && len(c.rest) == 2 {
		for _, u := range r.Members {
			if u.ID == c.rest[1] || u.AAD == c.rest[1] {
				return http.StatusOK, s.rosterEntry(u), nil
			}
		}
		return 0, nil, refuse(404, "MemberNotFoundInConversation", "Member not found in conversation.")
	}
	list := []member{}
	for _, u := range r.Members {
		list = append(list, s.rosterEntry(u))
	}
	if c.rest[0] != "pagedmembers" {
		return http.StatusOK, list, nil
	}
	query := req.URL.Query()
	size, _ := strconv.Atoi(query.Get("pageSize"))
	if size <= 0 {
		size = pageSize
	}
	size = min(max(size, 50), 500)
	from, _ := strconv.Atoi(query.Get("continuationToken"))
	from = min(max(from, 0), len(list))
	to := min(from+size, len(list))
	page := map[string]any{"members": list[from:to]}
	if to < len(list) {
		page["continuationToken"] = strconv.Itoa(to)
	}
	return http.StatusOK, page, nil
}

// teamInfo answers teams/{id} and teams/{id}/conversations.
func (s *Server) teamInfo(c *call) (int, any, error) {
	if len(c.rest) < 2 {
		return 0, nil, refuse(404, "NotFound", "No HTTP resource was found that matches the request URI.")
	}
	t, ok := s.teams[c.rest[1]]
	if !ok {
		return 0, nil, refuse(404, "TeamNotFound", "The team was not found.")
	}
	if r := s.rooms[t.ID]; !r.installed {
		return 0, nil, refuse(403, "BotNotInConversationRoster", wording(403, "BotNotInConversationRoster"))
	}
	type channel struct {
		ID   string  `json:"id"`
		Name *string `json:"name"` // null for General
	}
	channels := []channel{{ID: t.ID}}
	for _, r := range s.rooms {
		if r.Type == Channel && r.Team.ID == t.ID && r.ID != t.ID {
			channels = append(channels, channel{r.ID, &r.Name})
		}
	}
	slices.SortFunc(channels[1:], func(a, b channel) int { return strings.Compare(a.ID, b.ID) })
	if len(c.rest) == 3 && c.rest[2] == "conversations" {
		return http.StatusOK, map[string]any{"conversations": channels}, nil
	}
	return http.StatusOK, map[string]any{
		"id": t.ID, "name": t.Name, "aadGroupId": t.Group, "channelCount": len(channels), "memberCount": len(s.rooms[t.ID].Members),
	}, nil
}
