package faults

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// Server serves a handler on loopback. Its address stays the same when it is shut and opened again. All methods
// are safe for concurrent use.
type Server struct {
	handler http.Handler

	mu     sync.Mutex
	server *http.Server
	addr   string
	conns  map[net.Conn]bool // open, hijacked ones included
	wg     sync.WaitGroup
}

// NewServer returns a server that listens nowhere yet.
func NewServer(h http.Handler) *Server { return &Server{handler: h, conns: map[net.Conn]bool{}} }

// Start listens on a free loopback port and returns the base URL, without a slash at its end.
func (s *Server) Start() (string, error) {
	if err := s.Listen("127.0.0.1:0"); err != nil {
		return "", err
	}
	return s.URL(), nil
}

// Listen listens on addr.
func (s *Server) Listen(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second}
	s.mu.Lock()
	s.server, s.addr = server, l.Addr().String()
	s.mu.Unlock()
	s.wg.Go(func() { _ = server.Serve(&listener{l, s}) })
	return nil
}

// Serve listens on addr and serves until ctx ends.
func (s *Server) Serve(ctx context.Context, addr string) error {
	if err := s.Listen(addr); err != nil {
		return err
	}
	<-ctx.Done()
	s.Close()
	return nil
}

// Addr returns the host and port that Listen took, and URL the base URL.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// URL returns the base URL, without a slash at its end.
func (s *Server) URL() string { return "http://" + s.Addr() }

// Shut takes the server off the network: all connections are cut, WebSockets too, and new ones refused.
func (s *Server) Shut() {
	s.mu.Lock()
	server := s.server
	s.server = nil
	s.mu.Unlock()
	if server != nil {
		_ = server.Close()
	}
	s.cut()
}

// Open listens again on the address it had. It fails while the server is open.
func (s *Server) Open() error { return s.Listen(s.Addr()) }

// Cut closes all connections; the server stays.
func (s *Server) Cut() error {
	s.Shut()
	return s.Open()
}

// Close ends the server and waits for its listeners. Handlers that hang must have been ended before, see
// Script.Close.
func (s *Server) Close() {
	s.Shut()
	s.wg.Wait()
}

// Connections returns how many connections are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *Server) cut() {
	s.mu.Lock()
	conns := make([]net.Conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// listener notes its connections, because http.Server forgets those that are hijacked.
type listener struct {
	net.Listener
	server *Server
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	kept := &conn{TCPConn: c.(*net.TCPConn), server: l.server}
	l.server.mu.Lock()
	l.server.conns[kept] = true
	l.server.mu.Unlock()
	return kept, nil
}

type conn struct {
	*net.TCPConn
	server *Server
}

func (c *conn) Close() error {
	c.server.mu.Lock()
	delete(c.server.conns, c)
	c.server.mu.Unlock()
	return c.TCPConn.Close()
}
