// Package openai speaks the chat completions API that OpenAI began and nearly every model server offers:
// OpenAI, OpenRouter, Ollama, vLLM, llama.cpp, LM Studio, Groq, DeepSeek and many more, at any base URL.
//
// It promises to get along with what these servers do differently: fields that they refuse are learned and
// left out, bodies that are not streamed are taken, tool calls are put together from any kind of deltas,
// and garbage is an error, never a panic. It must not know what the tools do.
package openai

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"herald/gateway/model"
	"herald/gateway/model/internal/wire"
)

// DefaultBaseURL is OpenAI's own.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options configure a model. Model is needed, the rest has defaults.
type Options struct {
	// Provider is what Info and errors name: "openai" when empty.
	Provider string
	// BaseURL is the address up to and with the version, such as "http://127.0.0.1:11434/v1". An address
	// without any path gets "/v1". Empty takes DefaultBaseURL.
	BaseURL string
	// Key is sent as a bearer token; empty sends none, as local servers like it.
	Key   string
	Model string
	// Context, MaxOutput and Vision overrule what the model's name suggests; 0 and nil don't.
	Context   int
	MaxOutput int
	Vision    *bool
	// HeaderTimeout and IdleTimeout bound silence before and within an answer; 0 takes 5 min and 120 s.
	HeaderTimeout time.Duration
	IdleTimeout   time.Duration
	// Header is sent with each request (a gateway's own keys).
	Header http.Header
	// Transport carries the requests; nil makes a pooled one.
	Transport http.RoundTripper
	// OnQuirk, when set, is called once for each feature that the server turned out not to support, in words
	// for the log.
	OnQuirk func(what string)
}

// Model is one model at one server. Safe for concurrent use.
type Model struct {
	o      Options
	info   model.Info
	url    string
	header http.Header
	client *wire.Client
	// official: the server is OpenAI's. router: it is OpenRouter.
	official, router bool
	schemas          wire.Schemas
	// What the server was found to refuse.
	noUsage, noTools, noEffort, otherMax, noCacheKey atomic.Bool
}

// New returns a model. It does no I/O. The error names the option that can't be used.
func New(o Options) (*Model, error) {
	if o.Model == "" {
		return nil, errors.New("openai: no model named")
	}
	if o.Provider == "" {
		o.Provider = "openai"
	}
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	base, err := Endpoint(o.BaseURL)
	if err != nil {
		return nil, err
	}
	window, vision := model.WindowOf(o.Model)
	if o.Context > 0 {
		window = o.Context
	}
	if o.Vision != nil {
		vision = *o.Vision
	}
	m := &Model{
		o:        o,
		info:     model.Info{Provider: o.Provider, Name: o.Model, Context: window, MaxOutput: o.MaxOutput, Vision: vision},
		url:      base + "/chat/completions",
		official: strings.HasPrefix(base, "https://api.openai.com/"),
		router:   o.Provider == "openrouter" || strings.Contains(base, "//openrouter.ai/"),
	}
	m.header = o.Header.Clone()
	if m.header == nil {
		m.header = make(http.Header)
	}
	m.header.Set("Content-Type", "application/json")
	m.header.Set("Accept", "text/event-stream, application/json")
	m.header.Set("User-Agent", "herald")
	secrets := []string{o.Key}
	if o.Key != "" {
		m.header.Set("Authorization", "Bearer "+o.Key)
	}
	if m.router {
		m.header.Set("X-Title", "Herald")
	}
	for name, values := range o.Header {
		if l := strings.ToLower(name); strings.Contains(l, "key") || strings.Contains(l, "auth") || strings.Contains(l, "token") {
			secrets = append(secrets, values...)
		}
	}
	if u, err := url.Parse(o.BaseURL); err == nil && u.User != nil {
		if p, ok := u.User.Password(); ok {
			secrets = append(secrets, p)
		}
	}
	m.client = wire.New(wire.Options{Provider: o.Provider, Secrets: secrets, HeaderTimeout: o.HeaderTimeout,
		IdleTimeout: o.IdleTimeout, Transport: o.Transport})
	return m, nil
}

// Endpoint returns a base URL without a trailing slash or "/chat/completions", with "/v1" where it has no
// path at all. The error says what is wrong with it; it does not repeat a password.
func Endpoint(raw string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", errors.New(`base URL: want an address such as "https://api.openai.com/v1" or "http://127.0.0.1:11434/v1"`)
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions")
	if u.Path == "" {
		u.Path = "/v1"
	}
	u.RawPath, u.RawQuery, u.Fragment = "", "", ""
	return u.String(), nil
}

// Info says which model it is.
func (m *Model) Info() model.Info { return m.info }

// CloseIdleConnections closes pooled connections that no call uses.
func (m *Model) CloseIdleConnections() { m.client.CloseIdleConnections() }

// Stream makes the call. See model.Model.
func (m *Model) Stream(ctx context.Context, req model.Request, on func(model.Delta)) (model.Response, error) {
	if on == nil {
		on = func(model.Delta) {}
	}
	answer, err := m.client.Ask(ctx, m.url, m.header, func() []byte { return m.body(req) },
		func(refusal *model.Error) bool { return m.learn(refusal, req) })
	if err != nil {
		return model.Response{}, err
	}
	return m.read(ctx, answer, on)
}

// learn looks for a field in a refusal that can be left out, and reports whether to call again.
func (m *Model) learn(e *model.Error, req model.Request) bool {
	if e.Kind != model.BadRequest && e.Kind != model.NotFound {
		return false
	}
	low := strings.ToLower(e.Err.Error())
	switch {
	case strings.Contains(low, "stream_options") || strings.Contains(low, "include_usage"):
		return m.set(&m.noUsage, "the server does not report token usage in streams (stream_options refused)")
	case strings.Contains(low, "prompt_cache_key"):
		return m.set(&m.noCacheKey, "the server refuses prompt_cache_key")
	case (strings.Contains(low, "max_tokens") || strings.Contains(low, "max_completion_tokens")) &&
		strings.Contains(low, "support"):
		return m.limit(req) > 0 && m.set(&m.otherMax, "the server wants the other name of the output limit")
	case req.Reasoning != "" && (strings.Contains(low, "reasoning") || strings.Contains(low, "think")):
		return m.set(&m.noEffort, "the model takes no reasoning effort")
	case len(req.Tools) > 0 && (strings.Contains(low, "does not support tools") ||
		strings.Contains(low, "support tool use") || strings.Contains(low, "tools is not supported") ||
		strings.Contains(low, "does not support function")):
		return m.set(&m.noTools, "the model can't call tools: it is asked without them and can only talk")
	}
	return false
}

func (m *Model) set(flag *atomic.Bool, what string) bool {
	if flag.Swap(true) {
		return false
	}
	if m.o.OnQuirk != nil {
		m.o.OnQuirk(what)
	}
	return true
}

func (m *Model) limit(req model.Request) int {
	if req.MaxOutput > 0 {
		return req.MaxOutput
	}
	return m.o.MaxOutput
}
