package show_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/gatewaytest"
	"herald/gateway/model/modeltest"
)

func TestStreaming_TheFinalTextCompletesThePreview(t *testing.T) {
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Text: strings.Repeat("word ", 60) + "end.", Pace: 10 * time.Millisecond}
	})
	h := gatewaytest.Start(t, script, func(h *gatewaytest.House) { h.Set["streaming.edit_interval"] = "50ms" })
	h.Telegram.Say(7, "tell me")
	h.Await(7, "end.")
	h.Until("the cursor is gone", func() bool { return h.Count(7, "▉") == 0 })
	require.Len(t, h.Texts(7), 1, "one message that grew, never a second one")
	edits := 0
	for _, a := range h.Telegram.Acts(7) {
		if a.Verb == "edit" {
			edits++
		}
	}
	require.Greater(t, edits, 1)
}
