package slacktest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

// workspace is a fake with one team, a person, a direct chat and a channel, and a client that knows nothing
// but HTTP and WebSockets.
type workspace struct {
	t       *testing.T
	fake    *Server
	team    Team
	pat     User
	dm      string
	general string
	http    *http.Client
}

func newWorkspace(t *testing.T, o Options) *workspace {
	t.Helper()
	w := &workspace{t: t, fake: New(o), http: &http.Client{Transport: &http.Transport{}}}
	_, err := w.fake.Start()
	require.NoError(t, err)
	t.Cleanup(func() {
		w.http.CloseIdleConnections()
		w.fake.Close()
	})
	w.team = w.fake.AddTeam(Team{})
	w.pat = w.fake.AddUser("", User{RealName: "Pat Doe"})
	w.dm = w.fake.OpenDM("", w.pat.ID)
	w.general = w.fake.AddChannel("", Channel{Name: "general", Members: []string{w.pat.ID}}).ID
	return w
}

// answer is what the Web API says.
type answer struct {
	status int
	header http.Header
	OK     bool
	Error  string
	body   map[string]any
	raw    string
}

// call calls a method with a form.
func (w *workspace) call(method string, params ...string) answer {
	w.t.Helper()
	a, err := w.try(w.t.Context(), w.team.BotToken, method, params...)
	require.NoError(w.t, err)
	return a
}

func (w *workspace) must(method string, params ...string) map[string]any {
	w.t.Helper()
	a := w.call(method, params...)
	require.True(w.t, a.OK, "%s: %s", method, a.raw)
	return a.body
}

func (w *workspace) try(ctx context.Context, token, method string, params ...string) (answer, error) {
	form := url.Values{}
	for i := 0; i < len(params); i += 2 {
		form.Set(params[i], params[i+1])
	}
	return w.post(ctx, token, method, "application/x-www-form-urlencoded", []byte(form.Encode()))
}

func (w *workspace) post(ctx context.Context, token, method, kind string, body []byte) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.fake.APIURL()+method, bytes.NewReader(body))
	require.NoError(w.t, err)
	req.Header.Set("Content-Type", kind)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	_ = json.Unmarshal(raw, &a.body)
	a.OK, _ = a.body["ok"].(bool)
	a.Error, _ = a.body["error"].(string)
	return a, nil
}

// listener is a Socket Mode client.
type listener struct {
	w    *workspace
	conn *websocket.Conn

	mu       sync.Mutex
	got      []delivery
	ended    bool
	noAck    bool
	ackWith  json.RawMessage
	pongs    int
	finished chan struct{}
}

// delivery is a message from the socket.
type delivery struct {
	Type       string
	EnvelopeID string          `json:"envelope_id"`
	Payload    json.RawMessage `json:"payload"`
	Accepts    bool            `json:"accepts_response_payload"`
	Attempt    int             `json:"retry_attempt"`
	Retry      string          `json:"retry_reason"`
	Reason     string          `json:"reason"`
	Count      int             `json:"num_connections"`
}

// event is the payload of an events_api delivery.
type event struct {
	ID    string `json:"event_id"`
	Team  string `json:"team_id"`
	Event struct {
		Type, Subtype, Text, User, TS, Channel, Reaction string
		Thread                                           string `json:"thread_ts"`
		Kind                                             string `json:"channel_type"`
	}
}

func (d delivery) event(t *testing.T) event {
	var e event
	require.NoError(t, json.Unmarshal(d.Payload, &e))
	return e
}

// dial opens a ticket and connects.
func (w *workspace) dial() *websocket.Conn {
	w.t.Helper()
	a, err := w.try(w.t.Context(), w.fake.AppToken(), "apps.connections.open")
	require.NoError(w.t, err)
	require.True(w.t, a.OK, a.raw)
	conn, resp, err := websocket.DefaultDialer.DialContext(w.t.Context(), a.body["url"].(string), nil)
	require.NoError(w.t, err)
	resp.Body.Close()
	return conn
}

// listen connects and reads; acknowledge says whether it acknowledges.
func (w *workspace) listen(acknowledge bool) *listener {
	w.t.Helper()
	l := &listener{w: w, conn: w.dial(), noAck: !acknowledge, finished: make(chan struct{})}
	l.conn.SetPongHandler(func(string) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.pongs++
		return nil
	})
	go l.read()
	w.t.Cleanup(l.close)
	return l
}

func (l *listener) close() {
	_ = l.conn.Close()
	<-l.finished
}

func (l *listener) read() {
	defer close(l.finished)
	for {
		var d delivery
		if err := l.conn.ReadJSON(&d); err != nil {
			l.mu.Lock()
			l.ended = true
			l.mu.Unlock()
			return
		}
		l.mu.Lock()
		l.got = append(l.got, d)
		ack, with := !l.noAck && d.EnvelopeID != "", l.ackWith
		l.mu.Unlock()
		if ack {
			_ = l.ack(d.EnvelopeID, with)
		}
	}
}

func (l *listener) ack(id string, with json.RawMessage) error {
	out := map[string]any{"envelope_id": id}
	if with != nil {
		out["payload"] = with
	}
	return l.conn.WriteJSON(out)
}

func (l *listener) all(kind string) []delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []delivery
	for _, d := range l.got {
		if d.Type == kind {
			out = append(out, d)
		}
	}
	return out
}

// wait waits until n messages of a type came.
func (l *listener) wait(kind string, n int) []delivery {
	l.w.t.Helper()
	l.w.until(func() bool { return len(l.all(kind)) >= n }, "%d × %s", n, kind)
	return l.all(kind)
}

func (w *workspace) until(cond func() bool, what string, args ...any) {
	w.t.Helper()
	require.Eventuallyf(w.t, cond, patience, 2*time.Millisecond, what, args...)
}

func TestWebAPI_WhoMayCallWhat(t *testing.T) {
	w := newWorkspace(t, Options{})
	for _, c := range []struct{ name, token, method, want string }{
		{"no token", "", "auth.test", "not_authed"},
		{"unknown token", "xoxb-nobody", "auth.test", "invalid_auth"},
		{"unknown method", w.team.BotToken, "chat.sing", "unknown_method"},
		{"app token for a bot's method", w.fake.AppToken(), "chat.postMessage", "not_allowed_token_type"},
		{"bot token for the app's method", w.team.BotToken, "apps.connections.open", "not_allowed_token_type"},
		{"bot token", w.team.BotToken, "auth.test", ""},
		{"app token", w.fake.AppToken(), "auth.test", ""},
	} {
		a, err := w.try(t.Context(), c.token, c.method)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, a.Error, c.name)
		require.Equal(t, c.want == "", a.OK, c.name)
		require.Equal(t, 200, a.status, c.name)
	}
	w.fake.SetScopes("", "chat:write", "commands")
	a := w.call("reactions.add", "channel", w.general, "timestamp", "1.2", "name", "eyes")
	require.Equal(t, "missing_scope", a.Error)
	require.Equal(t, "reactions:write", a.body["needed"])
	require.Equal(t, "chat:write,commands", a.body["provided"])
	require.Equal(t, "chat:write,commands", a.header.Get("X-OAuth-Scopes"))
	w.fake.Revoke("", "token_expired")
	require.Equal(t, "token_expired", w.call("auth.test").Error)
	w.fake.Revoke("", "")
	w.fake.RevokeApp("invalid_auth")
	a, err := w.try(t.Context(), w.fake.AppToken(), "apps.connections.open")
	require.NoError(t, err)
	require.Equal(t, "invalid_auth", a.Error)
}

func TestSocketMode_MentionsComeTwiceWithTheSameTS(t *testing.T) {
	w := newWorkspace(t, Options{})
	l := w.listen(true)
	hello := l.wait("hello", 1)[0]
	require.Equal(t, 1, hello.Count)
	ts := w.fake.Write(Post{Channel: w.general, Text: "a &lt; b", Mention: true})
	got := l.wait("events_api", 2)
	message, mention := got[0].event(t), got[1].event(t)
	require.Equal(t, "message", message.Event.Type)
	require.Equal(t, "channel", message.Event.Kind)
	require.Equal(t, "app_mention", mention.Event.Type)
	require.Equal(t, ts, message.Event.TS)
	require.Equal(t, ts, mention.Event.TS)
	require.NotEqual(t, message.ID, mention.ID)
	require.Equal(t, w.team.ID, message.Team)
	require.Equal(t, "<@"+w.team.BotUser+"> a &lt; b", mention.Event.Text)
	w.until(func() bool { return w.fake.Pending() == 0 }, "acknowledged")

	w.fake.Write(Post{Channel: w.dm, Text: "hi", Mention: true})
	w.fake.Say("", w.dm, "and")
	got = l.wait("events_api", 4)
	require.Equal(t, "message", got[2].event(t).Event.Type)
	require.Equal(t, "and", got[3].event(t).Event.Text, "a direct chat has no app_mention")
}

func TestChat_PostUpdateDelete(t *testing.T) {
	w := newWorkspace(t, Options{})
	root := w.fake.Say("", w.general, "question")
	post := w.must("chat.postMessage", "channel", w.general, "thread_ts", root, "text", "<@"+w.pat.ID+"> 1 &lt; 2 <https://x.example|x>")
	ts := post["ts"].(string)
	require.Equal(t, w.team.BotID, post["message"].(map[string]any)["bot_id"])
	seen := w.fake.Visible("", w.general, root)
	require.Len(t, seen, 1)
	require.Equal(t, "@pat.doe 1 < 2 x", seen[0].Text)
	require.Empty(t, w.fake.Visible("", w.general, ""))
	w.must("chat.update", "channel", w.general, "ts", ts, "text", "better")
	require.Equal(t, "better", w.fake.Visible("", w.general, root)[0].Text)
	require.Equal(t, "msg_too_long", w.call("chat.update", "channel", w.general, "ts", ts, "text", strings.Repeat("x", 4001)).Error)
	require.Equal(t, "cant_update_message", w.call("chat.update", "channel", w.general, "ts", root, "text", "no").Error)
	w.must("chat.delete", "channel", w.general, "ts", ts)
	require.Equal(t, "message_not_found", w.call("chat.delete", "channel", w.general, "ts", ts).Error)
	require.Empty(t, w.fake.Visible("", w.general, root))
	w.must("chat.postMessage", "channel", w.pat.ID, "text", "to a person")
	require.Equal(t, "to a person", w.fake.Visible("", w.dm, "")[0].Text)
}
