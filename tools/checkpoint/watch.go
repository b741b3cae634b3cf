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
// are never taken for the agent's. A nil Watch with a nil error means that nothing is looked at here. While calls run
// side by side in one directory nobody can tell whose a change is; it counts as theirs.
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
	known, alone := s.views.enter(w.p.id)
	l := s.ledger(w.p)
	var edited []string
	if alone {
		edited = byPeople(l, known, w.before)
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
			s.noteEdit(w.p, l, path)
		}
		return errors.Join(s.saveLedger(w.p, l), s.touch(w.p))
	})
}

// byPeople lists what looks different from how the agent left it, and from how everything was after its last call.
func byPeople(l ledger, known, now map[string]stamp) []string {
	var edited []string
	for path, e := range l {
		if e.State != "" && now[string(path)] != e.Stamp {
			edited = append(edited, string(path))
		}
	}
	if known == nil {
		return edited
	}
	for path, st := range now {
		if l[rel(path)].State == "" && known[path] != st {
			edited = append(edited, path)
		}
	}
	for path := range known {
		if _, ok := now[path]; !ok && l[rel(path)].State == "" {
			edited = append(edited, path)
		}
	}
	return edited
}

// noteEdit marks a path that a person has changed. Only checkpoints from the next one on can hold the change. It
// reports whether there was anything to note.
func (s *Store) noteEdit(p *project, l ledger, path string) bool {
	e, full := l[rel(path)], filepath.Join(p.dir, path)
	now := stampOf(full)
	switch {
	case e.Stamp == now && (e.State != "" || e.User > 0):
		return false // as the agent left it, or noted already
	case e.State != "" && e.same(full):
		e.Stamp = now // touched, not changed
	default:
		e = entry{User: p.meta.Seq + 1, At: s.o.Now().UTC(), Stamp: now}
	}
	l[rel(path)] = e
	return true
}

// same reports whether a path is as the agent left it.
func (e entry) same(path string) bool {
	now, err := stateOf(path)
	return err == nil && now == e.State
}

// End looks again and notes what has changed as the agent's. It returns the paths, from the directory.
func (w *Watch) End(ctx context.Context) ([]string, error) {
	if w == nil {
		return nil, nil
	}
	after, err := w.s.look(w.p.dir)
	w.s.views.leave(w.p.id, after)
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

func (s *Store) lookInto(dir, from string, seen map[string]stamp) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if from == "" {
			return err
		}
		return nil // a directory that is gone by now, or that can't be read: no picture holds it
	}
	if from != "" {
		for _, e := range entries {
			if e.Name() == ".git" {
				return nil // another repository: git takes no picture of its files
			}
		}
	}
	for _, e := range entries {
		name := e.Name()
		path := from + name
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

// views remembers how directories looked after the agent's last call there, and how many calls run.
type views struct {
	mu   sync.Mutex
	seen map[string]*view
	old  []string
}

type view struct {
	stamps  map[string]stamp
	running int
}

// maxViews is how many directories are remembered; of others only the ledger tells.
const maxViews = 4

// enter begins a call. known is how the directory looked after the last one, nil when that is not remembered; alone is
// false when other calls run there.
func (v *views) enter(id string) (known map[string]stamp, alone bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := v.seen[id]
	if at == nil {
		if v.seen == nil {
			v.seen = map[string]*view{}
		}
		if len(v.old) >= maxViews {
			delete(v.seen, v.old[0])
			v.old = v.old[1:]
		}
		at = &view{}
		v.seen[id], v.old = at, append(v.old, id)
	}
	at.running++
	return at.stamps, at.running == 1
}

func (v *views) leave(id string, stamps map[string]stamp) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if at := v.seen[id]; at != nil {
		at.running = max(0, at.running-1)
		at.stamps = stamps
	}
}

// forget drops how a directory looked: a checkpoint has just noted everything.
func (v *views) forget(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if at := v.seen[id]; at != nil {
		at.stamps = nil
	}
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
