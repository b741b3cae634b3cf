package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"herald/gateway/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake answers from a list: an error, or a text streamed in one piece.
type fake struct {
	name    string
	replies []any // error, or a Response
	calls   int
}

func (f *fake) Info() model.Info {
	return model.Info{Provider: f.name, Name: f.name, Context: 1000 * len(f.name)}
}

func (f *fake) Stream(ctx context.Context, _ model.Request, on func(model.Delta)) (model.Response, error) {
	if ctx.Err() != nil {
		return model.Response{}, context.Cause(ctx)
	}
	f.calls++
	if len(f.replies) == 0 {
		return model.Response{}, &model.Error{Kind: model.Down, Provider: f.name, Err: errors.New("no more")}
	}
	r := f.replies[0]
	f.replies = f.replies[1:]
	switch r := r.(type) {
	case partial:
		on(model.Delta{Text: r.text})
		return model.Response{}, r.err
	case error:
		return model.Response{}, r
	case model.Response:
		on(model.Delta{Text: r.Text})
		r.Model = f.Info()
		return r, nil
	}
	panic("no such reply")
}

// partial streams some text and then fails.
type partial struct {
	text string
	err  error
}

func fails(kind model.Kind, after ...time.Duration) *model.Error {
	e := &model.Error{Kind: kind, Provider: "fake", Err: errors.New(string(kind))}
	if len(after) > 0 {
		e.RetryAfter = after[0]
	}
	return e
}

func says(text string) model.Response { return model.Response{Text: text, Finish: "stop"} }

// stream collects deltas as a preview would show them.
func stream(ctx context.Context, m model.Model) (resp model.Response, shown string, restarts int, err error) {
	resp, err = m.Stream(ctx, model.Request{}, func(d model.Delta) {
		if d.Restart {
			shown = ""
			restarts++
		}
		shown += d.Text
	})
	return resp, shown, restarts, err
}

func TestRetry(t *testing.T) {
	for name, c := range map[string]struct {
		replies []any
		text    string
		kind    model.Kind
		calls   int
		took    time.Duration
		restart int
	}{
		"at once":           {[]any{says("a")}, "a", "", 1, 0, 0},
		"third time":        {[]any{fails(model.Down), fails(model.Overloaded), says("a")}, "a", "", 3, 3 * time.Second, 0},
		"three times":       {[]any{fails(model.Down), fails(model.Down), fails(model.RateLimit), says("a")}, "", model.RateLimit, 3, 3 * time.Second, 0},
		"never":             {[]any{fails(model.Auth), says("a")}, "", model.Auth, 1, 0, 0},
		"too long":          {[]any{fails(model.ContextLength), says("a")}, "", model.ContextLength, 1, 0, 0},
		"other error":       {[]any{errors.New("odd"), says("a")}, "", "", 1, 0, 0},
		"retry after":       {[]any{fails(model.RateLimit, 20*time.Second), says("a")}, "a", "", 2, 20 * time.Second, 0},
		"retry after: long": {[]any{fails(model.RateLimit, time.Hour), says("a")}, "", model.RateLimit, 1, 0, 0},
		"after some text":   {[]any{partial{"half", fails(model.Down)}, says("whole")}, "whole", "", 2, time.Second, 1},
		"empty once":        {[]any{says(" \n"), says("a")}, "a", "", 2, time.Second, 1},
		"empty":             {[]any{says(""), says(""), says(""), says("a")}, "", model.Invalid, 3, 3 * time.Second, 2},
		"cut is not empty":  {[]any{model.Response{Finish: "length"}}, "", "", 1, 0, 0},
		"call is not empty": {[]any{model.Response{ToolCalls: []model.ToolCall{{ID: "a"}}}}, "", "", 1, 0, 0},
		"empty then failed": {[]any{says(""), fails(model.Down), fails(model.Down), says("a")}, "a", "", 4, 7 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{name: "fake", replies: c.replies}
				m := model.Retry(f, model.RetryPolicy{Rand: func() float64 { return 0 }})
				start := time.Now()
				resp, shown, restarts, err := stream(t.Context(), m)
				require.Equal(t, c.calls, f.calls)
				require.Equal(t, c.took, time.Since(start))
				require.Equal(t, c.restart, restarts)
				if c.kind != "" {
					var e *model.Error
					require.ErrorAs(t, err, &e)
					require.Equal(t, c.kind, e.Kind)
					return
				}
				if name == "other error" {
					require.Error(t, err)
					return
				}
				require.NoError(t, err)
				require.Equal(t, c.text, resp.Text)
				require.Equal(t, c.text, shown, "the preview shows what was answered")
			})
		})
	}
}

// TestRetry_Interrupt: the wait between attempts ends with the context, with its cause.
func TestRetry_Interrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(300*time.Millisecond, func() { cancel(stop) })
		start := time.Now()
		_, _, _, err := stream(ctx, model.Retry(&fake{replies: []any{fails(model.Down)}},
			model.RetryPolicy{Backoff: time.Minute, MaxBackoff: time.Hour}))
		require.ErrorIs(t, err, stop)
		require.Equal(t, 300*time.Millisecond, time.Since(start))
	})
}

// TestRetry_Waits: each wait is within the bounds of the policy, and never shorter than what was asked for.
func TestRetry_Waits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ask := time.Duration(rapid.IntRange(0, 5000).Draw(rt, "ask")) * time.Microsecond
		p := model.RetryPolicy{Attempts: rapid.IntRange(1, 6).Draw(rt, "attempts"), Backoff: time.Microsecond, MaxBackoff: 8 * time.Microsecond}
		var waits []time.Duration
		p.OnRetry = func(_ int, wait time.Duration, _ error) { waits = append(waits, wait) }
		f := &fake{}
		for range 10 {
			f.replies = append(f.replies, fails(model.RateLimit, ask))
		}
		_, _, _, err := stream(t.Context(), model.Retry(f, p))
		require.Error(rt, err)
		require.Equal(rt, p.Attempts, f.calls)
		require.Len(rt, waits, p.Attempts-1)
		for _, w := range waits {
			require.GreaterOrEqual(rt, w, ask)
			require.LessOrEqual(rt, w, max(ask, p.MaxBackoff))
		}
	})
}

func TestFallback(t *testing.T) {
	for _, kind := range []model.Kind{model.Auth, model.NotFound, model.RateLimit, model.Overloaded, model.Down, model.Invalid} {
		a, b, c := &fake{name: "first", replies: []any{partial{"wrong", fails(kind)}}}, &fake{name: "second", replies: []any{fails(kind)}},
			&fake{name: "third", replies: []any{says("right")}}
		m := model.Fallback(a, b, c)
		resp, shown, restarts, err := stream(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, "right", shown)
		require.Equal(t, 1, restarts)
		require.Equal(t, "third", resp.Model.Name, "the answer says who gave it")
		require.Equal(t, "first", m.Info().Name)
		require.Equal(t, 5000, m.Info().Context)
	}
	for _, kind := range []model.Kind{model.ContextLength, model.BadRequest, model.Policy} {
		b := &fake{name: "b", replies: []any{says("x")}}
		_, _, _, err := stream(t.Context(), model.Fallback(&fake{name: "a", replies: []any{fails(kind)}}, b))
		var e *model.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, kind, e.Kind)
		require.Zero(t, b.calls)
	}
	_, _, _, err := stream(t.Context(), model.Fallback(&fake{name: "a", replies: []any{fails(model.Auth)}}, &fake{name: "b"}))
	var e *model.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, model.Auth, e.Kind, "the first model's error counts")
	require.Contains(t, err.Error(), "no more")

	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	b := &fake{name: "b", replies: []any{says("x")}}
	_, err = model.Fallback(cancelling{cancel, stop}, b).Stream(ctx, model.Request{}, nil)
	require.ErrorIs(t, err, stop)
	require.Zero(t, b.calls)
}

// cancelling ends the context in the middle of its call.
type cancelling struct {
	cancel context.CancelCauseFunc
	cause  error
}

func (cancelling) Info() model.Info { return model.Info{Name: "c"} }

func (c cancelling) Stream(context.Context, model.Request, func(model.Delta)) (model.Response, error) {
	c.cancel(c.cause)
	return model.Response{}, fails(model.Down)
}

func TestParseArguments(t *testing.T) {
	for in, want := range map[string]string{
		"":                                       `{}`,
		"  null ":                                `{}`,
		`{"a":1}`:                                `{"a":1}`,
		" {\"a\": [1, 2]}\n":                     `{"a":[1,2]}`,
		"```json\n{\"a\":1}\n```":                `{"a":1}`,
		"```{\"a\":1}```":                        `{"a":1}`,
		"Here you go: {\"a\":1} ok?":             `{"a":1}`,
		`"{\"a\":1}"`:                            `{"a":1}`,
		`""`:                                     `{}`,
		`{'a': 'it's', "b": "say 'x'"}`:          `{"a":"it's","b":"say 'x'"}`,
		`{a: 1, b-c: "x", "d" = 2,}`:             `{"a":1,"b-c":"x","d":2}`,
		`{"a":1,,"b":[1,2,],}`:                   `{"a":1,"b":[1,2]}`,
		`{"a":1 "b":2}`:                          `{"a":1,"b":2}`,
		`{"a": True, "b": None, "c": False}`:     `{"a":true,"b":null,"c":false}`,
		"{\"a\": \"line\nline\ttab\"}":           `{"a":"line\nline\ttab"}`,
		`{"a": "C:\dir \d+ \x"}`:                 `{"a":"C:\\dir \\d+ \\x"}`,
		`{"a": "\u00e9 \uZZ"}`:                   `{"a":"é \\uZZ"}`,
		`{“a”: “b”}`:                             `{"a":"b"}`,
		"{\"a\": 1 /* one */, // two\n \"b\":2}": `{"a":1,"b":2}`,
		`{"a":1}{"a":1}`:                         `{"a":1}`,
		`{"a":1} {"a": 1.0}`:                     `{"a":1}`,
		`{"a":"` + "`x`" + `"}`:                  `{"a":"` + "`x`" + `"}`,
		"{\"a\": `b`}":                           `{"a":"b"}`,
		"\ufeff{\"a\":1}":                        `{"a":1}`,
	} {
		got, err := model.ParseArguments(in)
		require.NoError(t, err, in)
		require.JSONEq(t, want, string(got), in)
	}
	for in, want := range map[string]string{
		`{"a":"rm -rf /tm`: "cut off", `{"a":`: "cut off", `{"a"`: "cut off", `{`: "cut off", `{"a":[1,2`: "cut off", `{"a":1`: "cut off",
		`{"a":1}{"a":2}`: "two different", `[1]`: "an array", `5`: "a number", `"text"`: "a string", `true`: "a boolean",
		`hello`: "not a JSON object", `{"a": rm -rf}`: "without quotes", `{"a":1]`: "closes", "{:}": "does not belong",
		strings.Repeat(`{"a":`, 5000): "too deep", `{"a" 1}`: "instead of a colon",
	} {
		_, err := model.ParseArguments(in)
		require.ErrorContains(t, err, want, in)
	}
}

func FuzzParseArguments(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{'a': 'it's',}`, "```json\n{a:1}\n```", `"{\"a\":1}"`, `{"a":"\u12`, `{"a":1}{"a":1}`, `{“a”: //`, "{`a`=>1}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := model.ParseArguments(s)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		var object map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(got, &object), "%q became %q", s, got)
		// What is sound stays as it is.
		if json.Valid([]byte(s)) && strings.HasPrefix(s, "{") {
			require.Equal(t, strings.TrimSpace(s), string(got))
		}
		again, err := model.ParseArguments(string(got))
		require.NoError(t, err)
		require.Equal(t, string(got), string(again))
	})
}

func TestPaired(t *testing.T) {
	sound := []model.Message{{Role: "user", Text: "a"}, {Role: "assistant", ToolCalls: []model.ToolCall{{ID: "1"}, {ID: "2"}}},
		{Role: "tool", ToolCallID: "1"}, {Role: "tool", ToolCallID: "2"}, {Role: "assistant", Text: "b"}}
	require.Same(t, &sound[0], &model.Paired(sound)[0], "a sound conversation is not copied")

	got := model.Paired([]model.Message{
		{Role: "tool", ToolCallID: "0", ToolName: "lost", Text: "x"},
		{Role: "assistant", ToolCalls: []model.ToolCall{{ID: "1", Name: "f"}, {ID: "2"}, {ID: "3"}}},
		{Role: "tool", ToolCallID: "3", Text: "three"}, {Role: "tool", ToolCallID: "9", ToolName: "g", Text: "nine"},
		{Role: "tool", ToolCallID: "2", Text: "two"}, {Role: "tool", ToolCallID: "2", Text: "twice"},
		{Role: "user", Text: "end"},
	})
	var short []string
	for _, m := range got {
		short = append(short, m.Role+" "+m.ToolCallID+" "+m.Text)
	}
	require.Equal(t, []string{"user  [Result of an earlier call of lost]\nx", "assistant  ", "tool 1 " + model.NoResult, "tool 2 two", "tool 3 three",
		"user  [Result of an earlier call of g]\nnine", "user  end"}, short)
	require.True(t, got[2].IsError)
	require.Equal(t, got, model.Paired(got))
}

func TestWindowOf(t *testing.T) {
	for name, want := range map[string]int{
		"claude-sonnet-5-5": 200_000, "anthropic/claude-3-haiku": 200_000, "gpt-4o-mini": 128_000, "gpt-4": 8_192, "openai/gpt-5.5": 272_000, "o3": 200_000, "openai/o4-mini": 200_000,
		"gemini-2.5-pro": 1_000_000, "llama3.2:3b": 128_000, "llama3:8b": 8_192, "Qwen3-Coder": 256_000, "who-knows": model.DefaultContext, "": model.DefaultContext, "olmo": model.DefaultContext,
	} {
		got, _ := model.WindowOf(name)
		require.Equal(t, want, got, name)
	}
	_, vision := model.WindowOf("gpt-4o")
	require.True(t, vision)
}
