package teams

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/teamstest"
)

// #15201 in Teams: spoken to in the middle of a thread, the bot can read what was said before, once.
func TestHistory_FirstMentionInAThread(t *testing.T) {
	r := start(t, teamstest.Options{}, func(o *Options) { o.Graph = true })
	for i := range 5 {
		r.fake.Write(teamstest.Post{Room: r.channel.ID, Thread: r.root, Text: fmt.Sprintf("reply <%d> & more", i)})
	}
	id := r.fake.Write(teamstest.Post{Room: r.channel.ID, Thread: r.root, Text: "what do you think?", Mention: true})
	r.fake.Write(teamstest.Post{Room: r.channel.ID, Thread: r.root, Text: "said later"})
	e := r.events(1)[0]
	require.True(t, e.Message.Earlier)
	said, err := r.a.History(t.Context(), e.Address, platforms.MessageID(id), 100)
	require.NoError(t, err)
	require.Len(t, said, 6)
	require.Equal(t, "a thread", said[0].Text)
	require.Equal(t, "reply <4> & more", said[5].Text)
	require.Equal(t, platforms.User{ID: platforms.UserID(r.pat.AAD), Name: "Pat Doe"}, said[5].Sender)
	require.False(t, said[0].At.IsZero())
	said, err = r.a.History(t.Context(), e.Address, platforms.MessageID(id), 3)
	require.NoError(t, err)
	require.Equal(t, []string{"a thread", "reply <3> & more", "reply <4> & more"}, []string{said[0].Text, said[1].Text, said[2].Text})

	r.mustSend(platforms.Outgoing{Address: e.Address, Text: text("I think so.")})
	r.restart()
	id = r.fake.Write(teamstest.Post{Room: r.channel.ID, Thread: r.root, Text: "sure?", Mention: true})
	require.False(t, r.events(2)[1].Message.Earlier, "the bot takes part in the thread, also after a restart")
	said, err = r.a.History(t.Context(), e.Address, platforms.MessageID(id), 100)
	require.NoError(t, err)
	last := said[len(said)-1]
	require.True(t, last.Own)
	require.True(t, last.Sender.IsBot)
	r.fake.Write(teamstest.Post{Room: r.channel.ID, Text: "a new thread", Mention: true})
	require.False(t, r.events(3)[2].Message.Earlier, "nothing stands before the root")
	require.Empty(t, r.fake.Leaks())
}

// Without Graph nothing is promised that can't be read.
func TestHistory_WithoutGraph(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	id := r.fake.Say(r.thread(), "hello")
	e := r.events(1)[0]
	require.False(t, e.Message.Earlier)
	_, err := r.a.History(t.Context(), e.Address, platforms.MessageID(id), 10)
	require.Equal(t, platforms.Unsupported, sendErrorOf(t, err).Kind)
}
