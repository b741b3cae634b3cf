package signaltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// event is one line of data for the streams.
type event struct {
	account string // whose streams get it; "" is all
	lines   []string
}

// eventsKept is how many events are remembered for Last-Event-ID and Replay.
const eventsKept = 1000

// emitLocked queues an envelope for the streams. The caller holds the lock.
func (s *Server) emitLocked(envelope, exception map[string]any) {
	params := map[string]any{"account": s.o.Account, "envelope": envelope}
	if exception != nil {
		params["exception"] = exception
	}
	var shown any = params
	if s.o.Wrapped {
		shown = map[string]any{"jsonrpc": "2.0", "method": "receive", "params": map[string]any{"subscription": 0, "result": params}}
	}
	data, err := json.Marshal(shown)
	if err != nil {
		panic(err)
	}
	s.queueLocked(event{account: s.o.Account, lines: []string{"event:receive", "data:" + string(data)}})
}

func (s *Server) queueLocked(e event) {
	s.events = append(s.events, e)
	if over := len(s.events) - eventsKept; over > 0 && s.first+int64(over) <= s.handed {
		s.events = append([]event(nil), s.events[over:]...)
		s.first += int64(over)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// Raw puts lines on the streams as they are: garbage, comments, half an event.
func (s *Server) Raw(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queueLocked(event{lines: lines})
}

// Replay sends the newest n events that a stream was given once more, as the daemon does after a crash.
func (s *Server) Replay(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	given := s.events[:s.handed-s.first]
	given = given[max(0, len(given)-n):]
	for _, e := range append([]event(nil), given...) {
		s.queueLocked(e)
	}
}

// Pending returns how many events no stream was given yet.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.first + int64(len(s.events)) - s.handed)
}

// AwaitHanded waits until every event was given to a stream, at most d.
func (s *Server) AwaitHanded(d time.Duration) {
	limit := time.NewTimer(d)
	defer limit.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s.Pending() > 0 {
		select {
		case <-tick.C:
		case <-limit.C:
			return
		}
	}
}

// Lose drops what no stream was given yet, as a daemon does that receives without a listener.
func (s *Server) Lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handed = s.first + int64(len(s.events))
}

func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	account := r.URL.Query().Get("account")
	if s.o.Multi && account != "" && !s.has(account) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.streams++
	s.opened++
	s.lastIDs = append(s.lastIDs, r.Header.Get("Last-Event-ID"))
	s.most = max(s.most, s.streams)
	mode, cursor := s.mode, s.handed
	if id := r.Header.Get("Last-Event-ID"); id != "" && s.o.Numbered {
		cursor = s.after(id)
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.streams--
		close(s.ended)
		s.ended = make(chan struct{})
		s.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	if flush.Flush() != nil || mode == Closes {
		return
	}
	if mode == Silent {
		select {
		case <-r.Context().Done():
		case <-s.done:
		}
		return
	}
	s.feed(w, r, cursor)
}

// after returns the number of the first event behind an id; an unknown id gets everything that is kept.
func (s *Server) after(id string) int64 {
	text, ok := strings.CutPrefix(id, "1760000000000-")
	n, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil || n+1 < s.first {
		return s.first
	}
	return min(n+1, s.first+int64(len(s.events)))
}

// feed writes events and comments until the caller goes.
func (s *Server) feed(w http.ResponseWriter, r *http.Request, cursor int64) {
	flush := http.NewResponseController(w)
	comments := time.NewTicker(s.o.Comments)
	defer comments.Stop()
	for {
		if !s.awake(r) || r.Context().Err() != nil {
			return
		}
		s.mu.Lock()
		changed := s.changed
		var next *event
		if at := cursor - s.first; at >= 0 && at < int64(len(s.events)) {
			next = &s.events[at]
		} else if at < 0 {
			cursor = s.first
		}
		s.mu.Unlock()
		if next != nil {
			lines := next.lines
			if s.o.Numbered {
				lines = append([]string{fmt.Sprintf("id:1760000000000-%d", cursor)}, lines...)
			}
			if _, err := fmt.Fprintf(w, "%s\n\n", strings.Join(lines, "\n")); err != nil || flush.Flush() != nil {
				return
			}
			cursor++
			s.mu.Lock()
			s.handed = max(s.handed, cursor)
			s.mu.Unlock()
			continue
		}
		select {
		case <-changed:
		case <-comments.C:
			if !s.awake(r) {
				return
			}
			if _, err := fmt.Fprint(w, ":\n"); err != nil || flush.Flush() != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-s.done:
			return
		}
	}
}
