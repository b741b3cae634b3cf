package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	c, r, err := Load(Source{Home: t.TempDir()})
	require.NoError(t, err)
	require.Empty(t, r.Warnings)
	require.Equal(t, Default(), c)
	require.Equal(t, "127.0.0.1:7878", c.HTTP.Listen)
	require.Equal(t, 1800*time.Second, c.Agent.Timeout)
	require.Equal(t, 800*time.Millisecond, c.Streaming.EditInterval)
	require.Equal(t, " ▉", c.Streaming.Cursor)
	require.Equal(t, Bytes(128<<20), c.Gateway.MaxInboundMedia)
	require.True(t, c.Platforms.Web.On())
	require.False(t, c.Platforms.Telegram.On())
	require.Equal(t, "default", r.Origin("http.listen").String())
	require.Equal(t, Choice{Provider: "ollama", BaseURL: "http://127.0.0.1:11434", Probe: true, Reason: "no model key is set"}, c.ModelChoice())
}

// The environment that the benchmark of the project sets.
func TestLoad_BenchmarkEnvironment(t *testing.T) {
	c, r, err := Load(Source{Home: t.TempDir(), Environ: []string{
		"TELEGRAM_BOT_TOKEN=1234:abc", "HERALD_TELEGRAM_BASE_URL=http://127.0.0.1:9999/", "HERALD_TELEGRAM_ALLOW_FROM=*",
		"HERALD_TELEGRAM_RATE_LIMIT=off", "OPENAI_API_KEY=sk-test", "OPENAI_BASE_URL=http://127.0.0.1:8888/v1", "HERALD_MODEL=fake", "HERALD_HOME=/x",
	}})
	require.NoError(t, err)
	require.Empty(t, r.Warnings)
	tg := c.Platforms.Telegram
	require.True(t, tg.On())
	require.Equal(t, "1234:abc", tg.Token.Reveal())
	require.Equal(t, "http://127.0.0.1:9999", tg.BaseURL)
	require.Equal(t, []string{"*"}, tg.AllowFrom)
	require.Equal(t, Rate{Off: true}, tg.RateLimit)
	require.Equal(t, "env HERALD_TELEGRAM_ALLOW_FROM", r.Origin("platforms.telegram.allow_from").String())
	require.Equal(t, Choice{Provider: "openai", Name: "fake", BaseURL: "http://127.0.0.1:8888/v1", APIKey: NewSecret("sk-test"), Reason: "OPENAI_API_KEY is set"}, c.ModelChoice())
}
