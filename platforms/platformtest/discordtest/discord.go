package discordtest

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"herald/platforms/platformtest/faults"
)

// Discord is the fake. All methods are safe for concurrent use.
type Discord struct {
	o        Options
	server   *faults.Server
	script   *faults.Script
	mux      *http.ServeMux
	handler  http.Handler // mux behind the script
	upgrader websocket.Upgrader
	routes   []string
	handlers sync.WaitGroup // gateway connections

	mu           sync.Mutex
	lastID       uint64
	bot          *user
	users        map[ID]*user
	guilds       []*guild
	channels     map[ID]*channel
	files        map[ID]*File
	commands     []*command
	interactions map[ID]*interaction
	nonces       map[string]sentNonce
	acts         []Act
	watchers     []func(Act)
	revoked      bool
	closed       bool
	status       string
	activity     string

	// REST
	calls   map[string]int
	unknown []string
	limits  map[string]limit
	buckets map[string]*bucket
	windows faults.Windows[string] // by bucket, "" is the whole bot

	// gateway
	sessions   []*session
	conns      map[*conn]bool
	troubles   map[GatewayTrouble]bool
	identifies int
	resumes    int
	missed     int     // events of people since the last session ended
	people     []event // the newest events that people caused, for Redeliver
}

// New returns a fake that listens nowhere yet: use it as a handler, or Start it.
func New(o Options) *Discord {
	o.Username = cmp.Or(o.Username, DefaultUsername)
	o.Heartbeat = cmp.Or(o.Heartbeat, DefaultHeartbeat)
	o.ResumeWindow = cmp.Or(o.ResumeWindow, DefaultResumeWindow)
	o.InteractionWindow = cmp.Or(o.InteractionWindow, DefaultInteractionWindow)
	o.TokenLife = cmp.Or(o.TokenLife, DefaultTokenLife)
	d := &Discord{
		o: o, script: &faults.Script{}, users: map[ID]*user{}, channels: map[ID]*channel{}, files: map[ID]*File{},
		interactions: map[ID]*interaction{}, nonces: map[string]sentNonce{}, calls: map[string]int{},
		limits: map[string]limit{}, buckets: map[string]*bucket{},
		conns: map[*conn]bool{}, troubles: map[GatewayTrouble]bool{},
	}
	d.upgrader.CheckOrigin = func(*http.Request) bool { return true }
	d.bot = d.keepUser(User{ID: o.BotID, Username: o.Username, Bot: true})
	d.server = faults.NewServer(d)
	d.table()
	d.handler = d.script.Wrap(d.mux)
	if o.RealLimits {
		d.realLimits()
	}
	return d
}

// Start listens on a free loopback port and returns the server's base URL, without a slash at its end.
func (d *Discord) Start() (string, error) { return d.server.Start() }

// Serve listens on addr and serves until ctx ends.
func (d *Discord) Serve(ctx context.Context, addr string) error {
	if err := d.server.Listen(addr); err != nil {
		return err
	}
	<-ctx.Done()
	d.Close()
	return nil
}

// Shut takes the server off the network: connections are cut, new ones refused. Open brings it back.
func (d *Discord) Shut() { d.server.Shut() }

// Open listens again on the address that Start chose. It fails when it is open.
func (d *Discord) Open() error { return d.server.Open() }

// Cut closes all connections, REST and gateway; the server stays. Sessions can be resumed.
func (d *Discord) Cut() error { return d.server.Cut() }

// Close ends the server and everything that hangs in it.
func (d *Discord) Close() {
	d.mu.Lock()
	d.closed = true
	for c := range d.conns {
		c.drop()
	}
	d.mu.Unlock()
	d.script.Close()
	d.server.Close()
	d.handlers.Wait()
}

// URL returns the base URL after Start.
func (d *Discord) URL() string { return d.server.URL() }

// Bot returns the bot itself.
func (d *Discord) Bot() User {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bot.User
}

// base is what answers to r name as the service's own address.
func (d *Discord) base(r *http.Request) string {
	if d.server.Addr() == "" {
		return "http://" + r.Host
	}
	return d.server.URL()
}

// epoch is the first millisecond of 2015, from which snowflakes count.
const epoch = 1420070400000

// newID makes a snowflake of now, above all earlier ones. The caller holds mu.
func (d *Discord) newID() ID {
	d.lastID = max(d.lastID+1, uint64(time.Now().UnixMilli()-epoch)<<22)
	return ID(strconv.FormatUint(d.lastID, 10))
}

// number returns a snowflake's value, 0 for anything else.
func (id ID) number() uint64 {
	n, _ := strconv.ParseUint(string(id), 10, 64)
	return n
}

// Time returns when a snowflake was made.
func (id ID) Time() time.Time { return time.UnixMilli(int64(id.number()>>22) + epoch) }

// stamp writes a time as the API does.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }

// Acts returns what happened in a channel, empty for all of them, oldest first.
func (d *Discord) Acts(channel ID) []Act {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []Act
	for _, a := range d.acts {
		if channel == "" || a.Channel == channel {
			out = append(out, a)
		}
	}
	return out
}

// Watch calls f for each act from now on, while the fake is locked: f must be quick and call nothing here.
func (d *Discord) Watch(f func(Act)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watchers = append(d.watchers, f)
}

// act notes what happened. The caller holds mu.
func (d *Discord) act(verb string, channel, message, who ID, text string) {
	a := Act{At: time.Now(), Verb: verb, Channel: channel, Message: message, Who: who, Text: text}
	d.acts = append(d.acts, a)
	if over := len(d.acts) - d.o.Keep; d.o.Keep > 0 && over > d.o.Keep {
		d.acts = slices.Clone(d.acts[over:])
	}
	for _, w := range d.watchers {
		w(a)
	}
}

// TypingSeen says that the bot typed in a channel.
func (d *Discord) TypingSeen(channel ID) bool {
	return slices.ContainsFunc(d.Acts(channel), func(a Act) bool { return a.Verb == "typing" && a.Who == d.bot.ID })
}

// Presence returns the newest status and activity that the bot set.
func (d *Discord) Presence() (status, activity string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status, d.activity
}

// Revoke makes the server refuse the bot's token from now on: 401, and 4004 for live connections. Restore takes it
// back.
func (d *Discord) Revoke() {
	d.mu.Lock()
	d.revoked = true
	d.mu.Unlock()
	d.CloseGateway(closeAuthentication)
	d.Forget()
}

// Restore lets the token in again.
func (d *Discord) Restore() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.revoked = false
}

// letsIn reports whether a token is the bot's. The caller holds mu.
func (d *Discord) letsIn(token string) bool {
	token = strings.TrimPrefix(token, "Bot ")
	return token != "" && !d.revoked && (d.o.Token == "" || token == d.o.Token)
}
