package slacktest

import (
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"
)

// stream checks what start, append and stop share and returns the text that they add.
func (m *message) stream(c *call, needed bool) error {
	text := c.get("markdown_text")
	var chunks []json.RawMessage
	if raw := c.get("chunks"); raw != "" && json.Unmarshal([]byte(raw), &chunks) != nil {
		return refuse("invalid_chunks")
	}
	switch {
	case text != "" && len(chunks) > 0:
		return refuse("markdown_text_conflict")
	case needed && text == "" && len(chunks) == 0:
		return refuse("no_text")
	case utf8.RuneCountInString(text) > maxMarkdownText:
		return refuse("msg_too_long")
	}
	var kept []json.RawMessage
	for _, raw := range chunks {
		added, keep, err := readChunk(raw)
		if err != nil {
			return err
		}
		text += added
		if keep {
			kept = append(kept, raw)
		}
	}
	m.Raw += text
	m.Chunks = append(m.Chunks, kept...)
	return nil
}

// readChunk returns the text of a chunk, or that it is kept.
func readChunk(raw json.RawMessage) (text string, keep bool, err error) {
	var chunk struct {
		Type   string          `json:"type"`
		Text   string          `json:"text"`
		ID     string          `json:"id"`
		Title  string          `json:"title"`
		Status string          `json:"status"`
		Blocks json.RawMessage `json:"blocks"`
	}
	if json.Unmarshal(raw, &chunk) != nil {
		return "", false, refuse("invalid_chunks")
	}
	switch chunk.Type {
	case "markdown_text":
		if utf8.RuneCountInString(chunk.Text) > maxMarkdownText {
			return "", false, refuse("msg_too_long")
		}
		return chunk.Text, false, nil
	case "task_update":
		known := slices.Contains([]string{"", "pending", "in_progress", "complete", "error"}, chunk.Status)
		if chunk.ID == "" || chunk.Title == "" || !known || utf8.RuneCountInString(chunk.Title) > maxChunkTitle {
			return "", false, refuse("invalid_chunks")
		}
	case "plan_update":
		if chunk.Title == "" || utf8.RuneCountInString(chunk.Title) > maxChunkTitle {
			return "", false, refuse("invalid_chunks")
		}
	case "blocks":
		return "", true, checkBlocks(string(chunk.Blocks), maxBlocks)
	default:
		return "", false, refuse("invalid_chunks")
	}
	return "", true, nil
}

// maxChunkTitle is the most characters of a task's or plan's title.
const maxChunkTitle = 256

func (s *Server) streamStart(t *team, c *call) (object, error) {
	ch, err := s.place(t, c)
	switch {
	case err != nil:
		return nil, err
	case ch.WithoutBot:
		return nil, refuse("not_in_channel")
	case c.get("thread_ts") == "":
		return nil, missing("thread_ts")
	case ch.Kind != IM && c.get("recipient_user_id") == "":
		return nil, refuse("missing_recipient_user_id")
	case ch.Kind != IM && c.get("recipient_team_id") == "":
		return nil, refuse("missing_recipient_team_id")
	}
	m := s.own(ch)
	m.Markdown, m.Streaming = true, Streams
	if m.Thread, err = ch.root(c.get("thread_ts")); err != nil {
		return nil, err
	}
	if err := m.stream(c, false); err != nil {
		return nil, err
	}
	if err := s.perMinute(&t.starts); err != nil {
		return nil, err
	}
	m.At = time.Now()
	s.write(ch, m)
	s.act(Act{Verb: "stream-start", Team: t.ID, Channel: ch.ID, Thread: m.Thread, TS: m.TS, User: m.User, Text: m.Raw})
	return object{"channel": ch.ID, "ts": m.TS}, nil
}

// perMinute counts a call against Options.StreamsPerMinute.
func (s *Server) perMinute(calls *[]time.Time) error {
	if s.o.StreamsPerMinute == 0 {
		return nil
	}
	now := time.Now()
	*calls = slices.DeleteFunc(*calls, func(at time.Time) bool { return now.Sub(at) >= time.Minute })
	if len(*calls) >= s.o.StreamsPerMinute {
		return tooSoon{wait: time.Minute - now.Sub((*calls)[0])}
	}
	*calls = append(*calls, now)
	return nil
}

// streaming finds the message of an append or stop.
func (s *Server) streaming(t *team, c *call) (*channel, *message, error) {
	ch, m, err := s.find(t, c, c.get("ts"))
	switch {
	case err != nil:
		return nil, nil, err
	case !m.Own:
		return nil, nil, refuse("message_not_owned_by_app")
	case m.stopped:
		return nil, nil, refuse("stopped_by_user")
	case m.Streaming != Streams:
		return nil, nil, refuse("message_not_in_streaming_state")
	}
	return ch, m, nil
}

func (s *Server) streamAppend(t *team, c *call) (object, error) {
	ch, m, err := s.streaming(t, c)
	if err != nil {
		return nil, err
	}
	before := len(m.Raw)
	if err := m.stream(c, true); err != nil {
		return nil, err
	}
	s.act(Act{Verb: "stream-append", Team: t.ID, Channel: ch.ID, Thread: m.Thread, TS: m.TS, User: m.User, Text: m.Raw[before:]})
	return object{"channel": ch.ID, "ts": m.TS}, nil
}

func (s *Server) streamStop(t *team, c *call) (object, error) {
	ch, m, err := s.streaming(t, c)
	if err != nil {
		return nil, err
	}
	if err := checkBlocks(c.get("blocks"), maxBlocks); err != nil {
		return nil, err
	}
	if err := s.perMinute(&t.stops); err != nil {
		return nil, err
	}
	before := len(m.Raw)
	if err := m.stream(c, false); err != nil {
		return nil, err
	}
	if err := m.fillMetadata(c); err != nil {
		return nil, err
	}
	added := m.Raw[before:]
	s.change(ch, m, "", func(m *message) {
		m.Streaming = Sealed
		if c.get("blocks") != "" && c.get("blocks") != "[]" {
			m.Blocks = json.RawMessage(c.get("blocks"))
		}
	})
	s.act(Act{Verb: "stream-stop", Team: t.ID, Channel: ch.ID, Thread: m.Thread, TS: m.TS, User: m.User, Text: added})
	return object{"channel": ch.ID, "ts": m.TS, "message": s.wire(ch, m)}, nil
}

// StopStream makes the reader press Stop under a message that streams, or, with expired, lets Slack end a
// stream that went idle. It says whether the message was streaming.
func (s *Server) StopStream(team, channel, ts string, expired bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.team(team).channel(channel).message(ts)
	if m == nil || m.Streaming != Streams {
		return false
	}
	m.Streaming, m.stopped = Sealed, !expired
	return true
}
