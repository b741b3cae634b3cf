//go:build failpoint

package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/config"
	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/telegramtest"
	"herald/tools/checkpoint"
)

// edgeCheckpoint is passed before and after everything that checkpoints change on the disk.
const edgeCheckpoint = "checkpoint"

// keeper is a daemon whose agent changes three files by one command, and a person who takes that back.
type keeper struct {
	t     *testing.T
	paths config.Paths
	tg    *telegramtest.Server
	api   *modeltest.Server
	env   []string
	proc  *process
	runs  int
}

func newKeeper(t *testing.T, command string) *keeper {
	k := &keeper{t: t, paths: config.PathsFor(t.TempDir()), tg: telegramtest.New(telegramtest.Options{Token: botToken})}
	base, err := k.tg.Start()
	require.NoError(t, err)
	t.Cleanup(k.tg.Close)
	k.api = modeltest.Serve(modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if _, ok := r.ToolResult(); ok {
			return modeltest.Text("the agent is done")
		}
		if strings.HasSuffix(r.LastUser(), "change them") {
			return modeltest.Calls("c1", "terminal", fmt.Sprintf(`{"command":%q}`, command))
		}
		return modeltest.Text("hi")
	}))
	t.Cleanup(k.api.Close)
	k.env = []string{"HOME=" + k.paths.Home, "PATH=" + os.Getenv("PATH"), "HERALD_HOME=" + k.paths.Home, "HERALD_TERMINAL_BACKEND=local", "HERALD_GATEWAY_LOCK_DIR=" + k.paths.Home + "/locks",
		"TELEGRAM_BOT_TOKEN=" + botToken, "HERALD_TELEGRAM_BASE_URL=" + base, "HERALD_TELEGRAM_ALLOW_FROM=*", "HERALD_TELEGRAM_RATE_LIMIT=off", "HERALD_APPROVALS_MODE=off",
		"OPENAI_API_KEY=sk-crash-tests-0123456789", "OPENAI_BASE_URL=" + k.api.OpenAI(), "HERALD_MODEL=crash-model", "GOMAXPROCS=2"}
	require.NoError(t, os.MkdirAll(k.file(""), 0o700))
	for _, name := range threeFiles {
		require.NoError(t, os.WriteFile(k.file(name), []byte("old\n"), 0o600))
	}
	t.Cleanup(func() { k.kill() })
	return k
}

var threeFiles = []string{"a.txt", "b.txt", "c.txt"}

func (k *keeper) file(name string) string { return filepath.Join(k.paths.Home, "workspace", name) }

func (k *keeper) run(failpoint string) {
	k.t.Helper()
	k.runs++
	var err error
	k.proc, err = launch(k.env, []string{"--set", "http.listen=127.0.0.1:0", "--set", "agent.restart_drain_timeout=1s"}, failpoint, filepath.Join(k.paths.Home, fmt.Sprintf("start-%d.log", k.runs)))
	require.NoError(k.t, err)
}

func (k *keeper) kill() {
	if k.proc != nil && k.proc.alive() {
		k.proc.signal(syscall.SIGKILL)
		k.proc.wait(stopLimit)
	}
}

// until waits for what people see, or for the daemon's death; it returns false for that.
func (k *keeper) until(what string, seen func() bool) bool {
	k.t.Helper()
	deadline := time.After(replyLimit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !seen() {
		select {
		case <-k.proc.ended:
			return seen()
		case <-deadline:
			text, _ := k.proc.tail(4000)
			require.Fail(k.t, "gave up waiting until "+what, "%v\n%s", texts(k.tg.Visible(7)), text)
		case <-tick.C:
		}
	}
	return true
}

func (k *keeper) shows(part string) func() bool {
	return func() bool { return strings.Contains(strings.Join(texts(k.tg.Visible(7)), "\n"), part) }
}

// tree is "old", "new", or what the files hold when they are neither wholly before nor wholly after.
func (k *keeper) tree() string {
	found := map[string]bool{}
	for _, name := range threeFiles {
		data, err := os.ReadFile(k.file(name))
		require.NoError(k.t, err)
		found[strings.TrimSpace(string(data))] = true
	}
	if len(found) == 1 {
		for text := range found {
			return text
		}
	}
	return fmt.Sprint(found)
}

func (k *keeper) verify() {
	k.t.Helper()
	s := checkpoint.Open(checkpoint.Options{Dir: k.paths.Checkpoint, Enabled: true})
	require.NoError(k.t, s.Verify(k.t.Context()))
	left, err := filepath.Glob(k.file(".herald-restore-*"))
	require.NoError(k.t, err)
	require.Empty(k.t, left)
	locks, err := filepath.Glob(filepath.Join(k.paths.Checkpoint, "store", "indexes", "*.lock"))
	require.NoError(k.t, err)
	require.Empty(k.t, locks)
}

const newFiles = "for f in a b c; do echo new >$f.txt.tmp; done; for f in a b c; do mv $f.txt.tmp $f.txt; done"

// The daemon is killed at moments of its checkpoints: while it takes the picture before a command, while it notes what the
// command did, and while it goes back. The store is sound afterwards, the tree is wholly before or wholly after, the
// next start says which in its log and to the person, and the rollback that was asked for is done once.
func TestRollback_KilledAtCheckpointMoments(t *testing.T) {
	var mu sync.Mutex
	ends := map[string]int{}
	end := func(how string) {
		mu.Lock()
		defer mu.Unlock()
		ends[how]++
	}
	t.Run("moments", func(t *testing.T) { killedAtMoments(t, end) })
	t.Logf("%v", ends)
	require.Contains(t, ends, "in the turn")
	require.Contains(t, ends, "in the rollback, finished by the next start")
	require.Contains(t, ends, "in the rollback, not begun")
}

func killedAtMoments(t *testing.T, end func(string)) {
	for _, at := range []int{2, 8, 14, 20, 26, 32, 38, 44, 48, 52, 55, 58, 60, 62, 64, 66, 68, 70, 73, 76} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			k := newKeeper(t, newFiles)
			k.run(fmt.Sprintf("%s:%d", edgeCheckpoint, at))
			k.tg.Say(7, "change them")
			alive := k.until("the turn ends", k.shows("the agent is done"))
			if !alive {
				require.True(t, k.proc.killed())
				end("in the turn")
				require.Contains(t, []string{"old", "new"}, k.tree(), "one command, done or not done")
				k.run("")
				require.True(t, k.until("the turn ends after all", k.shows("the agent is done")))
			}
			if k.tree() == "old" { // the model was told that nobody knows whether its command ran
				k.verify()
				return
			}
			k.tg.Say(7, "/rollback 1 now")
			done := func() bool { return k.shows("files are as they were")() || k.shows("nothing to bring back")() }
			if alive && !k.until("the answer comes", done) {
				require.True(t, k.proc.killed())
				journals, err := filepath.Glob(filepath.Join(k.paths.Checkpoint, "store", "restores", "*.json"))
				require.NoError(t, err)
				if len(journals) > 0 {
					end("in the rollback, finished by the next start")
				} else {
					end("in the rollback, not begun")
				}
				k.run("")
				require.True(t, k.until("the answer comes after all", done))
				text, _ := k.proc.tail(1 << 20)
				require.Equal(t, len(journals) > 0, strings.Contains(text, "a rollback that the last process began is finished"), "the log says which")
			}
			require.True(t, k.until("the answer comes", done))
			k.verify()
			if k.shows("3 files are as they were")() {
				require.Equal(t, "old", k.tree())
			} else {
				require.Equal(t, "new", k.tree(), "a picture that came too late holds what the command did, and the answer says so")
			}
		})
	}
}

// The daemon is killed while a command of the agent runs: the command ends with it, the checkpoint before it is there, and
// what it did until then goes back.
func TestRollback_KilledInACommand(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, newFiles+"; touch begun; sleep 300")
	k.run("")
	k.tg.Say(7, "change them")
	require.True(t, k.until("the command works", func() bool { _, err := os.Stat(k.file("begun")); return err == nil }))
	k.kill()
	require.Equal(t, "new", k.tree())
	k.run("")
	require.True(t, k.until("the turn goes on", k.shows("the agent is done")))
	k.verify()
	k.tg.Say(7, "/rollback 1 now --all")
	require.True(t, k.until("the answer comes", k.shows("as they were")))
	require.Equal(t, "old", k.tree())
	k.verify()
}
