package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms/platformtest/discordtest"
	"herald/platforms/platformtest/signaltest"
	"herald/platforms/platformtest/slacktest"
	"herald/platforms/platformtest/teamstest"
)

// P13 on every platform, by the real binary: with an allowlist a person who is not on it gets nothing: no answer in
// private nor in a room, no press of a button, no reaction, no command. The person who is on it is served before and after.

func TestStrangers_Slack(t *testing.T) {
	o := newSlackOffice(t)
	mal := o.fake.AddUser("", slacktest.User{RealName: "Mal Ory"})
	o.fake.Join("", o.general, mal.ID)
	private := o.fake.OpenDM("", mal.ID)
	root := o.fake.Write(slacktest.Post{Channel: o.general, User: o.pat.ID, Mention: true, Text: "ask me which colour I like: red, green or blue"})
	asked := o.sees(o.general, root, "colour")
	before := len(o.fake.Visible("", o.general, root))

	o.fake.Write(slacktest.Post{Channel: private, User: mal.ID, Text: "what is 6 times 7?"})
	top := o.fake.Write(slacktest.Post{Channel: o.general, User: mal.ID, Mention: true, Text: "what is 6 times 7?"})
	o.fake.Write(slacktest.Post{Channel: o.general, User: mal.ID, Thread: root, Text: "what is 6 times 7?"})
	o.fake.Press(slacktest.Press{Channel: o.general, Message: asked.TS, User: mal.ID, Button: "green"})
	o.fake.React("", o.general, asked.TS, mal.ID, "thumbsup")
	run := o.fake.Run(slacktest.Command{Channel: o.general, User: mal.ID, Name: "/status"})
	o.until("all is acknowledged", func() bool { return o.fake.Pending() == 0 })
	o.fake.Say("", o.dm, "what is 6 times 8?")
	o.sees(o.dm, "", "= 48")

	require.Empty(t, o.fake.Visible("", private, ""))
	require.Empty(t, o.fake.Visible("", o.general, top))
	require.Len(t, o.fake.Visible("", o.general, root), before)
	m, _ := o.fake.Message("", o.general, asked.TS)
	require.NotEmpty(t, m.Buttons, "the question is still open")
	i, _ := o.fake.Interaction(run)
	for _, r := range i.Responses {
		require.NotContains(t, string(r), "demo", "the command told nothing")
	}
	o.fake.Press(slacktest.Press{Channel: o.general, Message: asked.TS, User: o.pat.ID, Button: "green"})
	o.until("the right person is heard", func() bool { m, _ := o.fake.Message("", o.general, asked.TS); return len(m.Buttons) == 0 })
}

func TestStrangers_Discord(t *testing.T) {
	g := newDiscordGuild(t)
	mal := g.fake.AddUser(discordtest.User{Username: "mal"})
	c, _ := g.fake.Channel(g.general)
	g.fake.AddMember(c.Guild, mal)
	private := g.fake.DM(mal)
	thread := g.fake.Write(discordtest.Post{Channel: g.general, From: g.person, Text: "ask me which colour I like: red, green or blue", MentionBot: true})
	asked := g.sees(thread, "colour")
	before := len(g.fake.Visible(thread))

	g.fake.Write(discordtest.Post{Channel: private, From: mal, Text: "what is 6 times 7?"})
	top := g.fake.Write(discordtest.Post{Channel: g.general, From: mal, Text: "what is 6 times 7?", MentionBot: true})
	g.fake.Write(discordtest.Post{Channel: thread, From: mal, Text: "what is 6 times 7?"})
	g.fake.React(thread, asked.ID, "👍", mal)
	press, ok := g.fake.Press(thread, asked.ID, asked.Buttons[0][0].Data, mal)
	require.True(t, ok)
	g.until("the press is confirmed", func() bool { i, _ := g.fake.Interaction(press); return i.Answered })
	g.fake.Say(g.dm, "what is 6 times 8?")
	g.sees(g.dm, "= 48")

	require.Empty(t, g.fake.Visible(private))
	require.Empty(t, g.fake.Visible(g.general))
	_, made := g.fake.Channel(top)
	require.False(t, made, "no thread was opened for a stranger")
	require.Len(t, g.fake.Visible(thread), before)
	for _, m := range g.fake.Visible(thread) {
		if m.ID == asked.ID {
			require.NotEmpty(t, m.Buttons, "the question is still open")
		}
	}
}

func TestStrangers_Teams(t *testing.T) {
	o := newTeamsOffice(t)
	mal := o.fake.AddUser("Mal Ory")
	private := o.fake.Personal(mal)
	o.say(teamstest.Post{Room: o.channel.ID, Thread: o.root, Mention: true, Text: "ask me which colour I like: red, green or blue"})
	asked := o.sees(o.thread(), "colour")
	before := len(o.fake.Visible(o.thread()))

	o.say(teamstest.Post{Room: private.ID, From: mal, Text: "what is 6 times 7?"})
	o.say(teamstest.Post{Room: o.channel.ID, Thread: o.root, From: mal, Mention: true, Text: "what is 6 times 7?"})
	o.fake.React(o.channel.ID, asked.ID, "like", mal)
	id, err := o.fake.Press(o.channel.ID, asked.ID, "green", mal, nil)
	require.NoError(t, err)
	o.until("the press is answered", func() bool { i, _ := o.fake.Invocation(id); return i.Done })
	o.say(teamstest.Post{Room: o.dm.ID, Text: "what is 6 times 8?"})
	o.sees(o.dm.ID, "= 48")

	require.Empty(t, o.fake.Visible(private.ID))
	require.Len(t, o.fake.Visible(o.thread()), before)
	for _, m := range o.fake.Visible(o.thread()) {
		if m.ID == asked.ID {
			require.NotEmpty(t, m.Buttons, "the question is still open")
		}
	}
}

func TestStrangers_Signal(t *testing.T) {
	h := newSignal(t)
	h.write("", "what is 6 times 7?")
	answer := h.sees(signalAnn, "= 42")

	h.fake.Write(signaltest.Post{From: signalBob, Text: "what is 6 times 7?"})
	h.fake.Write(signaltest.Post{From: signalBob, Group: h.group, Text: signaltest.Placeholder + " what is 6 times 7?", Mentions: []string{h.account}})
	h.fake.React(signalBob, h.group, h.account, answer.Timestamp, "👍", false)
	h.write("", "what is 6 times 8?")
	h.sees(signalAnn, "= 48")

	require.Empty(t, h.fake.Visible(signalBob))
	for _, m := range h.fake.Visible(h.group) {
		require.NotContains(t, strings.ToLower(m.Text), "42", "groups are off until they are named")
	}
	require.Empty(t, h.fake.Visible(h.group))
}
