package wire

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"
)

// DialFunc is net.Dialer's DialContext.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// ProxyFunc says which proxy a request goes through, nil for none.
type ProxyFunc func(*http.Request) (*url.URL, error)

// Dialer returns the DialFunc of a transport: an attempt ends after timeout.
func Dialer(timeout time.Duration) DialFunc {
	return (&net.Dialer{Timeout: timeout, KeepAlive: 15 * time.Second}).DialContext
}

// TransportOptions says how connections are made.
type TransportOptions struct {
	// ConnectTimeout bounds a connection attempt, and the TLS handshake after it.
	ConnectTimeout time.Duration
	// Idle is how many idle connections are kept to one server.
	Idle int
	// Proxy nil uses no proxy; see Proxy.
	Proxy ProxyFunc
	// Dial nil is Dialer(ConnectTimeout).
	Dial DialFunc
}

// NewTransport returns a transport. It speaks HTTP/1.1, where it is known whether a request has left (see Trace). The caller
// closes its idle connections.
func NewTransport(o TransportOptions) *http.Transport {
	if o.Dial == nil {
		o.Dial = Dialer(o.ConnectTimeout)
	}
	return &http.Transport{
		DialContext:           o.Dial,
		TLSHandshakeTimeout:   o.ConnectTimeout,
		MaxIdleConns:          2 * o.Idle,
		MaxIdleConnsPerHost:   o.Idle,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		Proxy:                 o.Proxy,
	}
}

// Proxy returns the ProxyFunc of an adapter: proxy where it is set, else the environment's, unless ignoreEnv is set.
func Proxy(proxy *url.URL, ignoreEnv bool) ProxyFunc {
	switch {
	case proxy != nil:
		return http.ProxyURL(proxy)
	case ignoreEnv:
		return nil
	}
	return http.ProxyFromEnvironment
}

// NoRedirects is the CheckRedirect of a client that follows none: a token belongs to the server that it was sent to.
func NoRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
