package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"herald/tools/spill"
)

// maxRequest bounds one request line, in bytes.
const maxRequest = 1 << 20

// Request is one line to the control socket: a verb and its arguments.
type Request struct {
	Verb string          `json:"verb"`
	Args json.RawMessage `json:"args,omitempty"`
}

// Reply is one line back.
type Reply struct {
	OK     bool            `json:"ok"`
	Error  string          `json:"error,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// Verb runs one request. Its result is marshalled to JSON.
type Verb func(ctx context.Context, args json.RawMessage) (any, error)

// Server is the control socket: a Unix socket in the home that only its owner can open. Each connection
// carries requests and replies as lines of JSON.
type Server struct {
	log   zerolog.Logger
	verbs map[string]Verb

	mu       sync.Mutex
	listener net.Listener
	path     string
	conns    map[net.Conn]struct{}
	closed   bool
	wg       sync.WaitGroup
	ctx      context.Context
	stop     context.CancelFunc
}

// NewServer returns a server that does not listen yet.
func NewServer(log zerolog.Logger, verbs map[string]Verb) *Server {
	ctx, stop := context.WithCancel(context.Background())
	return &Server{log: log, verbs: verbs, conns: map[net.Conn]struct{}{}, ctx: ctx, stop: stop}
}

// SocketPath returns the path to use for a socket in a home. Unix sockets have short names (about 100
// bytes): a home that is too deep gets one in the temporary directory, and pointer is a file that says so.
func SocketPath(path string) (socket string, pointer string) {
	if len(path) < 100 {
		return path, ""
	}
	sum := uint64(14695981039346656037)
	for _, b := range []byte(path) {
		sum = (sum ^ uint64(b)) * 1099511628211
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("herald-%d-%016x", os.Getuid(), sum), "control.sock"), path + ".path"
}

// Listen opens the socket. A file that an ended process left is replaced; the store's lock has shown
// already that no other daemon serves this home.
func (s *Server) Listen(path string) error {
	socket, pointer := SocketPath(path)
	dir := filepath.Dir(socket)
	if pointer != "" {
		if err := spill.EnsureOwnedPrivateDir(dir); err != nil {
			return err
		}
		if err := spill.WriteExclusive(pointer, []byte(socket+"\n"), true, true); err != nil {
			return err
		}
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		_ = listener.Close()
		return err
	}
	s.mu.Lock()
	s.listener, s.path = listener, socket
	s.mu.Unlock()
	s.wg.Add(1)
	go s.accept(listener)
	return nil
}

func (s *Server) accept(listener net.Listener) {
	defer s.wg.Done()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			_ = conn.Close()
			return
		}
		s.conns[conn] = struct{}{}
		s.wg.Add(1)
		s.mu.Unlock()
		go s.serve(conn)
	}
}

func (s *Server) serve(conn net.Conn) {
	defer s.wg.Done()
	defer func() {
		s.mu.Lock()
		delete(s.conns, conn)
		s.mu.Unlock()
		_ = conn.Close()
	}()
	scanner := bufio.NewScanner(conn)
	scanner.Buffer(make([]byte, 0, 4096), maxRequest)
	enc := json.NewEncoder(conn)
	for scanner.Scan() {
		var req Request
		if err := json.Unmarshal(scanner.Bytes(), &req); err != nil {
			_ = enc.Encode(Reply{Error: "the request is not JSON: " + err.Error()})
			return
		}
		if err := enc.Encode(s.run(req)); err != nil {
			return
		}
	}
	if errors.Is(scanner.Err(), bufio.ErrTooLong) {
		_ = enc.Encode(Reply{Error: fmt.Sprintf("the request is longer than %d bytes", maxRequest)})
		_, _ = io.Copy(io.Discard, conn) // a peer that still writes would not read the answer
	}
}

func (s *Server) run(req Request) (reply Reply) {
	verb, ok := s.verbs[req.Verb]
	if !ok {
		return Reply{Error: fmt.Sprintf("the daemon does not know the verb %q; it may be another version than this command", req.Verb)}
	}
	defer func() {
		if p := recover(); p != nil {
			s.log.Error().Str("verb", req.Verb).Interface("panic", p).Bytes("stack", debug.Stack()).Msg("a verb of the control socket failed")
			reply = Reply{Error: fmt.Sprintf("the daemon failed at %s: %v", req.Verb, p)}
		}
	}()
	result, err := verb(s.ctx, req.Args)
	if err != nil {
		return Reply{Error: err.Error()}
	}
	data, err := json.Marshal(result)
	if err != nil {
		return Reply{Error: err.Error()}
	}
	return Reply{OK: true, Result: data}
}

// Close ends all connections and removes the socket.
func (s *Server) Close() {
	s.stop()
	s.mu.Lock()
	s.closed = true
	if s.listener != nil {
		_ = s.listener.Close()
		_ = os.Remove(s.path)
	}
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// ErrNoDaemon says that no daemon answers in a home.
var ErrNoDaemon = errors.New("no daemon is running here")

// Call sends one request to the daemon of a home and decodes its result into out, which may be nil.
func Call(ctx context.Context, path, verb string, args, out any) error {
	socket, pointer := SocketPath(path)
	if pointer != "" {
		if data, err := os.ReadFile(pointer); err == nil && len(data) > 1 {
			socket = string(data[:len(data)-1])
		}
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("%w (%s): start it with: herald run", ErrNoDaemon, filepath.Dir(path))
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	} else {
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(conn).Encode(Request{Verb: verb, Args: raw}); err != nil {
		return fmt.Errorf("ask the daemon: %w", err)
	}
	var reply Reply
	if err := json.NewDecoder(conn).Decode(&reply); err != nil {
		return fmt.Errorf("the daemon did not answer: %w", err)
	}
	if !reply.OK {
		return errors.New(reply.Error)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(reply.Result, out)
}
