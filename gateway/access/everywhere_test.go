package access

import (
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms"
)

// everywhere are the platforms that authenticate nobody themselves.
var everywhere = []platforms.Name{"telegram", "slack", "signal", "teams", "discord", "webhook", "api_server", "another"}

// People as each platform names them: an id, and where there is one, a second one.
var people = map[platforms.Name][2]platforms.User{
	"slack":   {{ID: "U0123ABCD"}, {ID: "U0123ABCE"}},
	"signal":  {{ID: "+4917012345", Alt: "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"}, {ID: "+4917012346", Alt: "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeef"}},
	"teams":   {{ID: "0b1c2d3e-0000-4000-8000-000000000001", Alt: "29:1abc"}, {ID: "0b1c2d3e-0000-4000-8000-000000000002", Alt: "29:1abd"}},
	"discord": {{ID: "80351110224678912"}, {ID: "80351110224678913", Roles: []string{"41771983423143936"}}},
}

// The same rules hold on every platform, and for each kind of event: who is not named is kept out of messages,
// commands, buttons, reactions and edits alike (P13).
func TestGate_EveryPlatformAndKindOfEvent_P13(t *testing.T) {
	for _, name := range everywhere {
		t.Run(string(name), func(t *testing.T) {
			who := people[name]
			if who[0].ID == "" {
				who = [2]platforms.User{{ID: "1"}, {ID: "12"}}
			}
			policy := func(p PlatformPolicy) *Gate {
				return New(Policy{Rules: rules(), Platforms: map[platforms.Name]PlatformPolicy{name: p}}, approved{})
			}
			check := func(what string, g *Gate, u platforms.User, chat platforms.ChatType, want bool) {
				t.Helper()
				e := platforms.Event{ID: "1", Address: platforms.Address{Platform: name, Account: "a", Chat: "room"}, ChatType: chat, Sender: u,
					Addressed: true}
				for _, e := range kinds(e) {
					d := g.Decide(e, false)
					require.Equal(t, want, d.Allowed, "%s: %s in %s", what, e.Kind(), chat)
					require.Equal(t, want, d.MayCommand("status"), "%s: %s in %s", what, e.Kind(), chat)
					if d.Pairing {
						require.Contains(t, []string{"message", "command"}, e.Kind(), "only words ask for a code")
						require.Equal(t, platforms.DM, chat)
					}
				}
			}
			for _, chat := range []platforms.ChatType{platforms.DM, platforms.Group, platforms.Channel, platforms.Thread, ""} {
				for _, u := range who {
					check("nothing set", policy(PlatformPolicy{}), u, chat, false)
					check("a policy of another platform", New(Policy{Rules: rules(), Platforms: map[platforms.Name]PlatformPolicy{"elsewhere": {AllowAll: true}}}, nil), u, chat, false)
				}
				for _, id := range []platforms.UserID{who[0].ID, who[0].Alt} {
					if id == "" {
						continue
					}
					for _, entry := range []string{string(id), " " + string(id) + " ", string(name) + ":" + string(id)} {
						g := policy(PlatformPolicy{AllowFrom: []string{entry}})
						check("by "+entry, g, who[0], chat, true)
						check("by "+entry, g, who[1], chat, false)
					}
				}
				check("a role of nobody", policy(PlatformPolicy{AllowedRoles: []string{"1", "*"}}), who[1], chat, false)
				check("a user id is no role", policy(PlatformPolicy{AllowedRoles: []string{string(who[1].ID)}}), who[1], chat, false)
			}
		})
	}
}

func TestGate_Roles(t *testing.T) {
	role := func(roles ...string) platforms.User { return platforms.User{ID: "5", Roles: roles} }
	g := New(on(PlatformPolicy{AllowedRoles: []string{" 77 "}, AllowedUsers: []string{"9"}}), approved{})
	for _, c := range []struct {
		user platforms.User
		want bool
	}{{role("77"), true}, {role("1", "77"), true}, {role("7"), false}, {role(), false}, {role(""), false}, {role("*"), false},
		{platforms.User{ID: "9"}, true}, {platforms.User{Roles: []string{"77"}}, false},
		{platforms.User{ID: "6", IsBot: true, Roles: []string{"77"}}, false}} {
		d := g.Decide(from(c.user, platforms.Group), false)
		require.Equal(t, c.want, d.Allowed, "%+v", c.user)
	}
	require.Equal(t, RuleRole, g.Decide(from(role("77"), platforms.DM), false).Rule)
	require.False(t, New(on(PlatformPolicy{AllowedRoles: []string{"77"}}), approved{}).Decide(from(role(), platforms.DM), false).Pairing, "a list of roles is an allowlist")
	require.Empty(t, New(on(PlatformPolicy{AllowedRoles: []string{"77"}}), nil).Warnings())
}

// SIGNAL_GROUP_ALLOWED_USERS names groups.
func TestGate_SignalGroups(t *testing.T) {
	const group = "qLq1RZ+zmL5Xg0tYdQ9h6A=="
	for _, entry := range []string{group, "group:" + group, "signal:group:" + group} {
		g := New(Policy{Rules: rules(), Platforms: map[platforms.Name]PlatformPolicy{"signal": {GroupAllowedUsers: []string{entry}}}}, nil)
		in := func(chat string) platforms.Event {
			return platforms.Event{Address: platforms.Address{Platform: "signal", Account: "a", Chat: platforms.ChatID(chat)}, ChatType: platforms.Group,
				Sender: platforms.User{ID: "+491"}, Message: &platforms.Message{}}
		}
		require.True(t, g.Decide(in("group:"+group), false).Allowed, entry)
		require.False(t, g.Decide(in("group:other"), false).Allowed, entry)
		dm := in("+491")
		dm.ChatType = platforms.DM
		require.False(t, g.Decide(dm, false).Allowed, entry)
	}
}
