package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
)

// request makes one request with a call of its own.
func request(t *testing.T, c *Client, address string, body io.Reader) (*Call, string, error) {
	t.Helper()
	call, ctx, cancel := NewCall(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, body)
	require.NoError(t, err)
	resp, err := c.Do(req)
	if err != nil {
		return call, "", err
	}
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return call, string(raw), nil
}

func newTestClient(t *testing.T) *Client {
	moves := NewTransport(TransportOptions{ConnectTimeout: time.Second, Idle: 2})
	t.Cleanup(moves.CloseIdleConnections)
	return &Client{HTTP: &http.Client{Transport: moves, CheckRedirect: NoRedirects}, Limit: 1 << 10, Buffer: 64}
}

func TestClient_KeepsTheFacts(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/busy":
			w.Header().Set("Retry-After", "1.5")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, "later")
		case "/long":
			_, _ = w.Write(make([]byte, 4<<10))
		case "/cut", "/cuterror":
			w.Header().Set("Content-Length", "100")
			if r.URL.Path == "/cuterror" {
				w.WriteHeader(http.StatusBadRequest)
			}
			_, _ = io.WriteString(w, "half")
		case "/away":
			http.Redirect(w, r, "/echo", http.StatusFound)
		default:
			_, _ = io.WriteString(w, strconv.FormatInt(r.ContentLength, 10)+" "+string(body))
		}
	}))
	defer server.Close()
	c := newTestClient(t)

	call, text, err := request(t, c, server.URL+"/echo", strings.NewReader("hello"))
	require.NoError(t, err)
	require.Equal(t, "5 hello", text)
	require.Equal(t, "5 hello", string(call.Body))
	require.Equal(t, http.StatusOK, call.Status)
	require.True(t, call.Sent())

	// A small body without a length gets one; a large one is streamed.
	_, text, err = request(t, c, server.URL, io.NopCloser(strings.NewReader("small")))
	require.NoError(t, err)
	require.Equal(t, "5 small", text)
	large := strings.Repeat("x", 200)
	_, text, err = request(t, c, server.URL, io.NopCloser(bytes.NewBufferString(large)))
	require.NoError(t, err)
	require.Equal(t, "-1 "+large, text)
	_, _, err = request(t, c, server.URL, io.NopCloser(io.MultiReader(strings.NewReader("x"), failing{})))
	require.ErrorIs(t, err, errFailing)

	call, text, err = request(t, c, server.URL+"/busy", nil)
	require.NoError(t, err)
	require.Equal(t, "later", text)
	require.Equal(t, 1500*time.Millisecond, call.After)
	require.Equal(t, 1500*time.Millisecond, call.Outcome(nil).RetryAfter)

	call, text, err = request(t, c, server.URL+"/long", nil)
	require.NoError(t, err)
	require.Len(t, text, 1<<10)
	require.Len(t, call.Body, 1<<10)

	call, _, err = request(t, c, server.URL+"/cut", nil)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Zero(t, call.Status)
	require.NotNil(t, call.Header)
	require.Equal(t, platforms.Unknown, call.Outcome(err).Certainty)
	call, _, err = request(t, c, server.URL+"/cuterror", nil)
	require.Error(t, err)
	require.Equal(t, platforms.NotSent, call.Outcome(err).Certainty)
	require.Equal(t, "half", string(call.Body))

	call, _, err = request(t, c, server.URL+"/away", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusFound, call.Status)

	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	call, _, err = request(t, c, "http://"+closed.Addr().String(), nil)
	require.Error(t, err)
	require.Zero(t, call.Status)
	require.Equal(t, platforms.NotSent, call.Outcome(err).Certainty)
	require.Equal(t, platforms.Transient, call.Outcome(err).Kind)
}

var errFailing = errors.New("the disk is gone")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errFailing }

func TestNewCall_Ends(t *testing.T) {
	within := func(ctx context.Context, limit time.Duration) time.Duration {
		_, ctx, cancel := NewCall(ctx, limit)
		defer cancel()
		deadline, ok := ctx.Deadline()
		require.True(t, ok)
		return time.Until(deadline).Round(time.Second)
	}
	require.Equal(t, CallLimit, within(t.Context(), 0))
	require.Equal(t, time.Minute, within(t.Context(), time.Minute))
	bounded, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	require.Equal(t, time.Hour, within(bounded, 0))
	require.Equal(t, time.Minute, within(bounded, time.Minute))
	call, ctx, cancel := NewCall(t.Context(), 0)
	defer cancel()
	require.Same(t, call, CallOf(ctx))
	require.NotNil(t, CallOf(t.Context()))
}

func TestCall_Outcome(t *testing.T) {
	cause := errors.New("cause")
	for _, c := range []struct {
		status int
		after  time.Duration
		kind   platforms.FailureKind
		known  platforms.Certainty
		wait   time.Duration
	}{
		{200, 0, platforms.Transient, platforms.Unknown, 0},
		{302, 0, platforms.BadRequest, platforms.NotSent, 0},
		{400, 0, platforms.BadRequest, platforms.NotSent, 0},
		{401, 0, platforms.AuthFailed, platforms.NotSent, 0},
		{403, 0, platforms.Forbidden, platforms.NotSent, 0},
		{404, 0, platforms.NotFound, platforms.NotSent, 0},
		{413, 0, platforms.TooLong, platforms.NotSent, 0},
		{429, 0, platforms.RateLimited, platforms.NotSent, time.Second},
		{429, 7 * time.Second, platforms.RateLimited, platforms.NotSent, 7 * time.Second},
		{500, 7 * time.Second, platforms.Transient, platforms.Unknown, 0},
		{503, 0, platforms.Transient, platforms.Unknown, 0},
		{503, 3 * time.Second, platforms.RateLimited, platforms.NotSent, 3 * time.Second},
	} {
		call := &Call{Status: c.status, After: c.after}
		want := &platforms.SendError{Kind: c.kind, Certainty: c.known, RetryAfter: c.wait, Err: cause}
		require.Equal(t, want, call.Outcome(cause), c.status)
	}
}

func TestRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "3": 3 * time.Second, "0.25": 250 * time.Millisecond, "0": 0, "-4": 0, "NaN": 0, "soon": 0, "1e300": longestWait, "Inf": longestWait,
		"Thu, 01 Jan 1970 00:00:00 GMT": time.Second, "Fri, 31 Dec 9999 23:59:59 GMT": longestWait,
	} {
		require.Equal(t, want, RetryAfter(http.Header{"Retry-After": {text}}), text)
	}
}

func TestProxy(t *testing.T) {
	require.Nil(t, Proxy(nil, true))
	require.NotNil(t, Proxy(nil, false))
	own := &url.URL{Scheme: "http", Host: "proxy.example:1"}
	at, err := Proxy(own, true)(&http.Request{})
	require.NoError(t, err)
	require.Equal(t, own, at)
}

func TestRedact(t *testing.T) {
	cause := &url.Error{Op: "Post", URL: "https://x/bot4242:secret", Err: errors.New("proxy says 4242:secret")}
	require.Equal(t, "proxy says ***", Redact(cause, "4242:secret").Error())
	require.NotErrorIs(t, Redact(cause, "4242:secret"), cause.Err)
	require.ErrorIs(t, Redact(&url.Error{Op: "Get", URL: "x", Err: context.Canceled}), context.Canceled)
	require.NoError(t, Redact(nil))
	require.Equal(t, cause.Err, Bare(cause))
	require.Equal(t, errFailing, Bare(errFailing))
}
