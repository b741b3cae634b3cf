package signaltest

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"herald/platforms/platformtest/faults"
)

// Kind is what server answers.
type Kind string

// The kinds of server.
const (
	// Daemon is signal-cli daemon --http.
	Daemon Kind = ""
	// RESTWrapper is the other, incompatible server that people run by mistake: it has /v1/about and no /api/v1.
	RESTWrapper Kind = "rest wrapper"
)

// Streaming is what becomes of event streams.
type Streaming string

// The ways to stream.
const (
	// Streams is how it should be.
	Streams Streaming = ""
	// Silent opens a stream and never writes to it, not even a comment.
	Silent Streaming = "silent"
	// Closes ends a stream as soon as it has been opened.
	Closes Streaming = "closes"
)

// Options configures a fake. The zero value serves one account.
type Options struct {
	// Account is the number of the daemon's account. Empty is "+15550000001".
	Account string
	// UUID is its service id. Empty is a fixed one.
	UUID string
	// Multi is a daemon without -a: requests name their account, and devices can be linked.
	Multi bool
	// Unlinked is a Multi daemon that has no account yet.
	Unlinked bool
	// Comments is how often a stream gets its ":" comment. 0 is 15 s, as the real daemon has it.
	Comments time.Duration
	// Numbered gives events an id and replays what came after Last-Event-ID, as daemons after 0.13 do.
	Numbered bool
	// Wrapped is --receive-mode manual over a socket bridge: events come as params.subscription and params.result.
	Wrapped bool
	// Kind is what kind of server it is.
	Kind Kind
	// LinkTime is how long a device link can be used. 0 is a minute.
	LinkTime time.Duration
	// MaxText is how many UTF-16 units a message may have. 0 is 8,000. More is refused.
	MaxText int
	// MaxFile is the most bytes of one attachment. 0 is 100 MiB.
	MaxFile int64
}

// Server is a fake daemon. All methods are safe for concurrent use.
type Server struct {
	o      Options
	server *faults.Server
	script *faults.Script
	done   chan struct{}

	mu        sync.Mutex
	accounts  []string
	people    map[string]*Person // by number and by UUID
	order     []*Person
	groups    map[string]*Group
	files     map[string]file
	messages  []Message // the account's own, as people see them
	reactions map[string]string
	typing    map[string]bool
	receipts  []Receipt
	calls     []Call
	last      int64 // the newest timestamp given out
	events    []event
	first     int64 // the number of events[0]
	handed    int64 // events below this number were given to a stream
	changed   chan struct{}
	streams   int
	ended     chan struct{} // closed when a stream ends
	requests  int
	unlinked  bool
	most      int
	opened    int
	lastIDs   []string // Last-Event-ID of each stream that was opened
	mode      Streaming
	frozen    chan struct{}          // closed to go on
	windows   faults.Windows[string] // one, of all sends
	refuse    map[string]string      // recipient: result type
	links     map[string]*link
	nextLink  int
	delay     func(method string) // called before a method answers
	offline   bool
	pathless  bool
	sentHook  func() // runs once
	closeOnce sync.Once
}

// Call is one request that was made.
type Call struct {
	Method string
	Params Params
}

// New returns a fake that listens nowhere yet.
func New(o Options) *Server {
	o.Account = cmp.Or(o.Account, "+15550000001")
	o.UUID = cmp.Or(o.UUID, "00000000-0000-4000-8000-000000000001")
	o.Comments = cmp.Or(o.Comments, 15*time.Second)
	o.LinkTime = cmp.Or(o.LinkTime, time.Minute)
	o.MaxText = cmp.Or(o.MaxText, 8000)
	o.MaxFile = cmp.Or(o.MaxFile, 100<<20)
	s := &Server{
		o: o, script: &faults.Script{}, done: make(chan struct{}), people: map[string]*Person{}, groups: map[string]*Group{},
		files: map[string]file{}, reactions: map[string]string{}, typing: map[string]bool{}, changed: make(chan struct{}),
		ended:  make(chan struct{}),
		refuse: map[string]string{}, links: map[string]*link{}, last: 1_760_000_000_000,
	}
	if !o.Unlinked {
		s.accounts = []string{o.Account}
	}
	s.people[o.Account] = &Person{Number: o.Account, UUID: o.UUID, Name: "Herald", own: true}
	s.people[o.UUID] = s.people[o.Account]
	s.order = append(s.order, s.people[o.Account])
	Routes.Add(slices.Collect(maps.Keys(methods()))...)
	Routes.Add(routeEvents, routeCheck)
	s.server = faults.NewServer(s)
	return s
}

// Start listens on a free loopback port and returns the base URL.
func (s *Server) Start() (string, error) { return s.server.Start() }

// Serve listens on addr until ctx ends.
func (s *Server) Serve(ctx context.Context, addr string) error {
	if err := s.server.Listen(addr); err != nil {
		return err
	}
	<-ctx.Done()
	s.Close()
	return nil
}

// Shut takes the daemon off the network, Open brings it back, Cut closes all connections.
func (s *Server) Shut() { s.server.Shut() }

// Open listens again where Start did. It fails while the daemon is open.
func (s *Server) Open() error { return s.server.Open() }

// Cut closes all connections; new ones work when the streams that were cut have ended.
func (s *Server) Cut() error {
	s.server.Shut()
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); {
		s.mu.Lock()
		n, ended := s.streams, s.ended
		s.mu.Unlock()
		if n == 0 {
			break
		}
		select {
		case <-ended:
		case <-time.After(100 * time.Millisecond):
		}
	}
	return s.server.Open()
}

// Close ends the daemon and everything that hangs in it.
func (s *Server) Close() {
	s.closeOnce.Do(func() { close(s.done) })
	s.Thaw()
	s.script.Close()
	s.server.Close()
}

// Freeze makes the daemon hang as a stopped process does: connections stay, nothing is answered, streams are silent,
// and what people write waits. Thaw ends it.
func (s *Server) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen == nil {
		s.frozen = make(chan struct{})
	}
}

// Thaw ends Freeze.
func (s *Server) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen != nil {
		close(s.frozen)
		s.frozen = nil
	}
}

// Stream changes what becomes of streams that are opened from now on.
func (s *Server) Stream(mode Streaming) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = mode
}

// Become changes what kind of server it is.
func (s *Server) Become(k Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o.Kind = k
}

// Break makes the next call of an RPC method go wrong; "" is every request to the daemon, streams included.
func (s *Server) Break(method string, f faults.Fault) {
	on := f.On
	f.On = func(r *http.Request) bool {
		return (method == "" || methodOf(r) == method) && (on == nil || on(r))
	}
	s.script.Break(f)
}

// Heal takes all faults off and ends requests that hang.
func (s *Server) Heal() {
	s.script.Heal()
	s.Thaw()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = Streams
	clear(s.refuse)
}

// Offline takes the daemon's own connection to Signal away; clients still reach the daemon.
func (s *Server) Offline(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offline = on
}

// BeforeAnswer makes fn run after a method has acted and before it answers; nil ends that.
func (s *Server) BeforeAnswer(fn func(method string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = fn
}

// AfterSend makes fn run once, when the next send has been judged and before it is answered.
func (s *Server) AfterSend(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sentHook = fn
}

// Forbid opens a window of d: requests that come before its end are violations.
func (s *Server) Forbid(d time.Duration) {
	s.windows.Open("", max(d, s.windows.Left("")))
}

// Violations returns the requests that came inside a window, in words.
func (s *Server) Violations() []string {
	return s.windows.Violations()
}

// Streams returns how many event streams live now, the most there ever were at once, and how many were opened.
func (s *Server) Streams() (now, most, opened int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams, s.most, s.opened
}

// LastEventIDs returns what the streams asked to go on after, "" for none, in the order in which they were opened.
func (s *Server) LastEventIDs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lastIDs)
}

// Requests returns how many requests came, streams and checks too.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// Calls returns the requests of a method, oldest first.
func (s *Server) Calls(method string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.calls {
		if c.Method == method {
			out = append(out, c)
		}
	}
	return out
}

type methodKey struct{}

// methodOf returns the RPC method of a request, "" for others.
func methodOf(r *http.Request) string {
	m, _ := r.Context().Value(methodKey{}).(string)
	return m
}

// bodyLimit is the most bytes of a request.
const bodyLimit = 256 << 20

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests++
	s.mu.Unlock()
	if !s.awake(r) {
		return
	}
	if r.URL.Path == "/api/v1/rpc" && r.Method == http.MethodPost {
		body, err := io.ReadAll(io.LimitReader(r.Body, bodyLimit))
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		method := peekMethod(body)
		s.judge(method)
		r = r.WithContext(context.WithValue(r.Context(), methodKey{}, method))
	}
	s.script.Wrap(http.HandlerFunc(s.route)).ServeHTTP(w, r)
}

// awake waits while the daemon is frozen. false: the caller has gone.
func (s *Server) awake(r *http.Request) bool {
	s.mu.Lock()
	frozen := s.frozen
	s.mu.Unlock()
	if frozen == nil {
		return true
	}
	select {
	case <-frozen:
		return true
	case <-r.Context().Done():
	case <-s.done:
	}
	return false
}

// judge notes a request inside a window.
func (s *Server) judge(method string) {
	if strings.HasPrefix(method, "send") {
		s.windows.Enter("", method)
	}
}

func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	kind := s.o.Kind
	s.mu.Unlock()
	if kind == RESTWrapper {
		wrapper(w, r)
		return
	}
	switch r.URL.Path {
	case "/api/v1/rpc":
		s.rpc(w, r)
	case "/api/v1/events":
		Routes.Hit(routeEvents)
		s.stream(w, r)
	case "/api/v1/check":
		Routes.Hit(routeCheck)
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	default:
		notFound(w)
	}
}

// notFound answers as the daemon's HTTP server does for a path that it does not have.
func notFound(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, "<h1>404 Not Found</h1>No context found for request")
}

// wrapper is the incompatible server: an own API below /v1 and /v2.
func wrapper(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/about" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"versions":["v1","v2"],"build":2,"mode":"normal","version":"0.92","capabilities":{"v2/send":["quotes","mentions"]}}`)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, "404 page not found")
}

// now returns a timestamp in milliseconds that no message had before. The caller holds the lock.
func (s *Server) now() int64 {
	s.last = max(s.last+1, time.Now().UnixMilli())
	return s.last
}
