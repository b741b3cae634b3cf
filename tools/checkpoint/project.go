package checkpoint

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// project is one directory in the store.
type project struct {
	id   string // the first 16 hex digits of the SHA-256 of dir
	dir  string
	meta meta
}

// meta is what is kept of a project beside its pictures.
type meta struct {
	Dir       string    `json:"workdir"`
	Created   time.Time `json:"created_at"`
	Touched   time.Time `json:"last_touch"`
	ParentDev uint64    `json:"workdir_parent_dev"`
	ParentIno uint64    `json:"workdir_parent_ino"`
	// Seq is the number of the newest checkpoint. Numbers grow and outlive pruning, which changes hashes.
	Seq int `json:"seq"`
	// Index is what the index file looked like when it held just the newest checkpoint.
	Index stamp `json:"index"`
	// Tip and Tree are the newest commit and its tree when the index was made.
	Tip  string `json:"tip,omitempty"`
	Tree string `json:"tree,omitempty"`
	// Tracked: the agent's changes are looked for, so a path without an entry in the ledger is not the agent's.
	Tracked bool `json:"tracked"`
}

func idOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:8])
}

func (s *Store) metaPath(id string) string     { return filepath.Join(s.root, "projects", id+".json") }
func (s *Store) ledgerPath(id string) string   { return filepath.Join(s.root, "ledgers", id+".json") }
func (s *Store) indexPath(id string) string    { return filepath.Join(s.root, "indexes", id) }
func (s *Store) restorePath(id string) string  { return filepath.Join(s.root, "restores", id+".json") }
func (s *Store) rollbackPath(id string) string { return filepath.Join(s.root, "restores", id+".last") }

// full is the name of a path for the system, "" where something above it in the directory is no real directory: the path is
// not there then, whatever a link in its way leads to.
func (p *project) full(path string) string {
	for i, c := range path {
		if c != '/' {
			continue
		}
		if info, err := os.Lstat(filepath.Join(p.dir, path[:i])); err == nil && !info.IsDir() {
			return ""
		}
	}
	return filepath.Join(p.dir, path)
}

func (p *project) ref() string { return "refs/herald/" + p.id }

// known reports whether a directory has checkpoints.
func (s *Store) known(dir string) bool {
	if !s.On() {
		return false
	}
	_, err := os.Stat(s.metaPath(idOf(dir)))
	return err == nil
}

// project reads what is known of a directory; a new one is not written yet.
func (s *Store) project(dir string) (*project, error) {
	p := &project{id: idOf(dir), dir: dir}
	err := readJSON(s.metaPath(p.id), &p.meta)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.o.Log.Warn().Err(err).Str("directory", dir).Msg("the record of a directory's checkpoints is damaged and is rebuilt")
		p.meta = meta{}
	}
	if p.meta.Dir == "" {
		p.meta.Dir, p.meta.Created = dir, s.o.Now().UTC()
	}
	return p, nil
}

// touch notes that a project is in use, and where it is.
func (s *Store) touch(p *project) error {
	p.meta.Touched = s.o.Now().UTC()
	if dev, ino, ok := identity(filepath.Dir(p.dir)); ok {
		p.meta.ParentDev, p.meta.ParentIno = dev, ino
	}
	return s.writeJSON(s.metaPath(p.id), p.meta)
}

// ledger is what the agent left of each path, by the path from the project's directory.
type ledger map[rel]entry

// entry is one path of the ledger.
type entry struct {
	// State is the path after the agent's last change, empty when only a person changed it.
	State state `json:"state,omitempty"`
	// At is when it was noted.
	At time.Time `json:"ts"`
	// Stamp is how the file looked then, so that a person's edit in between is noticed without reading it.
	Stamp stamp `json:"stamp,omitzero"`
	// Was are the permissions and the owner before the agent's first change, for a path that was there: what the file gets
	// when it comes back.
	Was *owned `json:"was,omitempty"`
	// User is the number of the newest checkpoint at which a change of a person was seen: going back further would
	// lose it.
	User int `json:"user,omitempty"`
}

// owned is who may do what with a file.
type owned struct {
	Perm fs.FileMode `json:"perm"`
	UID  uint32      `json:"uid"`
	GID  uint32      `json:"gid"`
}

// owned returns nil for what is no regular file.
func (st stamp) owned() *owned {
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return nil
	}
	return &owned{fs.FileMode(st.Mode).Perm(), st.UID, st.GID}
}

// remember notes how a path was before the agent's first change of it.
func (l ledger) remember(path string, before stamp) {
	if e, ok := l[rel(path)]; ok && e.Was == nil {
		e.Was = before.owned()
		l[rel(path)] = e
	}
}

// maxLedger is how many entries are kept, the newest.
const maxLedger = 2000

// ledger reads a project's ledger; a damaged one is empty.
func (s *Store) ledger(p *project) ledger {
	l := ledger{}
	if err := readJSON(s.ledgerPath(p.id), &l); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.o.Log.Warn().Err(err).Str("directory", p.dir).Msg("the ledger of the agent's changes is damaged and starts over; what came before counts as yours")
		}
		return ledger{}
	}
	return l
}

func (s *Store) saveLedger(p *project, l ledger) error {
	if len(l) > maxLedger {
		paths := make([]rel, 0, len(l))
		for path := range l {
			paths = append(paths, path)
		}
		slices.SortFunc(paths, func(a, b rel) int { return cmp.Or(l[b].At.Compare(l[a].At), cmp.Compare(a, b)) })
		for _, path := range paths[maxLedger:] {
			delete(l, path)
		}
	}
	return s.writeJSON(s.ledgerPath(p.id), l)
}

// agent reports whether the ledger has a change of the agent.
func (l ledger) agent() bool {
	for _, e := range l {
		if e.State != "" {
			return true
		}
	}
	return false
}

// RecordWrite notes that the agent has just written a file, or removed it. Watch does so by itself.
func (s *Store) RecordWrite(ctx context.Context, file string) error {
	dir, err := s.Dir(s.RootFor(file))
	if err != nil || !s.On() {
		return nil // where no picture is taken there is nothing to go back to
	}
	return s.locked(ctx, takeWait, func(ctx context.Context) error {
		p, err := s.project(dir)
		if err != nil {
			return err
		}
		real := filepath.Join(realDir(filepath.Dir(file)), filepath.Base(file))
		path, err := filepath.Rel(dir, real)
		if err != nil || !filepath.IsLocal(path) {
			return nil
		}
		l := s.ledger(p)
		s.note(p, l, path)
		return s.saveLedger(p, l)
	})
}

// note writes down how a path looks after the agent has changed it.
func (s *Store) note(p *project, l ledger, path string) {
	e := l[rel(path)]
	full := p.full(path)
	st, err := stateOf(full)
	if err != nil {
		// What can't be read can't be recognised later, so it is left alone, and so is what a person did before it.
		l[rel(path)] = entry{User: max(e.User, p.meta.Seq+1), At: s.o.Now().UTC(), Stamp: stampOf(full)}
		return
	}
	e.State, e.At, e.Stamp = st, s.o.Now().UTC(), stampOf(full)
	l[rel(path)] = e
}

// realDir resolves links of a directory that may be gone.
func realDir(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

func (s *Store) writeJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.writeAtomic(path, data)
}
