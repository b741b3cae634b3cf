package show_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/gatewaytest"
	"herald/gateway/model/modeltest"
	"herald/platforms"
)

// toolUntil runs a tool until the file "go" is there, fails for "fail", and answers otherwise.
func toolUntil() *modeltest.Script {
	return modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if _, ok := r.ToolResult(); ok {
			return modeltest.Text("done")
		}
		switch last := r.LastUser(); {
		case strings.HasSuffix(last, "fail"):
			return modeltest.Failing(400, "invalid_request_error", "no")
		case strings.HasSuffix(last, "tool"):
			return modeltest.Calls("c1", "terminal", `{"command":"while [ ! -e go ]; do sleep 0.02; done"}`)
		default:
			return modeltest.Text("re: " + last)
		}
	})
}

func touch(h *gatewaytest.House, name string) {
	h.T.Helper()
	require.NoError(h.T, os.WriteFile(filepath.Join(h.Home, "workspace", name), nil, 0o600))
}

func TestReactions_TellThatAMessageWasSeenAndHowItEnded(t *testing.T) {
	s := gatewaytest.NewStage("slack")
	h := gatewaytest.Start(t, toolUntil(), s.On)
	dm, room := s.Place("D1", ""), s.Place("C1", "1")
	marks := func(e platforms.Event) (out []string) {
		for _, r := range s.Reactions() {
			if emoji, ok := strings.CutPrefix(r, string(e.Message.ID)+" "); ok {
				out = append(out, emoji)
			}
		}
		return out
	}
	both := func(e platforms.Event, last string) {
		t.Helper()
		h.Until("it is marked "+last, func() bool { return len(marks(e)) == 2 })
		require.Equal(t, []string{"👀", last}, marks(e))
	}

	e := s.Message(dm, platforms.DM, "hello")
	s.Give(h, e)
	s.Await(h, dm, "re: hello")
	both(e, "✅")

	e = s.Message(room, platforms.Channel, "spoken to")
	s.Give(h, e)
	both(e, "✅")

	e = s.Message(dm, platforms.DM, "fail")
	s.Give(h, e)
	both(e, "❌")
	require.Contains(t, s.Texts(dm)[1], "⚠️", "a failure is said as well")

	overheard := s.Message(room, platforms.Channel, "not to the bot")
	overheard.Addressed = false
	s.Give(h, overheard)
	s.Await(h, room, "not to the bot")
	command := s.Message(dm, platforms.DM, "/status")
	s.Give(h, command)
	require.Empty(t, marks(overheard))

	// What is stopped keeps the first mark.
	e = s.Message(dm, platforms.DM, "use a tool")
	s.Give(h, e)
	h.Until("it is seen", func() bool { return len(marks(e)) == 1 })
	s.Give(h, s.Message(dm, platforms.DM, "/stop"))
	last := s.Message(dm, platforms.DM, "after the stop")
	s.Give(h, last)
	both(last, "✅")
	require.Equal(t, []string{"👀"}, marks(e))
	require.Empty(t, marks(command))
}

// A mark would tell a stranger that somebody listens (P13).
func TestReactions_NeverForThoseWhoMayNotTalk(t *testing.T) {
	s := gatewaytest.NewStage("signal")
	h := gatewaytest.Start(t, gatewaytest.Echo(), s.On, func(h *gatewaytest.House) {
		delete(h.Set, "allow_all_users")
		h.Set["allowed_users"] = "U1"
		h.Set["unauthorized_dm_behavior"] = "ignore"
	})
	stranger := s.Message(s.Place("D2", ""), platforms.DM, "hello?")
	stranger.Sender.ID = "U2"
	s.Give(h, stranger, s.Message(s.Place("D1", ""), platforms.DM, "hello"))
	h.Until("the known person's is marked", func() bool { return len(s.Reactions()) == 2 })
	for _, r := range s.Reactions() {
		require.NotContains(t, r, string(stranger.Message.ID))
	}
}

func TestReactions_AreOnlyForShow(t *testing.T) {
	t.Run("refused with a wait", func(t *testing.T) {
		s := gatewaytest.NewStage("discord")
		var first, second atomic.Int64
		s.OnReact = func(string) error {
			if first.CompareAndSwap(0, time.Now().UnixNano()) {
				return &platforms.SendError{Kind: platforms.RateLimited, RetryAfter: 1500 * time.Millisecond, Err: errors.New("slow down")}
			}
			second.CompareAndSwap(0, time.Now().UnixNano())
			return nil
		}
		h := gatewaytest.Start(t, gatewaytest.Echo(), s.On)
		dm := s.Place("D1", "")
		s.Give(h, s.Message(dm, platforms.DM, "hello"))
		s.Await(h, dm, "re: hello")
		h.Until("the end is marked", func() bool { return second.Load() != 0 })
		require.GreaterOrEqual(t, time.Duration(second.Load()-first.Load()), 1500*time.Millisecond, "P8")
		require.Len(t, s.Reactions(), 2)
	})
	t.Run("refused for good", func(t *testing.T) {
		s := gatewaytest.NewStage("slack")
		s.OnReact = func(string) error {
			return &platforms.SendError{Kind: platforms.Forbidden, Err: errors.New("missing_scope")}
		}
		h := gatewaytest.Start(t, gatewaytest.Echo(), s.On)
		dm := s.Place("D1", "")
		s.Give(h, s.Message(dm, platforms.DM, "one"))
		s.Await(h, dm, "re: one")
		s.Give(h, s.Message(dm, platforms.DM, "two"))
		s.Await(h, dm, "re: two")
	})
	t.Run("switched off", func(t *testing.T) {
		s := gatewaytest.NewStage("telegram") // off unless it is asked for
		h := gatewaytest.Start(t, gatewaytest.Echo(), s.On, func(h *gatewaytest.House) { h.Without("TELEGRAM_BOT_TOKEN") })
		dm := s.Place("D1", "")
		s.Give(h, s.Message(dm, platforms.DM, "one"))
		s.Await(h, dm, "re: one")
		require.Empty(t, s.Reactions())
	})
}

// The next process goes on with a turn without marking its message again.
func TestReactions_OverARestart(t *testing.T) {
	s := gatewaytest.NewStage("slack")
	h := gatewaytest.Start(t, toolUntil(), s.On, func(h *gatewaytest.House) { h.Set["agent.restart_drain_timeout"] = "20ms" })
	dm := s.Place("D1", "")
	e := s.Message(dm, platforms.DM, "use a tool")
	s.Give(h, e)
	h.Until("it is seen", func() bool { return len(s.Reactions()) == 1 })
	h.Halt()
	touch(h, "go")
	h.Run()
	h.Until("it is done", func() bool { return len(s.Reactions()) == 2 })
	require.Equal(t, []string{string(e.Message.ID) + " 👀", string(e.Message.ID) + " ✅"}, s.Reactions())
}

// A reaction is a message to the bot only where the operator has made it one, and for those who may talk.
func TestReactions_AsTriggers(t *testing.T) {
	s := gatewaytest.NewStage("slack")
	h := gatewaytest.Start(t, gatewaytest.Echo(), s.On, func(h *gatewaytest.House) {
		delete(h.Set, "allow_all_users")
		h.Set["allowed_users"] = "U1"
	})
	room := s.Place("C1", "1")
	react := func(emoji, user string, trigger, removed bool) platforms.Event {
		e := s.Event(room, platforms.Channel)
		e.Sender.ID = platforms.UserID(user)
		e.Reaction = &platforms.Reaction{MessageID: "b1", Emoji: emoji, OnOwn: true, Trigger: trigger, Removed: removed}
		return e
	}
	s.Give(h, react("🅰", "U1", false, false), react("🅱", "U2", true, false), react("🆎", "U1", true, true),
		react("👍", "U1", true, false))
	s.Await(h, room, "[The user put 👍 on a message of yours]")
	s.Give(h, s.Message(room, platforms.Channel, "next"))
	s.Await(h, room, "re: Ann: next")
	require.Len(t, s.Texts(room), 2)
	require.Equal(t, platforms.MessageID("b1"), s.Calls()[0].ReplyTo)
}
