package ask_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/gatewaytest"
	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/telegramtest"
)

func TestClarify_AsksWithButtonsAndTakesTheAnswer(t *testing.T) {
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if text, ok := r.ToolResult(); ok {
			return modeltest.Text("you said " + text)
		}
		return modeltest.Calls("c1", "clarify", `{"question":"Which colour?","choices":["red","blue"]}`)
	})
	h := gatewaytest.Start(t, script)
	h.Telegram.Say(7, "ask me")
	q := h.Await(7, "Which colour?")
	require.Len(t, q.Buttons, 2)
	_, ok := h.Telegram.Press(7, q.ID, q.Buttons[1][0].Data, telegramtest.User{ID: 7})
	require.True(t, ok)
	m := h.Await(7, "you said")
	require.Contains(t, m.Text, "blue")
	h.Await(7, "Answer: blue")
	h.Telegram.Say(7, "and again")
	h.Until("the second question stands", func() bool {
		for _, m := range h.Telegram.Visible(7) {
			if m.Bot && len(m.Buttons) > 0 && m.ID > q.ID {
				return true
			}
		}
		return false
	})
	h.Telegram.Say(7, "green, please")
	h.Until("the written answer counts", func() bool { return h.Count(7, "green, please") > 0 })
}

// The question survives a restart: it is put once and its answer goes on with the turn.
func TestClarify_SurvivesARestart(t *testing.T) {
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if text, ok := r.ToolResult(); ok {
			return modeltest.Text("you said " + text)
		}
		return modeltest.Calls("c1", "clarify", `{"question":"Which colour?","choices":["red","blue"]}`)
	})
	h := gatewaytest.Start(t, script, func(h *gatewaytest.House) { h.Set["agent.restart_drain_timeout"] = "50ms" })
	h.Telegram.Say(7, "ask me")
	q := h.Await(7, "Which colour?")
	h.Halt()
	h.Run()
	h.UntilStatus(7, "Waiting for your answer")
	require.Equal(t, 1, h.Count(7, "Which colour?"))
	h.Telegram.Press(7, q.ID, q.Buttons[0][0].Data, telegramtest.User{ID: 7})
	h.Await(7, "red")
	h.Await(7, "you said")
}
