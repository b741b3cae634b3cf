package access_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/gatewaytest"
)

func TestAccess_StrangersGetACodeAndNoTurn(t *testing.T) {
	h := gatewaytest.Start(t, gatewaytest.Echo(), func(h *gatewaytest.House) {
		h.Env = append(h.Env, "HERALD_TELEGRAM_ALLOW_FROM=99")
		h.Set["platforms.telegram.unauthorized_dm_behavior"] = "pair"
	})
	h.Telegram.Say(7, "let me in")
	h.Await(7, "pairing code")
	require.Empty(t, h.Model.Requests(), "P13: deny by default")
	h.Telegram.Say(99, "hello")
	h.Await(99, "re: hello")
}
