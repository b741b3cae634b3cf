package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// errTooMany says that a directory has more entries than are looked at.
var errTooMany = errors.New("the directory has too many files")

// Watch surrounds one call that may change files: whatever looks different afterwards was changed by it. Make one with
// Store.Watch.
type Watch struct {
	s      *Store
	p      *project
	before map[string]stamp
}

// Watch looks at a directory before a call. Changes that people made since the agent's last one are noted, so that they
// are never taken for the agent's. A nil Watch with a nil error means that nothing is looked at here.
func (s *Store) Watch(ctx context.Context, dir string) (*Watch, error) {
	real, err := s.Dir(dir)
	if !s.On() || err != nil {
		return nil, nil
	}
	w := &Watch{s: s}
	if w.p, err = s.project(real); err != nil {
		return nil, err
	}
	if w.before, err = s.look(real); err != nil {
		return nil, err
	}
	l := s.ledger(w.p)
	var edited []string
	for path, e := range l {
		if e.State != "" && w.before[path] != e.Stamp {
			edited = append(edited, path)
		}
	}
	if w.p.meta.Tracked && len(edited) == 0 {
		return w, nil
	}
	return w, s.locked(ctx, takeWait, func() error {
		if w.p, err = s.project(real); err != nil {
			return err
		}
		w.p.meta.Tracked = true
		l := s.ledger(w.p)
		for _, path := range edited {
			e, ok := l[path]
			if !ok {
				continue
			}
			if st, err := stateOf(filepath.Join(real, path)); err == nil && st == e.State {
				e.Stamp = stampOf(filepath.Join(real, path))
			} else {
				e.User = w.p.meta.Seq
			}
			l[path] = e
		}
		return errors.Join(s.saveLedger(w.p, l), s.touch(w.p))
	})
}

// End looks again and notes what has changed as the agent's. It returns the paths, from the directory.
func (w *Watch) End(ctx context.Context) ([]string, error) {
	if w == nil {
		return nil, nil
	}
	after, err := w.s.look(w.p.dir)
	if err != nil {
		return nil, err
	}
	var changed []string
	for path, st := range after {
		if w.before[path] != st {
			changed = append(changed, path)
		}
	}
	for path := range w.before {
		if _, ok := after[path]; !ok {
			changed = append(changed, path)
		}
	}
	if len(changed) == 0 {
		return nil, nil
	}
	return changed, w.s.locked(ctx, takeWait, func() error {
		l := w.s.ledger(w.p)
		for _, path := range changed {
			w.s.note(w.p, l, path)
		}
		return w.s.saveLedger(w.p, l)
	})
}

// skipped are directories that no checkpoint holds; see excluded.
var skipped = func() map[string]bool {
	m := map[string]bool{}
	for line := range strings.Lines(excluded) {
		if name, ok := strings.CutSuffix(strings.TrimSpace(line), "/"); ok {
			m[name] = true
		}
	}
	return m
}()

// look returns how every file and link of a directory looks, by its path from there.
func (s *Store) look(dir string) (map[string]stamp, error) {
	seen := map[string]stamp{}
	return seen, s.lookInto(dir, "", seen)
}

func (s *Store) lookInto(dir, rel string, seen map[string]stamp) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if rel == "" {
			return err
		}
		return nil // a directory that is gone by now, or that can't be read: no picture holds it
	}
	if rel != "" {
		for _, e := range entries {
			if e.Name() == ".git" {
				return nil // another repository: git takes no picture of its files
			}
		}
	}
	for _, e := range entries {
		name := e.Name()
		path := rel + name
		switch {
		case e.IsDir():
			if !skipped[name] {
				if err := s.lookInto(dir+"/"+name, path+"/", seen); err != nil {
					return err
				}
			}
		case e.Type().IsRegular(), e.Type()&fs.ModeSymlink != 0:
			if len(seen) >= s.o.MaxEntries {
				return errTooMany
			}
			if st := stampOf(dir + "/" + name); st != (stamp{}) {
				seen[path] = st
			}
		}
	}
	return nil
}

// turns remembers of which directories a turn has its picture already.
type turns struct {
	mu   sync.Mutex
	seen map[string]map[string]bool
	old  []string
}

// maxTurns is how many turns are remembered; an older one that goes on takes another picture, which changes nothing.
const maxTurns = 256

// first reports whether a directory is met for the first time in a turn.
func (t *turns) first(turn, dir string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.seen == nil {
		t.seen = map[string]map[string]bool{}
	}
	dirs, ok := t.seen[turn]
	if !ok {
		if len(t.old) >= maxTurns {
			delete(t.seen, t.old[0])
			t.old = t.old[1:]
		}
		dirs = map[string]bool{}
		t.seen[turn], t.old = dirs, append(t.old, turn)
	}
	if dirs[dir] {
		return false
	}
	dirs[dir] = true
	return true
}
