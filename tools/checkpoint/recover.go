package checkpoint

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Recover finishes the rollbacks that a crash interrupted, and returns what came of each, for people. A path that is
// neither as it was before nor as it is to be was changed by somebody since, and is kept.
func (s *Store) Recover(ctx context.Context) (results []Result, err error) {
	if !s.On() {
		return nil, nil
	}
	if _, err := os.Stat(s.root); err != nil {
		return nil, nil
	}
	err = s.locked(ctx, takeWait, func(ctx context.Context) error {
		files, err := filepath.Glob(filepath.Join(s.root, "restores", "*.json"))
		for _, file := range files {
			var j journal
			if err := readJSON(file, &j); err != nil {
				s.o.Log.Error().Err(err).Msg("the record of an interrupted rollback is damaged; look at the directory's files and its checkpoints")
				_ = os.Rename(file, file+".damaged")
				continue
			}
			if res, err := s.finish(ctx, j); err != nil {
				s.o.Log.Error().Err(err).Str("directory", j.Dir).Msg("an interrupted rollback could not be finished; it is tried again at the next start")
			} else {
				results = append(results, res)
			}
		}
		return err
	})
	return results, err
}

func (s *Store) finish(ctx context.Context, j journal) (Result, error) {
	p, err := s.project(j.Dir)
	if err != nil {
		return Result{}, err
	}
	out, err := s.run(ctx, call{args: []string{"ls-tree", "-r", "-z", j.Backup}})
	if err != nil {
		return Result{}, err
	}
	before := parseTree(out)
	res := Result{RestoredTo: j.To.Short, Reason: j.To.Reason, Directory: j.Dir, Safe: true, Backup: j.Backup[:8]}
	record := rollback{To: j.To, Backup: p.meta.Seq, Key: j.Key}
	root, err := s.open(p.dir)
	if err != nil {
		return Result{}, err
	}
	defer root.Close()
	var steps []step
	for _, st := range j.Steps {
		full := p.full(string(st.Path))
		sweepTemps(root, path.Dir(filepath.ToSlash(string(st.Path))))
		now, err := stateOf(full)
		old, was := before[string(st.Path)]
		switch {
		case err == nil && (st.Mode == "" && now == gone || st.Mode != "" && object{st.Mode, st.Hash}.same(full)):
			res.Restored = append(res.Restored, string(st.Path)) // done before the crash
		case err == nil && (!was && now == gone || was && old.same(full)):
			steps = append(steps, st)
		default:
			res.Edited = append(res.Edited, string(st.Path))
			continue
		}
		record.Steps = append(record.Steps, done{Path: st.Path})
	}
	s.steps(ctx, p, steps, &res)
	return res, s.remember(p, record, &res)
}

// sweepTemps removes what a crash left half written in a directory.
func sweepTemps(root *os.Root, dir string) {
	f, err := root.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".herald-restore-") && !e.IsDir() {
			_ = root.Remove(path.Join(dir, e.Name()))
		}
	}
}
