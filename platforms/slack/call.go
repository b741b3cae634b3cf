package slack

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/net/http/httpproxy"

	"herald/platforms/wire"
)

const (
	// buffered is how much of a request body is held in memory, so that its length is known and a dead idle
	// connection can be replaced. Larger bodies (files) are streamed.
	buffered = 512 << 10
	// maxAnswer bounds the answer of one method: a page of a thousand users stays far below it.
	maxAnswer = 32 << 20
	// unbounded is how long a call may take whose caller sets no deadline.
	unbounded = 2 * time.Minute
)

// call is what is known of one request. The library returns errors as text; this keeps the facts.
type call struct {
	wire.Trace // whether it may have arrived

	status     int // 0: no answer
	retryAfter time.Duration
}

type callKey struct{}

// newCall returns a context that the recorder fills the call through.
func newCall(ctx context.Context) (*call, context.Context, context.CancelFunc) {
	c := &call{}
	ctx = context.WithValue(ctx, callKey{}, c)
	if _, bounded := ctx.Deadline(); !bounded {
		ctx, cancel := context.WithTimeout(ctx, unbounded)
		return c, ctx, cancel
	}
	ctx, cancel := context.WithCancel(ctx)
	return c, ctx, cancel
}

// recorder is the library's HTTP client: it notes the facts of each call.
type recorder struct{ next *http.Client }

// Do sends req and returns its answer, read to the end.
func (r *recorder) Do(req *http.Request) (*http.Response, error) {
	c, _ := req.Context().Value(callKey{}).(*call)
	if c == nil {
		c = &call{}
	}
	if err := buffer(req); err != nil {
		return nil, err
	}
	resp, err := r.next.Do(req.WithContext(c.With(req.Context())))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	c.status = resp.StatusCode
	if err != nil {
		if resp.StatusCode == http.StatusOK {
			c.status = 0 // the answer broke off: nothing is known
		}
		return nil, err
	}
	if secs, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && secs > 0 {
		c.retryAfter = time.Duration(secs) * time.Second
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// buffer gives a small body its length and makes it repeatable.
func buffer(req *http.Request) error {
	if req.Body == nil || req.Body == http.NoBody || req.GetBody != nil {
		return nil
	}
	head, err := io.ReadAll(io.LimitReader(req.Body, buffered))
	if err != nil {
		return err
	}
	if len(head) < buffered {
		req.ContentLength = int64(len(head))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(head)), nil }
		req.Body, _ = req.GetBody()
		return nil
	}
	req.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), req.Body), req.Body}
	return nil
}

// newTransport returns the one transport of an app. It speaks HTTP/1.1, where it is known whether a request has
// left.
func newTransport(s *settings) *http.Transport {
	return &http.Transport{
		DialContext:           (&net.Dialer{Timeout: s.ConnectTimeout, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   s.ConnectTimeout,
		MaxIdleConns:          64,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		Proxy:                 s.proxyFunc(),
	}
}

// proxyFunc returns which proxy a request goes through.
func (s *settings) proxyFunc() func(*http.Request) (*url.URL, error) {
	env := httpproxy.FromEnvironment()
	c := &httpproxy.Config{NoProxy: env.NoProxy}
	if !s.IgnoreProxyEnv {
		c.HTTPProxy, c.HTTPSProxy = env.HTTPProxy, env.HTTPSProxy
	}
	if s.proxy != nil {
		c.HTTPProxy, c.HTTPSProxy = s.proxy.String(), s.proxy.String()
	}
	choose := c.ProxyFunc()
	return func(r *http.Request) (*url.URL, error) {
		u := *r.URL
		switch u.Scheme { // a WebSocket goes the way of its handshake
		case "ws":
			u.Scheme = "http"
		case "wss":
			u.Scheme = "https"
		}
		p, err := choose(&u)
		if err == nil && p != nil && p.Scheme != "http" && p.Scheme != "https" {
			return nil, nil // only HTTP proxies are used for Slack
		}
		return p, err
	}
}
