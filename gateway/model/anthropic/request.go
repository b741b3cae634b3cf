package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"herald/gateway/model"
	"herald/gateway/model/internal/wire"
)

// replay keeps the content blocks of an answer that thought, as they came.
type replay struct {
	Provider string            `json:"provider"`
	Model    string            `json:"model"`
	Content  []json.RawMessage `json:"content"`
}

// body writes the request by hand: it is the hot path, and the order of its bytes is the prompt cache's key
// (tools, then system, then messages).
func (m *Model) body(req model.Request) []byte {
	turns := m.turns(req)
	limit := m.limit(req)
	think := m.thinking(req, limit)
	b := make([]byte, 0, m.estimate(req))
	b = append(b, `{"model":`...)
	b = wire.AppendString(b, m.o.Model)
	b = append(b, `,"max_tokens":`...)
	b = strconv.AppendInt(b, limit, 10)
	b = append(b, `,"stream":true`...)
	b = append(b, think...)
	if len(req.Tools) > 0 {
		b = append(b, `,"tools":[`...)
		for i, t := range req.Tools {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"name":`...)
			b = wire.AppendString(b, t.Name)
			b = append(b, `,"description":`...)
			b = wire.AppendString(b, t.Description)
			b = append(b, `,"input_schema":`...)
			b = append(b, m.schemas.Compact(t.Parameters)...)
			if i == len(req.Tools)-1 && blank(req.System) {
				b = m.mark(b)
			}
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	if !blank(req.System) || !blank(req.Ephemeral) {
		b = append(b, `,"system":[`...)
		if !blank(req.System) {
			b = append(b, `{"type":"text","text":`...)
			b = wire.AppendString(b, req.System)
			b = m.mark(b)
			b = append(b, '}')
		}
		if !blank(req.Ephemeral) {
			if !blank(req.System) {
				b = append(b, ',')
			}
			b = append(b, `{"type":"text","text":`...)
			b = wire.AppendString(b, req.Ephemeral)
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	b = append(b, `,"messages":[`...)
	for i, t := range turns {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"role":"`...)
		b = append(b, t.role...)
		b = append(b, `","content":[`...)
		for j, block := range t.blocks {
			if j > 0 {
				b = append(b, ',')
			}
			// The last user turn and the one before it: the next call finds what this one wrote.
			if j == len(t.blocks)-1 && t.role == "user" && i >= len(turns)-3 {
				b = append(b, block[:len(block)-1]...)
				b = m.mark(b)
				b = append(b, '}')
				continue
			}
			b = append(b, block...)
		}
		b = append(b, `]}`...)
	}
	return append(b, `]}`...)
}

// mark appends the sign up to which the prompt is to be cached.
func (m *Model) mark(b []byte) []byte {
	b = append(b, `,"cache_control":{"type":"ephemeral"`...)
	if m.o.CacheTTL == "1h" {
		b = append(b, `,"ttl":"1h"`...)
	}
	return append(b, '}')
}

func (m *Model) estimate(req model.Request) int {
	n := 1024 + len(req.System) + len(req.Ephemeral)
	for i := range req.Messages {
		msg := &req.Messages[i]
		n += len(msg.Text) + len(msg.Text)/16 + 128 + len(msg.Replay)
		for _, c := range msg.ToolCalls {
			n += len(c.Arguments) + 128
		}
		for _, img := range msg.Images {
			n += base64.StdEncoding.EncodedLen(len(img.Data)) + 96
		}
	}
	for _, t := range req.Tools {
		n += len(t.Parameters) + len(t.Description) + 96
	}
	return n
}

// thinking returns the members of the request that ask for thinking, empty for none.
func (m *Model) thinking(req model.Request, limit int64) string {
	if req.Reasoning == "" || m.noThinking.Load() {
		return ""
	}
	if req.Reasoning == "none" {
		if m.adaptive.Load() {
			return `,"thinking":{"type":"disabled"}`
		}
		return ""
	}
	if !m.resumable(req.Messages) {
		return ""
	}
	if m.adaptive.Load() {
		s := `,"thinking":{"type":"adaptive"}`
		if !m.noEffort.Load() {
			s += `,"output_config":{"effort":"` + req.Reasoning + `"}`
		}
		return s
	}
	budget := int64(4_096)
	switch req.Reasoning {
	case "low":
		budget = 1_024 // the API's least
	case "high":
		budget = 12_000
	}
	if budget = min(budget, limit-1_024); budget < 1_024 {
		return ""
	}
	return `,"thinking":{"type":"enabled","budget_tokens":` + strconv.FormatInt(budget, 10) + `}`
}

// resumable reports whether thinking may be on: in the middle of a tool loop the API wants the thinking that
// began it, which another model's answer does not have.
func (m *Model) resumable(messages []model.Message) bool {
	for i := len(messages) - 1; i >= 0; i-- {
		msg := &messages[i]
		switch msg.Role {
		case "tool":
			continue
		case "assistant":
			return len(msg.ToolCalls) == 0 || m.kept(msg) != nil
		}
		// A user message ends the loop, unless it was merged behind tool results.
		if i > 0 && messages[i-1].Role == "tool" {
			continue
		}
		return true
	}
	return true
}

// kept returns the blocks to send back verbatim, nil when there are none of this model.
func (m *Model) kept(msg *model.Message) []json.RawMessage {
	if len(msg.Replay) == 0 {
		return nil
	}
	var back replay
	if json.Unmarshal(msg.Replay, &back) != nil || back.Provider != "anthropic" || back.Model != m.o.Model {
		return nil
	}
	return back.Content
}

// turn is a message of the API: roles alternate strictly, and each has at least one block.
type turn struct {
	role   string
	blocks [][]byte
}

func (m *Model) turns(req model.Request) []turn {
	messages := model.Paired(req.Messages)
	turns := make([]turn, 0, len(messages)+1)
	add := func(role string, blocks ...[]byte) {
		if len(blocks) == 0 {
			return
		}
		if n := len(turns); n > 0 && turns[n-1].role == role {
			turns[n-1].blocks = append(turns[n-1].blocks, blocks...)
			return
		}
		if len(turns) == 0 && role == "assistant" {
			turns = append(turns, turn{role: "user", blocks: [][]byte{textBlock("(The conversation goes on.)")}})
		}
		turns = append(turns, turn{role: role, blocks: blocks})
	}
	for i := range messages {
		msg := &messages[i]
		switch msg.Role {
		case "assistant":
			add("assistant", m.assistant(msg)...)
		case "tool":
			add("user", result(msg))
		default:
			add("user", said(msg)...)
		}
	}
	if len(turns) == 0 || turns[len(turns)-1].role == "assistant" {
		add("user", textBlock("(Go on.)"))
	}
	return turns
}

func said(msg *model.Message) [][]byte {
	var blocks [][]byte
	for _, img := range msg.Images {
		blocks = append(blocks, imageBlock(nil, img))
	}
	if !blank(msg.Text) {
		blocks = append(blocks, textBlock(msg.Text))
	}
	if len(blocks) == 0 {
		blocks = append(blocks, textBlock("(An empty message.)"))
	}
	return blocks
}

func (m *Model) assistant(msg *model.Message) [][]byte {
	var blocks [][]byte
	if kept := m.kept(msg); kept != nil {
		for _, raw := range kept {
			blocks = append(blocks, raw)
		}
		return blocks
	}
	if !blank(msg.Text) {
		blocks = append(blocks, textBlock(strings.TrimRight(msg.Text, " \t\r\n")))
	}
	for _, c := range msg.ToolCalls {
		blocks = append(blocks, callBlock(c.ID, c.Name, input(c.Arguments)))
	}
	return blocks
}

func callBlock(id, name string, input []byte) []byte {
	b := append([]byte(nil), `{"type":"tool_use","id":`...)
	b = wire.AppendString(b, toolID(id))
	b = append(b, `,"name":`...)
	b = wire.AppendString(b, name)
	b = append(b, `,"input":`...)
	b = append(b, input...)
	return append(b, '}')
}

func result(msg *model.Message) []byte {
	b := append([]byte(nil), `{"type":"tool_result","tool_use_id":`...)
	b = wire.AppendString(b, toolID(msg.ToolCallID))
	if msg.IsError {
		b = append(b, `,"is_error":true`...)
	}
	text := msg.Text
	if blank(text) && len(msg.Images) == 0 {
		text = "(no output)"
	}
	b = append(b, `,"content":[`...)
	if !blank(text) {
		b = append(b, textBlock(text)...)
		if len(msg.Images) > 0 {
			b = append(b, ',')
		}
	}
	for i, img := range msg.Images {
		if i > 0 {
			b = append(b, ',')
		}
		b = imageBlock(b, img)
	}
	return append(b, `]}`...)
}

func textBlock(s string) []byte {
	b := make([]byte, 0, len(s)+len(s)/16+32)
	b = append(b, `{"type":"text","text":`...)
	b = wire.AppendString(b, s)
	return append(b, '}')
}

func imageBlock(b []byte, img model.Image) []byte {
	kind := img.MIME
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	case "image/jpg":
		kind = "image/jpeg"
	default:
		kind = "image/png"
	}
	b = append(b, `{"type":"image","source":{"type":"base64","media_type":"`...)
	b = append(b, kind...)
	b = append(b, `","data":"`...)
	b = base64.StdEncoding.AppendEncode(b, img.Data)
	return append(b, `"}}`...)
}

// toolID returns an id that the API takes: letters, digits, "_" and "-" only.
func toolID(id string) string {
	ok := id != "" && !strings.HasPrefix(id, "h_") // what is written below begins so
	for i := range len(id) {
		if !idByte(id[i]) {
			ok = false
		}
	}
	if ok {
		return id
	}
	b := []byte("h_")
	for i := range len(id) {
		if idByte(id[i]) && id[i] != '_' {
			b = append(b, id[i])
		} else {
			// Written as a number, so that two ids never become one.
			b = append(b, '_')
			b = strconv.AppendInt(b, int64(id[i]), 16)
			b = append(b, '_')
		}
	}
	return string(b)
}

func idByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// input returns arguments as the object that the API wants.
func input(arguments string) []byte {
	parsed, err := model.ParseArguments(arguments)
	if err != nil {
		return []byte("{}")
	}
	return parsed
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
