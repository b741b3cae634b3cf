package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/gatewaytest"
	"herald/gateway/model/modeltest"
	"herald/platforms"
)

// Two bots that answer each other are stopped, a restart forgets nothing, and the chat is told once.
func TestBotLoop_IsStoppedAlsoOverARestartAndSaid(t *testing.T) {
	s := gatewaytest.NewStage("telegram")
	h := gatewaytest.Start(t, gatewaytest.Echo(), s.Beside, func(h *gatewaytest.House) {
		h.Set["platforms.telegram.allow_bots"] = "all"
		h.Set["gateway.bot_loop_guard.max_events"] = "3"
	})
	room := s.Place("C1", "")
	bot := func(n int) platforms.Event {
		e := s.Message(s.Place("C1", platforms.ThreadID(fmt.Sprint("t", n%2))), platforms.Group, fmt.Sprint("beep ", n))
		e.Sender = platforms.User{ID: "B9", Name: "Beeper", IsBot: true}
		return e
	}
	said := func() (answers, notices int) {
		for _, c := range s.Calls() {
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
		h.Until(fmt.Sprint(n, " answers"), func() bool { a, _ := said(); return a == n })
	}
	first := bot(0)
	s.Give(h, first)
	answered(1)
	s.Give(h, first, first) // a redelivery counts for nothing
	s.Give(h, bot(1))
	answered(2)
	h.Halt()
	h.Run()
	s.Give(h, bot(2))
	answered(3)
	s.Give(h, bot(3))
	h.Until("it is said", func() bool { _, n := said(); return n == 1 })
	s.Give(h, bot(4), bot(5))
	h.Halt()
	h.Run()
	s.Give(h, bot(6))
	s.Give(h, s.Message(room, platforms.Group, "a person"))
	s.Await(h, room, "a person")
	answers, notices := said()
	require.Equal(t, 3, answers)
	require.Equal(t, 1, notices)
	require.Contains(t, h.Metrics(), `herald_inbound_events_total{kind="message",outcome="bot_loop",platform="telegram"} 1`)
	require.Contains(t, h.Log.String(), "bots have talked to each other for too long")
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
	s := gatewaytest.NewStage("telegram")
	h := gatewaytest.Start(t, script, s.Beside, func(h *gatewaytest.House) {
		require.NoError(t, os.WriteFile(filepath.Join(h.Home, "config.yaml"), []byte(`
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
		e := s.Message(s.Place(c.chat, c.thread), platforms.Thread, "hello")
		e.ParentChat = c.parent
		n := len(s.Texts(e.Address))
		s.Give(h, e)
		h.Until(fmt.Sprintf("%s answers %s", e.Address, c.want), func() bool { return len(s.Texts(e.Address)) == n+1 })
		require.Equal(t, c.want, s.Texts(e.Address)[n], "%+v", c)
	}
}

// reply_to_mode says which parts of an answer quote the question.
func TestReplyToMode(t *testing.T) {
	long := strings.Repeat("word ", 100)
	for mode, want := range map[string]func(i int) bool{
		"off": func(int) bool { return false }, "first": func(i int) bool { return i == 0 }, "all": func(int) bool { return true },
	} {
		t.Run(mode, func(t *testing.T) {
			s := gatewaytest.NewStage("telegram")
			s.Own.Text.Limit = 120
			script := modeltest.Answering(func(modeltest.Request) modeltest.Reply { return modeltest.Text(long) })
			h := gatewaytest.Start(t, script, s.Beside, func(h *gatewaytest.House) {
				h.Set["platforms.telegram.reply_to_mode"] = mode
			})
			e := s.Message(s.Place("D1", ""), platforms.DM, "hello")
			s.Give(h, e)
			h.Until("all parts are there", func() bool { return len(s.Texts(e.Address)) >= 5 })
			for i, c := range s.Calls() {
				require.Equal(t, want(i), c.ReplyTo == e.Message.ID, "part %d", i)
				require.True(t, c.ReplyTo == "" || c.ReplyTo == e.Message.ID)
			}
		})
	}
}
