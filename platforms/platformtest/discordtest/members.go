package discordtest

import (
	"encoding/json"
	"strings"
)

// members answers a request for members with chunks of 1000.
func (c *conn) members(data json.RawMessage) {
	d, s := c.d, c.session
	var r struct {
		Guild json.RawMessage `json:"guild_id"`
		Query *string         `json:"query"`
		Limit int             `json:"limit"`
		Users json.RawMessage `json:"user_ids"`
		Nonce string          `json:"nonce"`
	}
	if json.Unmarshal(data, &r) != nil {
		c.fail(closeDecode)
		return
	}
	guilds, users := oneOrMore(r.Guild), oneOrMore(r.Users)
	for _, id := range guilds {
		g := d.guild(id)
		if g == nil || g.member(d.bot.ID) == nil {
			continue
		}
		if r.Query != nil && *r.Query == "" && len(users) == 0 && s.intents&IntentMembers == 0 {
			continue // the whole list needs the intent
		}
		found, missing := g.search(users, r.Query, r.Limit)
		people := []wireMember{}
		for _, m := range found {
			people = append(people, d.wireMember(m))
		}
		for i, chunks := 0, max(1, (len(people)+999)/1000); i < chunks; i++ {
			chunk := map[string]any{
				"guild_id": g.id, "members": people[i*1000 : min(len(people), (i+1)*1000)], "chunk_index": i, "chunk_count": chunks,
			}
			if len(missing) > 0 {
				chunk["not_found"] = missing
			}
			if r.Nonce != "" {
				chunk["nonce"] = r.Nonce
			}
			d.deliver(s, event{name: "GUILD_MEMBERS_CHUNK", data: chunk})
		}
	}
}

// oneOrMore reads an id or a list of ids.
func oneOrMore(raw json.RawMessage) []ID {
	var list []ID
	if json.Unmarshal(raw, &list) == nil {
		return list
	}
	var one ID
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []ID{one}
	}
	return nil
}

// search finds members by ids, or by the beginning of their names.
func (g *guild) search(users []ID, query *string, limit int) (found []*member, missing []ID) {
	for _, id := range users {
		if m := g.member(id); m != nil {
			found = append(found, m)
		} else {
			missing = append(missing, id)
		}
	}
	if len(users) > 0 || query == nil {
		return found, missing
	}
	for _, m := range g.members {
		q := strings.ToLower(*query)
		if limit > 0 && len(found) == limit {
			break
		}
		if strings.HasPrefix(strings.ToLower(m.user.Username), q) || m.nick != "" && strings.HasPrefix(strings.ToLower(m.nick), q) {
			found = append(found, m)
		}
	}
	return found, nil
}
