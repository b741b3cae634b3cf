package cron_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/platforms"
	"herald/sessions"
)

var yes, no = true, false

// TestMirror_Table has the rows of the mirroring table that need no adapter. Rows 10 to 14 send; the adapters test them.
func TestMirror_Table(t *testing.T) {
	dm := made(at("slack", "D0AAA"), platforms.DM)
	for _, c := range []struct {
		name     string
		deliver  string
		origin   *sessions.Origin
		global   bool
		attach   *bool
		chats    []platforms.ChatID
		eligible bool
	}{
		{"Row1_OriginChat", "origin", dm, true, nil, []platforms.ChatID{"D0AAA"}, true},
		{"Row2_OriginFallback", "origin", nil, true, nil, []platforms.ChatID{"D0HOME"}, true},
		{"Row3_AllNever", "all", nil, true, nil, []platforms.ChatID{"D0HOME"}, false},
		{"Row3b_AllNeverWithAttach", "all", nil, true, &yes, []platforms.ChatID{"D0HOME"}, false},
		{"Row4_BarePlatformNever", "slack", nil, true, nil, []platforms.ChatID{"D0HOME"}, false},
		{"Row4b_BarePlatformNeverWithAttach", "slack", nil, false, &yes, []platforms.ChatID{"D0HOME"}, false},
		{"Row5_ExplicitNotByGlobal", "slack:D0EXPL", nil, true, nil, []platforms.ChatID{"D0EXPL"}, false},
		{"Row6_ExplicitByAttach", "slack:D0EXPL", nil, false, &yes, []platforms.ChatID{"D0EXPL"}, true},
		{"Row7_OriginThenAll", "origin,all", nil, true, nil, []platforms.ChatID{"D0HOME"}, true},
		{"Row8_AllThenOrigin", "all,origin", nil, true, nil, []platforms.ChatID{"D0HOME"}, true},
		{"Row9_OtherChatThanOrigin", "slack:D0OTHER", dm, true, nil, []platforms.ChatID{"D0OTHER"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			targets, problems := cron.ResolveTargets(t.Context(), c.deliver, c.origin, slackHome())
			require.Empty(t, problems)
			require.Len(t, targets, len(c.chats))
			for i, target := range targets {
				require.Equal(t, c.chats[i], target.Address.Chat)
				require.Equal(t, c.eligible, cron.MirrorEligible(target, c.origin, c.attach, c.global))
			}
		})
	}
	t.Run("Row15_SeedGuard", func(t *testing.T) {
		require.True(t, cron.InChannelSeedAllowed(true, ""))
		require.True(t, cron.InChannelSeedAllowed(false, "U123"))
		require.False(t, cron.InChannelSeedAllowed(false, ""))
	})
}

// TestMirror_A8_3 is the whole table: who is eligible with attach true, attach false, global on, global off.
func TestMirror_A8_3(t *testing.T) {
	origin := made(at("slack", "D0AAA"), platforms.DM)
	threaded := made(in(at("slack", "C1"), "17.5"), platforms.Channel)
	target := func(a platforms.Address, from cron.Provenance) cron.Target {
		return cron.Target{Address: a, From: from}
	}
	for _, c := range []struct {
		name                              string
		target                            cron.Target
		origin                            *sessions.Origin
		attached, detached, global, quiet bool
	}{
		{"origin", target(at("slack", "D0AAA"), cron.FromOrigin), origin, true, false, true, false},
		{"origin by its address", target(at("slack", "D0AAA"), cron.FromExplicit), origin, true, false, true, false},
		{"origin in another case", target(platforms.Address{Platform: "SLACK", Account: "S", Chat: "D0AAA"}, cron.FromExplicit), origin, true, false, true, false},
		{"origin with its thread", target(in(at("slack", "C1"), "17.5"), cron.FromExplicit), threaded, true, false, true, false},
		{"origin without its stale thread", target(at("slack", "C1"), cron.FromOrigin), threaded, true, false, true, false},
		{"a thread of an origin that pins none", target(in(at("slack", "D0AAA"), "1.1"), ""), origin, true, false, true, false},
		{"fallback", target(at("slack", "D0HOME"), cron.FromFallback), nil, true, false, true, false},
		{"explicit", target(at("slack", "D0EXPL"), cron.FromExplicit), nil, true, false, false, false},
		{"explicit beside an origin", target(at("slack", "D0EXPL"), cron.FromExplicit), origin, true, false, false, false},
		{"explicit in another thread than the origin's", target(in(at("slack", "C1"), "2.2"), cron.FromExplicit), threaded, true, false, false, false},
		{"explicit in the same chat of another account", target(platforms.Address{Platform: "slack", Account: "T2", Chat: "D0AAA"}, cron.FromExplicit), origin, true, false, false, false},
		{"explicit with the same chat on another platform", target(at("telegram", "D0AAA"), cron.FromExplicit), origin, true, false, false, false},
		{"a chat in another case is another chat", target(at("slack", "d0aaa"), cron.FromExplicit), origin, true, false, false, false},
		{"all", target(at("slack", "D0HOME"), ""), origin, false, false, false, false},
		{"bare platform", target(at("slack", "D0HOME"), ""), nil, false, false, false, false},
		{"all in another thread than the origin's", target(at("slack", "C1"), ""), threaded, false, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.attached, cron.MirrorEligible(c.target, c.origin, &yes, true), "attach true")
			require.Equal(t, c.attached, cron.MirrorEligible(c.target, c.origin, &yes, false), "attach true, global off")
			require.Equal(t, c.detached, cron.MirrorEligible(c.target, c.origin, &no, true), "attach false")
			require.Equal(t, c.detached, cron.MirrorEligible(c.target, c.origin, &no, false), "attach false, global off")
			require.Equal(t, c.global, cron.MirrorEligible(c.target, c.origin, nil, true), "global")
			require.Equal(t, c.quiet, cron.MirrorEligible(c.target, c.origin, nil, false), "global off")
		})
	}
}

func TestMirror_A8_2_Enabled(t *testing.T) {
	require.True(t, cron.MirrorEnabled(&yes, false))
	require.False(t, cron.MirrorEnabled(&no, true))
	require.True(t, cron.MirrorEnabled(nil, true))
	require.False(t, cron.MirrorEnabled(nil, false))
}

func TestMirror_A8_7_IsDM(t *testing.T) {
	for _, c := range []struct {
		name   string
		origin *sessions.Origin
		at     platforms.Address
		want   bool
	}{
		{"origin says dm", made(at("discord", "9"), platforms.DM), at("discord", "9"), true},
		{"origin says group, whatever the id", made(at("slack", "D1"), platforms.Group), at("slack", "D1"), false},
		{"a thread of the origin's chat", made(at("discord", "9"), platforms.DM), in(at("discord", "9"), "1"), true},
		{"origin does not say: Slack's form", made(at("slack", "D1"), ""), at("slack", "D1"), true},
		{"no origin: Slack's form", nil, at("slack", "D0HOME"), true},
		{"Slack channel", nil, at("slack", "C0HOME"), false},
		{"another chat is not what the origin's is", made(at("slack", "D1"), platforms.DM), at("slack", "C1"), false},
		{"a D elsewhere says nothing", nil, at("discord", "D1"), false},
		{"Telegram person", nil, at("telegram", "123"), true},
		{"Telegram group", nil, at("telegram", "-123"), false},
		{"Telegram nobody", nil, at("telegram", ""), false},
		{"Signal person", nil, at("signal", "+49151"), true},
		{"Signal group", nil, at("signal", "group:AAAA"), false},
		{"browser chat", nil, at("web", "main"), true},
		{"Teams does not tell", nil, at("teams", "a:1"), false},
	} {
		require.Equal(t, c.want, cron.IsDM(rules, c.origin, c.at), c.name)
	}
}

func TestMirror_A8_8_InChannelContinuable(t *testing.T) {
	channel := made(at("slack", "C1"), platforms.Channel)
	nobody := &sessions.Origin{Address: at("slack", "C1"), ChatType: platforms.Channel}
	for _, c := range []struct {
		name   string
		target cron.Target
		origin *sessions.Origin
		attach *bool
		global bool
		want   bool
	}{
		{"origin, mirroring off", cron.Target{Address: at("slack", "C1"), From: cron.FromOrigin}, channel, nil, false, true},
		{"origin, detached", cron.Target{Address: at("slack", "C1"), From: cron.FromOrigin}, channel, &no, true, true},
		{"origin without a person", cron.Target{Address: at("slack", "C1"), From: cron.FromOrigin}, nobody, nil, false, true},
		{"fallback into a DM", cron.Target{Address: at("slack", "D0HOME"), From: cron.FromFallback}, nil, nil, true, true},
		{"fallback into a DM, mirroring off", cron.Target{Address: at("slack", "D0HOME"), From: cron.FromFallback}, nil, nil, false, false},
		{"fallback into a channel: no reply would find it", cron.Target{Address: at("slack", "C0HOME"), From: cron.FromFallback}, nil, nil, true, false},
		{"explicit DM, attached", cron.Target{Address: at("slack", "D0EXPL"), From: cron.FromExplicit}, nil, &yes, false, true},
		{"explicit DM by the configuration alone", cron.Target{Address: at("slack", "D0EXPL"), From: cron.FromExplicit}, nil, nil, true, false},
		{"explicit channel with a person, attached", cron.Target{Address: at("slack", "C2"), From: cron.FromExplicit}, channel, &yes, false, true},
		{"explicit channel without a person, attached", cron.Target{Address: at("slack", "C2"), From: cron.FromExplicit}, nil, &yes, false, false},
		{"explicit channel elsewhere: the person is not of there", cron.Target{Address: at("discord", "2"), From: cron.FromExplicit}, channel, &yes, false, false},
		{"all", cron.Target{Address: at("slack", "D0HOME")}, nil, &yes, true, false},
	} {
		require.Equal(t, c.want, cron.InChannelContinuable(rules, c.target, c.origin, c.attach, c.global), c.name)
	}
}
