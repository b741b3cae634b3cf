package model

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Model answers requests. Safe for concurrent use.
type Model interface {
	// Info says which model it is. No I/O.
	Info() Info
	// Stream sends the request and calls on for each piece in order, from one goroutine, until the answer
	// is complete. It returns the whole answer. When ctx ends it returns at once with ctx's cause,
	// whatever the network does, and on is no longer called. Errors are *Error or the context's.
	Stream(ctx context.Context, req Request, on func(Delta)) (Response, error)
}

// Info describes a model.
type Info struct {
	// Provider is "openai", "anthropic", "openrouter", "ollama" or "demo"; Name is the model's name there.
	Provider string
	Name     string
	// Context is the window in tokens, an assumption where the provider does not say.
	Context int
	// MaxOutput is the most tokens of one answer, 0 for the provider's default.
	MaxOutput int
	// Vision: images may be sent.
	Vision bool
}

// String returns "provider/name".
func (i Info) String() string { return i.Provider + "/" + i.Name }

// Request is one model call.
type Request struct {
	// System is the byte-stable prompt. Ephemeral is added behind it for this call only.
	System    string
	Ephemeral string
	Messages  []Message
	Tools     []ToolDef
	// MaxOutput bounds the answer in tokens; 0 takes the model's default.
	MaxOutput int
	// Reasoning is "", "none", "low", "medium" or "high".
	Reasoning string
	// CacheKey groups calls that share a prefix (the session id).
	CacheKey string
}

// Message is one message of the conversation. Roles are "user", "assistant" and "tool".
type Message struct {
	Role   string
	Text   string
	Images []Image
	// ToolCalls are what an assistant message asked for.
	ToolCalls []ToolCall
	// ToolCallID, ToolName and IsError belong to a tool message.
	ToolCallID string
	ToolName   string
	IsError    bool
	// Replay is what this provider gave in Response.Replay and wants back verbatim. Other providers ignore it.
	Replay json.RawMessage
}

// Image is a picture in a user or tool message.
type Image struct {
	MIME string
	Data []byte
}

// ToolDef offers a tool.
type ToolDef struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema
}

// ToolCall is one call that the model asks for. Arguments is what it wrote, meant to be a JSON object.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string
}

// Delta is a piece of a streamed answer. Text and Reasoning are what was added; Tool is the name of a call
// whose arguments are being written.
type Delta struct {
	Text      string
	Reasoning string
	Tool      string
	// Restart is true when the answer starts over (a retry, another model): what was streamed so far is
	// void and a preview of it is to be emptied. Nothing else is set then. Only Retry and Fallback send it,
	// and only when something was streamed before.
	Restart bool
}

// Response is a complete answer.
type Response struct {
	Text      string
	Reasoning string
	ToolCalls []ToolCall
	// Replay is provider-owned JSON to be given back with this message in later requests.
	Replay json.RawMessage
	// Finish is "stop", "tool_calls", "length", "content_filter" or "refusal".
	Finish string
	Usage  Usage
	// Model is what really answered, after fallbacks.
	Model Info
}

// Usage counts tokens of one call. Input includes what was read from or written to a cache.
type Usage struct {
	Input, Output, CacheRead, CacheWrite, Reasoning int64
}

// Kind says what to do about an error.
type Kind string

// The kinds of error.
const (
	Auth          Kind = "auth"           // 401, 403: the key is refused
	NotFound      Kind = "not_found"      // 404: no such model or endpoint
	RateLimit     Kind = "rate_limit"     // 429
	Overloaded    Kind = "overloaded"     // 529, 503
	Down          Kind = "down"           // network, 5xx, a broken stream
	ContextLength Kind = "context_length" // the request is too long for the model
	BadRequest    Kind = "bad_request"    // refused for good
	Policy        Kind = "policy"         // refused by a content policy
	Invalid       Kind = "invalid"        // the answer is unusable (garbage, empty)
)

// Error is a failed call. Its text never holds a key.
type Error struct {
	Kind       Kind
	Status     int // HTTP status, 0 when there was none
	RetryAfter time.Duration
	Provider   string
	Err        error
}

// Error returns provider, kind, status and cause.
func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s: %s (HTTP %d): %v", e.Provider, e.Kind, e.Status, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Provider, e.Kind, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same call may succeed a little later.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case RateLimit, Overloaded, Down, Invalid:
		return true
	}
	return false
}
