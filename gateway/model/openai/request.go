package openai

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"herald/gateway/model"
	"herald/gateway/model/internal/wire"
)

// replay is what an answer needs to be sent back with, beyond text and calls. Providers that sign their
// reasoning refuse a tool loop without it.
type replay struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	// ReasoningContent is wanted back by DeepSeek and Moonshot within a tool loop.
	ReasoningContent string `json:"reasoning_content,omitempty"`
	// ReasoningDetails is OpenRouter's, in its order.
	ReasoningDetails []json.RawMessage `json:"reasoning_details,omitempty"`
	// Extra is "extra_content" by call id: Google's thought signatures.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
}

func (r replay) empty() bool {
	return r.ReasoningContent == "" && len(r.ReasoningDetails) == 0 && len(r.Extra) == 0
}

// body writes the request. It is written by hand because this is the hot path: histories and schemas are
// copied once, and nothing is parsed again that was found sound before.
func (m *Model) body(req model.Request) []byte {
	messages := model.Paired(req.Messages)
	b := make([]byte, 0, m.estimate(req, messages))
	b = append(b, `{"model":`...)
	b = wire.AppendString(b, m.o.Model)
	b = append(b, `,"stream":true`...)
	if !m.noUsage.Load() {
		b = append(b, `,"stream_options":{"include_usage":true}`...)
	}
	if n := m.limit(req); n > 0 {
		name := "max_tokens"
		if m.official != m.otherMax.Load() {
			name = "max_completion_tokens"
		}
		b = append(b, `,"`+name+`":`...)
		b = strconv.AppendInt(b, int64(n), 10)
	}
	if req.Reasoning != "" && !m.noEffort.Load() {
		b = m.effort(b, req.Reasoning)
	}
	if req.CacheKey != "" && m.official && !m.noCacheKey.Load() {
		b = append(b, `,"prompt_cache_key":`...)
		b = wire.AppendString(b, req.CacheKey)
	}
	b = append(b, `,"messages":[`...)
	b = m.messages(b, req, messages)
	b = append(b, ']')
	if len(req.Tools) > 0 && !m.noTools.Load() {
		b = append(b, `,"tools":[`...)
		for i, t := range req.Tools {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"type":"function","function":{"name":`...)
			b = wire.AppendString(b, t.Name)
			b = append(b, `,"description":`...)
			b = wire.AppendString(b, t.Description)
			b = append(b, `,"parameters":`...)
			b = append(b, m.schemas.Compact(t.Parameters)...)
			b = append(b, `}}`...)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

func (m *Model) estimate(req model.Request, messages []model.Message) int {
	n := 1024 + len(req.System) + len(req.Ephemeral)
	for i := range messages {
		msg := &messages[i]
		n += len(msg.Text) + len(msg.Text)/16 + 96
		for _, c := range msg.ToolCalls {
			n += len(c.Arguments) + len(c.Arguments)/8 + 128
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

func (m *Model) effort(b []byte, effort string) []byte {
	if m.router {
		if effort == "none" {
			return append(b, `,"reasoning":{"enabled":false}`...)
		}
		return append(b, `,"reasoning":{"effort":"`+effort+`"}`...)
	}
	return append(b, `,"reasoning_effort":"`+effort+`"`...)
}

func (m *Model) messages(b []byte, req model.Request, messages []model.Message) []byte {
	n := len(b)
	sep := func() {
		if len(b) > n {
			b = append(b, ',')
		}
	}
	system := req.System
	if req.Ephemeral != "" {
		system = strings.TrimSpace(system + "\n\n" + req.Ephemeral)
	}
	if system != "" {
		b = append(b, `{"role":"system","content":`...)
		b = wire.AppendString(b, system)
		b = append(b, '}')
	}
	for i := 0; i < len(messages); i++ {
		msg := &messages[i]
		switch msg.Role {
		case "assistant":
			if msg.Text == "" && len(msg.ToolCalls) == 0 {
				continue // nothing was said; servers refuse it
			}
			sep()
			b = m.assistant(b, msg)
		case "tool":
			sep()
			b = append(b, `{"role":"tool","tool_call_id":`...)
			b = wire.AppendString(b, msg.ToolCallID)
			b = append(b, `,"content":`...)
			b = wire.AppendString(b, msg.Text)
			b = append(b, '}')
			// A tool message takes no images: those of a group follow it as a user message.
			if i+1 == len(messages) || messages[i+1].Role != "tool" {
				first := i
				for first > 0 && messages[first-1].Role == "tool" {
					first--
				}
				var images []model.Image
				for _, t := range messages[first : i+1] {
					images = append(images, t.Images...)
				}
				if len(images) > 0 && m.info.Vision {
					sep()
					b = user(b, "[Images from the tool results above]", images)
				}
			}
		default:
			sep()
			images := msg.Images
			text := msg.Text
			if len(images) > 0 && !m.info.Vision {
				text = strings.TrimSpace(text + "\n[" + strconv.Itoa(len(images)) + " image(s) left out: this model can't see]")
				images = nil
			}
			b = user(b, text, images)
		}
	}
	return b
}

func user(b []byte, text string, images []model.Image) []byte {
	b = append(b, `{"role":"user","content":`...)
	if len(images) == 0 {
		b = wire.AppendString(b, text)
		return append(b, '}')
	}
	b = append(b, '[')
	if text != "" {
		b = append(b, `{"type":"text","text":`...)
		b = wire.AppendString(b, text)
		b = append(b, `},`...)
	}
	for i, img := range images {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"image_url","image_url":{"url":"data:`...)
		b = append(b, mime(img.MIME)...)
		b = append(b, `;base64,`...)
		b = base64.StdEncoding.AppendEncode(b, img.Data)
		b = append(b, `"}}`...)
	}
	return append(b, `]}`...)
}

// mime keeps a media type that is safe inside JSON and a URL.
func mime(s string) string {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '/' || c == '+' || c == '-' || c == '.') {
			return "image/png"
		}
	}
	if s == "" {
		return "image/png"
	}
	return s
}

func (m *Model) assistant(b []byte, msg *model.Message) []byte {
	b = append(b, `{"role":"assistant","content":`...)
	b = wire.AppendString(b, msg.Text)
	var back replay
	if len(msg.Replay) > 0 {
		back = m.replayed(msg.Replay)
	}
	if back.ReasoningContent != "" {
		b = append(b, `,"reasoning_content":`...)
		b = wire.AppendString(b, back.ReasoningContent)
	}
	if len(back.ReasoningDetails) > 0 {
		if details, err := json.Marshal(back.ReasoningDetails); err == nil {
			b = append(b, `,"reasoning_details":`...)
			b = append(b, details...)
		}
	}
	if len(msg.ToolCalls) > 0 {
		b = append(b, `,"tool_calls":[`...)
		for i, c := range msg.ToolCalls {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"id":`...)
			b = wire.AppendString(b, c.ID)
			b = append(b, `,"type":"function","function":{"name":`...)
			b = wire.AppendString(b, c.Name)
			b = append(b, `,"arguments":`...)
			b = wire.AppendString(b, sound(c.Arguments))
			b = append(b, '}')
			if extra := back.Extra[c.ID]; len(extra) > 0 {
				b = append(b, `,"extra_content":`...)
				b = append(b, extra...)
			}
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// replayed reads what an earlier answer left to send back. Another provider's or model's is not ours to send.
func (m *Model) replayed(raw json.RawMessage) replay {
	var back replay
	if json.Unmarshal(raw, &back) == nil && (back.Provider != m.o.Provider || back.Model != m.o.Model) {
		return replay{}
	}
	return back
}

// sound returns arguments that parse: several servers decode the history's and fail on what they once
// produced themselves.
func sound(arguments string) string {
	if json.Valid([]byte(arguments)) && strings.HasPrefix(arguments, "{") {
		return arguments
	}
	repaired, err := model.ParseArguments(arguments)
	if err != nil {
		return "{}"
	}
	return string(repaired)
}
