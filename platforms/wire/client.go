package wire

import (
	"bytes"
	"context"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"herald/platforms"
)

// CallLimit is how long a call may take whose caller sets no deadline.
const CallLimit = 2 * time.Minute

// Call is what is known of one request and its answer. A Client fills in the call of the request's context; an adapter may
// then correct it by what the answer's body says.
type Call struct {
	Trace // whether the request may have arrived

	// Status is 0 without an answer, and for a success whose answer broke off.
	Status int
	// Header is that of the answer, nil without one.
	Header http.Header
	// Body is the answer, at most Client.Limit bytes of it.
	Body []byte
	// After is how long the server asked to wait; 0: it did not.
	After time.Duration
}

type callKey struct{}

// NewCall returns a call and the context to make its request with. The context ends after limit; 0 keeps the deadline of ctx,
// and is CallLimit where ctx has none. The caller calls cancel when the answer was read.
func NewCall(ctx context.Context, limit time.Duration) (*Call, context.Context, context.CancelFunc) {
	c := &Call{}
	ctx = context.WithValue(ctx, callKey{}, c)
	if _, bounded := ctx.Deadline(); limit <= 0 && bounded {
		ctx, cancel := context.WithCancel(ctx)
		return c, ctx, cancel
	}
	if limit <= 0 {
		limit = CallLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	return c, ctx, cancel
}

// CallOf returns the call that NewCall put into ctx, or a new one where there is none.
func CallOf(ctx context.Context) *Call {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		return c
	}
	return &Call{}
}

// Outcome says what HTTP alone tells of a call that failed with err: the start for an adapter that knows more. In short: no
// answer is unknown where the request may have arrived; a success that could not be read and a status from 500 on are unknown;
// 429, and 503 with a Retry-After, are RateLimited for at least a second; other refusals are certainly not sent.
func (c *Call) Outcome(err error) *platforms.SendError {
	e := &platforms.SendError{Kind: platforms.Transient, Err: err}
	switch status := c.Status; {
	case status == 0:
		if c.Sent() {
			e.Certainty = platforms.Unknown
		}
	case status < 300:
		e.Certainty = platforms.Unknown
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && c.After > 0:
		e.Kind, e.RetryAfter = platforms.RateLimited, max(c.After, time.Second)
	case status >= 500:
		e.Certainty = platforms.Unknown
	case status == http.StatusUnauthorized:
		e.Kind = platforms.AuthFailed
	case status == http.StatusForbidden:
		e.Kind = platforms.Forbidden
	case status == http.StatusNotFound:
		e.Kind = platforms.NotFound
	case status == http.StatusRequestEntityTooLarge:
		e.Kind = platforms.TooLong
	default:
		e.Kind = platforms.BadRequest
	}
	return e
}

// Client makes requests and keeps the facts of each in its Call. API libraries take it as their HTTP client.
type Client struct {
	HTTP *http.Client
	// Limit is the most bytes of an answer that are read; what is beyond is dropped.
	Limit int64
	// Buffer is up to how many bytes of a request's body are held in memory, so that its length is known and an idle connection
	// that has died can be replaced. Larger bodies are streamed. 0 streams every body that net/http can't repeat by itself.
	Buffer int
}

// Do makes a request and reads its answer to the end. The answer's body needs no closing.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	call := CallOf(req.Context())
	if err := c.buffer(req); err != nil {
		return nil, err
	}
	resp, err := c.HTTP.Do(req.WithContext(call.With(req.Context())))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	call.Status, call.Header, call.After = resp.StatusCode, resp.Header, RetryAfter(resp.Header)
	call.Body, err = io.ReadAll(io.LimitReader(resp.Body, c.Limit))
	if err != nil {
		if call.Status < 300 {
			call.Status = 0
		}
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(call.Body))
	return resp, nil
}

// buffer gives a small body its length and makes it repeatable.
func (c *Client) buffer(req *http.Request) error {
	if c.Buffer == 0 || req.Body == nil || req.Body == http.NoBody || req.GetBody != nil {
		return nil
	}
	head := make([]byte, 0, min(2048, c.Buffer))
	for len(head) < c.Buffer {
		if len(head) == cap(head) {
			head = append(head, 0)[:len(head)]
		}
		n, err := req.Body.Read(head[len(head):min(cap(head), c.Buffer)])
		head = head[:len(head)+n]
		if err == io.EOF {
			_ = req.Body.Close()
			req.ContentLength = int64(len(head))
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(head)), nil }
			req.Body, _ = req.GetBody()
			return nil
		}
		if err != nil {
			return err
		}
	}
	req.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), req.Body), req.Body}
	return nil
}

// longestWait bounds what a Retry-After may ask for.
const longestWait = 1e6 * time.Second

// RetryAfter returns what a Retry-After header asks for, in seconds or as a time, at most about 11 days; 0 when there is none.
func RetryAfter(h http.Header) time.Duration {
	after := h.Get("Retry-After")
	if after == "" {
		return 0
	}
	if d := Seconds(after); d > 0 {
		return d
	}
	if at, err := http.ParseTime(after); err == nil {
		return min(max(time.Until(at), time.Second), longestWait)
	}
	return 0
}

// Seconds reads a number of seconds, with or without a fraction, at most about 11 days; 0 when text is no such number.
func Seconds(text string) time.Duration {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(s) || s <= 0 {
		return 0
	}
	return time.Duration(min(s, longestWait.Seconds()) * float64(time.Second))
}
