package checkpoint

import (
	"context"
	"fmt"
	"slices"
)

// Target says what to go back to, and how.
type Target struct {
	// Ref is a checkpoint's number in List from 1, or the beginning of its hash.
	Ref string
	// File, when set, is the one file to bring back, whoever changed it.
	File string
	// All brings back every file of the checkpoint, people's edits too. Files that the checkpoint does not hold stay.
	All bool
	// Key, when set, names the wish: a rollback that was done for the same wish before, by a process that was killed,
	// is not done again and returns what it did.
	Key string
}

// Plan is what a rollback would do. Each path is in one list.
type Plan struct {
	To   Checkpoint `json:"to"`
	Dir  string     `json:"directory"`
	File string     `json:"file,omitempty"`
	// Safe: only the agent's changes are taken back.
	Safe bool `json:"safe"`
	// Restore get the checkpoint's content; Delete were made by the agent since.
	Restore []string `json:"restore"`
	Delete  []string `json:"delete"`
	// Edited are kept because a person changed them; Oversize because they are over the size cap and the checkpoint
	// does not hold them.
	Edited   []string `json:"skipped_user_edits"`
	Oversize []string `json:"skipped_oversize"`

	tree map[string]object
}

// Empty reports whether there is nothing to do.
func (p Plan) Empty() bool { return len(p.Restore)+len(p.Delete) == 0 }

// Preview says what Rollback would do now, and changes nothing.
func (s *Store) Preview(ctx context.Context, dir string, to Target) (plan Plan, err error) {
	err = s.withProject(ctx, dir, func(ctx context.Context, p *project) error {
		plan, err = s.plan(ctx, p, to)
		return err
	})
	return plan, err
}

// withProject runs fn with a directory's project and the store to itself. It does not wait for other processes.
func (s *Store) withProject(ctx context.Context, dir string, fn func(context.Context, *project) error) error {
	real, err := s.Dir(dir)
	if err != nil {
		return err
	}
	return s.locked(ctx, 0, func(ctx context.Context) error {
		p, err := s.project(real)
		if err != nil {
			return err
		}
		return fn(ctx, p)
	})
}

func (s *Store) plan(ctx context.Context, p *project, to Target) (Plan, error) {
	list, err := s.history(ctx, p)
	if err != nil {
		return Plan{}, err
	}
	c, err := find(list, p.dir, to.Ref)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{To: c, Dir: p.dir, Restore: []string{}, Delete: []string{}, Edited: []string{}, Oversize: []string{}}
	if to.File != "" {
		if plan.File, err = local(p.dir, to.File); err != nil {
			return plan, err
		}
	}
	differing, err := s.differing(ctx, p, &plan)
	if err != nil {
		return plan, err
	}
	l := s.ledger(p)
	plan.Safe = !to.All && to.File == "" && (p.meta.Tracked || l.agent())
	switch {
	case plan.File != "":
		if _, held := plan.tree[plan.File]; !held {
			return plan, fmt.Errorf("checkpoint %s holds no file %q", c.Short, plan.File)
		}
		if _, err := stateOf(p.full(plan.File)); err != nil {
			return plan, fmt.Errorf("what is at %q now can't be kept, so it is left alone: %w", plan.File, err)
		}
		if slices.Contains(differing, plan.File) {
			plan.Restore = append(plan.Restore, plan.File)
		}
	case !plan.Safe:
		for _, path := range differing {
			if _, held := plan.tree[path]; !held {
				continue
			}
			if _, err := stateOf(p.full(path)); err != nil {
				plan.Edited = append(plan.Edited, path) // no checkpoint can hold what is there now, so it stays
				continue
			}
			plan.Restore = append(plan.Restore, path)
		}
	default:
		for _, path := range differing {
			s.place(p, &plan, l, path)
		}
	}
	return plan, nil
}

// place puts a path that differs into the list of a safe plan that it belongs to.
func (s *Store) place(p *project, plan *Plan, l ledger, path string) {
	full := p.full(path)
	_, held := plan.tree[path]
	e, known := l[rel(path)]
	now, err := stateOf(full)
	removed := now == gone && e.State != gone && p.meta.Tracked // by a person: the agent's own removals are known
	switch {
	case removed, !known, e.State == "", err != nil, e.User > plan.To.seq, now != gone && now != e.State:
		plan.Edited = append(plan.Edited, path)
	case held:
		plan.Restore = append(plan.Restore, path)
	case s.Exceeds(full):
		plan.Oversize = append(plan.Oversize, path)
	default:
		plan.Delete = append(plan.Delete, path)
	}
}

// differing lists the paths that are on the disk or in the plan's checkpoint and are not the same there, and reads
// the checkpoint's tree into the plan.
func (s *Store) differing(ctx context.Context, p *project, plan *Plan) ([]string, error) {
	out, err := s.run(ctx, call{args: []string{"ls-tree", "-r", "-z", plan.To.Hash}})
	if err != nil {
		return nil, err
	}
	plan.tree = parseTree(out)
	if err := s.align(ctx, p, plan.To.Hash); err != nil {
		return nil, err
	}
	paths, err := s.changed(ctx, p)
	if err != nil {
		return nil, err
	}
	out, err = s.run(ctx, call{index: s.indexPath(p.id), args: []string{"diff-index", "--cached", "-z", "--name-only", "--no-renames", plan.To.Hash}})
	if err != nil {
		return nil, err
	}
	paths = append(paths, names(out)...)
	slices.Sort(paths)
	return slices.DeleteFunc(slices.Compact(paths), func(path string) bool {
		full := p.full(path)
		if o, held := plan.tree[path]; held {
			return o.same(full)
		}
		now, err := stateOf(full)
		return err == nil && now == gone
	}), nil
}
