package slacktest

import (
	"slices"
	"time"

	"github.com/gorilla/websocket"
)

// Pending returns how many envelopes are not acknowledged, those that wait for a connection included.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.post.waiting) + len(s.post.sent)
	if s.post.held != nil {
		n++
	}
	return n
}

// Replay delivers the newest n acknowledged events again: same event_id, new envelope_id, retry_attempt one
// higher.
func (s *Server) Replay(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, len(s.post.acked))
	again := slices.Clone(s.post.acked[len(s.post.acked)-n:])
	s.post.acked = s.post.acked[:len(s.post.acked)-n]
	for _, e := range again {
		s.post.waiting = append(s.post.waiting, s.recall(e, "timeout"))
	}
	s.flush()
}

// Connections returns how many Socket Mode connections are open now, the most that ever were, and how many
// were opened in all.
func (s *Server) Connections() (now, most, opened int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.post.sockets), s.post.most, s.post.opened
}

// Disconnect sends a disconnect message to every connection: "warning", "refresh_requested" or
// "link_disabled". After the latter two a connection takes no more events, and the server closes it in a
// second unless the client did.
func (s *Server) Disconnect(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.post.sockets {
		if k.deaf {
			continue
		}
		s.send(k, object{"type": "disconnect", "reason": reason, "debug_info": object{"host": "applink-slacktest"}})
		if reason == "warning" {
			continue
		}
		k.ready = false
		s.open.Go(func() { k.closeIn(time.Second) })
	}
}

// closeIn says farewell as WebSockets do, after a while.
func (k *socket) closeIn(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		_ = k.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""),
			time.Now().Add(time.Second))
		_ = k.conn.Close()
	case <-k.gone:
	}
}

// CutSockets closes the Socket Mode connections without a farewell; the rest of the server stays.
func (s *Server) CutSockets() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.post.sockets {
		_ = k.conn.Close()
	}
}

// Deafen makes all Socket Mode connections half-open, new ones too: they stay, and nothing comes, not even
// hello or a pong, until Hear. Events wait.
func (s *Server) Deafen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.post.deaf = true
	for _, k := range s.post.sockets {
		k.deaf = true
	}
}

// Hear ends Deafen: the silent connections are cut.
func (s *Server) Hear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.post.deaf = false
	for _, k := range s.post.sockets {
		if k.deaf {
			_ = k.conn.Close()
		}
	}
}

// WithholdHello makes new connections do everything but say hello, until called with false: then those that
// still wait get theirs.
func (s *Server) WithholdHello(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.post.withheld = on
	for _, k := range slices.Clone(s.post.sockets) {
		if !on && !k.said && !k.deaf {
			s.hello(k)
		}
	}
}

// DisableSocketMode makes apps.connections.open refuse as an app without Socket Mode does, and sends
// link_disabled to open connections. false takes it back.
func (s *Server) DisableSocketMode(on bool) {
	s.mu.Lock()
	s.disabled = on
	s.mu.Unlock()
	if on {
		s.Disconnect("link_disabled")
	}
}
