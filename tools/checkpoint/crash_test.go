package checkpoint

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A kill at each moment of taking a checkpoint and of a rollback leaves a store that git finds sound, and after Recover a
// tree that is wholly before or wholly after. The moments are counted, so that a new one is killed in too.
func TestCrash_BeforeOrAfter(t *testing.T) {
	t.Parallel()
	const files = 4
	scene := func(t *testing.T, at int) (*bench, *exec.Cmd) {
		b := newBench(t, Options{})
		for i := range files {
			b.write(fmt.Sprintf("f%d.txt", i), "old "+fmt.Sprint(i))
		}
		b.take()
		for i := range files {
			b.write(fmt.Sprintf("f%d.txt", i), "new "+fmt.Sprint(i))
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childDir+"="+b.base, fmt.Sprintf("%s=%d", childMoment, at))
		return b, cmd
	}
	_, cmd := scene(t, 0)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	var moments int
	_, err = fmt.Sscanf(string(out), "moments %d", &moments)
	require.NoError(t, err, "%s", out)
	require.Greater(t, moments, 55)

	var mu sync.Mutex
	seen := map[string]int{}
	t.Run("moments", func(t *testing.T) {
		for at := 1; at <= moments; at++ {
			t.Run(fmt.Sprint(at), func(t *testing.T) {
				t.Parallel()
				b, cmd := scene(t, at)
				cmd.Stderr = os.Stderr
				require.Error(t, cmd.Run())
				require.Equal(t, -1, cmd.ProcessState.ExitCode(), "it was killed")
				end := b.afterCrash(at, files)
				mu.Lock()
				defer mu.Unlock()
				seen[end]++
			})
		}
	})
	t.Logf("killed in %d moments: %v", moments, seen)
	require.Len(t, seen, 3, "kills before, within and after the rollback")
}

// afterCrash checks what a kill left, and says how the rollback ended.
func (b *bench) afterCrash(at, files int) (end string) {
	t := b.t
	res, err := b.store.Recover(t.Context())
	require.NoError(t, err)
	news, olds := 0, 0
	for i := range files {
		switch text := b.read(fmt.Sprintf("f%d.txt", i)); {
		case strings.HasPrefix(text, "old "):
			olds++
		case strings.HasPrefix(text, "new "):
			news++
		default:
			require.Fail(t, "a file holds neither", "moment %d: %q", at, text)
		}
	}
	require.True(t, olds == 0 || news == 0, "moment %d: %d files are as the checkpoint and %d as before", at, olds, news)
	require.NoError(t, b.store.Verify(t.Context()), "moment %d", at)
	left, err := filepath.Glob(filepath.Join(b.dir, ".herald-restore-*"))
	require.NoError(t, err)
	require.Empty(t, left)
	switch {
	case len(res) > 0:
		require.Len(t, res[0].Restored, files, "what was finished is said")
		end = "finished"
	case olds > 0:
		end = "done"
	default:
		return "not begun"
	}
	undone, err := b.store.Undo(t.Context(), b.dir, "") // the state before is in a checkpoint
	require.NoError(t, err)
	require.Len(t, undone.Restored, files)
	return end
}

// A damaged record of a rollback is put aside and said, and does not keep the rest from working.
func TestRecover_DamagedJournal(t *testing.T) {
	b := newBench(t, Options{})
	b.take()
	require.NoError(t, os.WriteFile(b.store.restorePath(idOf(b.dir)), []byte("{"), 0o600))
	res, err := b.store.Recover(t.Context())
	require.NoError(t, err)
	require.Empty(t, res)
	res, err = b.store.Recover(t.Context())
	require.NoError(t, err)
	require.Empty(t, res)
	b.agent("main.py", "x")
	b.back(Target{Ref: "1"})
}
