package gateway_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/telegramtest"
)

// configure writes the house's config.yaml as an editor does.
func (h *house) configure(text string) {
	h.t.Helper()
	file := filepath.Join(h.home, "config.yaml")
	require.NoError(h.t, os.WriteFile(file+".new", []byte(text), 0o600))
	require.NoError(h.t, os.Rename(file+".new", file))
}

// without takes a variable out of the house's environment, because it would win over config.yaml.
func (h *house) without(name string) {
	kept := h.env[:0]
	for _, kv := range h.env {
		if !strings.HasPrefix(kv, name+"=") {
			kept = append(kept, kv)
		}
	}
	h.env = kept
}

// reloaded waits until the log has told of a changed key n times.
func (h *house) reloaded(key string, n int) {
	h.t.Helper()
	h.until("the log tells of "+key, func() bool { return strings.Count(h.log.String(), `"key":"`+key+`"`) >= n })
}

// The allowlist is live: who is taken off is silent at once, and who is put on is answered.
func TestReload_Allowlist(t *testing.T) {
	h := start(t, echo(), func(h *house) {
		h.without("HERALD_TELEGRAM_ALLOW_FROM")
		h.configure("platforms: {telegram: {allow_from: ['7'], unauthorized_dm_behavior: ignore}}")
	})
	h.tg.Say(7, "one")
	h.await(7, "re: one")
	h.tg.Say(8, "stranger")

	h.configure("platforms: {telegram: {allow_from: ['8'], unauthorized_dm_behavior: ignore}}")
	h.reloaded("platforms.telegram.allow_from", 1)
	h.tg.Say(7, "two")
	h.tg.Say(8, "hello")
	h.await(8, "re: hello")
	require.Zero(t, h.count(8, "stranger"))
	require.Zero(t, h.count(7, "two"), "the event of chat 7 came in before that of chat 8")
}

// The busy mode is live: it is read when the message comes, in conversations that run already too.
func TestReload_BusyMode(t *testing.T) {
	script := modeltest.NewScript(modeltest.Reply{HangHeader: true})
	h := start(t, script)
	h.tg.Say(7, "work")
	h.until("the model is asked", func() bool { return len(h.llm.Requests()) == 1 })
	h.configure("display: {busy_input_mode: queue, platforms: {telegram: {busy_ack_detail: false}}}")
	h.reloaded("display.busy_input_mode", 1)
	h.tg.Say(7, "next")
	h.await(7, "that comes next")
	require.Len(t, h.llm.Requests(), 1, "with the mode interrupt the model would have been asked again")
}

// A key of an adapter starts that platform anew; a bad file changes nothing; a key that needs a restart waits for it.
func TestReload_AdapterBadFileAndRestart(t *testing.T) {
	h := start(t, echo(), func(h *house) { h.set["platforms.telegram.group_allow_from"] = "*" })
	h.tg.AddChat(telegramtest.Chat{ID: -50, Type: "group", Title: "room"})
	h.tg.Write(telegramtest.Post{Chat: -50, Text: "all of you"})
	h.await(-50, "all of you")

	h.configure("platforms: {telegram: {require_mention: true, free_response_channels: ['-51']}}")
	h.reloaded("platforms.telegram.require_mention", 1)
	h.until("the new adapter has come", func() bool { return h.tg.Calls("getMe") == 2 })
	h.tg.AddChat(telegramtest.Chat{ID: -51, Type: "group", Title: "free room"})
	h.tg.Write(telegramtest.Post{Chat: -50, Text: "not for the bot"})
	h.tg.Write(telegramtest.Post{Chat: -51, Text: "free"})
	h.await(-51, "free")
	require.Zero(t, h.count(-50, "not for the bot"))

	h.configure("platforms: {telegram: {require_mention: maybe}}")
	h.until("the log tells of the bad file", func() bool { return strings.Contains(h.log.String(), "the old one stays in force") })
	h.tg.Write(telegramtest.Post{Chat: -50, Text: "still not for the bot"})
	h.tg.Write(telegramtest.Post{Chat: -51, Text: "still free"})
	h.await(-51, "still free")
	require.Zero(t, h.count(-50, "still not"))

	h.configure("platforms: {telegram: {require_mention: true, free_response_channels: ['-51']}}\ngroup_sessions_per_user: false\nstreaming: {enabled: false}")
	h.reloaded("group_sessions_per_user", 1)
	require.Contains(t, h.log.String(), "needs a restart of Herald")
	h.tg.Write(telegramtest.Post{Chat: -51, Text: "of another person", From: telegramtest.User{ID: 77, FirstName: "Bob"}})
	h.await(-51, "of another person")
	requests := h.llm.Requests()
	require.Len(t, requests[len(requests)-1].Messages, 1, "P6: people of a group stay apart until the restart")
}

// The model is taken from the changed configuration at the next turn, in old conversations too; an unrelated change
// leaves it alone.
func TestReload_Model(t *testing.T) {
	h := start(t, echo(), func(h *house) {
		h.without("HERALD_MODEL")
		h.configure("model: {name: first}")
	})
	h.tg.Say(7, "one")
	h.await(7, "re: one")
	h.configure("model: {name: second}")
	h.until("the model is changed", func() bool { return strings.Contains(h.log.String(), "the next turns use the model") })
	h.tg.Say(7, "two")
	h.await(7, "re: two")
	requests := h.llm.Requests()
	require.Equal(t, "first", requests[0].Model)
	require.Equal(t, "second", requests[len(requests)-1].Model)
	h.configure("model: {name: second}\nlog: {level: debug}")
	h.reloaded("log.level", 1)
	h.tg.Say(7, "three")
	h.await(7, "re: three")
	require.Equal(t, 1, strings.Count(h.log.String(), "the next turns use the model"))
}
