package output

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"herald/tools/sandbox"
	"herald/tools/spill"
)

// spillKeep is how long a stored output is kept.
const spillKeep = 7 * 24 * time.Hour

// Spills makes the files that hold outputs too long for a result, and drops the old ones, at most once an
// hour.
type Spills struct {
	Dir    string
	Now    func() time.Time
	mu     sync.Mutex
	pruned time.Time
}

// Open makes a new private file out-<seconds>-<pid>-<id>.log.
func (s *Spills) Open() (File, error) {
	if s.Dir == "" {
		return nil, errors.New("outputs are not stored")
	}
	if err := spill.EnsureDir(s.Dir, true); err != nil {
		return nil, err
	}
	s.prune()
	name := fmt.Sprintf("out-%d-%d-%s.log", s.Now().Unix(), os.Getpid(), sandbox.NewID())
	return spill.OpenExclusive(filepath.Join(s.Dir, name), true, false)
}

// prune removes what is older than spillKeep.
func (s *Spills) prune() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	if !s.pruned.IsZero() && now.Sub(s.pruned) < time.Hour {
		return
	}
	s.pruned = now
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "out-") || !strings.HasSuffix(e.Name(), ".log") {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > spillKeep {
			_ = os.Remove(filepath.Join(s.Dir, e.Name()))
		}
	}
}
