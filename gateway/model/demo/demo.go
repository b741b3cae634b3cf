// Package demo is the model inside Herald: no network, no key, no intelligence, and the same answer to the
// same conversation every time. It drives the tools it is offered from plain requests, so that a newcomer
// can try all of Herald before a real model is plugged in, and so that tests can run whole conversations.
//
// It promises to say what it is in the first line of its first answer, to call only tools that are offered,
// to claim nothing that no tool result shows, and to stop at once when its context ends. It must not know
// how tools work: like any model it sees names, schemas and results.
package demo

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode"

	"herald/gateway/model"
)

const (
	// Name is the model's name.
	Name = "herald-demo"
	// Window is the context window that it claims, in tokens.
	Window = 32_000
	// DefaultPace is the time between two words of an answer that was asked for slowly.
	DefaultPace = 60 * time.Millisecond
)

// Intro is the first line of the first answer of a conversation.
const Intro = "I'm Herald's built-in demo model: no network, no real intelligence, only fixed phrases that drive the tools. " +
	"For a real model set `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` or `OPENROUTER_API_KEY`, or start Ollama, and restart Herald."

// Options configure the model. The zero value is fine.
type Options struct {
	// Clock tells the time; nil takes time.Now.
	Clock func() time.Time
	// Pace is the time between two words of a slow answer; 0 takes DefaultPace.
	Pace time.Duration
}

// Model is the demo. Safe for concurrent use; it keeps nothing between calls.
type Model struct {
	clock func() time.Time
	pace  time.Duration
	rules func() []rule // compiled when the demo is first used
}

// New returns the demo model.
func New(o Options) *Model {
	m := &Model{clock: o.Clock, pace: o.Pace, rules: sync.OnceValue(compile)}
	if m.clock == nil {
		m.clock = time.Now
	}
	if m.pace <= 0 {
		m.pace = DefaultPace
	}
	return m
}

// Info says that it is the demo.
func (m *Model) Info() model.Info {
	return model.Info{Provider: "demo", Name: Name, Context: Window}
}

// Stream answers. It makes no I/O and returns only the context's cause as an error.
func (m *Model) Stream(ctx context.Context, req model.Request, on func(model.Delta)) (model.Response, error) {
	if ctx.Err() != nil {
		return model.Response{}, context.Cause(ctx)
	}
	if on == nil {
		on = func(model.Delta) {}
	}
	e := newEnv(m.clock(), req)
	e.rules = m.rules
	calls, text, slow := e.answer()
	resp := model.Response{Finish: "stop", Model: m.Info()}
	if len(calls) > 0 {
		resp.Finish, resp.ToolCalls = "tool_calls", calls
		for _, c := range calls {
			on(model.Delta{Tool: c.Name})
		}
	} else {
		pace := time.Duration(0)
		if slow {
			pace = m.pace
		}
		if err := speak(ctx, text, pace, on); err != nil {
			return model.Response{}, err
		}
		resp.Text = text
	}
	resp.Usage = usage(req, resp)
	return resp, nil
}

// speak streams text word by word, with white space behind each word. pace 0 does not wait.
func speak(ctx context.Context, text string, pace time.Duration, on func(model.Delta)) error {
	var timer *time.Timer
	for len(text) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := word(text)
		on(model.Delta{Text: text[:n]})
		text = text[n:]
		if pace == 0 || text == "" {
			continue
		}
		if timer == nil {
			timer = time.NewTimer(pace)
			defer timer.Stop()
		} else {
			timer.Reset(pace)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
	return nil
}

// word returns the length of the first word and the white space behind it.
func word(s string) int {
	space := false
	for i, r := range s {
		if unicode.IsSpace(r) {
			space = true
		} else if space {
			return i
		}
	}
	return len(s)
}

// usage estimates tokens at four bytes each.
func usage(req model.Request, resp model.Response) model.Usage {
	in := len(req.System) + len(req.Ephemeral)
	for _, m := range req.Messages {
		in += len(m.Text)
		for _, c := range m.ToolCalls {
			in += len(c.Name) + len(c.Arguments)
		}
	}
	for _, t := range req.Tools {
		in += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	out := len(resp.Text)
	for _, c := range resp.ToolCalls {
		out += len(c.Name) + len(c.Arguments)
	}
	return model.Usage{Input: int64(in/4 + 1), Output: int64(out/4 + 1)}
}

// lastTurnNote is how the loop asks for a closing word when the steps are used up.
const lastTurnNote = "call no tool"

func forbidsTools(req model.Request) bool {
	return strings.Contains(strings.ToLower(req.Ephemeral), lastTurnNote)
}
