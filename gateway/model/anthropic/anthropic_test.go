package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"herald/gateway/model"
	"herald/gateway/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-ant-0123456789abcdef"

func open(t testing.TB, o Options, replies ...modeltest.Reply) (*Model, *modeltest.Server) {
	t.Helper()
	srv := modeltest.Serve(modeltest.NewScript(replies...))
	o.BaseURL, o.Key = srv.Anthropic(), testKey
	if o.Model == "" {
		o.Model = "claude-sonnet-4-5"
	}
	m, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		m.CloseIdleConnections()
		srv.Close()
	})
	return m, srv
}

func hello() model.Request {
	return model.Request{System: "Be brief.", Messages: []model.Message{{Role: "user", Text: "hi"}}}
}

func run(m *Model, req model.Request) (resp model.Response, text, reasoning string, tools []string, err error) {
	var said, thought strings.Builder
	resp, err = m.Stream(context.Background(), req, func(d model.Delta) {
		said.WriteString(d.Text)
		thought.WriteString(d.Reasoning)
		if d.Tool != "" {
			tools = append(tools, d.Tool)
		}
	})
	return resp, said.String(), thought.String(), tools, err
}

func TestModel_Stream(t *testing.T) {
	calls := []model.ToolCall{{ID: "toolu_1", Name: "read_file", Arguments: `{"path":"a"}`}, {ID: "toolu_2", Name: "ls", Arguments: `{}`}}
	for _, whole := range []bool{false, true} {
		t.Run(fmt.Sprintf("whole=%v", whole), func(t *testing.T) {
			m, srv := open(t, Options{}, modeltest.Reply{Text: "Let me look.", Reasoning: "A file.", Signature: "c2ln", ToolCalls: calls, NoStream: whole,
				Usage: &model.Usage{Input: 1000, Output: 30, CacheRead: 700, CacheWrite: 200}}, modeltest.Text("Done."))
			req := hello()
			req.Reasoning = "low"
			req.Tools = []model.ToolDef{{Name: "read_file", Description: "Reads.", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}, {Name: "ls"}}
			resp, text, reasoning, tools, err := run(m, req)
			require.NoError(t, err)
			require.Equal(t, "Let me look.", resp.Text)
			require.Equal(t, resp.Text, text)
			require.Equal(t, "A file.", resp.Reasoning)
			require.Equal(t, resp.Reasoning, reasoning)
			require.Equal(t, calls, resp.ToolCalls)
			require.Equal(t, []string{"read_file", "ls"}, tools)
			require.Equal(t, "tool_calls", resp.Finish)
			require.Equal(t, model.Usage{Input: 1000, Output: 30, CacheRead: 700, CacheWrite: 200}, resp.Usage)
			require.Equal(t, "anthropic/claude-sonnet-4-5", resp.Model.String())

			req.Messages = append(req.Messages,
				model.Message{Role: "assistant", Text: resp.Text, ToolCalls: resp.ToolCalls, Replay: resp.Replay},
				model.Message{Role: "tool", ToolCallID: "toolu_1", Text: "content"}, model.Message{Role: "tool", ToolCallID: "toolu_2", Text: "", IsError: true},
				model.Message{Role: "user", Text: "and now?"})
			_, _, _, _, err = run(m, req)
			require.NoError(t, err)
			asked := srv.Requests()
			require.Equal(t, testKey, asked[0].Key)
			body := string(asked[1].Body)
			// Thinking goes back as it came, signature included, and before the calls.
			require.Contains(t, body, `{"role":"assistant","content":[{"type":"thinking","thinking":"A file.","signature":"c2ln"},{"type":"text","text":"Let me look."},{"type":"tool_use","id":"toolu_1"`)
			require.Contains(t, body, `"thinking":{"type":"enabled","budget_tokens":1024}`)
			// Both results and the new message are one user turn, in order.
			require.Contains(t, body, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"content"}]},{"type":"tool_result","tool_use_id":"toolu_2","is_error":true,"content":[{"type":"text","text":"(no output)"}]},{"type":"text","text":"and now?","cache_control":{"type":"ephemeral"}}]}`)
		})
	}
}

// TestModel_Body_Cache: what the prompt cache goes by. The prefix of the next call is the same bytes, and
// at most four marks are set.
func TestModel_Body_Cache(t *testing.T) {
	m, err := New(Options{Key: testKey, Model: "claude-sonnet-4-5", CacheTTL: "1h"})
	require.NoError(t, err)
	req := hello()
	req.Ephemeral = "It is raining."
	req.Tools = []model.ToolDef{{Name: "a"}, {Name: "b"}}
	first := m.body(req)
	require.Contains(t, string(first), `"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"It is raining."}]`)
	prefix, _, _ := bytes.Cut(first, []byte(`"messages"`))
	for range 6 {
		req.Messages = append(req.Messages, model.Message{Role: "assistant", Text: "yes"}, model.Message{Role: "user", Text: "more"})
	}
	next := m.body(req)
	require.True(t, bytes.HasPrefix(next, prefix))
	require.True(t, json.Valid(next))
	require.Equal(t, 3, strings.Count(string(next), "cache_control"))
	req.System = ""
	require.Contains(t, string(m.body(req)), `{"name":"b","description":"","input_schema":{"type":"object","properties":{}},"cache_control":`)
}

// TestModel_Turns: any history becomes one that the API takes (modeltest checks it as the API does).
func TestModel_Turns(t *testing.T) {
	m, srv := open(t, Options{})
	srv.Config.Handler = modeltest.Answering(func(modeltest.Request) modeltest.Reply { return modeltest.Text("ok") })
	rapid.Check(t, func(rt *rapid.T) {
		ids := rapid.SampledFrom([]string{"a", "b", "call:1|x", "", "é"})
		texts := rapid.SampledFrom([]string{"", " ", "\n", "hello", "a\x00b\xff"})
		var messages []model.Message
		for range rapid.IntRange(0, 8).Draw(rt, "n") {
			msg := model.Message{Role: rapid.SampledFrom([]string{"user", "assistant", "tool"}).Draw(rt, "role"), Text: texts.Draw(rt, "text")}
			switch msg.Role {
			case "assistant":
				seen := map[string]bool{}
				for range rapid.IntRange(0, 2).Draw(rt, "calls") {
					if id := ids.Draw(rt, "id"); !seen[id] {
						seen[id] = true
						msg.ToolCalls = append(msg.ToolCalls, model.ToolCall{ID: id, Name: "f", Arguments: texts.Draw(rt, "args")})
					}
				}
			case "tool":
				msg.ToolCallID = ids.Draw(rt, "of")
			}
			messages = append(messages, msg)
		}
		_, err := m.Stream(t.Context(), model.Request{System: texts.Draw(rt, "system"), Messages: messages}, nil)
		require.NoError(rt, err)
	})
}

func TestToolID(t *testing.T) {
	require.Equal(t, "toolu_01-A", toolID("toolu_01-A"))
	seen := map[string]string{}
	for _, id := range []string{"a:b", "a_b", "a.b", "", "_", "é", "a b", "h_a_3a_b"} {
		got := toolID(id)
		require.Regexp(t, `^[a-zA-Z0-9_-]+$`, got)
		require.Empty(t, seen[got], "%q and %q", id, seen[got])
		seen[got] = id + "?"
	}
}

func TestModel_Stream_Errors(t *testing.T) {
	fail := modeltest.Failing
	sse := func(s string) modeltest.Reply { return modeltest.Garbage("text/event-stream", s) }
	for _, c := range []struct {
		name   string
		reply  modeltest.Reply
		kind   model.Kind
		status int
		text   string
	}{
		{"key", fail(401, "authentication_error", "invalid x-api-key "+testKey), model.Auth, 401, "[key]"},
		{"forbidden", fail(403, "permission_error", "no"), model.Auth, 403, ""},
		{"model", fail(404, "not_found_error", "model: claude-x"), model.NotFound, 404, ""},
		{"large", fail(413, "request_too_large", "Request exceeds the maximum size"), model.ContextLength, 413, ""},
		{"long", fail(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), model.ContextLength, 400, ""},
		{"long with output", fail(400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 16000 > 200000"), model.ContextLength, 400, ""},
		{"credit", fail(400, "invalid_request_error", "Your credit balance is too low"), model.BadRequest, 400, ""},
		{"bad", fail(400, "invalid_request_error", "messages: at least one message is required"), model.BadRequest, 400, ""},
		{"rate", modeltest.RateLimited("3"), model.RateLimit, 429, ""},
		{"overloaded", fail(529, "overloaded_error", "Overloaded"), model.Overloaded, 529, ""},
		{"broken", fail(500, "api_error", "Internal server error"), model.Down, 500, ""},
		{"overloaded in the stream", sse("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"), model.Overloaded, 0, ""},
		{"html", modeltest.Garbage("text/html", "<html>"), model.Invalid, 0, "base URL"},
		{"empty", sse(""), model.Invalid, 0, "empty"},
		{"half", sse("data: {\"type\":\"message_start\",\"mess"), model.Invalid, 0, ""},
		{"openai", sse("data: {\"choices\":[]}\n\n"), model.Invalid, 0, "base URL"},
		{"order", sse("data: {\"type\":\"content_block_delta\",\"index\":3,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n"), model.Invalid, 0, "no content block"},
		{"gap", sse("data: {\"type\":\"content_block_start\",\"index\":3,\"content_block\":{\"type\":\"text\"}}\n\n"), model.Invalid, 0, "out of order"},
		{"only stop", sse("data: {\"type\":\"message_stop\"}\n\n"), model.Invalid, 0, "no beginning"},
		{"whole garbage", modeltest.Garbage("application/json", `{"type":"message","content":[1]}`), model.Invalid, 0, "block 0"},
		{"cut", modeltest.Reply{Text: "one two three", Cut: true, CutAfter: 5}, model.Down, 0, "cut off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := open(t, Options{}, c.reply)
			_, _, _, _, err := run(m, hello())
			var e *model.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.kind, e.Kind, err)
			require.Equal(t, c.status, e.Status, err)
			require.Contains(t, err.Error(), c.text)
			require.NotContains(t, err.Error(), testKey)
			if c.name == "rate" {
				require.Equal(t, 3*time.Second, e.RetryAfter)
			}
		})
	}
}

func TestModel_Finish(t *testing.T) {
	for reason, want := range map[string]string{"end_turn": "stop", "stop_sequence": "stop", "pause_turn": "stop", "max_tokens": "length", "refusal": "refusal", "model_context_window_exceeded": "length"} {
		m, _ := open(t, Options{}, modeltest.Reply{Text: "x", Finish: reason})
		resp, _, _, _, err := run(m, hello())
		require.NoError(t, err)
		require.Equal(t, want, resp.Finish, reason)
	}
}

// TestModel_Replay_Unknown: blocks of a kind that is not known here go back unchanged; two texts are two
// paragraphs.
func TestModel_Replay_Unknown(t *testing.T) {
	event := func(s string) string { return "data: " + s + "\n\n" }
	m, srv := open(t, Options{}, modeltest.Garbage("text/event-stream",
		event(`{"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":1}}}`)+
			event(`{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"opaque"}}`)+
			event(`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`)+event(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"one"}}`)+
			event(`{"type":"content_block_start","index":2,"content_block":{"type":"server_thing","x":[1,2]}}`)+event(`{"type":"content_block_stop","index":2}`)+
			event(`{"type":"content_block_start","index":3,"content_block":{"type":"text","text":"two"}}`)+
			event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`)+event(`{"type":"message_stop"}`)), modeltest.Text("ok"))
	resp, text, _, _, err := run(m, hello())
	require.NoError(t, err)
	require.Equal(t, "one\n\ntwo", resp.Text)
	require.Equal(t, resp.Text, text)
	require.Equal(t, model.Usage{Input: 5, Output: 9}, resp.Usage)
	req := hello()
	req.Messages = append(req.Messages, model.Message{Role: "assistant", Text: resp.Text, Replay: resp.Replay}, model.Message{Role: "user", Text: "go"})
	_, _, _, _, err = run(m, req)
	require.NoError(t, err)
	require.Contains(t, string(srv.Requests()[1].Body), `[{"type":"redacted_thinking","data":"opaque"},{"type":"text","text":"one"},{"type":"server_thing","x":[1,2]},{"type":"text","text":"two"}]`)
	// Another model gets the text.
	other, err := New(Options{Key: testKey, Model: "claude-opus-4-5"})
	require.NoError(t, err)
	require.NotContains(t, string(other.body(req)), "opaque")
}

// TestModel_Learn: how to ask for thinking, and how much output there may be, is learned from a refusal.
func TestModel_Learn(t *testing.T) {
	m, srv := open(t, Options{Model: "claude-new-6"},
		modeltest.Failing(400, "invalid_request_error", "max_tokens: 16000 > 8192, which is the maximum allowed number of output tokens for claude-new-6"),
		modeltest.Failing(400, "invalid_request_error", "output_config.effort: not supported"),
		modeltest.Failing(400, "invalid_request_error", "thinking.type: adaptive thinking is not supported on this model"),
		modeltest.Text("fine"), modeltest.Text("again"))
	req := hello()
	req.Reasoning = "medium"
	_, _, _, _, err := run(m, req)
	require.NoError(t, err)
	_, _, _, _, err = run(m, req)
	require.NoError(t, err)
	bodies := srv.Requests()
	require.Contains(t, string(bodies[0].Body), `"thinking":{"type":"adaptive"},"output_config":{"effort":"medium"}`)
	require.Contains(t, string(bodies[4].Body), `"max_tokens":8192`)
	require.Contains(t, string(bodies[4].Body), `"thinking":{"type":"enabled","budget_tokens":4096}`)
}

// TestModel_Thinking_ForeignLoop: in the middle of a tool loop that another model began, thinking stays off.
func TestModel_Thinking_ForeignLoop(t *testing.T) {
	m, err := New(Options{Key: testKey, Model: "claude-sonnet-4-5"})
	require.NoError(t, err)
	req := hello()
	req.Reasoning = "high"
	require.Contains(t, string(m.body(req)), `"thinking"`)
	req.Messages = append(req.Messages, model.Message{Role: "assistant", ToolCalls: []model.ToolCall{{ID: "a", Name: "f"}}},
		model.Message{Role: "tool", ToolCallID: "a", Text: "x"})
	require.NotContains(t, string(m.body(req)), `"thinking"`)
}

func TestModel_Interrupt(t *testing.T) {
	stop := errors.New("stopped by the user")
	for name, reply := range map[string]modeltest.Reply{"header": {HangHeader: true}, "body": {HangBody: true},
		"middle": {Text: "one two three", HangBody: true, CutAfter: 4}} {
		t.Run(name, func(t *testing.T) {
			m, srv := open(t, Options{}, reply)
			ctx, cancel := context.WithCancelCause(t.Context())
			out := make(chan error, 1)
			go func() {
				_, err := m.Stream(ctx, hello(), nil)
				out <- err
			}()
			require.True(t, srv.Wait(1, 5*time.Second))
			start := time.Now()
			cancel(stop)
			require.ErrorIs(t, <-out, stop)
			require.Less(t, time.Since(start), 500*time.Millisecond)
		})
	}
}

func TestNew_Errors(t *testing.T) {
	for _, o := range []Options{{}, {Model: "x"}, {Model: "x", Key: "k", BaseURL: "nope"}, {Model: "x", Key: "k", CacheTTL: "2h"}} {
		_, err := New(o)
		require.Error(t, err)
	}
	for in, want := range map[string]string{"": "https://api.anthropic.com/v1/messages", "http://x/": "http://x/v1/messages", "http://x/v1": "http://x/v1/messages", "http://x/v1/messages": "http://x/v1/messages", "http://x/proxy": "http://x/proxy/v1/messages"} {
		m, err := New(Options{Model: "x", Key: "k", BaseURL: in})
		require.NoError(t, err)
		require.Equal(t, want, m.url)
	}
}

type body struct{ data []byte }

func (b body) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(b.data))}, nil
}

// FuzzStream feeds bytes as the body of an answer: a response or a *model.Error comes out, never a panic.
func FuzzStream(f *testing.F) {
	f.Add([]byte("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"a\"}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n"))
	f.Add([]byte(`{"type":"message","content":[{"type":"thinking","thinking":"x","signature":"y"},{"type":"tool_use","name":"f","input":{}}],"stop_reason":"tool_use"}`))
	f.Add([]byte(`data: {"type":"error","error":{"type":"overloaded_error"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := New(Options{Model: "x", Key: "k", Transport: body{data}})
		require.NoError(t, err)
		resp, text, _, _, err := run(m, hello())
		if err != nil {
			var e *model.Error
			require.ErrorAs(t, err, &e)
			return
		}
		require.Equal(t, resp.Text, text)
		require.True(t, resp.Replay == nil || json.Valid(resp.Replay))
		req := hello()
		req.Messages = append(req.Messages, model.Message{Role: "assistant", Text: resp.Text, ToolCalls: resp.ToolCalls, Replay: resp.Replay})
		require.True(t, json.Valid(m.body(req)))
	})
}
