package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"herald/gateway/model"
)

// maxCause bounds the text of an error, in bytes.
const maxCause = 500

// Error returns a *model.Error whose text holds no secret.
func (c *Client) Error(kind model.Kind, status int, cause error) *model.Error {
	return &model.Error{Kind: kind, Status: status, Provider: c.o.Provider, Err: errors.New(c.scrub(cause.Error()))}
}

// Errorf is Error with a format.
func (c *Client) Errorf(kind model.Kind, format string, args ...any) *model.Error {
	return c.Error(kind, 0, fmt.Errorf(format, args...))
}

// scrub cuts the text, and takes out the known secrets and what looks like a key.
func (c *Client) scrub(s string) string {
	for _, secret := range c.o.Secrets {
		if len(secret) >= 4 {
			s = strings.ReplaceAll(s, secret, "[key]")
		}
	}
	for _, mark := range [...]string{"sk-", "Bearer ", "AIza", "gsk_", "xai-"} {
		s = hideAfter(s, mark)
	}
	s = strings.ToValidUTF8(s, "")
	if len(s) > maxCause {
		cut := maxCause
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return s
}

// hideAfter replaces what follows mark by "[key]" where it is as long as a key.
func hideAfter(s, mark string) string {
	var out strings.Builder
	for {
		i := strings.Index(s, mark)
		if i < 0 {
			break
		}
		word := i > 0 && isKeyByte(s[i-1]) // in the middle of a word, as in "task-force"
		end := i + len(mark)
		for end < len(s) && isKeyByte(s[end]) {
			end++
		}
		out.WriteString(s[:i])
		if !word && end-i-len(mark) >= 8 {
			out.WriteString("[key]")
		} else {
			out.WriteString(s[i:end])
		}
		s = s[end:]
	}
	if out.Len() == 0 {
		return s
	}
	out.WriteString(s)
	return out.String()
}

func isKeyByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' ||
		b == '-' || b == '_' || b == '*' || b == '.'
}

// Reported is an error that a provider wrote, in any of the usual shapes.
type Reported struct {
	Type    string
	Code    string
	Message string
}

func (r Reported) String() string {
	s := r.Message
	if s == "" {
		s = r.Type
	}
	if r.Code != "" && !strings.Contains(s, r.Code) {
		s += " (" + r.Code + ")"
	}
	if s == "" {
		s = "no reason given"
	}
	return s
}

// ParseReported reads an error object: {"error":{"message","type","code"}}, {"error":"text"},
// {"message":"text"}, {"detail":…}, or an array of one of these. ok is false when there is none.
func ParseReported(body []byte) (Reported, bool) {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(body, &list) != nil || len(list) == 0 {
			return Reported{}, false
		}
		body = list[0]
	}
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Type    json.RawMessage `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	if json.Unmarshal(body, &outer) != nil {
		return Reported{}, false
	}
	if len(outer.Error) > 0 && string(outer.Error) != "null" {
		var inner struct {
			Message  json.RawMessage `json:"message"`
			Type     json.RawMessage `json:"type"`
			Code     json.RawMessage `json:"code"`
			Metadata struct {
				Raw json.RawMessage `json:"raw"` // OpenRouter: what the provider behind it said
			} `json:"metadata"`
		}
		if outer.Error[0] == '{' && json.Unmarshal(outer.Error, &inner) == nil {
			r := Reported{Type: text(inner.Type), Code: text(inner.Code), Message: text(inner.Message)}
			if raw := text(inner.Metadata.Raw); raw != "" {
				r.Message += ": " + raw
			}
			return r, true
		}
		return Reported{Message: text(outer.Error), Code: text(outer.Code), Type: text(outer.Type)}, true
	}
	for _, m := range []json.RawMessage{outer.Message, outer.Detail} {
		if t := text(m); t != "" {
			return Reported{Message: t, Code: text(outer.Code), Type: text(outer.Type)}, true
		}
	}
	return Reported{}, false
}

// text returns a JSON string's value, and other JSON as it is written.
func text(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// statusError maps an answer that is no success.
func (c *Client) statusError(status int, header http.Header, body []byte) *model.Error {
	r, ok := ParseReported(body)
	if !ok {
		r.Message = plain(body)
		if r.Message == "" {
			r.Message = http.StatusText(status)
		}
	}
	if status >= 300 && status < 400 {
		r.Message = "the server redirects to another address; set the base URL to where the API really is"
	}
	kind := Classify(status, r)
	e := c.Error(kind, status, errors.New(r.String()))
	if kind == model.RateLimit || kind == model.Overloaded || kind == model.Down {
		e.RetryAfter = retryAfter(header, c.o.Now())
	}
	return e
}

// StreamError maps an error object that came inside a stream.
func (c *Client) StreamError(r Reported) *model.Error {
	status := 0
	if n, err := strconv.Atoi(r.Code); err == nil && n >= 400 && n < 600 {
		status = n
	}
	kind := Classify(status, r)
	if status == 0 && kind == model.BadRequest {
		kind = model.Down // the request was good enough to begin an answer
	}
	return c.Error(kind, status, errors.New(r.String()))
}

// plain describes a body that is no error object.
func plain(body []byte) string {
	s := strings.TrimSpace(string(body))
	if strings.HasPrefix(s, "<") {
		title := ""
		low := strings.ToLower(s)
		if i := strings.Index(low, "<title>"); i >= 0 {
			if j := strings.Index(low[i:], "</title>"); j >= 0 && i+j <= len(s) {
				title = strings.Join(strings.Fields(s[i+7:i+j]), " ")
			}
		}
		if title == "" {
			return "an HTML page came back"
		}
		return "an HTML page came back: " + title
	}
	return strings.Join(strings.Fields(s), " ")
}

// contextWords are how providers say that a request is too long. Sources: the error texts of OpenAI,
// Azure, Anthropic, Google, OpenRouter, vLLM, llama.cpp, Ollama, LM Studio, Mistral, Groq, Together, xAI,
// DeepSeek and Moonshot.
var contextWords = [...]string{
	"context_length_exceeded", "context length", "context window", "context size", "maximum context",
	"max context", "prompt is too long", "prompt too long", "input is too long", "input too long",
	"too many tokens", "maximum prompt length", "exceeds the available context", "exceed_context_size",
	"input token count", "reduce the length", "too many input tokens", "exceeds the maximum number of tokens",
	"larger than the maximum", "token limit", "request too large", "request_too_large", "string_above_max_length",
	"input length and `max_tokens` exceed",
}

// policyWords are how providers say that they refuse the content.
var policyWords = [...]string{
	"content_policy", "content policy", "content_filter", "content management policy", "content filtering",
	"responsible_ai", "flagged", "moderation", "usage policies", "usage policy", "safety system", "safety settings",
	"data_inspection_failed", "sensitive content",
}

// Classify says what to do about a failed call. Status 0 means that there was none.
func Classify(status int, r Reported) model.Kind {
	low := strings.ToLower(r.Type + " " + r.Code + " " + r.Message)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(low, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("overloaded_error"):
		return model.Overloaded
	case has("rate_limit_error") || status == 429:
		if has("insufficient_quota", "exceeded your current quota", "billing") {
			return model.Auth // waiting brings no money: another model has to answer
		}
		if has("request too large") {
			return model.ContextLength
		}
		return model.RateLimit
	}
	switch status {
	case 0, 400, 413, 422, 500:
		if has(contextWords[:]...) {
			return model.ContextLength
		}
	}
	switch status {
	case 0, 400, 403, 422:
		if has(policyWords[:]...) {
			return model.Policy
		}
	}
	switch status {
	case 401, 402, 403, 407:
		return model.Auth
	case 404, 405, 410:
		return model.NotFound
	case 413:
		return model.ContextLength
	case 408, 409, 425:
		return model.Down
	case 503, 529:
		return model.Overloaded
	case 400, 422:
		if has("api key", "api_key", "authentication_error", "unauthorized") {
			return model.Auth
		}
		if has("model_not_found", "model not found", "no such model", "unknown model", "is not a valid model") {
			return model.NotFound
		}
		return model.BadRequest
	}
	if status >= 500 {
		if has("overloaded", "capacity") {
			return model.Overloaded
		}
		return model.Down
	}
	if status >= 300 && status < 400 {
		return model.NotFound
	}
	if status == 0 {
		switch {
		case has("authentication_error", "permission_error", "invalid api key", "unauthorized"):
			return model.Auth
		case has("not_found_error", "model_not_found"):
			return model.NotFound
		case has("rate limit", "too many requests"):
			return model.RateLimit
		case has("overloaded"):
			return model.Overloaded
		case has("invalid_request"):
			return model.BadRequest
		}
		return model.Down
	}
	return model.BadRequest
}

// maxRetryAfter bounds what a header may ask for.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads how long the provider asks to wait: Retry-After (seconds or an HTTP date),
// retry-after-ms, else the reset headers of exhausted limits. 0 when it does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return bound(ms * float64(time.Millisecond))
	}
	if v := strings.TrimSpace(h.Get("Retry-After")); v != "" {
		if s, err := strconv.ParseFloat(strings.TrimSuffix(v, "s"), 64); err == nil {
			return bound(s * float64(time.Second))
		}
		if t, err := http.ParseTime(v); err == nil {
			return bound(float64(t.Sub(now)))
		}
	}
	var longest time.Duration
	for _, family := range [...][3]string{
		{"X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
		{"X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
		{"X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
		{"Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"},
		{"Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset"},
	} {
		if left := h.Get(family[0]); left != "" && left != "0" {
			continue
		}
		longest = max(longest, reset(h.Get(family[1]), now))
	}
	return longest
}

// reset reads a reset header: a duration ("6m0s", "250ms"), a time (RFC 3339), seconds from now, or a Unix
// time in seconds or milliseconds.
func reset(v string, now time.Time) time.Duration {
	v = strings.TrimSpace(v)
	if v == "" {
		return 0
	}
	if d, err := time.ParseDuration(v); err == nil {
		return bound(float64(d))
	}
	if t, err := time.Parse(time.RFC3339, v); err == nil {
		return bound(float64(t.Sub(now)))
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return 0
	}
	switch {
	case n > 1e11:
		return bound(float64(time.UnixMilli(int64(min(n, 1e15))).Sub(now)))
	case n > 1e9:
		return bound(float64(time.Unix(int64(n), 0).Sub(now)))
	}
	return bound(n * float64(time.Second))
}

func bound(d float64) time.Duration {
	if !(d > 0) { // NaN too
		return 0
	}
	return time.Duration(min(d, float64(maxRetryAfter)))
}
