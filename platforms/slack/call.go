package slack

import (
	"net/http"
	"net/url"

	"golang.org/x/net/http/httpproxy"

	"herald/platforms/wire"
)

const (
	// buffered is how much of a request body is held in memory. Larger bodies (files) are streamed.
	buffered = 512 << 10
	// maxAnswer bounds the answer of one method: a page of a thousand users stays far below it.
	maxAnswer = 32 << 20
)

// newTransport returns the one transport of an app.
func newTransport(s *settings) *http.Transport {
	return wire.NewTransport(wire.TransportOptions{ConnectTimeout: s.ConnectTimeout, Idle: 64, Proxy: s.proxyFunc()})
}

// proxyFunc returns which proxy a request goes through.
func (s *settings) proxyFunc() wire.ProxyFunc {
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
