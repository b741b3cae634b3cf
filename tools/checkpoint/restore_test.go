package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/tools/needtest"
)

// bench is a project with checkpoints.
type bench struct {
	t     testing.TB
	store *Store
	base  string
	dir   string
	now   time.Time
	turn  int
}

// newBench is the common fixture: main.py and README.md.
func newBench(t testing.TB, o Options) *bench {
	b := &bench{t: t, base: t.TempDir(), now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	b.dir = filepath.Join(b.base, "project")
	require.NoError(t, os.Mkdir(b.dir, 0o755))
	o.Dir, o.Enabled, o.Home = filepath.Join(b.base, "checkpoints"), true, filepath.Join(b.base, "home")
	o.Now = func() time.Time { return b.now }
	if b.store = Open(o); !b.store.On() {
		needtest.Lacking(t, "git is not installed")
	}
	b.write("main.py", "print('hello')\n")
	b.write("README.md", "# Project\n")
	return b
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) write(name, text string) {
	b.t.Helper()
	require.NoError(b.t, os.MkdirAll(filepath.Dir(b.path(name)), 0o755))
	require.NoError(b.t, os.WriteFile(b.path(name), []byte(text), 0o644))
}

func (b *bench) big(name string, size int, fill string) {
	b.t.Helper()
	require.NoError(b.t, os.WriteFile(b.path(name), bytes.Repeat([]byte(fill), size), 0o644))
}

// agent is a write that the ledger knows of.
func (b *bench) agent(name, text string) {
	b.write(name, text)
	b.record(name)
}

func (b *bench) record(name string) {
	b.t.Helper()
	require.NoError(b.t, b.store.RecordWrite(b.t.Context(), b.path(name)))
}

// take takes a checkpoint as the first call of a turn does.
func (b *bench) take() {
	b.t.Helper()
	b.turn++
	b.now = b.now.Add(time.Minute)
	_, err := b.store.Take(b.t.Context(), b.dir, "turn"+string(rune('0'+b.turn%10))+b.now.String(), "before write_file")
	require.NoError(b.t, err)
}

func (b *bench) back(to Target) Result {
	b.t.Helper()
	res, err := b.store.Rollback(b.t.Context(), b.dir, to)
	require.NoError(b.t, err)
	return res
}

func (b *bench) read(name string) string {
	data, err := os.ReadFile(b.path(name))
	if errors.Is(err, os.ErrNotExist) {
		return "<gone>"
	}
	require.NoError(b.t, err)
	return string(data)
}

// keys are the keys of the result as callers see it.
func (b *bench) keys(r Result) map[string]any {
	data, err := json.Marshal(r)
	require.NoError(b.t, err)
	var m map[string]any
	require.NoError(b.t, json.Unmarshal(data, &m))
	return m
}

const mib = 1 << 20

// TestSafeRestore is the table B8 of the specification, row by row.
func TestSafeRestore(t *testing.T) {
	safe := Target{Ref: "1"}
	t.Run("1 the agent's write goes, the person's edit stays", func(t *testing.T) {
		b := newBench(t, Options{})
		b.take()
		b.agent("main.py", "broken")
		b.write("README.md", "# Mine")
		res := b.back(safe)
		require.Equal(t, "print('hello')\n", b.read("main.py"))
		require.Equal(t, "# Mine", b.read("README.md"))
		require.Equal(t, []string{"main.py"}, res.Restored)
		require.Equal(t, []string{"README.md"}, res.Edited)
	})
	t.Run("2 a person edits what the agent wrote", func(t *testing.T) {
		b := newBench(t, Options{})
		b.take()
		b.agent("main.py", "broken")
		b.write("main.py", "mended by hand")
		res := b.back(safe)
		require.Equal(t, "mended by hand", b.read("main.py"))
		require.Equal(t, []string{"main.py"}, res.Edited)
		require.Empty(t, res.Restored)
		require.Empty(t, res.Backup, "an empty plan takes no checkpoint")
	})
	t.Run("3 written and deleted by the agent", func(t *testing.T) {
		b := newBench(t, Options{})
		b.take()
		b.agent("main.py", "broken")
		require.NoError(t, os.Remove(b.path("main.py")))
		b.back(safe)
		require.Equal(t, "print('hello')\n", b.read("main.py"))
	})
	t.Run("4 without a ledger everything comes back", func(t *testing.T) {
		b := newBench(t, Options{})
		b.take()
		b.write("main.py", "changed")
		keys := b.keys(b.back(safe))
		require.Equal(t, "print('hello')\n", b.read("main.py"))
		require.NotContains(t, keys, "skipped_user_edits")
		require.NotContains(t, keys, "restored_files")
	})
	t.Run("5 what the agent created goes", func(t *testing.T) {
		b := newBench(t, Options{})
		b.take()
		b.agent("agent.txt", "mine")
		b.write("README.md", "# Mine")
		res := b.back(safe)
		require.Equal(t, "<gone>", b.read("agent.txt"))
		require.Equal(t, []string{"agent.txt"}, res.Restored)
		require.Equal(t, "# Mine", b.read("README.md"))
	})
	t.Run("6 a file over the cap is kept and named", func(t *testing.T) {
		b := newBench(t, Options{MaxFile: mib})
		b.big("corpus.bin", 2*mib, "u")
		b.take()
		b.big("corpus.bin", 2*mib, "a")
		b.record("corpus.bin")
		res := b.back(safe)
		require.Equal(t, byte('a'), b.read("corpus.bin")[0])
		require.Equal(t, []string{"corpus.bin"}, res.Oversize)
		require.Empty(t, res.Restored)
	})
	t.Run("7 and does not keep the rest back", func(t *testing.T) {
		b := newBench(t, Options{MaxFile: mib})
		b.big("corpus.bin", 2*mib, "u")
		b.take()
		b.big("corpus.bin", 2*mib, "a")
		b.record("corpus.bin")
		b.agent("main.py", "broken")
		res := b.back(safe)
		require.Equal(t, []string{"main.py"}, res.Restored)
		require.Equal(t, "print('hello')\n", b.read("main.py"))
	})
	t.Run("8 a small file that grew past the cap comes back", func(t *testing.T) {
		b := newBench(t, Options{MaxFile: mib})
		b.write("data.txt", "small")
		b.take()
		b.big("data.txt", 2*mib, "a")
		b.record("data.txt")
		res := b.back(safe)
		require.Equal(t, "small", b.read("data.txt"))
		require.Equal(t, []string{"data.txt"}, res.Restored)
		require.Empty(t, res.Oversize)
		_, err := b.store.Undo(t.Context(), b.dir, "")
		require.NoError(t, err)
		require.Len(t, b.read("data.txt"), 2*mib, "the backup holds what is over the cap as well")
	})
	t.Run("9 the cap itself is not over the cap", func(t *testing.T) {
		b := newBench(t, Options{MaxFile: mib})
		b.big("at_cap.bin", mib, "u")
		b.big("over_cap.bin", mib+1, "u")
		b.take()
		b.big("at_cap.bin", mib, "a")
		b.big("over_cap.bin", mib+1, "a")
		b.record("at_cap.bin")
		b.record("over_cap.bin")
		res := b.back(safe)
		require.Equal(t, []string{"at_cap.bin"}, res.Restored)
		require.Equal(t, byte('u'), b.read("at_cap.bin")[0])
		require.Equal(t, []string{"over_cap.bin"}, res.Oversize)
		require.Equal(t, byte('a'), b.read("over_cap.bin")[0])
	})
	t.Run("10 a small file of the agent's goes", func(t *testing.T) {
		b := newBench(t, Options{MaxFile: mib})
		b.take()
		b.agent("scratch.txt", "x")
		keys := b.keys(b.back(safe))
		require.Equal(t, "<gone>", b.read("scratch.txt"))
		require.Equal(t, []any{"scratch.txt"}, keys["restored_files"])
		require.Equal(t, []any{}, keys["skipped_oversize"])
		require.NotContains(t, keys, "failed_deletes")
	})
	t.Run("11 what can't be removed is told", func(t *testing.T) {
		b := newBench(t, Options{})
		b.take()
		b.agent("stubborn.txt", "x")
		b.agent("main.py", "broken")
		defer func(old func(*os.Root, string) error) { remove = old }(remove)
		remove = func(*os.Root, string) error { return os.ErrPermission }
		res := b.back(safe)
		require.Equal(t, "x", b.read("stubborn.txt"))
		require.Equal(t, []string{"main.py"}, res.Restored)
		require.Equal(t, []string{"stubborn.txt"}, res.FailedDeletes)
	})
	t.Run("12 all means all", func(t *testing.T) {
		b := newBench(t, Options{})
		b.take()
		b.agent("main.py", "broken")
		b.write("README.md", "# Mine")
		keys := b.keys(b.back(Target{Ref: "1", All: true}))
		require.Equal(t, "print('hello')\n", b.read("main.py"))
		require.Equal(t, "# Project\n", b.read("README.md"))
		require.NotContains(t, keys, "restored_files")
	})
	t.Run("13 switched off it does nothing", func(t *testing.T) {
		dir := t.TempDir()
		s := Open(Options{Dir: filepath.Join(dir, "checkpoints")})
		require.NoError(t, s.RecordWrite(t.Context(), filepath.Join(dir, "a")))
		_, err := s.Take(t.Context(), dir, "t", "x")
		require.NoError(t, err)
		w, err := s.Watch(t.Context(), dir)
		require.NoError(t, err)
		_, err = w.End(t.Context())
		require.NoError(t, err)
		_, err = s.Rollback(t.Context(), dir, safe)
		require.ErrorIs(t, err, ErrOff)
		_, err = os.Stat(filepath.Join(dir, "checkpoints"))
		require.ErrorIs(t, err, os.ErrNotExist)
	})
}

// A command's changes are the agent's too, and a person's edit between two calls is not.
func TestWatch_AttributesCommands(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.write("keep/notes.txt", "mine")
	call := func(do func()) []string {
		w, err := b.store.Watch(t.Context(), b.dir)
		require.NoError(t, err)
		do()
		changed, err := w.End(t.Context())
		require.NoError(t, err)
		slices.Sort(changed)
		return changed
	}
	b.take()
	require.Equal(t, []string{"README.md", "log.txt", "main.py", "moved.md"}, call(func() {
		b.write("log.txt", "made")
		b.write("main.py", "sed was here")
		require.NoError(t, os.Rename(b.path("README.md"), b.path("moved.md")))
	}))
	require.Empty(t, call(func() {}))
	b.write("log.txt", "my own line")
	b.write("keep/notes.txt", "still mine")
	call(func() { b.write("main.py", "again") })
	res := b.back(Target{Ref: "1"})
	require.Equal(t, []string{"README.md", "main.py", "moved.md"}, res.Restored)
	require.Equal(t, []string{"keep/notes.txt", "log.txt"}, res.Edited)
	require.Equal(t, "print('hello')\n", b.read("main.py"))
	require.Equal(t, "# Project\n", b.read("README.md"))
	require.Equal(t, "<gone>", b.read("moved.md"))

	undone, err := b.store.Undo(t.Context(), b.dir, "")
	require.NoError(t, err)
	require.Equal(t, []string{"README.md", "main.py", "moved.md"}, undone.Restored)
	require.Equal(t, "again", b.read("main.py"))
	require.Equal(t, "<gone>", b.read("README.md"))
	require.Equal(t, "# Project\n", b.read("moved.md"))
}

// An edit that lies between two of the agent's is not lost by going back before it.
func TestRollback_KeepsAnEditBetweenTwoWrites(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	write := func(name, text string) {
		w, err := b.store.Watch(t.Context(), b.dir)
		require.NoError(t, err)
		b.write(name, text)
		_, err = w.End(t.Context())
		require.NoError(t, err)
	}
	b.take()
	write("main.py", "one")
	b.write("main.py", "one, and my hour of work")
	b.write("README.md", "mine, then the agent's")
	b.take()
	write("main.py", "two")
	write("README.md", "the agent's")
	res := b.back(Target{Ref: "2"})
	require.Equal(t, []string{"README.md", "main.py"}, res.Edited)
	require.Equal(t, "two", b.read("main.py"))
	res = b.back(Target{Ref: "1"})
	require.Equal(t, []string{"README.md", "main.py"}, res.Restored)
	require.Equal(t, "one, and my hour of work", b.read("main.py"))
	require.Equal(t, "mine, then the agent's", b.read("README.md"))
}

// What a person writes after a rollback is not lost by taking the rollback back.
func TestUndo_KeepsWhatChangedSince(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.take()
	b.agent("main.py", "broken")
	b.agent("made.txt", "x")
	b.back(Target{Ref: "1"})
	b.write("main.py", "written after the rollback")
	res, err := b.store.Undo(t.Context(), b.dir, "")
	require.NoError(t, err)
	require.Equal(t, []string{"main.py"}, res.Edited)
	require.Equal(t, []string{"made.txt"}, res.Restored)
	require.Equal(t, "written after the rollback", b.read("main.py"))
	require.Equal(t, "x", b.read("made.txt"))
}

// The same wish is done once, also when the process that did it was killed before it could say so.
func TestRollback_TheSameWishOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	b.take()
	b.agent("main.py", "broken")
	first := b.back(Target{Ref: "1", Key: "inbox/7"})
	b.agent("main.py", "broken again")
	again := b.back(Target{Ref: "1", Key: "inbox/7"})
	require.Equal(t, first, again)
	require.Equal(t, "broken again", b.read("main.py"))
	b.back(Target{Ref: "2", Key: "inbox/8"})
	require.Equal(t, "print('hello')\n", b.read("main.py"))
}

// A person removes a file that is over the cap, which no picture shows; what the agent puts in its place later is not taken
// for something that was never theirs.
func TestTake_NotesWhatNoPictureShows(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{MaxFile: 10})
	b.write("corpus.bin", "more than ten bytes")
	b.take()
	b.call(func() {})
	require.NoError(t, os.Remove(b.path("corpus.bin")))
	b.take()
	b.call(func() { b.write("corpus.bin", "small") })
	res := b.back(Target{Ref: "1"})
	require.Contains(t, res.Edited, "corpus.bin")
	require.Equal(t, "small", b.read("corpus.bin"))
}
