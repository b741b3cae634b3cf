package slack

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/slacktest"
)

// asked is a world whose person has spoken to the bot in a thread of the channel.
func asked(t *testing.T, change func(*Options)) (*world, *running, platforms.Address) {
	w := startWorld(t)
	w.change = change
	r := w.run(t)
	at := w.at(w.general, w.threads[w.general])
	w.fake.Write(slacktest.Post{Channel: w.general, Thread: w.threads[w.general], User: w.pat.ID, Text: "hi", Mention: true})
	require.Equal(t, at, r.events(1)[0].Address)
	return w, r, at
}

func grown(at platforms.Address, edit platforms.MessageID, text string, interim bool) platforms.Outgoing {
	return platforms.Outgoing{Address: at, Edit: edit, Text: say(text), Interim: interim, Nonce: "n1"}
}

// one is the only visible message of a place.
func (w *world) one(t testing.TB, at platforms.Address) slacktest.Message {
	t.Helper()
	seen := w.fake.Visible("", string(at.Chat), string(at.Thread))
	require.Len(t, seen, 1)
	return seen[0]
}

func TestStream_GrowsAndIsSealed(t *testing.T) {
	w, r, at := asked(t, nil)
	id := r.send(grown(at, "", "One", true)).Message
	require.Equal(t, slacktest.Streams, w.one(t, at).Streaming)
	r.send(grown(at, id, "One two", true))
	r.send(grown(at, id, "One two", true)) // nothing new: nothing is asked
	require.Equal(t, 1, w.fake.Calls("chat.appendStream"))
	got := r.send(grown(at, id, "One two **three**", false))
	require.Equal(t, id, got.Message)
	m := w.one(t, at)
	require.Equal(t, slacktest.Sealed, m.Streaming)
	require.Contains(t, m.Raw, "One two **three**")
	require.Contains(t, string(m.Metadata), "n1")
	require.Zero(t, w.fake.Calls("chat.update")+w.fake.Calls("chat.postMessage"))
	params := w.fake.Requests("chat.startStream")[0].Params
	require.Equal(t, w.pat.ID, params["recipient_user_id"])
	require.Equal(t, "T1", params["recipient_team_id"])
}

// The end is written by an edit when it does not continue what was streamed, and never as a second message.
func TestStream_EndsByAnEdit(t *testing.T) {
	for name, trouble := range map[string]func(w *world, r *running, at platforms.Address, id platforms.MessageID){
		"another text": func(*world, *running, platforms.Address, platforms.MessageID) {},
		"a restart": func(w *world, r *running, _ platforms.Address, _ platforms.MessageID) {
			r.settled()
			*r = *w.run(r.t)
		},
		"an append whose outcome is unknown": func(w *world, r *running, at platforms.Address, id platforms.MessageID) {
			w.fake.Break(slacktest.Fault{Trouble: slacktest.ResetAfter, Method: "chat.appendStream"})
			_, err := r.try(grown(at, id, "One two", true))
			require.Equal(r.t, platforms.Unknown, platforms.AsSendError(err).Certainty)
			r.send(grown(at, id, "One two three", true)) // shows nothing: it is not known what is there
		},
		"a refused append": func(w *world, r *running, at platforms.Address, id platforms.MessageID) {
			w.fake.Break(slacktest.Fault{Trouble: slacktest.AnswerError, Method: "chat.appendStream", Code: "invalid_chunks"})
			r.send(grown(at, id, "One two", true))
		},
		"a stream that Slack has ended": func(w *world, r *running, at platforms.Address, id platforms.MessageID) {
			require.True(r.t, w.fake.StopStream("", string(at.Chat), string(id), true))
			r.send(grown(at, id, "One two", true))
		},
		"a seal whose outcome is unknown": func(w *world, r *running, at platforms.Address, id platforms.MessageID) {
			w.fake.Break(slacktest.Fault{Trouble: slacktest.ResetAfter, Method: "chat.stopStream"})
			_, err := r.try(grown(at, id, "One, and more", false))
			require.Equal(r.t, platforms.Unknown, platforms.AsSendError(err).Certainty)
		},
		"a text without end": func(w *world, r *running, at platforms.Address, id platforms.MessageID) {
			w.fake.Break(slacktest.Fault{Trouble: slacktest.AnswerError, Method: "chat.appendStream", Code: "msg_too_long"})
			_, err := r.try(grown(at, id, "One two", true))
			require.Equal(r.t, platforms.TooLong, platforms.AsSendError(err).Kind)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, r, at := asked(t, nil)
			id := r.send(grown(at, "", "One", true)).Message
			trouble(w, r, at, id)
			got := r.send(grown(at, id, "Something else", false))
			require.Equal(t, id, got.Message)
			m := w.one(t, at)
			require.NotEqual(t, slacktest.Streams, m.Streaming)
			require.Equal(t, "Something else", m.Text)
		})
	}
}

func TestStream_FallsBackToEdits(t *testing.T) {
	for _, c := range []struct {
		code    string
		account bool // nowhere any more, not only here
	}{{"missing_scope", true}, {"unknown_method", true}, {"channel_type_not_supported", false}, {"missing_recipient_user_id", false}} {
		t.Run(c.code, func(t *testing.T) {
			w, r, at := asked(t, nil)
			w.fake.Break(slacktest.Fault{Trouble: slacktest.AnswerError, Method: "chat.startStream", Code: c.code})
			id := r.send(grown(at, "", "One", true)).Message
			r.send(grown(at, id, "One two", true))
			r.send(grown(at, id, "One two three", false))
			require.Equal(t, "One two three", w.one(t, at).Text)
			r.send(grown(at, "", "Next", true))
			require.Equal(t, 1, w.fake.Calls("chat.startStream"), "the refusal is remembered")
			require.Equal(t, c.account, r.off.streams.Load())
		})
	}
}

func TestStream_StartOfUnknownOutcomeIsNotRepeated(t *testing.T) {
	w, r, at := asked(t, nil)
	w.fake.Break(slacktest.Fault{Trouble: slacktest.ResetAfter, Method: "chat.startStream"})
	out := grown(at, "", "One", true)
	_, err := r.try(out)
	require.Equal(t, platforms.Unknown, platforms.AsSendError(err).Certainty)
	w.one(t, at)
	_, found, err := r.Find(t.Context(), out)
	require.False(t, found)
	require.Error(t, err, "a stream carries no nonce: nobody may say that it is not there")
}

func TestStream_OnlyWhereItCan(t *testing.T) {
	w := startWorld(t)
	no := false
	r := w.run(t)
	r.send(grown(w.at(w.dm, ""), "", "no thread", true))
	r.send(grown(w.at(w.general, w.threads[w.general]), "", "nobody has asked", true))
	require.Zero(t, w.fake.Calls("chat.startStream"))
	_, r, at := asked(t, func(o *Options) { o.NativeStreaming = &no })
	require.False(t, r.Traits().AppendOnly)
	r.send(grown(at, "", "switched off", true))
	require.Zero(t, r.w.fake.Calls("chat.startStream"))
	require.Equal(t, "switched off", r.w.one(t, at).Text)
}

// Slack's limit of streams a minute is kept by a message that is edited.
func TestStream_OwnPace(t *testing.T) {
	w, r, at := asked(t, func(o *Options) { yes := true; o.RateLimit = &yes })
	for range streamBurst {
		err := r.gate.pass(t.Context(), "chat.startStream", "C", true)
		require.NoError(t, err)
	}
	r.send(grown(at, "", "One", true))
	require.Zero(t, w.fake.Calls("chat.startStream"))
	require.Equal(t, "One", w.one(t, at).Text)
}

func TestStream_RateLimitOfSlackClosesThePlace(t *testing.T) {
	w, r, at := asked(t, nil)
	w.fake.Break(slacktest.Fault{Trouble: slacktest.AnswerStatus, Status: 429, RetryAfter: time.Second, Method: "chat.startStream"})
	for range 2 {
		_, err := r.try(grown(at, "", "One", true))
		e := platforms.AsSendError(err)
		require.Equal(t, platforms.RateLimited, e.Kind)
		require.Positive(t, e.RetryAfter)
	}
	require.Empty(t, w.fake.Violations())
	require.Equal(t, 1, w.fake.Calls("chat.startStream"))
}

// An edit takes 4,000 bytes of text; longer answers go into a Markdown block, and the longest go on below.
func TestEdit_LongTexts(t *testing.T) {
	w := startWorld(t)
	r := w.run(t)
	at := w.at(w.dm, "")
	for _, c := range []struct{ chars, messages int }{{3000, 1}, {3950, 1}, {11000, 1}, {30000, 2}} {
		id := r.send(platforms.Outgoing{Address: at, Text: say("preview")}).Message
		text := strings.TrimSpace(strings.Repeat("word ", c.chars/5))
		out := platforms.Outgoing{Address: at, Edit: id, Text: say(text), Nonce: fmt.Sprintf("n%d", c.chars)}
		r.send(out)
		got := r.send(out) // as after a crash: no part comes twice
		require.Equal(t, id, got.Message)
		require.Empty(t, got.Notes)
		var all []string
		for _, m := range w.fake.Visible("", w.dm, "") {
			all = append(all, strings.TrimSpace(m.Text))
		}
		require.GreaterOrEqual(t, len(all), c.messages)
		require.Equal(t, strings.Fields(text), strings.Fields(strings.Join(all, " ")), "%d characters", c.chars)
		for _, m := range w.fake.Visible("", w.dm, "") {
			require.NoError(t, r.Delete(t.Context(), at, platforms.MessageID(m.TS)))
		}
	}
}
