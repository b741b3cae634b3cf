package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"herald/platforms"
	"herald/platforms/wire"
)

const (
	// maxFrame bounds one message of the gateway; the largest are those of big guilds.
	maxFrame = 32 << 20
	// backlog is how many events may wait for the core. More end the connection: Discord keeps them.
	backlog = 2048
	// writeTimeout bounds the writing of a frame.
	writeTimeout = 10 * time.Second
	// leaveTimeout bounds the goodbye.
	leaveTimeout = time.Second
)

// conn is one connection to the gateway. Three goroutines serve it: the reader, the worker that hands events on,
// and the owner, which keeps the heartbeat going whatever the others wait for.
type conn struct {
	l    *link
	a    *Adapter
	ws   *websocket.Conn
	was  session // the session to resume; without an ID a new one is begun
	in   chan frame
	gone chan error // why the reader ended
	work chan frame
	wg   sync.WaitGroup

	interval time.Duration
	beat     *time.Timer
	acks     *time.Timer
	waiting  bool // for an ack
	open     bool // READY or RESUMED was read
}

func newConn(l *link, ws *websocket.Conn, s session) *conn {
	ws.SetReadLimit(maxFrame)
	return &conn{
		l: l, a: l.a, ws: ws, was: s,
		in: make(chan frame), gone: make(chan error, 1), work: make(chan frame, backlog),
		beat: stoppedTimer(), acks: stoppedTimer(),
	}
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// serve runs the connection until it ends, and says why. Nothing of it is left then.
func (c *conn) serve(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	c.wg.Go(func() { c.read(inner) })
	c.wg.Go(func() { c.handle(inner) })
	err := c.own(ctx)
	cancel()
	c.a.health.Expect(0)
	deadline := time.Now().Add(leaveTimeout)
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(closeResuming, ""), deadline)
	_ = c.ws.Close()
	c.wg.Wait()
	c.beat.Stop()
	c.acks.Stop()
	keepCtx, done := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer done()
	c.a.keep(keepCtx)
	return err
}

// read hands frames to the owner until the connection ends.
func (c *conn) read(ctx context.Context) {
	for {
		_, raw, err := c.ws.ReadMessage()
		if err != nil {
			c.gone <- err
			return
		}
		var f frame
		if err := json.Unmarshal(raw, &f); err != nil {
			c.a.s.Metrics.Dropped(dropUndecodable)
			c.a.s.Log.Warn().Int("bytes", len(raw)).Msg("a frame of the gateway could not be read and is skipped")
			continue
		}
		select {
		case c.in <- f:
		case <-ctx.Done():
			return
		}
	}
}

// own answers the gateway until the connection is to end.
func (c *conn) own(ctx context.Context) error {
	opening := time.NewTimer(c.a.s.OpenTimeout)
	defer opening.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-c.gone:
			return err
		case <-opening.C:
			if !c.open {
				return errSlow
			}
		case <-c.acks.C:
			return errDeaf
		case <-c.beat.C:
			if c.waiting {
				return errDeaf
			}
			if err := c.heartbeat(ctx, true); err != nil {
				return err
			}
		case f := <-c.in:
			if err := c.take(ctx, f, opening); err != nil {
				return err
			}
		}
	}
}

// take does what one frame asks for.
func (c *conn) take(ctx context.Context, f frame, opening *time.Timer) error {
	c.a.health.Heard()
	if !c.open {
		opening.Reset(c.a.s.OpenTimeout) // a long replay is progress
	}
	switch f.Op {
	case opHello:
		return c.hello(f)
	case opAck:
		c.waiting = false
		c.acks.Stop()
	case opHeartbeat:
		return c.heartbeat(ctx, false)
	case opReconnect:
		return errReconnect
	case opInvalidSession:
		return c.invalid(ctx, f)
	case opDispatch:
		c.open = c.open || f.T == "READY" || f.T == "RESUMED"
		select {
		case c.work <- f:
		default:
			return errBacklog
		}
	}
	return nil
}

// hello answers the first frame: it says who we are and starts the heartbeat.
func (c *conn) hello(f frame) error {
	var d struct {
		Interval int64 `json:"heartbeat_interval"`
	}
	if err := json.Unmarshal(f.D, &d); err != nil || d.Interval <= 0 {
		return errors.New("the gateway said no heartbeat interval")
	}
	c.interval = time.Duration(min(d.Interval, 600_000)) * time.Millisecond
	c.a.health.Expect(c.interval + c.ackLimit() + time.Second)
	c.beat.Reset(time.Duration(rand.Float64() * float64(c.interval))) // Discord asks for the jitter
	if c.was.ID != "" {
		return c.write(opResume, map[string]any{"token": c.a.s.Token, "session_id": c.was.ID, "seq": c.was.Seq})
	}
	return c.write(opIdentify, map[string]any{
		"token": c.a.s.Token, "intents": c.a.intents(), "large_threshold": 50,
		"properties": map[string]string{"os": runtime.GOOS, "browser": "herald", "device": "herald"},
	})
}

// ackLimit is how long the answer to a heartbeat may take.
func (c *conn) ackLimit() time.Duration { return min(c.interval, c.a.s.AckTimeout) }

// heartbeat tells Discord up to where the core has the events, and keeps that. regular ones wait for an ack.
func (c *conn) heartbeat(ctx context.Context, regular bool) error {
	keepCtx, cancel := context.WithTimeout(ctx, min(c.interval/2, 2*time.Second))
	c.a.keep(keepCtx)
	cancel()
	var seq *int64
	if s := c.a.current(); s.ID != "" {
		seq = &s.Seq
	}
	if err := c.write(opHeartbeat, seq); err != nil {
		return err
	}
	if regular {
		c.beat.Reset(c.interval)
		c.waiting = true
		c.acks.Reset(c.ackLimit())
	}
	return nil
}

// invalid waits as long as Discord asks for, and says whether the session is lost.
func (c *conn) invalid(ctx context.Context, f frame) error {
	var resumable bool
	_ = json.Unmarshal(f.D, &resumable)
	// Discord asks for a random wait of 1 to 5 seconds; it grows with the interval between sessions.
	least := c.a.s.IdentifyEvery / 5
	_ = wire.Sleep(ctx, least+time.Duration(rand.Int64N(int64(4*least)+1)))
	if resumable {
		return errNotYet
	}
	return errInvalid
}

func (c *conn) write(op int, d any) error {
	if err := c.ws.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return c.ws.WriteJSON(struct {
		Op int `json:"op"`
		D  any `json:"d"`
	}{op, d})
}

// handle hands events on in their order until the connection ends. An event counts as seen once the core has it.
func (c *conn) handle(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-c.work:
			if !c.one(ctx, f) {
				return
			}
			c.a.commit(f.S)
		}
	}
}

// one handles an event, as often as it takes. false: the connection ended before the core had it.
func (c *conn) one(ctx context.Context, f frame) bool {
	for try := 0; ; try++ {
		err := c.a.dispatch(ctx, c.l, f)
		if err == nil {
			if try > 0 {
				c.a.health.Set("connected", "")
			}
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		why := "events can't be stored"
		var lookup *lookupError
		if errors.As(err, &lookup) {
			why = "Discord does not say where an event comes from"
		}
		if try == 0 {
			c.a.s.Log.Warn().Err(c.a.clean(err)).Str("event", f.T).Msg("an event was not accepted; it stays unconfirmed and is tried again")
		}
		c.a.health.Set("paused", fmt.Sprintf("%s: %s", why, c.a.clean(err)))
		rest := min(c.a.s.BackoffMax, c.a.s.BackoffMin<<min(try, 10))
		if e := platforms.AsSendError(err); lookup != nil && e.Kind == platforms.RateLimited {
			rest = max(rest, e.RetryAfter)
		}
		if wire.Sleep(ctx, rest) != nil {
			return false
		}
	}
}

// lookupError is that Discord could not be asked for what an event needs.
type lookupError struct{ err error }

func (e *lookupError) Error() string { return e.err.Error() }
func (e *lookupError) Unwrap() error { return e.err }
