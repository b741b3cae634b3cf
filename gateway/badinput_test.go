package gateway_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/config"
	"herald/gateway/gatewaytest"
	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/telegramtest"
)

// A model that misbehaves costs one answer and is told in words; the next message is answered.
func TestBadModel_CostsOneAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		reply modeltest.Reply
		want  string
	}{
		"empty":                {modeltest.Reply{}, "⚠️"},
		"white space":          {modeltest.Text(" \n\t "), "⚠️"},
		"half a stream":        {modeltest.Reply{Text: strings.Repeat("half ", 40), Cut: true, CutAfter: 5}, "⚠️"},
		"garbage as a stream":  {modeltest.Garbage("text/event-stream", "data: {\"choices\": [[[\n\ndata: \x00\xff\n\n"), "made no sense"},
		"JSON of another kind": {modeltest.Garbage("application/json", `{"hello":["world"]}`), "⚠️"},
		"nothing at all":       {modeltest.Garbage("text/event-stream", ""), "⚠️"},
	} {
		t.Run(name, func(t *testing.T) {
			script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
				if strings.HasSuffix(r.LastUser(), "bad") {
					return c.reply
				}
				return modeltest.Text("re: " + r.LastUser())
			})
			h := gatewaytest.Start(t, script, func(h *gatewaytest.House) {
				h.Set["agent.api_max_retries"] = "0"
				h.Set["agent.empty_max_retries"] = "1"
			})
			h.Telegram.Say(7, "bad")
			h.Await(7, c.want)
			h.Telegram.Say(7, "good")
			h.Await(7, "good")
			require.NotContains(t, h.Log.String(), "panic")
		})
	}
}

// Tools that a model makes up, and arguments that are none, are answered to the model, and the turn goes on.
func TestBadModel_ToolCalls(t *testing.T) {
	for name, call := range map[string]modeltest.Reply{
		"no such tool":    modeltest.Calls("c1", "fly_to_the_moon", `{}`),
		"no JSON":         modeltest.Calls("c1", "read_file", `{"path": `),
		"another type":    modeltest.Calls("c1", "read_file", `[1,2]`),
		"missing":         modeltest.Calls("c1", "read_file", `{}`),
		"huge":            modeltest.Calls("c1", "read_file", `{"path":"`+strings.Repeat("x", 100_000)+`"}`),
		"climbing":        modeltest.Calls("c1", "read_file", `{"path":"../herald.db"}`),
		"the secret file": modeltest.Calls("c1", "read_file", `{"path":"../.env"}`),
	} {
		t.Run(name, func(t *testing.T) {
			script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
				if text, ok := r.ToolResult(); ok {
					require.NotContains(t, text, "SQLite format")
					require.NotContains(t, text, "hidden-value")
					return modeltest.Text("told")
				}
				return call
			})
			h := gatewaytest.Start(t, script, func(h *gatewaytest.House) {
				require.NoError(t, os.WriteFile(filepath.Join(h.Home, ".env"), []byte("MY_OWN_KEY=hidden-value\n"), 0o600))
			})
			h.Telegram.Say(7, "go")
			h.Await(7, "told")
		})
	}
}

// An answer of a megabyte arrives whole, in order, in messages that the platform takes.
func TestBadModel_HugeAnswer(t *testing.T) {
	t.Run("at once", func(t *testing.T) { hugeAnswer(t, 1<<20, true) })
	t.Run("streamed", func(t *testing.T) { hugeAnswer(t, 64<<10, false) })
}

func hugeAnswer(t *testing.T, size int, atOnce bool) {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "w%06d ", i)
	}
	text := strings.TrimSpace(b.String())
	answer := modeltest.Reply{Text: text, NoStream: atOnce}
	h := gatewaytest.Start(t, modeltest.Answering(func(modeltest.Request) modeltest.Reply { return answer }))
	h.Telegram.Say(7, "tell me everything")
	last := text[strings.LastIndex(text, " ")+1:]
	h.UntilWithin(2*time.Minute, "the last words are there", func() bool {
		shown := h.Texts(7)
		return len(shown) > 0 && strings.Contains(shown[len(shown)-1], last)
	})
	var words []string
	for i, part := range h.Texts(7) {
		require.True(t, strings.HasSuffix(part, fmt.Sprintf("(%d/%d)", i+1, len(h.Texts(7)))), "parts are numbered")
		fields := strings.Fields(part)
		words = append(words, fields[:len(fields)-1]...)
	}
	require.Equal(t, strings.Fields(text), words)
	require.Empty(t, h.Telegram.Violations())
}

// A text over the limit is refused with a word, counted and kept with its reason.
func TestBadInput_LongText(t *testing.T) {
	h := gatewaytest.Start(t, gatewaytest.Echo(), func(h *gatewaytest.House) { h.Set["gateway.max_message_bytes"] = "4KiB" })
	h.Telegram.Say(7, strings.Repeat("é", 3000))
	h.Await(7, "4.0 KiB")
	h.Telegram.Say(7, "short")
	h.Await(7, "re: short")
	require.Len(t, h.Model.Requests(), 1)
	require.Contains(t, h.Metrics(), `herald_inbound_events_total{kind="message",outcome="too_long",platform="telegram"} 1`)
	h.Halt()
	require.Equal(t, 1, h.Inbox()["dropped: the text is too long"])
}

// An update of 30 MB in a poll blocks nobody: it is refused with a word.
func TestBadInput_HugePoll(t *testing.T) {
	h := gatewaytest.Start(t, gatewaytest.Echo())
	h.Telegram.Say(7, "before")
	h.Await(7, "re: before")
	body, err := json.Marshal(map[string]any{"message_id": 5000, "date": 1, "text": strings.Repeat("moth ", 6<<20),
		"chat": map[string]any{"id": 7, "type": "private", "first_name": "Pat"}, "from": map[string]any{"id": 7, "first_name": "Pat"}})
	require.NoError(t, err)
	h.Telegram.Push("message", body)
	h.Telegram.Say(7, "after")
	h.UntilWithin(2*time.Minute, "the next one is answered", func() bool { return h.Count(7, "re: after") == 1 })
	h.Await(7, "30.0 MiB")
	require.Len(t, h.Model.Requests(), 2, "the huge one reaches no model")
}

// A webhook body of 30 MB is refused, and the next one is taken.
func TestBadInput_HugeWebhook(t *testing.T) {
	h := gatewaytest.Start(t, gatewaytest.Echo(), func(h *gatewaytest.House) {
		h.Env = append(h.Env, "TELEGRAM_WEBHOOK_URL=https://bot.example.com/webhooks/telegram", "TELEGRAM_WEBHOOK_SECRET=a-secret-of-the-house-tests",
			"TELEGRAM_WEBHOOK_PORT=0")
	})
	post := func(id int, text, secret string) int {
		body := fmt.Sprintf(`{"update_id":%d,"message":{"message_id":%d,"date":1,"text":%q,"chat":{"id":7,"type":"private","first_name":"Pat"},"from":{"id":7,"first_name":"Pat"}}}`, id, id, text)
		req, err := http.NewRequest(http.MethodPost, strings.TrimSuffix(h.Gateway.URL(), "/")+"/webhooks/telegram", strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err != nil {
			return 0 // the connection may be cut before the body is through
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	const secret = "a-secret-of-the-house-tests"
	h.Telegram.AddChat(telegramtest.Chat{ID: 7})
	h.Until("the webhook is open", func() bool { return post(1, "first", secret) == http.StatusOK })
	h.Await(7, "re: first")
	require.Equal(t, http.StatusUnauthorized, post(2, "forged", "another"))
	require.Contains(t, []int{0, http.StatusRequestEntityTooLarge}, post(3, strings.Repeat("moth ", 6<<20), secret))
	require.Equal(t, http.StatusOK, post(4, "second", secret))
	h.Await(7, "re: second")
	require.Zero(t, h.Count(7, "forged")+h.Count(7, "moth"))
}

// A file's name can't lead out of the media folder.
func TestBadInput_FileNameThatClimbs(t *testing.T) {
	h := gatewaytest.Start(t, gatewaytest.Echo())
	h.Telegram.Write(telegramtest.Post{Chat: 7, Text: "look", Files: []telegramtest.File{
		{Kind: "document", Name: "../../../../../../../../tmp/herald-climbed-too.txt", MIME: "text/plain", Body: []byte("I climb")}}})
	m := h.Await(7, "re: look")
	require.NoFileExists(t, "/tmp/herald-climbed-too.txt")
	require.NotContains(t, m.Text, "../")
	require.Contains(t, m.Text, "I climb", "a small text file is shown to the model")
	media, found := config.PathsFor(h.Home).Media, 0
	require.NoError(t, filepath.WalkDir(h.Home, func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.Contains(path, "herald-climbed") {
			require.True(t, strings.HasPrefix(path, media+"/"), path)
			found++
		}
		return err
	}))
	require.Equal(t, 1, found)
}

// A file over the limit is named with the reason, and the message is answered all the same.
func TestBadInput_FileOverTheLimit(t *testing.T) {
	h := gatewaytest.Start(t, gatewaytest.Echo(), func(h *gatewaytest.House) { h.Set["gateway.max_inbound_media_bytes"] = "1KiB" })
	h.Telegram.Write(telegramtest.Post{Chat: 7, Text: "look", Files: []telegramtest.File{
		{Kind: "document", Name: "big.txt", MIME: "text/plain", Body: []byte(strings.Repeat("x", 5000))}}})
	h.Await(7, "re: look")
	notice := h.Await(7, "big.txt")
	require.Contains(t, notice.Text, "⚠️")
	require.Contains(t, notice.Text, "1", "the limit is told")
	t.Log(notice.Text)
}
