package checkpoint

import (
	"context"
	"errors"
	"sync"
)

// Watch surrounds one call that may change files: whatever looks different afterwards was changed by it. Make one with
// Store.Watch or Store.Begin.
type Watch struct {
	s      *Store
	p      *project
	before looks
}

// Begin is Take and Watch of a directory in one: the picture at the first call of a turn, and the look before each call.
func (s *Store) Begin(ctx context.Context, dir, turn, reason string) (*Watch, error) {
	real, err := s.Dir(dir)
	if err != nil || !s.On() {
		return nil, err
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	_, seen, err := s.take(ctx, real, turn, reason)
	if err != nil {
		return nil, err
	}
	return s.watch(ctx, real, seen)
}

// Watch looks at a directory before a call. Changes that people made since the agent's last one are noted, so that they
// are never taken for the agent's. A nil Watch with a nil error means that nothing is looked at here. While calls run
// side by side in one directory nobody can tell whose a change is; it counts as theirs.
func (s *Store) Watch(ctx context.Context, dir string) (*Watch, error) {
	real, err := s.Dir(dir)
	if !s.On() || err != nil {
		return nil, nil
	}
	return s.watch(ctx, real, nil)
}

// watch is Watch of a directory that was looked at just now, or with nil was not.
func (s *Store) watch(ctx context.Context, real string, seen looks) (w *Watch, err error) {
	w = &Watch{s: s, before: seen}
	if w.p, err = s.project(real); err != nil {
		return nil, err
	}
	if w.before == nil {
		if w.before, err = s.look(real); err != nil {
			return nil, err
		}
	}
	known, alone := s.views.enter(w.p.id)
	var edited []string
	if alone {
		edited = byPeople(s.ledger(w.p), known, w.before)
	}
	if w.p.meta.Tracked && len(edited) == 0 {
		return w, nil
	}
	return w, s.locked(ctx, takeWait, func(context.Context) error {
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
func byPeople(l ledger, known, now looks) []string {
	var edited []string
	for path, e := range l {
		if e.State != "" && now.at(string(path)) != e.Stamp {
			edited = append(edited, string(path))
		}
	}
	if known == nil {
		return edited
	}
	for _, path := range now.changed(known) {
		if l[rel(path)].State == "" {
			edited = append(edited, path)
		}
	}
	return edited
}

// noteEdit marks a path that a person has changed. Only checkpoints from the next one on can hold the change. It
// reports whether there was anything to note.
func (s *Store) noteEdit(p *project, l ledger, path string) bool {
	e, full := l[rel(path)], p.full(path)
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
	changed := after.changed(w.before)
	if len(changed) == 0 {
		return nil, nil
	}
	return changed, w.s.locked(ctx, takeWait, func(context.Context) error {
		l := w.s.ledger(w.p)
		for _, path := range changed {
			w.s.note(w.p, l, path)
			l.remember(path, w.before.at(path))
		}
		return w.s.saveLedger(w.p, l)
	})
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
