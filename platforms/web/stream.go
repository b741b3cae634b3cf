package web

import (
	"bytes"
	"net/http"
	"time"
)

// The numbers of an event stream.
const (
	// mostStreams bounds the open tabs.
	mostStreams = 64
	// pingEvery keeps proxies from closing a silent stream; they often do after a minute.
	pingEvery = 20 * time.Second
	// writeWithin is how long a tab may take to read what was written before it is cut off. It comes back
	// by itself and goes on where it was.
	writeWithin = 5 * time.Second
)

// events streams the changes to one tab, from the cursor that it names in Last-Event-ID (a browser that
// connects again) or in ?after= (its first time). A cursor that can't be resumed gets a "reset": the tab
// must load again.
func (a *Adapter) events(w http.ResponseWriter, r *http.Request) {
	run, _, leave, ok := a.enter()
	if !ok {
		w.Header().Set("Retry-After", "1")
		a.fail(w, r, http.StatusServiceUnavailable, "stopped", "Herald is starting or stopping.")
		return
	}
	defer leave()
	if !a.addStream(1) {
		w.Header().Set("Retry-After", "30")
		a.fail(w, r, http.StatusServiceUnavailable, "tabs", "Too many tabs are open.")
		return
	}
	defer a.addStream(-1)

	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)

	cursor := r.Header.Get("Last-Event-ID")
	if cursor == "" {
		cursor = r.URL.Query().Get("after")
	}
	n, known := a.hub.parse(cursor)
	if !known {
		n = -1
	}
	s := &stream{rc: http.NewResponseController(w), w: w}
	s.buf.WriteString("retry: 1000\n: hello\n\n")
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		changes, now, wake, ok := a.hub.since(n)
		if !ok {
			a.hub.frame(&s.buf, now, "reset", []byte("{}"))
		}
		for _, c := range changes {
			a.hub.frame(&s.buf, c.n, c.event, c.data())
		}
		n = now
		if err := s.flush(); err != nil {
			return
		}
		select {
		case <-wake:
		case <-ping.C:
			s.buf.WriteString("event: ping\ndata: {}\n\n") // no id: the cursor stays
		case <-r.Context().Done():
			return
		case <-run.Done():
			return
		}
	}
}

// addStream counts the open streams. ok is false when there is room for no more.
func (a *Adapter) addStream(d int) (ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d > 0 && a.streams >= mostStreams {
		return false
	}
	a.streams += d
	return true
}

// stream writes to one tab.
type stream struct {
	buf bytes.Buffer
	w   http.ResponseWriter
	rc  *http.ResponseController
}

// flush writes what is in buf, within writeWithin.
func (s *stream) flush() error {
	if s.buf.Len() == 0 {
		return nil
	}
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeWithin)) // a writer without deadlines has none to keep
	_, err := s.w.Write(s.buf.Bytes())
	s.buf.Reset()
	if err != nil {
		return err
	}
	return s.rc.Flush()
}
