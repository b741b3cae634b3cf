package checkpoint

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tree makes n files in directories of 100.
func (b *bench) tree(n int) {
	for i := range n {
		name := fmt.Sprintf("d%03d/f%d.txt", i/100, i)
		if i%100 == 0 {
			require.NoError(b.t, os.MkdirAll(b.path(filepath.Dir(name)), 0o755))
		}
		require.NoError(b.t, os.WriteFile(b.path(name), fmt.Appendf(nil, "file %d\n", i), 0o644))
	}
}

// A checkpoint of a tree in which nothing has changed, beside git status on the same tree: "ratio" is the first by the
// second, in the same run.
func BenchmarkTake_NothingChanged(b *testing.B) {
	for _, n := range []int{1000, 49_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newBench(b, Options{})
			w.tree(n)
			git := func(args ...string) {
				cmd := exec.Command("git", append([]string{"-C", w.dir}, args...)...)
				cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
				out, err := cmd.CombinedOutput()
				require.NoError(b, err, "%s", out)
			}
			git("init", "-q")
			git("config", "gc.auto", "0")
			git("config", "maintenance.auto", "false")
			git("add", "-A")
			git("-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "-m", "x")
			w.take()
			w.take()
			git("status")
			i, status := 0, 0.0
			for b.Loop() {
				i++
				_, err := w.store.Take(b.Context(), w.dir, fmt.Sprint("turn", i), "x")
				require.NoError(b, err)
				b.StopTimer()
				began := nowSeconds()
				git("status", "--porcelain")
				status += nowSeconds() - began
				b.StartTimer()
			}
			took := b.Elapsed().Seconds() / float64(i)
			b.ReportMetric(took/(status/float64(i)), "ratio")
		})
	}
}

// What a call that changes nothing costs beside the call itself.
func BenchmarkWatch_NothingChanged(b *testing.B) {
	w := newBench(b, Options{})
	w.tree(1000)
	w.take()
	for b.Loop() {
		watch, err := w.store.Watch(b.Context(), w.dir)
		require.NoError(b, err)
		_, err = watch.End(b.Context())
		require.NoError(b, err)
	}
}

func nowSeconds() float64 { return float64(time.Now().UnixNano()) / 1e9 }
