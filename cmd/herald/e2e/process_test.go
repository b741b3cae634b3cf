package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/telegramtest"
)

var (
	taskName   = regexp.MustCompile(`\btask\d+\b`)
	exitPhrase = regexp.MustCompile(`has ended[^.]*\.`)
)

// workers is a daemon on a fake Telegram whose model starts a background process for every "start taskN" and reports
// its news.
type workers struct {
	*place
	tg *telegramtest.Server
}

func newWorkers(t *testing.T) workers {
	llm := modeltest.Serve(modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		last := r.LastUser()
		name := taskName.FindString(last)
		if text, ok := r.ToolResult(); ok {
			if !strings.Contains(text, `"session_id":"proc_`) {
				return modeltest.Text("It did not start: " + text)
			}
			return modeltest.Text("Started " + name)
		}
		switch {
		case strings.Contains(last, "[Background process"):
			i := strings.LastIndex(last, "[Background process")
			return modeltest.Text("News of " + taskName.FindString(last[i:]) + ": " + exitPhrase.FindString(last[i:]))
		case strings.Contains(last, "start task"):
			// It writes down its number, waits for a file with its name, and ends.
			line := fmt.Sprintf("echo $$ > %[1]s.pid; while [ ! -f %[1]s.go ]; do sleep 0.05; done; echo %[1]s was here; exit 3", name)
			return modeltest.Calls("c"+name, "terminal", fmt.Sprintf(`{"command":%q,"background":true,"notify_on_complete":true}`, line))
		}
		return modeltest.Text("You said " + last)
	}))
	t.Cleanup(llm.Close)
	p := newPlace(t)
	p.env = append(p.env, "OPENAI_API_KEY=sk-test-0123456789abcdef", "OPENAI_BASE_URL="+llm.OpenAI(), "HERALD_MODEL=a-model", "HERALD_MODEL_PROVIDER=openai")
	w := workers{p, p.telegram()}
	t.Cleanup(func() { // nothing of a failed test lives on
		files, _ := filepath.Glob(filepath.Join(p.home, "workspace", "*.pid"))
		for _, f := range files {
			if pid := w.pid(strings.TrimSuffix(filepath.Base(f), ".pid")); pid > 1 && w.lives(pid) {
				_ = syscall.Kill(-pid, syscall.SIGKILL)
			}
		}
	})
	return w
}

func (w workers) file(name string) string { return filepath.Join(w.home, "workspace", name) }

// pid is the process that a task has noted, 0 before.
func (w workers) pid(task string) int {
	b, _ := os.ReadFile(w.file(task + ".pid"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

// lives reports whether a task's process runs.
func (w workers) lives(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return err == nil && strings.Contains(string(stat), "task")
}

// start lets a person ask for a task and returns its process.
func (w workers) start(chat int64, task string) int {
	w.t.Helper()
	w.tg.Say(chat, "start "+task)
	w.sees(chat, "Started "+task)
	w.until(task+" runs", func() bool { return w.pid(task) > 1 })
	return w.pid(task)
}

// finish lets a task end.
func (w workers) finish(task string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(w.file(task+".go"), nil, 0o600))
}

func (w workers) sees(chat int64, part string) {
	w.t.Helper()
	w.until(fmt.Sprintf("chat %d sees %q", chat, part), func() bool { return bot(w.tg, chat, part) > 0 })
}

// kill ends the daemon as the kernel does when memory is short.
func (d *daemon) kill() {
	d.t.Helper()
	require.NoError(d.t, d.cmd.Process.Kill())
	d.wait()
}

// P1, P5: a background process outlives a daemon that is killed. Its end is told in the chat it belongs to, once,
// whether it ended while nobody watched or later.
func TestProcess_OutlivesAKilledDaemon(t *testing.T) {
	w := newWorkers(t)
	d := w.run()
	first, second := w.start(71, "task1"), w.start(72, "task2")
	d.kill()
	require.True(t, w.lives(first) && w.lives(second))
	w.finish("task1")
	w.until("task1 has ended", func() bool { return !w.lives(first) })

	d = w.run()
	w.sees(71, "News of task1: has ended with exit code 3")
	w.sees(71, "⚙️ ") // told to the person as well
	require.True(t, w.lives(second))
	w.finish("task2")
	w.sees(72, "News of task2: has ended with exit code 3")
	d.kill()
	d = w.run()
	w.tg.Say(71, "hello")
	w.sees(71, "You said hello")
	w.tg.Say(72, "hello")
	w.sees(72, "You said hello")
	d.stop()
	for chat, task := range map[int64]string{71: "task1", 72: "task2"} {
		require.Equal(t, 1, bot(w.tg, chat, "News of"), "in chat %d", chat)
		require.Equal(t, 1, bot(w.tg, chat, "News of "+task))
	}
}

// People see what runs for their chat, and /stop ends it without a word of the agent's.
func TestProcess_StopEndsThoseOfTheChat(t *testing.T) {
	w := newWorkers(t)
	d := w.run()
	mine, other := w.start(71, "task1"), w.start(72, "task2")
	w.tg.Say(71, "/status")
	w.sees(71, "Background: 1 process")
	w.tg.Say(71, "/agents")
	w.sees(71, "task1.pid")
	require.Zero(t, bot(w.tg, 71, "task2.pid"))
	w.tg.Say(71, "/stop")
	w.sees(71, "1 background process is being ended.")
	w.until("it is dead", func() bool { return !w.lives(mine) })
	require.True(t, w.lives(other))
	w.until("the daemon knows", func() bool {
		_, metrics := d.get("/metrics")
		return strings.Contains(metrics, "herald_background_processes_running 1")
	})
	w.tg.Say(71, "/stop")
	w.sees(71, "Nothing is running.")
	w.tg.Say(71, "hello")
	w.sees(71, "You said hello")
	require.Zero(t, bot(w.tg, 71, "News of"))
	status, metrics := d.get("/metrics")
	require.Equal(t, 200, status)
	require.Contains(t, metrics, "herald_background_processes_running 1")
	require.Contains(t, metrics, `herald_background_processes_ended_total{state="killed"} 1`)
}

// P6: after /new nobody hears of the old session's process; it is counted and logged.
func TestProcess_NewsOfAnEndedSessionAreDropped(t *testing.T) {
	w := newWorkers(t)
	d := w.run()
	pid := w.start(71, "task1")
	w.tg.Say(71, "/new now")
	w.until("the session is new", func() bool { return bot(w.tg, 71, "new session") > 0 || bot(w.tg, 71, "New session") > 0 })
	w.finish("task1")
	w.until("it has ended", func() bool { return !w.lives(pid) })
	w.until("its news are dropped", func() bool {
		_, metrics := d.get("/metrics")
		return strings.Contains(metrics, `kind="internal",outcome="dropped"`)
	})
	w.tg.Say(71, "hello")
	w.sees(71, "You said hello")
	require.Zero(t, bot(w.tg, 71, "News of"))
	require.Contains(t, d.log(), "its session has ended")
}

// A stop in order ends background processes and tells so after the next start; with processes.on_stop keep they go on.
func TestProcess_StopInOrder(t *testing.T) {
	w := newWorkers(t)
	d := w.run()
	pid := w.start(71, "task1")
	d.stop()
	require.False(t, w.lives(pid))
	d = w.run("--set", "processes.on_stop=keep")
	w.sees(71, "News of task1: has ended after")
	pid = w.start(71, "task2")
	d.stop()
	require.True(t, w.lives(pid))
	d = w.run()
	w.finish("task2")
	w.sees(71, "News of task2: has ended with exit code 3")
	d.stop()
	require.Equal(t, 2, bot(w.tg, 71, "News of"))
}
