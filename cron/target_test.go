package cron_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/platforms"
	"herald/platforms/all"
	"herald/sessions"
)

// atlas is places as a gateway would find them: one account for each platform, ids taken as they are.
type atlas struct {
	homes  map[platforms.Name]platforms.Address
	broken map[platforms.Name]error
	// running are further platforms, without a home channel.
	running []platforms.Name
}

func (a atlas) Platforms() []platforms.Name {
	list := append([]platforms.Name{}, a.running...)
	for name := range a.homes { // in a random order
		list = append(list, name)
	}
	for name := range a.broken {
		list = append(list, name)
	}
	return list
}

// rules are those of all platforms.
var rules = platforms.RulesOf(all.Kinds())

func (a atlas) Rules(name platforms.Name) platforms.Rules { return rules.Of(name) }

func (a atlas) Home(_ context.Context, name platforms.Name) (platforms.Address, bool, error) {
	if err := a.broken[name]; err != nil {
		return platforms.Address{}, false, err
	}
	at, ok := a.homes[name]
	return at, ok, nil
}

func (a atlas) Find(_ context.Context, target string) (platforms.Address, error) {
	tokens, err := cron.ParseDeliver(target)
	if err != nil {
		return platforms.Address{}, err
	}
	t := tokens[0]
	if t.Place == "" {
		home, ok := a.homes[t.Platform]
		if !ok || t.Account != "" && t.Account != home.Account {
			return platforms.Address{}, errors.New("no home channel")
		}
		return home, nil
	}
	if t.Place == "#nowhere" {
		return platforms.Address{}, errors.New("no room is called #nowhere")
	}
	at := at(t.Platform, "")
	chat, thread, _ := strings.Cut(t.Place, ":")
	at.Chat, at.Thread = platforms.ChatID(chat), platforms.ThreadID(thread)
	return at, nil
}

// at is a place in the one account that a platform has here.
func at(name platforms.Name, chat string) platforms.Address {
	return platforms.Address{Platform: name, Account: platforms.AccountID(strings.ToUpper(string(name)[:1])), Chat: platforms.ChatID(chat)}
}

func in(a platforms.Address, thread string) platforms.Address {
	a.Thread = platforms.ThreadID(thread)
	return a
}

func slackHome() atlas {
	return atlas{homes: map[platforms.Name]platforms.Address{"slack": at("slack", "D0HOME")}, running: []platforms.Name{"telegram", "discord"}}
}

func made(a platforms.Address, kind platforms.ChatType) *sessions.Origin {
	return &sessions.Origin{Address: a, ChatType: kind, User: "U1"}
}

func TestResolveTargets(t *testing.T) {
	dm := made(at("slack", "D0AAA"), platforms.DM)
	threaded := made(in(at("slack", "C1"), "17.5"), platforms.Channel)
	atHome := made(in(at("slack", "D0HOME"), "17.5"), platforms.DM)
	threadedHome := slackHome()
	threadedHome.homes["slack"] = in(at("slack", "D0HOME"), "1.1")
	everywhere := atlas{homes: map[platforms.Name]platforms.Address{
		"matrix": at("matrix", "!m"), "irc": at("irc", "#i"), "web": at("web", "w"), "teams": at("teams", "t"), "signal": at("signal", "s"),
		"slack": at("slack", "D0HOME"), "discord": at("discord", "d"), "telegram": at("telegram", "1"),
	}}
	for _, c := range []struct {
		name    string
		deliver string
		origin  *sessions.Origin
		places  atlas
		want    []cron.Target
		// problems are parts of the problems' texts, in order.
		problems []string
	}{
		{"local", "local", dm, slackHome(), nil, nil},
		{"nothing is local", "", dm, slackHome(), nil, nil},
		{"local adds nothing", "local,slack", nil, slackHome(), []cron.Target{{Address: at("slack", "D0HOME"), Token: "slack"}}, nil},
		{"origin", "origin", dm, slackHome(), []cron.Target{{Address: at("slack", "D0AAA"), Token: "origin", From: cron.FromOrigin}}, nil},
		{"origin with its thread", "origin", threaded, slackHome(), []cron.Target{{Address: in(at("slack", "C1"), "17.5"), Token: "origin", From: cron.FromOrigin}}, nil},
		{"origin of nobody: the first home", "origin", nil, everywhere, []cron.Target{{Address: at("telegram", "1"), Token: "origin", From: cron.FromFallback}}, nil},
		{"an origin without a chat is none", "origin", &sessions.Origin{Address: platforms.Address{Platform: "slack"}}, slackHome(),
			[]cron.Target{{Address: at("slack", "D0HOME"), Token: "origin", From: cron.FromFallback}}, nil},
		{"an origin without a platform is none", "origin", &sessions.Origin{Address: platforms.Address{Chat: "D0AAA"}}, slackHome(),
			[]cron.Target{{Address: at("slack", "D0HOME"), Token: "origin", From: cron.FromFallback}}, nil},
		{"origin and no home at all", "origin", nil, atlas{running: []platforms.Name{"slack"}}, nil, nil},
		{"origin,local and no home at all", "origin,local", nil, atlas{}, nil, nil},
		{"a fallback that can't be found is not passed over", "origin", nil,
			atlas{homes: map[platforms.Name]platforms.Address{"slack": at("slack", "D0HOME")}, broken: map[platforms.Name]error{"telegram": errors.New("two accounts")}},
			nil, []string{"two accounts"}},
		{"all, in order", "ALL", dm, everywhere, []cron.Target{
			{Address: at("telegram", "1"), Token: "ALL"}, {Address: at("discord", "d"), Token: "ALL"}, {Address: at("slack", "D0HOME"), Token: "ALL"},
			{Address: at("signal", "s"), Token: "ALL"}, {Address: at("teams", "t"), Token: "ALL"}, {Address: at("web", "w"), Token: "ALL"},
			{Address: at("irc", "#i"), Token: "ALL"}, {Address: at("matrix", "!m"), Token: "ALL"}}, nil},
		{"all without a home", "all", nil, atlas{running: []platforms.Name{"slack"}}, nil, []string{`deliver "all"`}},
		{"all with one that can't be found", "all", nil,
			atlas{homes: map[platforms.Name]platforms.Address{"slack": at("slack", "D0HOME")}, broken: map[platforms.Name]error{"telegram": errors.New("two accounts")}},
			[]cron.Target{{Address: at("slack", "D0HOME"), Token: "all"}}, []string{"two accounts"}},
		{"platform", "Slack", nil, slackHome(), []cron.Target{{Address: at("slack", "D0HOME"), Token: "Slack"}}, nil},
		{"platform without a home", "telegram", nil, slackHome(), nil, []string{`"telegram": no home channel`, `deliver "telegram"`}},
		{"platform of the origin: its home", "slack", dm, slackHome(), []cron.Target{{Address: at("slack", "D0HOME"), Token: "slack"}}, nil},
		{"platform of the origin without a home: its chat and thread", "telegram", made(in(at("telegram", "-5"), "7"), platforms.Group), slackHome(),
			[]cron.Target{{Address: in(at("telegram", "-5"), "7"), Token: "telegram"}}, nil},
		{"account of the origin without a home", "telegram/T", made(at("telegram", "-5"), platforms.Group), slackHome(),
			[]cron.Target{{Address: at("telegram", "-5"), Token: "telegram/T"}}, nil},
		{"another account than the origin's", "telegram/X", made(at("telegram", "-5"), platforms.Group), slackHome(), nil, []string{`"telegram/X"`, "deliver"}},
		{"account with a home", "slack/S", nil, slackHome(), []cron.Target{{Address: at("slack", "D0HOME"), Token: "slack/S"}}, nil},
		{"another account than the home's", "slack/X", nil, slackHome(), nil, []string{`"slack/X"`, "deliver"}},
		{"explicit", "slack:D0EXPL", nil, slackHome(), []cron.Target{{Address: at("slack", "D0EXPL"), Token: "slack:D0EXPL", From: cron.FromExplicit}}, nil},
		{"explicit with a thread", "telegram:-5:7", nil, slackHome(), []cron.Target{{Address: in(at("telegram", "-5"), "7"), Token: "telegram:-5:7", From: cron.FromExplicit}}, nil},
		{"unknown platforms are dropped", "path, slack, home_channel:x", nil, slackHome(), []cron.Target{{Address: at("slack", "D0HOME"), Token: "slack"}},
			[]string{`no platform called "path"`, `no platform called "home_channel"`}},
		{"one that can't be found does not stop the others", "slack:#nowhere,slack", nil, slackHome(), []cron.Target{{Address: at("slack", "D0HOME"), Token: "slack"}},
			[]string{`"slack:#nowhere"`}},
		{"what can't be read", "slack,local:x", nil, slackHome(), nil, []string{`"local:x"`}},
		{"stale: origin in the Slack home chat loses its thread", "origin", atHome, slackHome(),
			[]cron.Target{{Address: at("slack", "D0HOME"), Token: "origin", From: cron.FromOrigin}}, nil},
		{"stale: and takes the home's", "origin", atHome, threadedHome, []cron.Target{{Address: in(at("slack", "D0HOME"), "1.1"), Token: "origin", From: cron.FromOrigin}}, nil},
		{"stale: only on Slack", "origin", made(in(at("telegram", "1"), "7"), platforms.Group), everywhere,
			[]cron.Target{{Address: in(at("telegram", "1"), "7"), Token: "origin", From: cron.FromOrigin}}, nil},
		{"stale: the same chat of another account is another chat", "origin",
			made(platforms.Address{Platform: "slack", Account: "OTHER", Chat: "D0HOME", Thread: "17.5"}, platforms.DM), slackHome(),
			[]cron.Target{{Address: platforms.Address{Platform: "slack", Account: "OTHER", Chat: "D0HOME", Thread: "17.5"}, Token: "origin", From: cron.FromOrigin}}, nil},
		{"explicit origin chat inherits the thread", "slack:C1", threaded, slackHome(),
			[]cron.Target{{Address: in(at("slack", "C1"), "17.5"), Token: "slack:C1", From: cron.FromExplicit}}, nil},
		{"explicit origin chat with a thread keeps it", "slack:C1:2.2", threaded, slackHome(),
			[]cron.Target{{Address: in(at("slack", "C1"), "2.2"), Token: "slack:C1:2.2", From: cron.FromExplicit}}, nil},
		{"explicit origin chat does not inherit a stale thread", "slack:D0HOME", atHome, slackHome(),
			[]cron.Target{{Address: at("slack", "D0HOME"), Token: "slack:D0HOME", From: cron.FromExplicit}}, nil},
		{"another chat inherits nothing", "slack:C2", threaded, slackHome(), []cron.Target{{Address: at("slack", "C2"), Token: "slack:C2", From: cron.FromExplicit}}, nil},
		{"explicit origin chat elsewhere inherits nothing", "telegram:-5", made(in(at("telegram", "-5"), "7"), platforms.Group), slackHome(),
			[]cron.Target{{Address: at("telegram", "-5"), Token: "telegram:-5", From: cron.FromExplicit}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := cron.ResolveTargets(t.Context(), c.deliver, c.origin, c.places)
			require.Equal(t, c.want, got)
			require.Len(t, problems, len(c.problems), "%v", problems)
			for i, want := range c.problems {
				require.ErrorContains(t, problems[i], want)
			}
		})
	}
}

func TestResolveTargets_A8_5_SamePlaceOnce(t *testing.T) {
	dm := made(at("slack", "D0HOME"), platforms.DM)
	home := at("slack", "D0HOME")
	for _, c := range []struct {
		name    string
		deliver string
		origin  *sessions.Origin
		token   string
		from    cron.Provenance
	}{
		{"explicit over untagged", "slack,slack:D0HOME", nil, "slack", cron.FromExplicit},
		{"untagged does not take it back", "slack:D0HOME,all", nil, "slack:D0HOME", cron.FromExplicit},
		{"fallback over explicit", "slack:D0HOME,origin", nil, "slack:D0HOME", cron.FromFallback},
		{"explicit does not lower fallback", "origin,slack:D0HOME", nil, "origin", cron.FromFallback},
		{"fallback over untagged", "all,origin", nil, "all", cron.FromFallback},
		{"untagged does not lower fallback", "origin,all,slack", nil, "origin", cron.FromFallback},
		{"origin over all others", "slack,slack:D0HOME,all,origin", dm, "slack", cron.FromOrigin},
		{"origin is not lowered", "origin,all,slack:D0HOME,slack", dm, "origin", cron.FromOrigin},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := cron.ResolveTargets(t.Context(), c.deliver, c.origin, slackHome())
			require.Empty(t, problems)
			require.Equal(t, []cron.Target{{Address: home, Token: c.token, From: c.from}}, got)
		})
	}
	t.Run("the platform's name in any case is one place", func(t *testing.T) {
		got, _ := cron.ResolveTargets(t.Context(), "origin,slack:D0HOME", made(platforms.Address{Platform: "Slack", Account: "S", Chat: "D0HOME"}, platforms.DM), slackHome())
		require.Equal(t, []cron.Target{{Address: home, Token: "origin", From: cron.FromOrigin}}, got)
	})
	t.Run("threads and accounts are places of their own", func(t *testing.T) {
		got, _ := cron.ResolveTargets(t.Context(), "slack,slack:D0HOME:1.1,origin", made(platforms.Address{Platform: "slack", Account: "T2", Chat: "D0HOME"}, platforms.DM), slackHome())
		require.Len(t, got, 3)
	})
	t.Run("the first keeps its position", func(t *testing.T) {
		got, _ := cron.ResolveTargets(t.Context(), "slack,telegram:5,origin", nil, slackHome())
		require.Equal(t, []cron.Target{{Address: home, Token: "slack", From: cron.FromFallback},
			{Address: at("telegram", "5"), Token: "telegram:5", From: cron.FromExplicit}}, got)
	})
}
