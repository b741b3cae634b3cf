package checkpoint

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Result is what a rollback did. Its JSON has the keys of a safe rollback only when it was one.
type Result struct {
	RestoredTo string // eight digits of the hash
	Reason     string
	Directory  string
	File       string
	Safe       bool
	// Restored are the paths that are now as the checkpoint has them, removed ones included.
	Restored []string
	Edited   []string // kept: a person changed them
	Oversize []string // kept: over the size cap, and the checkpoint does not hold them
	// FailedDeletes could not be removed, FailedRestores not be written; they are as they were.
	FailedDeletes  []string
	FailedRestores []string
	// Backup is the checkpoint that was taken before anything was changed, eight digits; empty when nothing was.
	Backup string
}

// MarshalJSON writes the keys that callers know.
func (r Result) MarshalJSON() ([]byte, error) {
	m := map[string]any{"success": true, "restored_to": r.RestoredTo, "reason": r.Reason, "directory": r.Directory}
	if r.File != "" {
		m["file"] = r.File
	}
	if r.Backup != "" {
		m["backup"] = r.Backup
	}
	if r.Safe {
		m["restored_files"], m["skipped_user_edits"], m["skipped_oversize"] = list(r.Restored), list(r.Edited), list(r.Oversize)
	}
	if len(r.FailedDeletes) > 0 {
		m["failed_deletes"] = r.FailedDeletes
	}
	if len(r.FailedRestores) > 0 {
		m["failed_restores"] = r.FailedRestores
	}
	return json.Marshal(m)
}

func list(paths []string) []string {
	if paths == nil {
		return []string{}
	}
	return paths
}

// step is one path of a rollback that is under way.
type step struct {
	Path rel    `json:"path"`
	Mode string `json:"mode,omitempty"` // git's; empty: it goes away
	Hash string `json:"hash,omitempty"`
	// Own are the permissions and the owner that it gets; nil: those it has, or the usual ones.
	Own *owned `json:"own,omitempty"`
}

// journal is a rollback that is under way: what a crash leaves for Recover.
type journal struct {
	Dir    string     `json:"directory"`
	To     Checkpoint `json:"to"`
	Backup string     `json:"backup"`
	Steps  []step     `json:"steps"`
	Began  time.Time  `json:"began"`
	Key    string     `json:"key,omitempty"`
}

// rollback is the last one that was done, for Undo.
type rollback struct {
	To     Checkpoint `json:"to"`
	Backup int        `json:"backup"` // the number of the checkpoint before it
	Steps  []done     `json:"steps"`
	// Key and Result answer the same wish again.
	Key    string  `json:"key,omitempty"`
	Result outcome `json:"result"`
}

// outcome is a Result as it is kept.
type outcome Result

// done is one path that a rollback changed.
type done struct {
	Path  rel    `json:"path"`
	After state  `json:"after"`
	Own   *owned `json:"own,omitempty"` // before the rollback
}

// Rollback goes back to a checkpoint. First it takes one of the tree as it is, whatever the size of the files that it
// is about to change, so that Undo can bring them back. Errors: ErrOff, ErrBusy, ErrRefused, ErrNone, *RangeError; on
// an error nothing was changed. Single files that can't be changed are no error, see Result.
func (s *Store) Rollback(ctx context.Context, dir string, to Target) (res Result, err error) {
	err = s.withProject(ctx, dir, func(ctx context.Context, p *project) error {
		if last, ok := s.answered(p, to.Key); ok {
			res = last
			return nil
		}
		plan, err := s.plan(ctx, p, to)
		if err != nil {
			return err
		}
		res = Result{RestoredTo: plan.To.Short, Reason: plan.To.Reason, Directory: p.dir, File: plan.File, Safe: plan.Safe,
			Edited: plan.Edited, Oversize: plan.Oversize}
		if plan.Empty() {
			return nil
		}
		var steps []step
		for _, name := range plan.Delete {
			steps = append(steps, step{Path: rel(name)})
		}
		l := s.ledger(p)
		for _, name := range plan.Restore {
			o := plan.tree[name]
			steps = append(steps, step{Path: rel(name), Mode: o.mode, Hash: o.hash, Own: l[rel(name)].Was})
		}
		return s.apply(ctx, p, plan.To, "before /rollback to "+plan.To.Short, to.Key, steps, &res)
	})
	return res, err
}

// Undo brings back what the last rollback of a directory changed. A path that was changed since is kept and named in
// Edited. key is as Target.Key. Errors: as Rollback, and ErrNone when there is no rollback to undo.
func (s *Store) Undo(ctx context.Context, dir, key string) (res Result, err error) {
	err = s.withProject(ctx, dir, func(ctx context.Context, p *project) error {
		if last, ok := s.answered(p, key); ok {
			res = last
			return nil
		}
		var last rollback
		if err := readJSON(s.rollbackPath(p.id), &last); err != nil {
			return fmt.Errorf("%w of a rollback to undo", ErrNone)
		}
		line, err := s.history(ctx, p)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(line, func(c Checkpoint) bool { return c.seq == last.Backup })
		if i < 0 {
			return fmt.Errorf("%w: the one before the last rollback was pruned", ErrNone)
		}
		out, err := s.run(ctx, call{args: []string{"ls-tree", "-r", "-z", line[i].Hash}})
		if err != nil {
			return err
		}
		tree := parseTree(out)
		res = Result{RestoredTo: line[i].Short, Reason: line[i].Reason, Directory: p.dir, Safe: true}
		var steps []step
		for _, d := range last.Steps {
			if now, err := stateOf(p.full(string(d.Path))); err != nil || now != d.After {
				res.Edited = append(res.Edited, string(d.Path))
				continue
			}
			o := tree[string(d.Path)]
			steps = append(steps, step{Path: d.Path, Mode: o.mode, Hash: o.hash, Own: d.Own})
		}
		if len(steps) == 0 {
			return nil
		}
		return s.apply(ctx, p, line[i], "before /rollback undo", key, steps, &res)
	})
	return res, err
}

// answered returns what a rollback for the same wish did.
func (s *Store) answered(p *project, key string) (Result, bool) {
	var last rollback
	if key == "" || readJSON(s.rollbackPath(p.id), &last) != nil || last.Key != key {
		return Result{}, false
	}
	return Result(last.Result), true
}

// apply takes a checkpoint and does the steps, and fills in what came of them.
func (s *Store) apply(ctx context.Context, p *project, to Checkpoint, reason, key string, steps []step, res *Result) error {
	slices.SortStableFunc(steps, func(a, b step) int { return len(a.Mode) - len(b.Mode) }) // removals first: they make room
	whole := make([]string, len(steps))
	record := rollback{To: to, Key: key, Steps: make([]done, len(steps))}
	for i, st := range steps {
		whole[i] = string(st.Path)
		record.Steps[i].Path = st.Path
		record.Steps[i].Own = stampOf(p.full(string(st.Path))).owned()
	}
	backup, _, err := s.snapshot(ctx, p, reason, whole)
	if err != nil {
		return fmt.Errorf("the state before the rollback could not be kept, so nothing was changed: %w", err)
	}
	if err := s.holds(ctx, p, backup, whole); err != nil {
		return err
	}
	record.Backup = p.meta.Seq
	j := journal{Dir: p.dir, To: to, Backup: backup, Steps: steps, Key: key, Began: s.o.Now().UTC()}
	if err := s.writeJSON(s.restorePath(p.id), j); err != nil {
		return err
	}
	res.Backup = backup[:8]
	// From here on it is brought to its end: half of it would be neither before nor after.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*s.o.Timeout)
	defer cancel()
	s.steps(ctx, p, steps, res)
	err = s.remember(p, record, res)
	s.prune(ctx, p)
	return err
}

// holds makes sure that a checkpoint has every path that is about to change and is there: what can't be read is in no
// checkpoint, and is not changed either.
func (s *Store) holds(ctx context.Context, p *project, commit string, paths []string) error {
	out, err := s.run(ctx, call{args: []string{"ls-tree", "-r", "-z", commit}})
	if err != nil {
		return err
	}
	tree := parseTree(out)
	for _, name := range paths {
		full := p.full(name)
		if now, err := stateOf(full); err == nil && now == gone {
			continue
		}
		if o, held := tree[name]; !held || !o.same(full) {
			return fmt.Errorf("%q changed while the state before the rollback was kept, so nothing was changed; try again", name)
		}
	}
	return nil
}

// remember ends the journal: what was changed is the agent's, by the person's own wish, and can be undone.
func (s *Store) remember(p *project, record rollback, res *Result) error {
	l := s.ledger(p)
	record.Steps = slices.DeleteFunc(record.Steps, func(d done) bool { return !slices.Contains(res.Restored, string(d.Path)) })
	for i, d := range record.Steps {
		s.note(p, l, string(d.Path))
		record.Steps[i].After = l[d.Path].State
	}
	record.Result = outcome(*res)
	return errors.Join(s.saveLedger(p, l), s.writeJSON(s.rollbackPath(p.id), record), os.Remove(s.restorePath(p.id)))
}

// steps changes the tree. Each path changes in one move or not at all.
func (s *Store) steps(ctx context.Context, p *project, steps []step, res *Result) {
	root, err := s.open(p.dir)
	if err != nil {
		s.o.Log.Error().Err(err).Str("directory", p.dir).Msg("a directory can't be opened for a rollback")
		for _, st := range steps {
			res.fail(st)
		}
		return
	}
	defer root.Close()
	source := s.blobs(ctx)
	defer source.close()
	for _, st := range steps {
		if err := s.step(p, root, source, st); err != nil {
			s.o.Log.Warn().Err(err).Str("directory", p.dir).Msg("a file could not be changed by a rollback")
			res.fail(st)
			continue
		}
		res.Restored = append(res.Restored, string(st.Path))
	}
	slices.Sort(res.Restored)
}

func (r *Result) fail(st step) {
	if st.Mode == "" {
		r.FailedDeletes = append(r.FailedDeletes, string(st.Path))
	} else {
		r.FailedRestores = append(r.FailedRestores, string(st.Path))
	}
}

// remove deletes a file. Tests make it fail.
var remove = (*os.Root).Remove

func (s *Store) step(p *project, root *os.Root, source *blobs, st step) error {
	s.o.Moment()
	defer s.o.Moment()
	name := string(st.Path)
	if err := plainParents(root, name, st.Mode != ""); err != nil {
		return err
	}
	info, err := root.Lstat(name)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case st.Mode == "" && err != nil:
		return nil // it is gone already
	case err == nil && info.IsDir():
		if st.Mode == "" {
			return nil // a directory is nothing that a checkpoint holds
		}
		if err := root.Remove(name); err != nil {
			return fmt.Errorf("%s is a directory now: %w", name, err)
		}
		info = nil
	}
	if st.Mode == "" {
		if err := remove(root, name); err != nil {
			return err
		}
		sweepDirs(root, path.Dir(filepath.ToSlash(name)))
		return nil
	}
	own := st.Own
	if own == nil && info != nil {
		own = ownedBy(info)
	}
	return source.write(root, st, own)
}

// ownedBy is the permissions and the owner of a file; nil for what is none.
func ownedBy(info fs.FileInfo) *owned {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return nil
	}
	return &owned{info.Mode().Perm(), st.Uid, st.Gid}
}

// give makes what a rollback made the owner's of the directory it is in: Herald may run as another user than the
// container whose file it is. Where that is not allowed, it stays as it is.
func give(root *os.Root, name string, own *owned) {
	if own == nil {
		info, err := root.Stat(path.Dir(name))
		if err != nil {
			return
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return
		}
		own = &owned{UID: st.Uid, GID: st.Gid}
	}
	if now, err := root.Lstat(name); err == nil {
		if st, ok := now.Sys().(*syscall.Stat_t); ok && st.Uid == own.UID && st.Gid == own.GID {
			return
		}
	}
	_ = root.Lchown(name, int(own.UID), int(own.GID))
}

// plainParents makes sure that everything above a path is a directory and no link, and makes what is missing.
func plainParents(root *os.Root, name string, create bool) error {
	at := ""
	parts := strings.Split(filepath.ToSlash(name), "/")
	for _, part := range parts[:len(parts)-1] {
		at = path.Join(at, part)
		info, err := root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && create:
			if err := root.Mkdir(at, 0o777); err != nil {
				return err
			}
			give(root, at, nil)
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is no directory any more", at)
		}
	}
	return nil
}

// sweepDirs removes directories that have become empty, upwards.
func sweepDirs(root *os.Root, dir string) {
	for dir != "." && dir != "/" && root.Remove(dir) == nil {
		dir = path.Dir(dir)
	}
}

// blobs reads contents from the store through one git process.
type blobs struct {
	moment func()
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	err    error
	stop   context.CancelFunc
}

func (s *Store) blobs(ctx context.Context) *blobs {
	ctx, stop := context.WithCancel(ctx)
	b := &blobs{moment: s.o.Moment, stop: stop, cmd: s.command(ctx, "cat-file", "--batch")}
	var out io.ReadCloser
	if b.in, b.err = b.cmd.StdinPipe(); b.err == nil {
		if out, b.err = b.cmd.StdoutPipe(); b.err == nil {
			b.err = b.cmd.Start()
		}
	}
	if b.err == nil {
		b.out = bufio.NewReaderSize(out, 64<<10)
	}
	return b
}

func (b *blobs) close() {
	if b.cmd.Process != nil {
		_ = b.in.Close()
		b.stop()
		_ = b.cmd.Wait()
	}
	b.stop()
}

// write puts a content in the place of a path: it is complete beside it before it takes the name.
func (b *blobs) write(root *os.Root, st step, own *owned) error {
	if b.err != nil {
		return b.err
	}
	var word [6]byte
	_, _ = rand.Read(word[:])
	tmp := path.Join(path.Dir(filepath.ToSlash(string(st.Path))), ".herald-restore-"+hex.EncodeToString(word[:]))
	err := b.fill(root, st, tmp, own)
	if err == nil {
		b.moment()
		err = root.Rename(tmp, string(st.Path))
	}
	if err != nil {
		_ = root.Remove(tmp)
	}
	return err
}

func (b *blobs) fill(root *os.Root, st step, tmp string, own *owned) error {
	if _, b.err = io.WriteString(b.in, st.Hash+"\n"); b.err != nil {
		return b.err
	}
	head, err := b.out.ReadString('\n')
	if err != nil {
		b.err = err
		return err
	}
	fields := strings.Fields(head)
	if len(fields) != 3 || fields[1] != "blob" {
		return fmt.Errorf("the store has no content %s: it is damaged", st.Hash)
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		b.err = err
		return err
	}
	content := io.LimitReader(b.out, size)
	err = place(root, st, tmp, own, content)
	if _, cerr := io.Copy(io.Discard, content); cerr != nil { // the rest, and the line's end
		b.err = cerr
	}
	if _, cerr := b.out.Discard(1); cerr != nil {
		b.err = cerr
	}
	return errors.Join(err, b.err)
}

// place writes a content to a new file, or makes a link of it.
func place(root *os.Root, st step, tmp string, own *owned, content io.Reader) error {
	if st.Mode == "120000" {
		target, err := io.ReadAll(io.LimitReader(content, 64<<10))
		if err != nil {
			return err
		}
		if err := root.Symlink(string(target), tmp); err != nil {
			return err
		}
		give(root, tmp, nil)
		return nil
	}
	usual := fs.FileMode(0o666)
	if st.Mode == "100755" {
		usual = 0o777
	}
	if own != nil {
		usual = 0o600 // narrow until it has its own bits
	}
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, usual)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err == nil {
		give(root, tmp, own) // before the bits: a change of the owner may clear some
	}
	if err == nil && own != nil {
		err = f.Chmod(withExec(own.Perm, st.Mode == "100755"))
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// withExec sets or clears the execute bits, for those who may read. Bits that are right stay.
func withExec(perm fs.FileMode, exec bool) fs.FileMode {
	if (perm&0o100 != 0) == exec {
		return perm
	}
	perm &^= 0o111
	if exec {
		perm |= perm >> 2 & 0o111
	}
	return perm
}
