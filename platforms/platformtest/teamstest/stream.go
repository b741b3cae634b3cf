package teamstest

import (
	"cmp"
	"net/http"
	"strings"
	"time"
)

// stream is a message that grows, of a personal chat.
type stream struct {
	id       string
	sequence int
	text     string // streamed content so far, status lines not included
	begun    time.Time
	last     time.Time
	ended    string // why no more is taken
	message  *Message
}

// stream finds out whether an activity belongs to a stream: by an entity "streaminfo" or by channelData. What the
// entity leaves out is taken from channelData: botbuilder strips an entity of all fields that it does not know.
func (a *sent) stream() (streamInfo, bool) {
	info, found := a.ChannelData.streamInfo, a.ChannelData.StreamType != ""
	for _, e := range a.Entities {
		if strings.EqualFold(e.Type, "streaminfo") {
			info.StreamType = cmp.Or(e.StreamType, info.StreamType)
			info.StreamID = cmp.Or(e.StreamID, info.StreamID)
			info.StreamSequence = cmp.Or(e.StreamSequence, info.StreamSequence)
			found = true
		}
	}
	return info, found
}

func notAllowed(message string) *problem {
	return refuse(http.StatusForbidden, "ContentStreamNotAllowed", message)
}

// streamed takes a chunk of a stream, by the rules and in the words of Microsoft's page "Stream bot messages".
func (s *Server) streamed(r *room, a *sent, info streamInfo) (int, any, error) {
	if r.Type != Personal {
		return 0, nil, notAllowed("Content stream is not allowed")
	}
	kind := cmp.Or(info.StreamType, "streaming")
	if err := checkStream(a, kind, info); err != nil {
		return 0, nil, err
	}
	if info.StreamID == "" && kind != "final" {
		return s.startStream(r, a, kind, info)
	}
	st := r.streams[info.StreamID]
	switch {
	case st == nil:
		return 0, nil, refuse(400, "BadRequest", "Unknown stream id")
	case st.ended != "":
		return 0, nil, notAllowed(st.ended)
	case time.Since(st.begun) > s.o.StreamLife:
		s.finishStream(r, "Content stream finished due to exceeded streaming time.")
		return 0, nil, notAllowed("Content stream finished due to exceeded streaming time.")
	case kind != "final" && time.Since(st.last) < s.o.StreamEvery:
		return 0, nil, refuse(http.StatusTooManyRequests, "Throttled", "API calls quota exceeded")
	case kind != "informative" && !strings.HasPrefix(a.Text, st.text):
		return 0, nil, notAllowed("Request streamed content should contain the previously streamed content")
	case kind == "final":
		return s.endStream(r, st, a)
	case info.StreamSequence <= st.sequence:
		// A late chunk is dropped, with the status of a success.
		return http.StatusAccepted, map[string]any{"error": map[string]string{
			"code": "ContentStreamSequenceOrderPreConditionFailed", "message": "PreCondition failed exception when processing streaming activity.",
		}}, nil
	}
	st.sequence, st.last = info.StreamSequence, time.Now()
	s.grow(r, st, kind, a.Text)
	return http.StatusAccepted, struct{}{}, nil
}

// maxInformative is the most characters of a status line.
const maxInformative = 1000

func checkStream(a *sent, kind string, info streamInfo) error {
	switch {
	case kind == "final" && a.Type != "message":
		return refuse(400, "BadSyntax", "Only start streaming and continue streaming types are allowed as a typing activity")
	case kind != "final" && a.Type != "typing":
		return refuse(400, "BadSyntax", "Only end streaming type is allowed as a message activity")
	case kind != "final" && kind != "informative" && kind != "streaming":
		return refuse(400, "BadRequest", "Unknown stream type")
	case kind == "final" && info.StreamID == "":
		return refuse(400, "BadRequest", "End streaming activities should include streamId")
	case kind == "final" && info.StreamSequence != 0:
		return refuse(400, "BadRequest", "End streaming activities should not include streamSequence")
	case kind != "final" && a.Text == "":
		return refuse(400, "BadRequest", "Start streaming activities should include text")
	case kind != "final" && len(a.Attachments) > 0:
		return refuse(400, "BadRequest", "Attachments are allowed in the final streaming message only")
	case kind == "informative" && len([]rune(a.Text)) > maxInformative:
		return notAllowed("Message size too large")
	case kind != "final" && info.StreamID == "" && info.StreamSequence != 1:
		return refuse(400, "BadRequest", "Start streaming activities should have streamSequence 1")
	}
	return nil
}

// startStream begins one. Teams has one stream at a time in a chat.
func (s *Server) startStream(r *room, a *sent, kind string, info streamInfo) (int, any, error) {
	if old := r.stream; old != nil {
		if time.Since(old.begun) <= s.o.StreamLife {
			return 0, nil, notAllowed("Content stream is not allowed")
		}
		s.finishStream(r, "Content stream finished due to exceeded streaming time.")
	}
	now := time.Now()
	st := &stream{id: s.messageID(), sequence: info.StreamSequence, begun: now, last: now}
	st.message = &Message{ID: st.id, Room: r.ID, From: s.BotID(), Bot: true, Streaming: true, Format: "markdown", At: now}
	s.put(r, st.message)
	r.stream, r.streams[st.id] = st, st
	s.grow(r, st, kind, a.Text)
	return http.StatusCreated, resource{st.id}, nil
}

func (s *Server) grow(r *room, st *stream, kind, text string) {
	if kind == "informative" {
		st.message.Informative = text
	} else {
		st.text, st.message.Text, st.message.Informative = text, text, ""
	}
	s.act(Act{Verb: "stream", Room: r.ID, Message: st.id, Text: text, Bot: true})
}

// endStream turns a stream into a message.
func (s *Server) endStream(r *room, st *stream, a *sent) (int, any, error) {
	if err := s.fill(r, st.message, a); err != nil {
		return 0, nil, err
	}
	s.finishStream(r, "Content stream is not allowed on an already completed streamed message")
	s.act(Act{Verb: "send", Room: r.ID, Message: st.id, Text: a.Text, Bot: true})
	return http.StatusAccepted, struct{}{}, nil
}

// finishStream ends the stream of a room: what was shown stays as a message.
func (s *Server) finishStream(r *room, why string) {
	st := r.stream
	st.ended, r.stream = why, nil
	st.message.Streaming, st.message.Informative = false, ""
	if st.message.Text == "" && len(st.message.Cards) == 0 && len(st.message.Files) == 0 {
		r.forget(st.id)
	}
}
