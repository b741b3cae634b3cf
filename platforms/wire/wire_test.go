package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTrace_Sent(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for url, want := range map[string]bool{server.URL: true, "http://" + closed.Addr().String(): false} {
		var trace Trace
		req, err := http.NewRequestWithContext(trace.With(t.Context()), http.MethodGet, url, nil)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.Equal(t, want, err == nil)
		if err == nil {
			require.NoError(t, resp.Body.Close())
		}
		require.Equal(t, want, trace.Sent(), url)
	}
}

func TestClean_HidesAllButTheEndOfTime(t *testing.T) {
	secret := errors.New("token 4242:AA/secret was refused")
	err := Clean(fmt.Errorf("call: %w: %w", secret, context.DeadlineExceeded), Scrub("call: 4242:AA/secret 4242%3AAA%2Fsecret ab", "4242:AA/secret", "ab"))
	require.Equal(t, "call: *** *** ab", err.Error())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, secret)
	require.NoError(t, Clean(nil, ""))
}

func TestSleep(t *testing.T) {
	require.NoError(t, Sleep(t.Context(), time.Millisecond))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, System{}.Sleep(ctx, time.Hour), context.Canceled)
	require.ErrorIs(t, Sleep(ctx, 0), context.Canceled)
}
