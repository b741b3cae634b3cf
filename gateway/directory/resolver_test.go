package directory_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/directory"
	"herald/platforms"
	"herald/platforms/all"
)

func TestParseTarget(t *testing.T) {
	for in, want := range map[string]platforms.Target{
		"origin": {Word: "origin"}, " LOCAL ": {Word: "local"}, "Slack": {Platform: "slack"}, "slack/T1": {Platform: "slack", Account: "T1"},
		"Telegram:-100:7": {Platform: "telegram", Place: "-100:7"}, "SLACK/T1:C1:17.1": {Platform: "slack", Account: "T1", Place: "C1:17.1"},
		"signal:group:a/b=": {Platform: "signal", Place: "group:a/b="}, "teams:19:x@thread.tacv2": {Platform: "teams", Place: "19:x@thread.tacv2"},
		"slack: #general ": {Platform: "slack", Place: "#general"}, "origin:x": {Platform: "origin", Place: "x"},
	} {
		got, err := platforms.ParseTarget(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	for _, in := range []string{"", " ", ":", ":C1", "slack:", "slack: ", "slack/", "slack/:C1", "/T1"} {
		_, err := platforms.ParseTarget(in)
		var te *platforms.TargetError
		require.ErrorAs(t, err, &te, in)
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"slack/T1:C1:2", "origin", "teams:19:x@thread.tacv2:1", "a:#b", "x:@y"} {
		f.Add(s)
	}
	r := town()
	f.Fuzz(func(t *testing.T, s string) {
		at, err := r.Resolve(context.Background(), s, platforms.Address{})
		if err == nil && (at.Platform == "" || at.Account == "" || at.Chat == "") {
			t.Fatalf("%q resolves to %q", s, at)
		}
	})
}

// town has one Telegram, two Slack workspaces, Signal and Teams.
func town() directory.Resolver {
	acc := func(p, id string) platforms.Account {
		return platforms.Account{Platform: platforms.Name(p), ID: platforms.AccountID(id)}
	}
	room := func(a platforms.Account, chat, name string, aliases ...string) platforms.Room {
		return platforms.Room{Address: platforms.Address{Platform: a.Platform, Account: a.ID, Chat: platforms.ChatID(chat)},
			Type: platforms.Channel, Name: name, Aliases: aliases}
	}
	tg, one, two, sig, teams := acc("telegram", "42"), acc("slack", "T1"), acc("slack", "T2"), acc("signal", "+491"), acc("teams", "app")
	parent := room(teams, "19:b@thread.tacv2", "General")
	parent.Parent = "Sales"
	other := room(teams, "19:c@thread.tacv2", "General")
	other.Parent = "Support"
	rooms := map[platforms.Account][]platforms.Room{
		tg:    {room(tg, "-100", "Family: Home"), room(tg, "-101", "general"), room(tg, "-102", "General")},
		one:   {room(one, "C1", "general"), room(one, "C9", "only-here"), {User: "U1", Name: "Ann Lee", Aliases: []string{"ann"}, Type: platforms.DM}},
		two:   {room(two, "C2", "general"), {User: "U2", Name: "Bob", Address: platforms.Address{Platform: "slack", Account: "T2", Chat: "D2"}, Type: platforms.DM}, {User: "U3", Name: "bob", Type: platforms.DM}},
		sig:   {room(sig, "group:q/1==", "Garden")},
		teams: {parent, other},
	}
	homes := map[platforms.Name]directory.Home{"telegram": {Chat: "-100", Thread: "7", Name: "Home"},
		"slack": {Account: "T2", Chat: "C2", Name: "Base"}, "signal": {Chat: "+492", Name: "Home"}}
	return directory.Resolver{
		Rules:    platforms.RulesOf(all.Kinds()),
		Accounts: func() []platforms.Account { return []platforms.Account{tg, one, two, sig, teams} },
		Home:     func(p platforms.Name) (directory.Home, bool) { h, ok := homes[p]; return h, ok },
		Rooms:    func(a platforms.Account) []platforms.Room { return rooms[a] },
		Open: func(_ context.Context, a platforms.Account, u platforms.UserID) (platforms.Address, error) {
			if u == "U3" {
				return platforms.Address{}, errors.New("cannot_dm")
			}
			return platforms.Address{Platform: a.Platform, Account: a.ID, Chat: platforms.ChatID("D-" + u)}, nil
		},
	}
}

func TestResolver(t *testing.T) {
	r := town()
	origin := platforms.Address{Platform: "slack", Account: "T1", Chat: "C1", Thread: "17.1"}
	for in, want := range map[string]string{
		"origin": "slack/T1/C1/17.1", "ORIGIN": "slack/T1/C1/17.1",
		"telegram": "telegram/42/-100/7", "Telegram:home": "telegram/42/-100/7", "slack": "slack/T2/C2", "slack:base": "slack/T2/C2", "slack/T2": "slack/T2/C2", "signal": "signal/+491/+492",
		"telegram:-100": "telegram/42/-100", "telegram:-100:9": "telegram/42/-100/9", "telegram:555": "telegram/42/555", "telegram:#family: home": "telegram/42/-100",
		"telegram:#general": "telegram/42/-101", "telegram:#General": "telegram/42/-102", "telegram:#Family: Home:12": "telegram/42/-100/12",
		"slack:C1": "slack/T1/C1", "slack:C2:17.5": "slack/T2/C2/17.5", "slack/T2:C9": "slack/T2/C9", "slack:#only-here": "slack/T1/C9", "SLACK/T1:#general:1.2": "slack/T1/C1/1.2",
		"slack:@ann": "slack/T1/D-U1", "slack:@Ann Lee": "slack/T1/D-U1", "slack:@U1": "slack/T1/D-U1", "slack:@Bob": "slack/T2/D2",
		"signal:group:q/1==": "signal/+491/group:q/1==", "signal:group:new==": "signal/+491/group:new==", "signal:+493": "signal/+491/+493", "signal:#garden": "signal/+491/group:q/1==",
		"teams:19:b@thread.tacv2": "teams/app/19:b@thread.tacv2", "teams:19:b@thread.tacv2:1612": "teams/app/19:b@thread.tacv2/1612",
		"teams:19:new@thread.v2:5": "teams/app/19:new@thread.v2/5", "teams:a:1xyz": "teams/app/a:1xyz", "teams:8:orgid:0b1c": "teams/app/8:orgid:0b1c",
	} {
		at, err := r.Resolve(t.Context(), in, origin)
		require.NoError(t, err, in)
		require.Equal(t, want, strings.ReplaceAll(at.String(), "%2F", "/"), in)
	}
	for in, want := range map[string]string{
		"slakc:C1":           `no platform called "slakc" runs here; running: signal, slack, teams, telegram`,
		"slack/T3:C1":        `slack has no account "T3"; running: slack/T1, slack/T2`,
		"slack:C77":          "several accounts of this platform run; name one: slack/T1:C77, slack/T2:C77",
		"slack:#general":     "several rooms are called #general; write one of: slack/T1:C1 (#general), slack/T2:C2 (#general)",
		"slack:#gener":       "no room is called #gener; herald channels slack lists the known ones: slack/T1:C1 (#general), slack/T2:C2 (#general)",
		"slack:only-here":    "no chat has this id; did you mean: slack/T1:C9 (#only-here)",
		"slack:c1":           "several accounts of this platform run; name one: slack/T1:c1, slack/T2:c1",
		"slack:@nobody":      "nobody is known as @nobody",
		"slack:@BOB":         "several people are called @BOB; write one of: slack/T2:@U3 (@bob), slack/T2:D2 (@Bob)",
		"slack:@bob":         "cannot_dm",
		"slack:@":            "names nobody",
		"slack/T1":           "the home channel belongs to account T2",
		"telegram:#GENERAL":  "several rooms are called #GENERAL; write one of: telegram:-101 (#general), telegram:-102 (#General)",
		"teams":              "teams has no home channel",
		"teams:#general":     "several rooms are called #general; write one of: teams:19:b@thread.tacv2 (#General in Sales), teams:19:c@thread.tacv2 (#General in Support)",
		"telegram:":          "names no chat",
		"teams::7":           "names no chat",
		"":                   "names no platform",
		"signal:#":           "no room is called #",
		"signal:@Garden":     "nobody is known as @Garden",
		"telegram:Family: H": "",
	} {
		at, err := r.Resolve(t.Context(), in, origin)
		if want == "" { // an id that nobody knows is taken as it is
			require.NoError(t, err, in)
			continue
		}
		require.ErrorContains(t, err, want, in)
		require.Zero(t, at, in)
	}
	for _, in := range []string{"local", "origin"} {
		_, err := r.Resolve(t.Context(), in, platforms.Address{})
		require.ErrorIs(t, err, directory.ErrLocal, in)
	}
	_, err := directory.Resolver{Accounts: func() []platforms.Account { return nil }}.Resolve(t.Context(), "slack", origin)
	require.ErrorContains(t, err, "no platform called")
}

// What RoomTarget writes means that room again.
func TestResolver_RoundTrip(t *testing.T) {
	r := town()
	for _, a := range r.Accounts() {
		for _, room := range r.Rooms(a) {
			if room.User == "U3" {
				continue
			}
			at, err := r.Resolve(t.Context(), directory.RoomTarget(a, room, true), platforms.Address{})
			require.NoError(t, err)
			if !room.Address.IsZero() {
				require.Equal(t, room.Address, at)
			}
		}
	}
}
