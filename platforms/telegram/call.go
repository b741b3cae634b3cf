package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"herald/platforms/wire"
)

const (
	// buffered is how much of a request body is held in memory. Larger bodies (files) are streamed.
	buffered = 64 << 10
	// maxAnswer bounds the answer of one method: 100 updates of the largest size stay far below it.
	maxAnswer = 32 << 20
)

// call is what is known of one request to the Bot API. The library returns errors as text; this keeps the facts.
type call struct {
	*wire.Call
	refused *refusal // once it was read
}

// newCall returns a context that the client fills the call through. The context ends after timeout; 0 keeps ctx's own deadline.
func newCall(ctx context.Context, timeout time.Duration) (*call, context.Context, context.CancelFunc) {
	c, ctx, cancel := wire.NewCall(ctx, timeout)
	return &call{Call: c}, ctx, cancel
}

// refusal is the envelope of every Bot API answer that is no success. Without a description it is somebody else's answer, such
// as a proxy's page.
type refusal struct {
	Code        int    `json:"error_code"`
	Description string `json:"description"`
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// refusal reads a refusal and corrects the call by it.
func (c *call) refusal() *refusal {
	if c.refused != nil {
		return c.refused
	}
	var r refusal
	if c.Status == 0 || c.Status == http.StatusOK || json.Unmarshal(c.Body, &r) != nil || r.Description == "" {
		r = refusal{}
	}
	if r.Code != 0 {
		c.Status = r.Code
	}
	if r.Parameters.RetryAfter > 0 {
		c.After = time.Duration(r.Parameters.RetryAfter) * time.Second
	}
	c.refused = &r
	return c.refused
}

// says reports whether Telegram refused with a description that holds text, ignoring case.
func (c *call) says(text string) bool {
	r := c.refusal()
	return c.Status >= 400 && c.Status < 500 && strings.Contains(strings.ToLower(r.Description), text)
}

// isRevoked reports whether the Bot API itself no longer knows the token.
func (c *call) isRevoked() bool {
	r := c.refusal()
	return r.Description != "" && (c.Status == http.StatusUnauthorized || c.Status == http.StatusNotFound)
}

// newTransport returns the one transport of an adapter.
func newTransport(s settings) *http.Transport {
	return wire.NewTransport(wire.TransportOptions{
		ConnectTimeout: s.ConnectTimeout, Idle: 128, Proxy: wire.Proxy(s.proxy, s.IgnoreProxyEnv),
		Dial: dialFallback(wire.Dialer(s.ConnectTimeout), s.api.Hostname(), s.FallbackIPs),
	})
}

// dialFallback tries the addresses in order when the name of the server does not resolve. The certificate is still
// checked against the name.
func dialFallback(dial wire.DialFunc, host string, ips []string) wire.DialFunc {
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
