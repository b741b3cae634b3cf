package faults

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestScript_EachKind(t *testing.T) {
	var acted atomic.Int32
	script := &Script{}
	server := NewServer(script.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		acted.Add(1)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, strings.Repeat("x", 100))
	})))
	url, err := server.Start()
	require.NoError(t, err)
	defer server.Close()
	defer script.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	call := func() (status int, body string, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		require.NoError(t, err)
		resp, err := client.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b), err
	}
	for _, c := range []struct {
		kind   Kind
		acts   int32
		status int
		fails  bool
		times  bool // fails by the deadline
	}{
		{Status, 0, 503, false, false}, {ResetBefore, 0, 0, true, false}, {ResetAfter, 1, 0, true, false},
		{HangBefore, 0, 0, true, true}, {HangAfter, 1, 0, true, true}, {HalfBody, 1, 201, true, false},
		{SlowBody, 1, 201, false, false}, {Garbage, 0, 200, false, false}, {Late, 1, 201, false, false},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			acted.Store(0)
			script.Break(Fault{Kind: c.kind, Delay: time.Millisecond})
			status, body, err := call()
			require.Equal(t, c.fails, err != nil, "%v", err)
			require.Equal(t, c.times, errors.Is(err, context.DeadlineExceeded), "%v", err)
			require.Equal(t, c.status, status)
			require.Equal(t, c.acts, acted.Load())
			if c.kind == SlowBody || c.kind == Late {
				require.Len(t, body, 100)
			}
			status, _, err = call() // once only
			require.NoError(t, err)
			require.Equal(t, 201, status)
		})
	}
}

func TestServer_ShutOpenCut(t *testing.T) {
	server := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack() // as a WebSocket does
		if err == nil {
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}))
	url, err := server.Start()
	require.NoError(t, err)
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ended := make(chan error, 1)
	go func() {
		_, err := client.Get(url)
		ended <- err
	}()
	require.Eventually(t, func() bool { return server.Connections() == 1 }, 5*time.Second, time.Millisecond)
	require.NoError(t, server.Cut())
	require.Error(t, <-ended)
	require.Eventually(t, func() bool { return server.Connections() == 0 }, 5*time.Second, time.Millisecond)
	server.Shut()
	_, err = client.Get(url)
	require.ErrorContains(t, err, "refused")
	require.NoError(t, server.Open())
	require.Equal(t, url, server.URL())
}
