package teamstest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stage is a fake with a bot that takes everything.
type stage struct {
	*Server
	t     *testing.T
	u     User
	chat  Room
	bot   *httptest.Server
	token string
	got   chan map[string]any
	// answer is what the bot says to an activity; nil is 200.
	answer func(http.ResponseWriter, map[string]any)
}

func newStage(t *testing.T, o Options) *stage {
	s := &stage{Server: New(o), t: t, got: make(chan map[string]any, 1000)}
	_, err := s.Start()
	require.NoError(t, err)
	s.bot = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var a map[string]any
		_ = json.NewDecoder(r.Body).Decode(&a)
		a["authorization"] = r.Header.Get("Authorization")
		s.got <- a
		if s.answer != nil {
			s.answer(w, a)
		}
	}))
	t.Cleanup(func() {
		s.Close()
		s.bot.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	s.SetEndpoint(s.bot.URL)
	s.u = s.AddUser("Pat Doe")
	s.chat = s.Personal(s.u)
	status, body := s.fetchToken(s.Secret(), connectorScope)
	require.Equal(t, 200, status, "%s", body)
	var tok struct {
		Access string `json:"access_token"`
	}
	require.NoError(t, json.Unmarshal(body, &tok))
	s.token = tok.Access
	return s
}

func (s *stage) fetchToken(secret, scope string) (int, []byte) {
	resp, err := http.PostForm(s.URLs().Login+"/"+s.TenantID()+"/oauth2/v2.0/token", url.Values{
		"grant_type": {"client_credentials"}, "client_id": {s.AppID()}, "client_secret": {secret}, "scope": {scope},
	})
	require.NoError(s.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, body
}

// reply is an answer of the connector.
type reply struct {
	status int
	header http.Header
	body   []byte
	ID     string `json:"id"`
	Error  struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func (s *stage) call(method, path string, body any) reply {
	s.t.Helper()
	return s.do(method, s.URLs().Service+path, body, s.token, nil)
}

func (s *stage) do(method, target string, body any, token string, header http.Header) reply {
	s.t.Helper()
	raw, ok := body.([]byte)
	if words, is := body.(json.RawMessage); is {
		raw = words
	} else if !ok && body != nil {
		var err error
		raw, err = json.Marshal(body)
		require.NoError(s.t, err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, target, bytes.NewReader(raw))
	require.NoError(s.t, err)
	if !ok {
		req.Header.Set("Content-Type", "application/json; charset=utf-8")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	out := reply{status: resp.StatusCode, header: resp.Header}
	out.body, err = io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	_ = json.Unmarshal(out.body, &out)
	return out
}

func (s *stage) send(conversation string, activity map[string]any) reply {
	s.t.Helper()
	return s.call("POST", "v3/conversations/"+url.PathEscape(conversation)+"/activities", activity)
}

func text(words string) map[string]any { return map[string]any{"type": "message", "text": words} }

// next is the next activity that the bot was given.
func (s *stage) next() map[string]any {
	s.t.Helper()
	select {
	case a := <-s.got:
		return a
	case <-time.After(10 * time.Second):
		s.t.Fatal("the bot was given nothing")
		return nil
	}
}

func TestServer_RoundTrip(t *testing.T) {
	s := newStage(t, Options{})
	id := s.Say(s.chat.ID, "hello")
	a := s.next()
	require.Equal(t, "hello", a["text"])
	require.Equal(t, id, a["id"])
	require.Equal(t, s.URLs().Service, a["serviceUrl"])
	require.Eventually(t, func() bool { return s.Pending() == 0 }, 5*time.Second, time.Millisecond)
	r := s.send(s.chat.ID, text("hi"))
	require.Equal(t, 201, r.status, "%s", r.body)
	require.Equal(t, "hi", s.Visible(s.chat.ID)[0].Text)
	require.Equal(t, r.ID, s.Visible(s.chat.ID)[0].ID)
}
