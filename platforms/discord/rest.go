package discord

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
	// maxAnswer bounds the answer of one request: 1,000 members stay far below it.
	maxAnswer = 16 << 20
	// unbounded is how long a request may take whose caller sets no deadline.
	unbounded = 2 * time.Minute
	userAgent = "DiscordBot (https://github.com/bwmarrin/discordgo, 0.29.0) Herald"
)

// call is one request to the REST API.
type call struct {
	method string
	// route names the bucket: the path with its ids left out. major is the channel, guild or webhook whose
	// limits count.
	route, major string
	path         string // with its leading slash and query
	body         any    // sent as JSON
	form         *form  // sent in place of body where files go along
	open         bool   // authenticated by a token in the path
	skip         bool   // not worth waiting for
}

// do makes one request and reads its answer into out, which may be nil. Errors are *platforms.SendError.
func (a *Adapter) do(ctx context.Context, c call, out any) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, unbounded)
		defer cancel()
	}
	waited, err := a.gate.pass(ctx, c.method+" "+c.route, c.major, c.skip)
	if waited > 0 {
		a.s.Metrics.GateWaited(waited)
	}
	if err != nil {
		return err
	}
	var t wire.Trace
	req, err := a.request(t.With(ctx), c)
	if err != nil {
		return notSent(err)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return a.lost(&t, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode < 300 && !readable(raw, out) {
		err = errors.New("the answer of the API could not be read")
	}
	a.gate.learn(c.method+" "+c.route, c.major, resp.Header)
	if err != nil && resp.StatusCode < 300 {
		return a.lost(&t, err) // it was done, and the answer broke off
	}
	if resp.StatusCode >= 300 {
		return a.refused(c, resp, raw)
	}
	return nil
}

// readable reads an answer into out. What is no JSON came from somebody else.
func readable(raw []byte, out any) bool {
	if out == nil {
		return len(raw) == 0 || json.Valid(raw)
	}
	return json.Unmarshal(raw, out) == nil
}

func (a *Adapter) request(ctx context.Context, c call) (*http.Request, error) {
	var body io.Reader
	kind := ""
	switch {
	case c.form != nil:
		body, kind = c.form.reader(), c.form.contentType()
	case c.body != nil:
		raw, err := json.Marshal(c.body)
		if err != nil {
			return nil, err
		}
		body, kind = bytes.NewReader(raw), "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, c.method, a.s.api.String()+c.path, body)
	if err != nil {
		return nil, bare(err)
	}
	if c.form != nil {
		req.ContentLength = c.form.length()
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if !c.open {
		req.Header.Set("Authorization", "Bot "+a.s.Token)
	}
	req.Header.Set("User-Agent", userAgent)
	return req, nil
}

// bare takes the URL out of an HTTP error: paths hold interaction tokens.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// newTransport returns the one transport of an adapter. It speaks HTTP/1.1, where it is known whether a request
// has left.
func newTransport(s settings) *http.Transport {
	dialer := &net.Dialer{Timeout: s.ConnectTimeout, KeepAlive: 15 * time.Second}
	return &http.Transport{
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   s.ConnectTimeout,
		MaxIdleConns:          32,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		Proxy:                 proxyOf(s),
	}
}

// socketProxy is proxyOf for the gateway's dialer, which always lets a SOCKS5 proxy find the name, and knows no second
// word for that.
func socketProxy(s settings) func(*http.Request) (*url.URL, error) {
	proxy := proxyOf(s)
	if proxy == nil {
		return nil
	}
	return func(r *http.Request) (*url.URL, error) {
		u, err := proxy(r)
		if u != nil && u.Scheme == "socks5h" {
			c := *u
			c.Scheme = "socks5"
			u = &c
		}
		return u, err
	}
}

// proxyOf returns who the proxy of a request is.
func proxyOf(s settings) func(*http.Request) (*url.URL, error) {
	switch {
	case s.Proxy != "":
		if proxy, err := url.Parse(s.Proxy); err == nil {
			return http.ProxyURL(proxy)
		}
		return nil
	case s.IgnoreProxyEnv:
		return nil
	}
	return http.ProxyFromEnvironment
}
