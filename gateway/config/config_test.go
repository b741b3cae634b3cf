package config

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"herald/platforms"
	"herald/platforms/all"
	"herald/platforms/telegram"
	"herald/platforms/web"
)

var update = flag.Bool("update", false, "write the golden files again")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), string(got)))
}

// Every key has a place, a meaning, and bounds that its default keeps.
func TestTags(t *testing.T) {
	env := map[string]string{}
	tags := keys(all.Kinds())
	for _, k := range tags.Keys() {
		require.Regexp(t, `^[a-z][a-z0-9_]*$`, k.Name, k.Path)
		require.NotEmpty(t, k.Doc, k.Path)
		require.Contains(t, []Reload{ReloadLive, ReloadSession, ReloadAdapter, ReloadRestart}, k.Reload, k.Path)
		for _, name := range k.Variables {
			require.Empty(t, env[name], "%s and %s both read %s", env[name], k.Path, name)
			require.NotContains(t, name, "{", k.Path)
			env[name] = k.Path
		}
		typ := k.Type
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		switch typ.Kind() {
		case reflect.Int, reflect.Int64, reflect.Float64:
			require.NotEmpty(t, k.Min, k.Path)
			require.NotEmpty(t, k.Max, k.Path)
		}
		if k.Short != "" {
			require.True(t, tags.Has(k.Path+"."+k.Short), k.Path)
		}
		if k.Leaf && typ.Kind() == reflect.Slice {
			require.Equal(t, reflect.String, typ.Elem().Kind(), k.Path)
		}
	}
	require.Greater(t, len(env), 200)
	for _, r := range renamed(all.Kinds()) {
		require.False(t, tags.Has(r.From), "%s is a key and renamed", r.From)
		if r.To != "" {
			require.True(t, tags.Has(r.To), r.To)
		}
	}
	require.Equal(t, "platforms.telegram.token", env["TELEGRAM_BOT_TOKEN"])
	require.Equal(t, "platforms.telegram.group_allowed_chats", env["TELEGRAM_GROUP_ALLOWED_CHATS"])
	require.Equal(t, "platforms.telegram.home_channel.name", env["TELEGRAM_HOME_CHANNEL_NAME"])
	require.Equal(t, "providers.openrouter.api_key", env["OPENROUTER_API_KEY"])
	require.Equal(t, "gateway.lock_dir", env["HERALD_GATEWAY_LOCK_DIR"])
}

func TestShow_Golden(t *testing.T) {
	c, r, err := Load(Source{Kinds: all.Kinds(),
		Home:    home(t, "model: gpt\ndisplay:\n  platforms: {telegram: {tool_progress: new}}\nplatforms:\n  telegram:\n    allow_from: [1, '*']\n    channel_prompts: {\"-100\": be brief}\n", "TELEGRAM_BOT_TOKEN=1:hunter2\n"),
		Environ: []string{"OPENAI_API_KEY=sk-hunter2", "HERALD_MODEL_FALLBACKS=[{provider: openai, name: x}]", "HERALD_TELEGRAM_RATE_LIMIT=off"},
		Flags:   map[string]string{"http.listen": "127.0.0.1:0"},
	})
	require.NoError(t, err)
	all, changed := Show(c, r), ShowChanged(c, r)
	require.NotContains(t, string(all)+string(changed), "hunter2")
	golden(t, "show.yaml", all)
	golden(t, "changed.yaml", changed)
}

// What Show prints loads again and gives the same configuration, secrets aside.
func TestShow_LoadsAgain(t *testing.T) {
	before, _, err := Load(Source{Kinds: all.Kinds(), Environ: []string{"HERALD_TELEGRAM_ALLOW_FROM=1,@x", "HERALD_STREAMING_CURSOR= █", "HERALD_DISPLAY_STREAMING=no",
		"HERALD_TELEGRAM_RATE_LIMIT=2.5", "HERALD_GATEWAY_MAX_INBOUND_MEDIA_BYTES=10MB", "HERALD_MODEL_FALLBACKS=[{provider: demo, name: \"no\"}]",
		"HERALD_DISPLAY_PLATFORMS_SLACK_LIVE_STATUS=off", "HERALD_AGENT_INSTRUCTIONS=a: b\nc"}})
	require.NoError(t, err)
	after, r, err := Load(Source{Kinds: all.Kinds(), Home: home(t, string(Show(before, nil)), "")})
	require.NoError(t, err)
	require.Empty(t, r.Warnings)
	require.Empty(t, Diff(before, after))
}

func TestSchema(t *testing.T) {
	raw := Schema(all.Kinds()...)
	golden(t, "schema.json", raw)
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal(raw, &s))
	resolved, err := s.Resolve(nil)
	require.NoError(t, err)
	instance := func(text string) any {
		var v any
		require.NoError(t, yaml.Unmarshal([]byte(text), &v))
		b, err := json.Marshal(v)
		require.NoError(t, err)
		var out any
		require.NoError(t, json.Unmarshal(b, &out))
		return out
	}
	for _, good := range []string{"model: x", "model: {name: x}", "agent: {max_turns: none, gateway_timeout: 30s}", "platforms: {telegram: {allow_from: [1, a], rate_limit: off, home_channel: {chat: 5}}}",
		"display: {tool_progress: off, platforms: {web: {streaming: true}}}"} {
		require.NoError(t, resolved.Validate(instance(good)), good)
	}
	for _, bad := range []string{"modle: x", "agent: {max_turns: -5}", "display: {busy_input_mode: fast}", "display: {platforms: {nowhere: {}}}", "platforms: {telegram: {token: x}}", "model: {fallbacks: [{provider: demo}]}"} {
		require.Error(t, resolved.Validate(instance(bad)), bad)
	}
}

func TestReference_Golden(t *testing.T) {
	page := Reference(all.Kinds()...)
	golden(t, "../../../docs/configuration.md", page)
	for _, k := range keys(all.Kinds()).Keys() {
		if k.Leaf {
			require.Contains(t, string(page), "| `"+k.Name+"` | "+strings.ReplaceAll(k.Doc, "|", "\\|"), k.Path)
		}
	}
}

func TestDiff(t *testing.T) {
	load := func(env ...string) *Config {
		c, _, err := Load(Source{Kinds: all.Kinds(), Environ: env})
		require.NoError(t, err)
		return c
	}
	got := Diff(load("TELEGRAM_BOT_TOKEN=1:hunter2", "HERALD_LOG=info"), load("TELEGRAM_BOT_TOKEN=1:hunter3", "HERALD_LOG=debug", "HERALD_HTTP_LISTEN=127.0.0.1:1",
		"HERALD_MODEL=x", "TELEGRAM_ALLOWED_USERS=1,2", "HERALD_DISPLAY_PLATFORMS_WEB_STREAMING=no", "HERALD_TERMINAL_TIMEOUT=5"))
	want := []Change{
		{Key: "http.listen", Old: "127.0.0.1:7878", New: "127.0.0.1:1", Reload: ReloadRestart},
		{Key: "model.name", Old: "", New: "x", Reload: ReloadLive},
		{Key: "display.platforms.web.streaming", Old: "", New: "false", Reload: ReloadLive},
		{Key: "platforms.telegram.allowed_users", Old: "", New: "1, 2", Reload: ReloadLive, Part: "telegram"},
		{Key: "platforms.telegram.token", Old: "***", New: "***", Reload: ReloadAdapter, Part: "telegram"},
		{Key: "terminal.timeout", Old: "3m", New: "5s", Reload: ReloadRestart},
		{Key: "log.level", Old: "info", New: "debug", Reload: ReloadLive},
	}
	require.Empty(t, cmp.Diff(want, got))
	require.Empty(t, Diff(Default(all.Kinds()...), Default(all.Kinds()...)))
	require.Equal(t, `log.level: "info" to "debug" (live)`, got[6].String())
}

// A daemon obeys a changed file at once, but for what needs a restart.
func TestInForce(t *testing.T) {
	running, loaded := Default(all.Kinds()...), Default(all.Kinds()...)
	loaded.HTTP.Listen, loaded.GroupSessionsPerUser, loaded.Terminal.Cwd = "127.0.0.1:1", false, "/elsewhere"
	loaded.Display.BusyInputMode, own[*telegram.Settings](loaded).Token, own[*web.Settings](loaded).AllowedUsers = "queue",
		NewSecret("1:new"), []string{"1"}
	got := InForce(running, loaded)
	require.Equal(t, running.HTTP, got.HTTP)
	require.True(t, got.GroupSessionsPerUser)
	require.Equal(t, "workspace", got.Terminal.Cwd)
	require.Equal(t, "queue", got.Display.BusyInputMode)
	require.Equal(t, "1:new", own[*telegram.Settings](got).Token.Reveal())
	require.Equal(t, []string{"1"}, own[*web.Settings](got).AllowedUsers)
	require.Equal(t, "127.0.0.1:1", loaded.HTTP.Listen)
	for _, c := range Diff(running, got) {
		require.NotEqual(t, ReloadRestart, c.Reload, c.Key)
	}
}

// The table of the platforms' tiers, and the order in which values win.
func TestDisplayFor(t *testing.T) {
	c := Default(all.Kinds()...)
	for _, row := range []struct {
		tier                                      platforms.Tier
		progress                                  string
		interim, heartbeat, busyDetail, streaming bool
	}{
		{platforms.TierHigh, "all", true, true, true, true},
		{platforms.TierHighQuiet, "off", true, true, false, true},
		{platforms.TierMedium, "new", true, true, true, true},
		{platforms.TierMediumQuiet, "off", true, false, false, true},
		{platforms.TierLow, "off", false, false, false, false},
		{platforms.TierMinimal, "off", false, false, false, false},
		{"nonsense", "off", false, false, false, false},
	} {
		d := c.DisplayFor("p", row.tier)
		require.Equal(t, row.progress, d.ToolProgress, row.tier)
		require.Equal(t, row.interim, d.Interim, row.tier)
		require.Equal(t, row.heartbeat, d.LongRunning, row.tier)
		require.Equal(t, row.busyDetail, d.BusyAckDetail, row.tier)
		require.Equal(t, row.streaming, d.Streaming, row.tier)
		require.Equal(t, "interrupt", d.BusyInputMode)
		require.True(t, d.BusyAck)
	}
	require.Equal(t, 40, c.DisplayFor("web", platforms.TierHigh).PreviewLength)
	require.True(t, c.DisplayFor("web", platforms.TierHigh).MemoryNotices)
	require.False(t, c.DisplayFor("discord", platforms.TierHigh).MemoryNotices)

	load := func(text string) *Config {
		c, _, err := Load(Source{Kinds: all.Kinds(), Home: home(t, text, "")})
		require.NoError(t, err)
		return c
	}
	c = load("display: {tool_progress: new, busy_ack_enabled: off, platforms: {telegram: {tool_progress: verbose, busy_ack_enabled: on, interim_assistant_messages: false}}}\nstreaming: {enabled: false}")
	require.Equal(t, "verbose", c.DisplayFor("telegram", platforms.TierHighQuiet).ToolProgress, "the platform's own value")
	require.Equal(t, "new", c.DisplayFor("slack", platforms.TierMediumQuiet).ToolProgress, "a general value replaces quiet defaults")
	require.True(t, c.DisplayFor("telegram", platforms.TierHighQuiet).BusyAck)
	require.False(t, c.DisplayFor("web", platforms.TierHigh).BusyAck)
	require.False(t, c.DisplayFor("telegram", platforms.TierHighQuiet).Interim)
	require.False(t, c.DisplayFor("web", platforms.TierHigh).Streaming, "follows streaming.enabled")
	c = load("streaming: {enabled: false}\ndisplay: {platforms: {web: {streaming: true}}}")
	require.True(t, c.DisplayFor("web", platforms.TierHigh).Streaming)
	require.Equal(t, "off", load("display: {tool_progress: false}").DisplayFor("web", platforms.TierHigh).ToolProgress)
}

func TestLoopback(t *testing.T) {
	for listen, want := range map[string]bool{"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:1": true, "LOCALHOST:1": true,
		":7878": false, "0.0.0.0:1": false, "[::]:1": false, "192.168.0.1:1": false, "localhost.example:1": false, "nonsense": false} {
		require.Equal(t, want, Loopback(listen), listen)
	}
}

func TestResolveHome(t *testing.T) {
	env := []string{"HOME=/home/u", "HERALD_HOME=/srv/h"}
	for _, c := range []struct {
		flag, profile string
		env           []string
		want          string
	}{
		{"", "", env, "/srv/h"}, {"/flag", "", env, "/flag"}, {"", "", env[:1], "/home/u/.herald"}, {"~/x", "", env, "/home/u/x"},
		{"", "work", env, "/srv/h/profiles/work"}, {"", "default", env, "/srv/h"},
	} {
		got, err := ResolveHome(c.flag, c.profile, c.env)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	_, err := ResolveHome("", "", nil)
	require.ErrorContains(t, err, "set HERALD_HOME")
	for _, bad := range []string{"..", "a/b", "A", "-x", "a b", ".x", strings.Repeat("a", 65), "ä", "a\n"} {
		_, err := ResolveHome("", bad, env)
		require.ErrorContains(t, err, "want 1 to 64 of a-z", bad)
	}
}

func TestOpenHome(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	p, err := OpenHome(dir)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "herald.db"), p.DB)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "the probe leaves nothing behind")

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = OpenHome(file)
	require.ErrorContains(t, err, file)
	_, err = OpenHome(filepath.Join(file, "below"))
	require.ErrorContains(t, err, "set HERALD_HOME to another place")
	require.ErrorContains(t, err, "has mode 0600 and belongs to user")
}

// An unreadable home is named with path, mode and owner. Root can read everything, so as root the test runs itself
// again as nobody.
func TestOpenHome_NoAccess(t *testing.T) {
	if os.Getuid() == 0 {
		asNobody(t)
		return
	}
	for _, mode := range []os.FileMode{0, 0o500, 0o300} {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, mode))
		_, err := OpenHome(dir)
		require.NoError(t, os.Chmod(dir, 0o700))
		require.ErrorContains(t, err, dir)
		require.ErrorContains(t, err, fmt.Sprintf("has mode %04o and belongs to user", mode))
		require.ErrorContains(t, err, "chmod u+rwx")
		require.ErrorContains(t, err, "HERALD_HOME")
	}
	dir := home(t, "log: {level: debug}", "")
	require.NoError(t, os.Chmod(filepath.Join(dir, "config.yaml"), 0))
	_, _, err := Load(Source{Kinds: all.Kinds(), Home: dir})
	require.ErrorContains(t, err, filepath.Join(dir, "config.yaml")+": cannot be read: permission denied")
	require.ErrorContains(t, err, "has mode 0000 and belongs to user")
}

// asNobody runs the test once more in a process of an ordinary user.
func asNobody(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "herald-nobody-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o777))
	self, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	program := filepath.Join(dir, "test")
	require.NoError(t, os.WriteFile(program, self, 0o755))
	require.NoError(t, os.Chmod(program, 0o755))
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = dir, []string{"TMPDIR=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
}

func TestWorkDir(t *testing.T) {
	c, p := Default(all.Kinds()...), PathsFor("/h")
	require.Equal(t, "/h/workspace", c.WorkDir(p))
	c.Terminal.Cwd = "/abs"
	require.Equal(t, "/abs", c.WorkDir(p))
}

func TestCheck(t *testing.T) {
	text, ok := Check(Source{Kinds: all.Kinds(), Home: home(t, "log: {level: loud}\nmodle: x", "")})
	require.False(t, ok)
	require.Contains(t, text, "error: log.level:")
	require.Contains(t, text, "warning: modle: unknown key, ignored; did you mean model?")
	text, ok = Check(Source{Kinds: all.Kinds(), Home: t.TempDir()})
	require.True(t, ok)
	require.Equal(t, "The configuration is good.\n", text)
}

// call is one call of a Watch's function.
type call struct {
	c       *Config
	r       *Report
	changes []Change
}

// watching starts a Watch that ends with the test.
func watching(t *testing.T, dir string, opts WatchOptions) <-chan call {
	t.Helper()
	c, _, err := Load(Source{Kinds: all.Kinds(), Home: dir})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	calls, done := make(chan call, 10), make(chan error)
	go func() {
		done <- Watch(ctx, Source{Kinds: all.Kinds(), Home: dir}, c, opts, func(c *Config, r *Report, ch []Change) { calls <- call{c, r, ch} })
	}()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	return calls
}

func next(t *testing.T, calls <-chan call) call {
	t.Helper()
	select {
	case c := <-calls:
		return c
	case <-time.After(10 * time.Second):
		t.Fatal("the change was not noticed")
		return call{}
	}
}

func TestWatch(t *testing.T) {
	for name, opts := range map[string]WatchOptions{
		"notified": {Settle: 10 * time.Millisecond, Poll: time.Hour},
		"polled":   {Settle: time.Hour, Poll: 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			dir := home(t, "log: {level: info}", "# empty")
			// A write before the watch has begun is found as well, so the test need not wait for the watch.
			calls := watching(t, dir, opts)
			file := filepath.Join(dir, "config.yaml")
			replace := func(text string) { // as editors do
				require.NoError(t, os.WriteFile(file+".new", []byte(text), 0o600))
				require.NoError(t, os.Rename(file+".new", file))
			}
			replace("log: {level: debug}")
			got := next(t, calls)
			require.Equal(t, []Change{{Key: "log.level", Old: "info", New: "debug", Reload: ReloadLive}}, got.changes)

			replace("log: {level: loud}\nmodel: x")
			got = next(t, calls)
			require.ErrorContains(t, got.r.Err(), "log.level")
			require.Empty(t, got.changes)
			require.Equal(t, "debug", got.c.Log.Level, "the old configuration stays, whole")
			require.Empty(t, got.c.Model.Name)

			require.NoError(t, os.WriteFile(filepath.Join(dir, ".env"), []byte("HERALD_MODEL=y"), 0o600))
			got = next(t, calls)
			require.Error(t, got.r.Err(), "config.yaml is still broken")

			replace("log: {level: debug}\n# a comment changes nothing")
			got = next(t, calls)
			require.Equal(t, []Change{{Key: "model.name", New: "y", Reload: ReloadLive}}, got.changes)
		})
	}
}

// A file that was not there when the watch began, and one that was taken away meanwhile.
func TestWatch_NewFile(t *testing.T) {
	dir := home(t, "log: {level: info}", "")
	file := filepath.Join(dir, ".env")
	calls := watching(t, dir, WatchOptions{Settle: 5 * time.Millisecond, Poll: 20 * time.Millisecond})
	for _, name := range []string{"y", "z"} {
		require.NoError(t, os.WriteFile(file, []byte("HERALD_MODEL="+name), 0o600))
		require.Equal(t, name, next(t, calls).c.Model.Name)
		require.NoError(t, os.Remove(file))
		require.Empty(t, next(t, calls).c.Model.Name)
	}
}
