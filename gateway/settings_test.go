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
	"herald/gateway/model/modeltest"
)

func TestChannels_PromptsAndOverrides(t *testing.T) {
	h := gatewaytest.Start(t, gatewaytest.Echo(), gatewaytest.With(`
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
	h := gatewaytest.Start(t, gatewaytest.Echo(), gatewaytest.With("platforms: {telegram: {home_channel: '7'}}"))
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
		gatewaytest.With("streaming: {enabled: false}\nhuman_delay: {mode: custom, min_ms: 300, max_ms: 300}"))
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
