package teamstest

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func chunk(kind, id string, sequence int, words string) map[string]any {
	info := map[string]any{"type": "streaminfo", "streamType": kind}
	if id != "" {
		info["streamId"] = id
	}
	if sequence != 0 {
		info["streamSequence"] = sequence
	}
	out := map[string]any{"type": "typing", "text": words, "entities": []any{info}}
	if kind == "final" {
		out["type"] = "message"
	}
	return out
}

func TestStream_GrowsIntoAMessage(t *testing.T) {
	s := newStage(t, Options{StreamEvery: -1})
	first := s.send(s.chat.ID, chunk("informative", "", 1, "Looking"))
	require.Equal(t, 201, first.status, "%s", first.body)
	require.Equal(t, "Looking", s.Visible(s.chat.ID)[0].Informative)
	for i, words := range []string{"A brown", "A brown fox"} {
		r := s.send(s.chat.ID, chunk("streaming", first.ID, i+2, words))
		require.Equal(t, 202, r.status, "%s", r.body)
		require.Equal(t, "{}", string(r.body))
	}
	late := s.send(s.chat.ID, chunk("streaming", first.ID, 2, "A brown fox jumps"))
	require.Equal(t, 202, late.status)
	require.Equal(t, "ContentStreamSequenceOrderPreConditionFailed", late.Error.Code)
	m := s.Visible(s.chat.ID)[0]
	require.True(t, m.Streaming)
	require.Equal(t, "A brown fox", m.Text)
	require.Empty(t, m.Informative)
	require.Equal(t, 202, s.send(s.chat.ID, chunk("final", first.ID, 0, "A brown fox.")).status)
	m = s.Visible(s.chat.ID)[0]
	require.False(t, m.Streaming)
	require.Equal(t, "A brown fox.", m.Text)
	r := s.send(s.chat.ID, chunk("streaming", first.ID, 9, "A brown fox. More"))
	require.Equal(t, "Content stream is not allowed on an already completed streamed message", r.Error.Message)
	require.Equal(t, 200, s.call("PUT", "v3/conversations/"+s.chat.ID+"/activities/"+first.ID, text("An edit later")).status)
}

func TestStream_Refusals(t *testing.T) {
	for _, c := range []struct {
		name    string
		chunk   func(id string) map[string]any
		status  int
		message string
	}{
		{"other content", func(id string) map[string]any { return chunk("streaming", id, 2, "B") }, 403, "Request streamed content should contain the previously streamed content"},
		{"final with other content", func(id string) map[string]any { return chunk("final", id, 0, "B") }, 403, "Request streamed content should contain the previously streamed content"},
		{"too long", func(id string) map[string]any { return chunk("streaming", id, 2, "A"+strings.Repeat("x", 28<<10)) }, 403, "Message size too large"},
		{"second stream", func(string) map[string]any { return chunk("streaming", "", 1, "A") }, 403, "Content stream is not allowed"},
		{"unknown stream", func(string) map[string]any { return chunk("streaming", "123", 2, "A") }, 400, "Unknown stream id"},
		{"no text", func(id string) map[string]any { return chunk("streaming", id, 2, "") }, 400, "Start streaming activities should include text"},
		{"final with a sequence", func(id string) map[string]any { return chunk("final", id, 3, "A") }, 400, "End streaming activities should not include streamSequence"},
		{"final as typing", func(id string) map[string]any { c := chunk("final", id, 0, "A"); c["type"] = "typing"; return c }, 400, "Only start streaming and continue streaming types are allowed as a typing activity"},
		{"attachments before the end", func(id string) map[string]any {
			c := chunk("streaming", id, 2, "AB")
			c["attachments"] = card()["attachments"]
			return c
		}, 400, "Attachments are allowed in the final streaming message only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, Options{StreamEvery: -1})
			first := s.send(s.chat.ID, chunk("streaming", "", 1, "A"))
			require.Equal(t, 201, first.status)
			r := s.send(s.chat.ID, c.chunk(first.ID))
			require.Equal(t, c.status, r.status)
			require.Equal(t, c.message, r.Error.Message)
			require.Equal(t, "A", s.Visible(s.chat.ID)[0].Text)
			require.Equal(t, 202, s.send(s.chat.ID, chunk("final", first.ID, 0, "A.")).status, "the stream goes on")
		})
	}
	s := newStage(t, Options{})
	require.Equal(t, 400, s.send(s.chat.ID, chunk("streaming", "", 2, "A")).status, "the first sequence is 1")
	group := s.Group("Group", s.u)
	r := s.send(group.ID, chunk("streaming", "", 1, "A"))
	require.Equal(t, 403, r.status)
	require.Equal(t, "ContentStreamNotAllowed", r.Error.Code)
}

func TestStream_PaceStopAndTime(t *testing.T) {
	s := newStage(t, Options{StreamEvery: time.Minute})
	first := s.send(s.chat.ID, chunk("streaming", "", 1, "A"))
	require.Equal(t, 429, s.send(s.chat.ID, chunk("streaming", first.ID, 2, "AB")).status)
	require.Equal(t, 202, s.send(s.chat.ID, chunk("final", first.ID, 0, "AB")).status)

	s = newStage(t, Options{StreamEvery: -1})
	first = s.send(s.chat.ID, chunk("streaming", "", 1, "A"))
	require.True(t, s.StopStream(s.chat.ID))
	require.False(t, s.StopStream(s.chat.ID))
	r := s.send(s.chat.ID, chunk("streaming", first.ID, 2, "AB"))
	require.Equal(t, "Content stream was canceled by user", r.Error.Message)
	require.Equal(t, "A", s.Visible(s.chat.ID)[0].Text, "what was shown stays")

	s = newStage(t, Options{StreamEvery: -1, StreamLife: time.Nanosecond})
	first = s.send(s.chat.ID, chunk("streaming", "", 1, "A"))
	r = s.send(s.chat.ID, chunk("final", first.ID, 0, "AB"))
	require.Equal(t, 403, r.status)
	require.Equal(t, "Content stream finished due to exceeded streaming time.", r.Error.Message)
	require.Equal(t, 201, s.send(s.chat.ID, chunk("streaming", "", 1, "A")).status, "another one may begin")
}
