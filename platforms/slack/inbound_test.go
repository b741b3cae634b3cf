package slack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/slacktest"
)

// dropped counts what is not handed on.
type dropped struct {
	platforms.NoMetrics
	reasons chan string
}

func (d dropped) Dropped(reason string) { d.reasons <- reason }

func (w *world) watch() chan string {
	reasons := make(chan string, 1000)
	before := w.change
	w.change = func(o *Options) {
		if before != nil {
			before(o)
		}
		o.Metrics = dropped{reasons: reasons}
	}
	return reasons
}

// reason waits for the next event that is not handed on.
func (r *running) reason(reasons <-chan string) string {
	r.t.Helper()
	select {
	case reason := <-reasons:
		return reason
	case <-time.After(patience):
		r.t.Fatal("nothing was dropped")
		return ""
	}
}

// A mention comes as a message and as an app_mention: it is one event.
func TestInbound_MentionIsOneEvent(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	ts := w.fake.Write(slacktest.Post{Channel: w.general, User: w.pat.ID, Text: "hello &amp; &lt;welcome&gt;", Mention: true})
	w.fake.Say("", w.dm, "after it")
	events := r.events(2)
	e := events[0]
	require.Equal(t, platforms.EventID("m:"+w.general+":"+ts), e.ID)
	require.Equal(t, "hello & <welcome>", e.Message.Text)
	require.Equal(t, w.at(w.general, ts), e.Address, "a message opens a thread of its own")
	require.Equal(t, platforms.ScopeID("T1"), e.Scope)
	require.Equal(t, "general", e.ChatName)
	require.Equal(t, platforms.User{ID: platforms.UserID(w.pat.ID), Name: "Pat Doe", Username: "pat"}, e.Sender)
	require.False(t, e.Message.Earlier)
	require.WithinDuration(t, when(ts), e.At, 0)
	require.Equal(t, "Pat Doe", events[1].ChatName)
}

// Mentioned in the middle of a thread, the bot asks once for what was said before; then it follows, also after a
// restart.
func TestInbound_ThreadIsFollowed(t *testing.T) {
	w := startWorld(t)
	reasons := w.watch()
	r := w.run(t)
	root := w.threads[w.general]
	w.fake.Write(slacktest.Post{Channel: w.general, Thread: root, User: w.pat.ID, Text: "not for the bot"})
	require.Equal(t, "unmentioned", r.reason(reasons))
	w.fake.Write(slacktest.Post{Channel: w.general, Thread: root, User: w.pat.ID, Text: "what of it?", Mention: true})
	e := r.events(1)[0]
	require.True(t, e.Message.Earlier)
	past, err := r.History(t.Context(), e.Address, e.Message.ID, 10)
	require.NoError(t, err)
	var texts []string
	for _, s := range past {
		texts = append(texts, s.Sender.Name+": "+s.Text)
	}
	require.Equal(t, []string{"Pat Doe: how it began", "Pat Doe: not for the bot"}, texts)
	calls := w.fake.Calls("conversations.replies")
	past, err = r.History(t.Context(), e.Address, e.Message.ID, 1)
	require.NoError(t, err)
	require.Len(t, past, 1)
	require.Equal(t, calls, w.fake.Calls("conversations.replies"), "it is remembered for a minute")
	r.settled()
	r = w.run(t)
	w.fake.Write(slacktest.Post{Channel: w.general, Thread: root, User: w.pat.ID, Text: "and now?"})
	e = r.events(1)[0]
	require.True(t, e.Addressed)
	require.False(t, e.Message.Earlier)
	// What the bot itself began is followed too.
	sent := r.send(platforms.Outgoing{Address: w.at(w.secret, ""), Text: say("the brief")})
	w.fake.Write(slacktest.Post{Channel: w.secret, Thread: string(sent.Message), User: w.pat.ID, Text: "thanks"})
	e = r.events(2)[1]
	require.True(t, e.Addressed)
	require.Equal(t, platforms.ThreadID(sent.Message), e.Address.Thread)
}

func TestInbound_WhatIsNotHandedOn(t *testing.T) {
	w := startWorld(t)
	reasons := w.watch()
	other := w.fake.AddUser("", slacktest.User{RealName: "CI", IsBot: true})
	mixed := w.fake.AddChannel("", slacktest.Channel{Name: "mixed", Members: []string{w.pat.ID, other.ID}}).ID
	r := w.run(t)
	next := func(want string, act func()) {
		t.Helper()
		act()
		require.Equal(t, want, r.reason(reasons))
	}
	sent := r.send(platforms.Outgoing{Address: w.at(w.dm, ""), Text: say("from us")})
	require.Equal(t, "own", r.reason(reasons))
	next("bot", func() { w.fake.Write(slacktest.Post{Channel: mixed, User: other.ID, Text: "build failed"}) })
	next("service", func() {
		w.fake.Write(slacktest.Post{Channel: w.general, User: w.pat.ID, Text: "joined", Subtype: "channel_join"})
	})
	ts := w.fake.Say("", w.dm, "see https://a.b")
	r.events(1)
	next("unchanged", func() { w.fake.Unfurl("", w.dm, ts, json.RawMessage(`{"title":"A","from_url":"https://a.b"}`)) })
	next("deleted", func() { w.fake.Delete("", w.dm, ts) })
	next("reaction", func() { w.fake.React("", w.general, w.threads[w.general], w.pat.ID, "eyes") })
	next("undecodable", func() { w.fake.Push("", json.RawMessage(`{"type":"message","channel":"C1","user":"U1"}`)) })
	next("service", func() { w.fake.Push("", json.RawMessage(`{"type":"team_join"}`)) })
	next("empty", func() {
		w.fake.Push("", json.RawMessage(`{"type":"message","channel":"`+w.general+`","channel_type":"channel","user":"`+w.pat.ID+`","ts":"1700000000.000001","text":"","thread_ts":"`+w.threads[w.general]+`","parent_user_id":"`+w.team.BotUser+`"}`))
	})
	_ = sent
	require.Len(t, r.sink.Events(), 1)
}

func TestInbound_Commands(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	require.NoError(t, r.SetCommands(t.Context(), []platforms.CommandInfo{{Name: "stop"}, {Name: "help"}}))
	in := slacktest.Post{Channel: w.general, Thread: w.threads[w.general], User: w.pat.ID}
	for i, c := range []struct {
		text    string
		mention bool
		want    string
	}{{"!stop all of it", false, "/stop all of it"}, {" !help", true, "/help"}, {"!important thing", true, "!important thing"}} {
		in.Text, in.Mention = c.text, c.mention
		w.fake.Write(in)
		e := r.events(i + 1)[i]
		require.Equal(t, c.want, e.Message.Text)
		require.True(t, e.Addressed)
	}
	for i, c := range []struct{ name, text, command, args, message string }{
		{"/stop", "now", "stop", "now", ""},
		{"/herald", "stop it", "stop", "it", ""},
		{"/herald", "", "help", "", ""},
		{"/herald", "what is up with <@" + w.pat.ID + ">?", "", "", "what is up with @Pat Doe?"},
	} {
		w.fake.Run(slacktest.Command{Channel: w.general, User: w.pat.ID, Name: c.name, Text: c.text})
		e := r.events(4 + i)[3+i]
		require.Equal(t, w.at(w.general, ""), e.Address)
		if c.message != "" {
			require.Equal(t, c.message, e.Message.Text)
			continue
		}
		require.Equal(t, c.command, e.Command.Name)
		require.Equal(t, c.args, e.Command.Args)
	}
}

func TestInbound_ForwardedAndForeignBlocks(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	w.fake.Write(slacktest.Post{Channel: w.dm, User: w.pat.ID, Text: "look", Attachments: json.RawMessage(`[{"is_share":true,"author_name":"Sam","text":"the <https://a.b|plan>","fallback":"f"},{"from_url":"https://x.y","title":"a preview"}]`)})
	w.fake.Write(slacktest.Post{Channel: w.dm, User: w.pat.ID, Text: "deploy", Blocks: json.RawMessage(`[{"type":"header","text":{"type":"plain_text","text":"Deploy 7"}}]`)})
	events := r.events(2)
	require.Equal(t, "look\nForwarded message from Sam:\n> the plan (https://a.b)", events[0].Message.Text)
	require.True(t, strings.HasPrefix(events[1].Message.Text, "deploy\n[blocks of this message: "), events[1].Message.Text)
	require.Contains(t, events[1].Message.Text, "Deploy 7")
}

func TestInbound_ReactionTriggers(t *testing.T) {
	w := startWorld(t)
	w.change = func(o *Options) {
		o.ReactionTriggers, o.ReactionTarget = []string{":ticket:", "bug"}, w.secret+":"+w.threads[w.secret]
	}
	r := w.run(t)
	w.fake.React("", w.general, w.threads[w.general], w.pat.ID, "eyes")
	w.fake.React("", w.general, w.threads[w.general], w.pat.ID, "bug")
	w.fake.Unreact("", w.general, w.threads[w.general], w.pat.ID, "bug")
	events := r.events(2)
	require.Equal(t, "🐛", events[0].Reaction.Emoji)
	require.False(t, events[0].Reaction.OnOwn)
	require.Equal(t, w.at(w.secret, w.threads[w.secret]), events[0].Address)
	require.True(t, events[1].Reaction.Removed)
	require.NotEqual(t, events[0].ID, events[1].ID)
	// Without a target it is answered where it is: in the thread of the message.
	w = startWorld(t)
	r = w.run(t)
	sent := r.send(platforms.Outgoing{Address: w.at(w.general, w.threads[w.general]), Text: say("done")})
	w.fake.React("", w.general, string(sent.Message), w.pat.ID, "+1")
	e := r.events(1)[0]
	require.Equal(t, w.at(w.general, w.threads[w.general]), e.Address)
	require.True(t, e.Reaction.OnOwn)
}

func TestInbound_ClickOnAPrivateMessage(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	w.fake.Run(slacktest.Command{Channel: w.general, User: w.pat.ID, Name: "/model"})
	e := r.events(1)[0]
	r.send(platforms.Outgoing{Address: e.Address, Text: say("which?"), Private: e.Command.Reply,
		Buttons: [][]platforms.Button{{{Label: "A", Data: "m:a"}}}})
	seen := w.fake.Visible("", w.general, "")
	require.Len(t, seen, 1)
	_, ok := w.fake.Press(slacktest.Press{Channel: w.general, Message: seen[0].TS, User: w.pat.ID, Button: "A"})
	require.True(t, ok)
	click := r.events(2)[1]
	require.Equal(t, "m:a", click.Click.Data)
	r.send(platforms.Outgoing{Address: click.Address, Edit: click.Click.MessageID, Text: say("chose A")})
	seen = w.fake.Visible("", w.general, "")
	require.Len(t, seen, 1)
	require.Equal(t, "chose A", seen[0].Text)
	require.Empty(t, seen[0].Buttons)
	require.Equal(t, w.pat.ID, seen[0].Ephemeral)
}

func TestAssistant(t *testing.T) {
	w := startWorld(t)
	w.change = func(o *Options) {
		o.Prompts = []PromptSettings{{Message: "Summarise the day"}, {Title: "Help", Message: "What can you do?"}}
	}
	r := w.run(t)
	channel, thread := w.fake.OpenAssistant("", w.pat.ID, w.general)
	r.until("prompts", func() bool { return strings.Contains(string(w.fake.Prompts("", channel, thread)), "What can you do?") })
	w.fake.Write(slacktest.Post{Channel: channel, Thread: thread, User: w.pat.ID, Text: "plan my week\nplease"})
	e := r.events(1)[0]
	require.Equal(t, platforms.ThreadID(thread), e.Address.Thread)
	r.until("the title", func() bool { return w.fake.Title("", channel, thread) == "plan my week" })
	require.NoError(t, r.Narrate(t.Context(), e.Address, "reads  report.txt\n"))
	require.Equal(t, "reads report.txt", w.fake.Status("", channel, thread))
	require.NoError(t, r.Narrate(t.Context(), e.Address, ""))
	require.Empty(t, w.fake.Status("", channel, thread))
	// Without the scope it is switched off and asked for no more.
	w.fake.SetScopes("", "im:history")
	require.NoError(t, r.Typing(t.Context(), e.Address))
	calls := w.fake.Calls("assistant.threads.setStatus")
	require.NoError(t, r.Typing(t.Context(), e.Address))
	require.Equal(t, calls, w.fake.Calls("assistant.threads.setStatus"))
}

func TestInbound_PostsWithAPersonsToken(t *testing.T) {
	w := startWorld(t)
	w.change = func(o *Options) { o.APIHumans = []string{w.pat.ID} }
	reasons := w.watch()
	sam := w.fake.AddUser("", slacktest.User{RealName: "Other"})
	mixed := w.fake.AddChannel("", slacktest.Channel{Name: "mixed", Members: []string{w.pat.ID, sam.ID}}).ID
	r := w.run(t)
	w.fake.Write(slacktest.Post{Channel: mixed, User: sam.ID, Text: "hi", Mention: true, ViaAPI: true})
	require.Equal(t, "bot", r.reason(reasons))
	w.fake.Write(slacktest.Post{Channel: w.general, User: w.pat.ID, Text: "hi", Mention: true, ViaAPI: true})
	require.False(t, r.events(1)[0].Sender.IsBot)
}

// Of a long past the newest messages come, oldest first, in threads and in channels.
func TestHistory_NewestOfALongPast(t *testing.T) {
	w := startWorld(t)
	root := w.threads[w.general]
	var last, flat string
	for i := range 1100 {
		last = w.fake.Write(slacktest.Post{Channel: w.general, Thread: root, User: w.pat.ID, Text: fmt.Sprintf("reply %d", i), Silent: true})
	}
	for i := range 250 {
		flat = w.fake.Write(slacktest.Post{Channel: w.secret, User: w.pat.ID, Text: fmt.Sprintf("post %d", i), Silent: true})
	}
	r := w.run(t)
	for _, c := range []struct {
		at         platforms.Address
		before     string
		n          int
		first, end string
	}{
		{w.at(w.general, root), last, 3, "reply 1096", "reply 1098"},
		{w.at(w.secret, ""), flat, 220, "post 29", "post 248"},
	} {
		past, err := r.History(t.Context(), c.at, platforms.MessageID(c.before), c.n)
		require.NoError(t, err)
		require.Len(t, past, c.n)
		require.Equal(t, c.first, past[0].Text)
		require.Equal(t, c.end, past[c.n-1].Text)
		require.Equal(t, "Pat Doe", past[0].Sender.Name)
	}
}
