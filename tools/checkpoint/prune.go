package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxRounds bounds how often Prune drops a checkpoint of each directory to bring the store under its size.
const maxRounds = 20

// keepNewest drops all but the newest checkpoints of a project. Contents that nothing needs any more go at the next
// Prune.
func (s *Store) keepNewest(ctx context.Context, p *project) error {
	return s.keep(ctx, p, s.o.MaxSnapshots)
}

// prune is keepNewest for the end of a rollback, whose success it does not change.
func (s *Store) prune(ctx context.Context, p *project) {
	if err := s.keepNewest(ctx, p); err != nil {
		s.o.Log.Warn().Err(err).Str("directory", p.dir).Msg("old checkpoints could not be pruned")
	}
}

// keep rewrites a project's line to its newest n commits, at least one, with their trees, messages and dates.
func (s *Store) keep(ctx context.Context, p *project, n int) error {
	list, err := s.history(ctx, p)
	if err != nil || len(list) <= max(n, 1) {
		return err
	}
	kept := list[:max(n, 1)]
	parent := ""
	for _, c := range slices.Backward(kept) {
		message := c.Reason + seqMark + strconv.Itoa(c.seq)
		if parent, err = s.commitTree(ctx, c.Hash+"^{tree}", parent, message, c.At); err != nil {
			return err
		}
	}
	return s.move(ctx, p, parent, list[0].Hash)
}

// Pruned is what Prune did.
type Pruned struct {
	Scanned  int   `json:"scanned"`
	Orphans  int   `json:"deleted_orphan"`
	Stale    int   `json:"deleted_stale"`
	Errors   int   `json:"errors"`
	Freed    int64 `json:"bytes_freed"`
	Size     int64 `json:"bytes"`
	Previous int64 `json:"bytes_before"`
}

// PruneOptions say what goes.
type PruneOptions struct {
	// Retention is the age from which a directory that was not used loses its checkpoints; 0: never.
	Retention time.Duration
	// Orphans also removes the checkpoints of these directories, as Orphans returned them, when they still are.
	Orphans []string
	// MaxTotal overrides the store's size cap; 0 takes the store's.
	MaxTotal int64
}

// Orphans returns the directories that are gone for certain: the parent is there, it is the one that it was, and it
// is not an empty mount point.
func (s *Store) Orphans(ctx context.Context) (dirs []string, err error) {
	err = s.locked(ctx, 0, func(ctx context.Context) error {
		metas, err := s.metas()
		for _, m := range metas {
			if m.orphan() {
				dirs = append(dirs, m.Dir)
			}
		}
		return err
	})
	return dirs, err
}

func (m meta) orphan() bool {
	if _, err := os.Lstat(m.Dir); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	parent := filepath.Dir(m.Dir)
	dev, ino, ok := identity(parent)
	if !ok || m.ParentIno == 0 || dev != m.ParentDev || ino != m.ParentIno {
		return false
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		return false
	}
	above, _, _ := identity(filepath.Dir(parent))
	return len(entries) > 0 || above != dev
}

// Prune removes what is old, orphaned or over the size cap, and gives the space back. A git failure ends it early and
// deletes nothing more.
func (s *Store) Prune(ctx context.Context, o PruneOptions) (r Pruned, err error) {
	if _, serr := os.Stat(s.root); serr != nil || !s.On() {
		return r, nil
	}
	err = s.locked(ctx, 0, func(ctx context.Context) error {
		r.Previous = sizeOf(s.root)
		metas, err := s.metas()
		if err != nil {
			return err
		}
		var left []*project
		for _, m := range metas {
			r.Scanned++
			p := &project{id: idOf(m.Dir), dir: m.Dir, meta: m}
			switch {
			case slices.Contains(o.Orphans, m.Dir) && m.orphan():
				err = s.drop(ctx, p)
				r.Orphans++
			case o.Retention > 0 && s.o.Now().Sub(m.Touched) > o.Retention:
				err = s.drop(ctx, p)
				r.Stale++
			default:
				left = append(left, p)
			}
			if err != nil {
				r.Errors++
				return err
			}
		}
		if err := s.shrink(ctx, left, cmp.Or(o.MaxTotal, s.o.MaxTotal)); err != nil {
			r.Errors++
			return err
		}
		r.Size = sizeOf(s.root)
		r.Freed = max(0, r.Previous-r.Size)
		return nil
	})
	return r, err
}

// shrink collects garbage, and drops the oldest checkpoint of each project in turn while the store is over its size.
func (s *Store) shrink(ctx context.Context, projects []*project, limit int64) error {
	if err := s.collect(ctx); err != nil {
		return err
	}
	for round := 0; limit > 0 && round < maxRounds && sizeOf(s.root) > limit; round++ {
		less := false
		for _, p := range projects {
			list, err := s.history(ctx, p)
			if err != nil {
				return err
			}
			if len(list) < 2 {
				continue // the last one of a directory stays
			}
			less = true
			if err := errors.Join(s.keep(ctx, p, len(list)-1), s.collect(ctx)); err != nil {
				return err
			}
			if sizeOf(s.root) <= limit {
				return nil
			}
		}
		if !less {
			return nil
		}
	}
	return nil
}

func (s *Store) collect(ctx context.Context) error {
	_, err := s.run(ctx, call{slow: true, args: []string{"gc", "-q", "--prune=now"}})
	return err
}

// drop forgets a project.
func (s *Store) drop(ctx context.Context, p *project) error {
	if _, err := s.run(ctx, call{args: []string{"update-ref", "-d", p.ref()}}); err != nil {
		return err
	}
	for _, file := range []string{s.indexPath(p.id), s.ledgerPath(p.id), s.restorePath(p.id), s.rollbackPath(p.id), s.metaPath(p.id)} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Clear removes all checkpoints of all directories.
func (s *Store) Clear(ctx context.Context) error {
	return s.locked(ctx, 0, func(ctx context.Context) error {
		s.init = false
		return os.RemoveAll(s.o.Dir)
	})
}

// Size returns the bytes of the store on disk.
func (s *Store) Size() int64 { return sizeOf(s.root) }

// Verify runs git's own check of the store.
func (s *Store) Verify(ctx context.Context) error {
	return s.locked(ctx, takeWait, func(ctx context.Context) error {
		_, err := s.run(ctx, call{slow: true, args: []string{"fsck", "--connectivity-only", "--no-dangling"}})
		return err
	})
}

// metas reads all projects, the one that was used last first.
func (s *Store) metas() ([]meta, error) {
	files, err := filepath.Glob(filepath.Join(s.root, "projects", "*.json"))
	var out []meta
	for _, file := range files {
		var m meta
		if readJSON(file, &m) == nil && m.Dir != "" {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b meta) int { return cmp.Or(b.Touched.Compare(a.Touched), strings.Compare(a.Dir, b.Dir)) })
	return out, err
}

func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return n
}
