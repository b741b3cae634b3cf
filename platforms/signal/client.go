package signal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"herald/platforms/wire"
)

// answerLimit is the most bytes of an answer that is read as a whole.
const answerLimit = 32 << 20

// Client calls a signal-cli daemon. Make one with NewClient.
type Client struct {
	root    string
	account string // goes with every call; empty for none
	http    *http.Client
	timeout time.Duration
	inline  int64 // up to how many bytes of files travel inside a request to a daemon on this machine
	calls   atomic.Uint64
}

// NewClient returns a client of the daemon at root (see Root). proxyEnv lets HTTP_PROXY and its like count.
func NewClient(root string, proxyEnv bool) *Client {
	t := wire.NewTransport(wire.TransportOptions{ConnectTimeout: 10 * time.Second, Idle: 4, Proxy: wire.Proxy(nil, !proxyEnv)})
	return &Client{root: root, timeout: DefaultRPCTimeout, inline: inlineFile,
		http: &http.Client{Transport: t, CheckRedirect: wire.NoRedirects}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// callError is a call that failed: what is known of it.
type callError struct {
	method string
	sent   bool // the request may have reached the daemon
	status int  // of HTTP; 0: no answer
	after  time.Duration
	// code, message and data are the JSON-RPC error; answered is true when there was one.
	answered bool
	code     int
	message  string
	data     json.RawMessage
	err      error
}

func (e *callError) Error() string {
	switch {
	case e.answered:
		return fmt.Sprintf("%s: signal-cli says: %s (%d)", e.method, Mask(e.message), e.code)
	case e.status != 0 && e.status != http.StatusOK:
		return fmt.Sprintf("%s: the server answered HTTP %d", e.method, e.status)
	case e.status == http.StatusOK:
		return e.method + ": the answer could not be read"
	}
	return e.method + ": " + Mask(e.err.Error())
}

func (e *callError) Unwrap() error { return e.err }

// The daemon's error codes.
const (
	codeUser          = -1
	codeIO            = -3
	codeUntrusted     = -4
	codeRateLimit     = -5
	codeUnknownMethod = -32601
	codeParams        = -32602
)

// call makes one request and decodes its result into out, which may be nil. Errors are *callError.
func (c *Client) call(ctx context.Context, method string, params map[string]any, out any) error {
	resp, failed, cancel := c.post(ctx, method, params, nil)
	if failed != nil {
		return failed
	}
	defer cancel()
	defer drop(resp.Body)
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err != nil {
		return &callError{method: method, sent: true, status: resp.StatusCode, err: err}
	}
	return decodeAnswer(method, body, out)
}

func decodeAnswer(method string, body []byte, out any) error {
	var a struct {
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Code    int             `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data"`
		} `json:"error"`
	}
	failed := &callError{method: method, sent: true, status: http.StatusOK}
	if err := json.Unmarshal(body, &a); err != nil {
		failed.err = err
		return failed
	}
	if a.Error != nil {
		failed.answered, failed.code, failed.message, failed.data = true, a.Error.Code, a.Error.Message, a.Error.Data
		return failed
	}
	if a.Result == nil {
		failed.err = errors.New("an answer without a result")
		return failed
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(a.Result, out); err != nil {
		failed.err = err
		return failed
	}
	return nil
}

// post makes one request. files, where set, writes the value of params["attachments"] while the request goes out. On
// success the caller closes the body and calls cancel; the status is 200 then.
func (c *Client) post(ctx context.Context, method string, params map[string]any, files *attached) (*http.Response, *callError,
	context.CancelFunc) {
	failed := &callError{method: method}
	full := map[string]any{}
	for k, v := range params {
		full[k] = v
	}
	if c.account != "" {
		full["account"] = c.account
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": full,
		"id": method + "_" + strconv.FormatUint(c.calls.Add(1), 10)})
	if err != nil {
		failed.err = err
		return nil, failed, nil
	}
	cancel := context.CancelFunc(func() {})
	if _, bounded := ctx.Deadline(); !bounded {
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
	}
	var trace wire.Trace
	var reader io.Reader = bytes.NewReader(body)
	if files != nil {
		reader = files.into(body)
	}
	req, err := http.NewRequestWithContext(trace.With(ctx), http.MethodPost, c.root+"/api/v1/rpc", reader)
	if err != nil {
		cancel()
		failed.err = err
		return nil, failed, nil
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	failed.sent = trace.Sent()
	if err != nil {
		cancel()
		failed.err = wire.Bare(err)
		return nil, failed, nil
	}
	if resp.StatusCode != http.StatusOK {
		failed.status, failed.after = resp.StatusCode, wire.RetryAfter(resp.Header)
		drop(resp.Body)
		cancel()
		return nil, failed, nil
	}
	return resp, nil, cancel
}

// get makes one GET request and returns the status and at most limit bytes.
func (c *Client) get(ctx context.Context, path string, limit int64) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.root+path, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, wire.Bare(err)
	}
	defer drop(resp.Body)
	body, err = io.ReadAll(io.LimitReader(resp.Body, limit))
	return resp.StatusCode, body, err
}

// drop reads what little is left of a body, so that its connection can be used again.
func drop(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 4<<10)
	_ = body.Close()
}
