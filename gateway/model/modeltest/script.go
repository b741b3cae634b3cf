// Package modeltest is a model server for tests: it speaks OpenAI's chat completions and Anthropic's
// messages, answers from a script, misbehaves on request, and records what it was asked.
//
// It promises that an answer on the wire looks as the real servers write it, and that no handler outlives
// its server. It must not be imported by shipped code other than the benchmark.
package modeltest

import (
	"encoding/json"
	"time"

	"herald/gateway/model"
)

// Reply is one scripted answer. The zero value answers an empty text.
type Reply struct {
	// Text is streamed word by word, Reasoning before it.
	Text      string
	Reasoning string
	// Signature, for Anthropic, signs the reasoning.
	Signature string
	// ToolCalls follow the text. Arguments are sent in pieces.
	ToolCalls []model.ToolCall
	// Finish overrules the finish reason, in the provider's own words.
	Finish string
	// Usage overrules the counted usage.
	Usage *model.Usage

	// Delay passes before the header, Pace between two events.
	Delay time.Duration
	Pace  time.Duration
	// HangHeader never answers; HangBody falls silent after CutAfter events. Both end with the request.
	HangHeader bool
	HangBody   bool
	// Cut closes the connection after CutAfter events.
	Cut      bool
	CutAfter int
	// SlowBytes, when not 0, writes the body byte by byte with this pause.
	SlowBytes time.Duration

	// Status, when not 0 or 200, answers an error with ErrorType and ErrorText and with Header.
	Status    int
	ErrorType string
	ErrorText string
	Header    map[string]string
	// Raw, when not nil, is the whole body as it is, with ContentType.
	Raw         []byte
	ContentType string
	// NoStream answers one JSON object although a stream was asked for.
	NoStream bool
}

// Text returns a reply that says text.
func Text(text string) Reply { return Reply{Text: text} }

// Calls returns a reply that calls one tool with the given JSON arguments.
func Calls(id, name, arguments string) Reply {
	return Reply{ToolCalls: []model.ToolCall{{ID: id, Name: name, Arguments: arguments}}}
}

// RateLimited returns a 429 that asks to wait.
func RateLimited(retryAfter string) Reply {
	return Reply{Status: 429, ErrorType: "rate_limit_error", ErrorText: "Rate limit reached", Header: map[string]string{"Retry-After": retryAfter}}
}

// Failing returns an error answer.
func Failing(status int, kind, text string) Reply {
	return Reply{Status: status, ErrorType: kind, ErrorText: text}
}

// TooLong returns the refusal of a request that does not fit the window.
func TooLong() Reply {
	return Reply{Status: 400, ErrorType: "invalid_request_error",
		ErrorText: "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."}
}

// Garbage returns a body that is not an answer.
func Garbage(contentType, body string) Reply {
	return Reply{Raw: []byte(body), ContentType: contentType}
}

// Request is what the server was asked.
type Request struct {
	// API is "openai" or "anthropic".
	API  string
	Path string
	// Key is what was sent as a key.
	Key  string
	Body json.RawMessage
	// Model, System, Messages and Tools are read from Body. Tool results carry role "tool".
	Model    string
	System   string
	Messages []model.Message
	Tools    []string

	stream bool
}

// LastUser returns the text of the newest user message, "" when there is none.
func (r Request) LastUser() string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == "user" {
			return r.Messages[i].Text
		}
	}
	return ""
}

// ToolResult returns the text of the newest message when that is a tool's; ok is false when it is not.
func (r Request) ToolResult() (text string, ok bool) {
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == "tool" {
		return r.Messages[n-1].Text, true
	}
	return "", false
}
