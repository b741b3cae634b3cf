package discord

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/discordtest"
)

func (r *rig) brief(at platforms.Address) platforms.Receipt {
	r.t.Helper()
	return r.mustSend(platforms.Outgoing{Address: at, Text: words("the numbers"), Thread: "Morning brief", Nonce: "n"})
}

// A brief in a text channel gets a thread by its name, and who writes there need not mention the bot, also after a restart.
func TestOwnThread_RepliesNeedNoMention(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	receipt := r.brief(address(r.channel, ""))
	require.Equal(t, platforms.ThreadID(receipt.Message), receipt.Thread)
	c, ok := r.fake.Channel(discordtest.ID(receipt.Thread))
	require.True(t, ok)
	require.Equal(t, "Morning brief", c.Name)
	require.Equal(t, []string{"the numbers"}, r.texts(r.channel))
	for n := range 2 {
		r.fake.Say(discordtest.ID(receipt.Thread), "which ones?")
		e := r.last(n + 1)
		require.Equal(t, address(r.channel, discordtest.ID(receipt.Thread)), e.Address)
		require.Equal(t, platforms.Thread, e.ChatType)
		require.True(t, e.Addressed)
		require.False(t, e.Message.Earlier)
		r.stop()
		r.start()
	}
}

// In direct chats and in threads there is nothing to open, and nothing is asked for.
func TestOwnThread_NotWhereThereIsNone(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	for _, at := range []platforms.Address{address(r.dm, ""), address(r.channel, r.thread)} {
		require.Empty(t, r.brief(at).Thread)
	}
	require.Zero(t, r.fake.Calls(openThread))
}

// A thread that is refused, or that Discord fails to open, leaves the message as it is: no note, no error.
func TestOwnThread_RefusedStaysFlat(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	r.fake.SetRole(r.guild, r.fake.BotRole(r.guild), 0)
	r.fake.Overwrite(r.channel, r.guild, 0, discordtest.CreatePublicThreads)
	receipt := r.brief(address(r.channel, ""))
	require.Empty(t, receipt.Thread)
	require.Empty(t, receipt.Notes)
	require.Equal(t, []string{"the numbers"}, r.texts(r.channel))
	require.Contains(t, r.log.String(), "Create Public Threads")
}

func TestOwnThread_ServerErrors(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	r.fake.Break(discordtest.Fault{Trouble: discordtest.AnswerStatus, Status: 502, Route: openThread, Times: openTries})
	receipt := r.brief(address(r.channel, ""))
	require.Empty(t, receipt.Thread)
	require.Equal(t, []string{"the numbers"}, r.texts(r.channel))
	r.fake.Break(discordtest.Fault{Trouble: discordtest.AnswerStatus, Status: 502, Route: openThread})
	require.NotEmpty(t, r.brief(address(r.channel, "")).Thread, "one error is no refusal")
}

// An answer that is lost, and a thread that is there already: its id is the message's.
func TestOwnThread_ThereAlready(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	r.fake.Break(discordtest.Fault{Trouble: discordtest.ResetAfter, Route: openThread})
	receipt := r.brief(address(r.channel, ""))
	require.Equal(t, platforms.ThreadID(receipt.Message), receipt.Thread)
	out := platforms.Outgoing{Address: address(r.channel, ""), Thread: "Morning brief"}
	require.Equal(t, receipt.Thread, r.a.OpenThread(r.ctx(), out, receipt.Message))
	require.Equal(t, 2, r.fake.Calls(openThread))
}

// The names of threads and posts are what was asked for, in Discord's bounds.
func TestOwnThread_Names(t *testing.T) {
	r := newRig(t, discordtest.Options{}, nil)
	receipt := r.mustSend(platforms.Outgoing{Address: address(r.channel, ""), Text: words("x"), Thread: strings.Repeat("long ", 40)})
	c, _ := r.fake.Channel(discordtest.ID(receipt.Thread))
	require.LessOrEqual(t, len([]rune(c.Name)), titleLimit)
	receipt = r.brief(address(r.forum, ""))
	c, _ = r.fake.Channel(discordtest.ID(receipt.Thread))
	require.Equal(t, "Morning brief", c.Name)
}
