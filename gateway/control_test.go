package gateway_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/gatewaytest"
	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/telegramtest"
)

// answeredAfter makes somebody write a command and returns how long it took until the bot's answer with part was
// there, by the service's own clock.
func answeredAfter(h *gatewaytest.House, chat int64, command, part string) time.Duration {
	h.T.Helper()
	said := h.Telegram.Say(chat, command)
	var took time.Duration
	h.Until(command+" is answered", func() bool {
		var at time.Time
		for _, a := range h.Telegram.Acts(chat) {
			switch {
			case a.Verb == "say" && a.Message == said:
				at = a.At
			case a.Verb == "send" && !at.IsZero() && strings.Contains(a.Text, part):
				took = a.At.Sub(at)
				return true
			}
		}
		return false
	})
	return took
}

// P14: while a model, a tool and the network hang, /status and /stop are answered. Nothing here ends by itself: a
// command that waited for any of them would never be answered.
func TestControl_AnswersWhileEverythingHangs(t *testing.T) {
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		switch last := r.LastUser(); {
		case strings.Contains(last, "tool"):
			return modeltest.Calls("c1", "terminal", `{"command":"echo begun > begun; sleep 600"}`)
		case strings.Contains(last, "think"):
			return modeltest.Reply{HangHeader: true}
		case strings.Contains(last, "stream"):
			return modeltest.Reply{Text: strings.Repeat("word ", 50), HangBody: true, CutAfter: 10}
		}
		return modeltest.Text("re: " + r.LastUser())
	})
	h := gatewaytest.Start(t, script, func(h *gatewaytest.House) { h.Set["agent.restart_drain_timeout"] = "50ms" })
	chats := map[int64]string{7: "use a tool", 8: "think", 9: "stream"}
	for chat := range chats {
		// The chat's answers hang in the network: the platform takes the request and says nothing.
		h.Telegram.Break(telegramtest.Fault{Method: "sendMessage", Chat: chat, Trouble: telegramtest.HangBefore})
	}
	for chat := range chats {
		h.Telegram.Say(chat, "quick")
	}
	h.Until("the network hangs for all", func() bool { return h.Telegram.Calls("sendMessage") >= len(chats) })
	for chat, text := range chats {
		h.Telegram.Say(chat, text)
	}
	h.Until("the tool runs", func() bool {
		_, err := os.Stat(filepath.Join(h.Home, "workspace", "begun"))
		return err == nil
	})
	h.Until("the models hang", func() bool { return len(script.Requests()) >= 2*len(chats) })
	for chat := range chats {
		status := answeredAfter(h, chat, "/status", "State")
		stop := answeredAfter(h, chat, "/stop", "Stopped.")
		t.Logf("chat %d: /status after %s, /stop after %s", chat, status, stop)
	}
	for chat := range chats {
		require.Zero(t, h.Count(chat, "re: quick"), "the network still hangs")
		answeredAfter(h, chat, "/status", "State: idle")
	}
	h.Telegram.Heal()
}

// P3: what waits behind a turn is dropped by /stop with a word, a reason and a count, and never answered.
func TestControl_StopDropsWhatWaits(t *testing.T) {
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if r.LastUser() == "first" {
			return modeltest.Reply{HangHeader: true}
		}
		return modeltest.Text("re: " + r.LastUser())
	})
	h := gatewaytest.Start(t, script, func(h *gatewaytest.House) { h.Set["display.busy_input_mode"] = "queue" })
	h.Telegram.Say(7, "first")
	h.Until("the model is asked", func() bool { return len(script.Requests()) == 1 })
	h.Telegram.Say(7, "second")
	h.Telegram.Say(7, "third")
	h.UntilStatus(7, "2 ")
	h.Telegram.Say(7, "/stop")
	h.Await(7, "2 messages that waited")
	h.Telegram.Say(7, "fourth")
	h.Await(7, "fourth")
	require.Zero(t, h.Count(7, "re: second")+h.Count(7, "re: third"))
	require.Contains(t, h.Metrics(), `herald_inbound_events_total{kind="message",outcome="dropped",platform="telegram"} 2`)
	h.Halt()
	require.Equal(t, 2, h.Inbox()["dropped: stopped by /stop"])
}
