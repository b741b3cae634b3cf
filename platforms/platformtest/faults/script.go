package faults

import (
	"bytes"
	"cmp"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Kind is a way in which a call goes wrong.
type Kind string

// The kinds.
const (
	// Status answers Status, Header and Body without acting.
	Status Kind = "status"
	// ResetBefore cuts the connection without acting.
	ResetBefore Kind = "reset before"
	// ResetAfter acts and cuts the connection instead of answering.
	ResetAfter Kind = "reset after"
	// HangBefore takes the request and neither acts nor answers until the caller goes, Heal or Close.
	HangBefore Kind = "hang before"
	// HangAfter acts and never answers.
	HangAfter Kind = "hang after"
	// SlowBody acts and answers half, waits Delay, then the rest.
	SlowBody Kind = "slow body"
	// HalfBody acts, answers half and cuts the connection.
	HalfBody Kind = "half body"
	// Garbage answers 200 with a page of some proxy, without acting.
	Garbage Kind = "garbage"
	// Late waits Delay before it acts.
	Late Kind = "late"
)

// Fault scripts one trouble.
type Fault struct {
	Kind Kind
	// On says which requests go wrong; nil is every one. It must leave the request's body unread and must not
	// choose an upgrade to a WebSocket for a kind that acts first.
	On func(*http.Request) bool
	// Times is how often. 0 is once, negative is until Heal.
	Times int
	// Status, Header and Body are what Status answers. Status 0 is 503.
	Status int
	Header http.Header
	Body   []byte
	// Delay is how long SlowBody and Late wait.
	Delay time.Duration
	// Then is called when the fault strikes, before anything else: a fake opens its retry-after window here.
	Then func(*http.Request)
}

// Script makes calls go wrong, in the order in which faults were added. The zero value is ready; all methods are
// safe for concurrent use.
type Script struct {
	mu     sync.Mutex
	faults []*Fault
	done   chan struct{}
	closed bool
}

// Break adds a fault.
func (s *Script) Break(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	s.faults = append(s.faults, &f)
}

// Heal takes all faults off and ends requests that hang.
func (s *Script) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
	if s.done != nil && !s.closed {
		close(s.done)
		s.done = nil
	}
}

// Close ends requests that hang, and those that would hang later.
func (s *Script) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed, s.faults = true, nil
	if s.done == nil {
		s.done = make(chan struct{})
	}
	close(s.done)
}

// Wrap returns next with the script in front of it.
func (s *Script) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := s.take(r)
		if f == nil {
			next.ServeHTTP(w, r)
			return
		}
		if f.Then != nil {
			f.Then(r)
		}
		s.strike(w, r, f, next)
	})
}

func (s *Script) take(r *http.Request) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults {
		if f.On != nil && !f.On(r) {
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
			}
		}
		return f
	}
	return nil
}

func (s *Script) strike(w http.ResponseWriter, r *http.Request, f *Fault, next http.Handler) {
	switch f.Kind {
	case Status:
		for k, v := range f.Header {
			w.Header()[k] = v
		}
		w.WriteHeader(cmp.Or(f.Status, http.StatusServiceUnavailable))
		_, _ = w.Write(f.Body)
	case ResetBefore:
		Reset(w)
	case HangBefore:
		s.Hang(r)
		Reset(w)
	case Garbage:
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>upstream says hello</html>"))
	case Late:
		s.wait(r, f.Delay)
		next.ServeHTTP(w, r)
	default:
		kept := &answer{header: http.Header{}, status: http.StatusOK}
		next.ServeHTTP(kept, r)
		s.after(w, r, f, kept)
	}
}

func (s *Script) after(w http.ResponseWriter, r *http.Request, f *Fault, kept *answer) {
	body := kept.body.Bytes()
	switch f.Kind {
	case HangAfter:
		s.Hang(r)
		Reset(w)
	case SlowBody, HalfBody:
		for k, v := range kept.header {
			w.Header()[k] = v
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(kept.status)
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		if f.Kind == HalfBody {
			Reset(w)
			return
		}
		s.wait(r, f.Delay)
		_, _ = w.Write(body[len(body)/2:])
	default: // ResetAfter
		Reset(w)
	}
}

// Hang holds a request until its caller goes, Heal or Close.
func (s *Script) Hang(r *http.Request) {
	s.mu.Lock()
	if s.done == nil {
		s.done = make(chan struct{})
	}
	done := s.done
	s.mu.Unlock()
	select {
	case <-r.Context().Done():
	case <-done:
	}
}

func (s *Script) wait(r *http.Request, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}

// Reset cuts the connection of a request with an RST.
func Reset(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// answer keeps what a handler wrote.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
	wrote  bool
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if !a.wrote {
		a.status, a.wrote = status, true
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.wrote = true
	return a.body.Write(b)
}

// Flush does nothing: what was written is kept until the end.
func (a *answer) Flush() {}
