package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/model/modeltest"
	"herald/platforms"
)

// beside adds the stage as a second account of Telegram, whose settings then hold for it.
func (s *stage) beside(h *house) { h.adapters = append(h.adapters, s) }

// Two bots that answer each other are stopped, a restart forgets nothing, and the chat is told once.
func TestBotLoop_IsStoppedAlsoOverARestartAndSaid(t *testing.T) {
	s := newStage("telegram")
	h := start(t, echo(), s.beside, func(h *house) {
		h.set["platforms.telegram.allow_bots"] = "all"
		h.set["gateway.bot_loop_guard.max_events"] = "3"
	})
	room := s.place("C1", "")
	bot := func(n int) platforms.Event {
		e := s.message(s.place("C1", platforms.ThreadID(fmt.Sprint("t", n%2))), platforms.Group, fmt.Sprint("beep ", n))
		e.Sender = platforms.User{ID: "B9", Name: "Beeper", IsBot: true}
		return e
	}
	said := func() (answers, notices int) {
		for _, c := range s.calls() {
			if c.Address.Chat == "C1" && c.Edit == "" {
				if strings.Contains(c.Text.Plain, "quiet towards bots") {
					notices++
				} else if strings.Contains(c.Text.Plain, "beep") {
					answers++
				}
			}
		}
		return answers, notices
	}
	answered := func(n int) {
		t.Helper()
		h.until(fmt.Sprint(n, " answers"), func() bool { a, _ := said(); return a == n })
	}
	first := bot(0)
	s.give(h, first)
	answered(1)
	s.give(h, first, first) // a redelivery counts for nothing
	s.give(h, bot(1))
	answered(2)
	h.halt()
	h.run()
	s.give(h, bot(2))
	answered(3)
	s.give(h, bot(3))
	h.until("it is said", func() bool { _, n := said(); return n == 1 })
	s.give(h, bot(4), bot(5))
	h.halt()
	h.run()
	s.give(h, bot(6))
	s.give(h, s.message(room, platforms.Group, "a person"))
	s.await(h, room, "a person")
	answers, notices := said()
	require.Equal(t, 3, answers)
	require.Equal(t, 1, notices)
	require.Contains(t, h.metrics(), `herald_inbound_events_total{kind="message",outcome="bot_loop",platform="telegram"} 1`)
	require.Contains(t, h.log.String(), "bots have talked to each other for too long")
}

// The exact thread, the thread, the chat, and the channel that a thread hangs in, in this order.
func TestChannelSettings_ThreadChatAndParent(t *testing.T) {
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		for _, mark := range []string{"EXACT", "THREAD", "CHAT", "PARENT"} {
			if strings.Contains(r.System, mark) {
				return modeltest.Text(mark + " " + r.Model)
			}
		}
		return modeltest.Text("none " + r.Model)
	})
	s := newStage("telegram")
	h := start(t, script, s.beside, func(h *house) {
		require.NoError(t, os.WriteFile(filepath.Join(h.home, "config.yaml"), []byte(`
platforms:
  telegram:
    channel_prompts: {"C1:t1": EXACT, "t2": THREAD, "C1": CHAT, "P1": PARENT}
    channel_overrides: {"C1:t1": {model: m-exact}, "t2": {model: m-thread}, "C1": {model: m-chat}, "P1": {model: m-parent}}
`), 0o600))
	})
	for _, c := range []struct {
		chat   platforms.ChatID
		thread platforms.ThreadID
		parent platforms.ChatID
		want   string
	}{
		{"C1", "t1", "P1", "EXACT m-exact"}, {"C1", "t2", "P1", "THREAD m-thread"}, {"C1", "t3", "P1", "CHAT m-chat"}, {"C1", "", "", "CHAT m-chat"},
		{"C2", "t2", "", "THREAD m-thread"}, {"T9", "", "P1", "PARENT m-parent"}, {"C2", "t9", "P1", "PARENT m-parent"}, {"C2", "t9", "P2", "none house-model"}, {"C2", "", "", "none house-model"},
	} {
		e := s.message(s.place(c.chat, c.thread), platforms.Thread, "hello")
		e.ParentChat = c.parent
		n := len(s.texts(e.Address))
		s.give(h, e)
		h.until(fmt.Sprintf("%s answers %s", e.Address, c.want), func() bool { return len(s.texts(e.Address)) == n+1 })
		require.Equal(t, c.want, s.texts(e.Address)[n], "%+v", c)
	}
}

// reply_to_mode says which parts of an answer quote the question.
func TestReplyToMode(t *testing.T) {
	long := strings.Repeat("word ", 100)
	for mode, want := range map[string]func(i int) bool{
		"off": func(int) bool { return false }, "first": func(i int) bool { return i == 0 }, "all": func(int) bool { return true },
	} {
		t.Run(mode, func(t *testing.T) {
			s := newStage("telegram")
			s.traits.Text.Limit = 120
			h := start(t, modeltest.Answering(func(modeltest.Request) modeltest.Reply { return modeltest.Text(long) }), s.beside, func(h *house) {
				h.set["platforms.telegram.reply_to_mode"] = mode
			})
			e := s.message(s.place("D1", ""), platforms.DM, "hello")
			s.give(h, e)
			h.until("all parts are there", func() bool { return len(s.texts(e.Address)) >= 5 })
			for i, c := range s.calls() {
				require.Equal(t, want(i), c.ReplyTo == e.Message.ID, "part %d", i)
				require.True(t, c.ReplyTo == "" || c.ReplyTo == e.Message.ID)
			}
		})
	}
}
