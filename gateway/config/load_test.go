package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/all"
	"herald/platforms/telegram"
	"herald/platforms/web"
)

// home makes a home with a config.yaml and a .env; empty ones are left out.
func home(t testing.TB, yaml, env string) string {
	t.Helper()
	dir := t.TempDir()
	if yaml != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(yaml), 0o600))
	}
	if env != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".env"), []byte(env), 0o600))
	}
	return dir
}

func TestLoad_NothingSet(t *testing.T) {
	c, r, err := Load(Source{Kinds: all.Kinds(), Home: t.TempDir()})
	require.NoError(t, err)
	require.Empty(t, r.Warnings)
	require.Equal(t, Default(all.Kinds()...), c)
	require.Equal(t, "127.0.0.1:7878", c.HTTP.Listen)
	require.Equal(t, 1800*time.Second, c.Agent.Timeout)
	require.Equal(t, 800*time.Millisecond, c.Streaming.EditInterval)
	require.Equal(t, " ▉", c.Streaming.Cursor)
	require.Equal(t, Rate{On: true}, own[*telegram.Settings](c).RateLimit)
	require.Equal(t, Bytes(128<<20), c.Gateway.MaxInboundMedia)
	require.True(t, own[*web.Settings](c).On())
	require.False(t, own[*telegram.Settings](c).On())
	require.Equal(t, "default", r.Origin("http.listen").String())
	require.Equal(t, "auto", c.Model.Provider)
	require.Equal(t, "http://127.0.0.1:11434", c.Providers.Ollama.BaseURL)
}

// The environment that the benchmark of the project sets.
func TestLoad_BenchmarkEnvironment(t *testing.T) {
	c, r, err := Load(Source{Kinds: all.Kinds(), Home: t.TempDir(), Environ: []string{
		"TELEGRAM_BOT_TOKEN=1234:abc", "HERALD_TELEGRAM_BASE_URL=http://127.0.0.1:9999/", "HERALD_TELEGRAM_ALLOW_FROM=*",
		"HERALD_TELEGRAM_RATE_LIMIT=off", "OPENAI_API_KEY=sk-test", "OPENAI_BASE_URL=http://127.0.0.1:8888/v1", "HERALD_MODEL=fake", "HERALD_HOME=/x",
	}})
	require.NoError(t, err)
	require.Empty(t, r.Warnings)
	tg := own[*telegram.Settings](c)
	require.True(t, tg.On())
	require.Equal(t, "1234:abc", tg.Token.Reveal())
	require.Equal(t, "http://127.0.0.1:9999", tg.BaseURL)
	require.Equal(t, []string{"*"}, tg.AllowFrom)
	require.Equal(t, Rate{}, tg.RateLimit)
	require.Equal(t, "env HERALD_TELEGRAM_ALLOW_FROM", r.Origin("platforms.telegram.allow_from").String())
	require.Equal(t, Provider{APIKey: NewSecret("sk-test"), BaseURL: "http://127.0.0.1:8888/v1"}, c.Providers.OpenAI)
	require.Equal(t, "fake", c.Model.Name)
}

// Flag, environment, .env, config.yaml, default: each wins over the next.
func TestLoad_Order(t *testing.T) {
	src := Source{Kinds: all.Kinds(),
		Home:    home(t, "http: {listen: 127.0.0.1:1}\nlog: {level: warn}\nmodel: from-file\nagent: {max_turns: 1}\n", "HERALD_LOG_LEVEL=error\nHERALD_MODEL=dotenv\nHERALD_AGENT_MAX_TURNS=2\n"),
		Environ: []string{"HERALD_MODEL=env", "HERALD_AGENT_MAX_TURNS=3"},
		Flags:   map[string]string{"agent.max_turns": "4"},
	}
	c, r, err := Load(src)
	require.NoError(t, err)
	require.Empty(t, r.Warnings)
	require.Equal(t, "127.0.0.1:1", c.HTTP.Listen)
	require.Equal(t, "error", c.Log.Level)
	require.Equal(t, "env", c.Model.Name)
	require.Equal(t, 4, c.Agent.MaxTurns)
	for key, want := range map[string]string{"http.listen": "config.yaml:1", "log.level": ".env:1 HERALD_LOG_LEVEL", "model.name": "env HERALD_MODEL",
		"agent.max_turns": "flag --agent.max_turns", "log.format": "default"} {
		require.Equal(t, want, r.Origin(key).String(), key)
	}
}

func TestLoad_Problems(t *testing.T) {
	for _, c := range []struct {
		name, yaml string
		env        []string
		errors     []string // parts of messages, in order
		warnings   []string
	}{
		{name: "unknown key with a neighbour", yaml: "\nhttp:\n  lisen: 127.0.0.1:1\n", warnings: []string{"http.lisen: unknown key, ignored; did you mean http.listen? (HOME/config.yaml:3)"}},
		{name: "unknown key known elsewhere", yaml: "max_turns: 3", warnings: []string{"max_turns: unknown key, ignored; did you mean agent.max_turns? (HOME/config.yaml:1)"}},
		{name: "unknown key far from all", yaml: "zebra_crossing_count: 3", warnings: []string{"zebra_crossing_count: unknown key, ignored (HOME/config.yaml:1)"}},
		{name: "unknown block", yaml: "platforms:\n  telegrem: {enabled: true}", warnings: []string{"platforms.telegrem: unknown key, ignored; did you mean platforms.telegram?"}},
		{name: "unknown variable", env: []string{"HERALD_TELEGRAM_ALOW_FROM=1"}, warnings: []string{"unknown variable, ignored; did you mean HERALD_TELEGRAM_ALLOW_FROM? (variable HERALD_TELEGRAM_ALOW_FROM)"}},
		{name: "wrong choice", yaml: "display:\n  busy_input_mode: fast", errors: []string{`display.busy_input_mode: "fast" is no good: want one of interrupt, queue, steer (HOME/config.yaml:2)`}},
		{name: "wrong type", yaml: "agent:\n  max_turns: many", errors: []string{`agent.max_turns: "many" is no good: want a whole number from 0 to 1000000, or none (HOME/config.yaml:2)`}},
		{name: "list for a number", yaml: "agent:\n  max_turns: [1]", errors: []string{"agent.max_turns: is a list: want a whole number from 0 to 1000000, or none"}},
		{name: "number for a block", yaml: "agent: 3", errors: []string{"agent: is a single value: want keys with values: max_turns, gateway_timeout"}},
		{name: "out of bounds", yaml: "sessions: {retention_days: 0}", errors: []string{`sessions.retention_days: "0" is no good: want a whole number from 1 to 36500`}},
		{name: "bad time", yaml: "agent: {gateway_timeout: soon}", errors: []string{`"soon" is no good: want a time such as 30s or 5m, or seconds, from 0s to 168h`}},
		{name: "bad rate in a variable", env: []string{"HERALD_TELEGRAM_RATE_LIMIT=fast"}, errors: []string{`platforms.telegram.rate_limit: "fast" is no good: want on, off, or messages a second (variable HERALD_TELEGRAM_RATE_LIMIT)`}},
		{name: "bad pattern", yaml: "platforms: {telegram: {mention_patterns: ['(']}}", errors: []string{`"(" is no good: want regular expressions`}},
		{name: "address with a password", yaml: "model: {base_url: 'http://u:hunter2@h/'}", errors: []string{"want http://host or https://host, without a user name"}},
		{name: "all at once", yaml: "log: {level: loud, format: pink}", env: []string{"HERALD_AGENT_MAX_TURNS=x"}, errors: []string{"log.level", "log.format", "agent.max_turns"}},
		{name: "no YAML", yaml: "a: b\n c: d: e\n", errors: []string{"is not YAML: mapping values are not allowed in this context; none of the file was used (HOME/config.yaml:2)"}},
		{name: "a key twice", yaml: "log: {level: info}\nlog: {level: warn}\n", errors: []string{"log: stands twice; the first is in line 1 (HOME/config.yaml:2)"}},
		{name: "two documents", yaml: "log: {level: info}\n---\nlog: {level: warn}\n", warnings: []string{"only the first document"}},
		{name: "a secret in the file", yaml: "platforms:\n  telegram:\n    token: 123:hunter2", errors: []string{"platforms.telegram.token: is a secret and has no place in config.yaml; move it to the .env file as TELEGRAM_BOT_TOKEN=…, and change it if others could read it (HOME/config.yaml:3)"}},
		{name: "placeholder", env: []string{"TELEGRAM_BOT_TOKEN=your-token-here"}, errors: []string{"platforms.telegram.token: the value is a placeholder; put the real one there, or remove it (variable TELEGRAM_BOT_TOKEN)"}},
		{name: "short secret", env: []string{"OPENAI_API_KEY=abc"}, errors: []string{"providers.openai.api_key: the value is shorter than 4 characters"}},
		{name: "fallback without name", yaml: "model: {fallbacks: [{provider: openai}]}", errors: []string{"model.fallbacks.0.name: is missing"}},
		{name: "renamed", yaml: "agent: {gateway_auto_continue_freshness: 5}", warnings: []string{"agent.gateway_auto_continue_freshness: is now called agent.auto_continue_freshness"}},
		{name: "retired", yaml: "session_reset: {mode: both}", warnings: []string{"session_reset: has no effect any more; remove it"}},
		{name: "no platform", yaml: "display: {platforms: {telegrma: {streaming: false}}}", warnings: []string{"display.platforms.telegrma: no such platform, ignored; did you mean telegram?"}},
		{name: "two names, two values", env: []string{"HERALD_TELEGRAM_ALLOWED_USERS=1", "TELEGRAM_ALLOWED_USERS=2"}, warnings: []string{"platforms.telegram.allowed_users: is not used, because HERALD_TELEGRAM_ALLOWED_USERS is set as well (variable TELEGRAM_ALLOWED_USERS)"}},
		{name: "open to the world", yaml: "http: {listen: '0.0.0.0:7878'}", errors: []string{`http.listen: "0.0.0.0:7878" can be reached from other machines, and there is no password`}},
		{name: "telegram without token", yaml: "platforms: {telegram: {enabled: true}}", errors: []string{"platforms.telegram.token: Telegram is on and has no token; set TELEGRAM_BOT_TOKEN"}},
		{name: "off beats a token", yaml: "platforms: {telegram: {enabled: no}}", env: []string{"TELEGRAM_BOT_TOKEN=1:abcd"}, warnings: []string{"Telegram stays off although TELEGRAM_BOT_TOKEN is set"}},
		{name: "webhook without secret", env: []string{"TELEGRAM_BOT_TOKEN=1:abcd", "TELEGRAM_WEBHOOK_URL=https://x.example"}, errors: []string{"platforms.telegram.webhook_secret: webhook_url is set and there is no secret"}},
		{name: "webhook in the clear", env: []string{"TELEGRAM_BOT_TOKEN=1:abcd", "TELEGRAM_WEBHOOK_URL=http://x.example", "TELEGRAM_WEBHOOK_SECRET=s3cret"}, errors: []string{"Telegram calls https addresses only"}},
		{name: "provider without key", yaml: "model: {provider: anthropic}", errors: []string{`model.provider: "anthropic" needs a key; set ANTHROPIC_API_KEY`}},
		{name: "warning after the end", yaml: "agent: {gateway_timeout: 60, gateway_timeout_warning: 90}", warnings: []string{"1m30s is not shorter than agent.gateway_timeout (1m0s)"}},
		{name: "circular alias", yaml: "tools: {platform_toolsets: &a {web: *a}}", errors: []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := home(t, c.yaml, "")
			_, r, err := Load(Source{Kinds: all.Kinds(), Home: dir, Environ: c.env})
			require.Equal(t, len(c.errors) > 0, err != nil)
			match := func(want []string, got []Problem) {
				require.Len(t, got, len(want), "%v", got)
				for i, w := range want {
					require.Contains(t, strings.ReplaceAll(got[i].Error(), dir, "HOME"), w)
				}
			}
			match(c.errors, r.Errors)
			match(c.warnings, r.Warnings)
			for _, p := range append(r.Errors, r.Warnings...) {
				require.NotContains(t, p.Error(), "hunter2", "secrets are never repeated")
				if err != nil && slices.Contains(r.Errors, p) {
					require.Contains(t, err.Error(), p.Error())
				}
			}
		})
	}
}

func TestLoad_Merge(t *testing.T) {
	c, _, err := Load(Source{Kinds: all.Kinds(), Home: home(t, "display:\n  platforms:\n    web: &base {tool_progress: new, streaming: false}\n    slack: {<<: *base, streaming: true}\n", "")})
	require.NoError(t, err)
	require.Equal(t, "new", *c.Display.Platforms["slack"].ToolProgress)
	require.True(t, *c.Display.Platforms["slack"].Streaming, "a key of its own wins over a merged one")
	require.False(t, *c.Display.Platforms["web"].Streaming)
	for _, text := range []string{"log: {<<: 3}", "a: &a {x: 1}\nlog: {<<: *a, <<: *a}", "log: &l {<<: *l}", "? [a]\n: b"} {
		_, _, err := Load(Source{Kinds: all.Kinds(), Home: home(t, text, "")})
		require.Error(t, err, text)
	}
}

// A broken value leaves the others as they are set.
func TestLoad_OthersStillLoad(t *testing.T) {
	c, _, err := Load(Source{Kinds: all.Kinds(), Home: home(t, "log: {level: loud, format: json}\nagent: {max_turns: 7}", "")})
	require.Error(t, err)
	require.Equal(t, "info", c.Log.Level)
	require.Equal(t, "json", c.Log.Format)
	require.Equal(t, 7, c.Agent.MaxTurns)
}

func TestLoad_Forms(t *testing.T) {
	c, r, err := Load(Source{Kinds: all.Kinds(), Home: home(t, `
agent: {gateway_timeout: 90, session_stall_timeout: 2m, gateway_notify_interval: 0, max_turns: none, restart_drain_timeout: 1.5}
gateway: {max_inbound_media_bytes: 10MB, max_message_bytes: 65536}
sessions: {retention_days: 1d_is_not_a_number}
`, "")})
	require.ErrorContains(t, err, "retention_days")
	require.Empty(t, r.Warnings)
	require.Equal(t, 90*time.Second, c.Agent.Timeout)
	require.Equal(t, 2*time.Minute, c.Agent.StallTimeout)
	require.Zero(t, c.Agent.NotifyInterval)
	require.Zero(t, c.Agent.MaxTurns)
	require.Equal(t, 1500*time.Millisecond, c.Agent.DrainTimeout)
	require.Equal(t, Bytes(10_000_000), c.Gateway.MaxInboundMedia)
	require.Equal(t, Bytes(65536), c.Gateway.MaxMessage)
}

// The places where related configurations have the same keys.
func TestLoad_OtherPlaces(t *testing.T) {
	c, r, err := Load(Source{Kinds: all.Kinds(), Home: home(t, `
telegram: {allow_from: [42, "@anna"], home_channel: -1001234}
gateway:
  group_sessions_per_user: false
  max_concurrent_sessions: 4
  platforms: {web: {title: Butler}}
max_concurrent_sessions: 8
platforms:
  telegram: {extra: {base_url: 127.0.0.1:8081, local_mode: yes}}
`, "")})
	require.NoError(t, err)
	tg := own[*telegram.Settings](c)
	require.Equal(t, []string{"42", "@anna"}, tg.AllowFrom)
	require.Equal(t, Home{Chat: "-1001234", Name: "Home"}, tg.HomeChannel)
	require.Equal(t, "http://127.0.0.1:8081", tg.BaseURL)
	require.True(t, tg.LocalMode)
	require.False(t, c.GroupSessionsPerUser)
	require.Equal(t, 8, c.MaxConcurrentSessions, "the key in its own place wins")
	require.Equal(t, "Butler", own[*web.Settings](c).Title)
	require.Len(t, r.Warnings, 1)
	require.Contains(t, r.Warnings[0].Error(), "gateway.max_concurrent_sessions: is not used, because max_concurrent_sessions is set in line 7")
}

func TestLoad_EnvironmentForms(t *testing.T) {
	c, r, err := Load(Source{Kinds: all.Kinds(), UserHome: "/home/u", Environ: []string{
		"TELEGRAM_ALLOWED_USERS= 1, 2 ,2", "TELEGRAM_HOME_CHANNEL=5", "TELEGRAM_HOME_CHANNEL_THREAD_ID=7", "TELEGRAM_ALLOW_ALL_USERS=Yes",
		`HERALD_TELEGRAM_MENTION_PATTERNS=["a,b", "c"]`, "HERALD_MODEL_FALLBACKS=[{provider: openai, name: x}]", "HERALD_TOOLS_PLATFORM_TOOLSETS={web: [a], slack: b}",
		"HERALD_DISPLAY_PLATFORMS_TELEGRAM_TOOL_PROGRESS=off", "HERALD_LANGUAGE=Deutsch", "HERALD_ALLOWED_USERS=9", "HERALD_ALLOW_ALL_USERS=0",
		"HERALD_MEDIA_ALLOW_DIRS=/a:~/b", "OLLAMA_HOST=0.0.0.0", "HERALD_HOME=/h", "HERALD_LOG=debug", "HERALD_HTTP_LISTEN=",
		"HERALD_TELEGRAM_PROXY=socks5://u:p@h:1080", "PATH=/bin", "WEB_ALLOWED_USERS=3",
	}})
	require.NoError(t, err)
	require.Empty(t, r.Warnings)
	tg := own[*telegram.Settings](c)
	require.Equal(t, []string{"1", "2"}, tg.AllowedUsers)
	require.Equal(t, Home{Chat: "5", Thread: "7", Name: "Home"}, tg.HomeChannel)
	require.True(t, tg.AllowAll)
	require.Equal(t, []string{"a,b", "c"}, tg.MentionPatterns)
	require.Equal(t, []Fallback{{Provider: "openai", Name: "x"}}, c.Model.Fallbacks)
	require.Equal(t, map[string][]string{"web": {"a"}, "slack": {"b"}}, c.Tools.PerPlatf)
	require.Equal(t, "off", c.DisplayFor("telegram", platforms.TierHigh).ToolProgress)
	require.Equal(t, "Deutsch", c.Display.Language)
	require.Equal(t, []string{"9"}, c.AllowedUsers)
	require.Equal(t, []string{"/a", "/home/u/b"}, c.Gateway.MediaAllowDirs)
	require.Equal(t, "http://127.0.0.1:11434", c.Providers.Ollama.BaseURL)
	require.Equal(t, "debug", c.Log.Level)
	require.Equal(t, "127.0.0.1:7878", c.HTTP.Listen, "an empty variable is not set")
	require.Equal(t, "socks5://u:p@h:1080", tg.Proxy.Reveal())
	require.Empty(t, own[*web.Settings](c).AllowedUsers)
}

func TestLoad_Files(t *testing.T) {
	dir := home(t, "", "OPENAI_API_KEY=sk-from-file\nbroken\n")
	require.NoError(t, os.Chmod(filepath.Join(dir, ".env"), 0o640))
	c, r, err := Load(Source{Kinds: all.Kinds(), Home: dir})
	require.ErrorContains(t, err, "others may read or change it (mode 0640), and it holds secrets; run: chmod 600 "+filepath.Join(dir, ".env"))
	require.ErrorContains(t, err, "line 2: want NAME=value")
	require.Len(t, r.Errors, 2)
	require.Equal(t, "sk-from-file", c.Providers.OpenAI.APIKey.Reveal())

	_, _, err = Load(Source{Kinds: all.Kinds(), Home: dir, File: filepath.Join(dir, "other.yaml")})
	require.ErrorContains(t, err, "other.yaml: there is no such file")

	require.NoError(t, os.Mkdir(filepath.Join(dir, "config.yaml"), 0o700))
	_, _, err = Load(Source{Kinds: all.Kinds(), Home: dir})
	require.ErrorContains(t, err, "config.yaml: cannot be read")

	_, _, err = Load(Source{Kinds: all.Kinds(), Home: home(t, "#"+strings.Repeat("x", MaxFileBytes), "")})
	require.ErrorContains(t, err, "is larger than 1 MiB")
}

func TestLoad_Flags(t *testing.T) {
	_, _, err := Load(Source{Kinds: all.Kinds(), Flags: map[string]string{"http.listen": "nowhere", "no.such": "1", "http": "x"}})
	require.ErrorContains(t, err, `http.listen: "nowhere" is no good: want host:port such as 127.0.0.1:7878 (flag --http.listen)`)
	require.ErrorContains(t, err, "no.such: there is no such key")
	require.ErrorContains(t, err, "http: there is no such key")
}

func BenchmarkLoad(b *testing.B) {
	dir := home(b, string(Show(Default(all.Kinds()...), nil)), "TELEGRAM_BOT_TOKEN=1:abcd\n")
	env := os.Environ()
	for b.Loop() {
		if _, _, err := Load(Source{Kinds: all.Kinds(), Home: dir, Environ: env}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad_NoFile(b *testing.B) {
	env := append(os.Environ(), "TELEGRAM_BOT_TOKEN=1:abcd")
	for b.Loop() {
		if _, _, err := Load(Source{Kinds: all.Kinds(), Home: "/nonexistent", Environ: env}); err != nil {
			b.Fatal(err)
		}
	}
}

// own returns the settings of the platform that have this type.
func own[T platforms.Settings](c *Config) T {
	for _, b := range c.Platforms.Blocks() {
		if s, ok := b.Settings.(T); ok {
			return s
		}
	}
	panic("no such platform")
}
