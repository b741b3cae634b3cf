package admin_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/admin"
	"herald/gateway/gatewaytest"
	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/telegramtest"
)

// account returns one platform's part of it.
func account(r admin.Health, platform string) admin.AccountHealth {
	for _, a := range r.Accounts {
		if strings.HasPrefix(a.Account, platform+"/") {
			return a
		}
	}
	return admin.AccountHealth{}
}

// P12: a connection that is open and brings nothing is told as deaf, for that account alone, and as ready again when
// it brings something.
func TestHealth_DeafAndBack(t *testing.T) {
	h := gatewaytest.Start(t, gatewaytest.Echo(), func(h *gatewaytest.House) { h.Set["platforms.telegram.poll_timeout"] = "1s" })
	h.Until("all is ready", func() bool { return h.Ready().Ready })
	h.Telegram.Break(telegramtest.Fault{Method: "getUpdates", Trouble: telegramtest.HangBefore, Times: -1})
	h.Until("the account is told as deaf", func() bool { return account(h.Ready(), "telegram").State == "deaf" })
	r := h.Ready()
	require.False(t, r.Ready)
	require.NotEmpty(t, account(r, "telegram").Detail)
	require.True(t, account(r, "web").Ready, "the other account is not touched")
	status, _ := h.Get("/healthz")
	require.Equal(t, http.StatusOK, status, "the process lives all the same")
	h.Telegram.Say(7, "are you there?")
	h.Telegram.Heal()
	h.Await(7, "re: are you there?")
	h.Until("it is ready again", func() bool { return h.Ready().Ready })
}

// P12: a service that is gone is told too.
func TestHealth_ServiceGone(t *testing.T) {
	h := gatewaytest.Start(t, gatewaytest.Echo())
	h.Until("all is ready", func() bool { return h.Ready().Ready })
	h.Telegram.Shut()
	h.Until("the account is not ready", func() bool { return !account(h.Ready(), "telegram").Ready })
	require.NotContains(t, h.Log.String(), gatewaytest.BotToken)
	require.NoError(t, h.Telegram.Open())
	h.Until("it is ready again", func() bool { return h.Ready().Ready })
	h.Telegram.Say(7, "back?")
	h.Await(7, "re: back?")
}

// P13: nothing of a stranger starts anything: no message, command, button or reaction. P7: each is counted, logged,
// and kept with its reason.
func TestHealth_StrangersStartNothing(t *testing.T) {
	stranger := telegramtest.User{ID: 666, FirstName: "Mallory"}
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if text, ok := r.ToolResult(); ok {
			return modeltest.Text("you said " + text)
		}
		if strings.Contains(r.LastUser(), "ask") {
			return modeltest.Calls("c1", "clarify", `{"question":"Which colour?","choices":["red","blue"]}`)
		}
		return modeltest.Text("re: " + r.LastUser())
	})
	h := gatewaytest.Start(t, script, func(h *gatewaytest.House) {
		h.Env = append(h.Env, "HERALD_TELEGRAM_ALLOW_FROM=7001")
		h.Set["platforms.telegram.unauthorized_dm_behavior"] = "ignore"
	})
	h.Write(-55, 0, gatewaytest.Ann, "ask me")
	q := h.Await(-55, "Which colour?")
	asked := len(script.Requests())

	for i, act := range []func(){
		func() { h.Write(666, 0, stranger, "let me in") },
		func() { h.Write(666, 0, stranger, "/status") },
		func() { h.Write(666, 0, stranger, "/stop") },
		func() { h.Write(-55, 0, stranger, "blue, please") },
		func() { h.Write(-55, 0, stranger, "/stop") },
		func() { h.Telegram.Press(-55, q.ID, q.Buttons[1][0].Data, stranger) },
		func() { h.Telegram.React(-55, q.ID, "", "👍", stranger) },
	} {
		act()
		h.Until(fmt.Sprintf("act %d is refused", i), func() bool {
			return strings.Count(h.Log.String(), `"message":"an event was dropped"`) == i+1
		})
	}
	require.Len(t, script.Requests(), asked)
	require.Empty(t, h.Texts(666))
	require.Len(t, h.Texts(-55), 1)
	metrics := h.Metrics()
	require.Contains(t, metrics, `herald_inbound_events_total{kind="click",outcome="dropped",platform="telegram"} 1`)
	require.Contains(t, metrics, `herald_inbound_events_total{kind="reaction",outcome="dropped",platform="telegram"} 1`)
	require.NotContains(t, h.Log.String(), "Mallory", "no person in the log")

	// The question still waits for the one who was asked.
	h.Telegram.Press(-55, q.ID, q.Buttons[0][0].Data, gatewaytest.Ann)
	h.Await(-55, "you said")
	h.Halt()
	n := 0
	for reason, count := range h.Inbox() {
		if strings.HasPrefix(reason, "dropped: not allowed: ") {
			n += count
		}
	}
	require.Equal(t, 7, n)
}

// P7: what is dropped of people who may talk is counted, logged, kept with its reason and, where they wait for an
// answer, told.
func TestHealth_EveryDropIsVisible(t *testing.T) {
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if r.LastUser() == "first" {
			return modeltest.Reply{HangHeader: true}
		}
		return modeltest.Text("re: " + r.LastUser())
	})
	h := gatewaytest.Start(t, script, func(h *gatewaytest.House) {
		h.Set["display.busy_input_mode"] = "queue"
		h.Set["gateway.max_pending_per_session"] = "1"
	})
	h.Telegram.Say(8, "hello")
	hello := h.Await(8, "re: hello")
	h.Telegram.React(8, hello.ID, "", "👍", telegramtest.User{})
	h.Until("the reaction is dropped", func() bool { return strings.Contains(h.Log.String(), "reactions start nothing here") })
	said := h.Telegram.Say(8, "teh")
	h.Await(8, "re: teh")
	h.Telegram.Rewrite(8, said, "the")
	h.Until("the edit is dropped", func() bool { return strings.Contains(h.Log.String(), "before it was edited") })

	h.Telegram.Say(7, "first")
	h.Until("the model is asked", func() bool { return len(script.Requests()) == 3 })
	h.Telegram.Say(7, "second")
	h.Telegram.Say(7, "third")
	h.Await(7, "waits here already")
	metrics := h.Metrics()
	for _, want := range []string{
		`herald_inbound_events_total{kind="reaction",outcome="dropped",platform="telegram"} 1`,
		`herald_inbound_events_total{kind="edited",outcome="dropped",platform="telegram"} 1`,
		`herald_inbound_events_total{kind="message",outcome="queue_full",platform="telegram"} 1`,
	} {
		require.Contains(t, metrics, want)
	}
	require.Contains(t, h.Log.String(), "the queue is full")
	h.Telegram.Say(7, "/stop")
	h.Await(7, "Stopped. ")
	h.Halt()
	inbox := h.Inbox()
	for _, want := range []string{"dropped: reactions start nothing here", "dropped: the message was taken before it was edited",
		"dropped: the queue is full", "dropped: stopped by /stop"} {
		require.Equal(t, 1, inbox[want], "%s in %v", want, inbox)
	}
}
