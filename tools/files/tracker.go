package files

import (
	"container/list"
	"sync"
	"time"

	"herald/tools/sandbox"
)

// Bounds of what is remembered.
const (
	maxSessions = 1000
	maxReads    = 100 // per session; past it all are forgotten, which costs one more full answer each
)

// stamp tells whether a file is as it was.
type stamp struct {
	mod  time.Time
	size int64
}

func stampOf(i sandbox.FileInfo) stamp { return stamp{mod: i.ModTime, size: i.Size} }

func (s stamp) same(o stamp) bool { return s.size == o.size && s.mod.Equal(o.mod) }

// readKey is what was asked for.
type readKey struct {
	path          string
	offset, limit int
}

// shown is what a session has seen.
type shown struct {
	stamp stamp
	again int // unchanged reads since
}

// memory is what is known of one session.
type memory struct {
	session  string
	reads    map[readKey]*shown
	seen     map[string]stamp // by path, of the last read or write
	failures map[string]int   // patches in a row that found nothing, by path
	query    string           // the last search
	asked    int              // how often in a row
}

func (m *memory) clear() {
	m.reads, m.seen, m.failures = map[readKey]*shown{}, map[string]stamp{}, map[string]int{}
}

// tracker remembers sessions, dropping the one not heard of for the longest time.
type tracker struct {
	mu       sync.Mutex
	sessions map[string]*list.Element
	recent   *list.List
}

func newTracker() *tracker {
	return &tracker{sessions: map[string]*list.Element{}, recent: list.New()}
}

// of returns a session's memory; the lock is held by the caller.
func (t *tracker) of(session string) *memory {
	if e, ok := t.sessions[session]; ok {
		t.recent.MoveToFront(e)
		return e.Value.(*memory)
	}
	m := &memory{session: session}
	m.clear()
	t.sessions[session] = t.recent.PushFront(m)
	if t.recent.Len() > maxSessions {
		last := t.recent.Back()
		t.recent.Remove(last)
		delete(t.sessions, last.Value.(*memory).session)
	}
	return m
}

func (t *tracker) forget(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := t.sessions[session]; ok {
		t.recent.Remove(e)
		delete(t.sessions, session)
	}
}

// interrupt ends runs of repeated calls.
func (t *tracker) interrupt(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.sessions[session]
	if !ok {
		return
	}
	m := e.Value.(*memory)
	m.query, m.asked = "", 0
	for _, s := range m.reads {
		s.again = 0
	}
}

// again returns how often this read was answered already for the file as it is, this time not counted in
// when it is the first.
func (t *tracker) again(session string, key readKey, now stamp) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.of(session)
	m.query, m.asked = "", 0
	s := m.reads[key]
	if s == nil || !s.stamp.same(now) {
		return 0
	}
	s.again++
	return s.again
}

// saw notes a full answer.
func (t *tracker) saw(session string, key readKey, now stamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.of(session)
	if len(m.reads) >= maxReads || len(m.seen) >= maxReads {
		m.clear()
	}
	m.reads[key] = &shown{stamp: now}
	m.seen[key.path] = now
	delete(m.failures, key.path)
}

// stale reports whether the session knows the file in another state.
func (t *tracker) stale(session, path string, now stamp) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, ok := t.of(session).seen[path]
	return ok && !was.same(now)
}

// wrote notes the session's own change: what was shown of the file is void, its state is known. exists is
// false after a removal.
func (t *tracker) wrote(session, path string, now stamp, exists bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.of(session)
	for k := range m.reads {
		if k.path == path {
			delete(m.reads, k)
		}
	}
	delete(m.failures, path)
	delete(m.seen, path)
	if exists {
		if len(m.seen) >= maxReads {
			m.clear()
		}
		m.seen[path] = now
	}
}

// failed counts patches of a path that did not apply and returns how many there are in a row.
func (t *tracker) failed(session, path string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.of(session)
	if len(m.failures) >= maxReads {
		m.failures = map[string]int{}
	}
	m.failures[path]++
	return m.failures[path]
}

// searched counts a query and returns how often it was asked in a row, this time included.
func (t *tracker) searched(session, query string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.of(session)
	if m.query != query {
		m.query, m.asked = query, 0
	}
	m.asked++
	return m.asked
}
