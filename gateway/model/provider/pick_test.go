package provider

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"herald/gateway/model"
	"herald/gateway/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-test-0123456789"

// closedPort is an address on loopback where nothing answers.
const closedPort = "127.0.0.1:1"

func pick(t *testing.T, s Settings, env map[string]string) (model.Model, Choice, error) {
	t.Helper()
	if _, ok := env["OLLAMA_HOST"]; !ok {
		next := map[string]string{"OLLAMA_HOST": closedPort}
		for k, v := range env {
			next[k] = v
		}
		env = next
	}
	m, c, err := Pick(t.Context(), s, func(name string) string { return env[name] }, zerolog.Nop())
	if err == nil {
		require.NotContains(t, c.Why, key)
		require.NotEmpty(t, c.Why)
	}
	return m, c, err
}

func TestPick(t *testing.T) {
	for name, c := range map[string]struct {
		s    Settings
		env  map[string]string
		want string
		why  string
	}{
		"nothing":             {Settings{}, nil, "demo/herald-demo", "no Ollama answers"},
		"empty keys":          {Settings{}, map[string]string{"OPENAI_API_KEY": " "}, "demo/herald-demo", "no model key"},
		"anthropic first":     {Settings{}, map[string]string{"ANTHROPIC_API_KEY": key, "OPENAI_API_KEY": key}, "anthropic/" + DefaultAnthropicModel, "ANTHROPIC_API_KEY is set"},
		"openai":              {Settings{}, map[string]string{"OPENAI_API_KEY": key, "OPENROUTER_API_KEY": key}, "openai/" + DefaultOpenAIModel, "OPENAI_API_KEY is set"},
		"openrouter":          {Settings{}, map[string]string{"OPENROUTER_API_KEY": key}, "openrouter/" + DefaultOpenRouterModel, "OPENROUTER_API_KEY is set"},
		"server of one's own": {Settings{}, map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "HERALD_MODEL": "local"}, "openai/local", "OPENAI_BASE_URL is set"},
		"any key there":       {Settings{}, map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "x"}, "openai/" + DefaultOpenAIModel, "OPENAI_API_KEY"},
		"named":               {Settings{}, map[string]string{"ANTHROPIC_API_KEY": key, "HERALD_MODEL": "claude-x"}, "anthropic/claude-x", ""},
		"explicit":            {Settings{Endpoint: Endpoint{Provider: "openai", Model: "m", KeyEnv: "MY_KEY"}}, map[string]string{"ANTHROPIC_API_KEY": key, "MY_KEY": key, "HERALD_MODEL": "other"}, "openai/m", "set to openai"},
		"explicit demo":       {Settings{Endpoint: Endpoint{Provider: "demo"}}, map[string]string{"OPENAI_API_KEY": key}, "demo/herald-demo", "set to demo"},
		"ollama, named":       {Settings{Endpoint: Endpoint{Provider: "ollama", Model: "qwen3"}}, nil, "ollama/qwen3", "set to ollama"},
		"ollama far away":     {Settings{}, map[string]string{"OLLAMA_HOST": "192.0.2.1"}, "demo/herald-demo", "loopback"},
	} {
		t.Run(name, func(t *testing.T) {
			m, choice, err := pick(t, c.s, c.env)
			require.NoError(t, err)
			require.Equal(t, c.want, choice.Info.String())
			require.Equal(t, choice.Info, m.Info())
			require.Contains(t, choice.Why, c.why)
		})
	}
}

// TestPick_Errors: each names the variable or setting, and none holds a key.
func TestPick_Errors(t *testing.T) {
	for name, c := range map[string]struct {
		s    Settings
		env  map[string]string
		want string
	}{
		"unknown":            {Settings{Endpoint: Endpoint{Provider: "gpt"}}, nil, `"gpt" is unknown`},
		"no key":             {Settings{Endpoint: Endpoint{Provider: "anthropic"}}, nil, "ANTHROPIC_API_KEY is not set"},
		"no own key":         {Settings{Endpoint: Endpoint{Provider: "openai", KeyEnv: "MY_KEY"}}, nil, "MY_KEY is not set"},
		"placeholder":        {Settings{}, map[string]string{"OPENAI_API_KEY": "your-api-key-here"}, "OPENAI_API_KEY holds a placeholder"},
		"short":              {Settings{}, map[string]string{"OPENROUTER_API_KEY": "x"}, "OPENROUTER_API_KEY holds a placeholder"},
		"line break":         {Settings{}, map[string]string{"ANTHROPIC_API_KEY": key + "\nOTHER=1"}, "ANTHROPIC_API_KEY holds white space"},
		"base url":           {Settings{}, map[string]string{"OPENAI_API_KEY": key, "OPENAI_BASE_URL": "localhost:1"}, "base URL"},
		"ollama down":        {Settings{Endpoint: Endpoint{Provider: "ollama"}}, nil, "no Ollama answers"},
		"fallback":           {Settings{Endpoint: Endpoint{Provider: "demo"}, Fallbacks: []Endpoint{{Provider: "openai", Model: "x"}}}, nil, "fallback 1: OPENAI_API_KEY"},
		"fallback, nameless": {Settings{Endpoint: Endpoint{Provider: "demo"}, Fallbacks: []Endpoint{{Model: "x"}}}, nil, "fallback 1: no provider"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := pick(t, c.s, c.env)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), key)
		})
	}
}

func TestPick_Ollama(t *testing.T) {
	srv := modeltest.Serve(modeltest.NewScript(modeltest.Text("hi")).Models("nomic-embed-text", "llama3.2:3b", "qwen3"))
	defer srv.Close()
	m, choice, err := pick(t, Settings{}, map[string]string{"OLLAMA_HOST": srv.Listener.Addr().String()})
	require.NoError(t, err)
	require.Equal(t, "ollama/llama3.2:3b", choice.Info.String())
	require.Contains(t, choice.Why, "Ollama answers")
	require.Equal(t, DefaultOllamaContext, m.Info().Context)
	resp, err := m.Stream(t.Context(), model.Request{Messages: []model.Message{{Role: "user", Text: "x"}}}, nil)
	require.NoError(t, err)
	require.Equal(t, "hi", resp.Text)
	model.CloseIdle(m)

	_, choice, err = pick(t, Settings{Endpoint: Endpoint{Provider: "ollama"}}, map[string]string{"OLLAMA_HOST": srv.URL, "OLLAMA_CONTEXT_LENGTH": "9000"})
	require.NoError(t, err)
	require.Equal(t, 9000, choice.Info.Context)
}

// TestPick_Probe: an Ollama that does not answer holds the start up no longer than the probe's limit.
func TestPick_Probe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	require.NoError(t, err)
	defer l.Close()
	start := time.Now()
	_, choice, err := pick(t, Settings{}, map[string]string{"OLLAMA_HOST": l.Addr().String()})
	require.NoError(t, err)
	require.Equal(t, "demo", choice.Info.Provider)
	require.Less(t, time.Since(start), 3*time.Second)

	html := &http.Server{Handler: http.NotFoundHandler()}
	go func() { _ = html.Serve(l) }() // ends with Close
	defer html.Close()
	_, choice, err = pick(t, Settings{}, map[string]string{"OLLAMA_HOST": l.Addr().String()})
	require.NoError(t, err)
	require.Equal(t, "demo", choice.Info.Provider)
}

// TestPick_Fallback: the second model answers when the first refuses the key; the log has no key.
func TestPick_Fallback(t *testing.T) {
	srv := modeltest.Serve(modeltest.NewScript(modeltest.Failing(401, "", "bad key "+key), modeltest.Failing(503, "", "busy"), modeltest.Text("here")))
	defer srv.Close()
	var log bytes.Buffer
	m, choice, err := Pick(context.Background(), Settings{
		Endpoint:  Endpoint{Provider: "openai", Model: "a", BaseURL: srv.OpenAI(), Key: key},
		Fallbacks: []Endpoint{{Provider: "anthropic", Model: "b", BaseURL: srv.Anthropic(), Key: key}},
		Retry:     model.RetryPolicy{Backoff: time.Millisecond},
	}, nil, zerolog.New(&log))
	require.NoError(t, err)
	require.Equal(t, "anthropic/b", choice.Fallbacks[0].String())
	resp, err := m.Stream(t.Context(), model.Request{Messages: []model.Message{{Role: "user", Text: "x"}}}, nil)
	require.NoError(t, err)
	require.Equal(t, "here", resp.Text)
	require.Equal(t, "anthropic/b", resp.Model.String())
	require.Contains(t, log.String(), "trying again")
	require.NotContains(t, log.String(), key)
	model.CloseIdle(m)
}

func TestOllamaURL(t *testing.T) {
	for in, want := range map[string]string{
		"127.0.0.1": "http://127.0.0.1:11434", ":1234": "http://127.0.0.1:1234", "0.0.0.0:1": "http://127.0.0.1:1", "localhost:5": "http://localhost:5",
		"http://box:1/": "http://box:1", "https://box": "https://box:443", "[::1]": "http://[::1]:11434", "http://x:1/v1": "http://x:1", "http://x:1/o/": "http://x:1/o",
	} {
		require.Equal(t, want, ollamaURL(in), in)
	}
	for in, want := range map[string]bool{"http://127.0.0.1:1": true, "http://[::1]:1": true, "http://localhost:1": true, "http://10.0.0.1:1": false, "http://box:1": false} {
		require.Equal(t, want, loopback(in), in)
	}
}
