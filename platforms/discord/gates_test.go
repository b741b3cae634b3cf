package discord

import (
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/discordtest"
)

// The rules of where the bot answers, in their order of precedence, on real events of the gateway.
func TestAdapter_WhereItAnswers(t *testing.T) {
	yes, no := true, false
	mention := func(w *world) discordtest.Post {
		return discordtest.Post{Channel: w.channel, Text: "hello", MentionBot: true}
	}
	plain := func(w *world) discordtest.Post { return discordtest.Post{Channel: w.channel, Text: "hello"} }
	inThread := func(w *world) discordtest.Post { return discordtest.Post{Channel: w.thread, Text: "hello"} }
	with := func(p func(*world) discordtest.Post, change func(*world, *discordtest.Post)) func(*world) discordtest.Post {
		return func(w *world) discordtest.Post {
			post := p(w)
			change(w, &post)
			return post
		}
	}
	for _, c := range []struct {
		name    string
		options func(*world, *Options)
		post    func(*world) discordtest.Post
		heard   bool
		thread  bool // the answer goes into a new thread
	}{
		{"a direct message", nil, with(plain, func(w *world, p *discordtest.Post) { p.Channel = w.dm }), true, false},
		{"a direct message with lists of channels", func(w *world, o *Options) {
			o.AllowedChannels, o.IgnoredChannels = []string{"1"}, []string{"2"}
		}, with(plain, func(w *world, p *discordtest.Post) { p.Channel = w.dm }), true, false},
		{"a mention opens a thread", nil, mention, true, true},
		{"no mention", nil, plain, false, false},
		{"no mention is needed", func(_ *world, o *Options) { o.RequireMention = &no }, plain, true, false},
		{"a mention where none is needed opens a thread", func(_ *world, o *Options) { o.RequireMention = &no }, mention, true, true},
		{"threads are off", func(_ *world, o *Options) { o.AutoThread = &no }, mention, true, false},
		{"no threads in this channel", func(w *world, o *Options) { o.NoThreadChannels = []string{string(w.channel)} }, mention, true, false},
		{"no threads in any channel", func(_ *world, o *Options) { o.NoThreadChannels = []string{"*"} }, mention, true, false},
		{"a free channel", func(w *world, o *Options) { o.FreeChannels = []string{string(w.channel)} }, plain, true, false},
		{"a mention in a free channel", func(w *world, o *Options) { o.FreeChannels = []string{string(w.channel)} }, mention, true, false},
		{"a free channel with threads", func(w *world, o *Options) {
			o.FreeChannels, o.FreeAutoThread = []string{string(w.channel)}, true
		}, plain, true, true},
		{"every channel is free", func(_ *world, o *Options) { o.FreeChannels = []string{"*"} }, plain, true, false},
		{"a thread of a free channel", func(w *world, o *Options) { o.FreeChannels = []string{string(w.channel)} }, inThread, true, false},
		{"an ignored channel", func(w *world, o *Options) { o.IgnoredChannels = []string{string(w.channel)} }, mention, false, false},
		{"a thread of an ignored channel", func(w *world, o *Options) { o.IgnoredChannels = []string{string(w.channel)} },
			with(inThread, func(_ *world, p *discordtest.Post) { p.MentionBot = true }), false, false},
		{"ignored wins over allowed and free", func(w *world, o *Options) {
			o.IgnoredChannels, o.AllowedChannels, o.FreeChannels = []string{string(w.channel)}, []string{string(w.channel)},
				[]string{string(w.channel)}
		}, mention, false, false},
		{"not an allowed channel", func(w *world, o *Options) { o.AllowedChannels = []string{string(w.forum)} }, mention, false, false},
		{"an allowed channel", func(w *world, o *Options) { o.AllowedChannels = []string{string(w.channel)} }, mention, true, true},
		{"a thread of an allowed channel", func(w *world, o *Options) { o.AllowedChannels = []string{string(w.channel)} },
			with(inThread, func(_ *world, p *discordtest.Post) { p.MentionBot = true }), true, false},
		{"a foreign thread", nil, inThread, false, false},
		{"a mention in a foreign thread", nil, with(inThread, func(_ *world, p *discordtest.Post) { p.MentionBot = true }), true, false},
		{"somebody else is mentioned where no mention is needed", func(_ *world, o *Options) { o.RequireMention = &no },
			with(plain, func(w *world, p *discordtest.Post) { p.Text = "<@" + string(w.person) + "> hello" }), false, false},
		{"somebody else, and that is fine", func(_ *world, o *Options) { o.RequireMention, o.IgnoreOtherMentions = &no, &no },
			with(plain, func(w *world, p *discordtest.Post) { p.Text = "<@" + string(w.person) + "> hello" }), true, false},
		{"both are mentioned", nil, with(mention, func(w *world, p *discordtest.Post) { p.Text = "<@" + string(w.person) + "> hello" }), true, true},
		{"a wake word", func(_ *world, o *Options) { o.MentionPatterns = []string{`^jarvis\b`, `(`} },
			with(plain, func(_ *world, p *discordtest.Post) { p.Text = "Jarvis, hello" }), true, true},
		{"a webhook", nil, with(plain, func(_ *world, p *discordtest.Post) { p.Webhook = "ci" }), false, false},
		{"a webhook where no mention is needed", func(_ *world, o *Options) { o.RequireMention = &no },
			with(plain, func(_ *world, p *discordtest.Post) { p.Webhook = "ci" }), false, false},
		{"a webhook that mentions", nil, with(mention, func(_ *world, p *discordtest.Post) { p.Webhook = "ci" }), true, true},
		{"bots need no mention", func(_ *world, o *Options) { o.RequireMention, o.BotsRequireMention = &no, &no },
			with(plain, func(_ *world, p *discordtest.Post) { p.Webhook = "ci" }), true, false},
		{"the role of the bot", nil, with(plain, func(w *world, p *discordtest.Post) {
			p.Text = "<@&" + string(w.fake.BotRole(w.guild)) + "> hello"
		}), true, true},
		{"everyone is no mention", nil, with(plain, func(_ *world, p *discordtest.Post) { p.Text = "@everyone hello" }), false, false},
		{"somebody joined", nil, with(mention, func(_ *world, p *discordtest.Post) { p.Type = 7 }), false, false},
		{"a pin", func(_ *world, o *Options) { o.RequireMention = &no }, with(plain, func(_ *world, p *discordtest.Post) { p.Type = 6 }), false, false},
		{"a forum's post", nil, with(mention, func(w *world, p *discordtest.Post) { p.Channel = w.post }), true, false},
		{"a mention needed in threads", func(_ *world, o *Options) { o.ThreadRequireMention = true },
			with(inThread, func(_ *world, p *discordtest.Post) { p.MentionBot = true }), true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := prepareRig(t, discordtest.Options{}, nil)
			chain := r.change
			r.change = func(o *Options) {
				chain(o)
				o.AutoThread = &yes
				if c.options != nil {
					c.options(r.world, o)
				}
			}
			r.start()
			post := c.post(r.world)
			said := r.fake.Write(post)
			n := r.settle()
			if !c.heard {
				require.Zero(t, n, "%+v", r.sink.Events())
				return
			}
			require.Equal(t, 1, n)
			e := r.sink.Events()[0]
			require.Equal(t, id(said), e.Message.ID)
			if c.thread {
				require.Equal(t, address(r.channel, said), e.Address)
				require.Equal(t, platforms.Thread, e.ChatType)
				require.Equal(t, platforms.ChatID(r.channel), e.ParentChat)
			} else {
				require.NotEqual(t, platforms.ThreadID(said), e.Address.Thread)
			}
		})
	}
}

// A reply to an answer that is in the channel stays in the channel.
func TestAdapter_AReplyToUsNeedsNoMention(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	ours := r.mustSend(platforms.Outgoing{Address: address(r.channel, ""), Text: words("an answer")})
	r.fake.Write(discordtest.Post{Channel: r.channel, Text: "and more", ReplyTo: discordtest.ID(ours.Message), Quiet: true})
	e := r.last(1)
	require.True(t, e.Addressed)
	require.Equal(t, address(r.channel, ""), e.Address)
	require.True(t, e.Message.ReplyTo.Own)
	require.Equal(t, "an answer", e.Message.ReplyTo.Text)
}

// Where the bot takes part no mention is needed, also after a restart; elsewhere one is.
func TestAdapter_InOurThreadsNoMentionIsNeeded(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	r.fake.Say(r.thread, "not for the bot")
	r.fake.Write(discordtest.Post{Channel: r.thread, Text: "for the bot", MentionBot: true})
	first := r.last(1)
	require.Equal(t, "for the bot", first.Message.Text)
	require.True(t, first.Message.Earlier, "it is the first that speaks to the bot")
	r.fake.Say(r.thread, "go on")
	second := r.last(2)
	require.Equal(t, first.Address, second.Address)
	require.Equal(t, first.ChatType, second.ChatType)
	require.True(t, second.Addressed)
	require.False(t, second.Message.Earlier)
	r.stop()
	r.fake.Forget()
	r.start()
	r.fake.Say(r.thread, "still there?")
	require.Equal(t, "still there?", r.last(3).Message.Text)
}

func TestAdapter_ThreadRequireMention(t *testing.T) {
	r := newRig(t, discordtest.Options{}, func(o *Options) { o.ThreadRequireMention = true })
	r.fake.Write(discordtest.Post{Channel: r.thread, Text: "one", MentionBot: true})
	r.last(1)
	r.fake.Say(r.thread, "two")
	require.Equal(t, 1, r.settle())
}

// The roles of a person come along, in direct chats from the servers that are shared.
func TestAdapter_RolesOfASender(t *testing.T) {
	r := prepareRig(t, discordtest.Options{}, func(o *Options) { o.LookupRoles = true })
	role := r.fake.AddRole(r.guild, "staff", 0)
	other := r.fake.AddUser(discordtest.User{Username: "kim"})
	r.fake.AddMember(r.guild, other, role)
	r.start()
	r.fake.Write(discordtest.Post{Channel: r.fake.DM(other), From: other, Text: "hello"})
	require.Contains(t, r.last(1).Sender.Roles, string(role))
	r.fake.Write(discordtest.Post{Channel: r.channel, From: other, Text: "hello", MentionBot: true})
	require.Contains(t, r.last(2).Sender.Roles, string(role))
	r.fake.Say(r.dm, "hello")
	require.NotContains(t, r.last(3).Sender.Roles, string(role))
}
