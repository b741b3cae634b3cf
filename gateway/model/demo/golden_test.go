package demo

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/model"
)

var update = flag.Bool("update", false, "write the golden files")

// world answers tool calls as Herald's tools do, from memory.
type world struct {
	files map[string]string
	todos []todoItem
	// next, when set, answers the next call instead.
	next string
	// note is said by the user while the next call runs.
	note string
}

func (w *world) call(c model.ToolCall) string {
	text := w.result(c)
	if w.note != "" {
		text += "\n\n" + noteMark + " " + w.note + "]"
		w.note = ""
	}
	return text
}

func (w *world) result(c model.ToolCall) string {
	if w.next != "" {
		text := w.next
		w.next = ""
		return text
	}
	var a struct {
		Path, Content, Command, Question, Query, Action, Target string
		Old                                                     string     `json:"old_string"`
		New                                                     string     `json:"new_string"`
		Todos                                                   []todoItem `json:"todos"`
	}
	_ = json.Unmarshal([]byte(c.Arguments), &a)
	switch c.Name {
	case "write_file":
		w.files[a.Path] = a.Content
		return fmt.Sprintf(`{"bytes_written":%d}`, len(a.Content))
	case "read_file":
		content, ok := w.files[a.Path]
		if !ok {
			return `{"error":"File not found: ` + a.Path + `"}`
		}
		var lines []string
		for i, l := range strings.Split(content, "\n") {
			lines = append(lines, fmt.Sprintf("%d|%s", i+1, l))
		}
		b, _ := json.Marshal(map[string]any{"content": strings.Join(lines, "\n"), "total_lines": len(lines)})
		return string(b)
	case "patch":
		if !strings.Contains(w.files[a.Path], a.Old) {
			return `{"error":"Could not find old_string in the file"}`
		}
		w.files[a.Path] = strings.Replace(w.files[a.Path], a.Old, a.New, 1)
		b, _ := json.Marshal(map[string]any{"success": true, "diff": "-" + a.Old + "\n+" + a.New})
		return string(b)
	case "search_files":
		return `{"total_count":1,"matches":[{"path":"notes.txt","line":1,"content":"hello"}]}`
	case "terminal":
		if name, ok := strings.CutPrefix(a.Command, "cat "); ok {
			b, _ := json.Marshal(map[string]any{"output": w.files[name], "exit_code": 0})
			return string(b)
		}
		if a.Command == "false" {
			return `{"output":"","exit_code":1}`
		}
		return `{"output":"` + strings.Join(slices.Sorted(maps.Keys(w.files)), `\n`) + `\n","exit_code":0}`
	case "todo":
		for _, t := range a.Todos {
			at := slices.IndexFunc(w.todos, func(o todoItem) bool { return o.ID == t.ID })
			if at < 0 {
				w.todos = append(w.todos, t)
			} else {
				w.todos[at] = t
			}
		}
		b, _ := json.Marshal(map[string]any{"todos": w.todos, "revision": 1})
		return string(b)
	case "clarify":
		return `{"question":"` + a.Question + `","user_response":"green"}`
	case "cronjob":
		return `{"success":true,"job_id":"j_12","message":"Job ` + a.Action + ` done"}`
	case "memory":
		return `{"success":true,"target":"` + a.Target + `","message":"Entry added."}`
	}
	return `{"success":true}`
}

// TestConversations plays whole conversations against golden files. A line that begins with "!" sets what
// the next call's result is, one with "~" what the user says meanwhile.
func TestConversations(t *testing.T) {
	for name, lines := range map[string][]string{
		"files":       {"write hello to notes.txt", "show it", "change hello to bye in it", "show notes.txt", "search the files for hello", "show missing.txt", "change x to y in notes.txt"},
		"steps":       {"write hello to a.txt then run cat a.txt", "write one to b.txt, and show it and run ls", "read a.txt and b.txt", "show missing.txt then run ls then run false", "run false"},
		"todo":        {"add milk to my todo list", "add tea and bread to my todo list", "done with milk", "done with cheese", "what is on my todo?"},
		"cron":        {"every minute tell me the time", "stop it", "thanks"},
		"talk":        {"hello", "what time is it?", "what is (2+3)*4 - 10%3?", "12 / 0", "15% of 80", "echo hi there", "what did I say before?", "who are you?", "sing me an aria in Klingon", "", "count from 3 to 7", "tell me a story"},
		"help":        {"what can you do?"},
		"clarify":     {"ask me which colour I like: red, green or blue"},
		"unknown":     {"![outcome unknown: Herald was interrupted while this call ran. It may or may not have taken effect; it was not run again. Check before you repeat it.]", "run make deploy then run ls", "![not run: the turn was interrupted before this call began]", "run ls"},
		"steer":       {"~and then show a.txt", "write hi to a.txt", "~stop", "write no to a.txt then write never to b.txt", "~no, run ls instead", "write x to c.txt then write never to d.txt", "[Note from the user while you were working: what is 1+1?]"},
		"interrupted": {"count to 500 slowly\n\nwhat is 2+2?", "write a to x.txt\n\nshow x.txt"},
		"errors":      {"![TOOL_ERROR] Tool execution failed: Timeout: the command took longer than 60 s", "run sleep 100", "!", "run ls", "!not JSON at all ``` with a fence", "run ls", `!{"error":"denied: the path is outside of the workspace"}`, "write x to ../y.txt"},
		"attached":    {"[The user sent document \"list.txt\", saved as /media/1/list.txt]\n```\nmilk\n```", "show it", "send it back", "send me '/tmp/a b.txt'", "show it\n[The user sent document \"b.txt\", saved as /media/2/b.txt]", "write x to c.txt and send me c.txt"},
		"chats":       {`!{"mode":"discover","query":"milk","results":[{"session_id":"s1","title":"Shopping","source":"web","last_active":"2026-11-29 18:01","match_message_id":3,"snippet":"buy «milk»"},{"session_id":"s2","source":"telegram","started":"2026-11-28 09:00","current":true,"snippet":"no\nmore «milk»"}],"more_sessions":2}`, "search our chats for milk", `!{"mode":"discover","query":"tea","results":[]}`, "search our chats for tea", `!{"mode":"browse","sessions":[{"session_id":"s1","title":"Shopping","source":"web","last_active":"2026-11-29 18:01","messages":4}]}`, "list my recent chats"},
		"memory":      {"remember that I like tea", "what do you remember?"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{files: map[string]string{}}
			if name == "attached" {
				w.files = map[string]string{"/media/1/list.txt": "milk", "/media/2/b.txt": "bread"}
			}
			tools := offer(t, "write_file", "read_file", "patch", "search_files", "terminal", "todo", "memory", "session_search", "clarify", "cronjob")
			var messages []model.Message
			var out strings.Builder
			for _, line := range lines {
				if rest, ok := strings.CutPrefix(line, "!"); ok {
					w.next = rest
					continue
				}
				if rest, ok := strings.CutPrefix(line, "~"); ok {
					w.note = rest
					continue
				}
				fmt.Fprintf(&out, "USER: %s\n", line)
				messages = append(messages, user(line))
				for step := 0; ; step++ {
					require.Less(t, step, 12, "it calls tools forever")
					resp := ask(t, tools, messages...)
					messages = append(messages, model.Message{Role: "assistant", Text: resp.Text, ToolCalls: resp.ToolCalls})
					if len(resp.ToolCalls) == 0 {
						fmt.Fprintf(&out, "HERALD: %s\n\n", resp.Text)
						break
					}
					for _, c := range resp.ToolCalls {
						text := w.call(c)
						fmt.Fprintf(&out, "CALL %s: %s %s\nRESULT: %s\n", c.ID, c.Name, c.Arguments, text)
						messages = append(messages, model.Message{Role: "tool", ToolCallID: c.ID, ToolName: c.Name, Text: text})
					}
				}
			}
			file := filepath.Join("testdata", name+".golden")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(file, []byte(out.String()), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), out.String())
		})
	}
}

// TestLongInput: a request of a megabyte gets an answer, soon.
func TestLongInput(t *testing.T) {
	resp := ask(t, nil, user(strings.Repeat("garbage \x00 ``` { [ ", 50_000)))
	require.Contains(t, resp.Text, "characters")
}
