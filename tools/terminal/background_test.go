package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/tools"
	"herald/tools/process"
	"herald/tools/sandbox"
	"herald/tools/sandbox/local"
)

// notes is a process.Store that keeps nothing but what was told.
type notes struct {
	mu   sync.Mutex
	news []process.News
}

func (n *notes) Load(context.Context) ([]process.Record, error) { return nil, nil }
func (n *notes) Delete(context.Context, string) error           { return nil }
func (n *notes) Tell(ctx context.Context, w process.News) error {
	return n.Save(ctx, process.Record{}, w)
}
func (n *notes) Save(_ context.Context, _ process.Record, news ...process.News) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.news = append(n.news, news...)
	return nil
}

// desk is both tools over this machine.
type desk struct {
	t     *testing.T
	notes *notes
	tools map[string]tools.Tool
	who   tools.Caller
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	supervisor, err := local.SelfSupervisor()
	require.NoError(t, err)
	env, err := local.New(local.Options{Dir: t.TempDir(), Home: t.TempDir(), Supervisor: supervisor,
		Environ: func() []string { return []string{"PATH=" + os.Getenv("PATH")} }})
	require.NoError(t, err)
	environment := func(tools.Caller) (sandbox.Environment, error) { return env, nil }
	d := &desk{t: t, notes: &notes{}, who: tools.Caller{Session: "s", Key: "k"}}
	p := process.New(process.Options{Environment: environment, Store: d.notes})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		p.Close(ctx)
		require.NoError(t, env.Close())
	})
	d.tools = map[string]tools.Tool{"terminal": New(Deps{Environment: environment, Processes: p, MaxTimeout: time.Minute, Timeout: 30 * time.Second}),
		"process": p.Tool(process.ToolOptions{})}
	return d
}

func (d *desk) call(name, format string, values ...any) map[string]any {
	d.t.Helper()
	r, err := d.tools[name].Run(d.t.Context(), tools.Call{Name: name, Args: json.RawMessage(fmt.Sprintf(format, values...)), Caller: d.who})
	require.NoError(d.t, err)
	var out map[string]any
	require.NoError(d.t, json.Unmarshal([]byte(r.Content), &out), r.Content)
	return out
}

// shows polls until the output has a text.
func (d *desk) shows(id any, text string) string {
	d.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		out, _ := d.call("process", `{"action":"poll","session_id":%q}`, id)["output"].(string)
		if strings.Contains(out, text) {
			return out
		}
		require.True(d.t, time.Now().Before(deadline), "%q never came; there is %q", text, out)
		<-time.After(10 * time.Millisecond)
	}
}

func (d *desk) told(n int) []process.News {
	d.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		d.notes.mu.Lock()
		news := d.notes.news
		d.notes.mu.Unlock()
		if len(news) >= n {
			return news
		}
		require.True(d.t, time.Now().Before(deadline), "%d news of %d", len(news), n)
		<-time.After(10 * time.Millisecond)
	}
}

func TestBackground_TalksToAProcess(t *testing.T) {
	d := newDesk(t)
	r := d.call("terminal", `{"command":"while IFS= read -r x; do echo \"got $x\"; done; echo bye; exit 4","background":true,"notify_on_complete":true}`)
	id := r["session_id"]
	require.Equal(t, "running", r["status"])
	require.EqualValues(t, 8, d.call("process", `{"action":"submit","session_id":%q,"data":"one two"}`, id)["bytes_written"])
	d.shows(id, "got one two\n")
	d.call("process", `{"action":"write","session_id":%q,"data":"par"}`, id)
	d.call("process", `{"action":"submit","session_id":%q,"data":"tial"}`, id)
	d.shows(id, "got partial\n")
	d.call("process", `{"action":"close","session_id":%q}`, id)
	news := d.told(1)
	require.Contains(t, news[0].Text, "has ended with exit code 4")
	require.True(t, strings.HasSuffix(news[0].Text, "got one two\ngot partial\nbye"))
	require.Contains(t, d.call("process", `{"action":"submit","session_id":%q,"data":"x"}`, id)["error"], "has ended (exited)")
}

func TestBackground_Terminal(t *testing.T) {
	d := newDesk(t)
	id := d.call("terminal", `{"command":"test -t 0 && test -t 1 && stty size && IFS= read -r x && printf '\\033[32mhello %%s\\033[0m\\n' \"$x\"","background":true,"pty":true}`)["session_id"]
	d.shows(id, "24 80\n")
	d.call("process", `{"action":"submit","session_id":%q,"data":"you"}`, id)
	require.Equal(t, "exited", d.call("process", `{"action":"wait","session_id":%q,"timeout":30}`, id)["status"])
	require.Contains(t, d.shows(id, "hello"), "\nhello you\n", "without colours")
}

// A process that left its group and session dies with the command that started it.
func TestBackground_KillReachesEscapees(t *testing.T) {
	d := newDesk(t)
	id := d.call("terminal", `{"command":"setsid sleep 300 & echo pid $!; wait","background":true}`)["session_id"]
	out := d.shows(id, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(out, "pid ")))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, 0))
	require.Equal(t, "killed", d.call("process", `{"action":"kill","session_id":%q}`, id)["status"])
	for deadline := time.Now().Add(30 * time.Second); !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH); {
		stat, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if strings.Contains(string(stat), ") Z ") {
			break // dead; nobody has asked for its exit code
		}
		require.True(t, time.Now().Before(deadline), "it lives")
		<-time.After(10 * time.Millisecond)
	}
	require.Empty(t, d.notes.news)
}

// A foreground command that wants more time than it may have runs in the background.
func TestBackground_LongForegroundIsPromoted(t *testing.T) {
	d := newDesk(t)
	r := d.call("terminal", `{"command":"echo done","timeout":3600}`)
	require.Contains(t, r["note"], "A foreground command may take 1m0s at most")
	require.Contains(t, d.told(1)[0].Text, "has ended with exit code 0")
	require.Equal(t, "done\n", d.call("terminal", `{"command":"echo done","timeout":60}`)["output"])
}

func TestBackground_Watch(t *testing.T) {
	d := newDesk(t)
	r := d.call("terminal", `{"command":"echo up; echo listening on 80; sleep 300","background":true,"watch_patterns":["listening"]}`)
	require.Contains(t, d.told(1)[0].Text, "\nlistening on 80")
	require.Equal(t, "You will be told when a line matches.", r["note"])
}

func TestBackground_Refusals(t *testing.T) {
	d := newDesk(t)
	for args, why := range map[string]string{
		`{"command":"true","pty":true}`:                             "pty: a terminal is there in the background only",
		`{"command":"true","notify_on_complete":true}`:              "notify_on_complete: the result",
		`{"command":"true","watch_patterns":["x"]}`:                 "watch_patterns: only background",
		`{"command":"rm -rf /","background":true}`:                  "never allowed",
		`{"command":"true","workdir":"/nowhere","background":true}`: "was not started",
	} {
		require.Contains(t, d.call("terminal", "%s", args)["error"], why, args)
	}
	require.Empty(t, d.call("process", `{"action":"list"}`)["processes"])
}
