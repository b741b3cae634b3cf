package show_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/gatewaytest"
	"herald/gateway/model"
	"herald/gateway/model/modeltest"
)

func TestDisplay_ReasoningAndFooter(t *testing.T) {
	script := modeltest.Answering(func(modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Text: "Four.", Reasoning: "two and two\nMEDIA:/etc/passwd", Usage: &model.Usage{Input: 12_800, Output: 3}}
	})
	h := gatewaytest.Start(t, script, gatewaytest.With(`
model: {context: 128000}
display: {show_reasoning: true, reasoning_style: blockquote, runtime_footer: {enabled: true, fields: [model, context_pct, cwd]}}
`))
	h.Telegram.Say(7, "two and two?")
	text := h.Await(7, "Four.").Text
	require.Contains(t, text, "💭 Thinking")
	require.Contains(t, text, "two and two")
	require.NotContains(t, text, "MEDIA", "what a model thinks of sends no files")
	require.True(t, strings.HasSuffix(text, "openai/house-model · 10 % · "+filepath.Join(h.Home, "workspace")), text)

	h.Telegram.Say(7, "again")
	h.Until("the model is asked again", func() bool { return len(h.Model.Requests()) == 2 })
	body := string(h.Model.Requests()[1].Body)
	require.NotContains(t, body, "💭", "the transcript holds the answer alone")
	require.NotContains(t, body, "10 %")
}

// filter_silence_narration: off shows what the model wrote; a silence token is a notice in any case.
func TestDisplay_Silence(t *testing.T) {
	script := func() *modeltest.Script {
		return modeltest.Answering(func(r modeltest.Request) modeltest.Reply { return modeltest.Text(r.LastUser()) })
	}
	h := gatewaytest.Start(t, script())
	h.Telegram.Say(7, "(silent)")
	h.Await(7, "I have no answer to that")
	h = gatewaytest.Start(t, script(), gatewaytest.With("filter_silence_narration: false"))
	h.Telegram.Say(7, "(silent)")
	h.Await(7, "(silent)")
	h.Telegram.Say(7, "NO_REPLY")
	h.Await(7, "I have no answer to that")
}

// tool_progress: log writes calls to a file of their own, redacted, and shows nothing in the chat.
func TestDisplay_ToolProgressInTheLog(t *testing.T) {
	script := modeltest.NewScript(modeltest.Calls("c1", "terminal", `{"command":"echo sk-house-tests-0123456789"}`), modeltest.Text("done"))
	h := gatewaytest.Start(t, script,
		gatewaytest.With("display: {tool_progress: log}"))
	h.Telegram.Say(7, "go")
	h.Await(7, "done")
	require.Len(t, h.Texts(7), 1)
	data, err := os.ReadFile(filepath.Join(h.Home, "logs", "tool_calls.log"))
	require.NoError(t, err)
	require.Contains(t, string(data), `"tool":"terminal"`)
	require.Contains(t, string(data), `"chat":"telegram:7"`)
	require.Contains(t, string(data), `"exit":"ok"`)
	require.NotContains(t, string(data), "sk-house-tests-0123456789")
}

func TestDisplay_RememberedAndSeparateBubbles(t *testing.T) {
	script := modeltest.NewScript(modeltest.Calls("c1", "memory", `{"action":"add","target":"user","content":"likes moths"}`),
		modeltest.Calls("c2", "read_file", `{"path":"nothing.txt"}`), modeltest.Text("kept"))
	h := gatewaytest.Start(t, script,
		gatewaytest.With("display: {tool_progress: all, tool_progress_grouping: separate}\nstreaming: {edit_interval: 50ms}"))
	h.Telegram.Say(7, "I like moths")
	require.Contains(t, h.Await(7, "kept").Text, "💾 Remembered: likes moths")
	for _, text := range h.Texts(7) {
		require.False(t, strings.Contains(text, "memory") && strings.Contains(text, "read_file"), "each call has a bubble of its own: %q", text)
	}
}

// P4: an old preview is taken off before its answer is sent as a new message, so that one copy is visible.
func TestStreaming_FreshFinal(t *testing.T) {
	text := strings.Repeat("slow words ", 12) + "the end"
	script := modeltest.NewScript(modeltest.Reply{Text: text, Pace: 30 * time.Millisecond})
	h := gatewaytest.Start(t, script,
		gatewaytest.With("streaming: {edit_interval: 50ms, buffer_threshold: 1, fresh_final_after_seconds: 100ms}"))
	h.Telegram.Say(7, "go")
	h.Await(7, "the end")
	h.Until("the answer stands alone and has no cursor", func() bool {
		texts := h.Texts(7)
		return len(texts) == 1 && strings.Contains(texts[0], "the end") && !strings.Contains(texts[0], "▉")
	})
	verbs := map[string]int{}
	for _, a := range h.Telegram.Acts(7) {
		verbs[a.Verb]++
	}
	require.Equal(t, 1, verbs["delete"])
	require.Equal(t, 2, verbs["send"])
}
