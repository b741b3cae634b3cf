// Package wire is the HTTP side that the providers share: one pooled client per model, calls that end with
// their context, limits on silence, server-sent events, and the mapping of failed answers to *model.Error.
//
// It promises that no call outlives its context by more than a blink, that a peer which falls silent is
// noticed, that a body of any bytes is read with bounds, and that no secret reaches an error. It must not
// know what the messages of a provider look like.
package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"herald/gateway/model"
)

// The time limits of a call, and the bounds of what is read.
const (
	// DefaultHeaderTimeout is how long the answer's header may take. Servers that ignore streaming, and
	// local ones that read a long prompt first, are silent for minutes.
	DefaultHeaderTimeout = 5 * time.Minute
	// DefaultIdleTimeout is how long a body that has begun may be silent.
	DefaultIdleTimeout = 120 * time.Second
	// drainTimeout is how long the end of a complete answer is waited for, so that the connection can be
	// used again.
	drainTimeout = 20 * time.Millisecond

	dialTimeout  = 10 * time.Second
	maxIdle      = 128
	idleConnTime = 90 * time.Second

	maxErrorBody = 64 << 10
	maxBody      = 64 << 20
)

// Options configure a Client. Zero values take the defaults above.
type Options struct {
	// Provider names the provider in errors.
	Provider string
	// Secrets never appear in an error.
	Secrets       []string
	HeaderTimeout time.Duration
	IdleTimeout   time.Duration
	// Transport carries the requests; nil makes a pooled one.
	Transport http.RoundTripper
	// Now is the clock for HTTP dates; nil takes time.Now.
	Now func() time.Time
}

// Client makes calls. Safe for concurrent use.
type Client struct {
	o       Options
	http    *http.Client
	readers sync.Pool // of *Events
}

// New returns a client with a connection pool of its own.
func New(o Options) *Client {
	if o.HeaderTimeout <= 0 {
		o.HeaderTimeout = DefaultHeaderTimeout
	}
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = DefaultIdleTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Transport == nil {
		o.Transport = NewTransport()
	}
	c := &Client{o: o}
	c.http = &http.Client{
		Transport: o.Transport,
		// A redirect would carry the prompt, and perhaps the key, to another place.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.readers.New = func() any { return newEvents() }
	return c
}

// NewTransport returns a transport for model calls: many connections kept per host, a short dial, no
// compression (it delays streams).
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          2 * maxIdle,
		MaxIdleConnsPerHost:   maxIdle,
		IdleConnTimeout:       idleConnTime,
		TLSHandshakeTimeout:   dialTimeout,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true,
		WriteBufferSize:       16 << 10,
		ReadBufferSize:        16 << 10,
	}
}

// CloseIdleConnections closes pooled connections that no call uses.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

var (
	errSilent = errors.New("the server fell silent")
	errDone   = errors.New("done")
)

// Answer is the body of a successful call. Close it always.
type Answer struct {
	Header http.Header
	client *Client
	// outer is the caller's context; ctx also ends on silence.
	outer  context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   time.Duration
	body   io.ReadCloser
	eof    bool
}

// maxLearning bounds how often Ask makes one call because the server refused a field.
const maxLearning = 4

// Ask posts what body writes. When the server refuses it, learn looks at the refusal and reports whether body
// now writes a form worth another try; Ask gives up after maxLearning forms. Errors are those of Post.
func (c *Client) Ask(ctx context.Context, url string, header http.Header, body func() []byte,
	learn func(*model.Error) bool) (*Answer, error) {
	for range maxLearning {
		answer, err := c.Post(ctx, url, header, body())
		var failed *model.Error
		if err != nil && errors.As(err, &failed) && learn(failed) {
			continue
		}
		return answer, err
	}
	return nil, c.Errorf(model.BadRequest, "the server refuses every form of the request")
}

// Post sends body as JSON and returns the answer, once its header says success. Every other outcome is a
// *model.Error, or the cause of ctx when that ended.
func (c *Client) Post(ctx context.Context, url string, header http.Header, body []byte) (*Answer, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	inner, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(inner, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		cancel(errDone)
		return nil, c.Error(model.BadRequest, 0, fmt.Errorf("base URL: %w", err))
	}
	req.Header = header
	timer := time.AfterFunc(c.o.HeaderTimeout, func() { cancel(errSilent) })
	resp, err := c.http.Do(req)
	if err != nil {
		timer.Stop()
		cause := context.Cause(inner)
		cancel(errDone)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(cause, errSilent):
			return nil, c.Error(model.Down, 0, fmt.Errorf("no answer within %s", c.o.HeaderTimeout))
		}
		return nil, c.Error(model.Down, 0, bare(err))
	}
	a := &Answer{Header: resp.Header, client: c, outer: ctx, ctx: inner, cancel: cancel, timer: timer,
		idle: c.o.IdleTimeout, body: resp.Body}
	if resp.StatusCode == http.StatusOK {
		return a, nil
	}
	defer a.Close()
	a.idle = min(a.idle, 10*time.Second)
	text, _ := io.ReadAll(io.LimitReader(a, maxErrorBody))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, c.statusError(resp.StatusCode, resp.Header, text)
}

// bare takes the URL out of net/http's errors: it may hold a key.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// Read reads the body; silence for longer than the idle limit ends it.
func (a *Answer) Read(p []byte) (int, error) {
	a.timer.Reset(a.idle)
	n, err := a.body.Read(p)
	if err == io.EOF {
		a.eof = true
	}
	return n, err
}

// SetIdle changes how long the body may be silent from now on.
func (a *Answer) SetIdle(d time.Duration) { a.idle = d }

// Silent reports whether the body ended because nothing came for too long.
func (a *Answer) Silent() bool { return errors.Is(context.Cause(a.ctx), errSilent) }

// Fail returns what a read error of the body means: the caller's context's cause, or a Down error.
func (a *Answer) Fail(err error) error {
	if a.outer.Err() != nil {
		return context.Cause(a.outer)
	}
	if a.Silent() {
		return a.client.Error(model.Down, 0, fmt.Errorf("%w: nothing came for %s", errSilent, a.idle))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return a.client.Error(model.Down, 0, errors.New("the answer was cut off"))
	}
	if errors.Is(err, errTooLong) {
		return a.client.Error(model.Invalid, 0, err)
	}
	return a.client.Error(model.Down, 0, fmt.Errorf("reading the answer: %w", bare(err)))
}

// All reads the whole body, at most 64 MiB.
func (a *Answer) All() ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(a, maxBody+1))
	if err != nil {
		return nil, a.Fail(err)
	}
	if len(b) > maxBody {
		return nil, a.Fail(errTooLong)
	}
	return b, nil
}

// Finish reads what is left after the end of the message, briefly, so that the connection can be kept.
func (a *Answer) Finish() {
	if a.eof {
		return
	}
	a.idle = drainTimeout
	var scrap [512]byte
	for range 8 {
		if _, err := a.Read(scrap[:]); err != nil {
			return
		}
	}
}

// Close ends the call. A connection whose body was not read to its end is closed.
func (a *Answer) Close() {
	a.timer.Stop()
	if !a.eof {
		a.cancel(errDone)
	}
	a.body.Close()
	a.cancel(errDone)
}

// Kind of a body by its header and first bytes: "events", "json" or "html".
func (a *Answer) kind(head []byte) string {
	ct := strings.ToLower(a.Header.Get("Content-Type"))
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	switch {
	case len(head) > 0 && head[0] == '<':
		return "html"
	case strings.HasPrefix(ct, "text/event-stream"):
		return "events"
	case len(head) > 0 && (head[0] == '{' || head[0] == '['):
		return "json"
	}
	return "events"
}
