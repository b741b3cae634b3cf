// Package pool opens the models that answer: the configured one, and those that chats or jobs have chosen, each once. It
// knows the settings of models and nothing of chats.
package pool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"herald/gateway/agent"
	"herald/gateway/config"
	"herald/gateway/model"
	"herald/gateway/model/provider"
	"herald/sessions"
)

// Options is what a Pool is made from. All fields are needed but Log.
type Options struct {
	// Config returns the settings in force.
	Config func() *config.Config
	// Reminder is what a summary of a session must not lose, "" for nothing.
	Reminder func(ctx context.Context, session sessions.ID) string
	Log      zerolog.Logger
}

// Pool holds the open models. It is safe for concurrent use.
type Pool struct {
	o Options

	mu     sync.Mutex
	main   model.Model
	choice provider.Choice
	others map[string]model.Model // by the name under which they were chosen
}

// Open opens the configured model. An error says which setting can't be used.
func Open(ctx context.Context, o Options) (*Pool, error) {
	p := &Pool{o: o}
	return p, p.Reload(ctx)
}

// Reload opens the configured model again and forgets the others. On an error the old ones stay.
func (p *Pool) Reload(ctx context.Context) error {
	cfg := p.o.Config()
	main, choice, err := provider.Pick(ctx, settingsOf(cfg), environOf(cfg), p.o.Log)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeIdle()
	p.main, p.choice, p.others = main, choice, map[string]model.Model{}
	return nil
}

// Get returns the model for a chat's override; "" is the configured one. An override that can't be opened
// any more falls back to the configured model, with a line in the log.
func (p *Pool) Get(override string) (model.Model, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if override == "" {
		return p.main, nil
	}
	if other, ok := p.others[override]; ok {
		return other, nil
	}
	other, err := p.open(override)
	if err != nil {
		p.o.Log.Warn().Str("model", override).Err(err).Msg("a chat's own model can't be used any more; the configured one answers")
		return p.main, nil
	}
	p.others[override] = other
	return other, nil
}

// open makes the model that "provider/name" or a bare name at the configured provider means.
func (p *Pool) open(name string) (model.Model, error) {
	cfg := p.o.Config()
	s := settingsOf(cfg)
	s.Fallbacks = nil
	head, rest, cut := strings.Cut(name, "/")
	switch {
	case name == "demo":
		s.Endpoint = provider.Endpoint{Provider: "demo"}
	case cut && slices.Contains(providers, head):
		s.Endpoint = provider.Endpoint{Provider: head, Model: rest}
		if head == p.choice.Info.Provider {
			s.BaseURL = cfg.Model.BaseURL
		}
	default:
		s.Provider, s.Model = p.choice.Info.Provider, name
	}
	if s.Provider == "demo" && name != "demo" && head != "demo" {
		return nil, fmt.Errorf("only the built-in demo is configured; set a model key, or write provider/name")
	}
	other, _, err := provider.Pick(context.Background(), s, environOf(cfg), p.o.Log)
	return other, err
}

var providers = []string{"openai", "anthropic", "openrouter", "ollama", "demo"}

// Resolve opens the model that a person names and keeps it; the name is the one to ask for it with.
func (p *Pool) Resolve(name string) (string, model.Info, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	other, err := p.open(name)
	if err != nil {
		return "", model.Info{}, err
	}
	p.others[name] = other
	return name, other.Info(), nil
}

// Usable reports why a model can't be opened; "" is the configured one, which is open.
func (p *Pool) Usable(name string) error {
	p.mu.Lock()
	_, open := p.others[name]
	p.mu.Unlock()
	if name == "" || open {
		return nil
	}
	_, _, err := p.Resolve(name)
	return err
}

// Current describes the model that answers for an override.
func (p *Pool) Current(override string) model.Info {
	current, err := p.Get(override)
	if err != nil {
		return model.Info{}
	}
	return current.Info()
}

// Known are the names that can be chosen without more settings: the configured model, its fallbacks, and the demo.
func (p *Pool) Known() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := []string{p.choice.Info.String()}
	for _, f := range p.choice.Fallbacks {
		out = append(out, f.String())
	}
	if p.choice.Info.Provider != "demo" {
		out = append(out, "demo")
	}
	return out
}

// Close drops idle connections.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeIdle()
}

func (p *Pool) closeIdle() {
	if p.main != nil {
		model.CloseIdle(p.main)
	}
	for _, other := range p.others {
		model.CloseIdle(other)
	}
}

// Reason says in a sentence why this model answers.
func (p *Pool) Reason() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.choice.Why
}

// Summarise makes a summary of rows with the model of a chat; focus is what it should keep above all. What the session must
// not lose follows it.
func (p *Pool) Summarise(ctx context.Context, override string, rows []sessions.Message, focus string) (string, error) {
	chosen, err := p.Get(override)
	if err != nil {
		return "", err
	}
	text, err := agent.Summarise(ctx, chosen, rows, focus)
	if err != nil || len(rows) == 0 {
		return text, err
	}
	return strings.TrimSpace(text + "\n\n" + p.o.Reminder(ctx, rows[0].Session)), nil
}
