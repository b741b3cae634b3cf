package access

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"herald/platforms"
	"herald/platforms/all"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tg = platforms.Name("telegram")

// from makes a message; chat is "dm" or "group".
func from(user platforms.User, chat platforms.ChatType) platforms.Event {
	return platforms.Event{ID: "1", Address: platforms.Address{Platform: tg, Account: "a", Chat: "-100"}, ChatType: chat, Sender: user,
		Message: &platforms.Message{Text: "hi"}}
}

func person(id string) platforms.User {
	return platforms.User{ID: platforms.UserID(id), Username: "Anna", Name: "Anna"}
}

// on makes a policy for Telegram alone.
func on(p PlatformPolicy) Policy {
	return Policy{Platforms: map[platforms.Name]PlatformPolicy{tg: p}}
}

// approved is a set of approvals.
type approved []string

func (a approved) Approved(p platforms.Name, u platforms.UserID) bool {
	return slices.Contains(a, string(p)+"/"+string(u))
}

func (a approved) Any(p platforms.Name) bool {
	return slices.ContainsFunc(a, func(s string) bool { return strings.HasPrefix(s, string(p)+"/") })
}

// Each rule of who may talk, and what nearly matches it (P13).
func TestGate_Rules_P13(t *testing.T) {
	bot := platforms.User{ID: "7", IsBot: true, Username: "otherbot"}
	list := func(ids ...string) []string { return ids }
	mention := func(e platforms.Event) platforms.Event { e.Addressed = true; return e }
	inChat := func(e platforms.Event, chat, parent string) platforms.Event {
		e.Address.Chat, e.ParentChat = platforms.ChatID(chat), platforms.ChatID(parent)
		return e
	}
	for _, c := range []struct {
		name      string
		policy    Policy
		approvals approved
		event     platforms.Event
		trusted   bool
		rule      int
		allowed   bool
	}{
		{name: "1 trusted", event: from(platforms.User{}, platforms.DM), trusted: true, rule: RuleTrusted, allowed: true},
		{name: "1 not trusted", event: from(person("1"), platforms.DM), rule: RuleDeny},

		{name: "3 allowed chat", policy: on(PlatformPolicy{GroupAllowedChats: list("-100")}), event: from(person("1"), platforms.Group), rule: RuleChat, allowed: true},
		{name: "3 anonymous post in an allowed chat", policy: on(PlatformPolicy{GroupAllowedChats: list("-100")}), event: from(platforms.User{}, platforms.Channel), rule: RuleChat, allowed: true},
		{name: "3 thread of an allowed chat", policy: on(PlatformPolicy{GroupAllowedChats: list("C1")}), event: inChat(from(person("1"), platforms.Thread), "T9", "C1"), rule: RuleChat, allowed: true},
		{name: "3 every chat", policy: on(PlatformPolicy{GroupAllowedChats: list("*")}), event: from(person("1"), platforms.Group), rule: RuleChat, allowed: true},
		{name: "3 other chat", policy: on(PlatformPolicy{GroupAllowedChats: list("-1001")}), event: from(person("1"), platforms.Group), rule: RuleDeny},
		{name: "3 not in a direct chat", policy: on(PlatformPolicy{GroupAllowedChats: list("-100")}), event: from(person("1"), platforms.DM), rule: RuleDeny},
		{name: "3 not every chat means people's direct chats", policy: on(PlatformPolicy{GroupAllowedChats: list("*")}), event: from(person("1"), platforms.DM), rule: RuleDeny},
		{name: "3 a bot is not let in by its chat", policy: on(PlatformPolicy{GroupAllowedChats: list("-100")}), event: from(bot, platforms.Group), rule: RuleBot},
		{name: "3 a user id is no chat id", policy: on(PlatformPolicy{AllowedUsers: list("-100")}), event: from(person("1"), platforms.Group), rule: RuleDeny},

		{name: "4 all bots", policy: on(PlatformPolicy{AllowBots: "all"}), event: from(bot, platforms.Group), rule: RuleBot, allowed: true},
		{name: "4 a bot that mentions us", policy: on(PlatformPolicy{AllowBots: "mentions"}), event: mention(from(bot, platforms.Group)), rule: RuleBot, allowed: true},
		{name: "4 a bot that does not", policy: on(PlatformPolicy{AllowBots: "mentions"}), event: from(bot, platforms.Group), rule: RuleBot},
		{name: "4 no bots", policy: on(PlatformPolicy{AllowBots: "none", AllowAll: true, AllowedUsers: list("*")}), event: mention(from(bot, platforms.Group)), rule: RuleBot},
		{name: "4 unset is none", policy: on(PlatformPolicy{AllowFrom: list("*")}), event: mention(from(bot, platforms.Group)), rule: RuleBot},
		{name: "4 open everywhere does not mean bots", policy: Policy{AllowAllUsers: true}, event: from(bot, platforms.DM), rule: RuleBot},
		{name: "4 a bot by its own id", policy: on(PlatformPolicy{AllowFrom: list("7")}), event: from(bot, platforms.Group), rule: RuleAllowFrom, allowed: true},
		{name: "4 a bot by its own id, groups only", policy: on(PlatformPolicy{GroupAllowedUsers: list("7")}), event: from(bot, platforms.DM), rule: RuleBot},
		{name: "4 bots let in are not people let in", policy: on(PlatformPolicy{AllowBots: "all"}), event: from(person("1"), platforms.Group), rule: RuleDeny},
		{name: "4 a nameless bot", policy: on(PlatformPolicy{AllowBots: "all"}), event: from(platforms.User{IsBot: true}, platforms.Group), rule: RuleNoUser},

		{name: "5 nobody, all lists open", policy: on(PlatformPolicy{AllowAll: true, AllowedUsers: list("*"), AllowFrom: list("*")}), event: from(platforms.User{Name: "Anna", Username: "anna"}, platforms.Group), rule: RuleNoUser},
		{name: "5 nobody matches no empty entry", policy: on(PlatformPolicy{AllowedUsers: list("", " ")}), event: from(platforms.User{}, platforms.DM), rule: RuleNoUser},

		{name: "6 open platform", policy: on(PlatformPolicy{AllowAll: true}), event: from(person("1"), platforms.DM), rule: RuleAllowAll, allowed: true},
		{name: "6 another platform is open", policy: Policy{Platforms: map[platforms.Name]PlatformPolicy{"slack": {AllowAll: true}}}, event: from(person("1"), platforms.DM), rule: RuleDeny},

		{name: "8 paired", approvals: approved{"telegram/1"}, event: from(person("1"), platforms.DM), rule: RulePaired, allowed: true},
		{name: "8 paired, in a group", approvals: approved{"telegram/1"}, event: from(person("1"), platforms.Group), rule: RulePaired, allowed: true},
		{name: "8 paired by the other id", approvals: approved{"telegram/uuid"}, event: from(platforms.User{ID: "1", Alt: "uuid"}, platforms.DM), rule: RulePaired, allowed: true},
		{name: "8 paired elsewhere", approvals: approved{"slack/1"}, event: from(person("1"), platforms.DM), rule: RuleDeny},
		{name: "8 another one is paired", approvals: approved{"telegram/12"}, event: from(person("1"), platforms.DM), rule: RuleDeny},

		{name: "9 allowed user", policy: on(PlatformPolicy{AllowedUsers: list("2", " 1 ")}), event: from(person("1"), platforms.DM), rule: RuleAllowlist, allowed: true},
		{name: "9 allowed user, in a group", policy: on(PlatformPolicy{AllowedUsers: list("1")}), event: from(person("1"), platforms.Group), rule: RuleAllowlist, allowed: true},
		{name: "9 with the platform's name", policy: on(PlatformPolicy{AllowedUsers: list("telegram:1")}), event: from(person("1"), platforms.DM), rule: RuleAllowlist, allowed: true},
		{name: "9 with another platform's name", policy: on(PlatformPolicy{AllowedUsers: list("slack:1")}), event: from(person("1"), platforms.DM), rule: RuleDeny},
		{name: "9 everyone", policy: on(PlatformPolicy{AllowedUsers: list("*")}), event: from(person("1"), platforms.DM), rule: RuleAllowlist, allowed: true},
		{name: "9 beginning of an id", policy: on(PlatformPolicy{AllowedUsers: list("12")}), event: from(person("1"), platforms.DM), rule: RuleDeny},
		{name: "9 part of an id", policy: on(PlatformPolicy{AllowedUsers: list("1")}), event: from(person("12"), platforms.DM), rule: RuleDeny},
		{name: "9 a star within", policy: on(PlatformPolicy{AllowedUsers: list("1*", "**")}), event: from(person("12"), platforms.DM), rule: RuleDeny},
		{name: "9 display name is no id", policy: on(PlatformPolicy{AllowedUsers: list("Anna")}), event: from(person("1"), platforms.DM), rule: RuleDeny},
		{name: "9 general list", policy: Policy{AllowedUsers: list("1")}, event: from(person("1"), platforms.DM), rule: RuleAllowlist, allowed: true},
		{name: "9 general list beside a platform's", policy: Policy{AllowedUsers: list("1"), Platforms: map[platforms.Name]PlatformPolicy{tg: {AllowedUsers: list("2")}}}, event: from(person("1"), platforms.DM), rule: RuleAllowlist, allowed: true},
		{name: "9 group list", policy: on(PlatformPolicy{GroupAllowedUsers: list("1")}), event: from(person("1"), platforms.Group), rule: RuleAllowlist, allowed: true},
		{name: "9 group list, direct chat", policy: on(PlatformPolicy{GroupAllowedUsers: list("1")}), event: from(person("1"), platforms.DM), rule: RuleDeny},
		{name: "9 group list, room of no kind", policy: on(PlatformPolicy{GroupAllowedUsers: list("1")}), event: from(person("1"), ""), rule: RuleDeny},
		{name: "9 other id", policy: on(PlatformPolicy{AllowedUsers: list("uuid")}), event: from(platforms.User{ID: "1", Alt: "uuid"}, platforms.DM), rule: RuleAllowlist, allowed: true},

		{name: "@ name, not switched on", policy: on(PlatformPolicy{AllowedUsers: list("@anna")}), event: from(person("1"), platforms.DM), rule: RuleDeny},
		{name: "@ name", policy: on(PlatformPolicy{AllowedUsers: list("@ANNA"), AllowUsernames: true}), event: from(person("1"), platforms.DM), rule: RuleAllowlist, allowed: true},
		{name: "@ other name", policy: on(PlatformPolicy{AllowedUsers: list("@ann"), AllowUsernames: true}), event: from(person("1"), platforms.DM), rule: RuleDeny},
		{name: "@ name without @", policy: on(PlatformPolicy{AllowedUsers: list("anna"), AllowUsernames: true}), event: from(person("1"), platforms.DM), rule: RuleDeny},
		{name: "@ alone", policy: on(PlatformPolicy{AllowedUsers: list("@"), AllowUsernames: true}), event: from(platforms.User{ID: "1"}, platforms.DM), rule: RuleDeny},
		{name: "@ name that looks like an id", policy: on(PlatformPolicy{AllowedUsers: list("1"), AllowUsernames: true}), event: from(platforms.User{ID: "2", Username: "1"}, platforms.DM), rule: RuleDeny},

		{name: "10 allow_from", policy: on(PlatformPolicy{AllowFrom: list("1")}), event: from(person("1"), platforms.DM), rule: RuleAllowFrom, allowed: true},
		{name: "10 everyone", policy: on(PlatformPolicy{AllowFrom: list("*")}), event: from(person("1"), platforms.Group), rule: RuleAllowFrom, allowed: true},
		{name: "10 group_allow_from", policy: on(PlatformPolicy{GroupAllowFrom: list("1")}), event: from(person("1"), platforms.Channel), rule: RuleAllowFrom, allowed: true},
		{name: "10 group_allow_from, direct chat", policy: on(PlatformPolicy{GroupAllowFrom: list("*")}), event: from(person("1"), platforms.DM), rule: RuleDeny},

		{name: "11 everywhere open", policy: Policy{AllowAllUsers: true, Platforms: map[platforms.Name]PlatformPolicy{tg: {AllowedUsers: list("2")}}}, event: from(person("1"), platforms.DM), rule: RuleAllowAny, allowed: true},

		{name: "12 nothing set", event: from(person("1"), platforms.DM), rule: RuleDeny},

		{name: "only chats: another chat", policy: on(PlatformPolicy{AllowAll: true, AllowedChats: list("-200")}), event: from(person("1"), platforms.Group), rule: RuleDeny},
		{name: "only chats: this chat", policy: on(PlatformPolicy{AllowAll: true, AllowedChats: list("-100")}), event: from(person("1"), platforms.Group), rule: RuleAllowAll, allowed: true},
		{name: "only chats grants nothing", policy: on(PlatformPolicy{AllowedChats: list("-100")}), event: from(person("1"), platforms.Group), rule: RuleDeny},
		{name: "only chats leaves direct chats alone", policy: on(PlatformPolicy{AllowAll: true, AllowedChats: list("-200")}), event: from(person("1"), platforms.DM), rule: RuleAllowAll, allowed: true},
		{name: "guest mode, mentioned", policy: on(PlatformPolicy{AllowAll: true, AllowedChats: list("-200"), GuestMode: true}), event: mention(from(person("1"), platforms.Group)), rule: RuleAllowAll, allowed: true},
		{name: "guest mode, not mentioned", policy: on(PlatformPolicy{AllowAll: true, AllowedChats: list("-200"), GuestMode: true}), event: from(person("1"), platforms.Group), rule: RuleDeny},
	} {
		t.Run(c.name, func(t *testing.T) {
			var g *Gate
			if c.approvals != nil {
				g = New(c.policy, c.approvals)
			} else {
				g = New(c.policy, nil)
			}
			for _, e := range kinds(c.event) {
				d := g.Decide(e, c.trusted)
				require.Equal(t, c.allowed, d.Allowed, "%s: %+v", e.Kind(), d)
				require.Equal(t, c.rule, d.Rule, "%s: %+v", e.Kind(), d)
				require.NotEmpty(t, d.Reason)
				require.Equal(t, c.allowed, d.Tier != TierNone)
				require.Equal(t, c.allowed, d.MayCommand("help"))
			}
		})
	}
}

// kinds makes an event of each kind by the same sender in the same place.
func kinds(e platforms.Event) []platforms.Event {
	e.Message = nil
	all := []platforms.Event{e, e, e, e, e}
	all[0].Message = &platforms.Message{Text: "hi"}
	all[1].Command = &platforms.Command{Name: "help"}
	all[2].Click = &platforms.Click{Data: "x"}
	all[3].Reaction = &platforms.Reaction{Emoji: "👍"}
	all[4].Edited = &platforms.Edited{Text: "ho"}
	return all
}

// Without any grant nobody is let in, whatever they are and wherever they write (P13).
func TestGate_NoGrantNobody_P13(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom([]string{"", "1", "*", "@anna", "telegram:1", " ", "none"})
		user := platforms.User{ID: platforms.UserID(id.Draw(t, "id")), Alt: platforms.UserID(id.Draw(t, "alt")), Username: id.Draw(t, "username"),
			Name: id.Draw(t, "name"), IsBot: rapid.Bool().Draw(t, "bot")}
		e := from(user, rapid.SampledFrom([]platforms.ChatType{platforms.DM, platforms.Group, platforms.Channel, platforms.Thread, ""}).Draw(t,
			"chat"))
		e.Address.Chat, e.ParentChat = platforms.ChatID(id.Draw(t, "chatid")), platforms.ChatID(id.Draw(t, "parent"))
		e.Addressed = rapid.Bool().Draw(t, "addressed")
		none := rapid.SliceOf(rapid.SampledFrom([]string{"", " ", "@", "telegram:"}))
		p := on(PlatformPolicy{ // entries that name nobody, and settings that grant nothing
			AllowedUsers: none.Draw(t, "a"), AllowFrom: none.Draw(t, "b"), GroupAllowedUsers: none.Draw(t, "c"), GroupAllowedChats: none.Draw(t, "d"),
			AllowedChats: none.Draw(t, "e"), AdminFrom: []string{"*"}, UserCommands: []string{"*"}, GroupAdminFrom: []string{"*"},
			AllowUsernames: rapid.Bool().Draw(t, "names"),
			GuestMode:      true, AllowBots: rapid.SampledFrom([]string{"", "none", "nonsense"}).Draw(t, "bots"), UnauthorizedDM: "pair",
		})
		for _, e := range kinds(e) {
			if d := New(p, approved{}).Decide(e, false); d.Allowed || d.MayCommand("help") || d.Tier != TierNone {
				t.Fatalf("%+v was let in: %+v", e, d)
			}
		}
	})
}

func TestGate_Pairing(t *testing.T) {
	stranger := from(person("1"), platforms.DM)
	pairs := func(p Policy) bool { return New(p, approved{}).Decide(stranger, false).Pairing }
	require.True(t, pairs(Policy{}), "no list: pair")
	require.True(t, pairs(on(PlatformPolicy{})))
	require.False(t, pairs(on(PlatformPolicy{AllowedUsers: []string{"2"}})), "a list: silence")
	require.False(t, pairs(on(PlatformPolicy{GroupAllowedChats: []string{"-5"}})))
	require.False(t, pairs(Policy{AllowedUsers: []string{"2"}}))
	require.True(t, pairs(on(PlatformPolicy{AllowedUsers: []string{"2"}, UnauthorizedDM: "pair"})), "the platform's value wins")
	require.True(t, pairs(Policy{UnauthorizedDM: "pair", AllowedUsers: []string{"2"}}), "the general value wins over the default")
	require.False(t, pairs(Policy{UnauthorizedDM: "ignore"}))
	require.False(t, pairs(Policy{UnauthorizedDM: "pair", Platforms: map[platforms.Name]PlatformPolicy{tg: {UnauthorizedDM: "ignore"}}}))
	require.False(t, New(Policy{}, nil).Decide(stranger, false).Pairing, "no pairing, no code")

	g := New(Policy{}, approved{})
	for name, e := range map[string]platforms.Event{
		"group": from(person("1"), platforms.Group), "bot": from(platforms.User{ID: "1", IsBot: true}, platforms.DM), "nobody": from(platforms.User{}, platforms.DM),
		"click": kinds(stranger)[2], "reaction": kinds(stranger)[3], "edit": kinds(stranger)[4],
	} {
		require.False(t, g.Decide(e, false).Pairing, name)
	}
	require.True(t, g.Decide(kinds(stranger)[1], false).Pairing, "a command asks as well")
	require.False(t, New(on(PlatformPolicy{AllowAll: true}), approved{}).Decide(stranger, false).Pairing)
}

func TestGate_Tiers(t *testing.T) {
	g := New(on(PlatformPolicy{AllowAll: true, AdminFrom: []string{"1"}, UserCommands: []string{"/Model", "set_home"},
		GroupAdminFrom: []string{"2"}, GroupAllowedChats: []string{"-100"}}), nil)
	decide := func(u platforms.User, chat platforms.ChatType) Decision { return g.Decide(from(u, chat), false) }

	admin := decide(person("1"), platforms.DM)
	require.Equal(t, TierAdmin, admin.Tier)
	require.True(t, admin.Named)
	require.True(t, g.Decide(from(person("9"), platforms.DM), true).Named, "the profile's own door")
	require.True(t, admin.MayCommand("restart"))
	require.Nil(t, admin.Commands())

	user := decide(person("2"), platforms.DM)
	require.Equal(t, TierUser, user.Tier)
	require.False(t, user.Named)
	require.Equal(t, []string{"/Model", "set_home"}, user.Commands())
	for name, may := range map[string]bool{"model": true, "MODEL": true, "/model": true, "set-home": true, "set_home": true, "help": true, "whoami": true, "status": true, "context": true,
		"models": false, "mode": false, "restart": false, "stop": false, "": false} {
		require.Equal(t, may, user.MayCommand(name), name)
	}

	require.Equal(t, TierAdmin, decide(person("2"), platforms.Group).Tier, "groups have admins of their own")
	require.Equal(t, TierUser, decide(person("1"), platforms.Group).Tier)
	require.False(t, decide(person("1"), platforms.Group).MayCommand("model"), "and commands of their own")
	require.Equal(t, TierUser, decide(platforms.User{}, platforms.Group).Tier, "an anonymous post is no admin")

	g.Set(on(PlatformPolicy{AllowAll: true, GroupAllowedChats: []string{"*"}, GroupAdminFrom: []string{"*"}, AllowBots: "all"}))
	require.Equal(t, TierAdmin, decide(person("9"), platforms.DM).Tier, "no admins set: no tiers")
	require.False(t, decide(person("9"), platforms.DM).Named, "and nobody by name (P6)")
	require.False(t, decide(person("9"), platforms.Group).Named, "* names nobody")
	require.Equal(t, TierAdmin, decide(person("9"), platforms.Group).Tier)
	require.Equal(t, TierUser, decide(platforms.User{}, platforms.Group).Tier, "* is everyone, and nobody is not")
	require.Equal(t, TierUser, decide(platforms.User{ID: "7", IsBot: true}, platforms.Group).Tier)

	all := New(on(PlatformPolicy{AllowAll: true, AdminFrom: []string{"1"}, UserCommands: []string{"*"}}),
		nil).Decide(from(person("2"), platforms.DM), false)
	require.True(t, all.MayCommand("restart"))
	require.Equal(t, TierUser, all.Tier)
}

// A policy can be replaced while others decide.
func TestGate_Set(t *testing.T) {
	g := New(Policy{}, nil)
	e := from(person("1"), platforms.DM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			g.Set(on(PlatformPolicy{AllowAll: i%2 == 0}))
		}
		g.Set(on(PlatformPolicy{AllowFrom: []string{"1"}}))
	}()
	for range 200 {
		if d := g.Decide(e, false); d.Allowed != (d.Rule == RuleAllowAll || d.Rule == RuleAllowFrom) {
			t.Fatalf("half of two policies: %+v", d)
		}
	}
	<-done
	require.Equal(t, RuleAllowFrom, g.Decide(e, false).Rule)
}

func TestGate_Warnings(t *testing.T) {
	require.Empty(t, New(Policy{}, nil).Warnings(), "no platform, no warning")
	w := New(on(PlatformPolicy{}), approved{}).Warnings()
	require.Len(t, w, 1)
	require.Contains(t, w[0], "telegram: nobody may talk to Herald yet: set TELEGRAM_ALLOWED_USERS (or platforms.telegram.allow_from)")
	require.Contains(t, w[0], "herald pairing approve telegram CODE")
	require.NotContains(t, New(on(PlatformPolicy{UnauthorizedDM: "ignore"}), approved{}).Warnings()[0], "pairing")
	require.Empty(t, New(on(PlatformPolicy{}), approved{"telegram/1"}).Warnings())
	require.Empty(t, New(on(PlatformPolicy{AllowFrom: []string{"*"}}), nil).Warnings())
	require.Empty(t, New(on(PlatformPolicy{AllowAll: true}), nil).Warnings())
	require.Empty(t, New(on(PlatformPolicy{}), nil).Warnings(tg), "a trusted platform")
	w = New(on(PlatformPolicy{AllowFrom: []string{"1", "@anna"}}), nil).Warnings()
	require.Len(t, w, 1)
	require.Contains(t, w[0], `"@anna" in an allowlist is not used`)
}

func TestNormal(t *testing.T) {
	for _, c := range []struct {
		platform platforms.Name
		in, want string
	}{
		{"telegram", " 12 ", "12"}, {"telegram", "telegram: 12", "12"}, {"telegram", "U1", "U1"}, {"slack", "u1", "u1"},
		{"signal", "+49 (170) 12-34.5", "+4917012345"}, {"signal", "AAAAAAAA-BBBB-CCCC-DDDD-EEEEEEEEEEEE", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"}, {"", ":1", ":1"},
	} {
		require.Equal(t, c.want, normal(c.platform, rules().Of(c.platform), c.in))
	}
}

// rules are those of all platforms.
func rules() platforms.Rulebook { return platforms.RulesOf(all.Kinds()) }
