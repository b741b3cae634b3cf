package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"herald/gateway/model"
)

// openaiAPI writes chat completions.
type openaiAPI struct{}

func (openaiAPI) name() string { return "openai" }

func (openaiAPI) read(r *http.Request, body []byte) (Request, error) {
	var in struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role       string          `json:"role"`
			Content    json.RawMessage `json:"content"`
			ToolCallID string          `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, fmt.Errorf("the body is no chat completion request: %w", err)
	}
	if in.Model == "" || len(in.Messages) == 0 {
		return Request{}, fmt.Errorf("model and messages are required")
	}
	q := Request{API: "openai", Path: r.URL.Path, Key: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), Body: body, Model: in.Model, stream: in.Stream}
	open := map[string]bool{}
	for i, m := range in.Messages {
		text := contentText(m.Content)
		if m.Role == "system" || m.Role == "developer" {
			q.System += text
			continue
		}
		msg := model.Message{Role: m.Role, Text: text, ToolCallID: m.ToolCallID}
		for _, c := range m.ToolCalls {
			msg.ToolCalls = append(msg.ToolCalls, model.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		// As the real API does: every call is answered before anything else is said.
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return Request{}, fmt.Errorf("messages[%d]: tool_call_id %q answers no call", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
		} else if len(open) > 0 {
			return Request{}, fmt.Errorf("messages[%d]: an assistant message with tool_calls must be followed by tool messages", i)
		}
		for _, c := range msg.ToolCalls {
			open[c.ID] = true
		}
		q.Messages = append(q.Messages, msg)
	}
	if len(open) > 0 {
		return Request{}, fmt.Errorf("%d tool calls have no answer", len(open))
	}
	for _, t := range in.Tools {
		q.Tools = append(q.Tools, t.Function.Name)
	}
	return q, nil
}

// contentText returns a string, or the text parts of a list.
func contentText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text    string          `json:"text"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		s += p.Text
	}
	return s
}

type openaiDelta struct {
	Role             string       `json:"role,omitempty"`
	Content          *string      `json:"content,omitempty"`
	ReasoningContent string       `json:"reasoning_content,omitempty"`
	ToolCalls        []openaiCall `json:"tool_calls,omitempty"`
}

type openaiCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type openaiUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
	Details    struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Output struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

type openaiChoice struct {
	Index   int          `json:"index"`
	Delta   *openaiDelta `json:"delta,omitempty"`
	Message *openaiDelta `json:"message,omitempty"`
	Finish  *string      `json:"finish_reason"`
}

type openaiChunk struct {
	ID      string         `json:"id"`
	Object  string         `json:"object"`
	Created int64          `json:"created"`
	Model   string         `json:"model"`
	Choices []openaiChoice `json:"choices"`
	Usage   *openaiUsage   `json:"usage,omitempty"`
}

func openaiFinish(a Reply) string {
	switch {
	case a.Finish != "":
		return a.Finish
	case len(a.ToolCalls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func openaiCounted(q Request, a Reply) *openaiUsage {
	u := counted(q, a)
	out := &openaiUsage{Prompt: u.Input, Completion: u.Output, Total: u.Input + u.Output}
	out.Details.Cached, out.Output.Reasoning = u.CacheRead, u.Reasoning
	return out
}

func (openaiAPI) events(q Request, a Reply) [][]byte {
	var out [][]byte
	put := func(c openaiChunk) {
		c.ID, c.Object, c.Created, c.Model = "chatcmpl-test", "chat.completion.chunk", 1_700_000_000, q.Model
		if c.Choices == nil {
			c.Choices = []openaiChoice{}
		}
		b, err := json.Marshal(c)
		if err != nil {
			panic(err) // the types above can all be written
		}
		out = append(out, append(append([]byte("data: "), b...), "\n\n"...))
	}
	delta := func(d openaiDelta, finish *string) {
		put(openaiChunk{Choices: []openaiChoice{{Delta: &d, Finish: finish}}})
	}
	empty := ""
	delta(openaiDelta{Role: "assistant", Content: &empty}, nil)
	for _, w := range words(a.Reasoning) {
		delta(openaiDelta{ReasoningContent: w}, nil)
	}
	for _, w := range words(a.Text) {
		delta(openaiDelta{Content: &w}, nil)
	}
	for i, c := range a.ToolCalls {
		head := openaiCall{Index: &i, ID: c.ID, Type: "function"}
		head.Function.Name = c.Name
		delta(openaiDelta{ToolCalls: []openaiCall{head}}, nil)
		half := len(c.Arguments) / 2
		for _, piece := range []string{c.Arguments[:half], c.Arguments[half:]} {
			part := openaiCall{Index: &i}
			part.Function.Arguments = piece
			delta(openaiDelta{ToolCalls: []openaiCall{part}}, nil)
		}
	}
	finish := openaiFinish(a)
	delta(openaiDelta{}, &finish)
	if strings.Contains(string(q.Body), `"include_usage":true`) {
		put(openaiChunk{Usage: openaiCounted(q, a)})
	}
	return append(out, []byte("data: [DONE]\n\n"))
}

func (openaiAPI) whole(q Request, a Reply) []byte {
	d := openaiDelta{Role: "assistant", Content: &a.Text, ReasoningContent: a.Reasoning}
	for _, c := range a.ToolCalls {
		call := openaiCall{ID: c.ID, Type: "function"}
		call.Function.Name, call.Function.Arguments = c.Name, c.Arguments
		d.ToolCalls = append(d.ToolCalls, call)
	}
	finish := openaiFinish(a)
	b, err := json.Marshal(openaiChunk{ID: "chatcmpl-test", Object: "chat.completion", Created: 1_700_000_000, Model: q.Model,
		Choices: []openaiChoice{{Message: &d, Finish: &finish}}, Usage: openaiCounted(q, a)})
	if err != nil {
		panic(err) // the types above can all be written
	}
	return b
}

func (openaiAPI) failure(a Reply) []byte {
	var e struct {
		Error struct {
			Message string  `json:"message"`
			Type    string  `json:"type"`
			Param   *string `json:"param"`
			Code    *string `json:"code"`
		} `json:"error"`
	}
	e.Error.Message, e.Error.Type = a.ErrorText, a.ErrorType
	b, err := json.Marshal(e)
	if err != nil {
		panic(err) // the types above can all be written
	}
	return b
}
