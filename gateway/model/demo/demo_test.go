package demo

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"herald/gateway/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testTime = time.Date(2026, 11, 29, 14, 5, 6, 0, time.UTC)

// testModel is one for all tests: it keeps nothing between calls but its compiled rules.
var testModel = sync.OnceValue(func() *Model { return New(Options{Clock: func() time.Time { return testTime }}) })

// allTools is every tool of Herald, with the argument names that its schema has.
var allTools = map[string]string{
	"write_file": "path! content!", "read_file": "path! offset:integer limit:integer", "patch": "mode! path old_string new_string replace_all:boolean patch",
	"search_files": "pattern! target path file_glob limit:integer offset:integer output_mode context:integer",
	"terminal":     "command! background:boolean timeout:integer workdir", "process": "action! session_id data timeout:integer",
	"todo": "todos:array merge:boolean", "memory": "action! target content old_text operations:array",
	"session_search": "query session_id around_message_id:integer", "clarify": "question! choices:array",
	"execute_code": "code! reset:boolean", "delegate_task": "goal context tasks:array background:boolean",
	"cronjob": "action! job_id prompt schedule name deliver", "send_message": "action target message",
	"web_search": "query! limit:integer", "web_extract": "urls!:array format", "vision_analyze": "image_url! question!",
	"browser_navigate": "url!", "browser_snapshot": "full:boolean", "browser_click": "ref!", "browser_type": "ref! text!",
	"browser_scroll": "direction!", "browser_back": "", "browser_press": "key!", "browser_get_images": "", "browser_vision": "question! annotate:boolean",
	"browser_console": "clear:boolean expression", "browser_cdp": "method! params:object", "browser_dialog": "action! prompt_text",
	"skills_list": "category", "skill_view": "name! file_path", "skill_manage": "action! name! content category",
	"image_generate": "prompt!", "text_to_speech": "text!", "computer_use": "action! app", "ha_list_entities": "domain area",
	"tool_search": "queries!:array limit:integer", "tool_describe": "names!:array", "tool_call": "name! arguments!:object",
}

func offer(t testing.TB, names ...string) []model.ToolDef {
	t.Helper()
	var out []model.ToolDef
	for _, name := range names {
		spec, ok := allTools[name]
		require.True(t, ok, name)
		properties, required := map[string]any{}, []string{}
		for _, f := range strings.Fields(spec) {
			f, kind, _ := strings.Cut(f, ":")
			key := strings.TrimSuffix(f, "!")
			if kind == "" {
				kind = "string"
			}
			properties[key] = map[string]any{"type": kind}
			if strings.HasSuffix(f, "!") {
				required = append(required, key)
			}
		}
		raw, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required})
		require.NoError(t, err)
		out = append(out, model.ToolDef{Name: name, Description: name, Parameters: raw})
	}
	return out
}

func names() []string {
	var out []string
	for n := range allTools {
		if n != "tool_call" {
			out = append(out, n)
		}
	}
	return out
}

func ask(t testing.TB, tools []model.ToolDef, messages ...model.Message) model.Response {
	t.Helper()
	var streamed strings.Builder
	resp, err := testModel().Stream(t.Context(), model.Request{Messages: messages, Tools: tools},
		func(d model.Delta) { streamed.WriteString(d.Text) })
	require.NoError(t, err)
	require.Equal(t, resp.Text, streamed.String(), "the stream is the answer")
	return resp
}

func user(text string) model.Message { return model.Message{Role: "user", Text: text} }

// TestEveryTool gives one or more plain requests for each tool and the exact first call.
func TestEveryTool(t *testing.T) {
	seen := map[string]bool{}
	tools := offer(t, names()...)
	for _, c := range []struct{ request, tool, args string }{
		{"write hello to notes.txt", "write_file", `{"path":"notes.txt","content":"hello"}`},
		{"Please write \"hello there\" into the file my/notes.txt.", "write_file", `{"path":"my/notes.txt","content":"hello there"}`},
		{"create a file x.txt with some words", "write_file", `{"path":"x.txt","content":"some words"}`},
		{"create a file called x.py with:\n```python\nprint(1)\nprint(2)\n```", "write_file", `{"path":"x.py","content":"print(1)\nprint(2)"}`},
		{"write to a.txt: one, then two and three", "write_file", `{"path":"a.txt","content":"one, then two and three"}`},
		{"create an empty file x.txt", "write_file", `{"path":"x.txt","content":""}`},
		{"Ann: write hello to notes.txt", "write_file", `{"path":"notes.txt","content":"hello"}`},
		{"[Replying to: “hi”] write hello to notes.txt", "write_file", `{"path":"notes.txt","content":"hello"}`},
		{"write 'a then b' to n.txt", "write_file", `{"path":"n.txt","content":"a then b"}`},
		{"show notes.txt", "read_file", `{"path":"notes.txt"}`},
		{"cat notes.txt", "read_file", `{"path":"notes.txt"}`},
		{"cat Makefile", "read_file", `{"path":"Makefile"}`},
		{"could you read the file src/main.go please?", "read_file", `{"path":"src/main.go"}`},
		{"what is in notes.txt?", "read_file", `{"path":"notes.txt"}`},
		{"show lines 3 to 5 of notes.txt", "read_file", `{"path":"notes.txt","offset":3,"limit":3}`},
		{"change hello to bye in notes.txt", "patch", `{"mode":"replace","path":"notes.txt","old_string":"hello","new_string":"bye"}`},
		{"replace all foo with bar in src/a.go", "patch", `{"mode":"replace","path":"src/a.go","old_string":"foo","new_string":"bar","replace_all":true}`},
		{"in notes.txt, replace 'a b' with 'c d'", "patch", `{"mode":"replace","path":"notes.txt","old_string":"a b","new_string":"c d"}`},
		{"remove hello from notes.txt", "patch", `{"mode":"replace","path":"notes.txt","old_string":"hello","new_string":""}`},
		{"search the files for TODO", "search_files", `{"pattern":"TODO"}`},
		{"search the files for TODO in *.go", "search_files", `{"pattern":"TODO","file_glob":"*.go"}`},
		{"grep for main in src/", "search_files", `{"pattern":"main","path":"src/"}`},
		{"find *.go", "search_files", `{"pattern":"*.go","target":"files"}`},
		{"find files named notes.txt", "search_files", `{"pattern":"notes.txt","target":"files"}`},
		{"list the files", "search_files", `{"pattern":"*","target":"files"}`},
		{"run ls", "terminal", `{"command":"ls"}`},
		{"run `make test && echo ok`", "terminal", `{"command":"make test && echo ok"}`},
		{"execute the command: df -h", "terminal", `{"command":"df -h"}`},
		{"$ uname -a", "terminal", `{"command":"uname -a"}`},
		{"run sleep 100 in the background", "terminal", `{"command":"sleep 100","background":true}`},
		{"append bread to list.txt", "terminal", `{"command":"printf '%s\\n' bread >> list.txt"}`},
		{"list the background processes", "process", `{"action":"list"}`},
		{"kill process p_1", "process", `{"action":"kill","session_id":"p_1"}`},
		{"show the output of process p_1", "process", `{"action":"log","session_id":"p_1"}`},
		{"add milk to my todo list", "todo", `{"todos":[{"id":"milk","content":"milk","status":"pending"}],"merge":true}`},
		{"add milk, eggs and bread to my todo list", "todo", `{"todos":[{"id":"milk","content":"milk","status":"pending"},{"id":"eggs","content":"eggs","status":"pending"},{"id":"bread","content":"bread","status":"pending"}],"merge":true}`},
		{"what is on my todo", "todo", `{}`},
		{"done with milk", "todo", `{}`},
		{"clear my todo list", "todo", `{"todos":[]}`},
		{"remember that I like tea", "memory", `{"action":"add","target":"user","content":"The user says: I like tea"}`},
		{"remember: the server is called atlas", "memory", `{"action":"add","target":"memory","content":"the server is called atlas"}`},
		{"forget that I like tea", "memory", `{"action":"remove","target":"user","old_text":"I like tea"}`},
		{"search our chats for milk", "session_search", `{"query":"milk"}`},
		{"what did we say about milk?", "session_search", `{"query":"milk"}`},
		{"show my recent chats", "session_search", `{}`},
		{"ask me which colour I like: red, green or blue", "clarify", `{"question":"Which colour do you like?","choices":["red","green","blue"]}`},
		{"ask me what I should read", "clarify", `{"question":"What should you read?"}`},
		{"every minute tell me the time", "cronjob", `{"action":"create","schedule":"every minute","prompt":"tell me the time"}`},
		{"remind me every weekday at 9 to stretch", "cronjob", `{"action":"create","schedule":"every weekday at 9","prompt":"Remind me: stretch"}`},
		{"remind me to call Bob in 10 minutes", "cronjob", `{"action":"create","schedule":"in 10 minutes","prompt":"Remind me: call Bob"}`},
		{"tell me the time every 5 minutes", "cronjob", `{"action":"create","schedule":"every 5 minutes","prompt":"tell me the time"}`},
		{"tomorrow at 8am, remind me that the train leaves", "cronjob", `{"action":"create","schedule":"tomorrow at 8am","prompt":"Remind me: the train leaves"}`},
		{"list my cron jobs", "cronjob", `{"action":"list"}`},
		{"stop it", "cronjob", `{"action":"list"}`},
		{"cancel reminder j_7", "cronjob", `{"action":"remove","job_id":"j_7"}`},
		{"send hello to telegram", "send_message", `{"action":"send","target":"telegram","message":"hello"}`},
		{"send \"hi all\" to slack:C0123", "send_message", `{"action":"send","target":"slack:C0123","message":"hi all"}`},
		{"where can you send messages?", "send_message", `{"action":"list"}`},
		{"run this python: print(6*7)", "execute_code", `{"code":"print(6*7)"}`},
		{"run this:\n```python\nfor i in range(3):\n    print(i)\n```", "execute_code", `{"code":"for i in range(3):\n    print(i)"}`},
		{"delegate: count the files and report", "delegate_task", `{"goal":"count the files and report"}`},
		{"ask a subagent to read notes.txt", "delegate_task", `{"goal":"read notes.txt"}`},
		{"search the web for herald moth", "web_search", `{"query":"herald moth"}`},
		{"google sqlite wal", "web_search", `{"query":"sqlite wal"}`},
		{"fetch https://example.com/a?b=1", "web_extract", `{"urls":["https://example.com/a?b=1"]}`},
		{"open https://example.com", "browser_navigate", `{"url":"https://example.com"}`},
		{"take a snapshot of the page", "browser_snapshot", `{}`},
		{"click on @e5", "browser_click", `{"ref":"@e5"}`},
		{"type hello world into @e3", "browser_type", `{"ref":"@e3","text":"hello world"}`},
		{"scroll down", "browser_scroll", `{"direction":"down"}`},
		{"go back", "browser_back", `{}`},
		{"press Enter", "browser_press", `{"key":"Enter"}`},
		{"list the images on the page", "browser_get_images", `{}`},
		{"what do you see on the page?", "browser_vision", `{"question":"what do you see?"}`},
		{"show the browser console", "browser_console", `{}`},
		{"accept the dialog", "browser_dialog", `{"action":"accept"}`},
		{"use browser_cdp with {\"method\": \"Page.reload\"}", "browser_cdp", `{"method":"Page.reload"}`},
		{"list your skills", "skills_list", `{}`},
		{"show skill herald", "skill_view", `{"name":"herald"}`},
		{"create a skill tea: Boil water, then wait.", "skill_manage", `{"action":"create","name":"tea","content":"Boil water, then wait."}`},
		{"describe photo.png", "vision_analyze", `{"image_url":"photo.png","question":"What is in this picture?"}`},
		{"draw a picture of a moth", "image_generate", `{"prompt":"a moth"}`},
		{"say hello aloud", "text_to_speech", `{"text":"hello"}`},
		{"take a screenshot", "computer_use", `{"action":"capture"}`},
		{"list entities in kitchen", "ha_list_entities", `{"area":"kitchen"}`},
		{"find a tool for issues", "tool_search", `{"queries":["issues"]}`},
		{"describe the tool web_search", "tool_describe", `{"names":["web_search"]}`},
		{"use read_file with {\"path\": \"x\", \"limit\": 3}", "read_file", `{"path":"x","limit":3}`},
		{"call read_file path=x limit=3", "read_file", `{"path":"x","limit":3}`},
		{"call terminal command='echo hi' background=yes", "terminal", `{"command":"echo hi","background":true}`},
		{"use the terminal tool to run ls -l", "terminal", `{"command":"ls -l"}`},
		{"use web_search with fresh bread", "web_search", `{"query":"fresh bread"}`},
	} {
		seen[c.tool] = true
		t.Run(c.request, func(t *testing.T) {
			resp := ask(t, tools, user(c.request))
			require.Len(t, resp.ToolCalls, 1, resp.Text)
			require.Equal(t, c.tool, resp.ToolCalls[0].Name)
			require.Equal(t, c.args, resp.ToolCalls[0].Arguments)
			require.Equal(t, "tool_calls", resp.Finish)
		})
	}
	for n := range allTools {
		require.True(t, seen[n] || n == "tool_call", "no plain request for %s", n)
	}
}

// TestNotOffered: a tool that is not there is said to be missing, or reached through tool_call.
func TestNotOffered(t *testing.T) {
	resp := ask(t, nil, user("search the web for moths"))
	require.Empty(t, resp.ToolCalls)
	require.Contains(t, resp.Text, "`web_search`")
	require.Contains(t, resp.Text, "not offered")

	resp = ask(t, offer(t, "tool_call"), user("search the web for moths"))
	require.Equal(t, "tool_call", resp.ToolCalls[0].Name)
	require.Equal(t, `{"name":"web_search","arguments":{"query":"moths"}}`, resp.ToolCalls[0].Arguments)

	req := model.Request{Ephemeral: "You have used all your steps. Call no tool.", Messages: []model.Message{user("run ls")}, Tools: offer(t, "terminal")}
	resp, err := testModel().Stream(t.Context(), req, nil)
	require.NoError(t, err)
	require.Empty(t, resp.ToolCalls)
	require.Contains(t, resp.Text, "no more tools")
}

// TestFitsSchema: arguments that the offered schema does not know are left out.
func TestFitsSchema(t *testing.T) {
	tools := []model.ToolDef{{Name: "patch", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"old_string":{"type":"string"},"new_string":{"type":"string"}}}`)}}
	resp := ask(t, tools, user("change a to b in x.txt"))
	require.Equal(t, `{"path":"x.txt","old_string":"a","new_string":"b"}`, resp.ToolCalls[0].Arguments)
}

// TestIntro: the first line of the first answer is honest, and only of the first.
func TestIntro(t *testing.T) {
	first := ask(t, nil, user("hello"))
	require.True(t, strings.HasPrefix(first.Text, Intro), first.Text)
	second := ask(t, nil, user("hello"), model.Message{Role: "assistant", Text: first.Text}, user("hello"))
	require.NotContains(t, second.Text, "no real intelligence")
}

// TestInterrupt: a slow answer ends with its context, in the middle of a word's wait, with its cause.
func TestInterrupt(t *testing.T) {
	for _, request := range []string{"count to 500 slowly", "tell me a long story"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			stop := errors.New("stopped by the user")
			start := time.Now()
			words := 0
			_, err := testModel().Stream(ctx, model.Request{Messages: []model.Message{user(request)}}, func(d model.Delta) {
				if words++; words == 50 {
					time.AfterFunc(DefaultPace/2, func() { cancel(stop) })
				}
			})
			require.ErrorIs(t, err, stop)
			require.Equal(t, 50, words)
			require.Equal(t, 49*DefaultPace+DefaultPace/2, time.Since(start))
		})
	}
}

// TestFast: an answer that nobody wanted slowly takes no time.
func TestFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		resp := ask(t, nil, user("count to 500"))
		require.Contains(t, resp.Text, "499 500")
		require.Zero(t, time.Since(start))
	})
}

// TestDeterministic: the same request gets the same answer.
func TestDeterministic(t *testing.T) {
	tools := offer(t, names()...)
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringN(0, 300, -1).Draw(rt, "text")
		if rapid.Bool().Draw(rt, "phrase") {
			text = rapid.SampledFrom([]string{"write ", "run ", "add ", "remember ", "every ", "use ", "ask me "}).Draw(rt, "start") + text
		}
		m := testModel()
		req := model.Request{Messages: []model.Message{user(text)}, Tools: tools}
		a, err := m.Stream(t.Context(), req, nil)
		require.NoError(rt, err)
		b, err := m.Stream(t.Context(), req, nil)
		require.NoError(rt, err)
		require.Equal(rt, a, b)
		require.True(rt, a.Text != "" || len(a.ToolCalls) > 0)
		for _, c := range a.ToolCalls {
			require.True(rt, json.Valid([]byte(c.Arguments)), c.Arguments)
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add("write hello to notes.txt then run cat notes.txt", `{"output":"hello","exit_code":0}`)
	f.Add("done with milk", `{"todos":[{"id":"milk","content":"milk"}]}`)
	f.Add("use read_file with {\"path\": \"x\"", `1|a`)
	f.Add("(1+2)*3^2 =", "")
	f.Add("stop it", `{"jobs":[{"id":1}]}`)
	tools := offer(f, names()...)
	f.Fuzz(func(t *testing.T, request, result string) {
		messages := []model.Message{user(request)}
		for range 6 {
			resp, err := testModel().Stream(t.Context(), model.Request{Messages: messages, Tools: tools}, nil)
			require.NoError(t, err)
			messages = append(messages, model.Message{Role: "assistant", Text: resp.Text, ToolCalls: resp.ToolCalls})
			if len(resp.ToolCalls) == 0 {
				require.NotEmpty(t, resp.Text)
				return
			}
			for _, c := range resp.ToolCalls {
				require.True(t, json.Valid([]byte(c.Arguments)), c.Arguments)
				messages = append(messages, model.Message{Role: "tool", ToolCallID: c.ID, ToolName: c.Name, Text: result})
			}
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		compile()
	}
}

func BenchmarkUnknown(b *testing.B) {
	m := testModel()
	req := model.Request{Messages: []model.Message{user("tell me what the weather will be and then sing, please")}, Tools: offer(b, names()...)}
	for b.Loop() {
		if _, err := m.Stream(b.Context(), req, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// A brief and what a person writes behind it are one message: the person is answered, and knows the brief.
func TestBrief(t *testing.T) {
	tools := offer(t)
	brief := "[Cron delivery: Time]\nIt is 09:00.\n\n[End of the delivery]\n\n"
	require.Contains(t, ask(t, tools, user(brief+"what did the brief say?")).Text, "It is 09:00.")
	require.Contains(t, ask(t, tools, user(brief+"echo hi")).Text, "hi")
	require.NotContains(t, ask(t, tools, user(brief+"echo hi")).Text, "09:00")
	require.Contains(t, ask(t, tools, user("what did the brief say?")).Text, "No job")
}
