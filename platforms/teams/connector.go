package teams

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"herald/platforms"
	"herald/platforms/format"
	"herald/platforms/wire"
)

// maxAnswer bounds the answer of one request. A team's list of channels is the longest.
const maxAnswer = 4 << 20

// call is what is known of one request.
type call struct {
	*wire.Call
	code    string
	message string
	taken   bool // a success of the connector's own that can't be read: what was asked for is done
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
		if c.Status == http.StatusUnauthorized {
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
	if err := a.gate.Check(topic); err != nil {
		return err
	}
	_, err := a.ask(ctx, r, into)
	if e := platforms.AsSendError(err); e != nil && e.Kind == platforms.RateLimited {
		a.gate.Close(e.RetryAfter, topic)
	}
	return err
}

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
	facts, ctx, cancel := wire.NewCall(ctx, 0)
	defer cancel()
	c := &call{Call: facts}
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, reader)
	if err != nil {
		return c, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json; charset=utf-8")
	}
	_, err = a.client.Do(req)
	isJSON := strings.HasPrefix(c.Header.Get("Content-Type"), "application/json")
	switch {
	case c.Header == nil:
		return c, err
	case c.Status == 0: // a success that broke off
		c.taken = isJSON
		return c, errGarbled
	case c.Status < 200 || c.Status > 299:
		c.note()
		return c, errStatus
	case len(bytes.TrimSpace(c.Body)) == 0:
		return c, nil
	case !isJSON: // a page of some proxy: nothing is known
		return c, errGarbled
	case into == nil:
		return c, nil
	}
	if err := json.Unmarshal(c.Body, into); err != nil {
		c.taken = true
		return c, errGarbled
	}
	return c, nil
}

// note reads an error answer: {"error":{"code":"…","message":"…"}}.
func (c *call) note() {
	var e struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(c.Body, &e) == nil {
		c.code, c.message = e.Error.Code, e.Error.Message
		if c.code == "" {
			c.code, c.message = e.Code, e.Message
		}
	}
	c.code, c.message = cut(c.code, 100), cut(c.message, 300)
}

// newTransport returns the transport for Microsoft's own servers.
func newTransport(s *settings) *http.Transport {
	return wire.NewTransport(wire.TransportOptions{ConnectTimeout: s.ConnectTimeout, Idle: 32, Proxy: wire.Proxy(s.proxy, s.IgnoreProxyEnv)})
}

// cut shortens text to at most limit bytes.
func cut(text string, limit int) string { return format.Cut(text, limit, platforms.Bytes) }
