package teamstest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"herald/platforms/platformtest/faults"
)

// Server is the fake with the tenant behind it. All methods are safe for concurrent use.
type Server struct {
	o      Options
	net    *faults.Server
	script *faults.Script
	secure secureListener

	mu       sync.Mutex
	rooms    map[string]*room
	users    map[string]User // by id
	teams    map[string]Team
	files    map[string]*storedFile
	consents map[string]*consent // by room and message
	uploads  map[string]*upload
	invokes  map[string]*Invocation
	acts     []Act
	watchers []func(Act)
	calls    map[Endpoint]int
	windows  faults.Windows[string] // by room, "graph" and "token"
	next     int64
	clock    int64 // the newest message id, milliseconds

	keys       keyring
	issued     map[string]issuedToken
	vague      bool
	lost       bool // the secret is revoked
	overhear   bool
	leaks      []string
	references map[string][]*storedFile // by room and message
	outbox     outbox
	client     *http.Client
	ending     context.Context
	end        context.CancelFunc
	workers    sync.WaitGroup
}

// New returns a fake that listens nowhere yet.
func New(o Options) *Server {
	s := &Server{
		o: o.filled(), script: &faults.Script{},
		rooms: map[string]*room{}, users: map[string]User{}, teams: map[string]Team{}, files: map[string]*storedFile{},
		consents: map[string]*consent{}, references: map[string][]*storedFile{}, uploads: map[string]*upload{}, invokes: map[string]*Invocation{},
		calls: map[Endpoint]int{}, issued: map[string]issuedToken{},
		clock: time.Now().UnixMilli(),
	}
	for _, e := range endpoints {
		Routes.Add(string(e))
	}
	Routes.Add(graphShare, graphUpload, graphChat, graphChannel)
	s.net = faults.NewServer(s)
	s.keys.fill()
	s.client = s.o.Client
	if s.client == nil {
		s.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	}
	s.ending, s.end = context.WithCancel(context.Background())
	s.outbox.lanes = map[string]*lane{}
	s.outbox.endpoint = s.o.Endpoint
	return s
}

// Start listens on a free loopback port and returns the server's root, without a slash at its end.
func (s *Server) Start() (string, error) { return s.net.Start() }

// Serve listens on addr and serves until ctx ends.
func (s *Server) Serve(ctx context.Context, addr string) error {
	if err := s.net.Listen(addr); err != nil {
		return err
	}
	<-ctx.Done()
	s.Close()
	return nil
}

// Shut takes the server off the network: connections are cut, new ones refused. Open brings it back. Activities
// are still posted to the bot.
func (s *Server) Shut() { s.net.Shut() }

// Open listens again on the address that Start took. It fails while the server is open.
func (s *Server) Open() error { return s.net.Open() }

// Cut closes all connections; the server stays.
func (s *Server) Cut() error { return s.net.Cut() }

// Close ends the server, its deliveries and everything that hangs in it.
func (s *Server) Close() {
	s.end()
	s.script.Close()
	s.net.Close()
	s.secure.close()
	s.workers.Wait()
	s.client.CloseIdleConnections()
}

// URLs returns the fake's addresses. It is to be called after Start.
func (s *Server) URLs() URLs {
	base := s.net.URL()
	return URLs{
		Base: base, OpenID: base + "/v1/.well-known/openidconfiguration", Login: base,
		Service: base + "/" + s.o.Region + "/" + s.o.TenantID + "/", Graph: base + "/graph",
	}
}

// AppID, Secret and TenantID return the bot's credentials, and BotID its name in rosters: "28:" and the app id.
func (s *Server) AppID() string { return s.o.AppID }

// Secret returns the client secret.
func (s *Server) Secret() string { return s.o.Secret }

// TenantID returns the bot's home tenant.
func (s *Server) TenantID() string { return s.o.TenantID }

// BotID returns the bot's id in activities.
func (s *Server) BotID() string { return "28:" + s.o.AppID }

// Calls returns how often an endpoint was asked, refused requests included. Everything and AnyConnector are sums.
func (s *Server) Calls(e Endpoint) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	switch e {
	case Everything:
		for _, count := range s.calls {
			n += count
		}
		return n
	case AnyConnector:
		for _, on := range connectorCalls {
			n += s.calls[on]
		}
		return n
	}
	return s.calls[e]
}

// Acts returns what was done in a room, oldest first; "" is every room.
func (s *Server) Acts(room string) []Act {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Act
	for _, a := range s.acts {
		if room == "" || a.Room == room {
			out = append(out, a)
		}
	}
	return out
}

// Watch calls f for every act from now on, in order and while nothing else happens: f must not call the fake.
func (s *Server) Watch(f func(Act)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers = append(s.watchers, f)
}

// act notes what was done. The caller holds mu.
func (s *Server) act(a Act) {
	a.At = time.Now()
	s.acts = append(s.acts, a)
	if s.o.Keep > 0 && len(s.acts) > 2*s.o.Keep {
		s.acts = append([]Act(nil), s.acts[len(s.acts)-s.o.Keep:]...)
	}
	for _, f := range s.watchers {
		f(a)
	}
}

// number returns a number that was not given before. The caller holds mu.
func (s *Server) number() int64 {
	s.next++
	return s.next
}

// messageID returns a message id: a time in milliseconds, later than all before. The caller holds mu.
func (s *Server) messageID() string {
	s.clock = max(s.clock+1, time.Now().UnixMilli())
	return strconv.FormatInt(s.clock, 10)
}

// maxBody is the most bytes of one request, an upload's chunk of 60 MiB included.
const maxBody = 61 << 20

// ServeHTTP answers everything: the path says which service is asked.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return // the caller has gone
	}
	c := s.classify(r, body)
	Routes.Hit(string(c.on))
	s.mu.Lock()
	s.calls[c.on]++
	s.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	s.script.Wrap(http.HandlerFunc(s.answer)).ServeHTTP(w, r)
}

// call is a request with what its path says.
type call struct {
	on     Endpoint
	room   string // the conversation id's room
	thread string // and its ";messageid="
	rest   []string
	body   []byte
}

type callKey struct{}

func callOf(r *http.Request) *call { return r.Context().Value(callKey{}).(*call) }

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	c := callOf(r)
	if err := s.politeness(c); err != nil {
		writeError(w, err)
		return
	}
	switch c.on {
	case OpenIDDoc:
		s.serveOpenID(w)
	case Keys:
		s.serveKeys(w)
	case Token:
		s.serveToken(w, r)
	case Graph:
		s.serveGraph(w, r)
	case Download:
		s.serveDownload(w, r, c)
	case Upload:
		s.serveUpload(w, r, c)
	case "":
		http.NotFound(w, r)
	default:
		s.serveConnector(w, r, c)
	}
}

// problem is an error in the connector's JSON.
type problem struct {
	status        int
	code, message string
	retryAfter    time.Duration
	noHeader      bool
}

func (p *problem) Error() string { return fmt.Sprintf("%d %s: %s", p.status, p.code, p.message) }

func refuse(status int, code, message string) *problem {
	return &problem{status: status, code: code, message: message}
}

func writeError(w http.ResponseWriter, err error) {
	var p *problem
	if !errors.As(err, &p) {
		p = refuse(500, "ServiceError", "Unknown error: "+err.Error())
	}
	for k, v := range p.header() {
		w.Header()[k] = v
	}
	w.WriteHeader(p.status)
	_, _ = w.Write(p.body())
}

func (p *problem) header() http.Header {
	h := http.Header{"Content-Type": {"application/json; charset=utf-8"}}
	if p.retryAfter > 0 && !p.noHeader {
		h.Set("Retry-After", strconv.Itoa(int((p.retryAfter+time.Second-1)/time.Second)))
	}
	if p.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	return h
}

func (p *problem) body() []byte {
	type inner struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	out, _ := json.Marshal(struct {
		Error inner `json:"error"`
	}{inner{p.code, p.message}})
	return out
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// splitID takes a conversation id apart.
func splitID(id string) (room, thread string) {
	room, thread, _ = strings.Cut(id, ";messageid=")
	return room, thread
}
