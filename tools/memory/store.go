// Package memory keeps what the agent wants to know in every session: its own notes (MEMORY.md) and
// facts about the person (USER.md), two small files in the profile's home that people may read and edit.
//
// It promises that a change is made as a whole or not at all, that two processes never lose each other's changes, that text
// which tries to command the agent does not get in, and that a file changed by hand into something this package
// can't keep is saved aside and left alone.
package memory

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"

	"herald/tools/spill"
)

// Target names one of the two files.
type Target string

// The targets.
const (
	Memory Target = "memory"
	User   Target = "user"
)

// The default limits, in characters of the whole file with its delimiters.
const (
	DefaultMemoryLimit = 2200
	DefaultUserLimit   = 1375
)

// delimiter separates entries, on its own line.
const delimiter = "\n§\n"

const (
	// lockWait bounds the wait for another process, lockRetry is how often it is tried.
	lockWait  = 10 * time.Second
	lockRetry = 25 * time.Millisecond
	// previewLength is how much of an entry an error shows, in characters.
	previewLength = 80
)

// Options configure a Store.
type Options struct {
	// Dir is where the files are, normally the profile's home. It is made when it is missing.
	Dir string
	// MemoryLimit and UserLimit bound the files, in characters. 0 takes the default, negative switches that file off.
	MemoryLimit, UserLimit int
}

// Store reads and changes the files. Safe for concurrent use, also by several processes.
type Store struct {
	dir    string
	limits map[Target]int
	mu     sync.Mutex
}

// NewStore returns a store. It touches no file.
func NewStore(o Options) *Store {
	s := &Store{dir: o.Dir, limits: map[Target]int{}}
	for _, t := range []struct {
		target       Target
		limit, unset int
	}{{Memory, o.MemoryLimit, DefaultMemoryLimit}, {User, o.UserLimit, DefaultUserLimit}} {
		switch {
		case t.limit == 0:
			s.limits[t.target] = t.unset
		case t.limit > 0:
			s.limits[t.target] = t.limit
		}
	}
	return s
}

// Targets returns the files that are switched on.
func (s *Store) Targets() []Target {
	var on []Target
	for _, t := range []Target{Memory, User} {
		if s.limits[t] > 0 {
			on = append(on, t)
		}
	}
	return on
}

// Path returns where a target's file is.
func (s *Store) Path(t Target) string {
	if t == User {
		return filepath.Join(s.dir, "USER.md")
	}
	return filepath.Join(s.dir, "MEMORY.md")
}

// Entries returns the entries of a file; a missing file has none.
func (s *Store) Entries(t Target) ([]string, error) {
	_, entries, err := s.read(t)
	return entries, err
}

// read returns a file's text and its entries without repetitions.
func (s *Store) read(t Target) (raw string, entries []string, err error) {
	data, err := os.ReadFile(s.Path(t))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("read memory: %w", err)
	}
	raw = strings.ReplaceAll(string(data), "\r\n", "\n")
	return raw, parse(raw), nil
}

// parse splits a file at the lines that are only §.
func parse(raw string) []string {
	var entries []string
	var entry []string
	flush := func() {
		e := strings.TrimSpace(strings.Join(entry, "\n"))
		if e != "" && !slices.Contains(entries, e) {
			entries = append(entries, e)
		}
		entry = nil
	}
	for line := range strings.SplitSeq(raw, "\n") {
		if isDelimiter(line) {
			flush()
			continue
		}
		entry = append(entry, line)
	}
	flush()
	return entries
}

func isDelimiter(line string) bool { return strings.TrimSpace(line) == "§" }

// Operation is one change. OldText is a part of the entry that is meant.
type Operation struct {
	Action  string `json:"action"` // add, replace, remove
	Content string `json:"content"`
	OldText string `json:"old_text"`
}

// The actions.
const (
	Add     = "add"
	Replace = "replace"
	Remove  = "remove"
)

// Refusal is a change that was not made, with what helps to make a better one.
type Refusal struct {
	Reason  string
	Matches []string // entries that OldText fits, shortened
	Entries []string // the current entries, when room is the problem
	Usage   string
}

// Error returns the reason.
func (r *Refusal) Error() string { return r.Reason }

// State is a file after a change.
type State struct {
	Entries int
	Usage   string
	Changed bool
}

// Apply makes all changes or none. Limits apply to the result only, so a batch may make room for itself.
// Errors are *Refusal, or those of the file system.
func (s *Store) Apply(ctx context.Context, t Target, ops []Operation) (State, error) {
	limit, on := s.limits[t]
	if !on {
		return State{}, &Refusal{Reason: fmt.Sprintf("target %q is not available; allowed: %s", t, names(s.Targets()))}
	}
	if err := check(ops); err != nil {
		return State{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	unlock, err := s.lock(ctx, t)
	if err != nil {
		return State{}, err
	}
	defer unlock()

	raw, entries, err := s.read(t)
	if err != nil {
		return State{}, err
	}
	if err := s.drift(t, raw, entries, limit); err != nil {
		return State{}, err
	}
	next := slices.Clone(entries)
	for i, op := range ops {
		if next, err = op.apply(next); err != nil {
			var r *Refusal
			if errors.As(err, &r) && len(ops) > 1 {
				r.Reason = fmt.Sprintf("operation %d of %d: %s; none of them was applied", i+1, len(ops), r.Reason)
			}
			return State{}, err
		}
	}
	if n := size(next); n > limit && n > size(entries) {
		return State{}, &Refusal{
			Reason: fmt.Sprintf("%s would have %d characters, %d over its limit of %d. Shorten or remove entries in the same batch of operations, then add again.",
				t, n, n-limit, limit),
			Entries: entries, Usage: usage(entries, limit),
		}
	}
	state := State{Entries: len(next), Usage: usage(next, limit), Changed: !slices.Equal(next, entries)}
	if !state.Changed {
		return state, nil
	}
	return state, s.write(t, strings.Join(next, delimiter)+"\n")
}

// check refuses what is wrong whatever the file holds.
func check(ops []Operation) error {
	if len(ops) == 0 {
		return &Refusal{Reason: "there is no operation; give action, or operations with at least one entry"}
	}
	for i := range ops {
		op := &ops[i]
		op.Content, op.OldText = strings.TrimSpace(strings.ReplaceAll(op.Content, "\r\n", "\n")), strings.TrimSpace(op.OldText)
		switch op.Action {
		case Add, Replace:
			if op.Content == "" {
				return &Refusal{Reason: fmt.Sprintf("action %s needs content", op.Action)}
			}
			if slices.ContainsFunc(strings.Split(op.Content, "\n"), isDelimiter) {
				return &Refusal{Reason: "content has a line that is only §, which separates entries; write it without that line"}
			}
			if threat := Threat(op.Content); threat != "" {
				return &Refusal{Reason: "content was refused: it " + threat + ". Memory holds facts, not instructions to you."}
			}
		case Remove:
		default:
			return &Refusal{Reason: fmt.Sprintf("action %q is not known; allowed: add, replace, remove", op.Action)}
		}
		if op.Action != Add && op.OldText == "" {
			return &Refusal{Reason: fmt.Sprintf("action %s needs old_text, a part of the entry that is meant", op.Action)}
		}
	}
	return nil
}

// apply returns the entries after one change.
func (op Operation) apply(entries []string) ([]string, error) {
	if op.Action == Add {
		if slices.Contains(entries, op.Content) {
			return entries, nil
		}
		return append(entries, op.Content), nil
	}
	var at []int
	for i, e := range entries {
		if strings.Contains(e, op.OldText) {
			at = append(at, i)
		}
	}
	switch {
	case len(at) == 0:
		return nil, &Refusal{Reason: fmt.Sprintf("no entry contains %q", preview(op.OldText)), Entries: previews(entries)}
	case len(at) > 1:
		r := &Refusal{Reason: fmt.Sprintf("%d entries contain %q; give a longer part of the one that is meant", len(at), preview(op.OldText))}
		for _, i := range at {
			r.Matches = append(r.Matches, preview(entries[i]))
		}
		return nil, r
	}
	if op.Action == Remove {
		return slices.Delete(entries, at[0], at[0]+1), nil
	}
	entries[at[0]] = op.Content
	// Replacing may make two entries the same.
	for i := range entries {
		if i != at[0] && entries[i] == op.Content {
			return slices.Delete(entries, at[0], at[0]+1), nil
		}
	}
	return entries, nil
}

// drift refuses to write over a file that someone changed in a way that parsing and joining would lose, or in which one
// entry is longer than the limit of the whole file. A copy is saved first.
func (s *Store) drift(t Target, raw string, entries []string, limit int) error {
	whole := strings.TrimSpace(raw) == strings.Join(entries, delimiter)
	long := slices.ContainsFunc(entries, func(e string) bool { return utf8.RuneCountInString(e) > limit })
	if whole && !long {
		return nil
	}
	// Named after its content: trying again makes no second copy.
	sum := sha256.Sum256([]byte(raw))
	backup := fmt.Sprintf("%s.bak.%x", s.Path(t), sum[:4])
	if err := spill.WriteExclusive(backup, []byte(raw), true, true); err != nil {
		return fmt.Errorf("save a copy of the changed memory file: %w", err)
	}
	why := "it can't be split into entries and joined again"
	if long {
		why = fmt.Sprintf("one entry is longer than the whole limit of %d characters", limit)
	}
	return &Refusal{Reason: fmt.Sprintf("%s was changed outside of this tool: %s. Nothing was written; a copy is in %s. "+
		"Repair the file (entries separated by a line with only §) and try again.", filepath.Base(s.Path(t)), why, filepath.Base(backup))}
}

// lock keeps other processes out of a file. The lock file stays, since removing it would race.
func (s *Store) lock(ctx context.Context, t Target) (unlock func(), err error) {
	if err := spill.EnsureDir(s.dir, true); err != nil {
		return nil, fmt.Errorf("change memory: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	l := flock.New(s.Path(t)+".lock", flock.SetPermissions(spill.PrivateFile))
	ok, err := l.TryLockContext(ctx, lockRetry)
	if err != nil || !ok {
		return nil, fmt.Errorf("change memory: another process holds %s: %w", l.Path(), err)
	}
	return func() { _ = l.Unlock() }, nil
}

// write replaces a file in one step.
func (s *Store) write(t Target, text string) error {
	path := s.Path(t)
	temp := path + ".new"
	f, err := spill.OpenExclusive(temp, true, true)
	if err != nil {
		return fmt.Errorf("write memory: %w", err)
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
		return fmt.Errorf("write memory: %w", err)
	}
	return nil
}

// size is what counts against a limit, in characters.
func size(entries []string) int {
	return utf8.RuneCountInString(strings.Join(entries, delimiter))
}

// usage is "P% — used/limit chars".
func usage(entries []string, limit int) string {
	n := size(entries)
	return fmt.Sprintf("%d%% — %d/%d chars", n*100/limit, n, limit)
}

func preview(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= previewLength {
		return s
	}
	return string([]rune(s)[:previewLength-1]) + "…"
}

func previews(entries []string) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = preview(e)
	}
	return out
}

func names(targets []Target) string {
	var out []string
	for _, t := range targets {
		out = append(out, string(t))
	}
	return strings.Join(out, ", ")
}
