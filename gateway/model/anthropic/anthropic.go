// Package anthropic speaks Anthropic's messages API: streaming, tools, prompt caching, thinking and images.
//
// It promises strict alternation whatever the history looks like, that signed thinking goes back exactly as
// it came, and a stable prefix, so that the prompt cache hits. It must not know what the tools do.
package anthropic

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"herald/gateway/model"
	"herald/gateway/model/internal/wire"
)

const (
	// DefaultBaseURL is Anthropic's own.
	DefaultBaseURL = "https://api.anthropic.com"
	// Version is the API version that the wire format here follows.
	Version = "2023-06-01"
	// DefaultMaxOutput bounds an answer in tokens where the request does not: the API wants a number. The
	// smallest current models allow 32,000.
	DefaultMaxOutput = 16_000
)

// Options configure a model. Key and Model are needed.
type Options struct {
	// BaseURL is the address without "/v1/messages". Empty takes DefaultBaseURL.
	BaseURL string
	Key     string
	Model   string
	// Context and MaxOutput overrule what is assumed; 0 doesn't.
	Context   int
	MaxOutput int
	// CacheTTL is how long the prompt cache is kept: "" or "5m" (the API's default), or "1h".
	CacheTTL string
	// HeaderTimeout and IdleTimeout bound silence before and within an answer; 0 takes 5 min and 120 s.
	HeaderTimeout time.Duration
	IdleTimeout   time.Duration
	// Transport carries the requests; nil makes a pooled one.
	Transport http.RoundTripper
	// OnQuirk, when set, is called once for each feature that the model turned out not to support.
	OnQuirk func(what string)
}

// Model is one Claude model. Safe for concurrent use.
type Model struct {
	o       Options
	info    model.Info
	url     string
	header  http.Header
	client  *wire.Client
	schemas wire.Schemas
	// What the model turned out to need: adaptive thinking in place of a budget, no thinking, a smaller
	// output limit (0: none known).
	adaptive, noThinking, noEffort atomic.Bool
	outputLimit                    atomic.Int64
}

// New returns a model. It does no I/O. The error names the option that can't be used.
func New(o Options) (*Model, error) {
	if o.Model == "" {
		return nil, errors.New("anthropic: no model named")
	}
	if o.Key == "" {
		return nil, errors.New("anthropic: no API key")
	}
	switch o.CacheTTL {
	case "", "5m", "1h":
	default:
		return nil, errors.New(`anthropic: cache TTL: want "5m" or "1h", not ` + strconv.Quote(o.CacheTTL))
	}
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	u, err := url.Parse(strings.TrimSpace(o.BaseURL))
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New(`anthropic: base URL: want an address such as "https://api.anthropic.com"`)
	}
	u.RawQuery, u.Fragment, u.RawPath = "", "", ""
	u.Path = strings.TrimRight(u.Path, "/")
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/messages"), "/v1")
	window, _ := model.WindowOf(o.Model)
	if o.Context > 0 {
		window = o.Context
	}
	m := &Model{
		o:    o,
		info: model.Info{Provider: "anthropic", Name: o.Model, Context: window, MaxOutput: o.MaxOutput, Vision: true},
		url:  u.String() + "/v1/messages",
	}
	m.adaptive.Store(!budgeted(o.Model))
	m.header = http.Header{
		"Content-Type":      {"application/json"},
		"Accept":            {"text/event-stream, application/json"},
		"User-Agent":        {"herald"},
		"Anthropic-Version": {Version},
		"X-Api-Key":         {o.Key},
	}
	m.client = wire.New(wire.Options{Provider: "anthropic", Secrets: []string{o.Key}, HeaderTimeout: o.HeaderTimeout,
		IdleTimeout: o.IdleTimeout, Transport: o.Transport})
	return m, nil
}

// budgeted reports whether a model is of the generations that take a thinking budget; newer ones decide by
// themselves how much to think. A wrong guess is corrected by the first refusal.
func budgeted(name string) bool {
	for _, old := range [...]string{"claude-3", "-4-0", "-4-1", "-4-5", "-4-2025"} {
		if strings.Contains(name, old) {
			return true
		}
	}
	return false
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

// learn looks for a field in a refusal that can be written otherwise, and reports whether to call again.
func (m *Model) learn(e *model.Error, req model.Request) bool {
	text := strings.ToLower(e.Err.Error())
	// "max_tokens: 16000 > 8192, which is the maximum allowed number of output tokens for …"
	if i := strings.Index(text, "max_tokens:"); i >= 0 && strings.Contains(text, "maximum allowed number of output") {
		if _, after, ok := strings.Cut(text[i:], "> "); ok {
			digits := after
			if j := strings.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' }); j >= 0 {
				digits = after[:j]
			}
			if n, err := strconv.ParseInt(digits, 10, 64); err == nil && n > 0 && m.outputLimit.Swap(n) != n {
				return true
			}
		}
		return false
	}
	if e.Kind != model.BadRequest || req.Reasoning == "" || req.Reasoning == "none" {
		return false
	}
	switch {
	case strings.Contains(text, "effort") || strings.Contains(text, "output_config"):
		return m.set(&m.noEffort, "the model takes no effort")
	case !strings.Contains(text, "thinking"):
		return false
	case !m.adaptive.Load() && (strings.Contains(text, "adaptive") || strings.Contains(text, "budget") || strings.Contains(text, "enabled")):
		return m.set(&m.adaptive, "the model decides by itself how much to think")
	case strings.Contains(text, "adaptive") && m.adaptive.Swap(false):
		if m.o.OnQuirk != nil {
			m.o.OnQuirk("the model takes a thinking budget")
		}
		return true
	}
	return m.set(&m.noThinking, "the model does not think")
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

func (m *Model) limit(req model.Request) int64 {
	n := int64(DefaultMaxOutput)
	switch {
	case req.MaxOutput > 0:
		n = int64(req.MaxOutput)
	case m.o.MaxOutput > 0:
		n = int64(m.o.MaxOutput)
	}
	if most := m.outputLimit.Load(); most > 0 {
		n = min(n, most)
	}
	return n
}
