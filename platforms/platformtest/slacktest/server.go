package slacktest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"herald/platforms/platformtest/faults"
)

// Options configures a Server. The zero value works.
type Options struct {
	// AppToken is what apps.connections.open takes. Empty is "xapp-1-A0HERALD0-1-slacktest".
	AppToken string
	// AppID is the app's id. Empty is "A0HERALD0".
	AppID string
	// Events are the bot events that the app is subscribed to, such as "message.im". nil is all that the fake
	// has. An event also needs its scope: message.im comes only with im:history.
	Events []string
	// RetryAfter is how long an event's envelope may stay unacknowledged before it is sent again. 0 is 3 s;
	// negative sends it again only on a new connection. Slack's own waits are longer.
	RetryAfter time.Duration
	// Retries is how often an event is sent again for want of an acknowledgement. 0 is without end (Slack
	// gives up after three); the event stays in Pending either way.
	Retries int
	// PingEvery is the time between WebSocket pings to the client. 0 is 5 s.
	PingEvery time.Duration
	// Keep is how many messages per channel (with their files), acts, requests and interactions are remembered,
	// at least, 0 for all: soak runs set it.
	Keep int
	// StreamsPerMinute limits chat.startStream and chat.stopStream, each in each workspace. 0 is no limit;
	// Slack's is about 20.
	StreamsPerMinute int
	// MaxConnections is how many sockets may be open at once. 0 is 10, Slack's own bound.
	MaxConnections int
	// ResponseFor is how long a response URL works. 0 is 30 minutes.
	ResponseFor time.Duration
	// UpdateLimit is the most bytes of chat.update's text. 0 is 4,000, Slack's own bound.
	UpdateLimit int
}

func (o Options) filled() Options {
	fill(&o.AppToken, "xapp-1-A0HERALD0-1-slacktest")
	fill(&o.AppID, "A0HERALD0")
	fill(&o.RetryAfter, 3*time.Second)
	fill(&o.PingEvery, 5*time.Second)
	fill(&o.MaxConnections, 10)
	fill(&o.ResponseFor, 30*time.Minute)
	fill(&o.UpdateLimit, 4000)
	return o
}

// fill sets what is zero.
func fill[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// object is a JSON object as it goes over the wire.
type object = map[string]any

// Server is the fake. Its own zero value is not usable: see New.
type Server struct {
	o       Options
	network *faults.Server
	script  faults.Script
	handler http.Handler
	methods map[string]method
	open    sync.WaitGroup // sockets

	mu       sync.Mutex
	teams    []*team
	ids      int
	lastTS   int64  // microseconds
	host     string // of the newest request, for a Server that somebody else serves
	appCode  string // the refusal of the app token
	disabled bool   // Socket Mode is off
	closed   bool

	acts     []Act
	watchers []func(Act)
	calls    map[string]int
	requests []Request
	windows  faults.Windows[window]

	files        map[string]*file
	uploads      map[string]*file // by the secret of their URL
	interactions map[string]*interaction
	responses    map[string]*interaction // by the secret of their URL
	pressed      [][2]string             // ids and secrets of interactions, oldest first
	post         post
}

// New returns a fake with no workspace that listens nowhere yet: use it as a handler, or Start it.
func New(o Options) *Server {
	s := &Server{
		o: o.filled(), methods: webMethods(), calls: map[string]int{}, files: map[string]*file{}, uploads: map[string]*file{},
		interactions: map[string]*interaction{}, responses: map[string]*interaction{},
	}
	Routes.Add(slices.Collect(maps.Keys(s.methods))...)
	Routes.Add(slices.Collect(maps.Values(prefixes))...)
	s.post.tickets = map[string]bool{}
	s.handler = s.script.Wrap(http.HandlerFunc(s.serve))
	s.network = faults.NewServer(s)
	return s
}

// Start listens on a free loopback port and returns APIURL.
func (s *Server) Start() (string, error) {
	if _, err := s.network.Start(); err != nil {
		return "", err
	}
	return s.APIURL(), nil
}

// Serve listens on addr and serves until ctx ends.
func (s *Server) Serve(ctx context.Context, addr string) error {
	if err := s.network.Listen(addr); err != nil {
		return err
	}
	<-ctx.Done()
	s.Close()
	return nil
}

// APIURL is the base of the Web API's methods, with a slash at its end: "http://127.0.0.1:1234/api/". Empty
// before Start.
func (s *Server) APIURL() string {
	if s.network.Addr() == "" {
		return ""
	}
	return s.network.URL() + "/api/"
}

// Shut takes the server off the network: connections are cut, WebSockets too, and new ones refused. Open
// brings it back.
func (s *Server) Shut() { s.network.Shut() }

// Open listens again on the address it had. It fails while the server is open.
func (s *Server) Open() error { return s.network.Open() }

// Cut closes all connections; the server stays.
func (s *Server) Cut() error { return s.network.Cut() }

// Close ends the server and everything that hangs in it.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.stopRetries()
	s.mu.Unlock()
	s.script.Close()
	s.CutSockets()
	s.network.Close()
	s.open.Wait()
}

// AppToken returns the app's token.
func (s *Server) AppToken() string { return s.o.AppToken }

// AppID returns the app's id.
func (s *Server) AppID() string { return s.o.AppID }

// ServeHTTP answers /api/<method>, the Socket Mode endpoint, uploads, downloads and response URLs.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := s.readCall(r)
	if err != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	if s.polite(w, c) {
		s.handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, c)))
	}
}

// serve is behind the faults.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	c := callOf(r)
	switch c.Method {
	case MethodSocket:
		s.serveSocket(w, r)
	case MethodUpload:
		s.serveUpload(w, r, c)
	case MethodDownload:
		s.serveDownload(w, r, c)
	case MethodRespond:
		s.serveResponse(w, c)
	default:
		s.serveMethod(w, c)
	}
}

// base is the URL of the server without a slash at its end. The caller holds mu or not.
func (s *Server) base() string {
	if s.network.Addr() != "" {
		return s.network.URL()
	}
	return "http://" + s.host
}

// id makes an id of Slack's form.
func (s *Server) id(prefix string) string {
	s.ids++
	return fmt.Sprintf("%s0SLK%05X", prefix, s.ids)
}

// ts makes the next timestamp.
func (s *Server) ts() string {
	s.lastTS = max(time.Now().UnixMicro(), s.lastTS+1)
	return fmt.Sprintf("%d.%06d", s.lastTS/1e6, s.lastTS%1e6)
}

// uuid makes an id of Socket Mode's form.
func uuid() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	h := hex.EncodeToString(b)
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a value of ours that has no JSON
	}
	return b
}

// act notes what happened. The caller holds mu.
func (s *Server) act(a Act) {
	a.At = time.Now()
	s.acts = bounded(append(s.acts, a), s.o.Keep)
	for _, f := range s.watchers {
		f(a)
	}
}

// bounded keeps the newest keep of a list, and lets it grow to twice that before it cuts. 0 keeps all.
func bounded[T any](list []T, keep int) []T {
	if keep == 0 || len(list) < 2*keep {
		return list
	}
	return slices.Clone(list[len(list)-keep:])
}

// Acts returns what happened in a channel, empty for all of them, oldest first.
func (s *Server) Acts(channel string) []Act {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Act
	for _, a := range s.acts {
		if channel == "" || a.Channel == channel {
			out = append(out, a)
		}
	}
	return out
}

// Watch calls f for each act from now on, while the server is locked: f must be quick and call nothing here.
func (s *Server) Watch(f func(Act)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers = append(s.watchers, f)
}

// Calls returns how often a Web API method was called.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Requests returns the calls of a method as they came, oldest first; empty is every method.
func (s *Server) Requests(method string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Request
	for _, r := range s.requests {
		if method == "" || r.Method == method {
			out = append(out, r)
		}
	}
	return out
}

// Violations returns the requests that came inside a Retry-After window, in words.
func (s *Server) Violations() []string {
	return s.windows.Violations()
}
