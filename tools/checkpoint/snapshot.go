package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// takeWait is how long taking a picture waits for another process. Rollbacks do not wait.
const takeWait = 5 * time.Second

// Checkpoint is one picture of a directory.
type Checkpoint struct {
	Hash   string    `json:"hash"`
	Short  string    `json:"short_hash"`
	At     time.Time `json:"timestamp"`
	Reason string    `json:"reason"`
	Dir    string    `json:"workdir"`
	// Files, Insertions and Deletions say how much has changed from this checkpoint to the next one, and from the newest
	// to the tree as it is.
	Files      int `json:"files_changed"`
	Insertions int `json:"insertions"`
	Deletions  int `json:"deletions"`

	seq int
}

// Take takes a picture of a directory at its first call in a turn; later calls of the turn do nothing. turn is any name
// that is one turn's alone, reason what is about to happen. taken is false when nothing has changed since the last one.
// It waits at most 5 seconds for another process.
func (s *Store) Take(ctx context.Context, dir, turn, reason string) (taken bool, err error) {
	real, err := s.Dir(dir)
	if err != nil || !s.On() {
		return false, err
	}
	taken, _, err = s.take(ctx, real, turn, reason)
	return taken, err
}

// take is Take of a resolved directory. seen is how it looks now, nil when that is not known. A tree that looks as the
// newest checkpoint has it needs no git to say so.
func (s *Store) take(ctx context.Context, real, turn, reason string) (taken bool, seen looks, err error) {
	if !s.turns.first(turn, real) {
		return false, nil, nil
	}
	id, began := idOf(real), time.Now() // the file system's clock, not that of the checkpoints
	seen, err = s.look(real)
	switch {
	case err != nil && !errors.Is(err, errTooMany):
		return false, nil, err
	case err == nil && s.views.same(id, seen, stampOf(s.indexPath(id)), began):
		return false, seen, nil
	case err != nil:
		seen = nil // what is too much to look at may be little to take a picture of: guard knows
	}
	err = s.locked(ctx, takeWait, func(ctx context.Context) error {
		p, err := s.project(real)
		if err != nil {
			return err
		}
		s.noteSince(p, s.views.last(id), seen)
		_, taken, err = s.snapshot(ctx, p, reason, nil)
		if err != nil {
			s.views.pictured(id, nil, began, stamp{})
			return err
		}
		s.views.pictured(id, seen, began, p.meta.Index)
		if !taken {
			return nil
		}
		return s.keepNewest(ctx, p)
	})
	return taken, nil, err
}

// noteSince notes what people have changed since the agent's last call and the coming picture does not show: files over the
// cap, and others that no checkpoint holds.
func (s *Store) noteSince(p *project, known, seen looks) {
	if known == nil || seen == nil {
		return
	}
	l, noted := s.ledger(p), false
	for _, path := range byPeople(l, known, seen) {
		noted = s.noteEdit(p, l, path) || noted
	}
	if noted {
		s.keepLedger(p, l)
	}
}

// snapshot makes the tree as it is the newest commit. Paths in whole are taken whatever their size. The hash is that of
// the newest commit, also when nothing has changed.
func (s *Store) snapshot(ctx context.Context, p *project, reason string, whole []string) (hash string, taken bool, err error) {
	tip, tree, err := s.tip(ctx, p)
	if err != nil {
		return "", false, err
	}
	if err := s.guard(p); err != nil {
		return "", false, err
	}
	if err := s.align(ctx, p, tip); err != nil {
		return "", false, err
	}
	fresh := p.meta.Index != stamp{} && stampOf(s.indexPath(p.id)) == p.meta.Index
	changed, err := s.changed(ctx, p)
	if err != nil {
		return "", false, err
	}
	add, drop := s.sort(p, changed, whole)
	if tip != "" && fresh && len(add) == 0 && len(drop) == 0 {
		return tip, false, s.touch(p)
	}
	if err := s.stage(ctx, p, add, drop); err != nil {
		return "", false, err
	}
	next, err := s.line(ctx, call{index: s.indexPath(p.id), args: []string{"write-tree"}})
	if err != nil {
		return "", false, err
	}
	s.notePeople(p, tip, append(add, drop...)) // what is over the cap changes no tree, and is somebody's all the same
	if next != tree {
		if tip, err = s.commit(ctx, p, next, tip, reason); err != nil {
			return "", false, err
		}
		taken = true
	}
	p.meta.Index, p.meta.Tip, p.meta.Tree = stampOf(s.indexPath(p.id)), tip, next
	return tip, taken, s.touch(p)
}

// tip returns the newest commit and its tree, empty when there is none.
func (s *Store) tip(ctx context.Context, p *project) (commit, tree string, err error) {
	commit, err = s.refOf(p.ref())
	if err != nil || commit == "" {
		return "", "", err
	}
	if p.meta.Tip == commit {
		return commit, p.meta.Tree, nil
	}
	tree, err = s.line(ctx, call{args: []string{"log", "-1", "--format=%T", commit}})
	return commit, tree, err
}

// guard refuses a directory with too many files. What the index holds tells without a look at the tree.
func (s *Store) guard(p *project) error {
	f, err := os.Open(s.indexPath(p.id))
	if err == nil {
		defer f.Close()
		head := make([]byte, 12)
		if _, err := f.Read(head); err == nil && bytes.HasPrefix(head, []byte("DIRC")) {
			if n := int(head[8])<<24 | int(head[9])<<16 | int(head[10])<<8 | int(head[11]); n <= s.o.MaxEntries {
				return nil
			}
		}
	}
	_, err = s.look(p.dir)
	if errors.Is(err, errTooMany) {
		return fmt.Errorf("%w: %s has more than %d files", ErrRefused, p.dir, s.o.MaxEntries)
	}
	return err
}

// align makes the index that of the newest commit where there is none.
func (s *Store) align(ctx context.Context, p *project, tip string) error {
	if _, err := os.Stat(s.indexPath(p.id)); err == nil {
		return nil
	}
	// A lock that a killed process left can't be anybody's: the store is ours alone now.
	_ = os.Remove(s.indexPath(p.id) + ".lock")
	args := []string{"read-tree", "--empty"}
	if tip != "" {
		args = []string{"read-tree", tip}
	}
	_, err := s.run(ctx, call{tree: p.dir, index: s.indexPath(p.id), args: args})
	return err
}

// changed lists the paths that differ from the index, new ones included, without what is excluded.
func (s *Store) changed(ctx context.Context, p *project) ([]string, error) {
	_ = os.Remove(s.indexPath(p.id) + ".lock")
	out, err := s.run(ctx, call{tree: p.dir, index: s.indexPath(p.id), slow: true,
		args: []string{"ls-files", "-z", "-m", "-d", "-o", "--exclude-standard"}})
	if err != nil {
		return nil, err
	}
	paths := names(out)
	slices.Sort(paths)
	paths = slices.Compact(paths)
	// A directory is another repository; no picture is taken of it.
	return slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, "/") }), nil
}

// sort divides changed paths into those whose content is taken and those that leave the index: they are gone, or over
// the cap. What can't be read stays as the index has it.
func (s *Store) sort(p *project, changed, whole []string) (add, drop []string) {
	for _, path := range changed {
		full := p.full(path)
		info, err := os.Lstat(full)
		switch {
		case err == nil && !holdable(path, info.Mode()&fs.ModeSymlink != 0):
		case errors.Is(err, fs.ErrNotExist) || isNotDir(err) || err == nil && info.IsDir():
			drop = append(drop, path)
		case err != nil:
			s.o.Log.Warn().Err(err).Str("directory", p.dir).Msg("a file can't be read and is not in the checkpoint")
		case info.Mode()&fs.ModeSymlink != 0:
			add = append(add, path)
		case !info.Mode().IsRegular():
			drop = append(drop, path) // a pipe or the like: what was there is gone
		case s.Exceeds(full) && !slices.Contains(whole, path):
			drop = append(drop, path)
		default:
			f, err := openRegular(full)
			if err != nil {
				s.o.Log.Warn().Err(err).Str("directory", p.dir).Msg("a file can't be read and is not in the checkpoint")
				continue
			}
			_ = f.Close()
			add = append(add, path)
		}
	}
	return add, drop
}

// stage brings the index to the tree. The index never knows names that the store does not have the contents of.
func (s *Store) stage(ctx context.Context, p *project, add, drop []string) error {
	if len(add)+len(drop) == 0 {
		return nil
	}
	kept, err := s.keepContents(ctx, p, add)
	if err != nil {
		return err
	}
	var in bytes.Buffer
	for _, path := range drop {
		fmt.Fprintf(&in, "0 %040d\t%s\x00", 0, path)
	}
	for _, path := range add {
		if o, ok := kept[path]; ok {
			fmt.Fprintf(&in, "%s %s\t%s\x00", o.mode, o.hash, path)
		} else {
			fmt.Fprintf(&in, "0 %040d\t%s\x00", 0, path)
		}
	}
	index := s.indexPath(p.id)
	if _, err := s.run(ctx, call{tree: p.dir, index: index, in: in.Bytes(), slow: true, args: []string{"update-index", "-z", "--index-info"}}); err != nil {
		_ = os.Remove(index) // it is made again from the newest commit
		return err
	}
	// So that the next look at the tree needs no contents. What differs by now is told by the exit code, and found then.
	_, err = s.run(ctx, call{tree: p.dir, index: index, slow: true, args: []string{"update-index", "-q", "--refresh"}})
	var differ *gitError
	if errors.As(err, &differ) && differ.code == 1 {
		return nil
	}
	return err
}

// notePeople marks what changed since the last picture and is not the agent's as a person's change, of the number
// that the coming commit gets. All of the first picture is older than any checkpoint and needs no mark.
func (s *Store) notePeople(p *project, tip string, changed []string) {
	if tip == "" {
		return
	}
	l, noted := s.ledger(p), false
	for _, path := range changed {
		noted = s.noteEdit(p, l, path) || noted
	}
	if noted {
		s.keepLedger(p, l)
	}
}

// keepLedger is saveLedger where a picture is taken all the same.
func (s *Store) keepLedger(p *project, l ledger) {
	if err := s.saveLedger(p, l); err != nil {
		s.o.Log.Warn().Err(err).Str("directory", p.dir).Msg("the ledger of the agent's changes could not be written")
	}
}

// seqMark stands before a checkpoint's number in its message.
const seqMark = "\n\nHerald-Seq: "

// commit adds a tree to the project's line. The ref moves only from the tip that was read.
func (s *Store) commit(ctx context.Context, p *project, tree, tip, reason string) (string, error) {
	p.meta.Seq++
	if err := s.touch(p); err != nil { // before the commit: a number is never given twice
		return "", err
	}
	hash, err := s.commitTree(ctx, tree, tip, subject(reason)+seqMark+strconv.Itoa(p.meta.Seq), s.o.Now())
	if err != nil {
		return "", err
	}
	return hash, s.move(ctx, p, hash, tip)
}

func (s *Store) commitTree(ctx context.Context, tree, parent, message string, at time.Time) (string, error) {
	args := []string{"commit-tree", tree, "-F", "-"}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	date := fmt.Sprintf("%d +0000", at.Unix())
	return s.line(ctx, call{in: []byte(message), args: args, env: []string{"GIT_AUTHOR_DATE=" + date, "GIT_COMMITTER_DATE=" + date}})
}

func (s *Store) move(ctx context.Context, p *project, to, from string) error {
	if from == "" {
		from = strings.Repeat("0", 40)
	}
	_, err := s.run(ctx, call{args: []string{"update-ref", p.ref(), to, from}})
	return err
}

// subject is a reason as one line of at most 120 characters.
func subject(reason string) string {
	words := strings.FieldsFunc(strings.ToValidUTF8(reason, ""), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	r := []rune(strings.Join(words, " "))
	if len(r) > 120 {
		r = append(r[:119], '…')
	}
	if len(r) == 0 {
		return "checkpoint"
	}
	return string(r)
}
