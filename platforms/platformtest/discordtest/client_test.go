package discordtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

const testToken = "MTE.secret.token"

// stage is a fake with a guild, a channel and people, and what a client needs to talk to it.
type stage struct {
	*Discord
	t                         *testing.T
	url                       string
	pat, lee                  ID
	guild, channel, forum, dm ID
	client                    *http.Client
}

func newStage(t *testing.T, o Options) *stage {
	if o.Token == "" {
		o.Token = testToken
	}
	s := &stage{Discord: New(o), t: t, client: &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}}
	url, err := s.Start()
	require.NoError(t, err)
	s.url = url
	t.Cleanup(s.Close)
	t.Cleanup(s.client.CloseIdleConnections)
	s.pat = s.AddUser(User{Username: "pat", GlobalName: "Pat"})
	s.lee = s.AddUser(User{Username: "lee", GlobalName: "Lee"})
	s.guild = s.AddGuild("Team", 0, s.pat, s.lee)
	s.channel = s.AddChannel(Channel{Guild: s.guild, Name: "general"})
	s.forum = s.AddChannel(Channel{Guild: s.guild, Name: "ideas", Type: ForumChannel})
	s.dm = s.DM(s.pat)
	return s
}

// answered is a REST answer.
type answered struct {
	status int
	head   http.Header
	body   []byte
}

// at reads a value of the JSON body by a path such as "errors.content._errors.0.code".
func (a answered) at(path string) any { return dig(a.body, path) }

func dig(raw []byte, path string) any {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	for _, key := range strings.Split(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[key]
		case []any:
			i := slices.Index([]string{"0", "1", "2", "3", "4"}, key)
			if i < 0 || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

// do calls a route of API v10 with a JSON body, or none when it is nil.
func (s *stage) do(method, path string, body any) answered {
	s.t.Helper()
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		require.NoError(s.t, err)
		reader = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, s.url+"/api/v10"+path, reader)
	require.NoError(s.t, err)
	req.Header.Set("Content-Type", "application/json")
	return s.send(req)
}

func (s *stage) send(req *http.Request) answered {
	s.t.Helper()
	if req.Header.Get("Authorization") == "" {
		req.Header.Set("Authorization", "Bot "+testToken)
	}
	resp, err := s.client.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return answered{resp.StatusCode, resp.Header, raw}
}

type m = map[string]any

// post writes text as the bot and returns the message's id.
func (s *stage) post(channel ID, text string) ID {
	s.t.Helper()
	a := s.do("POST", "/channels/"+string(channel)+"/messages", m{"content": text})
	require.Equal(s.t, 200, a.status, "%s", a.body)
	return ID(a.at("id").(string))
}

// socket is a gateway client that keeps what comes.
type socket struct {
	t    *testing.T
	ws   *websocket.Conn
	mu   sync.Mutex
	got  []packet
	code int // close code, -1 for a broken connection
	done chan struct{}
}

// dial opens a gateway connection.
func (s *stage) dial(query string) *socket {
	s.t.Helper()
	ws, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(s.url, "http")+"/gateway/?"+query, nil)
	require.NoError(s.t, err)
	c := &socket{t: s.t, ws: ws, done: make(chan struct{})}
	go c.read()
	s.t.Cleanup(func() {
		_ = ws.Close()
		<-c.done
	})
	return c
}

func (c *socket) read() {
	defer close(c.done)
	for {
		_, raw, err := c.ws.ReadMessage()
		c.mu.Lock()
		if err != nil {
			c.code = -1
			if e, ok := err.(*websocket.CloseError); ok {
				c.code = e.Code
			}
			c.mu.Unlock()
			return
		}
		var p packet
		if json.Unmarshal(raw, &p) == nil {
			c.got = append(c.got, p)
		}
		c.mu.Unlock()
	}
}

func (c *socket) packets() []packet {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

// events are the names of the dispatches so far.
func (c *socket) events() []string {
	var out []string
	for _, p := range c.packets() {
		if p.Op == opDispatch {
			out = append(out, *p.T)
		}
	}
	return out
}

// wait waits for the nth dispatch of a name, 1 being the first.
func (c *socket) wait(name string, n int) packet {
	c.t.Helper()
	var found packet
	require.Eventually(c.t, func() bool {
		count := 0
		for _, p := range c.packets() {
			if p.Op == opDispatch && *p.T == name {
				if count++; count == n {
					found = p
					return true
				}
			}
		}
		return false
	}, 10*time.Second, time.Millisecond, "%s number %d: got %v", name, n, c.events())
	return found
}

// op waits for a payload with that opcode.
func (c *socket) op(code int) packet {
	c.t.Helper()
	var found packet
	require.Eventually(c.t, func() bool {
		for _, p := range c.packets() {
			if p.Op == code {
				found = p
				return true
			}
		}
		return false
	}, 10*time.Second, time.Millisecond, "op %d", code)
	return found
}

// closed waits for the end and returns the close code.
func (c *socket) closed() int {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(10 * time.Second):
		c.t.Fatal("the connection stays open")
	}
	return c.code
}

func (c *socket) say(op int, data any) {
	c.t.Helper()
	require.NoError(c.t, c.ws.WriteJSON(m{"op": op, "d": data}))
}

// testIntents are those of a chat bot.
const testIntents = IntentGuilds | IntentMembers | IntentGuildMessages | IntentGuildReactions | IntentGuildTyping |
	IntentDirectMessages | IntentDirectReactions | IntentDirectTyping | IntentMessageContent

func identification(intents Intents) m {
	return m{"token": testToken, "intents": intents, "properties": m{"os": "linux", "browser": "test", "device": "test"}}
}

// login opens a session and waits until its guild is there.
func (s *stage) login(intents Intents) *socket {
	s.t.Helper()
	c := s.dial("v=10&encoding=json")
	c.op(opHello)
	c.say(opIdentify, identification(intents))
	c.wait("READY", 1)
	if intents&IntentGuilds != 0 {
		c.wait("GUILD_CREATE", 1)
	}
	return c
}

// resume opens a connection that resumes the session of another one.
func (s *stage) resume(old *socket, seq int64) *socket {
	s.t.Helper()
	c := s.dial("v=10&encoding=json")
	c.op(opHello)
	c.say(opResume, m{"token": testToken, "session_id": dig(old.wait("READY", 1).D, "session_id"), "seq": seq})
	return c
}

func seqOf(p packet) int64 { return *p.S }
