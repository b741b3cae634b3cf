package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

	"herald/tools/spill"
)

// The bounds of stored results.
const (
	// DefaultMaxResult is how many characters of a result go to the model when its tool sets no limit.
	DefaultMaxResult = 100_000
	// ResultRetention is how long a stored result is kept.
	ResultRetention = 24 * time.Hour
	// DefaultPreview is how many characters of a stored result the model sees at once.
	DefaultPreview = 2_000
	// storedFrame is about how long the words around a preview are, in characters.
	storedFrame = 500
	// minInline is the least number of characters that is kept of a result that can't be stored.
	minInline = 2_000
	// resultStem bounds the file name of a stored result without its extension, in bytes.
	resultStem = 120
	// pruneEvery is the least time between two looks for expired results when one is saved.
	pruneEvery = time.Hour
)

// ResultOptions configure a ResultStore. The zero value is usable.
type ResultOptions struct {
	// Clock returns the time; nil takes time.Now.
	Clock func() time.Time
	// Publish makes a stored file readable where the caller's tools run, such as in a container, and
	// returns its path there. Nil: tools run on this machine and the stored path is right. On an error the
	// model gets a shortened result instead.
	Publish func(ctx context.Context, caller Caller, path string) (visible string, err error)
	// Preview is how many characters of a stored result the model sees at once; 0 takes DefaultPreview, and
	// less than 0 shows none.
	Preview int
}

// ResultStore keeps results that are too long for a model as files that only the owner can read. Safe for
// concurrent use.
type ResultStore struct {
	dir     string
	clock   func() time.Time
	publish func(context.Context, Caller, string) (string, error)
	preview int

	mu     sync.Mutex
	pruned time.Time
}

// NewResultStore returns a store in dir, which is made at the first use.
func NewResultStore(dir string, o ResultOptions) *ResultStore {
	clock := o.Clock
	if clock == nil {
		clock = time.Now
	}
	preview := o.Preview
	if preview == 0 {
		preview = DefaultPreview
	}
	return &ResultStore{dir: dir, clock: clock, publish: o.Publish, preview: max(0, preview)}
}

// Save writes content under a name made from id and returns its path. A second one with the same id replaces
// the first. The size on disk is checked; an incomplete file is removed. Now and then expired files are removed too.
func (s *ResultStore) Save(id, content string) (path string, err error) {
	if err := spill.EnsureDir(s.dir, true); err != nil {
		return "", fmt.Errorf("store result: %w", err)
	}
	s.pruneSometimes()
	path = filepath.Join(s.dir, resultName(id)+".txt")
	if err := spill.WriteExclusive(path, []byte(content), true, true); err != nil {
		return "", fmt.Errorf("store result: %w", err)
	}
	info, err := os.Lstat(path)
	if err == nil && info.Size() != int64(len(content)) {
		err = fmt.Errorf("%s has %d of %d bytes", path, info.Size(), len(content))
	}
	if err != nil {
		_ = os.Remove(path)
		return "", fmt.Errorf("store result: %w", err)
	}
	return path, nil
}

// Prune removes results that are older than ResultRetention and returns how many. A missing folder is empty.
func (s *ResultStore) Prune() (removed int, err error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("prune stored results: %w", err)
	}
	limit := s.clock().Add(-ResultRetention)
	var errs []error
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.IsDir() || !strings.HasSuffix(e.Name(), ".txt") || !info.ModTime().Before(limit) {
			continue
		}
		if err := os.Remove(filepath.Join(s.dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
			continue
		}
		removed++
	}
	if err := errors.Join(errs...); err != nil {
		return removed, fmt.Errorf("prune stored results: %w", err)
	}
	return removed, nil
}

func (s *ResultStore) pruneSometimes() {
	now := s.clock()
	s.mu.Lock()
	due := now.Sub(s.pruned) >= pruneEvery
	if due {
		s.pruned = now
	}
	s.mu.Unlock()
	if due {
		_, _ = s.Prune() // a file that was left behind is tried again within the hour
	}
}

// visible returns the path that the caller's tools can read.
func (s *ResultStore) visible(ctx context.Context, caller Caller, path string) (string, error) {
	if s.publish == nil {
		return path, nil
	}
	return s.publish(ctx, caller, path)
}

// resultName turns an id into a file name: letters, digits, dot, dash and underscore only, never a leading
// dot. A name that had to change carries a hash of the id, so that two ids never share it.
func resultName(id string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, id)
	if strings.HasPrefix(safe, ".") {
		safe = "_" + safe[1:]
	}
	if len(safe) > resultStem {
		safe = safe[:resultStem]
	}
	if safe == id && safe != "" {
		return safe
	}
	sum := sha256.Sum256([]byte(id))
	return safe + "-" + hex.EncodeToString(sum[:])[:12]
}

// preview is how many characters of a stored result are shown.
func (b *Bus) preview() int {
	if b.o.Results == nil {
		return DefaultPreview
	}
	return b.o.Results.preview
}

// persistedBlock is what a model sees of a stored result, its first characters included. hint tells how to read
// the rest.
func persistedBlock(content, path string, first int, hint string) string {
	preview := lineCut(content, first)
	lines := strings.Count(content, "\n") + 1
	var b strings.Builder
	fmt.Fprintf(&b, "<persisted-output>\nThe result is too long to show here: %d characters in %d lines (%d bytes).\n",
		utf8.RuneCountInString(content), lines, len(content))
	fmt.Fprintf(&b, "The whole result is in: %s\n%s\n", path, hint)
	if preview != "" {
		fmt.Fprintf(&b, "\nIts first %d characters:\n%s\n", utf8.RuneCountInString(preview), preview)
	}
	b.WriteString("</persisted-output>")
	return b.String()
}

// inlineCut returns the head and the tail of a result that could not be stored.
func inlineCut(content string, limit int, why string) string {
	n := utf8.RuneCountInString(content)
	head := limit * 7 / 10
	tail := limit - head
	return fmt.Sprintf("%s\n\n[... %d of %d characters left out here: the result is too long, and %s. Ask for less at once. ...]\n\n%s",
		firstRunes(content, head), n-head-tail, n, why, lastRunes(content, tail))
}

// lineCut returns at most n characters of s, cut behind the last line break in them if there is one beyond their half.
func lineCut(s string, n int) string {
	head := firstRunes(s, n)
	if len(head) == len(s) {
		return s
	}
	if i := strings.LastIndexByte(head, '\n'); i > len(head)/2 {
		return head[:i]
	}
	return head
}

// firstRunes returns the first n characters of s.
func firstRunes(s string, n int) string {
	if n <= 0 {
		return ""
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// lastRunes returns the last n characters of s.
func lastRunes(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}

// pagingHint tells how to read a stored result. It names a tool only if the session has one for it.
func pagingHint(caller Caller, registry *Registry) string {
	const reader = "read_file"
	if _, ok := registry.Lookup(reader); ok && (caller.Tools == nil || slices.Contains(caller.Tools, reader)) {
		return "Read it in pages with " + reader + " (offset and limit count lines); don't ask for all of it at once."
	}
	return "Read it in pages; don't ask for all of it at once."
}
