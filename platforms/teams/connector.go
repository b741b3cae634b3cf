package teams

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"herald/platforms"
	"herald/platforms/wire"
)

const (
	// maxAnswer bounds the answer of one request. A team's list of channels is the longest.
	maxAnswer = 4 << 20
	// unbounded is how long a call may take whose caller sets no deadline.
	unbounded = 2 * time.Minute
)

// call is what is known of one request.
type call struct {
	wire.Trace // whether it may have arrived

	status     int // 0: no answer
	code       string
	message    string
	retryAfter time.Duration
	garbled    bool // a success whose answer can't be read
	taken      bool // and it was the connector's own: what was asked for is done
}

// request is one question to the connector or to Graph.
type request struct {
	method string
	url    string
	body   any // JSON; nil for none
	graph  bool
}

// ask makes a request with the bot's token and decodes the answer into into, which may be nil. A refused token is
// renewed once. The error is a *platforms.SendError.
func (a *Adapter) ask(ctx context.Context, r request, into any) (*call, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, unbounded)
		defer cancel()
	}
	var body []byte
	if r.body != nil {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false) // "<" as six bytes would count against the limit
		if err := enc.Encode(r.body); err != nil {
			return nil, &platforms.SendError{Kind: platforms.BadRequest, Err: err}
		}
		body = bytes.TrimRight(buf.Bytes(), "\n")
	}
	source := a.tokens
	if r.graph {
		source = a.graphTokens
	}
	for again := false; ; again = true {
		token, err := source.get(ctx)
		if err != nil {
			return nil, a.noToken(err)
		}
		c, err := a.once(ctx, r, body, token, into)
		if c.status == http.StatusUnauthorized {
			source.drop(token)
			if !again {
				continue
			}
		}
		if err != nil {
			return c, a.outcome(c, err)
		}
		return c, nil
	}
}

// query is ask for what belongs to no chat: windows that Teams asks for are kept by topic (P8).
func (a *Adapter) query(ctx context.Context, topic string, r request, into any) error {
	if err := a.gate.open(topic); err != nil {
		return err
	}
	_, err := a.ask(ctx, r, into)
	if e := platforms.AsSendError(err); e != nil && e.Kind == platforms.RateLimited {
		a.gate.close(topic, e.RetryAfter)
	}
	return err
}

// The topics of query.
const (
	topicTeams  = "teams"
	topicCreate = "create"
	topicGraph  = "graph"
)

// noToken says what a missing token means for a send: nothing has left. A refused secret ends Run.
func (a *Adapter) noToken(err error) error {
	e := &platforms.SendError{Kind: platforms.Transient, Err: err}
	if se := startError(err); se != nil {
		e.Kind = platforms.AuthFailed
		select {
		case a.refused <- se:
		default:
		}
	}
	return e
}

// errStatus says that the answer was no success; the call has the facts.
var errStatus = errors.New("refused")

// errGarbled says that the answer broke off or made no sense after a success.
var errGarbled = errors.New("the answer could not be read")

// once makes one attempt.
func (a *Adapter) once(ctx context.Context, r request, body []byte, token string, into any) (*call, error) {
	c := &call{}
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(c.With(ctx), r.method, r.url, reader)
	if err != nil {
		return c, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json; charset=utf-8")
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return c, err
	}
	defer resp.Body.Close()
	c.status = resp.StatusCode
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		c.note(resp, answer)
		return c, errStatus
	}
	isJSON := strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json")
	switch {
	case err != nil:
		c.garbled, c.taken = true, isJSON
		return c, errGarbled
	case len(bytes.TrimSpace(answer)) == 0:
		return c, nil
	case !isJSON: // a page of some proxy: nothing is known
		c.garbled = true
		return c, errGarbled
	case into == nil:
		return c, nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		c.garbled, c.taken = true, true
		return c, errGarbled
	}
	return c, nil
}

// note reads an error answer: {"error":{"code":"…","message":"…"}}.
func (c *call) note(resp *http.Response, body []byte) {
	var e struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &e) == nil {
		c.code, c.message = e.Error.Code, e.Error.Message
		if c.code == "" {
			c.code, c.message = e.Code, e.Message
		}
	}
	c.code, c.message = cut(c.code, 100), cut(c.message, 300)
	c.retryAfter = waitOf(resp.Header)
}

// waitOf returns what a Retry-After header asks for, in seconds or as a time; 0 when there is none.
func waitOf(h http.Header) time.Duration {
	after := h.Get("Retry-After")
	if secs, err := strconv.ParseFloat(after, 64); err == nil && secs > 0 && secs < 1e6 {
		return time.Duration(secs * float64(time.Second))
	}
	if at, err := http.ParseTime(after); err == nil {
		return max(time.Until(at), time.Second)
	}
	return 0
}

// newTransport returns the transport for Microsoft's own servers. It speaks HTTP/1.1, where it is known whether a
// request has left.
func newTransport(s *settings) *http.Transport {
	dialer := &net.Dialer{Timeout: s.ConnectTimeout, KeepAlive: 15 * time.Second}
	t := &http.Transport{
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   s.ConnectTimeout,
		MaxIdleConns:          64,
		MaxIdleConnsPerHost:   32,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		Proxy:                 http.ProxyFromEnvironment,
	}
	if s.IgnoreProxyEnv {
		t.Proxy = nil
	}
	if s.proxy != nil {
		t.Proxy = http.ProxyURL(s.proxy)
	}
	return t
}

// newClient returns a client that follows no redirect: a token belongs to the server it was sent to.
func newClient(t *http.Transport) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// plain takes the address out of an error of net/http, which may hold what is not for logs.
func plain(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

// cut shortens text to at most limit bytes at the border of a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && text[limit]&0xC0 == 0x80 {
		limit--
	}
	return text[:limit]
}
