package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"herald/platforms/wire"
)

const (
	// buffered is how much of a request body is held in memory, so that its length is known and a dead
	// idle connection can be replaced. Larger bodies (files) are streamed.
	buffered = 64 << 10
	// maxAnswer bounds the answer of one method: 100 updates of the largest size stay far below it.
	maxAnswer = 32 << 20
)

// call is what is known of one request. The library returns errors as text; this keeps the facts.
type call struct {
	wire.Trace // whether it may have arrived

	status      int // 0: no answer
	description string
	retryAfter  time.Duration
	migrateTo   int64
	isAPI       bool // the answer was a Bot API answer, not a proxy's page
}

type callKey struct{}

// unbounded is how long a call may take whose caller sets no deadline.
const unbounded = 2 * time.Minute

// newCall returns a context that the recorder fills the call through. The context ends after timeout; 0
// keeps ctx's own deadline.
func (a *Adapter) newCall(ctx context.Context, timeout time.Duration) (*call, context.Context, context.CancelFunc) {
	c := &call{}
	ctx = context.WithValue(ctx, callKey{}, c)
	if _, bounded := ctx.Deadline(); timeout == 0 && !bounded {
		timeout = unbounded
	}
	if timeout > 0 {
		ctx, cancel := context.WithTimeout(ctx, timeout)
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
	if resp.StatusCode != http.StatusOK {
		c.note(resp, body)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// buffer gives a small body its length and makes it repeatable.
func buffer(req *http.Request) error {
	if req.Body == nil || req.Body == http.NoBody {
		return nil
	}
	head := make([]byte, 0, 2048)
	for len(head) < buffered {
		if len(head) == cap(head) {
			head = append(head, 0)[:len(head)]
		}
		n, err := req.Body.Read(head[len(head):min(cap(head), buffered)])
		head = head[:len(head)+n]
		if err == io.EOF {
			req.ContentLength = int64(len(head))
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(head)), nil }
			req.Body, _ = req.GetBody()
			return nil
		}
		if err != nil {
			return err
		}
	}
	req.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), req.Body), req.Body}
	return nil
}

// answer is the envelope of every Bot API answer that is no success.
type answer struct {
	OK          bool   `json:"ok"`
	Code        int    `json:"error_code"`
	Description string `json:"description"`
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

func (c *call) note(resp *http.Response, body []byte) {
	var a answer
	if json.Unmarshal(body, &a) == nil && a.Description != "" {
		c.isAPI, c.description = true, a.Description
		c.retryAfter = time.Duration(a.Parameters.RetryAfter) * time.Second
		c.migrateTo = a.Parameters.MigrateTo
		if a.Code != 0 {
			c.status = a.Code
		}
	}
	if c.retryAfter == 0 {
		if secs, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s"); err == nil && secs > 0 {
			c.retryAfter = secs
		}
	}
}

// newTransport returns the one transport of an adapter. It speaks HTTP/1.1, where it is known whether a
// request has left.
func newTransport(s settings) *http.Transport {
	dialer := &net.Dialer{Timeout: s.ConnectTimeout, KeepAlive: 15 * time.Second}
	t := &http.Transport{
		DialContext:           dialFallback(dialer.DialContext, s.api.Hostname(), s.FallbackIPs),
		TLSHandshakeTimeout:   s.ConnectTimeout,
		MaxIdleConns:          128,
		MaxIdleConnsPerHost:   128,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		Proxy:                 http.ProxyFromEnvironment,
	}
	if s.IgnoreProxyEnv {
		t.Proxy = nil
	}
	if s.Proxy != "" {
		if proxy, err := url.Parse(s.Proxy); err == nil {
			t.Proxy = http.ProxyURL(proxy)
		}
	}
	return t
}

// dialFunc is net.Dialer's DialContext.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// dialFallback tries the addresses in order when the name of the server does not resolve. The certificate is still
// checked against the name.
func dialFallback(dial dialFunc, host string, ips []string) dialFunc {
	if len(ips) == 0 {
		return dial
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		var unresolved *net.DNSError
		name, port, splitErr := net.SplitHostPort(addr)
		if err == nil || !errors.As(err, &unresolved) || splitErr != nil || name != host {
			return conn, err
		}
		for _, ip := range ips {
			if conn, ipErr := dial(ctx, network, net.JoinHostPort(ip, port)); ipErr == nil {
				return conn, nil
			}
		}
		return nil, err
	}
}
