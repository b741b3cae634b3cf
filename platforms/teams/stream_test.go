package teams

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/faults"
	"herald/platforms/platformtest/teamstest"
)

// streaming is what a fake does whose streams may be as fast as the test.
var streaming = teamstest.Options{StreamEvery: -1}

func interim(at platforms.Address, edit platforms.MessageID, s string) platforms.Outgoing {
	return platforms.Outgoing{Address: at, Edit: edit, Text: text(s), Interim: true}
}

func verbs(acts []teamstest.Act) (out []string) {
	for _, a := range acts {
		if a.Bot {
			out = append(out, a.Verb)
		}
	}
	return out
}

// P4: a growing answer in a personal chat is one message from its first word to its last.
func TestStream_OneMessage(t *testing.T) {
	r := start(t, streaming, nil)
	first := r.mustSend(interim(r.atDM(), "", "A brown"))
	require.True(t, r.fake.Visible(r.dm.ID)[0].Streaming)
	for _, s := range []string{"A brown fox", "A brown fox jumped"} {
		require.Equal(t, first.Message, r.mustSend(interim(r.atDM(), first.Message, s)).Message)
	}
	require.NoError(t, r.a.Typing(t.Context(), r.atDM()))
	require.Zero(t, r.fake.Calls(teamstest.Typing), "a stream shows itself that work goes on")
	last := r.mustSend(platforms.Outgoing{Address: r.atDM(), Edit: first.Message, Text: text("A brown fox jumped over."),
		Buttons: [][]platforms.Button{{{Label: "Yes", Data: "y"}}}})
	require.Equal(t, first.Message, last.Message)
	seen := r.fake.Visible(r.dm.ID)
	require.Len(t, seen, 1)
	require.False(t, seen[0].Streaming)
	require.Equal(t, "A brown fox jumped over.", seen[0].Text)
	require.Len(t, seen[0].Buttons, 1)
	require.Equal(t, []string{"stream", "stream", "stream", "send"}, verbs(r.fake.Acts(r.dm.ID)))
	r.mustSend(platforms.Outgoing{Address: r.atDM(), Edit: first.Message, Text: text("changed later")})
	require.Equal(t, "changed later", r.fake.Visible(r.dm.ID)[0].Text)
}

// Groups and channels have no streams, and neither do bubbles of progress: a message that is edited.
func TestStream_OnlyInPersonalChats(t *testing.T) {
	r := start(t, streaming, nil)
	for _, at := range []platforms.Address{r.atGroup(), r.atThread()} {
		first := r.mustSend(interim(at, "", "one"))
		r.mustSend(interim(at, first.Message, "one two"))
		r.mustSend(platforms.Outgoing{Address: at, Edit: first.Message, Text: text("one two three")})
		require.Equal(t, []string{"send", "edit", "edit"}, verbs(r.fake.Acts(string(at.Chat))))
	}
	out := interim(r.atDM(), "", "reads a file")
	out.Progress = true
	r.mustSend(out)
	require.Equal(t, []string{"send"}, verbs(r.fake.Acts(r.dm.ID)))
}

// One stream at a time: a second answer in the chat is a message that is edited.
func TestStream_SecondOneIsAMessage(t *testing.T) {
	r := start(t, streaming, nil)
	first := r.mustSend(interim(r.atDM(), "", "one"))
	second := r.mustSend(interim(r.atDM(), "", "two"))
	require.NotEqual(t, first.Message, second.Message)
	require.Equal(t, []string{"stream", "send"}, verbs(r.fake.Acts(r.dm.ID)))
	r.mustSend(platforms.Outgoing{Address: r.atDM(), Edit: first.Message, Text: text("one.")})
	r.mustSend(platforms.Outgoing{Address: r.atDM(), Edit: second.Message, Text: text("two.")})
	require.Len(t, r.fake.Visible(r.dm.ID), 2)
}

// Whatever ends a stream early, the answer ends up whole in the same message.
func TestStream_EndsEarly(t *testing.T) {
	for name, c := range map[string]struct {
		options teamstest.Options
		alter   func(*Options)
		trouble func(*run)
	}{
		"stopped by the person": {streaming, nil, func(r *run) { require.True(r.t, r.fake.StopStream(r.dm.ID)) }},
		"over its time": {teamstest.Options{StreamEvery: -1, StreamLife: 20 * time.Millisecond}, nil, func(r *run) {
			<-time.After(30 * time.Millisecond)
		}},
		"ended in time by us": {streaming, func(o *Options) { o.StreamLife = time.Millisecond }, func(*run) { <-time.After(5 * time.Millisecond) }},
		"refused": {streaming, nil, func(r *run) {
			require.True(r.t, r.fake.StopStream(r.dm.ID))
			r.fake.Break(teamstest.Fault{Kind: faults.Status, Status: 403, Code: "ContentStreamNotAllowed", On: teamstest.Send})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, c.options, c.alter)
			first := r.mustSend(interim(r.atDM(), "", "A brown"))
			c.trouble(r)
			require.Equal(t, first.Message, r.mustSend(interim(r.atDM(), first.Message, "A brown fox")).Message)
			r.mustSend(interim(r.atDM(), first.Message, "A brown fox jumped"))
			r.mustSend(platforms.Outgoing{Address: r.atDM(), Edit: first.Message, Text: text("A brown fox jumped over.")})
			seen := r.fake.Visible(r.dm.ID)
			require.Len(t, seen, 1)
			require.Equal(t, "A brown fox jumped over.", seen[0].Text)
			require.False(t, seen[0].Streaming)
		})
	}
}

// A stream that Teams does not allow at all is a message from the beginning, and is not tried again in the chat.
func TestStream_NotAllowed(t *testing.T) {
	r := start(t, streaming, nil)
	r.fake.Break(teamstest.Fault{Kind: faults.Status, Status: 403, Code: "ContentStreamNotAllowed", On: teamstest.Send})
	first := r.mustSend(interim(r.atDM(), "", "one"))
	r.mustSend(platforms.Outgoing{Address: r.atDM(), Edit: first.Message, Text: text("one two")})
	r.mustSend(interim(r.atDM(), "", "three"))
	require.Equal(t, []string{"send", "edit", "send"}, verbs(r.fake.Acts(r.dm.ID)))
}

// An end that does not go on from what is shown (the answer was cleaned, or cut into parts) still lands in the message.
func TestStream_EndIsAnother(t *testing.T) {
	r := start(t, streaming, nil)
	first := r.mustSend(interim(r.atDM(), "", "A brown"))
	e := sendErrorOf(t, func() error { _, err := r.send(interim(r.atDM(), first.Message, "Something else")); return err }())
	require.Equal(t, platforms.NotSent, e.Certainty)
	r.mustSend(platforms.Outgoing{Address: r.atDM(), Edit: first.Message, Text: text("Quite another end")})
	seen := r.fake.Visible(r.dm.ID)
	require.Len(t, seen, 1)
	require.Equal(t, "Quite another end", seen[0].Text)
}

// After a restart the end of a stream still lands in its message.
func TestStream_OverARestart(t *testing.T) {
	r := start(t, streaming, nil)
	first := r.mustSend(interim(r.atDM(), "", "A brown"))
	r.restart()
	r.mustSend(interim(r.atDM(), first.Message, "A brown fox"))
	r.mustSend(platforms.Outgoing{Address: r.atDM(), Edit: first.Message, Text: text("A brown fox.")})
	seen := r.fake.Visible(r.dm.ID)
	require.Len(t, seen, 1)
	require.Equal(t, "A brown fox.", seen[0].Text)
}

// An end that Teams does not take after a restart is to be tried again: the stream ends by itself within its time.
func TestStream_OverARestartWithAnotherEnd(t *testing.T) {
	r := start(t, teamstest.Options{StreamEvery: -1, StreamLife: 300 * time.Millisecond}, nil)
	first := r.mustSend(interim(r.atDM(), "", "A brown"))
	r.restart()
	edit := platforms.Outgoing{Address: r.atDM(), Edit: first.Message, Text: text("Another end")}
	_, err := r.send(edit)
	if err != nil { // unless the machine was slow
		e := sendErrorOf(t, err)
		require.Equal(t, platforms.Transient, e.Kind)
		require.Equal(t, platforms.NotSent, e.Certainty)
	}
	r.until("it lands", func() bool { _, err := r.send(edit); return err == nil })
	require.Len(t, r.fake.Visible(r.dm.ID), 1)
	require.Equal(t, "Another end", r.fake.Visible(r.dm.ID)[0].Text)
}

// P8: states of a stream keep Teams' pace by themselves.
func TestStream_Pace(t *testing.T) {
	r := start(t, teamstest.Options{}, func(o *Options) { o.RateLimit = nil })
	first := r.mustSend(interim(r.atDM(), "", "one"))
	_, err := r.send(interim(r.atDM(), first.Message, "one two"))
	e := sendErrorOf(t, err)
	require.Equal(t, platforms.RateLimited, e.Kind)
	require.Positive(t, e.RetryAfter)
	r.mustSend(platforms.Outgoing{Address: r.atDM(), Edit: first.Message, Text: text("one two.")})
	require.Empty(t, r.fake.Violations())
	require.Equal(t, []string{"stream", "send"}, verbs(r.fake.Acts(r.dm.ID)))
}

// A first word whose fate is unknown is not sent a second time.
func TestStream_BeginUnknown(t *testing.T) {
	r := start(t, streaming, nil)
	r.fake.Break(teamstest.Fault{Kind: faults.ResetAfter, On: teamstest.Send})
	_, err := r.send(interim(r.atDM(), "", "one"))
	require.Equal(t, platforms.Unknown, sendErrorOf(t, err).Certainty)
	require.Len(t, r.fake.Visible(r.dm.ID), 1)
}
