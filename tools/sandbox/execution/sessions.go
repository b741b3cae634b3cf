package execution

import (
	"container/list"
	"sync"
)

// maxSessions bounds how many sessions' directories are remembered; past it the one that ran a command
// longest ago is forgotten and starts again where its caller says.
const maxSessions = 10_000

// Sessions remembers in which directory each session left off. It is safe for concurrent use.
type Sessions struct {
	mu     sync.Mutex
	dirs   map[string]*list.Element // of recent
	recent *list.List               // of remembered
}

type remembered struct{ session, dir string }

func NewSessions() *Sessions {
	return &Sessions{dirs: map[string]*list.Element{}, recent: list.New()}
}

// Dir returns the remembered directory.
func (s *Sessions) Dir(session string) (dir string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.dirs[session]
	if !ok {
		return "", false
	}
	return e.Value.(remembered).dir, true
}

// Forget drops the session's directory.
func (s *Sessions) Forget(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.dirs[session]; ok {
		s.recent.Remove(e)
		delete(s.dirs, session)
	}
}

// Remember notes where a session is now. An empty session is none.
func (s *Sessions) Remember(session, dir string) {
	if session == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.dirs[session]; ok {
		e.Value = remembered{session, dir}
		s.recent.MoveToFront(e)
		return
	}
	s.dirs[session] = s.recent.PushFront(remembered{session, dir})
	if s.recent.Len() > maxSessions {
		last := s.recent.Back()
		s.recent.Remove(last)
		delete(s.dirs, last.Value.(remembered).session)
	}
}
