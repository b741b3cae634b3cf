package telegram

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDialFallback(t *testing.T) {
	unresolved := &net.DNSError{Err: "no such host", Name: "api.telegram.org", IsNotFound: true}
	var dialled []string
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	dial := func(_ context.Context, _, addr string) (net.Conn, error) {
		dialled = append(dialled, addr)
		switch addr {
		case "[2001:db8::2]:443":
			return client, nil
		case "192.0.2.1:443":
			return nil, errors.New("refused")
		}
		return nil, unresolved
	}
	try := dialFallback(dial, "api.telegram.org", []string{"192.0.2.1", "2001:db8::2"})
	conn, err := try(t.Context(), "tcp", "api.telegram.org:443")
	require.NoError(t, err)
	require.Equal(t, client, conn)
	require.Equal(t, []string{"api.telegram.org:443", "192.0.2.1:443", "[2001:db8::2]:443"}, dialled)

	_, err = try(t.Context(), "tcp", "proxy.example:3128")
	require.ErrorIs(t, err, unresolved, "another host, such as a proxy, has no fallback")
	_, err = dialFallback(dial, "api.telegram.org", []string{"192.0.2.1"})(t.Context(), "tcp", "api.telegram.org:443")
	require.ErrorIs(t, err, unresolved)

	_, err = New(Options{Token: "1:abcdefgh", FallbackIPs: []string{"nowhere"}})
	require.ErrorContains(t, err, "fallback_ips")
}

func TestNewTransport_ProxyOfTheEnvironment(t *testing.T) {
	s, err := Options{Token: "1:abcdefgh", IgnoreProxyEnv: true}.check()
	require.NoError(t, err)
	require.Nil(t, newTransport(s).Proxy)
	s, err = Options{Token: "1:abcdefgh", IgnoreProxyEnv: true, Proxy: "http://proxy.example:1"}.check()
	require.NoError(t, err)
	at, err := newTransport(s).Proxy(&http.Request{})
	require.NoError(t, err)
	require.Equal(t, "proxy.example:1", at.Host, "a proxy that was asked for is used in any case")
}
