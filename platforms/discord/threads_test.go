package discord

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/discordtest"
)

const openThread = "POST /channels/{channel}/messages/{message}/threads"

// mention makes the person mention the bot in the channel and returns the event.
func (r *rig) mention(text string, n int) platforms.Event {
	r.t.Helper()
	said := r.fake.Write(discordtest.Post{Channel: r.channel, Text: text, MentionBot: true})
	e := r.last(n)
	require.Equal(r.t, address(r.channel, said), e.Address)
	return e
}

// The thread is opened with the first message to it, named after the question; later ones go there too.
func TestThreads_OpenedByTheFirstMessage(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	e := r.mention("what is **new**?\nI wonder", 1)
	thread := discordtest.ID(e.Address.Thread)
	before := r.fake.Threads(r.channel)
	ctx := r.ctx()
	require.NoError(t, r.a.Typing(ctx, e.Address))
	require.True(t, r.fake.TypingSeen(r.channel), "until then the bot types in the channel")
	require.NoError(t, r.a.React(ctx, e.Address, e.Message.ID, "👀"))
	require.Len(t, r.fake.Threads(r.channel), len(before), "nothing is announced before there is something to say")
	receipt := r.mustSend(platforms.Outgoing{Address: e.Address, Text: words("much"), ReplyTo: e.Message.ID})
	require.Empty(t, receipt.Notes)
	require.Equal(t, []string{"much"}, r.texts(thread))
	require.Empty(t, r.texts(r.channel))
	c, _ := r.fake.Channel(thread)
	require.Equal(t, "what is **new**?", c.Name)
	require.NoError(t, r.a.React(ctx, e.Address, e.Message.ID, "✅"), "the question stays in the channel")
	asked, _ := r.fake.Message(r.channel, discordtest.ID(e.Message.ID))
	require.Len(t, asked.Reactions, 1)
	require.Equal(t, "✅", asked.Reactions[0].Emoji)
	r.fake.Say(thread, "go on")
	next := r.last(2)
	require.Equal(t, e.Address, next.Address)
	require.Equal(t, e.ChatType, next.ChatType, "one session")
	require.False(t, next.Message.Earlier)
	r.mustSend(platforms.Outgoing{Address: next.Address, Text: words("more")})
	require.Equal(t, []string{"much", "more"}, r.texts(thread))
	require.Equal(t, 1, r.fake.Calls(openThread))
}

// After a restart the thread is opened all the same: nothing of it is in memory then.
func TestThreads_OpenedAfterARestart(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	e := r.mention("what is new?", 1)
	r.stop()
	r.start()
	r.mustSend(platforms.Outgoing{Address: e.Address, Text: words("much")})
	require.Equal(t, []string{"much"}, r.texts(discordtest.ID(e.Address.Thread)))
	c, _ := r.fake.Channel(discordtest.ID(e.Address.Thread))
	require.Equal(t, "what is new?", c.Name)
}

// Somebody was quicker: the thread is there already.
func TestThreads_OpenedBySomebodyElse(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	e := r.mention("what is new?", 1)
	r.fake.StartThread(r.channel, discordtest.ID(e.Message.ID), "Mine", r.person, false)
	receipt := r.mustSend(platforms.Outgoing{Address: e.Address, Text: words("much")})
	require.Empty(t, receipt.Notes)
	require.Equal(t, []string{"much"}, r.texts(discordtest.ID(e.Address.Thread)))
}

// A thread that is refused for good: the answer is posted in the channel, as a reply, and says why, once. The next answers
// and edits of that conversation stand there too, also after a restart, and presses belong to the thread's conversation.
func TestThreads_RefusedForGood(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	r.fake.SetRole(r.guild, r.fake.BotRole(r.guild), 0)
	r.fake.Overwrite(r.channel, r.guild, 0, discordtest.CreatePublicThreads)
	e := r.mention("what is new?", 1)
	rows := [][]platforms.Button{{{Label: "Yes", Data: "y:1"}}}
	first := r.mustSend(platforms.Outgoing{Address: e.Address, Text: words("much"), Buttons: rows})
	require.Len(t, first.Notes, 1)
	require.Contains(t, first.Notes[0], "Create Public Threads")
	seen := r.fake.Visible(r.channel)
	require.Len(t, seen, 1)
	require.Equal(t, discordtest.ID(e.Message.ID), seen[0].ReplyTo)
	_, ok := r.fake.Press(r.channel, seen[0].ID, "y:1", "")
	require.True(t, ok)
	click := r.last(2)
	require.Equal(t, e.Address, click.Address)
	require.Equal(t, e.ChatType, click.ChatType)
	for range 2 {
		_, err := r.send(platforms.Outgoing{Address: e.Address, Edit: first.Message, Text: words("very much")})
		require.NoError(t, err)
		second := r.mustSend(platforms.Outgoing{Address: e.Address, Text: words("more")})
		require.Empty(t, second.Notes)
		r.stop()
		r.start()
	}
	require.Equal(t, []string{"very much", "more", "more"}, r.texts(r.channel))
	require.Equal(t, 1, r.fake.Calls(openThread))
}

// A server error decides nothing: the message is not sent, and the next attempt opens the thread.
func TestThreads_RefusedForNow(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	e := r.mention("what is new?", 1)
	out := platforms.Outgoing{Address: e.Address, Text: words("much"), Nonce: "n"}
	r.fake.Break(discordtest.Fault{Trouble: discordtest.AnswerStatus, Status: 502, Route: openThread})
	_, err := r.send(out)
	require.Equal(t, platforms.Transient, failure(t, err).Kind)
	require.Equal(t, platforms.NotSent, failure(t, err).Certainty)
	require.Empty(t, r.texts(r.channel))
	r.mustSend(out)
	require.Equal(t, []string{"much"}, r.texts(discordtest.ID(e.Address.Thread)))
}

// It was opened, and the answer was lost: it is looked for before anything else is decided.
func TestThreads_OpenedWithoutAnAnswer(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	e := r.mention("what is new?", 1)
	r.fake.Break(discordtest.Fault{Trouble: discordtest.ResetAfter, Route: openThread})
	receipt := r.mustSend(platforms.Outgoing{Address: e.Address, Text: words("much")})
	require.Empty(t, receipt.Notes)
	require.Equal(t, []string{"much"}, r.texts(discordtest.ID(e.Address.Thread)))
}

// Errors without end: after three tries the answer is posted in the channel rather than nowhere.
func TestThreads_NeverOpened(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	e := r.mention("what is new?", 1)
	r.fake.Break(discordtest.Fault{Trouble: discordtest.AnswerStatus, Status: 500, Route: openThread, Times: -1})
	out := platforms.Outgoing{Address: e.Address, Text: words("much"), Nonce: "n"}
	for range openTries - 1 {
		_, err := r.send(out)
		require.Equal(t, platforms.NotSent, failure(t, err).Certainty)
	}
	receipt := r.mustSend(out)
	require.Len(t, receipt.Notes, 1)
	require.Equal(t, []string{"much"}, r.texts(r.channel))
}

// The question was deleted before the answer: no thread can hang on it, and no reply can name it.
func TestThreads_QuestionDeleted(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	e := r.mention("what is new?", 1)
	r.fake.Erase(r.channel, discordtest.ID(e.Message.ID))
	receipt := r.mustSend(platforms.Outgoing{Address: e.Address, Text: words("much")})
	require.Contains(t, receipt.Notes[0], "the message was deleted")
	require.Equal(t, []string{"much"}, r.texts(r.channel))
}

// A thread that was deleted is gone; its channel is not.
func TestThreads_Deleted(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	at := address(r.channel, r.thread)
	r.mustSend(platforms.Outgoing{Address: at, Text: words("one")})
	r.fake.DropChannel(r.thread)
	_, err := r.send(platforms.Outgoing{Address: at, Text: words("two")})
	require.Equal(t, platforms.ThreadGone, failure(t, err).Kind)
	require.Equal(t, platforms.NotSent, failure(t, err).Certainty)
	require.Empty(t, r.texts(r.channel))
}

func TestThreads_LockedAndArchived(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	at := address(r.channel, r.thread)
	r.fake.SetThread(r.thread, true, false)
	r.mustSend(platforms.Outgoing{Address: at, Text: words("opens it")})
	r.fake.SetThread(r.thread, true, true)
	_, err := r.send(platforms.Outgoing{Address: at, Text: words("can't")})
	require.Equal(t, platforms.ThreadGone, failure(t, err).Kind)
}

func TestThreads_Titles(t *testing.T) {
	long := strings.Repeat("ü", 120)
	for text, want := range map[string]string{
		"":                 "Conversation",
		"\n\n## Plans\nx":  "Plans",
		"- **bold** words": "bold** words",
		"***":              "Conversation",
		long:               strings.Repeat("ü", 99) + "…",
	} {
		require.Equal(t, want, titleOf(text, nil), text)
	}
}

// Forums: every send opens a post, whose name is its first line or a file's.
func TestForum_SendsOpenPosts(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	forum := address(r.forum, "")
	receipt := r.mustSend(platforms.Outgoing{Address: forum, Text: words("# The brief\nAll is well"), Nonce: "n"})
	post := discordtest.ID(receipt.Message)
	c, ok := r.fake.Channel(post)
	require.True(t, ok)
	require.Equal(t, "The brief", c.Name)
	require.Equal(t, r.forum, c.Parent)
	require.Equal(t, []string{"# The brief\nAll is well"}, r.texts(post))
	_, err := r.send(platforms.Outgoing{Address: forum, Edit: receipt.Message, Text: words("# The brief\nAll was well")})
	require.NoError(t, err)
	require.Equal(t, []string{"# The brief\nAll was well"}, r.texts(post))
	r.fake.Say(post, "thanks") // no mention is needed in a post of ours
	require.Equal(t, address(r.forum, post), r.last(1).Address)
	next := r.mustSend(platforms.Outgoing{Address: forum, Text: words("another")})
	require.NotEqual(t, receipt.Message, next.Message)
	file := r.mustSend(platforms.Outgoing{Address: forum, Attachments: []platforms.Attachment{{Name: "report.txt", Path: r.file("report.txt", "x")}}})
	c, _ = r.fake.Channel(discordtest.ID(file.Message))
	require.Equal(t, "report.txt", c.Name)
}

// A forum that this process does not know yet is recognised by asking.
func TestForum_FoundByAsking(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	r.stop()
	r.start() // resumed: no list of channels comes
	receipt := r.mustSend(platforms.Outgoing{Address: address(r.forum, ""), Text: words("hello")})
	require.Equal(t, []string{"hello"}, r.texts(discordtest.ID(receipt.Message)))
	r.stop()
	r.start()
	// The first message of a post is in the post, unlike the one that another thread hangs on.
	require.NoError(t, r.a.React(r.ctx(), address(r.forum, r.post), id(r.post), "👀"))
	opening, _ := r.fake.Message(r.post, r.post)
	require.Len(t, opening.Reactions, 1)
}

// History is what was said before, oldest first, with the message that the thread hangs on.
func TestHistory_OfAThread(t *testing.T) {
	r := newRig(t, discordtest.Options{}, func(o *Options) { o.HistoryLimit = 4 })
	root := r.fake.Say(r.channel, "who knows tea?")
	thread := r.fake.StartThread(r.channel, root, "Tea", r.person, false)
	r.fake.Say(thread, "I do")
	r.fake.Write(discordtest.Post{Channel: thread, Text: "look", Files: []discordtest.File{{Name: "leaf.png", Body: []byte("x")}}})
	r.fake.Write(discordtest.Post{Channel: thread, Text: "what do you think?", MentionBot: true})
	e := r.last(1)
	require.True(t, e.Message.Earlier)
	said, err := r.a.History(r.ctx(), e.Address, e.Message.ID, 50)
	require.NoError(t, err)
	var texts []string
	for _, s := range said {
		texts = append(texts, s.Text)
		require.Equal(t, "Pat Doe", s.Sender.Name)
		require.WithinDuration(t, time.Now(), s.At, time.Minute)
	}
	require.Equal(t, []string{"who knows tea?", "I do", "look\n[leaf.png]"}, texts)
	none, err := r.a.History(r.ctx(), r.mention("new", 2).Address, e.Message.ID, 50)
	require.NoError(t, err, "a thread that was not opened has no history")
	require.Empty(t, none)
}
