package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/sessions"
)

// The variables that say what a child works on.
const childPath = "HERALD_STORE_TEST_PATH"

// runChild does what a re-executed test binary was asked for and returns its exit code.
func runChild(mode string) int {
	s, err := Open(context.Background(), Options{Path: os.Getenv(childPath), Home: "/home/of/child"})
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	fmt.Println("open")
	switch mode {
	case "hold":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "load":
		load(s)
	case "load1":
		fmt.Println(oneTurn(s, "ada", "1"))
	}
	return 0
}

// load writes turns from many goroutines without end and prints the name of each event after its last commit
// was answered.
func load(s *Store) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for g := range 12 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d-%d-%d", os.Getpid(), g, i)
				if err := oneTurn(s, fmt.Sprint("user", g), id); err != nil {
					fmt.Println("error:", err)
					return
				}
				mu.Lock()
				fmt.Println("done", id)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// child starts this test binary as another process.
func child(t *testing.T, mode, path string) (cmd *exec.Cmd, in io.WriteCloser, out *bufio.Reader) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childMode+"="+mode, childPath+"="+path)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, in, bufio.NewReader(pipe)
}

// P1, P11: after a kill -9 in the middle of the load everything that was acknowledged is there, nothing is
// half there, and the file is sound.
func TestStore_Crash_P1_P11_KillInMidLoad(t *testing.T) {
	path := t.TempDir() + "/herald.db"
	acknowledged := map[string]bool{}
	for round, kill := range []int{1, 40, 150, 300} {
		cmd, _, out := child(t, "load", path)
		for n := 0; ; {
			line, err := out.ReadString('\n')
			if err != nil {
				break // killed, and read to the end
			}
			if id, ok := strings.CutPrefix(strings.TrimSpace(line), "done "); ok {
				acknowledged[id] = true
				if n++; n == kill {
					require.NoError(t, cmd.Process.Kill())
				}
			} else {
				require.Equal(t, "open\n", line)
			}
		}
		_ = cmd.Wait()

		s, err := Open(t.Context(), Options{Path: path})
		require.NoError(t, err, "round %d", round)
		report, err := s.Check(t.Context())
		require.NoError(t, err)
		require.Empty(t, report.Problems(), "round %d", round)
		viewing(t, s, func(v sessions.View) {
			c := v.(*view).c
			done := map[string]bool{}
			require.NoError(t, c.query(t.Context(), "SELECT event_id FROM inbox WHERE state = 'done'", func(r row) error { done[r.text(0)] = true; return nil }))
			for id := range acknowledged {
				require.True(t, done[id], "round %d: %s was acknowledged and is lost", round, id)
			}
			torn, err := c.int(`SELECT count(*) FROM turns t WHERE t.state = 'done' AND (
				(SELECT count(*) FROM messages m WHERE m.turn = t.id) <> 2 OR (SELECT count(*) FROM outbox o WHERE o.turn = t.id) <> 1)`)
			require.NoError(t, err)
			require.Zero(t, torn, "a finished turn has its rows")
			wrong, err := c.int("SELECT count(*) FROM sessions s WHERE s.messages <> (SELECT count(*) FROM messages m WHERE m.session = s.id)")
			require.NoError(t, err)
			require.Zero(t, wrong)
		})
		// The search index follows after a crash as well.
		viewing(t, s, func(v sessions.View) {
			hits, err := v.Search(sessions.SearchQuery{Text: "sunny", Scope: sessions.Scope{All: true}, Limit: 300})
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(hits), min(len(acknowledged), 300))
		})
		require.NoError(t, s.Close())
	}
	require.Greater(t, len(acknowledged), 480)
}

// P11: one process owns the store.
func TestStore_Open_P11_LockedByAnotherProcess(t *testing.T) {
	path := t.TempDir() + "/herald.db"
	cmd, in, out := child(t, "hold", path)
	line, err := out.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "open\n", line)
	_, err = Open(t.Context(), Options{Path: path})
	var locked *LockedError
	require.ErrorAs(t, err, &locked)
	require.Equal(t, cmd.Process.Pid, locked.Holder.PID)
	require.Equal(t, "/home/of/child", locked.Holder.Home)
	require.ErrorContains(t, err, "is open in process "+strconv.Itoa(cmd.Process.Pid)+": use the running daemon, or stop it first")
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
	s := openAt(t, path)
	_, err = Open(t.Context(), Options{Path: path})
	require.ErrorAs(t, err, &locked, "the same process is refused too")
	require.Equal(t, os.Getpid(), locked.Holder.PID)
	require.NoError(t, s.Close())
}
