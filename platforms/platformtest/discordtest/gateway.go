package discordtest

import (
	"compress/zlib"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// Opcodes of the gateway.
const (
	opDispatch  = 0
	opHeartbeat = 1
	opIdentify  = 2
	opPresence  = 3
	opVoice     = 4
	opResume    = 6
	opReconnect = 7
	opMembers   = 8
	opInvalid   = 9
	opHello     = 10
	opAck       = 11
)

// Close codes of the gateway.
const (
	closeOpcode           = 4001
	closeDecode           = 4002
	closeNotAuthenticated = 4003
	closeAuthentication   = 4004
	closeAlready          = 4005
	closeSeq              = 4007
	closeRate             = 4008
	closeTimeout          = 4009
	closeVersion          = 4012
	closeIntents          = 4013
	closeDisallowed       = 4014
	closeCut              = -1 // no close at all: a reset
)

var closeReasons = map[int]string{
	4000: "Unknown error.", closeOpcode: "Unknown opcode.", closeDecode: "Error while decoding payload.",
	closeNotAuthenticated: "Not authenticated.", closeAuthentication: "Authentication failed.", closeAlready: "Already authenticated.",
	closeSeq: "Invalid seq.", closeRate: "Rate limited.", closeTimeout: "Session timed out.", 4010: "Invalid shard.",
	4011: "Sharding required.", closeVersion: "Invalid API version.", closeIntents: "Invalid intent(s).", closeDisallowed: "Disallowed intent(s).",
}

var null = json.RawMessage("null")

func boolean(b bool) json.RawMessage { return json.RawMessage(strconv.FormatBool(b)) }

// maxPayload is the most bytes of a payload that a client may send, and ratePayloads how many a minute.
const (
	maxPayload   = 4096
	ratePayloads = 120
)

func (d *Discord) serveGateway(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	refused, stuck, quiet := d.troubles[Refused], d.troubles[NoUpgrade], d.troubles[NoHello]
	d.mu.Unlock()
	switch {
	case refused:
		http.Error(w, "service unavailable", http.StatusServiceUnavailable)
		return
	case stuck:
		d.script.Hang(r)
		return
	}
	ws, err := d.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	c := &conn{d: d, ws: ws, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if r.URL.Query().Get("compress") == "zlib-stream" {
		c.zlib = &stream{}
		c.zlib.w = zlib.NewWriter(&c.zlib.buf)
	}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		_ = ws.Close()
		return
	}
	d.conns[c] = true
	d.handlers.Add(1)
	d.mu.Unlock()
	defer d.handlers.Done()
	d.handlers.Go(c.write)
	c.greet(r, quiet)
	c.read()
}

// greet checks the version and says hello, if it is not to be quiet.
func (c *conn) greet(r *http.Request, quiet bool) {
	d := c.d
	d.mu.Lock()
	defer d.mu.Unlock()
	version, encoding := r.URL.Query().Get("v"), r.URL.Query().Get("encoding")
	c.version = 10
	if version == "9" {
		c.version = 9
	}
	if version != "" && version != "9" && version != "10" || encoding != "" && encoding != "json" {
		c.close(closeVersion)
		return
	}
	if quiet {
		return
	}
	c.timer = time.AfterFunc(2*d.o.Heartbeat, c.starve)
	hello, _ := json.Marshal(map[string]any{"heartbeat_interval": d.o.Heartbeat.Milliseconds(), "_trace": []string{`["gateway-fake",{"micros":0.0}]`}})
	c.push(packet{Op: opHello, D: hello})
	if d.troubles[Dropped] {
		c.close(closeCut)
	}
}

// starve ends a connection whose heartbeats stay away.
func (c *conn) starve() {
	d := c.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.troubles[Silent] || d.troubles[NoReady] && c.session == nil {
		c.timer.Reset(d.o.Heartbeat)
		return
	}
	c.part()
	c.close(closeTimeout)
}

// read takes payloads until the connection ends.
func (c *conn) read() {
	c.ws.SetReadLimit(64 << 10)
	for {
		_, raw, err := c.ws.ReadMessage()
		if err != nil {
			c.gone(err)
			return
		}
		c.take(raw)
	}
}

// gone cleans up. A client that says 1000 or 1001 gives its session up.
func (c *conn) gone(err error) {
	d := c.d
	d.mu.Lock()
	defer d.mu.Unlock()
	var closed *websocket.CloseError
	s := c.session
	c.part()
	if s != nil && errors.As(err, &closed) && (closed.Code == websocket.CloseNormalClosure || closed.Code == websocket.CloseGoingAway) {
		d.end(s)
	}
	delete(d.conns, c)
	if c.timer != nil {
		c.timer.Stop()
	}
	c.end()
}

// take handles one payload of the client.
func (c *conn) take(raw []byte) {
	d := c.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.troubles[Silent] {
		return
	}
	now := time.Now()
	c.payload = slices.DeleteFunc(append(c.payload, now), func(t time.Time) bool { return now.Sub(t) > time.Minute })
	var p struct {
		Op *int            `json:"op"`
		D  json.RawMessage `json:"d"`
	}
	switch {
	case len(raw) > maxPayload || json.Unmarshal(raw, &p) != nil || p.Op == nil:
		c.fail(closeDecode)
		return
	case len(c.payload) > ratePayloads:
		c.fail(closeRate)
		return
	}
	switch *p.Op {
	case opHeartbeat:
		c.heartbeat(p.D)
	case opIdentify:
		c.identify(p.D)
	case opResume:
		c.resume(p.D)
	case opPresence, opVoice, opMembers:
		if c.session == nil {
			c.fail(closeNotAuthenticated)
			return
		}
		c.ask(*p.Op, p.D)
	default:
		c.fail(closeOpcode)
	}
}

// fail closes for the client's fault.
func (c *conn) fail(code int) {
	s := c.session
	c.part()
	if s != nil && code != closeRate && code != closeDecode && code != closeOpcode {
		c.d.end(s)
	}
	c.close(code)
}

func (c *conn) heartbeat(data json.RawMessage) {
	var seq int64
	_ = json.Unmarshal(data, &seq)
	if s := c.session; s != nil && seq > s.confirmed {
		s.confirmed = min(seq, s.seq)
	}
	if c.timer != nil {
		c.timer.Reset(2 * c.d.o.Heartbeat)
	}
	if !c.d.troubles[NoAcks] {
		c.push(packet{Op: opAck, D: null})
	}
}

type identify struct {
	Token      string          `json:"token"`
	Intents    *Intents        `json:"intents"`
	Compress   bool            `json:"compress"`
	Shard      *[2]int         `json:"shard"`
	Properties json.RawMessage `json:"properties"`
	Presence   json.RawMessage `json:"presence"`
}

func (c *conn) identify(data json.RawMessage) {
	d := c.d
	var i identify
	switch err := json.Unmarshal(data, &i); {
	case err != nil || i.Properties == nil:
		c.fail(closeDecode)
		return
	case c.session != nil:
		c.fail(closeAlready)
		return
	case !d.letsIn(i.Token):
		c.fail(closeAuthentication)
		return
	case i.Intents == nil || *i.Intents&^everyIntent != 0 || *i.Intents < 0:
		c.fail(closeIntents)
		return
	case *i.Intents&privilegedIntents&d.o.WithoutIntents != 0:
		c.fail(closeDisallowed)
		return
	}
	if i.Presence != nil {
		d.presence(i.Presence)
	}
	if d.troubles[NoReady] {
		return
	}
	d.expire()
	d.identifies++
	d.missed = 0
	s := &session{id: "session" + string(d.newID()), intents: *i.Intents, compress: i.Compress, conn: c}
	c.session = s
	d.sessions = append(d.sessions, s)
	d.ready(s, c.version, i.Shard)
}

// ready sends READY and then the guilds.
func (d *Discord) ready(s *session, version int, shard *[2]int) {
	if shard == nil {
		shard = &[2]int{0, 1}
	}
	var mine []*guild
	away := []wireUnavailable{}
	for _, g := range d.guilds {
		if g.member(d.bot.ID) != nil {
			mine = append(mine, g)
			away = append(away, wireUnavailable{g.id, true})
		}
	}
	gateway := "ws" + strings.TrimPrefix(d.server.URL(), "http") + "/gateway"
	d.deliver(s, event{name: "READY", data: map[string]any{
		"v": version, "user": d.wireSelf(), "guilds": away, "session_id": s.id, "session_type": "normal", "resume_gateway_url": gateway,
		"shard": shard, "application": map[string]any{"id": d.bot.ID, "flags": d.applicationFlags()}, "private_channels": []any{},
		"relationships": []any{}, "user_settings": map[string]any{}, "presences": []any{}, "guild_join_requests": []any{},
		"geo_ordered_rtc_regions": []string{}, "auth": map[string]any{}, "_trace": []string{"fake"},
	}})
	if s.intents&IntentGuilds == 0 {
		return
	}
	for _, g := range mine {
		if !g.out {
			d.deliver(s, event{name: "GUILD_CREATE", data: d.wireGuildCreate(g, s.intents)})
		}
	}
}

func (c *conn) resume(data json.RawMessage) {
	d := c.d
	var r struct {
		Token   string `json:"token"`
		Session string `json:"session_id"`
		Seq     int64  `json:"seq"`
	}
	switch {
	case json.Unmarshal(data, &r) != nil:
		c.fail(closeDecode)
		return
	case c.session != nil:
		c.fail(closeAlready)
		return
	case !d.letsIn(r.Token):
		c.fail(closeAuthentication)
		return
	case d.troubles[NoReady]:
		return
	}
	d.expire()
	s := d.session(r.Session)
	switch {
	case s == nil || len(s.log) > 0 && r.Seq < s.log[0].seq-1:
		c.push(packet{Op: opInvalid, D: boolean(false)})
		return
	case r.Seq > s.seq || r.Seq < 0:
		c.fail(closeSeq)
		return
	}
	if old := s.conn; old != nil { // the client noticed before we did
		old.session = nil
		old.close(4000)
	}
	d.resumes++
	s.conn, c.session = c, s
	s.confirmed = max(s.confirmed, r.Seq)
	for _, e := range s.log {
		if e.seq > r.Seq {
			c.pushRaw(e.raw)
		}
	}
	d.deliver(s, event{name: "RESUMED", data: map[string]any{"_trace": []string{"fake"}}})
}

// ask handles what a client with a session may ask for.
func (c *conn) ask(op int, data json.RawMessage) {
	d := c.d
	switch op {
	case opPresence:
		if !d.presence(data) {
			c.fail(closeDecode)
		}
	case opMembers:
		c.members(data)
	}
}

func (d *Discord) presence(data json.RawMessage) bool {
	var p struct {
		Status     string `json:"status"`
		Activities []struct {
			Name  string `json:"name"`
			State string `json:"state"`
		} `json:"activities"`
	}
	if json.Unmarshal(data, &p) != nil {
		return false
	}
	d.status, d.activity = p.Status, ""
	if len(p.Activities) > 0 {
		d.activity = p.Activities[0].Name
		if p.Activities[0].State != "" {
			d.activity = p.Activities[0].State
		}
	}
	return true
}
