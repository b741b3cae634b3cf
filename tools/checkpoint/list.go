package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// List returns the checkpoints of a directory, newest first. A directory without any returns none and no error.
func (s *Store) List(ctx context.Context, dir string) (list []Checkpoint, err error) {
	real, err := s.Dir(dir)
	if err != nil {
		return nil, err
	}
	err = s.locked(ctx, 0, func(ctx context.Context) error {
		p, err := s.project(real)
		if err != nil {
			return err
		}
		if list, err = s.history(ctx, p); err != nil || len(list) == 0 {
			return err
		}
		return s.counts(ctx, p, list)
	})
	return list, err
}

// Dirs returns the directories that have checkpoints, the one that was used last first.
func (s *Store) Dirs(ctx context.Context) (dirs []string, err error) {
	err = s.locked(ctx, 0, func(ctx context.Context) error {
		metas, err := s.metas()
		for _, m := range metas {
			dirs = append(dirs, m.Dir)
		}
		return err
	})
	return dirs, err
}

// Latest returns the directory of these where the agent changed something last, the first one where that is in none.
func (s *Store) Latest(dirs ...string) (latest string) {
	var at time.Time
	for i, dir := range dirs {
		if i == 0 {
			latest = dir
		}
		real, err := s.Dir(dir)
		if err != nil || !s.On() || !s.known(real) {
			continue
		}
		p, err := s.project(real)
		if err != nil {
			continue
		}
		for _, e := range s.ledger(p) {
			if e.State != "" && e.At.After(at) {
				latest, at = dir, e.At
			}
		}
	}
	return latest
}

// history reads a project's checkpoints without counts, newest first.
func (s *Store) history(ctx context.Context, p *project) ([]Checkpoint, error) {
	tip, err := s.refOf(p.ref())
	if err != nil || tip == "" {
		return nil, err
	}
	out, err := s.run(ctx, call{args: []string{"log", "-z", "--first-parent", "--format=%H%x1f%ct%x1f%B", tip}})
	if err != nil {
		return nil, err
	}
	var list []Checkpoint
	for _, record := range names(out) {
		fields := strings.SplitN(record, "\x1f", 3)
		if len(fields) != 3 || len(fields[0]) < 8 {
			return nil, fmt.Errorf("git log answered %q", record)
		}
		seconds, _ := strconv.ParseInt(fields[1], 10, 64)
		reason, seq, _ := strings.Cut(fields[2], seqMark)
		c := Checkpoint{Hash: fields[0], Short: fields[0][:8], At: time.Unix(seconds, 0).UTC(), Reason: strings.TrimSpace(reason), Dir: p.dir}
		c.seq, _ = strconv.Atoi(strings.TrimSpace(seq))
		list = append(list, c)
	}
	return list, nil
}

// counts fills in how much changed from each checkpoint to the next.
func (s *Store) counts(ctx context.Context, p *project, list []Checkpoint) error {
	out, err := s.run(ctx, call{slow: true, args: []string{"log", "--first-parent", "--shortstat", "--no-renames", "--format=%x00%H", list[0].Hash}})
	if err != nil {
		return err
	}
	older := map[string]int{} // by the newer commit: the index of the one before it
	for i := range list[:len(list)-1] {
		older[list[i].Hash] = i + 1
	}
	for _, record := range strings.Split(string(out), "\x00") {
		hash, stat, _ := strings.Cut(record, "\n")
		if i, ok := older[strings.TrimSpace(hash)]; ok {
			list[i].count(stat)
		}
	}
	stat, _, err := s.against(ctx, p, list[0].Hash, "--shortstat")
	list[0].count(stat)
	return err
}

var shortstat = regexp.MustCompile(`(\d+) (file|insertion|deletion)`)

func (c *Checkpoint) count(stat string) {
	for _, m := range shortstat.FindAllStringSubmatch(stat, -1) {
		n, _ := strconv.Atoi(m[1])
		switch m[2] {
		case "file":
			c.Files = n
		case "insertion":
			c.Insertions = n
		case "deletion":
			c.Deletions = n
		}
	}
}

// maxDiff bounds a diff, in bytes.
const maxDiff = 256 << 10

// Diff is what has changed from a checkpoint to the tree as it is.
type Diff struct {
	Stat string `json:"stat"`
	Diff string `json:"diff"`
	// Empty is true when there is no checkpoint to compare with.
	Empty bool `json:"empty,omitempty"`
}

// Diff compares the tree with a checkpoint: its number in List from 1, or a hash.
func (s *Store) Diff(ctx context.Context, dir, ref string) (d Diff, err error) {
	return s.diff(ctx, dir, func(list []Checkpoint) (Checkpoint, error) { return find(list, dir, ref) })
}

// SessionDiff compares the tree with the oldest checkpoint that is kept.
func (s *Store) SessionDiff(ctx context.Context, dir string) (Diff, error) {
	d, err := s.diff(ctx, dir, func(list []Checkpoint) (Checkpoint, error) {
		if len(list) == 0 {
			return Checkpoint{}, ErrNone
		}
		return list[len(list)-1], nil
	})
	if errors.Is(err, ErrNone) {
		return Diff{Empty: true}, nil
	}
	return d, err
}

func (s *Store) diff(ctx context.Context, dir string, choose func([]Checkpoint) (Checkpoint, error)) (d Diff, err error) {
	real, err := s.Dir(dir)
	if err != nil {
		return d, err
	}
	err = s.locked(ctx, 0, func(ctx context.Context) error {
		p, err := s.project(real)
		if err != nil {
			return err
		}
		list, err := s.history(ctx, p)
		if err != nil {
			return err
		}
		c, err := choose(list)
		if err != nil {
			return err
		}
		d.Stat, d.Diff, err = s.against(ctx, p, c.Hash, "--stat")
		return err
	})
	return d, err
}

// against compares the tree with a commit, by an index of its own. The diff is read only beside --stat.
func (s *Store) against(ctx context.Context, p *project, commit, stat string) (statText, diff string, err error) {
	own := *p
	own.id = p.id + ".look"
	defer func() { _ = os.Remove(s.indexPath(own.id)) }()
	if err := s.align(ctx, p, commit); err != nil {
		return "", "", err
	}
	data, err := os.ReadFile(s.indexPath(p.id))
	if err != nil {
		return "", "", err
	}
	if err := s.writeAtomic(s.indexPath(own.id), data); err != nil {
		return "", "", err
	}
	changed, err := s.changed(ctx, &own)
	if err != nil {
		return "", "", err
	}
	add, drop := s.sort(&own, changed, nil)
	if err := s.stage(ctx, &own, add, drop); err != nil {
		return "", "", err
	}
	args := []string{"diff", "--cached", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"}
	out, err := s.run(ctx, call{index: s.indexPath(own.id), slow: true, args: append(args, stat, commit)})
	if err != nil || stat != "--stat" {
		return string(out), "", err
	}
	text, err := s.run(ctx, call{index: s.indexPath(own.id), slow: true, args: append(args, commit)})
	if len(text) > maxDiff {
		text = append(text[:maxDiff], "\n[the rest of the diff is left out]\n"...)
	}
	return strings.ToValidUTF8(string(out), "\uFFFD"), strings.ToValidUTF8(string(text), "\uFFFD"), err
}

var hashForm = regexp.MustCompile(`^[0-9a-fA-F]{4,64}$`)

// RangeError says that a name is none of a checkpoint.
type RangeError struct {
	Ref string
	Dir string
	N   int // how many there are
}

// Error tells the valid range.
func (e *RangeError) Error() string {
	return fmt.Sprintf("there is no checkpoint %q of %s: want 1 to %d, or a hash of the list", e.Ref, e.Dir, e.N)
}

// find resolves a number from 1, or the beginning of a hash of at least four digits.
func find(list []Checkpoint, dir, ref string) (Checkpoint, error) {
	if len(list) == 0 {
		return Checkpoint{}, fmt.Errorf("%w of %s", ErrNone, dir)
	}
	if n, err := strconv.Atoi(ref); err == nil && len(ref) < 4 && n >= 1 && n <= len(list) { // four digits may be a hash
		return list[n-1], nil
	}
	var found []Checkpoint
	if hashForm.MatchString(ref) {
		for _, c := range list {
			if strings.HasPrefix(c.Hash, strings.ToLower(ref)) {
				found = append(found, c)
			}
		}
	}
	if len(found) != 1 {
		return Checkpoint{}, &RangeError{ref, dir, len(list)}
	}
	return found[0], nil
}

// local checks a file's name: relative, and inside the directory after links are followed.
func local(dir, file string) (string, error) {
	if filepath.IsAbs(file) {
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			return "", fmt.Errorf("file %q: want a path inside %s", file, dir)
		}
		file = rel
	}
	file = filepath.Clean(file)
	if !filepath.IsLocal(file) || file == "." {
		return "", fmt.Errorf("file %q: want a path inside %s", file, dir)
	}
	if real := realDir(filepath.Dir(filepath.Join(dir, file))); !within(real, dir) {
		return "", fmt.Errorf("file %q leads out of %s", file, dir)
	}
	return file, nil
}
