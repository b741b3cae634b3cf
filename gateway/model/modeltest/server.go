package modeltest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"herald/gateway/model"
)

// maxBody bounds a request, in bytes.
const maxBody = 64 << 20

// Script answers requests in order. Safe for concurrent use. It is an http.Handler for POST
// …/chat/completions and …/messages, GET /api/tags (as Ollama) and GET …/models.
type Script struct {
	mu       sync.Mutex
	replies  []Reply
	answer   func(Request) Reply
	requests []Request
	quiet    bool
	models   []string
	closed   chan struct{}
	once     sync.Once
	changed  chan struct{} // closed and replaced when a request arrives
}

// NewScript returns a script of replies. When they are used up, each further request gets an error that
// says so.
func NewScript(replies ...Reply) *Script {
	return &Script{replies: replies, closed: make(chan struct{}), changed: make(chan struct{})}
}

// Answering returns a script whose replies are computed. answer may run on several goroutines at once.
func Answering(answer func(Request) Reply) *Script {
	s := NewScript()
	s.answer = answer
	return s
}

// Quiet stops recording requests, for load tests. It returns s.
func (s *Script) Quiet() *Script {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet = true
	return s
}

// Models sets the names that GET /api/tags lists. It returns s.
func (s *Script) Models(names ...string) *Script {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models = names
	return s
}

// Add appends replies.
func (s *Script) Add(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = append(s.replies, replies...)
}

// Requests returns what was asked so far, in order of arrival.
func (s *Script) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Wait waits until n requests have arrived, at most d, and reports whether they have.
func (s *Script) Wait(n int, d time.Duration) bool {
	limit := time.NewTimer(d)
	defer limit.Stop()
	for {
		s.mu.Lock()
		got, changed := len(s.requests), s.changed
		s.mu.Unlock()
		if got >= n {
			return true
		}
		select {
		case <-changed:
		case <-limit.C:
			return false
		}
	}
}

// Release lets all hanging handlers end. A server's Close needs it; Server does it.
func (s *Script) Release() { s.once.Do(func() { close(s.closed) }) }

// Server is a running script.
type Server struct {
	*Script
	*httptest.Server
}

// Serve starts a server on loopback. Close it.
func Serve(s *Script) *Server {
	return &Server{Script: s, Server: httptest.NewServer(s)}
}

// OpenAI returns the base URL for OpenAI-compatible clients, Anthropic that for Anthropic's.
func (s *Server) OpenAI() string { return s.URL + "/v1" }

// Anthropic returns the base URL for Anthropic clients.
func (s *Server) Anthropic() string { return s.URL }

// Close ends hanging handlers and stops the server.
func (s *Server) Close() {
	s.Release()
	s.CloseClientConnections()
	s.Server.Close()
}

// ServeHTTP answers one request.
func (s *Script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/api/tags":
		s.tags(w)
		return
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/chat/completions"):
		s.serve(w, r, openaiAPI{})
		return
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/messages"):
		s.serve(w, r, anthropicAPI{})
		return
	}
	http.NotFound(w, r)
}

func (s *Script) tags(w http.ResponseWriter) {
	type tag struct {
		Name string `json:"name"`
	}
	s.mu.Lock()
	out := struct {
		Models []tag `json:"models"`
	}{Models: []tag{}}
	for _, m := range s.models {
		out.Models = append(out.Models, tag{m})
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // the client is gone: nothing to do
}

// api is how one provider writes things.
type api interface {
	name() string
	read(r *http.Request, body []byte) (Request, error)
	// events returns the events of a stream, each as it stands on the wire.
	events(q Request, a Reply) [][]byte
	whole(q Request, a Reply) []byte
	failure(a Reply) []byte
}

func (s *Script) serve(w http.ResponseWriter, r *http.Request, a api) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return
	}
	q, err := a.read(r, body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(a.failure(Reply{ErrorType: "invalid_request_error", ErrorText: err.Error()}))
		return
	}
	reply := s.next(q)
	s.write(w, r, a, q, reply)
}

func (s *Script) next(q Request) Reply {
	s.mu.Lock()
	if !s.quiet {
		s.requests = append(s.requests, q)
		close(s.changed)
		s.changed = make(chan struct{})
	}
	if s.answer != nil {
		s.mu.Unlock()
		return s.answer(q)
	}
	defer s.mu.Unlock()
	if len(s.replies) == 0 {
		return Failing(http.StatusTeapot, "script_end", "the script has no more replies")
	}
	reply := s.replies[0]
	s.replies = s.replies[1:]
	return reply
}

// pause waits and reports whether to go on.
func (s *Script) pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
	case <-s.closed:
	}
	return false
}

func (s *Script) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.closed:
	}
}

func (s *Script) write(w http.ResponseWriter, r *http.Request, a api, q Request, reply Reply) {
	if reply.HangHeader {
		s.hang(r)
		return
	}
	if !s.pause(r, reply.Delay) {
		return
	}
	for k, v := range reply.Header {
		w.Header().Set(k, v)
	}
	switch {
	case reply.Status != 0 && reply.Status != http.StatusOK:
		w.Header().Set("Content-Type", "application/json")
		if reply.ContentType != "" {
			w.Header().Set("Content-Type", reply.ContentType)
		}
		w.WriteHeader(reply.Status)
		body := reply.Raw
		if body == nil {
			body = a.failure(reply)
		}
		_, _ = w.Write(body)
		return
	case reply.Raw != nil:
		if reply.ContentType != "" {
			w.Header().Set("Content-Type", reply.ContentType)
		}
		s.bytes(w, r, reply, reply.Raw)
		if reply.HangBody {
			flush(w)
			s.hang(r)
		}
		if reply.Cut {
			panic(http.ErrAbortHandler)
		}
		return
	case reply.NoStream || !q.stream:
		w.Header().Set("Content-Type", "application/json")
		s.bytes(w, r, reply, a.whole(q, reply))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i, event := range a.events(q, reply) {
		if (reply.Cut || reply.HangBody) && i == reply.CutAfter {
			flush(w)
			if reply.Cut {
				panic(http.ErrAbortHandler)
			}
			s.hang(r)
			return
		}
		if i > 0 && !s.pause(r, reply.Pace) {
			return
		}
		if !s.bytes(w, r, reply, event) {
			return
		}
		if reply.Pace > 0 {
			flush(w)
		}
	}
	if reply.Cut {
		flush(w)
		panic(http.ErrAbortHandler)
	}
	if reply.HangBody {
		flush(w)
		s.hang(r)
	}
}

func (s *Script) bytes(w http.ResponseWriter, r *http.Request, reply Reply, b []byte) bool {
	if reply.SlowBytes == 0 {
		_, err := w.Write(b)
		return err == nil
	}
	for i := range b {
		if _, err := w.Write(b[i : i+1]); err != nil {
			return false
		}
		flush(w)
		if !s.pause(r, reply.SlowBytes) {
			return false
		}
	}
	return true
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// words cuts a text into pieces, each a word with the space behind it.
func words(s string) []string {
	if s == "" {
		return nil
	}
	return strings.SplitAfter(s, " ")
}

// counted is the usage of a reply: the scripted one, or four bytes a token.
func counted(q Request, a Reply) model.Usage {
	if a.Usage != nil {
		return *a.Usage
	}
	return model.Usage{Input: int64(len(q.Body)/4 + 1), Output: int64(len(a.Text)/4 + 1)}
}
