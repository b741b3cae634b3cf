package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms"
)

// event is one server-sent event.
type event struct {
	id, name, data string
}

// listener is an open event stream.
type listener struct {
	t      testing.TB
	res    *http.Response
	lines  *bufio.Reader
	cancel context.CancelFunc
}

// listen opens a stream from a cursor; lastID goes as the browser's header.
func (s *stage) listen(after, lastID string) *listener {
	s.t.Helper()
	return s.stream(after, func(r *http.Request) {
		if lastID != "" {
			r.Header.Set("Last-Event-ID", lastID)
		}
	})
}

// listenWith opens a stream with a token.
func (s *stage) listenWith(after, token string) *listener {
	s.t.Helper()
	return s.stream(after, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) })
}

func (s *stage) stream(after string, change func(*http.Request)) *listener {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req := s.request("GET", "/api/chat/events?after="+after, nil, change).WithContext(ctx)
	res, err := s.server.Client().Do(req)
	require.NoError(s.t, err)
	require.Equal(s.t, 200, res.StatusCode)
	require.Equal(s.t, "text/event-stream", res.Header.Get("Content-Type"))
	l := &listener{t: s.t, res: res, lines: bufio.NewReaderSize(res.Body, 1<<20), cancel: cancel}
	s.t.Cleanup(l.close)
	return l
}

func (l *listener) close() {
	l.cancel()
	_ = l.res.Body.Close()
}

// next returns the next event; ok is false when the stream ended.
func (l *listener) next() (e event, ok bool) {
	for {
		line, err := l.lines.ReadString('\n')
		if err != nil {
			return e, false
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && e.name != "":
			return e, true
		case name == "id":
			e.id = value
		case name == "event":
			e.name = value
		case name == "data":
			e.data = value
		}
	}
}

// until reads events up to the first that satisfies ok, and returns all of them.
func (l *listener) until(ok func(event) bool) []event {
	l.t.Helper()
	var seen []event
	for {
		e, open := l.next()
		require.True(l.t, open, "the stream ended; so far: %v", seen)
		seen = append(seen, e)
		if ok(e) {
			return seen
		}
	}
}

func (e event) message(t testing.TB) message {
	t.Helper()
	require.Equal(t, "message", e.name, "%v", e)
	var m message
	require.NoError(t, json.Unmarshal([]byte(e.data), &m))
	return m
}

func TestStream_TellsWhatHappens(t *testing.T) {
	s := newStage(t, nil)
	l := s.listen(s.history(testChat, "").Cursor, "")
	s.post(testChat, "client-1", "hello")
	e, _ := l.next()
	require.Equal(t, "hello", e.message(t).Text)
	require.NoError(t, s.adapter.Typing(t.Context(), at(testChat)))
	e, _ = l.next()
	require.Equal(t, event{e.id, "typing", `{"chat":"` + string(testChat) + `","for_ms":5000}`}, e)
	id := s.send(text(testChat, "n1", "**hi**"))
	e, _ = l.next()
	require.Equal(t, "<p><strong>hi</strong></p>\n", e.message(t).HTML)
	e, _ = l.next()
	require.Equal(t, `{"chat":"`+string(testChat)+`","for_ms":0}`, e.data)
	require.NoError(t, s.adapter.AnswerClick(t.Context(), at(testChat), platforms.Click{MessageID: id, Reply: "click-01"}, "Done"))
	e, _ = l.next()
	require.Equal(t, "clicked", e.name)
	require.Contains(t, e.data, `"text":"Done"`)
	require.NoError(t, s.adapter.Delete(t.Context(), at(testChat), id))
	e, _ = l.next()
	require.Equal(t, event{e.id, "removed", fmt.Sprintf(`{"chat":%q,"seq":%s}`, testChat, id)}, e)
	require.NoError(t, s.adapter.SetCommands(t.Context(), testCommands))
	e, _ = l.next()
	require.Contains(t, e.data, `{"name":"help","description":"Show what can be done"}`)
}

// A tab that comes back gets what it missed, once, in order, and the newest state of each message.
func TestStream_Resumes(t *testing.T) {
	s := newStage(t, nil)
	l := s.listen(s.history(testChat, "").Cursor, "")
	s.send(text(testChat, "n1", "one"))
	e, _ := l.next()
	l.close()

	two := s.send(text(testChat, "n2", "two"))
	s.send(text(testChat, "n3", "three"))
	for i := range 5 {
		edit := text(testChat, "", fmt.Sprint("two, edit ", i))
		edit.Edit = two
		s.send(edit)
	}
	back := s.listen("ignored-0", e.id) // the browser's own header wins
	a, _ := back.next()
	b, _ := back.next()
	require.Equal(t, "three", a.message(t).Text)
	require.Equal(t, "two, edit 4", b.message(t).Text)
	s.send(text(testChat, "n4", "four"))
	c, _ := back.next()
	require.Equal(t, "four", c.message(t).Text)
}

func TestStream_ResetsWhatItCannotResume(t *testing.T) {
	s := newStage(t, nil)
	for _, cursor := range []string{"", "-", "other-5", "0", "99999999999999999999", strings.Split(s.history(testChat, "").Cursor, "-")[0] + "-999"} {
		l := s.listen(cursor, "")
		e, _ := l.next()
		require.Equal(t, "reset", e.name, cursor)
		s.send(text(testChat, "", "after "+cursor))
		e, _ = l.next()
		require.Equal(t, "after "+cursor, e.message(t).Text, "and goes on from there")
		l.close()
	}
}

// P10: the end of Run ends the streams and waits for them.
func TestStream_EndsWithRun_P10(t *testing.T) {
	s := newStage(t, nil)
	cursor := s.history(testChat, "").Cursor
	l := s.listen(cursor, "")
	s.stop()
	_, open := l.next()
	require.False(t, open)
	res, _ := s.do("GET", "/api/chat/events", nil, nil)
	require.Equal(t, 503, res.StatusCode)
	s.start()
	l = s.listen(cursor, "")
	s.send(text(testChat, "n1", "again"))
	e, _ := l.next()
	require.Equal(t, "again", e.message(t).Text)
}

func TestStream_TabsAreBounded(t *testing.T) {
	s := newStage(t, nil)
	cursor := s.history(testChat, "").Cursor
	for range 64 {
		s.listen(cursor, "")
	}
	res, b := s.do("GET", "/api/chat/events", nil, nil)
	require.Equal(t, 503, res.StatusCode)
	code, _ := failure(t, b)
	require.Equal(t, "tabs", code)
}

// A tab that reads nothing must not hold up a send.
func TestStream_ASlowTabHoldsUpNobody(t *testing.T) {
	s := newStage(t, nil)
	cursor := s.history(testChat, "").Cursor
	s.listen(cursor, "") // and never reads
	big := strings.Repeat("word ", 60_000)
	id := s.send(text(testChat, "n", big))
	for i := range 50 { // 15 MB: more than the connection holds
		edit := text(testChat, "", fmt.Sprint(i, " ", big))
		edit.Edit = id
		s.send(edit)
	}
	edit := text(testChat, "", "the end")
	edit.Edit = id
	s.send(edit)
	e, _ := s.listen(cursor, "").next()
	require.Equal(t, "the end", e.message(t).Text, "states in between are left out")
}
