package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	api "github.com/slack-go/slack"

	"herald/platforms"
	"herald/platforms/wire"
)

const (
	maxFrame     = 8 << 20         // far above any envelope of Slack
	writeTimeout = 5 * time.Second // for an acknowledgement
	// settleFor is how long a connection that Slack wants to end waits for what was read to be acknowledged.
	settleFor = 2 * time.Second
)

var (
	errAsked   = errors.New("a new connection was asked for by Slack")
	errDeaf    = errors.New("no sign of life from Slack")
	errNoHello = errors.New("the connection stands, but Slack said no hello")

	errSwitchedOff = errors.New("the switch Socket Mode of the app is off: turn it on at the app's page Socket Mode")
)

// envelope is one message of the connection.
type envelope struct {
	Type    string          `json:"type"`
	ID      string          `json:"envelope_id"`
	Payload json.RawMessage `json:"payload"`
	Reason  string          `json:"reason"` // of a disconnect
}

// delivery is an envelope on its way to an adapter.
type delivery struct {
	envelope
	from *socket
}

// ack tells Slack that the envelope was taken. On a connection that is gone it does nothing: Slack delivers again.
func (d delivery) ack() { d.from.ack(d.ID) }

// socket is one connection.
type socket struct {
	conn    *websocket.Conn
	health  *wire.Health
	writing sync.Mutex
	pending atomic.Int64 // read and not acknowledged

	hello  chan struct{}
	asked  chan string
	broken chan error    // what ended the reading, once
	gone   chan struct{} // closed by close
}

// connection opens one connection and returns when it has ended and is closed. The error is errAsked, errDeaf,
// errNoHello, a *platforms.StartError, a *platforms.SendError, or what broke the connection.
func (h *hub) connection(ctx context.Context) error {
	address, err := h.open(ctx)
	if err != nil {
		return err
	}
	sock, err := h.dial(ctx, address)
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.read(sock)
	}()
	defer sock.close(ended)
	if err := h.awaitHello(ctx, sock); err != nil {
		return err
	}
	h.s.Metrics.Polled("ok")
	h.health.Heard()
	h.health.Set("connected", "")
	h.s.Log.Info().Msg("connected to Slack")
	tick := time.NewTicker(h.s.PingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-sock.broken:
			return err
		case reason := <-sock.asked:
			sock.settle(ctx)
			if reason == "link_disabled" {
				return errSwitchedOff
			}
			return errAsked
		case <-tick.C:
			if h.health.Silent() > h.s.DeafAfter {
				return fmt.Errorf("%w for %s", errDeaf, h.s.DeafAfter)
			}
			sock.ping()
		}
	}
}

func (h *hub) awaitHello(ctx context.Context, sock *socket) error {
	timer := time.NewTimer(h.s.ConnectTimeout)
	defer timer.Stop()
	select {
	case <-sock.hello:
		return nil
	case err := <-sock.broken:
		return err
	case reason := <-sock.asked:
		return fmt.Errorf("the connection was ended by Slack before its hello (%s)", reason)
	case <-timer.C:
		return errNoHello
	case <-ctx.Done():
		return ctx.Err()
	}
}

// open asks for the address of a new connection, which is a secret.
func (h *hub) open(ctx context.Context) (*url.URL, error) {
	c, callCtx, cancel := wire.NewCall(ctx, h.s.ConnectTimeout)
	defer cancel()
	_, address, err := h.app.StartSocketModeContext(callCtx)
	if err != nil {
		return nil, h.refused(c, err)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "wss" && (u.Scheme != "ws" || h.s.api.Scheme != "http") {
		return nil, errors.New("no usable address for the connection was named by Slack")
	}
	return u, nil
}

// refused says whether trying again may help.
func (h *hub) refused(c *wire.Call, err error) error {
	var e api.SlackErrorResponse
	if !errors.As(err, &e) {
		return h.s.outcome(c, err)
	}
	fatal := setting("app_token", errors.New("was refused by Slack ("+e.Err+")"), "")
	switch e.Err {
	case "invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive":
		fatal.Hint = "set SLACK_APP_TOKEN to an app-level token (xapp-…) of the app's page Basic Information"
	case "not_allowed_token_type":
		fatal.Hint = "SLACK_APP_TOKEN must be an app-level token, which begins with xapp-"
	case "missing_scope", "no_permission":
		fatal.Hint = "the app-level token lacks the scope connections:write: make a new one with it"
	default:
		return h.s.outcome(c, err)
	}
	return fatal
}

func (h *hub) dial(ctx context.Context, address *url.URL) (*socket, error) {
	ctx, cancel := context.WithTimeout(ctx, h.s.ConnectTimeout)
	defer cancel()
	dialer := websocket.Dialer{Proxy: h.s.proxyFunc(), HandshakeTimeout: h.s.ConnectTimeout}
	conn, resp, err := dialer.DialContext(ctx, address.String(), nil)
	if err != nil {
		status := ""
		if resp != nil {
			status = fmt.Sprintf(" (it answered %d)", resp.StatusCode)
			if resp.StatusCode == http.StatusTooManyRequests {
				return nil, &platforms.SendError{Kind: platforms.RateLimited, RetryAfter: time.Second, Err: errors.New("no more connections are taken by Slack")}
			}
		}
		return nil, fmt.Errorf("connect to %s%s: %w", address.Host, status, h.s.clean(err, address.String(), address.RequestURI(), address.RawQuery))
	}
	s := &socket{conn: conn, health: h.health, hello: make(chan struct{}), asked: make(chan string, 1), broken: make(chan error, 1),
		gone: make(chan struct{})}
	conn.SetReadLimit(maxFrame)
	conn.SetPongHandler(func(string) error { s.health.Heard(); return nil })
	conn.SetPingHandler(func(data string) error {
		s.health.Heard()
		_ = conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTimeout))
		return nil
	})
	return s, nil
}

// read takes frames until the connection ends.
func (h *hub) read(s *socket) {
	greeted := false
	for {
		_, frame, err := s.conn.ReadMessage()
		if err != nil {
			s.broken <- fmt.Errorf("the connection broke: %w", h.s.clean(err))
			return
		}
		h.health.Heard()
		var e envelope
		if json.Unmarshal(frame, &e) != nil {
			h.s.Metrics.Dropped("undecodable")
			h.s.Log.Error().Int("bytes", len(frame)).Msg("a message of Slack's connection is no JSON and is skipped")
			continue
		}
		switch e.Type {
		case "hello":
			if !greeted {
				greeted = true
				close(s.hello)
			}
		case "disconnect":
			h.s.Log.Info().Str("reason", e.Reason).Msg("Slack asks for a new connection")
			select {
			case s.asked <- e.Reason:
			default:
			}
		default:
			h.route(s, e)
		}
	}
}

// route hands an envelope to the adapter of its workspace.
func (h *hub) route(s *socket, e envelope) {
	if e.ID == "" {
		return
	}
	to, waiting := h.seatOf(e.Payload)
	switch {
	case to != nil:
		s.pending.Add(1)
		select {
		case to.inbox <- delivery{e, s}:
		case <-s.gone:
		}
	case waiting: // Slack delivers it again
	default:
		h.s.Metrics.Dropped("team")
		h.s.Log.Warn().Str("type", e.Type).Msg("an event of a workspace without a bot token here is dropped: add its token to SLACK_BOT_TOKEN")
		s.pending.Add(1)
		s.ack(e.ID)
	}
}

// ack writes an acknowledgement. A write that fails ends the connection.
func (s *socket) ack(id string) {
	defer s.pending.Add(-1)
	answer := map[string]string{"envelope_id": id}
	s.writing.Lock()
	defer s.writing.Unlock()
	select {
	case <-s.gone:
		return
	default:
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err := s.conn.WriteJSON(answer); err != nil {
		_ = s.conn.NetConn().Close() // the reader notices
	}
}

func (s *socket) ping() {
	_ = s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
}

// settle waits until what was read is acknowledged.
func (s *socket) settle(ctx context.Context) {
	deadline := time.NewTimer(settleFor)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for s.pending.Load() > 0 {
		select {
		case <-tick.C:
		case <-deadline.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// farewell is how long Slack may take to close its side, so that it never sees two connections of ours.
const farewell = 300 * time.Millisecond

// close ends the connection, also when the other side is gone, and returns when its reader has ended.
func (s *socket) close(ended <-chan struct{}) {
	close(s.gone)
	timer := time.NewTimer(farewell)
	defer timer.Stop()
	if s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""),
		time.Now().Add(farewell)) == nil {
		select {
		case <-ended:
		case <-timer.C:
		}
	}
	_ = s.conn.NetConn().SetDeadline(time.Now()) // a farewell of TLS must not wait for a dead peer
	_ = s.conn.Close()
	<-ended
}
