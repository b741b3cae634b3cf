package openai

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"herald/gateway/model"
	"herald/gateway/model/internal/wire"
)

const (
	// usageWait is how long usage and the end mark are waited for once the model has finished.
	usageWait = 10 * time.Second
	// maxCalls bounds the tool calls of one answer, and maxArguments the bytes of their arguments.
	maxCalls     = 256
	maxArguments = 8 << 20
	// maxText bounds the text and the reasoning of one answer, in bytes.
	maxText = 16 << 20
)

// chunk is one event of a stream, and a whole answer as well: there "message" takes the place of "delta".
type chunk struct {
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage"`
	// Error is looked at only when there are no choices.
	Error json.RawMessage `json:"error"`
}

type choice struct {
	Index        int    `json:"index"`
	Delta        delta  `json:"delta"`
	Message      *delta `json:"message"`
	FinishReason string `json:"finish_reason"`
}

type delta struct {
	Content          text              `json:"content"`
	Refusal          string            `json:"refusal"`
	Reasoning        text              `json:"reasoning"`
	ReasoningContent text              `json:"reasoning_content"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details"`
	ToolCalls        []callDelta       `json:"tool_calls"`
}

type callDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments text   `json:"arguments"`
	} `json:"function"`
	Extra json.RawMessage `json:"extra_content"`
}

type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Details    *struct {
		Cached int64 `json:"cached_tokens"`
		Write  int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Output *struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	CacheHit int64 `json:"prompt_cache_hit_tokens"` // DeepSeek
}

// text is a string that some servers send as null, as an object, or as a list of parts.
type text string

// UnmarshalJSON takes a string, null, an array of {"text"} parts, or any other JSON as it is written.
func (t *text) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case '"':
		return json.Unmarshal(b, (*string)(t))
	case 'n':
		*t = ""
		return nil
	case '[':
		var parts []struct {
			Text text `json:"text"`
		}
		if err := json.Unmarshal(b, &parts); err == nil {
			for _, p := range parts {
				*t += p.Text
			}
			return nil
		}
	}
	*t = text(b)
	return nil
}

// read turns the answer's body into a response.
func (m *Model) read(ctx context.Context, answer *wire.Answer, on func(model.Delta)) (model.Response, error) {
	defer answer.Close()
	events, kind := answer.Events()
	defer answer.Release(events)
	g := gather{m: m, on: on}
	switch kind {
	case "html":
		return model.Response{}, m.client.Errorf(model.Invalid, "an HTML page came back instead of an answer; is the base URL right?")
	case "json":
		body, err := events.Rest()
		if err != nil {
			return model.Response{}, answer.Fail(err)
		}
		if ctx.Err() != nil {
			return model.Response{}, context.Cause(ctx)
		}
		if err := g.add(body); err != nil {
			return model.Response{}, err
		}
		if !g.any {
			return model.Response{}, m.client.Errorf(model.Invalid, "the answer has no choices")
		}
		return g.response()
	}
	for {
		_, data, err := events.Next()
		if ctx.Err() != nil {
			return model.Response{}, context.Cause(ctx)
		}
		if err != nil {
			switch {
			case g.finish != "" && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || answer.Silent()):
				return g.response() // the end mark is missing, the answer is not
			case errors.Is(err, io.EOF) && !g.any:
				return model.Response{}, m.client.Errorf(model.Invalid, "the answer is empty")
			}
			return model.Response{}, answer.Fail(err)
		}
		if bytes.Equal(bytes.TrimSpace(data), done) {
			if !g.any {
				return model.Response{}, m.client.Errorf(model.Invalid, "the answer has no choices")
			}
			answer.Finish()
			return g.response()
		}
		if err := g.add(data); err != nil {
			return model.Response{}, err
		}
		if g.finish != "" {
			answer.SetIdle(usageWait)
		}
	}
}

var done = []byte("[DONE]")

// gather puts an answer together.
type gather struct {
	m   *Model
	on  func(model.Delta)
	any bool // a choice was seen

	text, reasoning strings.Builder
	refused         bool
	// fields tells whether reasoning came as reasoning_content, which some want back.
	content bool
	details []json.RawMessage
	calls   []call
	finish  string
	usage   model.Usage
	think   thinkSplitter
	chunk   chunk
	size    int
}

type call struct {
	index int // -1 when the server gave none
	id    string
	name  string
	args  []byte
	extra json.RawMessage
}

func (g *gather) add(data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil
	}
	if content, ok := plainText(data); ok {
		g.any = true
		return g.delta(&delta{Content: text(content)}, false)
	}
	c := &g.chunk
	*c = chunk{Choices: c.Choices[:0]}
	clear(c.Choices[:cap(c.Choices)])
	if err := json.Unmarshal(data, c); err != nil {
		if data[0] != '{' {
			return g.m.client.Errorf(model.Invalid, "the answer is no chat completion: %s", clip(data))
		}
		return g.m.client.Errorf(model.Invalid, "the answer can't be read: %v", err)
	}
	if c.Usage != nil {
		g.count(c.Usage)
	}
	if len(c.Choices) == 0 {
		if r, ok := wire.ParseReported(data); ok {
			return g.m.client.StreamError(r)
		}
		return nil
	}
	ch := &c.Choices[0]
	g.any = true
	d := &ch.Delta
	if ch.Message != nil {
		d = ch.Message
	}
	if err := g.delta(d, ch.Message != nil); err != nil {
		return err
	}
	if ch.FinishReason != "" {
		g.finish = ch.FinishReason
		if ch.FinishReason == "error" {
			if r, ok := wire.ParseReported(data); ok {
				return g.m.client.StreamError(r)
			}
			return g.m.client.Errorf(model.Down, "the provider reports an error in the middle of its answer")
		}
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		if r, ok := wire.ParseReported(data); ok {
			return g.m.client.StreamError(r)
		}
	}
	return nil
}

func (g *gather) delta(d *delta, whole bool) error {
	thought := string(d.ReasoningContent)
	if thought != "" {
		g.content = true
	} else {
		thought = string(d.Reasoning)
	}
	if g.size += len(thought) + len(d.Content) + len(d.Refusal); g.size > maxText {
		return g.m.client.Errorf(model.Invalid, "the answer is larger than any sensible one")
	}
	if thought != "" {
		g.reasoning.WriteString(thought)
		g.on(model.Delta{Reasoning: thought})
	}
	g.details = append(g.details, d.ReasoningDetails...)
	if d.Content != "" {
		thought, said := g.think.split(string(d.Content))
		g.say(thought, said)
	}
	if d.Refusal != "" {
		g.refused = true
		g.say("", d.Refusal)
	}
	for i := range d.ToolCalls {
		if err := g.call(&d.ToolCalls[i], whole); err != nil {
			return err
		}
	}
	return nil
}

func (g *gather) say(thought, said string) {
	if thought != "" {
		g.reasoning.WriteString(thought)
		g.on(model.Delta{Reasoning: thought})
	}
	if said != "" {
		g.text.WriteString(said)
		g.on(model.Delta{Text: said})
	}
}

// call adds a piece of a tool call. Pieces belong together by index; servers that give none, or one index
// for all, tell calls apart by a new id. A whole answer lists whole calls.
func (g *gather) call(d *callDelta, whole bool) error {
	var c *call
	index := -1
	if d.Index != nil {
		index = *d.Index
	}
	for i := len(g.calls) - 1; i >= 0 && !whole; i-- {
		if g.calls[i].index == index {
			c = &g.calls[i]
			break
		}
	}
	if c != nil && d.ID != "" && c.id != "" && d.ID != c.id {
		c = nil
	}
	if c != nil && index < 0 && d.ID == "" && d.Function.Name != "" && c.name != "" {
		c = nil
	}
	if c == nil {
		if len(g.calls) >= maxCalls {
			return g.m.client.Errorf(model.Invalid, "the answer has more than %d tool calls", maxCalls)
		}
		g.calls = append(g.calls, call{index: index})
		c = &g.calls[len(g.calls)-1]
	}
	if c.id == "" {
		c.id = d.ID
	}
	if c.name == "" && d.Function.Name != "" {
		c.name = d.Function.Name
		g.on(model.Delta{Tool: c.name})
	}
	if len(d.Extra) > 0 {
		c.extra = slices.Clone(d.Extra)
	}
	if g.size += len(d.Function.Arguments); g.size > maxText+maxArguments {
		return g.m.client.Errorf(model.Invalid, "the arguments of the tool calls are larger than any sensible ones")
	}
	c.args = append(c.args, d.Function.Arguments...)
	return nil
}

func (g *gather) count(u *usage) {
	g.usage = model.Usage{Input: u.Prompt, Output: u.Completion, CacheRead: u.CacheHit}
	if u.Details != nil {
		g.usage.CacheRead = max(g.usage.CacheRead, u.Details.Cached)
		g.usage.CacheWrite = u.Details.Write
	}
	if u.Output != nil {
		g.usage.Reasoning = u.Output.Reasoning
	}
}

func (g *gather) response() (model.Response, error) {
	g.say(g.think.rest())
	r := model.Response{Text: g.text.String(), Reasoning: g.reasoning.String(), Usage: g.usage, Model: g.m.info}
	back := replay{Provider: g.m.o.Provider, Model: g.m.o.Model, ReasoningDetails: g.details}
	for i := range g.calls {
		c := &g.calls[i]
		if c.name == "" {
			return model.Response{}, g.m.client.Errorf(model.Invalid, "a tool call has no name")
		}
		if c.id == "" || slices.ContainsFunc(r.ToolCalls, func(o model.ToolCall) bool { return o.ID == c.id }) {
			c.id = "call_" + strings.ToLower(rand.Text()[:20])
		}
		if len(c.extra) > 0 {
			if back.Extra == nil {
				back.Extra = make(map[string]json.RawMessage)
			}
			back.Extra[c.id] = c.extra
		}
		r.ToolCalls = append(r.ToolCalls, model.ToolCall{ID: c.id, Name: c.name, Arguments: string(c.args)})
	}
	if g.content && len(r.ToolCalls) > 0 {
		back.ReasoningContent = r.Reasoning
	}
	if !back.empty() {
		b, err := json.Marshal(back)
		if err != nil {
			return model.Response{}, g.m.client.Errorf(model.Invalid, "the answer's reasoning can't be kept: %v", err)
		}
		r.Replay = b
	}
	r.Finish = finish(g.finish, len(r.ToolCalls) > 0, g.refused)
	return r, nil
}

func finish(reason string, calls, refused bool) string {
	switch reason {
	case "length", "max_tokens", "model_length":
		return "length"
	case "content_filter":
		return "content_filter"
	case "refusal":
		return "refusal"
	}
	if calls {
		return "tool_calls"
	}
	if refused {
		return "refusal"
	}
	return "stop"
}

func clip(b []byte) string {
	if len(b) > 120 {
		b = b[:120]
	}
	return string(b)
}
