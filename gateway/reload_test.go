package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/gatewaytest"
	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/telegramtest"
)

// reloaded waits until the log has told of a changed key n times.
func reloaded(h *gatewaytest.House, key string, n int) {
	h.T.Helper()
	h.Until("the log tells of "+key, func() bool { return strings.Count(h.Log.String(), `"key":"`+key+`"`) >= n })
}

// The allowlist is live: who is taken off is silent at once, and who is put on is answered.
func TestReload_Allowlist(t *testing.T) {
	h := gatewaytest.Start(t, gatewaytest.Echo(), func(h *gatewaytest.House) {
		h.Without("HERALD_TELEGRAM_ALLOW_FROM")
		h.Configure("platforms: {telegram: {allow_from: ['7'], unauthorized_dm_behavior: ignore}}")
	})
	h.Telegram.Say(7, "one")
	h.Await(7, "re: one")
	h.Telegram.Say(8, "stranger")

	h.Configure("platforms: {telegram: {allow_from: ['8'], unauthorized_dm_behavior: ignore}}")
	reloaded(h, "platforms.telegram.allow_from", 1)
	h.Telegram.Say(7, "two")
	h.Telegram.Say(8, "hello")
	h.Await(8, "re: hello")
	require.Zero(t, h.Count(8, "stranger"))
	require.Zero(t, h.Count(7, "two"), "the event of chat 7 came in before that of chat 8")
}

// The busy mode is live: it is read when the message comes, in conversations that run already too.
func TestReload_BusyMode(t *testing.T) {
	script := modeltest.NewScript(modeltest.Reply{HangHeader: true})
	h := gatewaytest.Start(t, script)
	h.Telegram.Say(7, "work")
	h.Until("the model is asked", func() bool { return len(h.Model.Requests()) == 1 })
	h.Configure("display: {busy_input_mode: queue, platforms: {telegram: {busy_ack_detail: false}}}")
	reloaded(h, "display.busy_input_mode", 1)
	h.Telegram.Say(7, "next")
	h.Await(7, "that comes next")
	require.Len(t, h.Model.Requests(), 1, "with the mode interrupt the model would have been asked again")
}

// A key of an adapter starts that platform again; a bad file changes nothing; a key that needs a restart waits for it.
func TestReload_AdapterBadFileAndRestart(t *testing.T) {
	h := gatewaytest.Start(t, gatewaytest.Echo(), func(h *gatewaytest.House) { h.Set["platforms.telegram.group_allow_from"] = "*" })
	h.Telegram.AddChat(telegramtest.Chat{ID: -50, Type: "group", Title: "room"})
	h.Telegram.Write(telegramtest.Post{Chat: -50, Text: "all of you"})
	h.Await(-50, "all of you")

	h.Configure("platforms: {telegram: {require_mention: true, free_response_channels: ['-51']}}")
	reloaded(h, "platforms.telegram.require_mention", 1)
	h.Until("the new adapter has come", func() bool { return h.Telegram.Calls("getMe") == 2 })
	h.Telegram.AddChat(telegramtest.Chat{ID: -51, Type: "group", Title: "free room"})
	h.Telegram.Write(telegramtest.Post{Chat: -50, Text: "not for the bot"})
	h.Telegram.Write(telegramtest.Post{Chat: -51, Text: "free"})
	h.Await(-51, "free")
	require.Zero(t, h.Count(-50, "not for the bot"))

	h.Configure("platforms: {telegram: {require_mention: maybe}}")
	h.Until("the log tells of the bad file", func() bool { return strings.Contains(h.Log.String(), "the old one stays in force") })
	h.Telegram.Write(telegramtest.Post{Chat: -50, Text: "still not for the bot"})
	h.Telegram.Write(telegramtest.Post{Chat: -51, Text: "still free"})
	h.Await(-51, "still free")
	require.Zero(t, h.Count(-50, "still not"))

	h.Configure("platforms: {telegram: {require_mention: true, free_response_channels: ['-51']}}\ngroup_sessions_per_user: false\nstreaming: {enabled: false}")
	reloaded(h, "group_sessions_per_user", 1)
	require.Contains(t, h.Log.String(), "needs a restart of Herald")
	h.Telegram.Write(telegramtest.Post{Chat: -51, Text: "of another person", From: telegramtest.User{ID: 77, FirstName: "Bob"}})
	h.Await(-51, "of another person")
	requests := h.Model.Requests()
	require.Len(t, requests[len(requests)-1].Messages, 1, "P6: people of a group stay apart until the restart")
}

// The model is taken from the changed configuration at the next turn, in old conversations too; an unrelated change
// leaves it alone.
func TestReload_Model(t *testing.T) {
	h := gatewaytest.Start(t, gatewaytest.Echo(), func(h *gatewaytest.House) {
		h.Without("HERALD_MODEL")
		h.Configure("model: {name: first}")
	})
	h.Telegram.Say(7, "one")
	h.Await(7, "re: one")
	h.Configure("model: {name: second}")
	h.Until("the model is changed", func() bool { return strings.Contains(h.Log.String(), "the next turns use the model") })
	h.Telegram.Say(7, "two")
	h.Await(7, "re: two")
	requests := h.Model.Requests()
	require.Equal(t, "first", requests[0].Model)
	require.Equal(t, "second", requests[len(requests)-1].Model)
	h.Configure("model: {name: second}\nlog: {level: debug}")
	reloaded(h, "log.level", 1)
	h.Telegram.Say(7, "three")
	h.Await(7, "re: three")
	require.Equal(t, 1, strings.Count(h.Log.String(), "the next turns use the model"))
}
