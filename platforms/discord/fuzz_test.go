package discord

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bwmarrin/discordgo"
	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest"
)

func quietAdapter(t testing.TB) *Adapter {
	a, err := New(Options{Token: testToken, APIURL: "http://127.0.0.1:1"})
	require.NoError(t, err)
	return a
}

// Whatever the gateway sends, an event is handled or skipped, and what is handed on is valid.
func FuzzDispatch(f *testing.F) {
	for _, seed := range [][2]string{
		{"MESSAGE_CREATE", `{"id":"1","channel_id":"2","content":"hi <@700000000000000001>","author":{"id":"3","username":"x"},"type":0}`},
		{"MESSAGE_CREATE", `{"id":"1","channel_id":"2","guild_id":"9","content":"hi","author":null,"mentions":[null],"attachments":[null],"message_snapshots":[{}],"message_reference":{"type":1}}`},
		{"MESSAGE_UPDATE", `{"id":"1","channel_id":"2","edited_timestamp":"2026-01-01T00:00:00Z","author":{"id":"3"}}`},
		{"MESSAGE_UPDATE", `{"id":"1","channel_id":"2","content":"hi <@700000000000000001>","edited_timestamp":"9999-12-31T23:59:59-12:00","author":{"id":"3","username":"x"},"mentions":[{"id":"700000000000000001"}],"type":0}`},
		{"MESSAGE_REACTION_ADD", `{"user_id":"3","channel_id":"2","message_id":"1","emoji":{"name":"x","id":null},"message_author_id":"700000000000000001"}`},
		{"INTERACTION_CREATE", `{"id":"5","type":3,"token":"t","channel_id":"2","user":{"id":"3"},"data":{"custom_id":"select:0","values":["a"]},"message":{"id":"1"}}`},
		{"INTERACTION_CREATE", `{"id":"5","type":2,"token":"t","channel_id":"2","member":{"roles":["1"]},"guild_id":"8","channel":{"type":11,"parent_id":"7"},"data":{"name":"x","options":[{"name":"a","value":3,"options":[]}]}}`},
		{"GUILD_CREATE", `{"id":"9","channels":[{"id":"2","type":0}],"threads":[{"id":"4","type":11,"parent_id":"2"}],"roles":[{"id":"1","tags":{"bot_id":"700000000000000001"}}]}`},
		{"THREAD_DELETE", `{"id":"4"}`}, {"READY", `{"session_id":"s","user":{"id":"700000000000000001"},"guilds":[{"id":"1","unavailable":true}]}`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, kind, raw string) {
		a := quietAdapter(t)
		a.rooms.put(place{channel: "2", parent: "2", guild: "9", kind: discordgo.ChannelTypeGuildText})
		sink := &platformtest.Sink{}
		if kind == "READY" || strings.Contains(raw, "guild_id") && !strings.Contains(raw, `"channel_id":"2"`) {
			return // would ask Discord
		}
		_ = a.dispatch(t.Context(), &link{a: a, sink: sink}, frame{T: kind, D: json.RawMessage(raw), S: 7})
		require.Empty(t, sink.Invalid())
		for _, e := range sink.Events() {
			require.NoError(t, e.Validate())
			if e.Message != nil {
				require.True(t, utf8.ValidString(e.Message.Text))
			}
		}
	})
}

// The text of a message: mentions become names, our own goes, and nothing is invented.
func TestTextOf(t *testing.T) {
	a := quietAdapter(t)
	a.self.now.Name = "herald"
	a.rooms.put(place{channel: "20", parent: "20", name: "general"})
	pat := &discordgo.User{ID: "30", Username: "pat", GlobalName: "Pat"}
	for in, want := range map[string]string{
		"<@" + testBot + "> hello":          "hello",
		"<@!" + testBot + ">, hello":        "hello",
		"hello <@" + testBot + ">":          "hello",
		"hey <@" + testBot + "> what now":   "hey what now",
		"<@" + testBot + ">":                "@herald",
		"<@30> and <@31>":                   "@Pat and <@31>",
		"in <#20> or <#21>":                 "in #general or <#21>",
		"<:party:123> <a:dance:456>":        ":party: :dance:",
		"</status:99> now":                  "/status now",
		"<@&77> <t:1700000000:R> a < b > c": "<@&77> <t:1700000000:R> a < b > c",
		"  spaced  ":                        "spaced",
		"":                                  "",
	} {
		m := &message{Content: in, Mentions: []*discordgo.User{pat, nil, {ID: testBot}}}
		require.Equal(t, want, a.textOf(m, a.me()), in)
	}
	require.Equal(t, "Build\nfailed", a.textOf(&message{Embeds: []embed{{Title: "Build", Description: "failed"}}}, a.me()))
}

func FuzzTextOf(f *testing.F) {
	f.Add("<@700000000000000001> <@!1> <#2> <:a:3>")
	f.Add("<@700000000000000\x00001>")
	a := quietAdapter(f)
	f.Fuzz(func(t *testing.T, text string) {
		out := a.textOf(&message{Content: text}, a.me())
		require.LessOrEqual(t, len(out), len(text)+1)
		require.NotContains(t, out, "<@"+testBot+">")
	})
}

// Options: what can't work is refused with the key's name, and no secret is repeated.
func TestNew_ChecksOptions(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		says string
	}{
		"no token":       {Options{}, "platforms.discord.token: is empty"},
		"quoted token":   {Options{Token: `"secret.token"`}, "platforms.discord.token: is malformed"},
		"bad url":        {Options{Token: testToken, APIURL: "discord.com"}, "platforms.discord.api_url"},
		"bad proxy":      {Options{Token: testToken, Proxy: "ftp://user:hunter2@host"}, "platforms.discord.proxy"},
		"bad policy":     {Options{Token: testToken, CommandSync: "sometimes"}, "want safe, bulk or off"},
		"negative limit": {Options{Token: testToken, Missed: Missed{Limit: -1}}, "missed_message_backfill.limit"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(c.o)
			require.ErrorContains(t, err, c.says)
			require.ErrorIs(t, err, platforms.ErrPermanent)
			require.NotContains(t, err.Error(), "hunter2")
			require.NotContains(t, err.Error(), "secret.token")
		})
	}
	for raw, want := range map[string]string{
		"": DefaultAPIURL, "http://127.0.0.1:9": "http://127.0.0.1:9/api/v10", "http://x/api/": "http://x/api/v10", "http://x/api/v9": "http://x/api/v9",
	} {
		a, err := New(Options{Token: "Bot " + testToken, APIURL: raw})
		require.NoError(t, err)
		require.Equal(t, want, a.s.api.String())
		require.Equal(t, platforms.AccountID(testBot), a.Account().ID)
		require.Equal(t, AccountOf(testToken), a.Account())
	}
	odd := AccountOf("not.a.discord.token")
	require.Len(t, string(odd.ID), 12)
	require.NotContains(t, string(odd.ID), "not")
}
