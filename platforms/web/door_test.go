package web_test

import (
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/web"
)

// P13: a page that others can reach and that has no lock is not made, and the error says what to set.
func TestNew_RefusesToBeExposedWithoutALock_P13(t *testing.T) {
	for _, c := range []struct {
		name, listen, password, token string
		hosts                         []string
		wants                         []string // of the error; none: it is made
	}{
		{name: "loopback v4", listen: "127.0.0.1:8787"},
		{name: "loopback v4 elsewhere", listen: "127.3.2.1:8787"},
		{name: "loopback v6", listen: "[::1]:8787"},
		{name: "localhost", listen: "localhost:8787"},
		{name: "mapped loopback", listen: "[::ffff:127.0.0.1]:1"},
		{name: "all interfaces", listen: ":8787", wants: []string{"web/local", "http.listen", `":8787"`, "HERALD_HTTP_PASSWORD"}},
		{name: "all v4", listen: "0.0.0.0:8787", wants: []string{"http.listen", `"0.0.0.0:8787"`}},
		{name: "all v6", listen: "[::]:8787", wants: []string{"http.listen"}},
		{name: "a name", listen: "herald.example:80", wants: []string{"http.listen", "herald.example"}},
		{name: "looks like loopback", listen: "127.0.0.1.example:80", wants: []string{"http.listen"}},
		{name: "password", listen: "0.0.0.0:8787", password: "x"},
		{name: "token", listen: "0.0.0.0:8787", token: "x"},
		{name: "proxy name without a lock", listen: "127.0.0.1:1", hosts: []string{"chat.example"}, wants: []string{"http.public_url", "chat.example"}},
		{name: "proxy name with a lock", listen: "127.0.0.1:1", hosts: []string{"chat.example"}, password: "x"},
		{name: "no port", listen: "127.0.0.1", wants: []string{"http.listen", `"127.0.0.1"`}},
		{name: "nothing", listen: "", wants: []string{"http.listen"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := web.New(web.Options{
				Log: newMemLog(), MediaDir: t.TempDir(), Listen: c.listen, Hosts: c.hosts, Password: c.password, Token: c.token,
			})
			if len(c.wants) == 0 {
				require.NoError(t, err)
				require.NoError(t, a.Close())
				return
			}
			require.ErrorIs(t, err, platforms.ErrPermanent)
			for _, w := range c.wants {
				require.ErrorContains(t, err, w)
			}
		})
	}
}

func TestNew_NamesABadOption(t *testing.T) {
	good := func() web.Options {
		return web.Options{Log: newMemLog(), MediaDir: t.TempDir(), Listen: "127.0.0.1:1"}
	}
	for name, c := range map[string]struct {
		change func(*web.Options)
		want   string
	}{
		"log":          {func(o *web.Options) { o.Log = nil }, "Options.Log"},
		"media":        {func(o *web.Options) { o.MediaDir = "" }, "Options.MediaDir"},
		"media a file": {func(o *web.Options) { o.MediaDir = filepath.Join("/dev/null", "x") }, "HERALD_HOME"},
		"upload":       {func(o *web.Options) { o.MaxUpload = -1 }, "gateway.max_inbound_media_bytes: -1"},
		"text":         {func(o *web.Options) { o.MaxText = -5 }, "gateway.max_message_bytes: -5"},
	} {
		t.Run(name, func(t *testing.T) {
			o := good()
			c.change(&o)
			_, err := web.New(o)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// P13: what comes from another name, another site or without a session stays outside.
func TestDoor_Requests_P13(t *testing.T) {
	open := newStage(t, nil)
	locked := newStage(t, func(o *web.Options) {
		o.Password, o.Token, o.Hosts, o.Listen = "sesame", "tok", []string{"Chat.Example"}, "0.0.0.0:1"
	})
	const boot = "/api/chat/bootstrap"
	set := func(pairs ...string) func(*http.Request) {
		return func(r *http.Request) {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == "Host" {
					r.Host = pairs[i+1]
				} else {
					r.Header.Add(pairs[i], pairs[i+1])
				}
			}
		}
	}
	own := strings.TrimPrefix(open.server.URL, "http://")
	for _, c := range []struct {
		name   string
		on     *stage
		method string
		path   string
		change func(*http.Request)
		want   int
	}{
		{"plain", open, "GET", boot, nil, 200},
		{"localhost", open, "GET", boot, set("Host", "localhost:99"), 200},
		{"dot localhost", open, "GET", boot, set("Host", "herald.localhost"), 200},
		{"v6", open, "GET", boot, set("Host", "[::1]:8787"), 200},
		{"rebound name", open, "GET", boot, set("Host", "evil.example"), 421},
		{"rebound name on the page", open, "GET", "/", set("Host", "evil.example"), 421},
		{"rebound name on a static file", open, "GET", "/static/x/y.js", set("Host", "evil.example"), 421},
		{"loopback as prefix", open, "GET", boot, set("Host", "127.0.0.1.evil.example"), 421},
		{"other machine's address on loopback", open, "GET", boot, set("Host", "192.0.2.7"), 421},
		{"host with a user", open, "GET", boot, set("Host", "localhost@evil.example"), 421},
		{"same origin", open, "GET", boot, set("Origin", "http://"+own, "Sec-Fetch-Site", "same-origin"), 200},
		{"other origin", open, "GET", boot, set("Origin", "https://evil.example"), 403},
		{"null origin", open, "GET", boot, set("Origin", "null"), 403},
		{"other port is another origin", open, "GET", boot, set("Origin", "http://127.0.0.1:1"), 403},
		{"two origins", open, "GET", boot, set("Origin", "http://"+own, "Origin", "https://evil.example"), 403},
		{"cross site", open, "GET", boot, set("Sec-Fetch-Site", "cross-site"), 403},
		{"same site is not same origin", open, "GET", boot, set("Sec-Fetch-Site", "same-site"), 403},
		{"typed address", open, "GET", boot, set("Sec-Fetch-Site", "none"), 200},
		{"posting from outside a page", open, "POST", messagesPath(testChat), set("Sec-Fetch-Site", "none"), 403},
		{"cross site post", open, "POST", messagesPath(testChat), set("Sec-Fetch-Site", "cross-site"), 403},
		{"cross site navigation to api", open, "GET", boot, set("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"), 403},
		{"a link to the page", open, "GET", "/", set("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"), 200},
		{"the page in a frame", open, "GET", "/", set("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"), 403},
		{"unknown path", open, "GET", "/api/chat/nothing", nil, 404},

		{"no session", locked, "GET", boot, nil, 401},
		{"no session for events", locked, "GET", "/api/chat/events", nil, 401},
		{"no session for files", locked, "GET", "/api/chat/files/00000000000000000000000000000000", nil, 401},
		{"no session for history", locked, "GET", messagesPath(testChat), nil, 401},
		{"no session to post", locked, "POST", messagesPath(testChat), nil, 401},
		{"no session to press", locked, "POST", "/api/chat/chats/" + string(testChat) + "/clicks", nil, 401},
		{"no session for what is not there", locked, "GET", "/api/chat/nothing", nil, 401},
		{"page before the session", locked, "GET", "/", nil, 200},
		{"token", locked, "GET", boot, set("Authorization", "Bearer tok"), 200},
		{"wrong token", locked, "GET", boot, set("Authorization", "Bearer tok2"), 401},
		{"password is no token", locked, "GET", boot, set("Authorization", "Bearer sesame"), 401},
		{"basic", locked, "GET", boot, set("Authorization", "Basic eDp0b2s="), 401},
		{"named host", locked, "GET", boot, set("Host", "chat.example", "Authorization", "Bearer tok"), 200},
		{"bare address of an exposed page", locked, "GET", boot, set("Host", "192.0.2.7:80", "Authorization", "Bearer tok"), 200},
		{"rebound name of an exposed page", locked, "GET", boot, set("Host", "evil.example", "Authorization", "Bearer tok"), 421},
		{"token from another site", locked, "GET", boot, set("Origin", "https://evil.example", "Authorization", "Bearer tok"), 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			var body any
			if c.method == "POST" {
				body = postBody{"client-1", "x"}
			}
			res, b := c.on.do(c.method, c.path, body, c.change)
			require.Equal(t, c.want, res.StatusCode, "%s", b)
			require.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"))
		})
	}
	require.Empty(t, open.sink.all())
	require.Empty(t, locked.sink.all())
}

func TestPage_HeadersAndStatic(t *testing.T) {
	s := newStage(t, func(o *web.Options) { o.Name = `<b>"Bo"</b>` })
	res, b := s.do("GET", "/", nil, nil)
	require.Equal(t, 200, res.StatusCode)
	csp := res.Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		require.Contains(t, csp, part)
	}
	require.NotContains(t, csp, "unsafe")
	require.Equal(t, "no-referrer", res.Header.Get("Referrer-Policy"))
	require.Contains(t, string(b), "&lt;b&gt;")
	require.NotContains(t, string(b), "<b>")
	require.NotContains(t, string(b), "{{")

	_, rest, _ := strings.Cut(string(b), `src="/static/`)
	path := "/static/" + rest[:strings.IndexByte(rest, '"')]
	res, _ = s.do("GET", path, nil, nil)
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, "text/javascript; charset=utf-8", res.Header.Get("Content-Type"))
	require.Contains(t, res.Header.Get("Cache-Control"), "immutable")
	for _, bad := range []string{"/static/0000/js/main.js", path + "x", strings.Replace(path, "js/theme.js", "index.html", 1), strings.Replace(path, "js/theme.js", "%2e%2e/page.go", 1)} {
		res, _ = s.do("GET", bad, nil, nil)
		require.Equal(t, 404, res.StatusCode, bad)
	}
}

// clock is a time that a test moves.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

type loginBody struct {
	Password string `json:"password"`
}

func TestLogin_SessionLivesAndDies(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	options := func(o *web.Options) { o.Password, o.MediaDir, o.Now = "sesame", dir, c.now }
	s := newStage(t, options)
	res, _ := s.do("POST", "/api/chat/login", loginBody{"sesame"}, nil)
	require.Equal(t, 204, res.StatusCode)
	require.Len(t, res.Cookies(), 1)
	cookie := res.Cookies()[0]
	require.True(t, cookie.HttpOnly)
	require.False(t, cookie.Secure, "over plain http the browser would not send it back")
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	with := func(value string) func(*http.Request) {
		return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookie.Name, Value: value}) }
	}
	status := func(s *stage, value string) int {
		res, _ := s.do("GET", "/api/chat/bootstrap", nil, with(value))
		return res.StatusCode
	}
	require.Equal(t, 200, status(s, cookie.Value))
	for _, made := range []string{cookie.Value + "x", "", ".", "1.99999999999.A.B", "1.99999999999.A." + strings.Split(cookie.Value, ".")[3]} {
		require.Equal(t, 401, status(s, made), made)
	}
	forged := strings.Split(cookie.Value, ".")
	until, err := strconv.Atoi(forged[1])
	require.NoError(t, err)
	forged[1] = strconv.Itoa(until + 1)
	require.Equal(t, 401, status(s, strings.Join(forged, ".")), "a longer life can't be written into it")

	res, _ = s.do("POST", "/api/chat/login", loginBody{"sesame"}, func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") })
	require.True(t, res.Cookies()[0].Secure)

	other := newStage(t, func(o *web.Options) { o.Password = "sesame" })
	res, _ = other.do("POST", "/api/chat/login", loginBody{"sesame"}, nil)
	require.NotEqual(t, cookie.Name, res.Cookies()[0].Name, "two daemons on one host don't log each other out")

	again := newStage(t, options)
	require.Equal(t, 200, status(again, cookie.Value), "it outlives a restart")
	changed := newStage(t, func(o *web.Options) { options(o); o.Password = "other" })
	require.Equal(t, 401, status(changed, cookie.Value), "it dies with the password")

	c.move(30*24*time.Hour - time.Second)
	require.Equal(t, 200, status(s, cookie.Value))
	c.move(time.Second)
	require.Equal(t, 401, status(s, cookie.Value))

	res, _ = s.do("POST", "/api/chat/logout", nil, nil)
	require.Negative(t, res.Cookies()[0].MaxAge)
}

func TestLogin_GuessingIsSlow(t *testing.T) {
	c := newClock()
	s := newStage(t, func(o *web.Options) { o.Password, o.Token, o.Now = "sesame", "tok", c.now })
	try := func(p string) *http.Response {
		res, _ := s.do("POST", "/api/chat/login", loginBody{p}, nil)
		return res
	}
	for range 20 {
		require.Equal(t, 204, try("sesame").StatusCode, "right answers cost nothing")
	}
	for range 5 {
		require.Equal(t, 401, try("wrong").StatusCode)
	}
	res := try("sesame")
	require.Equal(t, 429, res.StatusCode, "the sixth try waits, right or wrong")
	wait, err := strconv.Atoi(res.Header.Get("Retry-After"))
	require.NoError(t, err)
	require.InDelta(t, 12, wait, 1)
	res, _ = s.do("GET", "/api/chat/bootstrap", nil, func(r *http.Request) { r.Header.Set("Authorization", "Bearer tok") })
	require.Equal(t, 429, res.StatusCode, "tokens are guessed at the same door")
	c.move(time.Duration(wait) * time.Second)
	require.Equal(t, 401, try("wrong").StatusCode)
	require.Equal(t, 429, try("wrong").StatusCode)
	c.move(time.Minute)
	require.Equal(t, 204, try("tok").StatusCode, "the token opens the page too")
	require.Equal(t, 401, try("").StatusCode)
}

func TestLogin_BadBodies(t *testing.T) {
	s := newStage(t, func(o *web.Options) { o.Password = "sesame" })
	for name, c := range map[string]struct {
		body string
		kind string
		want int
	}{
		"form":      {"password=sesame", "application/x-www-form-urlencoded", 400},
		"not json":  {"{", "application/json", 400},
		"too large": {`{"password":"` + strings.Repeat("x", 70<<10) + `"}`, "application/json", 413},
		"a number":  {`{"password":1}`, "application/json", 400},
	} {
		res, b := s.do("POST", "/api/chat/login", c.body, func(r *http.Request) { r.Header.Set("Content-Type", c.kind) })
		require.Equal(t, c.want, res.StatusCode, name)
		_, sentence := failure(t, b)
		require.NotEmpty(t, sentence)
	}
}

func TestSecrets(t *testing.T) {
	s := newStage(t, func(o *web.Options) { o.Password, o.Token = "sesame", "tok" })
	require.Equal(t, []string{"sesame", "tok"}, s.adapter.Secrets())
	require.Empty(t, newStage(t, nil).adapter.Secrets())
}
