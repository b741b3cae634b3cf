package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"herald/gateway/agent"
	"herald/gateway/model"
	"herald/platforms"
	"herald/sessions"
)

func user(text string) sessions.Message {
	return sessions.Message{Role: sessions.User, Content: text, Active: true}
}

func answer(text string, calls ...string) sessions.Message {
	row := sessions.Message{Role: sessions.Assistant, Content: text, Active: true}
	for _, id := range calls {
		row.ToolCalls = append(row.ToolCalls, sessions.ToolCall{ID: id, Name: "look", Arguments: "{}"})
	}
	return row
}

func result(id, text string) sessions.Message {
	return sessions.Message{Role: sessions.Tool, ToolCallID: id, ToolName: "look", Content: text, Active: true}
}

func of(kind sessions.Kind, row sessions.Message) sessions.Message {
	row.Kind = kind
	return row
}

// script writes messages as lines: the role's first letter, calls in brackets, the text.
func script(messages []model.Message) []string {
	var out []string
	for _, m := range messages {
		line := m.Role[:1]
		for _, c := range m.ToolCalls {
			line += "[" + c.ID + "]"
		}
		if m.Role == "tool" {
			line += "(" + m.ToolCallID + ")"
		}
		out = append(out, line+": "+m.Text)
	}
	return out
}

func TestConversation(t *testing.T) {
	for _, c := range []struct {
		name string
		rows []sessions.Message
		want []string
	}{
		{"plain talk", []sessions.Message{user("hi"), answer("hello"), user("bye")}, []string{"u: hi", "a: hello", "u: bye"}},
		{"adjacent people are one", []sessions.Message{user("a"), user("b")}, []string{"u: a\n\nb"}},
		{"adjacent answers are one", []sessions.Message{user("a"), of(sessions.KindPartial, answer("I thi")), answer("I know")},
			[]string{"u: a", "a: I thi\n\nI know"}},
		{"results come behind their answer in call order", []sessions.Message{user("go"), answer("", "x", "y"), result("y", "2"), result("x", "1")},
			[]string{"u: go", "a[x][y]: ", "t(x): 1", "t(y): 2"}},
		{"a missing result is unknown", []sessions.Message{user("go"), answer("", "x", "y"), result("x", "1"), user("and?")},
			[]string{"u: go", "a[x][y]: ", "t(x): 1", "t(y): " + agent.UnknownOutcome, "u: and?"}},
		{"an empty result is not empty", []sessions.Message{user("go"), answer("", "x"), result("x", "")},
			[]string{"u: go", "a[x]: ", "t(x): (no output)"}},
		{"orphan results are left out", []sessions.Message{result("old", "?"), user("go"), result("no", "?"), answer("done")}, []string{"u: go", "a: done"}},
		{"a provider counts its calls from zero in each answer", []sessions.Message{user("go"), answer("", "0"), result("0", "first"), answer("", "0"), result("0", "second")},
			[]string{"u: go", "a[0]: ", "t(0): first", "a[0]: ", "t(0): second"}},
		{"a missing result does not take a later one of the same id", []sessions.Message{user("go"), answer("", "0"), answer("", "0"), result("0", "second")},
			[]string{"u: go", "a[0]: ", "t(0): " + agent.UnknownOutcome, "a[0]: ", "t(0): second"}},
		{"a steer goes behind the newest result", []sessions.Message{user("go"), answer("", "x"), result("x", "1"), of(sessions.KindSteer, user("in red"))},
			[]string{"u: go", "a[x]: ", "t(x): 1\n\n[Note from the user while you were working: in red]"}},
		{"a steer without a result is a message", []sessions.Message{of(sessions.KindSteer, user("in red"))},
			[]string{"u: [Note from the user while you were working: in red]"}},
		{"what was heard", []sessions.Message{{Role: sessions.User, Kind: sessions.KindObserved, Sender: "Bo", Content: "lunch?"}, {Role: sessions.User, Sender: "Al", Content: "where?"}},
			[]string{"u: [Heard in the room, not said to you] Bo: lunch?\n\nAl: where?"}},
		{"what was heard between a call and its result", []sessions.Message{user("go"), answer("", "x"), of(sessions.KindObserved, user("psst")), result("x", "1")},
			[]string{"u: go", "a[x]: ", "t(x): 1", "u: [Heard in the room, not said to you] : psst"}},
		{"notices are for people alone", []sessions.Message{user("go"), of(sessions.KindNotice, answer("restarted")), answer("done")}, []string{"u: go", "a: done"}},
		{"a mirrored message joins the answer before it", []sessions.Message{user("go"), answer("done"), of(sessions.KindMirror, answer("it is noon"))},
			[]string{"u: go", "a: done\n\nit is noon"}},
		{"a job's output is said to the model", []sessions.Message{user("go"), answer("done"), of(sessions.KindMirror, user("news")), user("which?")},
			[]string{"u: go", "a: done", "u: news\n\n[End of the delivery]\n\nwhich?"}},
		{"a job's output between a call and its result", []sessions.Message{user("go"), answer("", "x"), of(sessions.KindMirror, user("news")), result("x", "1"), answer("done")},
			[]string{"u: go", "a[x]: ", "t(x): 1", "u: news", "a: done"}},
		{"a steer behind a job's output", []sessions.Message{user("go"), answer("", "x"), result("x", "1"), of(sessions.KindMirror, user("news")), of(sessions.KindSteer, user("in red"))},
			[]string{"u: go", "a[x]: ", "t(x): 1", "u: news\n\n[Note from the user while you were working: in red]"}},
		{"a summary begins the rest", []sessions.Message{of(sessions.KindSummary, user("they talked")), user("go")}, []string{"u: they talked\n\ngo"}},
		{"an empty answer is none", []sessions.Message{user("go"), answer(""), user("so?")}, []string{"u: go\n\nso?"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, script(agent.Conversation(c.rows, 0)))
			require.Equal(t, c.want, script(model.Paired(agent.Conversation(c.rows, 0))), "no provider has anything to mend")
		})
	}
}

// Pictures cost much: only those of the running turn are sent.
func TestConversation_ShowsPicturesOfTheRunningTurnOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cat.png")
	require.NoError(t, os.WriteFile(path, []byte("png"), 0o600))
	picture := func(turn sessions.TurnID, path string) sessions.Message {
		row := user("look")
		row.Turn, row.Attachments = turn, []platforms.Attachment{{Kind: platforms.Image, MIME: "image/png", Path: path},
			{Kind: platforms.Document, Path: path}}
		return row
	}
	rows := []sessions.Message{picture(1, path), answer("a cat"), picture(2, path), picture(2, path+".gone")}
	out := agent.Conversation(rows, 2)
	require.Empty(t, out[0].Images)
	require.Equal(t, []model.Image{{MIME: "image/png", Data: []byte("png")}}, out[2].Images)
	require.Empty(t, agent.Conversation(rows, 0)[2].Images)
}

// rowsOf draws a transcript as crashes, mirrors and rooms may leave it: also with holes and orphans.
func rowsOf(t *rapid.T) []sessions.Message {
	ids := []string{"0", "1", "call_a", "call_b"}
	var rows []sessions.Message
	for i := range rapid.IntRange(0, 25).Draw(t, "rows") {
		var row sessions.Message
		text := rapid.SampledFrom([]string{"", "text", "more text"}).Draw(t, "text")
		switch rapid.IntRange(0, 5).Draw(t, "who") {
		case 0, 1:
			row = user(text)
			row.Kind = rapid.SampledFrom([]sessions.Kind{"", "", sessions.KindSteer, sessions.KindObserved, sessions.KindSummary,
				sessions.KindMirror}).Draw(t, "kind")
		case 2:
			row = answer(text)
			row.Kind = rapid.SampledFrom([]sessions.Kind{"", sessions.KindMirror, sessions.KindPartial, sessions.KindNotice}).Draw(t, "kind")
		case 3:
			row = answer(text, rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 1, 3, rapid.ID[string]).Draw(t, "calls")...)
		default:
			row = result(rapid.SampledFrom(ids).Draw(t, "result"), text)
		}
		row.ID = sessions.RowID(i + 1)
		rows = append(rows, row)
	}
	return rows
}

// Whatever a transcript looks like, providers accept what is made of it, and no call or word of a person is lost.
func TestConversation_AlwaysAlternates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rowsOf(t)
		out := agent.Conversation(rows, 0)
		calls := 0
		for i := 0; i < len(out); i++ {
			m := out[i]
			require.NotEqual(t, "tool", m.Role, "a result without its call at %d of %q", i, script(out))
			if i > 0 && out[i-1].Role == m.Role {
				require.Truef(t, m.Role == "assistant" && len(m.ToolCalls) > 0, "two of %s in a row at %d of %q", m.Role, i, script(out))
			}
			for _, c := range m.ToolCalls {
				i++
				require.Less(t, i, len(out))
				require.Equal(t, "tool", out[i].Role)
				require.Equal(t, c.ID, out[i].ToolCallID)
				require.NotEmpty(t, out[i].Text)
				calls++
			}
		}
		want, said, heard := 0, 0, 0
		for _, row := range rows {
			want += len(row.ToolCalls)
			if row.Role == sessions.User {
				said += strings.Count(row.Content, "text")
			}
		}
		for _, m := range out {
			if m.Role == "user" {
				heard += strings.Count(m.Text, "text")
			} else if m.Role == "tool" {
				_, note, _ := strings.Cut(m.Text, "[Note from the user")
				heard += strings.Count(note, "text")
			}
		}
		require.Equal(t, want, calls)
		require.Equal(t, said, heard)
	})
}
