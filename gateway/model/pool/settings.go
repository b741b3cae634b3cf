package pool

import (
	"os"
	"strings"

	"herald/gateway/config"
	"herald/gateway/model"
	"herald/gateway/model/provider"
)

// Concerns reports whether a key says which model answers, or how it is called.
func Concerns(key string) bool {
	switch key {
	case "agent.api_max_retries", "agent.empty_max_retries", "agent.model_call_timeout":
		return true
	}
	return strings.HasPrefix(key, "model.") || strings.HasPrefix(key, "providers.")
}

// settingsOf maps the configuration to what a provider needs.
func settingsOf(cfg *config.Config) provider.Settings {
	s := provider.Settings{
		Endpoint: provider.Endpoint{Provider: cfg.Model.Provider, Model: cfg.Model.Name, BaseURL: cfg.Model.BaseURL,
			Context: cfg.Model.Context, MaxOutput: cfg.Model.MaxOutput},
		Retry:   model.RetryPolicy{Attempts: cfg.Agent.APIMaxRetries + 1, EmptyAttempts: max(1, cfg.Agent.EmptyRetries)},
		Silence: cfg.Agent.CallTimeout,
	}
	for _, f := range cfg.Model.Fallbacks {
		s.Fallbacks = append(s.Fallbacks, provider.Endpoint{Provider: f.Provider, Model: f.Name, BaseURL: f.BaseURL})
	}
	return s
}

// environOf answers for the variables that providers know, from the configuration, which has read the
// environment and the profile's .env already.
func environOf(cfg *config.Config) func(string) string {
	p := cfg.Providers
	return func(name string) string {
		switch name {
		case "ANTHROPIC_API_KEY":
			return p.Anthropic.APIKey.Reveal()
		case "ANTHROPIC_BASE_URL":
			return p.Anthropic.BaseURL
		case "OPENAI_API_KEY":
			return p.OpenAI.APIKey.Reveal()
		case "OPENAI_BASE_URL":
			return p.OpenAI.BaseURL
		case "OPENROUTER_API_KEY":
			return p.OpenRouter.APIKey.Reveal()
		case "OPENROUTER_BASE_URL":
			return p.OpenRouter.BaseURL
		case "OLLAMA_HOST":
			return p.Ollama.BaseURL
		case "HERALD_MODEL":
			return cfg.Model.Name
		}
		return os.Getenv(name)
	}
}
