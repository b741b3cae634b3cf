package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"herald/platforms"
	"herald/platforms/web"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// Idle connections of the default client belong to nobody's test.
		goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"),
	)
}

// memLog is a platforms.Log in memory.
type memLog struct {
	mu     sync.Mutex
	seq    int64
	rows   []platforms.LogEntry
	nonces map[string]int64
	fail   error // returned by every write
	writes int
}

func newMemLog() *memLog { return &memLog{nonces: make(map[string]int64)} }

func (l *memLog) Append(_ context.Context, chat platforms.ChatID, nonce string, payload []byte) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return 0, l.fail
	}
	key := string(chat) + "\x00" + nonce
	if seq, ok := l.nonces[key]; ok && nonce != "" {
		return seq, nil
	}
	l.writes++
	l.seq++
	l.nonces[key] = l.seq
	l.rows = append(l.rows, platforms.LogEntry{Chat: chat, Seq: l.seq, Payload: bytes.Clone(payload)})
	return l.seq, nil
}

func (l *memLog) Update(_ context.Context, chat platforms.ChatID, seq int64, payload []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	for i, r := range l.rows {
		if r.Chat == chat && r.Seq == seq {
			l.writes++
			l.rows[i].Payload = bytes.Clone(payload)
			return nil
		}
	}
	return platforms.ErrNoEntry
}

func (l *memLog) Remove(_ context.Context, chat platforms.ChatID, seq int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows = slices.DeleteFunc(l.rows, func(r platforms.LogEntry) bool { return r.Chat == chat && r.Seq == seq })
	return nil
}

func (l *memLog) List(_ context.Context, chat platforms.ChatID, before int64, limit int) ([]platforms.LogEntry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []platforms.LogEntry
	for _, r := range l.rows {
		if r.Chat == chat && (before == 0 || r.Seq < before) {
			out = append(out, r)
		}
	}
	return out[max(0, len(out)-limit):], nil
}

func (l *memLog) Chats(_ context.Context, limit int) ([]platforms.LogEntry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []platforms.LogEntry
	seen := make(map[platforms.ChatID]bool)
	for _, r := range slices.Backward(l.rows) {
		if !seen[r.Chat] && len(out) < limit {
			seen[r.Chat] = true
			out = append(out, r)
		}
	}
	return out, nil
}

func (l *memLog) setFail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = err
}

func (l *memLog) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.rows)
}

// sink records what is accepted, once for each id, and hands it to a script.
type sink struct {
	mu     sync.Mutex
	seen   map[platforms.EventID]bool
	events []platforms.Event
	calls  int
	err    error
	script func(platforms.Event)
}

func (s *sink) Accept(_ context.Context, events ...platforms.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.err != nil {
		return s.err
	}
	for _, e := range events {
		if err := e.Validate(); err != nil {
			return err
		}
		if s.seen[e.ID] {
			continue
		}
		s.seen[e.ID] = true
		s.events = append(s.events, e)
		if s.script != nil {
			s.script(e)
		}
	}
	return nil
}

func (s *sink) all() []platforms.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

func (s *sink) setErr(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// stage is a running adapter behind a real HTTP server.
type stage struct {
	t       testing.TB
	adapter *web.Adapter
	log     *memLog
	sink    *sink
	server  *httptest.Server
	dir     string
	stop    func()
	// gate, when set, sees every request first; true means that it has answered.
	gate func(http.ResponseWriter, *http.Request) bool
	mu   sync.Mutex
}

func (s *stage) setGate(g func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = g
}

// newStage starts an adapter. change may alter its options.
func newStage(t testing.TB, change func(*web.Options)) *stage {
	t.Helper()
	s := &stage{t: t, log: newMemLog(), sink: &sink{seen: make(map[platforms.EventID]bool)}, dir: t.TempDir()}
	o := web.Options{Log: s.log, MediaDir: s.dir, Listen: "127.0.0.1:0", Version: "test"}
	if change != nil {
		change(&o)
	}
	var err error
	s.adapter, err = web.New(o)
	require.NoError(t, err)
	mux := http.NewServeMux()
	for pattern, h := range s.adapter.Routes() {
		mux.Handle(pattern, h)
	}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		gate := s.gate
		s.mu.Unlock()
		if gate != nil && gate(w, r) {
			return
		}
		mux.ServeHTTP(w, r)
	}))
	s.start()
	t.Cleanup(func() {
		s.stop()
		s.server.CloseClientConnections()
		s.server.Close()
		require.NoError(t, s.adapter.Close())
	})
	return s
}

// start runs the adapter; stop ends it and waits.
func (s *stage) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.adapter.Run(ctx, s.sink) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(s.t, <-done)
	})
	eventually(s.t, func() bool { return s.adapter.Health().Inbound })
}

// eventually polls until ok, or fails after some seconds.
func eventually(t testing.TB, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, 10*time.Second, 2*time.Millisecond)
}

const testChat platforms.ChatID = "chat-0123456789abcdef"

func at(chat platforms.ChatID) platforms.Address {
	return platforms.Address{Platform: web.Platform, Account: web.Account, Chat: chat}
}

func text(chat platforms.ChatID, nonce, markdown string) platforms.Outgoing {
	return platforms.Outgoing{Address: at(chat), Nonce: nonce, Text: platforms.Text{Markdown: markdown, Body: markdown}}
}

// send sends through the adapter and returns the message's id.
func (s *stage) send(out platforms.Outgoing) platforms.MessageID {
	s.t.Helper()
	r, err := s.adapter.Send(context.Background(), out)
	require.NoError(s.t, err)
	return r.Message
}

// request makes a request of the page's own kind.
func (s *stage) request(method, path string, body any, change func(*http.Request)) *http.Request {
	s.t.Helper()
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	case []byte:
		r = bytes.NewReader(b)
	default:
		j, err := json.Marshal(b)
		require.NoError(s.t, err)
		r = bytes.NewReader(j)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, s.server.URL+path, r)
	require.NoError(s.t, err)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(req)
	}
	return req
}

// do makes a request and returns the answer with its body.
func (s *stage) do(method, path string, body any, change func(*http.Request)) (*http.Response, []byte) {
	s.t.Helper()
	res, err := s.server.Client().Do(s.request(method, path, body, change))
	require.NoError(s.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(s.t, err)
	return res, b
}

type postBody struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

func messagesPath(chat platforms.ChatID) string {
	return "/api/chat/chats/" + string(chat) + "/messages"
}

// post posts a message and requires an answer of 200.
func (s *stage) post(chat platforms.ChatID, id, text string) message {
	s.t.Helper()
	res, b := s.do("POST", messagesPath(chat), postBody{id, text}, nil)
	require.Equal(s.t, http.StatusOK, res.StatusCode, "%s", b)
	var v struct {
		Message message `json:"message"`
	}
	require.NoError(s.t, json.Unmarshal(b, &v))
	return v.Message
}

// message is what the page reads of a message.
type message struct {
	Chat     platforms.ChatID `json:"chat"`
	Seq      int64            `json:"seq"`
	From     string           `json:"from"`
	Text     string           `json:"text"`
	HTML     string           `json:"html"`
	Title    string           `json:"title"`
	Client   string           `json:"client"`
	Pending  bool             `json:"pending"`
	Interim  bool             `json:"interim"`
	Progress bool             `json:"progress"`
	Edited   string           `json:"edited"`
	Files    []struct {
		ID, Name, MIME, Kind, URL, Note string
		Size                            int64
	} `json:"files"`
	Buttons [][]struct{ Label, Data, Style string } `json:"buttons"`
	Reply   *struct {
		Seq  int64
		Text string
	} `json:"reply"`
}

type page struct {
	Cursor   string    `json:"cursor"`
	Messages []message `json:"messages"`
	More     bool      `json:"more"`
	Typing   bool      `json:"typing"`
}

func (s *stage) history(chat platforms.ChatID, query string) page {
	s.t.Helper()
	res, b := s.do("GET", messagesPath(chat)+query, nil, nil)
	require.Equal(s.t, http.StatusOK, res.StatusCode, "%s", b)
	var p page
	require.NoError(s.t, json.Unmarshal(b, &p))
	return p
}

// failure decodes an error answer.
func failure(t testing.TB, body []byte) (code, sentence string) {
	t.Helper()
	var v struct {
		Error struct{ Code, Message string }
	}
	require.NoError(t, json.Unmarshal(body, &v), "%s", body)
	return v.Error.Code, v.Error.Message
}

var errDisk = errors.New("disk full")
