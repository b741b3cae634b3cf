package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/sessions"
	"herald/sessions/sqlite"
)

// Every verb tells how it is used, with an example.
func TestHelp(t *testing.T) {
	p := newPlace(t)
	for _, verb := range []string{"run", "status", "sessions", "send", "logs", "backup", "doctor", "doctor db", "config", "config check",
		"config show", "config schema", "pairing", "pairing list", "pairing approve", "pairing revoke", "pairing clear-pending", "approvals",
		"approvals list", "approvals allow", "approvals revoke", "approvals suggest", "rollback", "checkpoints", "checkpoints status", "checkpoints prune", "checkpoints clear", "sandbox", "sandbox status", "sandbox exec", "sandbox shell", "sandbox reset", "sandbox build", "sandbox prune", "cron", "cron list", "cron add", "cron edit", "cron pause", "cron resume", "cron run", "cron remove", "cron history", "cron status", "cron incidents", "cron incidents ack", "cron doctor", "cron tick", "teams", "teams manifest", "version"} {
		out := p.good(append(strings.Fields(verb), "--help")...)
		require.Contains(t, out, "Usage:\n  herald "+strings.Fields(verb)[0], verb)
		require.Contains(t, out, "Examples:\n  herald "+strings.Fields(verb)[0], verb)
	}
	out := p.good("--help")
	require.Contains(t, out, "herald run")
	r := p.herald("statsu")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "status", "a mistyped verb is answered with the nearest one")
	require.Equal(t, "herald 9.8.7-e2e\n", p.good("version"))
	_, err := os.Stat(p.home)
	require.ErrorIs(t, err, os.ErrNotExist, "help makes no home")
}

// What the verbs say where no daemon runs.
func TestVerbs_WithoutADaemon(t *testing.T) {
	p := newPlace(t)
	for _, args := range [][]string{{"status"}, {"send", "web:abcdefgh", "hello"}, {"pairing", "list"}} {
		r := p.herald(args...)
		require.Equal(t, 1, r.code, args)
		require.Contains(t, r.err, "no daemon is running here", args)
		require.Contains(t, r.err, "herald run", "it says what to do")
	}
	r := p.herald("logs")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "has not run here yet")
	require.Contains(t, p.good("sessions"), "no sessions")
	require.Contains(t, p.good("doctor", "db"), "no problem found")
	require.Contains(t, p.good("doctor", "db", "--rebuild"), "was rebuilt")
	require.Contains(t, p.good("config", "check"), "the configuration is good")
	copied := filepath.Join(t.TempDir(), "copy.db")
	require.Contains(t, p.good("backup", copied), "passes its check")
}

func TestVerbs_WithADaemon(t *testing.T) {
	p := newPlace(t)
	d := p.run()
	d.say("kitchen-1", "message-1", "echo buy milk")
	d.await("kitchen-1", "buy milk")

	out := p.good("status")
	require.Contains(t, out, "ready")
	require.Contains(t, out, "demo/herald-demo")
	require.Contains(t, out, d.address())
	require.Contains(t, out, "web/local")
	var status struct {
		PID    int `json:"pid"`
		Health struct {
			Ready bool `json:"ready"`
		} `json:"health"`
		Counts struct{ Messages int }
	}
	require.NoError(t, json.Unmarshal([]byte(p.good("status", "--json")), &status))
	require.Equal(t, d.cmd.Process.Pid, status.PID)
	require.True(t, status.Health.Ready)

	out = p.good("sessions")
	require.Contains(t, out, "web/kitchen-1")
	require.Contains(t, out, "2 messages")
	require.Contains(t, p.good("sessions", "--json"), `"chat": "kitchen-1"`)
	require.Contains(t, p.good("sessions", "no such title"), "no sessions")
	require.Equal(t, 1, p.herald("sessions", "--limit", "0").code)

	require.Contains(t, p.good("send", "web:kitchen-1", "the **oven** is hot"), "sent")
	d.await("kitchen-1", "oven")
	require.Zero(t, p.heraldIn("piped in\n", "send", "web:kitchen-1").code)
	d.await("kitchen-1", "piped in")
	for target, want := range map[string]string{
		"web":              "no home channel",
		"telegram:7":       "running: web",
		"carrier-pigeon:7": "running: web",
		"web:x":            "8 to 64 letters",
	} {
		r := p.herald("send", target, "hello")
		require.Equal(t, 1, r.code, target)
		require.Contains(t, r.err, want, target)
	}
	require.Contains(t, p.heraldIn("", "send", "web:kitchen-1").err, "empty")

	require.Contains(t, p.good("logs"), "Herald is running")
	require.Contains(t, p.good("logs", "--json", "-n", "1"), `"level"`)
	require.Equal(t, 1, p.herald("logs", "-n", "-1").code)

	copied := filepath.Join(t.TempDir(), "copy.db")
	require.Contains(t, p.good("backup", copied), "passes its check")
	r := p.herald("backup", copied)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "name a file that is not there yet")
	require.Contains(t, p.herald("backup", "/nowhere/at/all.db").err, "/nowhere/at")
	ctx := context.Background()
	report, err := sqlite.CheckFile(ctx, copied)
	require.NoError(t, err)
	require.True(t, report.OK(), report.String())
	store, err := sqlite.Open(ctx, sqlite.Options{Path: copied})
	require.NoError(t, err)
	require.NoError(t, store.View(ctx, func(v sessions.View) error {
		counts, err := v.Counts()
		require.EqualValues(t, 1, counts.Sessions)
		require.GreaterOrEqual(t, counts.Messages, int64(2), "P11: a backup holds what was said")
		return err
	}))
	require.NoError(t, store.Close())

	require.Contains(t, p.good("doctor", "db"), "no problem found")
	require.Contains(t, p.herald("doctor", "db", "--rebuild").err, "stop the daemon first")

	require.Contains(t, p.good("pairing", "list"), "approved")
	r = p.herald("pairing", "approve", "telegram", "ABCD2345")
	require.Equal(t, 1, r.code)
	require.NotContains(t, r.err, "ABCD2345", "a code is a secret")
}

// A stranger gets a code, the operator approves it, and the person is let in (P13).
func TestPairing(t *testing.T) {
	p := newPlace(t)
	tg := p.telegram()
	p.env = append(p.env, "HERALD_TELEGRAM_ALLOW_FROM=99", "HERALD_PLATFORMS_TELEGRAM_UNAUTHORIZED_DM_BEHAVIOR=pair")
	d := p.run()
	tg.Say(7, "echo let me in")
	code := ""
	d.until("the stranger gets a code", func() bool {
		for _, m := range tg.Visible(7) {
			if found := regexp.MustCompile(`herald pairing approve telegram ([A-Z0-9]+)`).FindStringSubmatch(m.Text); found != nil {
				code = found[1]
			}
		}
		return code != ""
	})
	require.NotContains(t, d.log(), code, "a code is a secret")
	out := p.good("pairing", "list")
	require.Contains(t, out, `"7"`)
	require.NotContains(t, out, code)
	require.NotZero(t, p.herald("pairing", "approve", "telegram", "WRONG234").code)
	require.Contains(t, p.good("pairing", "approve", "telegram", strings.ToLower(code)), `"7"`)
	tg.Say(7, "echo now I am in")
	d.until("the person is answered", func() bool { return bot(tg, 7, "now I am in") == 1 })
	require.Zero(t, bot(tg, 7, "let me in"), "what was refused stays refused")
	p.good("pairing", "revoke", "telegram", "7")
	tg.Say(7, "echo and out again")
	d.until("the person is refused again", func() bool { return strings.Count(d.log(), "an event was dropped") == 2 })
	require.NotZero(t, p.herald("pairing", "revoke", "telegram", "7").code)
	p.good("pairing", "clear-pending", "telegram")
}

func TestLogs_FollowShowsWhatIsAdded(t *testing.T) {
	p := newPlace(t)
	d := p.run()
	cmd := p.command("logs", "-f", "-n", "0", "--json")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	// What is written before the follower has read the end of the file may be missed: write until it is seen.
	seen := false
	p.until("a new line is followed", func() bool {
		d.refused()
		for {
			select {
			case line := <-lines:
				seen = seen || strings.Contains(line, "web request refused")
				continue
			default:
			}
			return seen
		}
	})
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.NoError(t, cmd.Wait(), "Ctrl+C ends it well")
}

func TestConfig(t *testing.T) {
	p := newPlace(t)
	require.NoError(t, os.MkdirAll(p.home, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(p.home, ".env"), []byte("OPENAI_API_KEY=sk-very-secret-0123456789\nTELEGRAM_BOT_TOKEN=4242:a-token-nobody-may-see-000000000\n"), 0o600))
	for _, args := range [][]string{{"config", "show"}, {"config", "show", "--changed"}, {"config", "check"}} {
		out := p.good(args...)
		require.NotContains(t, out, "very-secret")
		require.NotContains(t, out, "nobody-may-see")
	}
	require.Contains(t, p.good("config", "show"), ".env", "it says where a value comes from")
	var schema map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(p.good("config", "schema")), &schema))
	require.Contains(t, string(schema["properties"]), "http")
}

// P10: SIGTERM and the first Ctrl+C stop in order, with code 0; a second one ends the process at once.
func TestSignals(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			d := newPlace(t).run()
			require.NoError(t, d.cmd.Process.Signal(sig))
			require.Zero(t, d.wait(), d.log())
			require.Contains(t, d.log(), "stopped")
		})
	}
	t.Run("SecondSIGINT", func(t *testing.T) {
		p := newPlace(t)
		d := p.run("--set", "agent.restart_drain_timeout=10m")
		d.say("kitchen-1", "message-1", "count to 9999 slowly")
		d.until("the answer grows", func() bool {
			for _, m := range d.history("kitchen-1") {
				if m.From == "agent" && strings.Contains(m.Text, "1 2 3") {
					return true
				}
			}
			return false
		})
		require.NoError(t, d.cmd.Process.Signal(syscall.SIGINT))
		d.until("the daemon says that it stops", func() bool { return strings.Contains(d.log(), "stopping") })
		require.False(t, d.over(), "the answer is still being made")
		require.NoError(t, d.cmd.Process.Signal(syscall.SIGINT))
		require.NotZero(t, d.wait())
		// P1: the answer goes on after the next start.
		again := p.run()
		again.until("the turn is taken up", func() bool { return strings.Contains(p.good("status"), "1 running") })
		again.say("kitchen-1", "message-2", "/stop")
		again.await("kitchen-1", "Stopped.")
		again.stop()
	})
}
