package gateway_test

import (
	"fmt"
	"net"
	"net/http"
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

// with starts the house with a config.yaml.
func with(text string) func(*gatewaytest.House) {
	return func(h *gatewaytest.House) { h.Configure(text) }
}

func TestDisplay_ReasoningAndFooter(t *testing.T) {
	script := modeltest.Answering(func(modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Text: "Four.", Reasoning: "two and two\nMEDIA:/etc/passwd", Usage: &model.Usage{Input: 12_800, Output: 3}}
	})
	h := gatewaytest.Start(t, script, with(`
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
	h = gatewaytest.Start(t, script(), with("filter_silence_narration: false"))
	h.Telegram.Say(7, "(silent)")
	h.Await(7, "(silent)")
	h.Telegram.Say(7, "NO_REPLY")
	h.Await(7, "I have no answer to that")
}

// tool_progress: log writes calls to a file of their own, redacted, and shows nothing in the chat.
func TestDisplay_ToolProgressInTheLog(t *testing.T) {
	script := modeltest.NewScript(modeltest.Calls("c1", "terminal", `{"command":"echo sk-house-tests-0123456789"}`), modeltest.Text("done"))
	h := gatewaytest.Start(t, script,
		with("display: {tool_progress: log}"))
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
		with("display: {tool_progress: all, tool_progress_grouping: separate}\nstreaming: {edit_interval: 50ms}"))
	h.Telegram.Say(7, "I like moths")
	require.Contains(t, h.Await(7, "kept").Text, "💾 Remembered: likes moths")
	for _, text := range h.Texts(7) {
		require.False(t, strings.Contains(text, "memory") && strings.Contains(text, "read_file"), "each call has a bubble of its own: %q", text)
	}
}

func TestChannels_PromptsAndOverrides(t *testing.T) {
	h := gatewaytest.Start(t, gatewaytest.Echo(), with(`
platforms:
  telegram:
    channel_prompts: {'7': Speak as a pirate., '8': Speak as a poet.}
    channel_overrides: {'8': {model: other-model, system_prompt: You are a lighthouse.}}
`))
	h.Telegram.Say(7, "hello")
	h.Await(7, "re: hello")
	h.Telegram.Say(8, "hello")
	h.Await(8, "re: hello")
	h.Telegram.Say(9, "hello")
	h.Await(9, "re: hello")
	requests := h.Model.Requests()
	require.Contains(t, string(requests[0].Body), "Speak as a pirate.")
	require.Contains(t, string(requests[0].Body), "You are Herald")
	require.Equal(t, "house-model", requests[0].Model)
	require.Equal(t, "other-model", requests[1].Model)
	require.Contains(t, string(requests[1].Body), "You are a lighthouse.")
	require.Contains(t, string(requests[1].Body), "Speak as a poet.")
	require.NotContains(t, string(requests[1].Body), "You are Herald")
	require.NotContains(t, string(requests[2].Body), "Speak as")
	h.Halt()
	data, err := os.ReadFile(filepath.Join(h.Home, "herald.db"))
	require.NoError(t, err)
	require.NotContains(t, string(data), "lighthouse", "prompts of channels are never stored")
	require.NotContains(t, string(data), "pirate")
}

// P10: a home channel hears of a restart, not of the first start.
func TestHomeChannel_RestartIsAnnounced(t *testing.T) {
	h := gatewaytest.Start(t, gatewaytest.Echo(), with("platforms: {telegram: {home_channel: '7'}}"))
	h.Telegram.Say(7, "hello")
	h.Await(7, "re: hello")
	require.Zero(t, h.Count(7, "running again"))
	h.Halt()
	later := time.Now().Add(2 * time.Minute)
	h.Now = func() time.Time { return later }
	h.Run()
	h.Await(7, "Herald is running again")
	h.Halt()
	h.Run()
	h.Telegram.Say(7, "once more")
	h.Await(7, "re: once more")
	require.Equal(t, 1, h.Count(7, "running again"), "a daemon that restarts again and again does not fill the chat")
}

// human_delay: the parts of a long answer come one after the other, in order.
func TestDelivery_HumanDelay(t *testing.T) {
	long := strings.Repeat("word ", 1800)
	h := gatewaytest.Start(t, modeltest.NewScript(modeltest.Text(long)),
		with("streaming: {enabled: false}\nhuman_delay: {mode: custom, min_ms: 300, max_ms: 300}"))
	h.Telegram.Say(7, "tell me")
	h.Await(7, "(3/3)")
	acts, parts := h.Telegram.Acts(7), 0
	for _, a := range acts {
		if a.Verb == "send" {
			require.GreaterOrEqual(t, a.At.Sub(acts[0].At), time.Duration(parts)*300*time.Millisecond, "part %d", parts+1)
			parts++
		}
	}
	require.Equal(t, 3, parts)
}

// A model that repeats a failing call is told so, and stopped with a closing answer.
func TestGuardrails_EndARepetition(t *testing.T) {
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if strings.Contains(string(r.Body), "Call no tool") {
			return modeltest.Text("I could not read it.")
		}
		return modeltest.Calls("", "read_file", `{"path":"nothing.txt"}`)
	})
	h := gatewaytest.Start(t, script)
	h.Telegram.Say(7, "read it")
	text := h.Await(7, "I could not read it.").Text
	require.Contains(t, text, "I stopped: read_file kept failing in the same way.")
	requests := h.Model.Requests()
	require.Len(t, requests, 6, "five calls and the closing answer")
	require.NotContains(t, string(requests[1].Body), "This very call of read_file has failed")
	require.Contains(t, string(requests[2].Body), "This very call of read_file has failed 2 times")
}

// P4: an old preview is taken off before its answer is sent as a new message, so that one copy is visible.
func TestStreaming_FreshFinal(t *testing.T) {
	text := strings.Repeat("slow words ", 12) + "the end"
	script := modeltest.NewScript(modeltest.Reply{Text: text, Pace: 30 * time.Millisecond})
	h := gatewaytest.Start(t, script, with("streaming: {edit_interval: 50ms, buffer_threshold: 1, fresh_final_after_seconds: 100ms}"))
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

// webhook_port: the webhook has a listener of its own, and the common one does not serve it.
func TestTelegram_WebhookPort(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	h := gatewaytest.Start(t, gatewaytest.Echo(), func(h *gatewaytest.House) {
		h.Env = append(h.Env, "TELEGRAM_WEBHOOK_SECRET=a-secret-of-the-webhook")
		h.Configure(fmt.Sprintf("platforms: {telegram: {webhook_url: 'http://127.0.0.1:%d/webhooks/telegram', webhook_port: %d}}", port, port))
	})
	h.Telegram.Say(7, "hello")
	h.Await(7, "re: hello")
	resp, err := http.Post(h.Gateway.URL()+"webhooks/telegram", "application/json", strings.NewReader("{}"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, []int{http.StatusNotFound, http.StatusMethodNotAllowed}, resp.StatusCode)
	h.Halt()
	again, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err, "the port is free again")
	require.NoError(t, again.Close())
}
