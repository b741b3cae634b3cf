package fetch

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// names answers like a name server: each question of a name gets its next answer, the last one forever.
type names struct {
	mu      sync.Mutex
	answers map[string][][]string
	asked   int
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	list := n.answers[host]
	if len(list) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(list) > 1 {
		n.answers[host] = list[1:]
	}
	var out []netip.Addr
	for _, s := range list[0] {
		out = append(out, netip.MustParseAddr(s))
	}
	return out, nil
}

// world sends connections to public addresses to servers of the test, and counts every dial.
type world struct {
	mu     sync.Mutex
	at     map[string]string // ip:port to a listener's address
	dialed []string
}

func (w *world) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w.mu.Lock()
	w.dialed = append(w.dialed, addr)
	to, ok := w.at[addr]
	w.mu.Unlock()
	if !ok {
		to = addr
		if host, _, _ := net.SplitHostPort(addr); host != "127.0.0.1" {
			return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("unreachable")}
		}
	}
	var d net.Dialer
	return d.DialContext(ctx, network, to)
}

func (w *world) dials() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.dialed...)
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func client(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := New(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

const public = "93.184.216.34"

// stage is a client whose only public host, files.example, is the server.
func stage(t *testing.T, h http.HandlerFunc, o Options) (*Client, *world) {
	t.Helper()
	s := serve(t, h)
	w := &world{at: map[string]string{public + ":80": s.Listener.Addr().String()}}
	o.dial = w.dial
	if o.Resolver == nil {
		o.Resolver = &names{answers: map[string][][]string{"files.example": {{public}}, "other.example": {{public}}}}
	}
	return client(t, o), w
}

func TestGet_RefusesPlacesThatStrangersMayNotName(t *testing.T) {
	inside := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secret") })
	_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())
	resolver := &names{answers: map[string][][]string{
		"loop.example": {{"127.0.0.1"}}, "private.example": {{"10.0.0.1"}}, "both.example": {{public, "127.0.0.1"}}, "six.example": {{"::ffff:127.0.0.1"}},
		"meta.example": {{"169.254.169.254"}}, "127.1": {{"127.0.0.1"}}, "0x7f000001": {{"127.0.0.1"}}, "2130706433": {{"127.0.0.1"}},
		"localhost": {{"127.0.0.1", "::1"}}, "files.example": {{public}},
	}}
	w := &world{at: map[string]string{}}
	c := client(t, Options{Resolver: resolver, dial: w.dial})
	for _, link := range []string{
		"file:///etc/passwd", "ftp://files.example/x", "gopher://files.example/", "data:text/plain,x", "//files.example/x", "", ":", "http://",
		"http://127.0.0.1/", "http://127.0.0.1:" + port + "/", "http://[::1]/", "http://[::ffff:7f00:1]/", "http://[::]/", "http://0.0.0.0/", "http://[fe80::1%25lo]/",
		"http://localhost/", "http://127.1/", "http://0x7f000001/", "http://2130706433/", "http://10.1.2.3/", "http://169.254.169.254/latest/meta-data/",
		"http://[fd00:ec2::254]/", "http://100.100.100.200/", "http://168.63.129.16/", "http://loop.example/", "http://private.example/",
		"http://both.example/", "http://six.example/", "http://meta.example/", "http://files.example:22/", "http://files.example:" + port + "/",
		"http://user:hunter2@files.example/", "http://hunter2@files.example/",
	} {
		var b bytes.Buffer
		_, err := c.Get(t.Context(), link, nil, 100, &b)
		require.ErrorIs(t, err, ErrForbidden, link)
		require.NotContains(t, err.Error(), "hunter2", link)
		require.Empty(t, b.String())
	}
	require.Empty(t, w.dials(), "nothing was even connected to")
}

// The name server says one thing when it is asked first and another the second time.
func TestGet_DNSRebinding(t *testing.T) {
	resolver := &names{answers: map[string][][]string{"files.example": {{public}, {"127.0.0.1"}}}}
	c, w := stage(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, "ok")
	}, Options{Resolver: resolver})
	_, err := c.Get(t.Context(), "http://files.example/a", nil, 100, io.Discard)
	require.NoError(t, err)
	_, err = c.Get(t.Context(), "http://files.example/a", nil, 100, io.Discard)
	require.ErrorIs(t, err, ErrForbidden)
	require.Equal(t, []string{public + ":80"}, w.dials(), "the address that was checked is the one that is dialed")
	require.Equal(t, 2, resolver.asked, "one question for each connection")
}

func TestGet_Redirects(t *testing.T) {
	var hops int
	var lastHeader http.Header
	handler := func(w http.ResponseWriter, r *http.Request) {
		hops++
		lastHeader = r.Header.Clone()
		to := r.URL.Query().Get("to")
		if n, err := strconv.Atoi(to); err == nil && n > 0 {
			http.Redirect(w, r, "/?to="+strconv.Itoa(n-1), http.StatusFound)
			return
		}
		if to != "" && to != "0" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			return
		}
		_, _ = io.WriteString(w, "done")
	}
	c, w := stage(t, handler, Options{})
	header := http.Header{"Authorization": {"Bearer s3cret"}, "X-Token": {"s3cret"}, "Cookie": {"a=s3cret"}, "Accept": {"image/*"}}

	for _, to := range []string{"http://127.0.0.1/", "http://[::1]/", "http://localhost/", "file:///etc/passwd", "http://files.example:6379/",
		"http://169.254.169.254/latest", "http://me:pw@files.example/"} {
		_, err := c.Get(t.Context(), "http://files.example/?to="+url.QueryEscape(to), header, 100, io.Discard)
		require.Error(t, err, to)
		require.NotContains(t, err.Error(), "pw@")
	}
	for _, addr := range w.dials() {
		require.Equal(t, public+":80", addr)
	}
	var b bytes.Buffer
	_, err := c.Get(t.Context(), "http://files.example/?to=5", header, 100, &b)
	require.NoError(t, err)
	require.Equal(t, "done", b.String())
	require.Equal(t, "Bearer s3cret", lastHeader.Get("Authorization"), "the same origin keeps it")
	hops = 0
	_, err = c.Get(t.Context(), "http://files.example/?to=6", header, 100, io.Discard)
	require.ErrorContains(t, err, "more than 5 redirects")
	require.Equal(t, 6, hops)

	_, err = c.Get(t.Context(), "http://files.example/?to="+url.QueryEscape("http://other.example/"), header, 100, io.Discard)
	require.NoError(t, err)
	require.Equal(t, http.Header{"Accept": {"image/*"}, "User-Agent": {"Herald"}}, lastHeader, "another host gets nothing of the caller's")

	back := url.QueryEscape("http://other.example/?to=" + url.QueryEscape("http://files.example/"))
	_, err = c.Get(t.Context(), "http://files.example/?to="+back, header, 100, io.Discard)
	require.NoError(t, err)
	require.Empty(t, lastHeader.Get("Authorization"), "what came back from elsewhere is not trusted again")
}

// Subdomains and other ports are other origins, though net/http takes some of them for the same.
func TestRedirect_OriginIsSchemeHostAndPort(t *testing.T) {
	c := client(t, Options{Allow: []string{"files.example:8443"}})
	for to, same := range map[string]bool{"https://files.example/b": true, "https://FILES.example:443/": true, "https://cdn.files.example/": false,
		"http://files.example/": false, "https://files.example:8443/": false} {
		first := httptest.NewRequest(http.MethodGet, "https://files.example/a?t=1", nil)
		next := httptest.NewRequest(http.MethodGet, to, nil)
		next.Header = http.Header{"Authorization": {"x"}, "Referer": {"https://files.example/a?t=1"}}
		require.NoError(t, c.redirect(next, []*http.Request{first}))
		require.Equal(t, same, next.Header.Get("Authorization") != "", to)
		require.Empty(t, next.Header.Get("Referer"))
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestGet_CountsWhileItReads(t *testing.T) {
	c, _ := stage(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/endless":
			_, _ = io.Copy(w, endless{})
		case "/honest":
			w.Header().Set("Content-Length", "1000000000")
			_, _ = io.CopyN(w, endless{}, 4096)
		case "/exact":
			w.Header().Set("Content-Type", "image/png; charset=x")
			w.Header().Set("Content-Disposition", `attachment; filename="../../a.png"`)
			_, _ = w.Write(bytes.Repeat([]byte("x"), 1000))
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("raw"))
		case "/short":
			w.Header().Set("Content-Length", "500")
			_, _ = w.Write([]byte("x"))
		case "/teapot":
			w.WriteHeader(http.StatusTeapot)
		}
	}, Options{})
	var large *TooLargeError
	for _, path := range []string{"/endless", "/honest"} {
		var b bytes.Buffer
		_, err := c.Get(t.Context(), "http://files.example"+path, nil, 1000, &b)
		require.ErrorAs(t, err, &large, path)
		require.EqualValues(t, 1000, large.Limit)
		require.LessOrEqual(t, b.Len(), 1000, path)
	}
	var b bytes.Buffer
	f, err := c.Get(t.Context(), "http://files.example/exact", nil, 1000, &b)
	require.NoError(t, err)
	require.Equal(t, File{Type: "image/png", Name: "../../a.png", Size: 1000}, f)
	_, err = c.Get(t.Context(), "http://files.example/exact", nil, 999, io.Discard)
	require.ErrorAs(t, err, &large)
	b.Reset()
	_, err = c.Get(t.Context(), "http://files.example/gzip", nil, 10, &b)
	require.NoError(t, err)
	require.Equal(t, "raw", b.String(), "nothing is unpacked")
	_, err = c.Get(t.Context(), "http://files.example/short", nil, 1000, io.Discard)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	var status *StatusError
	_, err = c.Get(t.Context(), "http://files.example/teapot", nil, 1000, io.Discard)
	require.ErrorAs(t, err, &status)
	require.Equal(t, "files.example answered 418", err.Error())
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestGet_ErrorsHoldNoLinks(t *testing.T) {
	c, w := stage(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/nowhere":
			w.Header().Set("Location", "http://%zz/?sig=hunter2")
			w.WriteHeader(http.StatusFound)
		case "/cut":
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.Close()
		case "/garbage":
			conn, _, _ := w.(http.Hijacker).Hijack()
			_, _ = io.WriteString(conn, "hunter2 garbage\r\n\r\n")
			_ = conn.Close()
		case "/ok":
			_, _ = io.WriteString(w, "ok")
		}
	}, Options{})
	for _, link := range []string{"http://files.example/nowhere?sig=hunter2", "http://files.example/cut?sig=hunter2", "http://files.example/garbage",
		"http://unknown.example/hunter2", "https://files.example/hunter2", "http://files.example:99/hunter2"} {
		_, err := c.Get(t.Context(), link, http.Header{"Authorization": {"hunter2"}}, 10, io.Discard)
		require.Error(t, err, link)
		require.NotContains(t, err.Error(), "hunter2", link)
	}
	_, err := c.Get(t.Context(), "http://files.example/ok", nil, 10, full{})
	require.EqualError(t, err, "disk full")
	require.NotEmpty(t, w.dials())
}

func TestGet_IsBoundedInTime(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	c, _ := stage(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, "x")
			w.(http.Flusher).Flush()
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}, Options{Connect: 100 * time.Millisecond, Idle: 100 * time.Millisecond})
	began := time.Now()
	_, err := c.Get(t.Context(), "http://files.example/head", nil, 10, io.Discard)
	require.Error(t, err)
	_, err = c.Get(t.Context(), "http://files.example/body", nil, 10, io.Discard)
	require.ErrorIs(t, err, errStalled)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Get(ctx, "http://files.example/body", nil, 10, io.Discard)
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(began), 20*time.Second)
}

func TestAllow_NamesTheOperatorsOwnServersAndNothingElse(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "private")
	})
	other := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "another one") })
	for _, entry := range []string{s.URL, s.URL + "/api/", s.Listener.Addr().String()} {
		c := client(t, Options{Allow: []string{entry}})
		var b bytes.Buffer
		_, err := c.Get(t.Context(), s.URL+"/x", nil, 100, &b)
		require.NoError(t, err, entry)
		require.Equal(t, "private", b.String())
		_, err = c.Get(t.Context(), other.URL, nil, 100, io.Discard)
		require.ErrorIs(t, err, ErrForbidden, "another port of the same host")
		_, err = c.Get(t.Context(), s.URL+"/?to="+url.QueryEscape(other.URL), nil, 100, io.Discard)
		require.ErrorIs(t, err, ErrForbidden, "an allowed server can't lead elsewhere")
	}
	for _, entry := range []string{"", " ", "ftp://x/", "http://", "a b", "host/path", "user@host", "?"} {
		_, err := New(Options{Allow: []string{entry}})
		require.Error(t, err, entry)
	}
	places, err := placesOf("Files.Example.")
	require.NoError(t, err)
	require.Equal(t, []string{"files.example:80", "files.example:443"}, places)
	places, err = placesOf("https://Files.Example/x")
	require.NoError(t, err)
	require.Equal(t, []string{"files.example:443"}, places)
}

// proxy is an HTTP proxy that notes what it is asked for and connects everything to one server.
type proxy struct {
	to string

	mu    sync.Mutex
	asked []string
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.RequestURI)
	p.mu.Unlock()
	if r.Method != http.MethodConnect {
		_, _ = io.WriteString(w, "by the proxy")
		return
	}
	up, err := net.Dial("tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer up.Close()
	conn, buf, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(up, buf)
		_ = up.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(conn, up)
	_ = conn.Close()
	<-done
}

// A proxy is asked for the checked address, and the certificate is checked against the name.
func TestProxy_IsNoWayAround(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "host %s", r.Host) }))
	t.Cleanup(server.Close)
	p := &proxy{to: server.Listener.Addr().String()}
	at := serve(t, p.ServeHTTP)
	resolver := &names{answers: map[string][][]string{"example.com": {{public}, {"127.0.0.1"}}, "wrong.example": {{public}}, "loop.example": {{"127.0.0.1"}}}}
	trust := func(tr *http.Transport) {
		tr.TLSClientConfig = &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	}
	c := client(t, Options{Proxy: at.URL, Resolver: resolver, ModifyTransport: trust, Allow: []string{"named.test:80"}})
	var b bytes.Buffer
	_, err := c.Get(t.Context(), "https://example.com/x", nil, 100, &b)
	require.NoError(t, err)
	require.Equal(t, "host example.com", b.String())
	require.Equal(t, []string{"CONNECT " + public + ":443"}, p.asked)
	for _, link := range []string{"https://example.com/x", "https://loop.example/", "https://127.0.0.1/", "http://example.com/", "http://wrong.example/"} {
		_, err = c.Get(t.Context(), link, nil, 100, io.Discard)
		require.ErrorIs(t, err, ErrForbidden, link)
	}
	require.Len(t, p.asked, 1, "the proxy heard of none of them")
	_, err = c.Get(t.Context(), "https://wrong.example/", nil, 100, io.Discard)
	require.ErrorContains(t, err, "certificate")
	b.Reset()
	_, err = c.Get(t.Context(), "http://named.test/x", nil, 100, &b)
	require.NoError(t, err)
	require.Equal(t, "by the proxy", b.String())
	require.Equal(t, "GET http://named.test/x", p.asked[len(p.asked)-1], "an allowed server goes by name")
	for _, bad := range []string{"gopher://x", "x", "http://", "://"} {
		_, err = New(Options{Proxy: bad})
		require.Error(t, err, bad)
	}
}

func TestCopy(t *testing.T) {
	for _, c := range []struct {
		size  int
		limit int64
		over  bool
	}{{0, 0, false}, {1, 0, true}, {10, 10, false}, {11, 10, true}, {5, 10, false}, {1, -1, true}} {
		var b bytes.Buffer
		_, err := Copy(&b, strings.NewReader(strings.Repeat("x", c.size)), c.limit)
		require.Equal(t, c.over, err != nil, c)
		require.LessOrEqual(t, int64(b.Len()), max(c.limit, 0))
	}
}
