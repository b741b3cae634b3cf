package pool

import (
	"bytes"
	"context"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"herald/gateway/config"
	"herald/gateway/model"
	"herald/gateway/model/modeltest"
	"herald/sessions"
)

// open makes a pool over a scripted server, with a configuration that the test changes.
func open(t *testing.T, script *modeltest.Script) (p *Pool, cfg *config.Config, log *bytes.Buffer) {
	srv := modeltest.Serve(script)
	t.Cleanup(srv.Close)
	cfg, log = config.Default(), &bytes.Buffer{}
	cfg.Model.Provider, cfg.Model.Name, cfg.Model.BaseURL = "openai", "main", srv.OpenAI()
	cfg.Providers.OpenAI.APIKey = config.NewSecret("sk-pool")
	p, err := Open(t.Context(), Options{Config: func() *config.Config { return cfg }, Log: zerolog.New(log),
		Reminder: func(_ context.Context, id sessions.ID) string { return "open tasks of " + string(id) }})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p, cfg, log
}

// A chat's own model is opened once; one that can't be opened any more leaves the chat to the configured one.
func TestPool_ModelsOfChats(t *testing.T) {
	p, _, log := open(t, modeltest.NewScript())
	main, err := p.Get("")
	require.NoError(t, err)
	require.Equal(t, "openai/main", main.Info().String())

	name, info, err := p.Resolve("other")
	require.NoError(t, err)
	require.Equal(t, "other", name)
	require.Equal(t, "openai/other", info.String(), "a bare name is one of the configured provider")
	one, err := p.Get("other")
	require.NoError(t, err)
	two, err := p.Get("other")
	require.NoError(t, err)
	require.True(t, one == two)
	require.Equal(t, "demo", p.Current("demo").Provider)

	_, _, err = p.Resolve("anthropic/claude")
	require.Error(t, err, "there is no key for it")
	require.Error(t, p.Usable("anthropic/claude"))
	require.NoError(t, p.Usable(""))
	require.NoError(t, p.Usable("other"))
	got, err := p.Get("anthropic/claude")
	require.NoError(t, err)
	require.True(t, got == main)
	require.Contains(t, log.String(), "anthropic/claude")
	require.NotContains(t, log.String(), "sk-pool")
	require.Equal(t, []string{"openai/main", "demo"}, p.Known())
}

// A changed configuration replaces all models; one that can't be used replaces none.
func TestPool_Reload(t *testing.T) {
	p, cfg, _ := open(t, modeltest.NewScript())
	before, err := p.Get("other")
	require.NoError(t, err)
	cfg.Model.Provider = "nonsense"
	require.Error(t, p.Reload(t.Context()))
	require.Equal(t, "openai/main", p.Current("").String())
	kept, err := p.Get("other")
	require.NoError(t, err)
	require.True(t, before == kept)

	cfg.Model.Provider, cfg.Model.Name = "openai", "next"
	require.NoError(t, p.Reload(t.Context()))
	require.Equal(t, "openai/next", p.Current("").String())
	require.NotEmpty(t, p.Reason())
	again, err := p.Get("other")
	require.NoError(t, err)
	require.False(t, before == again, "it is opened with the new settings")
}

func TestPool_OnlyTheDemo(t *testing.T) {
	cfg := config.Default()
	cfg.Model.Provider = "demo"
	p, err := Open(t.Context(), Options{Config: func() *config.Config { return cfg }})
	require.NoError(t, err)
	_, _, err = p.Resolve("gpt-5")
	require.ErrorContains(t, err, "only the built-in demo is configured")
	_, _, err = p.Resolve("demo")
	require.NoError(t, err)
	require.Equal(t, []string{p.Current("").String()}, p.Known())
}

// A summary ends with what the session must not lose.
func TestPool_SummaryKeepsTheReminder(t *testing.T) {
	p, _, _ := open(t, modeltest.NewScript(modeltest.Text("they spoke of plans")))
	text, err := p.Summarise(t.Context(), "", []sessions.Message{{Session: "s1", Role: sessions.User, Content: "plans?", Active: true}}, "plans")
	require.NoError(t, err)
	require.Contains(t, text, "they spoke of plans")
	require.Regexp(t, `open tasks of s1$`, text)
}

// The settings of models are those that a reload of the configuration opens them again for.
func TestConcerns(t *testing.T) {
	for key, want := range map[string]bool{"model.name": true, "model.base_url": true, "providers.openai.api_key": true, "agent.api_max_retries": true,
		"agent.empty_max_retries": true, "agent.model_call_timeout": true, "agent.max_turns": false, "log.level": false, "modelling": false} {
		require.Equal(t, want, Concerns(key), key)
	}
}

// What the configuration says of retries reaches the provider.
func TestSettingsOf(t *testing.T) {
	cfg := config.Default()
	cfg.Agent.APIMaxRetries, cfg.Agent.EmptyRetries = 2, 0
	require.Equal(t, model.RetryPolicy{Attempts: 3, EmptyAttempts: 1}, settingsOf(cfg).Retry)
	cfg.Providers.Anthropic.APIKey, cfg.Model.Name = config.NewSecret("key"), "m"
	environ := environOf(cfg)
	require.Equal(t, "key", environ("ANTHROPIC_API_KEY"))
	require.Equal(t, "m", environ("HERALD_MODEL"))
	t.Setenv("SOME_KEY", "x")
	require.Equal(t, "x", environ("SOME_KEY"), "a fallback may name a variable of its own")
}
