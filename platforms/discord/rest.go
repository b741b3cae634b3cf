package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	"herald/platforms/wire"
)

const (
	// maxAnswer bounds the answer of one request: 1,000 members stay far below it.
	maxAnswer = 16 << 20
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
	facts, ctx, cancel := wire.NewCall(ctx, 0)
	defer cancel()
	if err := a.gate.pass(ctx, c.method+" "+c.route, c.major, c.skip); err != nil {
		return err
	}
	req, err := a.request(ctx, c)
	if err != nil {
		return notSent(err)
	}
	_, err = a.client.Do(req)
	a.gate.learn(c.method+" "+c.route, c.major, facts.Header)
	switch {
	case facts.Status >= 300:
		return a.refused(c, facts)
	case err != nil:
		return facts.Outcome(a.clean(err))
	case !readable(facts.Body, out):
		return facts.Outcome(errors.New("the answer of the API could not be read"))
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
		return nil, wire.Bare(err)
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

// newTransport returns the one transport of an adapter.
func newTransport(s settings) *http.Transport {
	return wire.NewTransport(wire.TransportOptions{ConnectTimeout: s.ConnectTimeout, Idle: 16, Proxy: wire.Proxy(s.proxy, s.IgnoreProxyEnv)})
}

// socketProxy is the proxy of the gateway's dialer, which always lets a SOCKS5 proxy look up the name, and does not know the
// scheme that asks for it.
func socketProxy(s settings) wire.ProxyFunc {
	proxy := wire.Proxy(s.proxy, s.IgnoreProxyEnv)
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
