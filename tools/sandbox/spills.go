package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"herald/tools/spill"
)

// spillKeep is how long a stored output is kept.
const spillKeep = 7 * 24 * time.Hour

// spills makes the files that hold outputs too long for a result, and drops the old ones, at most once an
// hour.
type spills struct {
	dir    string
	now    func() time.Time
	mu     sync.Mutex
	pruned time.Time
}

// open makes a new private file out-<seconds>-<pid>-<id>.log.
func (s *spills) open() (spillFile, error) {
	if s.dir == "" {
		return nil, errors.New("outputs are not stored")
	}
	if err := spill.EnsureDir(s.dir, true); err != nil {
		return nil, err
	}
	s.prune()
	name := fmt.Sprintf("out-%d-%d-%s.log", s.now().Unix(), os.Getpid(), randomID())
	return spill.OpenExclusive(filepath.Join(s.dir, name), true, false)
}

// prune removes what is older than spillKeep.
func (s *spills) prune() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if !s.pruned.IsZero() && now.Sub(s.pruned) < time.Hour {
		return
	}
	s.pruned = now
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "out-") || !strings.HasSuffix(e.Name(), ".log") {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > spillKeep {
			_ = os.Remove(filepath.Join(s.dir, e.Name()))
		}
	}
}
