package delivery_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/gatewaytest"
	"herald/platforms/platformtest/telegramtest"
)

// P4: a send that was accepted and whose answer got lost is not repeated; the person is told once and may ask for it.
func TestDelivery_UnknownOutcomeIsSurfacedOnceAndShownAgainOnRequest(t *testing.T) {
	h := gatewaytest.Start(t, gatewaytest.Echo())
	h.Telegram.Say(7, "warm up")
	h.Await(7, "re: warm up")
	h.Telegram.Break(telegramtest.Fault{Method: "sendMessage", Trouble: telegramtest.ResetAfter})
	h.Telegram.Say(7, "fragile")
	notice := h.Await(7, "I can't tell whether my last message arrived")
	require.Equal(t, 1, h.Count(7, "re: fragile"))
	require.Len(t, notice.Buttons, 1)
	person := telegramtest.User{ID: 7}
	h.Telegram.Press(7, notice.ID, notice.Buttons[0][0].Data, person)
	h.Await(7, "This may be a duplicate")
	require.Equal(t, 2, h.Count(7, "re: fragile"), "it is repeated only because the person asked")
	h.Telegram.Press(7, notice.ID, notice.Buttons[0][0].Data, person)
	h.Await(7, "nothing to show again")
	require.Equal(t, 2, h.Count(7, "re: fragile"))
}

// P8: nothing is sent inside a retry-after window, and the answer is not lost.
func TestDelivery_WaitsForRetryAfter(t *testing.T) {
	h := gatewaytest.Start(t, gatewaytest.Echo())
	h.Telegram.Say(7, "warm up")
	h.Await(7, "re: warm up")
	h.Telegram.Break(telegramtest.Fault{Method: "sendMessage", Trouble: telegramtest.AnswerStatus, Status: 429, RetryAfter: time.Second})
	h.Telegram.Say(7, "patience")
	h.Await(7, "re: patience")
	require.Empty(t, h.Telegram.Violations())
	require.Equal(t, 1, h.Count(7, "re: patience"))
}
