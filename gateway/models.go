package gateway

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"herald/gateway/agent"
	"herald/gateway/config"
	"herald/gateway/model"
	"herald/gateway/model/provider"
	"herald/sessions"
)

// models opens the configured model and the ones that chats have chosen, each once.
type models struct {
	g *Gateway

	mu     sync.Mutex
	main   model.Model
	choice provider.Choice
	others map[string]model.Model
}

func newModels(ctx context.Context, g *Gateway) (*models, error) {
	m := &models{g: g}
	return m, m.reload(ctx)
}

// reload opens the configured model anew. On an error the old one stays.
func (m *models) reload(ctx context.Context) error {
	cfg := m.g.cfg()
	main, choice, err := provider.Pick(ctx, settingsOf(cfg), environOf(cfg), m.g.log)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closeIdle()
	m.main, m.choice, m.others = main, choice, map[string]model.Model{}
	return nil
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

// get returns the model for a chat's override; "" is the configured one. An override that can't be opened
// any more falls back to the configured model, with a line in the log.
func (m *models) get(override string) (model.Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if override == "" {
		return m.main, nil
	}
	if other, ok := m.others[override]; ok {
		return other, nil
	}
	other, err := m.open(override)
	if err != nil {
		m.g.log.Warn().Str("model", override).Err(err).Msg("a chat's own model can't be used any more; the configured one answers")
		return m.main, nil
	}
	m.others[override] = other
	return other, nil
}

// open makes the model that "provider/name" or a bare name at the configured provider means.
func (m *models) open(name string) (model.Model, error) {
	cfg := m.g.cfg()
	s := settingsOf(cfg)
	s.Fallbacks = nil
	head, rest, cut := strings.Cut(name, "/")
	switch {
	case name == "demo":
		s.Endpoint = provider.Endpoint{Provider: "demo"}
	case cut && slices.Contains(providers, head):
		s.Endpoint = provider.Endpoint{Provider: head, Model: rest}
		if head == m.choice.Info.Provider {
			s.BaseURL = cfg.Model.BaseURL
		}
	default:
		s.Provider, s.Model = m.choice.Info.Provider, name
	}
	if s.Provider == "demo" && name != "demo" && head != "demo" {
		return nil, fmt.Errorf("only the built-in demo is configured; set a model key, or write provider/name")
	}
	other, _, err := provider.Pick(context.Background(), s, environOf(cfg), m.g.log)
	return other, err
}

var providers = []string{"openai", "anthropic", "openrouter", "ollama", "demo"}

// Resolve implements command.Models.
func (m *models) Resolve(name string) (string, model.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	other, err := m.open(name)
	if err != nil {
		return "", model.Info{}, err
	}
	m.others[name] = other
	return name, other.Info(), nil
}

// usable reports why a model can't be opened; "" is the configured one, which is open.
func (m *models) usable(name string) error {
	m.mu.Lock()
	_, open := m.others[name]
	m.mu.Unlock()
	if name == "" || open {
		return nil
	}
	_, _, err := m.Resolve(name)
	return err
}

// Current implements command.Models.
func (m *models) Current(override string) model.Info {
	current, err := m.get(override)
	if err != nil {
		return model.Info{}
	}
	return current.Info()
}

// Known implements command.Models: the configured model, its fallbacks, and the demo.
func (m *models) Known() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []string{m.choice.Info.String()}
	for _, f := range m.choice.Fallbacks {
		out = append(out, f.String())
	}
	if m.choice.Info.Provider != "demo" {
		out = append(out, "demo")
	}
	return out
}

// close drops idle connections.
func (m *models) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closeIdle()
}

func (m *models) closeIdle() {
	if m.main != nil {
		model.CloseIdle(m.main)
	}
	for _, other := range m.others {
		model.CloseIdle(other)
	}
}

// reason says in a sentence why this model answers.
func (m *models) reason() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.choice.Why
}

// summarise implements command.Services.Compress.
func (m *models) summarise(ctx context.Context, override string, rows []sessions.Message, focus string) (string, error) {
	chosen, err := m.get(override)
	if err != nil {
		return "", err
	}
	text, err := agent.Summarise(ctx, chosen, rows, focus)
	if err != nil || len(rows) == 0 {
		return text, err
	}
	return strings.TrimSpace(text + "\n\n" + m.g.reminder(ctx, rows[0].Session)), nil
}
