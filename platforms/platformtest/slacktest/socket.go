package slacktest

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/websocket"
)

// envelope is something that Socket Mode delivers.
type envelope struct {
	kind    string // events_api, slash_commands, interactive
	event   string // the event's id
	payload json.RawMessage
	accepts bool // an acknowledgement may carry a payload
	// interaction receives the acknowledgement; nil for events.
	interaction *interaction

	ids     []string // of the deliveries; the newest is last
	on      *socket  // that it was sent on and that still lives; nil waits for one
	attempt int
	reason  string // of the retry
	timer   *time.Timer
}

// post is the outgoing side of Socket Mode.
type post struct {
	tickets   map[string]bool
	sockets   []*socket // that said hello or will, newest last
	waiting   []*envelope
	sent      []*envelope // not acknowledged
	acked     []*envelope // the newest acknowledged events, for Replay
	held      *envelope   // for Backwards
	deaf      bool
	withheld  bool
	most      int
	opened    int
	twice     int
	backwards int
}

// replayed is how many acknowledged events are kept for Replay.
const replayed = 100

// socket is one Socket Mode connection.
type socket struct {
	conn  *websocket.Conn
	out   chan []byte // to the writer; closed never, see gone
	gone  chan struct{}
	ready bool // it takes events
	said  bool // hello was said
	deaf  bool
}

func (s *Server) connectionsOpen(_ *team, _ *call) (object, error) {
	switch {
	case s.disabled:
		return nil, refuse("not_allowed_token_type") // as an app without Socket Mode is told
	case len(s.post.sockets) >= s.o.MaxConnections:
		return nil, refuse("too_many_websockets")
	}
	ticket := uuid()
	s.post.tickets[ticket] = true
	return object{"url": "ws" + s.base()[len("http"):] + "/link/?ticket=" + ticket + "&app_id=" + s.o.AppID}, nil
}

var upgrader = websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}

// serveSocket is one connection from its handshake to its end.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	ticket := callOf(r).query.Get("ticket")
	s.mu.Lock()
	known := s.post.tickets[ticket]
	delete(s.post.tickets, ticket)
	closed := s.closed
	if known && !closed {
		s.open.Add(1)
	}
	s.mu.Unlock()
	if !known || closed {
		http.Error(w, "invalid ticket", http.StatusForbidden)
		return
	}
	defer s.open.Done()
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	k := &socket{conn: conn, out: make(chan []byte, 4096), gone: make(chan struct{})}
	conn.SetPingHandler(func(data string) error {
		s.mu.Lock()
		deaf := k.deaf
		s.mu.Unlock()
		if !deaf {
			_ = conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(time.Second))
		}
		return nil
	})
	s.enter(k)
	defer s.leave(k)
	s.open.Go(func() { s.writer(k) })
	for {
		_, data, err := conn.ReadMessage()
		if err != nil {
			return
		}
		s.heard(k, data)
	}
}

// enter lets a connection in and says hello.
func (s *Server) enter(k *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.post.sockets = append(s.post.sockets, k)
	s.post.opened++
	s.post.most = max(s.post.most, len(s.post.sockets))
	k.deaf = s.post.deaf
	if s.closed {
		_ = k.conn.Close()
	}
	if !k.deaf && !s.post.withheld {
		s.hello(k)
	}
}

func (s *Server) hello(k *socket) {
	k.ready, k.said = true, true
	s.send(k, object{
		"type": "hello", "num_connections": len(s.post.sockets), "connection_info": object{"app_id": s.o.AppID},
		"debug_info": object{"host": "applink-slacktest", "build_number": 1, "approximate_connection_time": 18060},
	})
	s.flush()
}

// leave puts what the connection did not acknowledge back: it is offered again.
func (s *Server) leave(k *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(k.gone)
	s.post.sockets = slices.DeleteFunc(s.post.sockets, func(o *socket) bool { return o == k })
	var back []*envelope
	for _, e := range slices.Clone(s.post.sent) {
		if e.on != k {
			continue
		}
		e.on = nil
		if e.interaction == nil {
			back = append(back, s.recall(e, "timeout"))
		}
	}
	s.post.waiting = append(back, s.post.waiting...)
	s.flush()
}

// recall takes an event that was sent back to those that wait. The caller holds mu.
func (s *Server) recall(e *envelope, reason string) *envelope {
	if e.timer != nil {
		e.timer.Stop()
	}
	s.post.sent = slices.DeleteFunc(s.post.sent, func(o *envelope) bool { return o == e })
	e.on, e.reason = nil, reason
	e.attempt++
	return e
}

// enqueue delivers an envelope now, or when a connection is there. People's interactions don't wait.
func (s *Server) enqueue(e *envelope) {
	if e.interaction != nil && s.taker() == nil {
		e.interaction.Failed = "dispatch_failed"
		return
	}
	if e.interaction == nil && s.post.backwards > 0 && s.post.held == nil {
		s.post.backwards--
		s.post.held = e
		return
	}
	s.post.waiting = append(s.post.waiting, e)
	if e.interaction == nil {
		s.releaseHeld()
	}
	s.flush()
}

// releaseHeld lets go what Backwards held.
func (s *Server) releaseHeld() {
	if s.post.held == nil {
		return
	}
	s.post.waiting = append(s.post.waiting, s.post.held)
	s.post.held = nil
	s.flush()
}

// taker is the connection that the next envelope goes to: Slack chooses any, the fake takes turns.
func (s *Server) taker() *socket {
	for i, k := range s.post.sockets {
		if k.ready && !k.deaf {
			s.post.sockets = append(slices.Delete(s.post.sockets, i, i+1), k)
			return k
		}
	}
	return nil
}

// flush sends what waits. The caller holds mu.
func (s *Server) flush() {
	for len(s.post.waiting) > 0 && !s.closed {
		k := s.taker()
		if k == nil {
			return
		}
		e := s.post.waiting[0]
		s.post.waiting = s.post.waiting[1:]
		s.dispatch(k, e)
		if e.interaction == nil && s.post.twice > 0 {
			s.post.twice--
			s.post.sent = slices.DeleteFunc(s.post.sent, func(o *envelope) bool { return o == e })
			e.timer.Stop()
			s.dispatch(k, e)
		}
	}
}

// dispatch sends an envelope on a connection and waits for its acknowledgement.
func (s *Server) dispatch(k *socket, e *envelope) {
	e.on = k
	e.ids = append(e.ids, uuid())
	id := e.ids[len(e.ids)-1]
	s.post.sent = append(s.post.sent, e)
	out := object{"envelope_id": id, "payload": e.payload, "type": e.kind, "accepts_response_payload": e.accepts}
	if e.interaction != nil {
		e.interaction.EnvelopeID = id
		e.timer = time.AfterFunc(interactionWait, func() { s.expire(e) })
	} else {
		out["retry_attempt"], out["retry_reason"] = e.attempt, e.reason
		wait := s.o.RetryAfter
		if wait < 0 || s.o.Retries > 0 && e.attempt >= s.o.Retries {
			wait = 1 << 62 // only a new connection brings it again
		}
		e.timer = time.AfterFunc(wait, func() { s.retry(e, id) })
	}
	s.send(k, out)
}

// interactionWait is how long a person waits for an acknowledgement.
const interactionWait = 3 * time.Second

// expire ends an interaction that nobody acknowledged.
func (s *Server) expire(e *envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.post.sent, e); i >= 0 {
		s.post.sent = slices.Delete(s.post.sent, i, i+1)
		e.interaction.Failed = "operation_timeout"
	}
}

// retry sends an event again that was not acknowledged in time.
func (s *Server) retry(e *envelope, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !slices.Contains(s.post.sent, e) || e.ids[len(e.ids)-1] != id {
		return
	}
	s.post.waiting = append([]*envelope{s.recall(e, "timeout")}, s.post.waiting...)
	s.flush()
}

// stopRetries ends all timers. The caller holds mu.
func (s *Server) stopRetries() {
	for _, e := range s.post.sent {
		e.timer.Stop()
	}
}

// send queues a message for the writer. A client that takes nothing is cut off. The caller holds mu.
func (s *Server) send(k *socket, message object) {
	select {
	case k.out <- encode(message):
	default:
		_ = k.conn.Close()
	}
}

// writer writes what is queued, and pings.
func (s *Server) writer(k *socket) {
	ping := time.NewTicker(s.o.PingEvery)
	defer ping.Stop()
	write := func(kind int, data []byte) bool {
		_ = k.conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
		if k.conn.WriteMessage(kind, data) != nil {
			_ = k.conn.Close()
			return false
		}
		return true
	}
	for {
		select {
		case <-k.gone:
			return
		case data := <-k.out:
			if !write(websocket.TextMessage, data) {
				return
			}
		case <-ping.C:
			s.mu.Lock()
			deaf := k.deaf
			s.mu.Unlock()
			if !deaf && !write(websocket.PingMessage, []byte("Ping from applink-slacktest")) {
				return
			}
		}
	}
}

// heard takes an acknowledgement.
func (s *Server) heard(k *socket, data []byte) {
	var ack struct {
		ID      string          `json:"envelope_id"`
		Payload json.RawMessage `json:"payload"`
	}
	if json.Unmarshal(data, &ack) != nil || ack.ID == "" || len(data) >= 20<<10 {
		return // Slack drops what it can't read, and responses from 20 KB on
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.deaf {
		return
	}
	for _, e := range slices.Concat(s.post.sent, s.post.waiting) {
		if slices.Contains(e.ids, ack.ID) {
			s.acknowledge(e, ack.Payload)
			return
		}
	}
}

func (s *Server) acknowledge(e *envelope, payload json.RawMessage) {
	e.timer.Stop()
	isIt := func(o *envelope) bool { return o == e }
	s.post.sent, s.post.waiting = slices.DeleteFunc(s.post.sent, isIt), slices.DeleteFunc(s.post.waiting, isIt)
	s.act(Act{Verb: "ack", Text: e.event})
	if e.interaction != nil {
		s.answered(e, payload)
		return
	}
	s.post.acked = append(s.post.acked, e)
	if over := len(s.post.acked) - replayed; over > 0 {
		s.post.acked = slices.Clone(s.post.acked[over:])
	}
}
