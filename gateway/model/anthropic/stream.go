package anthropic

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"herald/gateway/model"
	"herald/gateway/model/internal/wire"
)

const (
	maxBlocks = 1024
	maxAnswer = 24 << 20 // bytes of one answer's content
)

// event is any event of the stream.
type event struct {
	Type    string      `json:"type"`
	Message *message    `json:"message"`
	Index   int         `json:"index"`
	Block   *block      `json:"content_block"`
	Delta   *blockDelta `json:"delta"`
	Usage   *usage      `json:"usage"`
}

// message is the beginning of a stream, or a whole answer.
type message struct {
	Type       string            `json:"type"`
	Content    []json.RawMessage `json:"content"`
	StopReason string            `json:"stop_reason"`
	Usage      *usage            `json:"usage"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

type blockDelta struct {
	Type       string `json:"type"`
	Text       string `json:"text"`
	Thinking   string `json:"thinking"`
	Signature  string `json:"signature"`
	Partial    string `json:"partial_json"`
	StopReason string `json:"stop_reason"`
}

type usage struct {
	Input      *int64 `json:"input_tokens"`
	Output     *int64 `json:"output_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	Details    *struct {
		Thinking int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

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
		return g.whole(body)
	}
	for {
		_, data, err := events.Next()
		if ctx.Err() != nil {
			return model.Response{}, context.Cause(ctx)
		}
		if err != nil {
			if errors.Is(err, io.EOF) && !g.started {
				return model.Response{}, m.client.Errorf(model.Invalid, "the answer is empty")
			}
			return model.Response{}, answer.Fail(err)
		}
		stop, err := g.add(data)
		if err != nil {
			return model.Response{}, err
		}
		if stop {
			answer.Finish()
			return g.response()
		}
	}
}

// gather puts an answer together.
type gather struct {
	m       *Model
	on      func(model.Delta)
	started bool
	blocks  []*gathered
	stop    string
	usage   usage
	size    int
	said    bool // some text was streamed
	event   event
}

type gathered struct {
	block
	text strings.Builder // text, thinking, or the arguments
	raw  json.RawMessage // a block that is not known here, as it came
}

func (g *gather) add(data []byte) (stop bool, err error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return false, nil
	}
	e := &g.event
	*e = event{}
	if err := json.Unmarshal(data, e); err != nil {
		return false, g.m.client.Errorf(model.Invalid, "the answer can't be read: %v", err)
	}
	switch e.Type {
	case "message_start":
		g.started = true
		if e.Message != nil {
			g.count(e.Message.Usage)
		}
	case "content_block_start":
		g.started = true
		if e.Block == nil || e.Index != len(g.blocks) || e.Index >= maxBlocks {
			return false, g.m.client.Errorf(model.Invalid, "a content block begins out of order")
		}
		g.begin(*e.Block, data)
	case "content_block_delta":
		if e.Delta == nil || e.Index < 0 || e.Index >= len(g.blocks) {
			return false, g.m.client.Errorf(model.Invalid, "a piece belongs to no content block")
		}
		if g.size += len(data); g.size > maxAnswer {
			return false, g.m.client.Errorf(model.Invalid, "the answer is larger than any sensible one")
		}
		g.extend(g.blocks[e.Index], e.Delta)
	case "message_delta":
		if e.Delta != nil && e.Delta.StopReason != "" {
			g.stop = e.Delta.StopReason
		}
		g.count(e.Usage)
	case "message_stop":
		if !g.started {
			return false, g.m.client.Errorf(model.Invalid, "the answer has no beginning")
		}
		return true, nil
	case "error":
		r, _ := wire.ParseReported(data)
		return false, g.m.client.StreamError(r)
	case "":
		if r, ok := wire.ParseReported(data); ok {
			return false, g.m.client.StreamError(r)
		}
		return false, g.m.client.Errorf(model.Invalid, "the answer is no message of Anthropic's; is the base URL right?")
	}
	return false, nil // ping, content_block_stop, and what is to come
}

// begin opens a block. Most come empty and grow; some are complete at once.
func (g *gather) begin(b block, data []byte) {
	n := &gathered{block: b}
	g.blocks = append(g.blocks, n)
	switch b.Type {
	case "text":
		g.extend(n, &blockDelta{Type: "text_delta", Text: b.Text})
	case "thinking":
		g.extend(n, &blockDelta{Type: "thinking_delta", Thinking: b.Thinking})
	case "redacted_thinking":
	case "tool_use":
		g.on(model.Delta{Tool: b.Name})
	default:
		var outer struct {
			Block json.RawMessage `json:"content_block"`
		}
		if json.Unmarshal(data, &outer) == nil {
			n.raw = outer.Block
		}
	}
}

func (g *gather) extend(b *gathered, d *blockDelta) {
	switch d.Type {
	case "text_delta":
		if d.Text == "" || b.Type != "text" { // a piece of another kind of block is not shown
			return
		}
		// Two blocks of text are two paragraphs.
		if said := d.Text; b.text.Len() == 0 && g.said {
			g.on(model.Delta{Text: "\n\n" + said})
		} else {
			g.on(model.Delta{Text: said})
		}
		g.said = true
		b.text.WriteString(d.Text)
	case "thinking_delta":
		if d.Thinking != "" && b.Type == "thinking" {
			b.text.WriteString(d.Thinking)
			g.on(model.Delta{Reasoning: d.Thinking})
		}
	case "signature_delta":
		b.Signature += d.Signature
	case "input_json_delta":
		b.text.WriteString(d.Partial)
	}
}

func (g *gather) count(u *usage) {
	if u == nil {
		return
	}
	for _, f := range [...]struct{ to, from **int64 }{
		{&g.usage.Input, &u.Input}, {&g.usage.Output, &u.Output},
		{&g.usage.CacheRead, &u.CacheRead}, {&g.usage.CacheWrite, &u.CacheWrite},
	} {
		if *f.from != nil {
			*f.to = *f.from
		}
	}
	if u.Details != nil {
		g.usage.Details = u.Details
	}
}

// whole takes an answer that was not streamed.
func (g *gather) whole(body []byte) (model.Response, error) {
	var msg message
	if err := json.Unmarshal(body, &msg); err != nil {
		return model.Response{}, g.m.client.Errorf(model.Invalid, "the answer can't be read: %v", err)
	}
	if msg.Type != "message" {
		if r, ok := wire.ParseReported(body); ok {
			return model.Response{}, g.m.client.StreamError(r)
		}
		return model.Response{}, g.m.client.Errorf(model.Invalid, "the answer is no message of Anthropic's; is the base URL right?")
	}
	for i, raw := range msg.Content {
		var b block
		if i >= maxBlocks || json.Unmarshal(raw, &b) != nil {
			return model.Response{}, g.m.client.Errorf(model.Invalid, "content block %d can't be read", i)
		}
		g.begin(b, []byte(`{"content_block":`+string(raw)+`}`))
		if b.Type == "tool_use" {
			g.blocks[i].text.Write(b.Input)
		}
	}
	g.stop = msg.StopReason
	g.count(msg.Usage)
	return g.response()
}

func (g *gather) response() (model.Response, error) {
	r := model.Response{Model: g.m.info}
	var text, thoughts strings.Builder
	back := replay{Provider: "anthropic", Model: g.m.o.Model}
	thought := false
	for _, b := range g.blocks {
		s := b.text.String()
		switch b.Type {
		case "text":
			if text.Len() > 0 && s != "" {
				text.WriteString("\n\n")
			}
			text.WriteString(s)
			if !blank(s) {
				back.Content = append(back.Content, textBlock(s))
			}
		case "thinking":
			thought = true
			thoughts.WriteString(s)
			raw := append([]byte(nil), `{"type":"thinking","thinking":`...)
			raw = wire.AppendString(raw, s)
			raw = append(raw, `,"signature":`...)
			raw = wire.AppendString(raw, b.Signature)
			back.Content = append(back.Content, append(raw, '}'))
		case "redacted_thinking":
			thought = true
			raw := append([]byte(nil), `{"type":"redacted_thinking","data":`...)
			raw = wire.AppendString(raw, b.Data)
			back.Content = append(back.Content, append(raw, '}'))
		case "tool_use":
			if b.Name == "" {
				return model.Response{}, g.m.client.Errorf(model.Invalid, "a tool call has no name")
			}
			id := b.ID
			if id == "" {
				id = "toolu_" + rand.Text()
			}
			if blank(s) && len(b.Input) > 0 {
				s = string(b.Input)
			}
			if blank(s) {
				s = "{}"
			}
			r.ToolCalls = append(r.ToolCalls, model.ToolCall{ID: id, Name: b.Name, Arguments: s})
			back.Content = append(back.Content, callBlock(id, b.Name, input(s)))
		default:
			if b.raw != nil {
				back.Content = append(back.Content, b.raw)
			}
		}
	}
	r.Text, r.Reasoning = text.String(), thoughts.String()
	if thought {
		raw, err := json.Marshal(back)
		if err != nil {
			return model.Response{}, g.m.client.Errorf(model.Invalid, "the answer's thinking can't be kept: %v", err)
		}
		r.Replay = raw
	}
	switch g.stop {
	case "max_tokens", "model_context_window_exceeded":
		r.Finish = "length"
	case "refusal":
		r.Finish = "refusal"
	default:
		r.Finish = "stop"
		if len(r.ToolCalls) > 0 {
			r.Finish = "tool_calls"
		}
	}
	u := &g.usage
	r.Usage = model.Usage{Output: value(u.Output), CacheRead: value(u.CacheRead), CacheWrite: value(u.CacheWrite)}
	r.Usage.Input = value(u.Input) + r.Usage.CacheRead + r.Usage.CacheWrite
	if u.Details != nil {
		r.Usage.Reasoning = u.Details.Thinking
	}
	return r, nil
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
