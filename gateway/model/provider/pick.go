package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"herald/gateway/model"
	"herald/gateway/model/anthropic"
	"herald/gateway/model/demo"
	"herald/gateway/model/openai"
)

// The models that are taken when none is named: each provider's current one for everyday agent work.
const (
	DefaultAnthropicModel = "claude-sonnet-5-5" // Anthropic's model list, November 2026
	DefaultOpenAIModel    = "gpt-5.5"           // OpenAI's model list, November 2026
	// DefaultOpenRouterModel lets OpenRouter choose by the request.
	DefaultOpenRouterModel = "openrouter/auto"
)

// OpenRouterBaseURL is where OpenRouter answers.
const OpenRouterBaseURL = "https://openrouter.ai/api/v1"

// Endpoint names one model at one provider.
type Endpoint struct {
	// Provider is "openai", "anthropic", "openrouter", "ollama" or "demo"; in Settings also "" or "auto".
	Provider string
	// Model is the model's name there; empty takes HERALD_MODEL, else the provider's default.
	Model string
	// BaseURL replaces the provider's address.
	BaseURL string
	// Key is the key itself. Empty reads the variable KeyEnv, and with that empty too the provider's own one
	// (ANTHROPIC_API_KEY, OPENAI_API_KEY, OPENROUTER_API_KEY).
	Key    string
	KeyEnv string
	// Context and MaxOutput overrule what is assumed of the model, in tokens; 0 doesn't.
	Context   int
	MaxOutput int
}

// Settings say which model is wanted. The zero value chooses by the environment.
type Settings struct {
	Endpoint
	// Fallbacks are tried in order when the model fails; see model.Fallback.
	Fallbacks []Endpoint
	// Retry is how each of them retries.
	Retry model.RetryPolicy
	// Silence bounds how long a call may bring nothing before its first byte; 0 takes 5 minutes.
	Silence time.Duration
	// Transport carries all calls; nil makes a pool for each model.
	Transport http.RoundTripper
}

// Choice is what Pick decided.
type Choice struct {
	Info model.Info
	// Why is a sentence for the log, without secrets.
	Why string
	// Fallbacks are the models behind it, in order.
	Fallbacks []model.Info
}

// Pick opens the model. An explicit provider wins; else the first of ANTHROPIC_API_KEY, OPENAI_API_KEY,
// OPENROUTER_API_KEY and OPENAI_BASE_URL that is set; else an Ollama that answers on loopback; else demo. The
// error names the setting or variable that can't be used and what to do. getenv reads the environment.
func Pick(ctx context.Context, s Settings, getenv func(string) string, log zerolog.Logger) (model.Model, Choice, error) {
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	p := picker{s: s, getenv: getenv, log: log}
	first, why, err := p.resolve(ctx, s.Endpoint)
	if err != nil {
		return nil, Choice{}, err
	}
	m, err := p.open(first)
	if err != nil {
		return nil, Choice{}, err
	}
	choice := Choice{Info: m.Info(), Why: "Answers come from " + m.Info().String() + ": " + why + "."}
	models := []model.Model{p.wrap(m)}
	for i, f := range s.Fallbacks {
		where := "fallback " + strconv.Itoa(i+1)
		if f.Provider == "" || f.Provider == "auto" {
			return nil, Choice{}, fmt.Errorf("%s: no provider named; want openai, anthropic, openrouter, ollama or demo", where)
		}
		if f.Model == "" && f.Provider == s.Provider && f.BaseURL == s.BaseURL {
			return nil, Choice{}, fmt.Errorf("%s: no model named", where)
		}
		e, _, err := p.resolve(ctx, f)
		if err != nil {
			return nil, Choice{}, fmt.Errorf("%s: %w", where, err)
		}
		fm, err := p.open(e)
		if err != nil {
			return nil, Choice{}, fmt.Errorf("%s: %w", where, err)
		}
		choice.Fallbacks = append(choice.Fallbacks, fm.Info())
		models = append(models, p.wrap(fm))
	}
	return model.Fallback(models...), choice, nil
}

type picker struct {
	s      Settings
	getenv func(string) string
	log    zerolog.Logger
}

// wrap adds the retries. The demo never fails.
func (p *picker) wrap(m model.Model) model.Model {
	if m.Info().Provider == "demo" {
		return m
	}
	policy := p.s.Retry
	if policy.OnRetry == nil {
		name := m.Info().String()
		policy.OnRetry = func(attempt int, wait time.Duration, err error) {
			p.log.Warn().Err(err).Str("model", name).Int("attempt", attempt).Dur("wait", wait).Msg("model call failed; trying again")
		}
	}
	return model.Retry(m, policy)
}

func (p *picker) env(name string) string { return strings.TrimSpace(p.getenv(name)) }

// resolve fills in provider, model, key and address. why is a clause for the log.
func (p *picker) resolve(ctx context.Context, e Endpoint) (Endpoint, string, error) {
	why := "the provider is set to " + e.Provider
	if e.Provider == "" || e.Provider == "auto" {
		e.Provider, why = p.auto(e)
	}
	named := e.Model != ""
	if !named {
		e.Model = p.env("HERALD_MODEL")
		named = e.Model != ""
	}
	switch e.Provider {
	case "anthropic":
		return p.keyed(e, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", DefaultAnthropicModel, why)
	case "openai":
		return p.keyed(e, "OPENAI_API_KEY", "OPENAI_BASE_URL", DefaultOpenAIModel, why)
	case "openrouter":
		return p.keyed(e, "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", DefaultOpenRouterModel, why)
	case "demo":
		e.Model, e.Key = demo.Name, ""
		return e, why, nil
	case "ollama":
		return p.ollama(ctx, e, named, why)
	case "": // nothing is set: look for an Ollama nearby
		e.BaseURL = ollamaURL(first(e.BaseURL, p.env("OLLAMA_HOST"), DefaultOllamaURL))
		if !loopback(e.BaseURL) {
			e.Provider, e.Model = "demo", demo.Name
			return e, "no model key is set (ANTHROPIC_API_KEY, OPENAI_API_KEY, OPENROUTER_API_KEY), and only an Ollama on loopback is looked for", nil
		}
		models, err := Installed(ctx, e.BaseURL, ProbeTimeout)
		if err != nil || len(models) == 0 {
			why := "no model key is set (ANTHROPIC_API_KEY, OPENAI_API_KEY, OPENROUTER_API_KEY) and no Ollama answers on loopback"
			if err == nil {
				why = "no model key is set, and the Ollama on loopback has no model installed (ollama pull <name>)"
			}
			e.Provider, e.Model = "demo", demo.Name
			return e, why, nil
		}
		e.Provider = "ollama"
		if !named {
			e.Model = models[0]
		}
		return e, "no model key is set and an Ollama answers at " + e.BaseURL, nil
	}
	return e, "", fmt.Errorf("model.provider: %q is unknown; want auto, openai, anthropic, openrouter, ollama or demo", e.Provider)
}

// auto chooses a provider by what the environment holds.
func (p *picker) auto(e Endpoint) (provider, why string) {
	for _, c := range [...]struct{ provider, variable string }{
		{"anthropic", "ANTHROPIC_API_KEY"}, {"openai", "OPENAI_API_KEY"}, {"openrouter", "OPENROUTER_API_KEY"},
		{"openai", "OPENAI_BASE_URL"}, // a server of one's own needs no key
	} {
		if p.env(c.variable) != "" {
			return c.provider, c.variable + " is set"
		}
	}
	return "", ""
}

// keyed fills in what a provider with a key needs.
func (p *picker) keyed(e Endpoint, keyEnv, baseEnv, defaultModel, why string) (Endpoint, string, error) {
	e.BaseURL = first(e.BaseURL, p.env(baseEnv))
	variable := first(e.KeyEnv, keyEnv)
	if e.Key == "" {
		e.Key = p.env(variable)
	}
	e.Key = strings.TrimSpace(e.Key)
	if e.Model == "" {
		e.Model = defaultModel
	}
	own := e.BaseURL != "" && e.Provider != "anthropic" // a server of one's own may take any key, or none
	switch {
	case e.Key == "" && !own:
		return e, "", fmt.Errorf("%s is not set, and the provider %q needs a key; set it in the environment or in .env", variable, e.Provider)
	case !own && placeholder(e.Key):
		return e, "", fmt.Errorf("%s holds a placeholder, not a key; set the key that %q gave you, or unset it", variable, e.Provider)
	case strings.ContainsFunc(e.Key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return e, "", fmt.Errorf("%s holds white space or characters that no key has; copy it again", variable)
	}
	return e, why, nil
}

// placeholder reports whether a key was copied from an example.
func placeholder(key string) bool {
	low := strings.ToLower(key)
	for _, p := range [...]string{"your", "changeme", "change-me", "change_me", "placeholder", "example", "insert", "replace", "todo", "xxxx", "<", "...", "dummy"} {
		if strings.Contains(low, p) && len(key) < 64 {
			return true
		}
	}
	return len(key) < 8
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// open makes the model of a resolved endpoint.
func (p *picker) open(e Endpoint) (model.Model, error) {
	quirk := func(what string) { p.log.Info().Str("provider", e.Provider).Str("model", e.Model).Msg(what) }
	switch e.Provider {
	case "demo":
		return demo.New(demo.Options{}), nil
	case "anthropic":
		return anthropic.New(anthropic.Options{BaseURL: e.BaseURL, Key: e.Key, Model: e.Model, Context: e.Context,
			MaxOutput: e.MaxOutput, HeaderTimeout: p.s.Silence, Transport: p.s.Transport, OnQuirk: quirk})
	case "openrouter":
		e.BaseURL = first(e.BaseURL, OpenRouterBaseURL)
	case "ollama":
		if e.Context == 0 {
			e.Context = p.ollamaContext(e.Model)
		}
	case "openai":
	default:
		return nil, errors.New("no such provider: " + e.Provider)
	}
	return openai.New(openai.Options{Provider: e.Provider, BaseURL: e.BaseURL, Key: e.Key, Model: e.Model, Context: e.Context,
		MaxOutput: e.MaxOutput, HeaderTimeout: p.s.Silence, Transport: p.s.Transport, OnQuirk: quirk})
}
