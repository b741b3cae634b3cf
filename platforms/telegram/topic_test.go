package telegram

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/telegramtest"
)

func named(chat int64, name string) platforms.Outgoing {
	out := outgoing(chat, "the numbers")
	out.Thread = name
	return out
}

// A forum gets a topic by the name, before the message, which is in it.
func TestTopic_OpensInAForum(t *testing.T) {
	w, a := sender(t, nil)
	receipt, err := a.Send(t.Context(), named(forum, strings.Repeat("n", 200)))
	require.NoError(t, err)
	m := w.fake.Visible(forum)[0]
	require.Equal(t, to(forum, m.Thread).Thread, receipt.Thread)
	require.Equal(t, strings.Repeat("n", topicLimit), w.fake.Topics(forum)[m.Thread])
}

// Elsewhere there is none: where the address has a topic and in a direct chat it is not even asked for.
func TestTopic_NotElsewhere(t *testing.T) {
	w, a := sender(t, nil)
	in := named(forum, "Morning brief")
	in.Address = to(forum, w.topic)
	for _, out := range []platforms.Outgoing{named(person, "Morning brief"), in} {
		receipt, err := a.Send(t.Context(), out)
		require.NoError(t, err)
		require.Empty(t, receipt.Thread)
	}
	require.Zero(t, w.fake.Calls("createForumTopic"))
	receipt, err := a.Send(t.Context(), named(group, "Morning brief"))
	require.NoError(t, err)
	require.Empty(t, receipt.Thread)
	require.Len(t, w.fake.Visible(group), 1)
}

// A bot that may not make topics writes flat.
func TestTopic_WithoutTheRight(t *testing.T) {
	w, a := sender(t, nil)
	w.fake.ForbidTopics(forum)
	receipt, err := a.Send(t.Context(), named(forum, "Morning brief"))
	require.NoError(t, err)
	require.Empty(t, receipt.Thread)
	require.Empty(t, receipt.Notes)
	require.Zero(t, w.fake.Visible(forum)[0].Thread)
}

// A send that fails behind a topic names the topic, so that the next attempt opens no second one.
func TestTopic_SurvivesAFailedSend(t *testing.T) {
	w, a := sender(t, nil)
	w.fake.Break(telegramtest.Fault{Trouble: telegramtest.AnswerStatus, Status: 429, RetryAfter: time.Second, Method: "sendMessage"})
	receipt, err := a.Send(t.Context(), named(forum, "Morning brief"))
	require.Equal(t, platforms.RateLimited, platforms.AsSendError(err).Kind)
	require.NotEmpty(t, receipt.Thread)
	require.Len(t, w.fake.Topics(forum), 2)
}

// A wait that Telegram asks for is the message's own: nothing goes out before it is over.
func TestTopic_RateLimited(t *testing.T) {
	w, a := sender(t, nil)
	w.fake.Break(telegramtest.Fault{Trouble: telegramtest.AnswerStatus, Status: 429, RetryAfter: time.Second, Method: "createForumTopic"})
	_, err := a.Send(t.Context(), named(forum, "Morning brief"))
	require.Equal(t, platforms.RateLimited, platforms.AsSendError(err).Kind)
	require.Equal(t, platforms.NotSent, platforms.AsSendError(err).Certainty)
	require.Empty(t, w.fake.Visible(forum))
}

// A server error leaves the message flat.
func TestTopic_ServerError(t *testing.T) {
	w, a := sender(t, nil)
	w.fake.Break(telegramtest.Fault{Trouble: telegramtest.AnswerStatus, Status: 502, Method: "createForumTopic"})
	receipt, err := a.Send(t.Context(), named(forum, "Morning brief"))
	require.NoError(t, err)
	require.Empty(t, receipt.Thread)
	require.Len(t, w.fake.Visible(forum), 1)
}
