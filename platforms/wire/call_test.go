package wire

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// P4: what the trace of a request says about whether the server may have it.
func TestTrace_Sent_ByEvents(t *testing.T) {
	broken := httptrace.WroteRequestInfo{Err: errors.New("broken pipe")}
	for _, c := range []struct {
		name string
		play func(*httptrace.ClientTrace)
		want bool
	}{
		{"no connection", func(h *httptrace.ClientTrace) { h.GetConn("") }, false},
		{"a connection, and no word of the rest", func(h *httptrace.ClientTrace) { h.GetConn(""); h.GotConn(httptrace.GotConnInfo{}) }, true},
		{"written", func(h *httptrace.ClientTrace) {
			h.GetConn("")
			h.GotConn(httptrace.GotConnInfo{})
			h.WroteRequest(httptrace.WroteRequestInfo{})
		}, true},
		{"cut while it was written", func(h *httptrace.ClientTrace) {
			h.GetConn("")
			h.GotConn(httptrace.GotConnInfo{})
			h.WroteRequest(broken)
		}, false},
		{"a dead connection, then none", func(h *httptrace.ClientTrace) {
			h.GetConn("")
			h.GotConn(httptrace.GotConnInfo{})
			h.WroteRequest(broken)
			h.GetConn("")
		}, false},
		{"a dead connection, then a good one", func(h *httptrace.ClientTrace) {
			h.GetConn("")
			h.GotConn(httptrace.GotConnInfo{})
			h.WroteRequest(broken)
			h.GetConn("")
			h.GotConn(httptrace.GotConnInfo{})
			h.WroteRequest(httptrace.WroteRequestInfo{})
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var one Call
			c.play(httptrace.ContextClientTrace(one.With(t.Context())))
			require.Equal(t, c.want, one.Sent())
		})
	}
}

// A small body gets its length and can be repeated; a large one is streamed; nothing is lost of either.
func TestClient_Buffer(t *testing.T) {
	const buffered = 64 << 10
	c := &Client{Buffer: buffered}
	for _, size := range []int{0, 1, 2047, 2048, 2049, buffered - 1, buffered, buffered + 1, 3 * buffered} {
		body := bytes.Repeat([]byte("x"), size)
		req, err := http.NewRequest(http.MethodPost, "http://x.example", iotest.HalfReader(bytes.NewReader(body)))
		require.NoError(t, err)
		require.NoError(t, c.buffer(req))
		if size < buffered {
			require.Equal(t, int64(size), req.ContentLength)
			again, err := req.GetBody()
			require.NoError(t, err)
			got, err := io.ReadAll(again)
			require.NoError(t, err)
			require.Equal(t, body, append([]byte{}, got...))
		}
		got, err := io.ReadAll(req.Body)
		require.NoError(t, err)
		require.True(t, bytes.Equal(body, got), "size %d", size)
	}
	req, err := http.NewRequest(http.MethodPost, "http://x.example", iotest.ErrReader(io.ErrClosedPipe))
	require.NoError(t, err)
	require.ErrorIs(t, c.buffer(req), io.ErrClosedPipe)
}
