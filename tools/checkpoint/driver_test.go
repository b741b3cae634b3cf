package checkpoint

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	histories = flag.Int("histories", 200, "how many random histories TestDriver runs")
	firstSeed = flag.Int64("seed", 1, "the seed of the first one")
)

// TestDriver runs random histories of an agent and a person in one tree and checks after each rollback: a person's edit
// is where it was, no byte is gone that no checkpoint holds, the result says what the disk shows, and undo restores
// the tree exactly.
func TestDriver(t *testing.T) {
	n := *histories
	if testing.Short() {
		n = 20
	}
	for i := range n {
		seed := *firstSeed + int64(i)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			d := &driver{bench: newBench(t, Options{MaxFile: 4 << 10, MaxSnapshots: 6}), r: rand.New(rand.NewPCG(uint64(seed), 7)),
				edited: map[string]int{}}
			d.people(func() {
				d.write(".gitignore", "ignored*\nsecret/\n")
				for range 6 {
					d.change()
				}
			})
			for range 12 {
				switch d.r.IntN(6) {
				case 0, 1, 2:
					d.agentTurn()
				case 3, 4:
					d.people(d.change)
				default:
					d.rollback()
				}
			}
			d.rollback()
			require.NoError(t, d.store.Verify(t.Context()))
		})
	}
}

// driver is one history.
type driver struct {
	*bench
	r      *rand.Rand
	op     int
	edited map[string]int // the number of the operation in which a person last changed a path
	taken  []int          // of each checkpoint, oldest first: the operation after which it was taken
}

var driverNames = []string{"a.txt", "b.txt", "src/c.go", "src/deep/d.go", "new\nline.txt", "ünï.txt", "x\xff.bin", " lead", "-dash", "sub/e", "ignored.tmp",
	"secret/key", "node_modules/m.js", "app.log"}

func (d *driver) name() string { return driverNames[d.r.IntN(len(driverNames))] }

// look is the whole tree: kind, permission bits and content by path.
func (d *driver) look() map[string]string {
	tree := map[string]string{}
	require.NoError(d.t, filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		require.NoError(d.t, err)
		if e.IsDir() {
			return nil
		}
		rel, _ := filepath.Rel(d.dir, path)
		info, err := e.Info()
		require.NoError(d.t, err)
		if info.Mode()&fs.ModeSymlink != 0 {
			target, _ := os.Readlink(path)
			tree[rel] = "link " + target
			return nil
		}
		if !info.Mode().IsRegular() || info.Mode().Perm() == 0 {
			tree[rel] = fmt.Sprintf("%v %v", info.Mode(), info.ModTime())
			return nil
		}
		data, err := os.ReadFile(path)
		require.NoError(d.t, err)
		if len(data) > 64 {
			data = fmt.Appendf(nil, "%d bytes %.8x", len(data), sha256.Sum256(data))
		}
		tree[rel] = fmt.Sprintf("%v %s", info.Mode(), data)
		return nil
	}))
	return tree
}

// people runs what a person does and remembers which paths that changed.
func (d *driver) people(do func()) {
	before := d.look()
	do()
	d.op++
	after := d.look()
	for path := range merged(before, after) {
		if content(before[path]) != content(after[path]) {
			d.edited[path] = d.op
		}
	}
}

// content is "" for a pipe as for what is not there: neither holds anything that could be lost.
func content(look string) string {
	if strings.HasPrefix(look, "p") {
		return ""
	}
	return look
}

func merged(a, b map[string]string) map[string]bool {
	m := map[string]bool{}
	for k := range a {
		m[k] = true
	}
	for k := range b {
		m[k] = true
	}
	return m
}

// change does one random thing to the tree.
func (d *driver) change() {
	name := d.name()
	full := d.path(name)
	if !d.free(name) {
		return
	}
	switch d.r.IntN(11) {
	case 0:
		_ = os.Remove(full)
	case 1: // grows over the cap
		d.put(name, strings.Repeat(fmt.Sprint(d.r.IntN(10)), 5<<10))
	case 2: // just at the cap, and one over
		d.put(name, strings.Repeat("c", 4<<10+d.r.IntN(2)))
	case 3:
		_ = os.Remove(full)
		require.NoError(d.t, os.MkdirAll(filepath.Dir(full), 0o755))
		require.NoError(d.t, os.Symlink(fmt.Sprintf("target-%d", d.r.IntN(3)), full))
	case 4:
		if to := d.name(); d.free(to) {
			if info, err := os.Lstat(full); err == nil && !info.IsDir() {
				require.NoError(d.t, os.MkdirAll(filepath.Dir(d.path(to)), 0o755))
				require.NoError(d.t, os.Rename(full, d.path(to)))
			}
		}
	case 5:
		if info, err := os.Lstat(full); err == nil && info.Mode().IsRegular() {
			require.NoError(d.t, os.Chmod(full, info.Mode().Perm()^0o111))
		}
	case 6: // can't be read: for root that is a pipe, which has no content
		if os.Geteuid() != 0 {
			if info, err := os.Lstat(full); err == nil && info.Mode().IsRegular() {
				require.NoError(d.t, os.Chmod(full, 0))
			}
			return
		}
		_ = os.Remove(full)
		require.NoError(d.t, os.MkdirAll(filepath.Dir(full), 0o755))
		require.NoError(d.t, syscall.Mkfifo(full, 0o600))
	case 7:
		d.put(name, string([]byte{0, 1, 2, byte(d.r.IntN(256)), '\r', '\n'}))
	default:
		d.put(name, fmt.Sprintf("text %d\r\nof the file\n", d.r.IntN(1000)))
	}
}

// free reports whether a name can be a file: nothing above it is one, and it is no directory.
func (d *driver) free(name string) bool {
	for at := filepath.Dir(name); at != "."; at = filepath.Dir(at) {
		if info, err := os.Lstat(d.path(at)); err == nil && !info.IsDir() {
			return false
		}
	}
	info, err := os.Lstat(d.path(name))
	return err != nil || !info.IsDir()
}

func (d *driver) put(name, text string) {
	if info, err := os.Lstat(d.path(name)); err == nil && (!info.Mode().IsRegular() || info.Mode().Perm() == 0) {
		require.NoError(d.t, os.Remove(d.path(name)))
	}
	require.NoError(d.t, os.MkdirAll(filepath.Dir(d.path(name)), 0o755))
	require.NoError(d.t, os.WriteFile(d.path(name), []byte(text), 0o600|fs.FileMode(d.r.IntN(2)*0o44)))
}

// agentTurn is a turn with some calls, and a person who works beside it between them.
func (d *driver) agentTurn() {
	before := d.line()
	d.now = d.now.Add(time.Minute)
	taken, err := d.store.Take(d.t.Context(), d.dir, fmt.Sprintf("turn %d", d.op), "before terminal")
	require.NoError(d.t, err)
	if taken {
		d.taken = append(d.taken, d.op)
	}
	require.Len(d.t, d.line(), min(6, len(before)+map[bool]int{true: 1}[taken]))
	for range 1 + d.r.IntN(3) {
		w, err := d.store.Watch(d.t.Context(), d.dir)
		require.NoError(d.t, err)
		d.op++
		for range d.r.IntN(3) {
			d.change()
		}
		if d.r.IntN(10) == 0 {
			d.nested()
		}
		_, err = w.End(d.t.Context())
		require.NoError(d.t, err)
		if d.r.IntN(3) == 0 {
			d.people(d.change)
		}
	}
}

// nested makes another repository inside the tree.
func (d *driver) nested() {
	dir := d.path("vendor/lib")
	if _, err := os.Stat(dir); err == nil {
		return
	}
	require.NoError(d.t, os.MkdirAll(dir, 0o755))
	require.NoError(d.t, os.WriteFile(filepath.Join(dir, "lib.c"), []byte("int x;"), 0o644))
	out, err := exec.Command("git", "init", "-q", dir).CombinedOutput()
	require.NoError(d.t, err, "%s", out)
}

func (d *driver) rollback() {
	list := d.line()
	if len(list) == 0 {
		return
	}
	if d.r.IntN(4) == 0 { // counting costs many processes
		counted, err := d.store.List(d.t.Context(), d.dir)
		require.NoError(d.t, err)
		require.Len(d.t, counted, len(list))
	}
	n := 1 + d.r.IntN(len(list))
	to := list[n-1]
	at := d.taken[len(d.taken)-n] // what people did after it
	d.now = d.now.Add(time.Minute)
	before := d.look()
	target := Target{Ref: fmt.Sprint(n), All: d.r.IntN(5) == 0}
	plan, err := d.store.Preview(d.t.Context(), d.dir, target)
	require.NoError(d.t, err)
	require.Equal(d.t, before, d.look(), "a preview changes nothing")
	held := d.objects(to.Hash)
	res, err := d.store.Rollback(d.t.Context(), d.dir, target)
	require.NoError(d.t, err)
	after := d.look()
	if res.Backup != "" && d.line()[0].seq != list[0].seq {
		d.taken = append(d.taken, d.op)
	}
	say := fmt.Sprintf("rollback to %d %+v", n, target)
	if res.Safe {
		for path, op := range d.edited {
			if op > at {
				require.Equal(d.t, before[path], after[path], "%s: a person's edit of %q was lost", say, path)
			}
		}
		require.ElementsMatch(d.t, append(slices.Clone(plan.Restore), plan.Delete...), res.Restored, say)
		require.Equal(d.t, plan.Edited, res.Edited, say)
	}
	backup := d.objects(res.Backup)
	for path := range merged(before, after) {
		changed := before[path] != after[path]
		require.Equal(d.t, changed, slices.Contains(res.Restored, path) && changed, "%s: %q changed and the result does not say so", say, path)
		if changed && before[path] != "" {
			require.Contains(d.t, backup, path, "%s: what %q was is in no checkpoint", say, path)
		}
	}
	for _, path := range res.Restored {
		if o, ok := held[path]; ok {
			require.True(d.t, o.same(d.path(path)), "%s: %q is said to be restored", say, path)
		} else {
			require.NotContains(d.t, after, path, "%s: %q is said to be removed", say, path)
		}
	}
	for _, path := range slices.Concat(res.Edited, res.Oversize, res.FailedDeletes, res.FailedRestores) {
		require.NotContains(d.t, res.Restored, path, say)
	}
	d.op++
	if len(res.Restored) > 0 && d.r.IntN(2) == 0 {
		d.undo(before, say)
	}
}

func (d *driver) undo(before map[string]string, say string) {
	d.now = d.now.Add(time.Minute)
	newest := d.line()[0].seq
	res, err := d.store.Undo(d.t.Context(), d.dir, "")
	require.NoError(d.t, err, say)
	require.Empty(d.t, res.Edited, say)
	require.Equal(d.t, before, d.look(), "%s: undo did not bring the tree back", say)
	if d.line()[0].seq != newest {
		d.taken = append(d.taken, d.op)
	}
}

// line is the checkpoints without their counts, newest first.
func (d *driver) line() (list []Checkpoint) {
	require.NoError(d.t, d.store.withProject(d.t.Context(), d.dir, func(ctx context.Context, p *project) (err error) {
		list, err = d.store.history(ctx, p)
		return err
	}))
	return list
}

func (d *driver) objects(commit string) map[string]object {
	if commit == "" {
		return nil
	}
	out, err := d.store.run(d.t.Context(), call{args: []string{"ls-tree", "-r", "-z", commit}})
	require.NoError(d.t, err)
	return parseTree(out)
}
