package wire

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
)

// Trace finds out whether a request may have reached its server: the difference between "not sent" and "unknown". The
// zero value is ready, for one request and its retries by the transport. It needs HTTP/1.1.
type Trace struct {
	// reached is true from when a connection was had: bytes may have left. broken is true when writing the request has
	// failed, so that the server can't have had all of it.
	reached, broken atomic.Bool
}

// Sent reports whether the server may have the whole request.
func (t *Trace) Sent() bool { return t.reached.Load() && !t.broken.Load() }

// With returns a context whose request is traced.
func (t *Trace) With(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// The transport starts over with a new connection only when nothing was written.
		GetConn: func(string) { t.reached.Store(false); t.broken.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { t.reached.Store(true) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err != nil {
				t.broken.Store(true)
			}
		},
	})
}
