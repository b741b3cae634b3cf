package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"herald/gateway/model"
)

const (
	// DefaultOllamaURL is where Ollama answers unless OLLAMA_HOST says otherwise.
	DefaultOllamaURL = "http://127.0.0.1:11434"
	// ProbeTimeout bounds the look for an Ollama that nobody asked for.
	ProbeTimeout = 250 * time.Millisecond
	// askTimeout bounds the same for one that was asked for by name.
	askTimeout = 2 * time.Second
	// DefaultOllamaContext is the window that is assumed of Ollama in tokens: it cuts the prompt silently
	// at its own setting (OLLAMA_CONTEXT_LENGTH), whatever the model could take.
	DefaultOllamaContext = 32_000
)

// Installed returns the names of the models that an Ollama has, those that can chat first. It waits at most
// the given time, follows no redirect and uses no proxy.
func Installed(ctx context.Context, base string, within time.Duration) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/tags", nil)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: within}).DialContext}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no Ollama answers at %s: %w", base, err)
	}
	defer resp.Body.Close()
	var tags struct {
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("what answers at %s is no Ollama (HTTP %d)", base, resp.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 4<<20)).Decode(&tags); err != nil {
		return nil, fmt.Errorf("what answers at %s is no Ollama: %w", base, err)
	}
	var chat, other []string
	for _, m := range tags.Models {
		low := strings.ToLower(m.Name)
		switch {
		case m.Name == "":
		case strings.Contains(low, "embed") || strings.Contains(low, "minilm") || strings.HasPrefix(low, "bge"):
			other = append(other, m.Name)
		default:
			chat = append(chat, m.Name)
		}
	}
	return append(chat, other...), nil
}

// ollama fills in what an Ollama that was asked for needs.
func (p *picker) ollama(ctx context.Context, e Endpoint, named bool, why string) (Endpoint, string, error) {
	e.BaseURL = ollamaURL(first(e.BaseURL, p.env("OLLAMA_HOST"), DefaultOllamaURL))
	if named {
		return e, why, nil
	}
	models, err := Installed(ctx, e.BaseURL, askTimeout)
	if err != nil {
		return e, "", fmt.Errorf("%w; start it, or name a model (model.name or HERALD_MODEL) so that it need not be asked now", err)
	}
	if len(models) == 0 {
		return e, "", errors.New("the Ollama at " + e.BaseURL + " has no model installed; run: ollama pull <name>")
	}
	e.Model = models[0]
	return e, why + ", and " + e.Model + " is its first model", nil
}

func (p *picker) ollamaContext(name string) int {
	if n, err := strconv.Atoi(p.env("OLLAMA_CONTEXT_LENGTH")); err == nil && n > 0 {
		return n
	}
	window, _ := model.WindowOf(name)
	return min(window, DefaultOllamaContext)
}

// ollamaURL reads what OLLAMA_HOST may hold ("host", "host:port", ":port", a URL) as a base address. An
// address to listen on everywhere means this machine.
func ollamaURL(raw string) string {
	raw = strings.TrimRight(strings.TrimSpace(raw), "/")
	scheme, host, ok := strings.Cut(raw, "://")
	if !ok {
		scheme, host = "http", raw
	}
	host, path, _ := strings.Cut(host, "/")
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), "11434"
		if ok && scheme == "https" {
			port = "443"
		} else if ok {
			port = "80"
		}
	}
	switch name {
	case "", "0.0.0.0", "::":
		name = "127.0.0.1"
	}
	base := scheme + "://" + net.JoinHostPort(name, port)
	if path = strings.TrimSuffix(path, "v1"); strings.Trim(path, "/") != "" {
		base += "/" + strings.Trim(path, "/")
	}
	return base
}

// loopback reports whether an address can't leave this machine.
func loopback(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback()
}
