package discordtest

import (
	"encoding/json"
	"slices"
	"time"
)

// event is a dispatch before it is written down for a session.
type event struct {
	name   string
	intent Intents // one of these must be asked for; 0: everybody gets it
	data   any
	per    func(*session) any // in place of data: what that session sees
	person bool               // somebody caused it, not the bot
}

// sent is an event as a session got it.
type sent struct {
	seq    int64
	raw    []byte
	person bool
}

// most is how many events a session keeps for a resume.
const most = 20000

// session is a gateway session, which outlives its connection.
type session struct {
	id        string
	intents   Intents
	compress  bool // large payloads one by one
	seq       int64
	confirmed int64
	log       []sent
	conn      *conn // nil: waits for a resume
	lostAt    time.Time
	held      *event // by Backwards
}

// packet is a gateway payload.
type packet struct {
	T  *string         `json:"t"`
	S  *int64          `json:"s"`
	Op int             `json:"op"`
	D  json.RawMessage `json:"d"`
}

// dispatch sends an event to every session that asked for its kind. The caller holds mu.
func (d *Discord) dispatch(e event) {
	d.expire()
	if e.person {
		d.people = append(d.people, e)
		if len(d.people) > 1000 {
			d.people = slices.Clone(d.people[500:])
		}
		if len(d.sessions) == 0 {
			d.missed++
		}
	}
	for _, s := range d.sessions {
		d.offer(s, e)
	}
}

func (d *Discord) offer(s *session, e event) {
	if e.intent != 0 && s.intents&e.intent == 0 {
		return
	}
	if d.troubles[UnknownEvents] && s.conn != nil {
		s.conn.push(packet{Op: 99, D: json.RawMessage(`{"what":"nobody knows"}`)})
		d.deliver(s, event{name: "SOMETHING_NEW_CREATE", data: map[string]any{"id": "1", "guild_id": 7, "list": []any{nil}}})
	}
	if d.troubles[Backwards] {
		if s.held == nil {
			s.held = &e
			return
		}
		d.deliver(s, e)
		e, s.held = *s.held, nil
	}
	d.deliver(s, e)
	if d.troubles[Twice] {
		d.deliver(s, e)
	}
}

// deliver numbers an event, keeps it for a resume and sends it.
func (d *Discord) deliver(s *session, e event) {
	data := e.data
	if e.per != nil {
		data = e.per(s)
	}
	body, err := json.Marshal(data)
	if err != nil {
		panic("discordtest: " + e.name + ": " + err.Error())
	}
	s.seq++
	if d.troubles[Lost] {
		return
	}
	seq, name := s.seq, e.name
	raw, _ := json.Marshal(packet{T: &name, S: &seq, Op: opDispatch, D: body})
	s.log = append(s.log, sent{seq, raw, e.person})
	if len(s.log) > most {
		s.log = slices.Clone(s.log[most/2:])
	}
	if s.conn != nil {
		s.conn.pushRaw(raw)
	}
}

// expire forgets the sessions whose time to resume is over.
func (d *Discord) expire() {
	for _, s := range slices.Clone(d.sessions) {
		if s.conn == nil && time.Since(s.lostAt) > d.o.ResumeWindow {
			d.end(s)
		}
	}
}

// end forgets a session; what it did not confirm is missed.
func (d *Discord) end(s *session) {
	if s.conn != nil {
		s.conn.session = nil
	}
	d.sessions = slices.DeleteFunc(d.sessions, func(o *session) bool { return o == s })
	if len(d.sessions) == 0 {
		d.missed = s.unconfirmed()
	}
}

func (s *session) unconfirmed() int {
	n := 0
	for _, e := range s.log {
		if e.person && e.seq > s.confirmed {
			n++
		}
	}
	return n
}

// lose parts a session from its connection.
func (d *Discord) lose(s *session) {
	s.conn, s.lostAt = nil, time.Now()
	if d.o.ResumeWindow < 0 {
		d.end(s)
	}
}

func (d *Discord) session(id string) *session {
	for _, s := range d.sessions {
		if s.id == id {
			return s
		}
	}
	return nil
}

// Receivers returns how many gateway connections have a session and live.
func (d *Discord) Receivers() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, s := range d.sessions {
		if s.conn != nil {
			n++
		}
	}
	return n
}

// Connections returns how many WebSockets are open, with or without a session.
func (d *Discord) Connections() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.conns)
}

// Identifies returns how many identifies were accepted.
func (d *Discord) Identifies() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.identifies
}

// Resumes returns how many resumes were accepted.
func (d *Discord) Resumes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.resumes
}

// Unconfirmed returns how many events that people caused the newest session holds for which no heartbeat or resume
// has told a sequence number as high: what the service would send again after a resume. Without a session it counts
// those since the last one confirmed any.
func (d *Discord) Unconfirmed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expire()
	if n := len(d.sessions); n > 0 {
		return d.sessions[n-1].unconfirmed()
	}
	return d.missed
}

// Redeliver sends the newest n events that people caused once more, with new sequence numbers.
func (d *Discord) Redeliver(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.people[max(0, len(d.people)-n):] {
		for _, s := range d.sessions {
			if e.intent == 0 || s.intents&e.intent != 0 {
				d.deliver(s, e)
			}
		}
	}
}

// Forget drops all sessions: the next resume is answered with op 9.
func (d *Discord) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range slices.Clone(d.sessions) {
		d.end(s)
	}
}

// live returns the connections that have a session. The caller holds mu.
func (d *Discord) live() []*conn {
	var out []*conn
	for _, s := range d.sessions {
		if s.conn != nil {
			out = append(out, s.conn)
		}
	}
	return out
}

// Reconnect sends op 7 to the live connections. They stay open for the client to close.
func (d *Discord) Reconnect() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.live() {
		c.push(packet{Op: opReconnect, D: null})
	}
}

// Invalidate sends op 9 to the live connections. Sessions that are not resumable are forgotten.
func (d *Discord) Invalidate(resumable bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.live() {
		s := c.session
		c.session = nil
		if d.lose(s); !resumable {
			d.end(s)
		}
		c.push(packet{Op: opInvalid, D: boolean(resumable)})
	}
}

// CloseGateway closes the live gateway connections with a close code: 4000 unknown error, 4004 authentication failed,
// 4009 session timed out, 4014 disallowed intents …; 0 cuts them with a reset. Sessions can be resumed.
func (d *Discord) CloseGateway(code int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.live() {
		d.lose(c.session)
		c.session = nil
		if code == 0 {
			c.drop()
			continue
		}
		c.close(code)
	}
}

// BreakGateway makes the gateway go wrong, until Heal or Mend.
func (d *Discord) BreakGateway(t GatewayTrouble) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.troubles[t] = true
}

// Mend ends one trouble of the gateway.
func (d *Discord) Mend(t GatewayTrouble) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mend(t)
}

func (d *Discord) mend(t GatewayTrouble) {
	delete(d.troubles, t)
	for c := range d.conns {
		c.poke()
	}
	if t != Backwards {
		return
	}
	for _, s := range d.sessions {
		if e := s.held; e != nil {
			s.held = nil
			d.deliver(s, *e)
		}
	}
}
