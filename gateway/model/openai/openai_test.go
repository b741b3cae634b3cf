package openai

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

	"github.com/google/go-cmp/cmp"
	goopenai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"herald/gateway/model"
	"herald/gateway/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-test-0123456789abcdef"

// open returns a model at a scripted server.
func open(t testing.TB, o Options, replies ...modeltest.Reply) (*Model, *modeltest.Server) {
	t.Helper()
	srv := modeltest.Serve(modeltest.NewScript(replies...))
	if o.BaseURL == "" {
		o.BaseURL = srv.OpenAI()
	}
	if o.Model == "" {
		o.Model = "gpt-4o"
	}
	o.Key = testKey
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

// run makes a call and returns what was streamed, too.
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

func TestModel_Stream_Text(t *testing.T) {
	for _, whole := range []bool{false, true} {
		t.Run(fmt.Sprintf("whole=%v", whole), func(t *testing.T) {
			m, srv := open(t, Options{}, modeltest.Reply{Text: "Hello there, you.", Reasoning: "They greet me.", NoStream: whole,
				Usage: &model.Usage{Input: 100, Output: 20, CacheRead: 64, Reasoning: 7}})
			resp, text, reasoning, _, err := run(m, hello())
			require.NoError(t, err)
			require.Equal(t, "Hello there, you.", resp.Text)
			require.Equal(t, resp.Text, text)
			require.Equal(t, "They greet me.", resp.Reasoning)
			require.Equal(t, resp.Reasoning, reasoning)
			require.Equal(t, "stop", resp.Finish)
			require.Equal(t, model.Usage{Input: 100, Output: 20, CacheRead: 64, Reasoning: 7}, resp.Usage)
			require.Equal(t, "openai/gpt-4o", resp.Model.String())
			require.Nil(t, resp.Replay, "nothing to give back without tool calls")
			asked := srv.Requests()[0]
			require.Equal(t, testKey, asked.Key)
			require.Equal(t, "/v1/chat/completions", asked.Path)
			require.Equal(t, "Be brief.", asked.System)
		})
	}
}

func TestModel_Stream_ToolCalls(t *testing.T) {
	calls := []model.ToolCall{{ID: "c1", Name: "read_file", Arguments: `{"path":"a"}`}, {ID: "c2", Name: "read_file", Arguments: `{"path":"b"}`}}
	for _, whole := range []bool{false, true} {
		m, srv := open(t, Options{}, modeltest.Reply{Text: "Looking.", Reasoning: "hm", ToolCalls: calls, NoStream: whole}, modeltest.Text("Done."))
		req := hello()
		req.Tools = []model.ToolDef{{Name: "read_file", Description: "Reads.", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}, {Name: "odd"}}
		resp, _, _, tools, err := run(m, req)
		require.NoError(t, err)
		require.Equal(t, calls, resp.ToolCalls)
		require.Equal(t, "tool_calls", resp.Finish)
		require.Equal(t, []string{"read_file", "read_file"}, tools)
		require.JSONEq(t, `{"provider":"openai","model":"gpt-4o","reasoning_content":"hm"}`, string(resp.Replay))

		req.Messages = append(req.Messages, model.Message{Role: "assistant", Text: resp.Text, ToolCalls: resp.ToolCalls, Replay: resp.Replay},
			model.Message{Role: "tool", ToolCallID: "c1", Text: "A"}, model.Message{Role: "tool", ToolCallID: "c2", Text: ""})
		_, _, _, _, err = run(m, req)
		require.NoError(t, err)
		second := srv.Requests()[1]
		require.Equal(t, []string{"read_file", "odd"}, second.Tools)
		require.Contains(t, string(second.Body), `"reasoning_content":"hm"`)
		require.Contains(t, string(second.Body), `"parameters":{"type":"object","properties":{}}`)
		require.Contains(t, string(second.Body), `{"role":"tool","tool_call_id":"c2","content":""}`)
	}
}

// TestModel_Body_Oracle compares the request with what go-openai writes for the same conversation.
func TestModel_Body_Oracle(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"q":{"type":"string","description":"<&> \u2028"}}}`)
	m, err := New(Options{Model: "gpt-4o", BaseURL: "http://127.0.0.1:1/v1", MaxOutput: 99})
	require.NoError(t, err)
	got := m.body(model.Request{System: "sys \"q\" \x01\n", Messages: []model.Message{
		{Role: "user", Text: "look 日本 \u2028", Images: []model.Image{{MIME: "image/png", Data: []byte{1, 2, 3}}}},
		{Role: "assistant", Text: "ok", ToolCalls: []model.ToolCall{{ID: "a", Name: "f", Arguments: `{"q":"1"}`}}},
		{Role: "tool", ToolCallID: "a", Text: "out"}, {Role: "user", Text: "bye"},
	}, Tools: []model.ToolDef{{Name: "f", Description: "d", Parameters: schema}}})
	//lint:ignore SA1019 compatible servers know the old name of the limit, and so does our request
	want, err := json.Marshal(goopenai.ChatCompletionRequest{Model: "gpt-4o", Stream: true, MaxTokens: 99,
		StreamOptions: &goopenai.StreamOptions{IncludeUsage: true},
		Messages: []goopenai.ChatCompletionMessage{
			{Role: "system", Content: "sys \"q\" \x01\n"},
			{Role: "user", MultiContent: []goopenai.ChatMessagePart{{Type: "text", Text: "look 日本 \u2028"}, {Type: "image_url", ImageURL: &goopenai.ChatMessageImageURL{URL: "data:image/png;base64,AQID"}}}},
			{Role: "assistant", Content: "ok", ToolCalls: []goopenai.ToolCall{{ID: "a", Type: "function", Function: goopenai.FunctionCall{Name: "f", Arguments: `{"q":"1"}`}}}},
			{Role: "tool", Content: "out", ToolCallID: "a"}, {Role: "user", Content: "bye"},
		}, Tools: []goopenai.Tool{{Type: "function", Function: &goopenai.FunctionDefinition{Name: "f", Description: "d", Parameters: schema}}}})
	require.NoError(t, err)
	var a, b any
	require.NoError(t, json.Unmarshal(got, &a))
	require.NoError(t, json.Unmarshal(want, &b))
	require.Empty(t, cmp.Diff(b, a))
}

// TestModel_Body_Stable: the prefix of a conversation is the same bytes in the next call.
func TestModel_Body_Stable(t *testing.T) {
	m, err := New(Options{Model: "x", BaseURL: "http://127.0.0.1:1"})
	require.NoError(t, err)
	req := hello()
	a := m.body(req)
	req.Messages = append(req.Messages, model.Message{Role: "assistant", Text: "yes"}, model.Message{Role: "user", Text: "more"})
	b := m.body(req)
	require.True(t, bytes.HasPrefix(b, bytes.TrimSuffix(a, []byte("]}"))))
	require.True(t, json.Valid(b))
}

func TestModel_Body_Holes(t *testing.T) {
	m, srv := open(t, Options{}, modeltest.Text("fine"))
	_, _, _, _, err := run(m, model.Request{Messages: []model.Message{
		{Role: "tool", ToolCallID: "lost", ToolName: "f", Text: "orphan"},
		{Role: "assistant"},
		{Role: "assistant", ToolCalls: []model.ToolCall{{ID: "a", Name: "f", Arguments: `{"q": 'one',}`}, {ID: "b", Name: "f", Arguments: `{"q`}}},
		{Role: "tool", ToolCallID: "b", Text: "B", Images: []model.Image{{Data: []byte("x")}}},
		{Role: "user", Text: "go on"},
	}})
	require.NoError(t, err)
	got := srv.Requests()[0]
	require.Len(t, got.Messages, 6)
	require.Equal(t, `{"q":"one"}`, got.Messages[1].ToolCalls[0].Arguments)
	require.Equal(t, `{}`, got.Messages[1].ToolCalls[1].Arguments)
	require.Equal(t, model.NoResult, got.Messages[2].Text)
	require.Contains(t, string(got.Body), "data:image/png;base64,eA==")
}

// TestModel_Stream_Errors: each failure becomes a kind that the loop can act on.
func TestModel_Stream_Errors(t *testing.T) {
	fail := modeltest.Failing
	for _, c := range []struct {
		name   string
		reply  modeltest.Reply
		kind   model.Kind
		status int
		after  time.Duration
		text   string
	}{
		{"key", fail(401, "invalid_request_error", "Incorrect API key provided: "+testKey+". Get one."), model.Auth, 401, 0, "[key]"},
		{"forbidden", fail(403, "", "no"), model.Auth, 403, 0, ""},
		{"credits", fail(402, "", "Insufficient credits"), model.Auth, 402, 0, ""},
		{"model", fail(404, "", "The model `x` does not exist"), model.NotFound, 404, 0, ""},
		{"timeout", fail(408, "", ""), model.Down, 408, 0, ""},
		{"conflict", fail(409, "", ""), model.Down, 409, 0, ""},
		{"large", fail(413, "", "Request Entity Too Large"), model.ContextLength, 413, 0, ""},
		{"bad", fail(422, "", "messages: field required"), model.BadRequest, 422, 0, ""},
		{"rate", modeltest.RateLimited("7"), model.RateLimit, 429, 7 * time.Second, ""},
		{"rate ms", modeltest.Reply{Status: 429, Header: map[string]string{"Retry-After-Ms": "250"}}, model.RateLimit, 429, 250 * time.Millisecond, ""},
		{"rate reset", modeltest.Reply{Status: 429, Header: map[string]string{"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "1m2s", "X-Ratelimit-Remaining-Tokens": "5", "X-Ratelimit-Reset-Tokens": "5m"}}, model.RateLimit, 429, 62 * time.Second, ""},
		{"rate garbage", modeltest.RateLimited("soon"), model.RateLimit, 429, 0, ""},
		{"rate negative", modeltest.RateLimited("-5"), model.RateLimit, 429, 0, ""},
		{"rate forever", modeltest.RateLimited("1e300"), model.RateLimit, 429, 24 * time.Hour, ""},
		{"quota", fail(429, "insufficient_quota", "You exceeded your current quota"), model.Auth, 429, 0, ""},
		{"busy", fail(503, "", "busy"), model.Overloaded, 503, 0, ""},
		{"overloaded", fail(529, "overloaded_error", "Overloaded"), model.Overloaded, 529, 0, ""},
		{"broken", fail(500, "", "oops"), model.Down, 500, 0, ""},
		{"gateway", modeltest.Reply{Status: 502, Raw: []byte("<html><head><title>502 Bad\n Gateway</title>"), ContentType: "text/html"}, model.Down, 502, 0, "502 Bad Gateway"},
		{"redirect", modeltest.Reply{Status: 307, Header: map[string]string{"Location": "http://127.0.0.1:1/"}}, model.NotFound, 307, 0, "base URL"},
		{"policy", fail(400, "", "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."), model.Policy, 400, 0, ""},
		{"moderation", fail(403, "", "Your input was flagged"), model.Policy, 403, 0, ""},
		{"openai long", modeltest.TooLong(), model.ContextLength, 400, 0, ""},
		{"anthropic long", fail(400, "", "prompt is too long: 210000 tokens > 200000 maximum"), model.ContextLength, 400, 0, ""},
		{"gemini long", fail(400, "", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."), model.ContextLength, 400, 0, ""},
		{"llama.cpp long", fail(400, "exceed_context_size_error", "the request exceeds the available context size, try increasing it"), model.ContextLength, 400, 0, ""},
		{"llama.cpp old long", fail(500, "", "the request exceeds the available context size"), model.ContextLength, 500, 0, ""},
		{"groq long", fail(413, "", "Request too large for model `x` on tokens per minute (TPM)"), model.ContextLength, 413, 0, ""},
		{"gemini key", fail(400, "", "API key not valid. Please pass a valid API key."), model.Auth, 400, 0, ""},
		{"html", modeltest.Garbage("text/html", "<!DOCTYPE html><html>hello"), model.Invalid, 0, 0, "base URL"},
		{"half json", modeltest.Garbage("application/json", `{"choices":[{"message":{"content":"he`), model.Invalid, 0, 0, ""},
		{"array", modeltest.Garbage("application/json", `[]`), model.Invalid, 0, 0, ""},
		{"no choices", modeltest.Garbage("application/json", `{"id":"x","choices":[]}`), model.Invalid, 0, 0, "no choices"},
		{"empty", modeltest.Garbage("text/event-stream", ""), model.Invalid, 0, 0, "empty"},
		{"only done", modeltest.Garbage("text/event-stream", "data: [DONE]\n\n"), model.Invalid, 0, 0, "no choices"},
		{"text", modeltest.Garbage("text/plain", "OK"), model.Invalid, 0, 0, "empty"},
		{"bad event", modeltest.Garbage("text/event-stream", "data: {\"choices\":[{\"delta\":{}}]}\n\ndata: oops\n\n"), model.Invalid, 0, 0, ""},
		{"wrong types", modeltest.Garbage("text/event-stream", "data: {\"choices\":\"none\"}\n\n"), model.Invalid, 0, 0, ""},
		{"error event", modeltest.Garbage("text/event-stream", "data: {\"error\":{\"message\":\"Provider returned error\",\"code\":502,\"metadata\":{\"raw\":\"upstream\"}}}\n\n"), model.Down, 502, 0, "upstream"},
		{"error event 429", modeltest.Garbage("text/event-stream", "data: {\"error\":{\"message\":\"slow down\",\"code\":429}}\n\n"), model.RateLimit, 429, 0, ""},
		{"error text", modeltest.Garbage("application/json", `{"error":"model is loading"}`), model.Down, 0, 0, "loading"},
		{"cut", modeltest.Reply{Text: "one two three", Cut: true, CutAfter: 3}, model.Down, 0, 0, "cut off"},
		{"no name", modeltest.Garbage("text/event-stream", "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n"), model.Invalid, 0, 0, "no name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := open(t, Options{}, c.reply)
			_, _, _, _, err := run(m, hello())
			var e *model.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.kind, e.Kind, err)
			require.Equal(t, c.status, e.Status, err)
			require.Equal(t, c.after, e.RetryAfter)
			require.Contains(t, err.Error(), c.text)
			require.NotContains(t, err.Error(), testKey)
		})
	}
}

// TestModel_Stream_Dialects: what servers do differently is understood.
func TestModel_Stream_Dialects(t *testing.T) {
	event := func(deltas ...string) string {
		var b strings.Builder
		for _, d := range deltas {
			b.WriteString("data: {\"choices\":[{\"index\":0,\"delta\":" + d + "}]}\n\n")
		}
		return b.String()
	}
	end := "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	done := "data: [DONE]\n\n"
	for _, c := range []struct {
		name, body string
		want       model.Response
	}{
		{"crlf and comments", ": OPENROUTER PROCESSING\r\n\r\n: again\r\n\r\n" + strings.ReplaceAll(event(`{"content":"hi"}`)+end+done, "\n", "\r\n"), model.Response{Text: "hi", Finish: "stop"}},
		{"no space after data", strings.ReplaceAll(event(`{"content":"hi"}`)+end, "data: ", "data:"), model.Response{Text: "hi", Finish: "stop"}},
		{"no end mark", event(`{"content":"hi"}`) + end, model.Response{Text: "hi", Finish: "stop"}},
		{"no finish reason", event(`{"content":"hi"}`) + done, model.Response{Text: "hi", Finish: "stop"}},
		{"no last newline", event(`{"content":"hi"}`) + strings.TrimRight(end, "\n"), model.Response{Text: "hi", Finish: "stop"}},
		{"reasoning", event(`{"reasoning":"think"}`, `{"content":null,"reasoning":""}`, `{"content":"hi"}`) + end + done, model.Response{Text: "hi", Reasoning: "think", Finish: "stop"}},
		{"parts", event(`{"content":[{"type":"text","text":"h"},{"type":"text","text":"i"}]}`) + end + done, model.Response{Text: "hi", Finish: "stop"}},
		{"think tags", event(`{"content":"\n<thi"}`, `{"content":"nk>a b</th"}`, `{"content":"ink>\n\nhi"}`, `{"content":" <think>"}`) + end + done, model.Response{Text: "hi <think>", Reasoning: "a b", Finish: "stop"}},
		{"think unfinished", event(`{"content":"<think>a</thin"}`) + end + done, model.Response{Reasoning: "a</thin", Finish: "stop"}},
		{"not a think tag", event(`{"content":"<th"}`, `{"content":"e> x"}`) + end + done, model.Response{Text: "<the> x", Finish: "stop"}},
		{"short", event(`{"content":"<"}`) + end + done, model.Response{Text: "<", Finish: "stop"}},
		{"one index for all", event(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}`, `{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":2}"}}]}`) + end + done,
			model.Response{ToolCalls: []model.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}, {ID: "b", Name: "f", Arguments: `{"x":2}`}}, Finish: "tool_calls"}},
		{"no index", event(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}`, `{"tool_calls":[{"function":{"arguments":":1}"}}]}`) + end + done,
			model.Response{ToolCalls: []model.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}}, Finish: "tool_calls"}},
		{"mixed indexes", event(`{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":""}},{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}`, `{"tool_calls":[{"index":1,"function":{"arguments":"{}"}},{"index":0,"function":{"arguments":"}"}}]}`) + end + done,
			model.Response{ToolCalls: []model.ToolCall{{ID: "b", Name: "g", Arguments: `{}`}, {ID: "a", Name: "f", Arguments: `{}`}}, Finish: "tool_calls"}},
		{"object arguments", event(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}]}`) + end + done,
			model.Response{ToolCalls: []model.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}}, Finish: "tool_calls"}},
		{"length", event(`{"content":"hi"}`) + strings.Replace(end, "stop", "length", 1) + done, model.Response{Text: "hi", Finish: "length"}},
		{"refusal", event(`{"refusal":"no."}`) + end + done, model.Response{Text: "no.", Finish: "refusal"}},
		{"filter", event(`{"content":"hi"}`) + strings.Replace(end, "stop", "content_filter", 1) + done, model.Response{Text: "hi", Finish: "content_filter"}},
		{"deepseek usage", event(`{"content":"hi"}`) + end + "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\"prompt_cache_hit_tokens\":5}}\n\n" + done,
			model.Response{Text: "hi", Finish: "stop", Usage: model.Usage{Input: 9, Output: 2, CacheRead: 5}}},
		{"untyped", "\n \n" + event(`{"content":"hi"}`) + end, model.Response{Text: "hi", Finish: "stop"}},
		{"wrong content type", `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`, model.Response{Text: "hi", Finish: "stop"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ct := "text/event-stream"
			if c.name == "untyped" || c.name == "wrong content type" {
				ct = "text/plain"
			}
			m, _ := open(t, Options{}, modeltest.Garbage(ct, c.body))
			resp, text, reasoning, _, err := run(m, hello())
			require.NoError(t, err)
			require.Equal(t, c.want.Text, text)
			require.Equal(t, c.want.Reasoning, reasoning)
			resp.Model, resp.Replay = model.Info{}, nil
			require.Equal(t, c.want, resp)
		})
	}
}

// TestModel_Stream_Ids: a call without an id, or with one that was used before, gets its own.
func TestModel_Stream_Ids(t *testing.T) {
	m, _ := open(t, Options{}, modeltest.Garbage("application/json", `{"choices":[{"message":{"tool_calls":[{"id":"","function":{"name":"f","arguments":"{}"}},{"id":"x","function":{"name":"g","arguments":"{}"}},{"id":"x","function":{"name":"h","arguments":"{}"}}]}}]}`))
	resp, _, _, _, err := run(m, hello())
	require.NoError(t, err)
	require.Len(t, resp.ToolCalls, 3)
	ids := map[string]bool{}
	for _, c := range resp.ToolCalls {
		require.NotEmpty(t, c.ID)
		ids[c.ID] = true
	}
	require.Len(t, ids, 3)
}

// TestModel_Replay_Google: a thought signature goes back with its call.
func TestModel_Replay_Google(t *testing.T) {
	m, srv := open(t, Options{}, modeltest.Garbage("application/json",
		`{"choices":[{"message":{"reasoning_details":[{"type":"reasoning.encrypted","data":"zz"}],"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"sig"}}}]}}]}`), modeltest.Text("ok"))
	resp, _, _, _, err := run(m, hello())
	require.NoError(t, err)
	req := hello()
	req.Messages = append(req.Messages, model.Message{Role: "assistant", ToolCalls: resp.ToolCalls, Replay: resp.Replay},
		model.Message{Role: "tool", ToolCallID: "a", Text: "x"})
	_, _, _, _, err = run(m, req)
	require.NoError(t, err)
	body := string(srv.Requests()[1].Body)
	require.Contains(t, body, `"extra_content":{"google":{"thought_signature":"sig"}}`)
	require.Contains(t, body, `"reasoning_details":[{"type":"reasoning.encrypted","data":"zz"}]`)
	// Another model's replay is left alone.
	other, err := New(Options{Model: "other", BaseURL: srv.OpenAI()})
	require.NoError(t, err)
	require.NotContains(t, string(other.body(req)), "thought_signature")
}

// TestModel_Learn: a field that the server refuses is left out from then on.
func TestModel_Learn(t *testing.T) {
	var quirks []string
	m, srv := open(t, Options{MaxOutput: 50, OnQuirk: func(q string) { quirks = append(quirks, q) }},
		modeltest.Failing(400, "", "Unrecognized request argument supplied: stream_options"),
		modeltest.Failing(400, "", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
		modeltest.Failing(400, "", "this model does not support reasoning_effort"),
		modeltest.Text("at last"), modeltest.Text("again"),
		modeltest.Failing(400, "", "registry.ollama.ai/library/x does not support tools"), modeltest.Text("no tools"),
		modeltest.Failing(400, "", "stream_options again"))
	req := hello()
	req.Reasoning = "low"
	resp, _, _, _, err := run(m, req)
	require.NoError(t, err)
	require.Equal(t, "at last", resp.Text)
	_, _, _, _, err = run(m, req)
	require.NoError(t, err)
	last := string(srv.Requests()[4].Body)
	require.NotContains(t, last, "stream_options")
	require.NotContains(t, last, "reasoning_effort")
	require.Contains(t, last, `"max_completion_tokens":50`)
	require.Len(t, quirks, 3)

	req.Tools = []model.ToolDef{{Name: "f"}}
	_, _, _, _, err = run(m, req)
	require.NoError(t, err)
	require.Empty(t, srv.Requests()[6].Tools)
	_, _, _, _, err = run(m, req)
	var e *model.Error
	require.ErrorAs(t, err, &e, "a field that is left out already is not blamed twice")
	require.Equal(t, model.BadRequest, e.Kind)
}

// TestModel_Interrupt: a call ends with its context at once, wherever the server hangs, and says why.
func TestModel_Interrupt(t *testing.T) {
	stop := errors.New("stopped by the user")
	for name, reply := range map[string]modeltest.Reply{
		"header": {HangHeader: true}, "body": {HangBody: true, CutAfter: 0}, "middle": {Text: "one two three", HangBody: true, CutAfter: 2},
		"slow bytes": {Text: "one two three four", SlowBytes: 5 * time.Millisecond}, "whole": {NoStream: true, Text: "x", SlowBytes: time.Second},
		"error body": {Status: 500, HangBody: true, Delay: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			m, srv := open(t, Options{}, reply)
			ctx, cancel := context.WithCancelCause(t.Context())
			type result struct {
				err error
				at  time.Time
			}
			out := make(chan result, 1)
			go func() {
				_, err := m.Stream(ctx, hello(), func(model.Delta) {})
				out <- result{err, time.Now()}
			}()
			require.True(t, srv.Wait(1, 5*time.Second))
			start := time.Now()
			cancel(stop)
			r := <-out
			require.ErrorIs(t, r.err, stop)
			require.Less(t, r.at.Sub(start), 500*time.Millisecond) // measured: below 2 ms on an idle machine
		})
	}
}

// TestModel_Silence: a server that falls silent is given up, and a finished answer is not.
func TestModel_Silence(t *testing.T) {
	o := Options{HeaderTimeout: 30 * time.Millisecond, IdleTimeout: 30 * time.Millisecond}
	for name, reply := range map[string]modeltest.Reply{
		"header": {HangHeader: true}, "body": {Text: "one two", HangBody: true, CutAfter: 2},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := open(t, o, reply)
			_, _, _, _, err := run(m, hello())
			var e *model.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, model.Down, e.Kind)
			require.Contains(t, err.Error(), "30ms")
		})
	}
}

func TestModel_Down(t *testing.T) {
	m, err := New(Options{Model: "x", Key: testKey, BaseURL: "http://user:hunter22@127.0.0.1:1/" + testKey})
	require.NoError(t, err)
	_, _, _, _, err = run(m, hello())
	var e *model.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, model.Down, e.Kind)
	require.NotContains(t, err.Error(), testKey)
	require.NotContains(t, err.Error(), "hunter22")
}

func TestEndpoint(t *testing.T) {
	for in, want := range map[string]string{
		"https://api.openai.com/v1": "https://api.openai.com/v1", "http://localhost:8000": "http://localhost:8000/v1", "http://localhost:8000/": "http://localhost:8000/v1",
		"https://x/api/v3/": "https://x/api/v3", "https://x/v1/chat/completions": "https://x/v1", " http://[::1]:1/v1 ": "http://[::1]:1/v1",
	} {
		got, err := Endpoint(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got)
	}
	for _, bad := range []string{"", "localhost:8000", "ftp://x", "http://", "://"} {
		_, err := Endpoint(bad)
		require.Error(t, err, bad)
	}
}

// TestModel_KeepAlive: calls one after another share a connection.
func TestModel_KeepAlive(t *testing.T) {
	m, srv := open(t, Options{})
	seen := map[string]bool{}
	srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen[r.RemoteAddr] = true
		modeltest.NewScript(modeltest.Reply{Text: "hi you", Pace: time.Millisecond}).ServeHTTP(w, r) // in chunks, the last one behind the end mark
	})
	for range 10 {
		_, _, _, _, err := run(m, hello())
		require.NoError(t, err)
	}
	require.Len(t, seen, 1)
}

type body struct{ data []byte }

func (b body) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(b.data))}, nil
}

// FuzzStream feeds bytes as the body of an answer: a response or a *model.Error comes out, never a panic.
func FuzzStream(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n"))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":1}}\n\n"))
	f.Add([]byte(`{"choices":[{"message":{"content":[{"text":"x"}]},"finish_reason":"stop"}]}`))
	f.Add([]byte(`{"error":{"message":["a"],"code":{}}}`))
	f.Add([]byte("<html>"))
	f.Add([]byte("event: x\n: c\ndata: {\ndata: }\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := New(Options{Model: "x", Transport: body{data}})
		require.NoError(t, err)
		resp, text, _, _, err := run(m, hello())
		if err != nil {
			var e *model.Error
			require.ErrorAs(t, err, &e)
			return
		}
		require.Equal(t, resp.Text, text)
		require.Contains(t, []string{"stop", "tool_calls", "length", "content_filter", "refusal"}, resp.Finish)
	})
}

// chatty is a request as a busy chat makes it: 40 messages and 20 tools.
func chatty() model.Request {
	req := model.Request{System: strings.Repeat("You are helpful. ", 400)}
	for range 20 {
		req.Messages = append(req.Messages, model.Message{Role: "user", Text: strings.Repeat("hello there ", 20)}, model.Message{Role: "assistant", Text: "Hi."})
	}
	schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"` + strings.Repeat("words about this ", 30) + `"},"content":{"type":"string"}},"required":["path"]}`)
	for i := range 20 {
		req.Tools = append(req.Tools, model.ToolDef{Name: fmt.Sprint("tool", i), Description: "does things", Parameters: schema})
	}
	return req
}

func BenchmarkBody(b *testing.B) {
	m, err := New(Options{Model: "x"})
	require.NoError(b, err)
	req := chatty()
	b.ReportAllocs()
	for b.Loop() {
		m.body(req)
	}
}

// BenchmarkStream is one call with 20 words of answer, the server included.
func BenchmarkStream(b *testing.B) {
	var raw strings.Builder
	for i := range 20 {
		fmt.Fprintf(&raw, "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word%d \"},\"finish_reason\":null}]}\n\n", i)
	}
	raw.WriteString("data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	stream := []byte(raw.String())
	m, srv := open(b, Options{})
	srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(stream)
	})
	req := chatty()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Stream(b.Context(), req, func(model.Delta) {}); err != nil {
			b.Fatal(err)
		}
	}
}
