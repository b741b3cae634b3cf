package gatewaytest

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms/platformtest/telegramtest"
)

// Press makes somebody press a button of the first row, and returns what they are answered.
func (h *House) Press(chat int64, m telegramtest.Message, button int, who int64) string {
	h.T.Helper()
	id, ok := h.Telegram.PressOld(chat, m.ID, m.Buttons[0][button].Data, telegramtest.User{ID: who, FirstName: "P"})
	require.True(h.T, ok)
	var said string
	h.Until("the press is answered", func() bool {
		text, ok := h.Telegram.Answer(id)
		said = text
		return ok
	})
	return said
}

// Texts returns what the bot's messages in a chat read now.
func (h *House) Texts(chat int64) []string {
	var out []string
	for _, m := range h.Telegram.Visible(chat) {
		if m.Bot {
			out = append(out, m.Text)
		}
	}
	return out
}

// Await returns the bot's first message in a chat that contains part.
func (h *House) Await(chat int64, part string) telegramtest.Message {
	h.T.Helper()
	var found telegramtest.Message
	h.Until(fmt.Sprintf("chat %d shows %q; it shows %q", chat, part, h.Texts(chat)), func() bool {
		for _, m := range h.Telegram.Visible(chat) {
			if m.Bot && strings.Contains(m.Text, part) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// UntilStatus asks for the status, one answer at a time, until it contains part.
func (h *House) UntilStatus(chat int64, part string) {
	h.T.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for {
		n := len(h.Texts(chat))
		h.Telegram.Say(chat, "/status")
		h.Until("the status is answered", func() bool { return len(h.Texts(chat)) > n })
		if h.Count(chat, part) > 0 {
			return
		}
		if time.Now().After(deadline) {
			h.T.Fatalf("the status never says %q", part)
		}
	}
}

// Count returns how many visible messages of the bot contain part.
func (h *House) Count(chat int64, part string) int {
	n := 0
	for _, text := range h.Texts(chat) {
		n += strings.Count(text, part)
	}
	return n
}

// Write makes somebody write into a topic of a chat, and returns the message's id.
func (h *House) Write(chat int64, thread int, who telegramtest.User, text string) int {
	return h.Telegram.Write(telegramtest.Post{Chat: chat, Thread: thread, From: who, Text: text})[0]
}
