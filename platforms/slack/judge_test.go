package slack

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms"
)

// offline is an adapter that knows who it is and asks nobody.
func offline(t testing.TB, change func(*Options)) *Adapter {
	o := Options{Tokens: []Token{{Token: testBot}}, AppToken: testApp, APIURL: "http://127.0.0.1:1/api"}
	if change != nil {
		change(&o)
	}
	adapters, err := New(o)
	require.NoError(t, err)
	a := adapters[0]
	a.me.Store(&identity{user: "UME", bot: "BME", team: "T1"})
	require.NoError(t, a.SetCommands(context.Background(), []platforms.CommandInfo{{Name: "stop"}, {Name: "new-session"}}))
	return a
}

// TestJudge is the table of the rules of where the bot answers, in their order of precedence.
func TestJudge(t *testing.T) {
	no, yes := false, true
	bots := func(v string) func() string { return func() string { return v } }
	type in struct {
		text, thread, parent, bot, user string
		kind                            platforms.ChatType
		active                          bool
	}
	for _, c := range []struct {
		name      string
		set       func(*Options)
		in        in
		drop      string
		addressed bool
	}{
		{"a direct chat", nil, in{kind: platforms.DM, text: "hi"}, "", true},
		{"a channel without a mention", nil, in{text: "hi"}, "unmentioned", false},
		{"a mention", nil, in{text: "hi <@UME>"}, "", true},
		{"a mention with a label", nil, in{text: "hi <@UME|herald>"}, "", true},
		{"a mention of somebody else", nil, in{text: "hi <@UYOU>"}, "unmentioned", false},
		{"a group chat is a shared place", nil, in{kind: platforms.Group, text: "hi"}, "unmentioned", false},
		{"a thread where it takes part", nil, in{text: "hi", thread: "1.1", active: true}, "", true},
		{"a thread where it does not", nil, in{text: "hi", thread: "1.1"}, "unmentioned", false},
		{"a thread on its own message", nil, in{text: "hi", thread: "1.1", parent: "UME"}, "", true},
		{"require_mention off", func(o *Options) { o.RequireMention = &no }, in{text: "hi"}, "", false},
		{"require_mention off, mentioned", func(o *Options) { o.RequireMention = &no }, in{text: "<@UME> hi"}, "", true},
		{"a free channel", func(o *Options) { o.FreeChannels = []string{"C1"} }, in{text: "hi"}, "", false},
		{"a free channel that must mention", func(o *Options) { o.FreeChannels, o.MentionChannels = []string{"C1"}, []string{"C1"} }, in{text: "hi"}, "unmentioned", false},
		{"require_mention off, a channel that must", func(o *Options) { o.RequireMention, o.MentionChannels = &no, []string{"C1"} }, in{text: "hi"}, "unmentioned", false},
		{"thread_require_mention", func(o *Options) { o.ThreadRequireMention = true }, in{text: "hi", thread: "1.1", active: true}, "unmentioned", false},
		{"thread_require_mention, mentioned", func(o *Options) { o.ThreadRequireMention = true }, in{text: "<@UME>", thread: "1.1"}, "", true},
		{"strict_mention in an active thread", func(o *Options) { o.StrictMention = true }, in{text: "hi", thread: "1.1", active: true}, "unmentioned", false},
		{"strict_mention in a free channel", func(o *Options) { o.StrictMention, o.FreeChannels = true, []string{"C1"} }, in{text: "hi"}, "unmentioned", false},
		{"others addressed", func(o *Options) { o.IgnoreOtherMentions, o.RequireMention = true, &no }, in{text: "<@UYOU> hi"}, "other_user", false},
		{"others addressed in an active thread", func(o *Options) { o.IgnoreOtherMentions = true }, in{text: " <@UYOU> hi", thread: "1.1", active: true}, "other_user", false},
		{"others addressed, and we", func(o *Options) { o.IgnoreOtherMentions = true }, in{text: "<@UYOU> <@UME> hi"}, "", true},
		{"others mentioned later", func(o *Options) { o.IgnoreOtherMentions, o.RequireMention = true, &no }, in{text: "hi <@UYOU>"}, "", false},
		{"outside allowed_channels", func(o *Options) { o.AllowedChannels = []string{"C2"} }, in{text: "<@UME> hi"}, "chat", false},
		{"a group outside allowed_channels", func(o *Options) { o.AllowedChannels = []string{"C2"} }, in{kind: platforms.Group, text: "<@UME> hi"}, "chat", false},
		{"a direct chat outside allowed_channels", func(o *Options) { o.AllowedChannels = []string{"C2"} }, in{kind: platforms.DM, text: "hi"}, "", true},
		{"inside allowed_channels", func(o *Options) { o.AllowedChannels = []string{"C1"} }, in{text: "<@UME> hi"}, "", true},
		{"an ignored channel wins", func(o *Options) { o.AllowedChannels, o.IgnoredChannels = []string{"C1"}, []string{"C1"} }, in{text: "<@UME> hi"}, "ignored", false},
		{"a thread of an ignored channel", func(o *Options) { o.IgnoredChannels = []string{"C1"} }, in{text: "<@UME> hi", thread: "1.1", active: true}, "ignored", false},
		{"a bot", nil, in{text: "<@UME> hi", bot: "BYOU"}, "bot", false},
		{"a bot in a direct chat", nil, in{kind: platforms.DM, text: "hi", bot: "BYOU"}, "bot", false},
		{"a bot that mentions", func(o *Options) { o.AllowBots = bots("mentions") }, in{text: "<@UME> hi", bot: "BYOU"}, "", true},
		{"a bot in an active thread must mention itself", func(o *Options) { o.AllowBots = bots("mentions") }, in{text: "hi", bot: "BYOU", thread: "1.1", active: true}, "bot", false},
		{"all bots, without a mention", func(o *Options) { o.AllowBots = bots("all") }, in{text: "hi", bot: "BYOU"}, "unmentioned", false},
		{"all bots, in an active thread", func(o *Options) { o.AllowBots = bots("all") }, in{text: "hi", bot: "BYOU", thread: "1.1", active: true}, "", true},
		{"a person who posts by the API", func(o *Options) { o.APIHumans = []string{"UPAT"} }, in{text: "<@UME> hi", bot: "BYOU", user: "UPAT"}, "", true},
		{"a wake word", func(o *Options) { o.MentionPatterns = []string{`^hey herald\b`, "("} }, in{text: "Hey Herald, hi"}, "", true},
		{"a command", nil, in{text: " !stop now"}, "", true},
		{"a command under strict_mention", func(o *Options) { o.StrictMention, o.RequireMention = true, &yes }, in{text: "!stop"}, "", true},
		{"a word that is no command", nil, in{text: "!important"}, "unmentioned", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := offline(t, c.set)
			m := wireMessage{Channel: "C1", Text: c.in.text, TS: "2.2", Thread: c.in.thread, ParentUser: c.in.parent, BotID: c.in.bot, User: c.in.user}
			kind := c.in.kind
			if kind == "" {
				kind = platforms.Channel
			}
			at := a.address("C1", c.in.thread)
			if c.in.active {
				require.NoError(t, a.threads.Add(context.Background(), threadName(at)))
			}
			v := a.judge(context.Background(), m, room{kind: kind}, at)
			require.Equal(t, c.drop, v.drop)
			require.Equal(t, c.addressed, v.addressed)
		})
	}
}

func TestPlace(t *testing.T) {
	no := false
	for _, c := range []struct {
		name     string
		inThread *bool
		kind     platforms.ChatType
		thread   string
		want     platforms.ThreadID
	}{
		{"a channel message opens a thread", nil, platforms.Channel, "", "5.5"},
		{"a group message too", nil, platforms.Group, "", "5.5"},
		{"a root with replies", nil, platforms.Channel, "5.5", "5.5"},
		{"a reply", nil, platforms.Channel, "1.1", "1.1"},
		{"flat", &no, platforms.Channel, "", ""},
		{"flat, a reply", &no, platforms.Channel, "1.1", "1.1"},
		{"a direct chat", nil, platforms.DM, "", ""},
		{"a thread of a direct chat", nil, platforms.DM, "1.1", "1.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := offline(t, func(o *Options) { o.ReplyInThread = c.inThread })
			at := a.place(wireMessage{Channel: "C1", TS: "5.5", Thread: c.thread}, room{kind: c.kind})
			require.Equal(t, c.want, at.Thread)
		})
	}
}

func TestCommandOf(t *testing.T) {
	a := offline(t, nil)
	for text, want := range map[string]string{
		"!stop":                "/stop",
		"  !STOP now please":   "/STOP now please",
		"!new_session a\nb":    "/new_session a\nb",
		"!important":           "!important",
		"stop!":                "stop!",
		"! stop":               "! stop",
		"hello !stop":          "hello !stop",
		"!stopit":              "!stopit",
		"":                     "",
		"!" + "x" + "\u00e4 y": "!" + "x" + "\u00e4 y",
	} {
		require.Equal(t, want, a.commandOf(text), "%q", text)
	}
	for text, want := range map[string]string{
		ownMark + " hi":                 "hi",
		ownMark + ", hi":                "hi",
		"hi " + ownMark + " there":      "hi there",
		"hi " + ownMark:                 "hi",
		ownMark:                         "",
		ownMark + ownMark + ": a, b":    "a, b",
		" " + ownMark + " !stop":        "!stop",
		"no mention":                    "no mention",
		"x" + ownMark + ", y" + ownMark: "x, y",
	} {
		require.Equal(t, want, a.unmention(text), "%q", text)
	}
}
