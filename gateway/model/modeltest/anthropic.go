package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"

	"herald/gateway/model"
)

// anthropicAPI writes messages.
type anthropicAPI struct{}

func (anthropicAPI) name() string { return "anthropic" }

func (anthropicAPI) read(r *http.Request, body []byte) (Request, error) {
	type block struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID string          `json:"tool_use_id"`
		Content   json.RawMessage `json:"content"`
		IsError   bool            `json:"is_error"`
	}
	var in struct {
		Model     string          `json:"model"`
		Stream    bool            `json:"stream"`
		MaxTokens int             `json:"max_tokens"`
		System    json.RawMessage `json:"system"`
		Messages  []struct {
			Role    string  `json:"role"`
			Content []block `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, fmt.Errorf("the body is no messages request: %w", err)
	}
	if in.Model == "" || in.MaxTokens <= 0 || len(in.Messages) == 0 {
		return Request{}, fmt.Errorf("model, max_tokens and messages are required")
	}
	q := Request{API: "anthropic", Path: r.URL.Path, Key: r.Header.Get("X-Api-Key"), Body: body, Model: in.Model,
		System: contentText(in.System), stream: in.Stream}
	last := "assistant"
	open := map[string]bool{}
	for i, m := range in.Messages {
		// As the real API does: roles alternate, and results follow their calls at once.
		if m.Role == last || len(m.Content) == 0 {
			return Request{}, fmt.Errorf("messages[%d]: roles must alternate and content must not be empty", i)
		}
		last = m.Role
		msg := model.Message{Role: m.Role}
		for j, b := range m.Content {
			switch b.Type {
			case "text":
				if b.Text == "" {
					return Request{}, fmt.Errorf("messages[%d].content[%d]: text content blocks must be non-empty", i, j)
				}
				msg.Text += b.Text
			case "tool_use":
				msg.ToolCalls = append(msg.ToolCalls, model.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
			case "tool_result":
				if !open[b.ToolUseID] {
					return Request{}, fmt.Errorf("messages[%d].content[%d]: unexpected tool_use_id %q", i, j, b.ToolUseID)
				}
				delete(open, b.ToolUseID)
				q.Messages = append(q.Messages, model.Message{Role: "tool", Text: contentText(b.Content), ToolCallID: b.ToolUseID, IsError: b.IsError})
			}
		}
		if len(open) > 0 {
			return Request{}, fmt.Errorf("messages[%d]: tool_use ids were found without tool_result blocks immediately after", i)
		}
		for _, c := range msg.ToolCalls {
			open[c.ID] = true
		}
		if msg.Text != "" || len(msg.ToolCalls) > 0 {
			q.Messages = append(q.Messages, msg)
		}
	}
	for _, t := range in.Tools {
		q.Tools = append(q.Tools, t.Name)
	}
	return q, nil
}

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

type anthropicUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

type anthropicMessage struct {
	ID         string           `json:"id"`
	Type       string           `json:"type"`
	Role       string           `json:"role"`
	Model      string           `json:"model"`
	Content    []anthropicBlock `json:"content"`
	StopReason *string          `json:"stop_reason"`
	Usage      anthropicUsage   `json:"usage"`
}

type anthropicDelta struct {
	Type       string  `json:"type,omitempty"`
	Text       string  `json:"text,omitempty"`
	Thinking   string  `json:"thinking,omitempty"`
	Signature  string  `json:"signature,omitempty"`
	Partial    *string `json:"partial_json,omitempty"`
	StopReason string  `json:"stop_reason,omitempty"`
}

type anthropicEvent struct {
	Type    string            `json:"type"`
	Message *anthropicMessage `json:"message,omitempty"`
	Index   *int              `json:"index,omitempty"`
	Block   *anthropicBlock   `json:"content_block,omitempty"`
	Delta   *anthropicDelta   `json:"delta,omitempty"`
	Usage   *anthropicUsage   `json:"usage,omitempty"`
}

func anthropicCounted(q Request, a Reply) anthropicUsage {
	u := counted(q, a)
	return anthropicUsage{Input: max(0, u.Input-u.CacheRead-u.CacheWrite), Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}
}

func anthropicStop(a Reply) string {
	switch {
	case a.Finish != "":
		return a.Finish
	case len(a.ToolCalls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

func (anthropicAPI) events(q Request, a Reply) [][]byte {
	var out [][]byte
	put := func(e anthropicEvent) {
		b, err := json.Marshal(e)
		if err != nil {
			panic(err) // the types above can all be written
		}
		out = append(out, []byte("event: "+e.Type+"\ndata: "+string(b)+"\n\n"))
	}
	u := anthropicCounted(q, a)
	start := u
	start.Output = 1
	put(anthropicEvent{Type: "message_start", Message: &anthropicMessage{ID: "msg_test", Type: "message", Role: "assistant", Model: q.Model,
		Content: []anthropicBlock{}, Usage: start}})
	index := 0
	block := func(head anthropicBlock, deltas ...anthropicDelta) {
		i := index
		index++
		put(anthropicEvent{Type: "content_block_start", Index: &i, Block: &head})
		if i == 0 {
			put(anthropicEvent{Type: "ping"})
		}
		for _, d := range deltas {
			put(anthropicEvent{Type: "content_block_delta", Index: &i, Delta: &d})
		}
		put(anthropicEvent{Type: "content_block_stop", Index: &i})
	}
	empty := ""
	if a.Reasoning != "" {
		var deltas []anthropicDelta
		for _, w := range words(a.Reasoning) {
			deltas = append(deltas, anthropicDelta{Type: "thinking_delta", Thinking: w})
		}
		deltas = append(deltas, anthropicDelta{Type: "signature_delta", Signature: a.Signature})
		block(anthropicBlock{Type: "thinking", Thinking: &empty, Signature: &empty}, deltas...)
	}
	if a.Text != "" {
		var deltas []anthropicDelta
		for _, w := range words(a.Text) {
			deltas = append(deltas, anthropicDelta{Type: "text_delta", Text: w})
		}
		block(anthropicBlock{Type: "text", Text: &empty}, deltas...)
	}
	for _, c := range a.ToolCalls {
		half := len(c.Arguments) / 2
		first, second := c.Arguments[:half], c.Arguments[half:]
		block(anthropicBlock{Type: "tool_use", ID: c.ID, Name: c.Name, Input: json.RawMessage("{}")},
			anthropicDelta{Type: "input_json_delta", Partial: &first}, anthropicDelta{Type: "input_json_delta", Partial: &second})
	}
	put(anthropicEvent{Type: "message_delta", Delta: &anthropicDelta{StopReason: anthropicStop(a)}, Usage: &u})
	put(anthropicEvent{Type: "message_stop"})
	return out
}

func (anthropicAPI) whole(q Request, a Reply) []byte {
	stop := anthropicStop(a)
	m := anthropicMessage{ID: "msg_test", Type: "message", Role: "assistant", Model: q.Model, Content: []anthropicBlock{}, StopReason: &stop,
		Usage: anthropicCounted(q, a)}
	if a.Reasoning != "" {
		m.Content = append(m.Content, anthropicBlock{Type: "thinking", Thinking: &a.Reasoning, Signature: &a.Signature})
	}
	if a.Text != "" {
		m.Content = append(m.Content, anthropicBlock{Type: "text", Text: &a.Text})
	}
	for _, c := range a.ToolCalls {
		m.Content = append(m.Content, anthropicBlock{Type: "tool_use", ID: c.ID, Name: c.Name, Input: json.RawMessage(c.Arguments)})
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // the scripted arguments are not JSON
	}
	return b
}

func (anthropicAPI) failure(a Reply) []byte {
	e := struct {
		Type  string `json:"type"`
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}{Type: "error"}
	e.Error.Type, e.Error.Message = a.ErrorType, a.ErrorText
	b, err := json.Marshal(e)
	if err != nil {
		panic(err) // the types above can all be written
	}
	return b
}
