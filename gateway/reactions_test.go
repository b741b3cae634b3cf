package gateway_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

func (h *house) touch(name string) {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(filepath.Join(h.home, "workspace", name), nil, 0o600))
}

func TestReactions_TellThatAMessageWasSeenAndHowItEnded(t *testing.T) {
	s := newStage("slack")
	h := start(t, toolUntil(), s.on)
	dm, room := s.place("D1", ""), s.place("C1", "1")
	marks := func(e platforms.Event) (out []string) {
		for _, r := range s.reactions() {
			if emoji, ok := strings.CutPrefix(r, string(e.Message.ID)+" "); ok {
				out = append(out, emoji)
			}
		}
		return out
	}
	both := func(e platforms.Event, last string) {
		t.Helper()
		h.until("it is marked "+last, func() bool { return len(marks(e)) == 2 })
		require.Equal(t, []string{"👀", last}, marks(e))
	}

	e := s.message(dm, platforms.DM, "hello")
	s.give(h, e)
	s.await(h, dm, "re: hello")
	both(e, "✅")

	e = s.message(room, platforms.Channel, "spoken to")
	s.give(h, e)
	both(e, "✅")

	e = s.message(dm, platforms.DM, "fail")
	s.give(h, e)
	both(e, "❌")
	require.Contains(t, s.texts(dm)[1], "⚠️", "a failure is said as well")

	overheard := s.message(room, platforms.Channel, "not to the bot")
	overheard.Addressed = false
	s.give(h, overheard)
	s.await(h, room, "not to the bot")
	command := s.message(dm, platforms.DM, "/status")
	s.give(h, command)
	require.Empty(t, marks(overheard))

	// What is stopped keeps the first mark.
	e = s.message(dm, platforms.DM, "use a tool")
	s.give(h, e)
	h.until("it is seen", func() bool { return len(marks(e)) == 1 })
	s.give(h, s.message(dm, platforms.DM, "/stop"))
	last := s.message(dm, platforms.DM, "after the stop")
	s.give(h, last)
	both(last, "✅")
	require.Equal(t, []string{"👀"}, marks(e))
	require.Empty(t, marks(command))
}

// A mark would tell a stranger that somebody listens (P13).
func TestReactions_NeverForThoseWhoMayNotTalk(t *testing.T) {
	s := newStage("signal")
	h := start(t, echo(), s.on, func(h *house) {
		delete(h.set, "allow_all_users")
		h.set["allowed_users"] = "U1"
		h.set["unauthorized_dm_behavior"] = "ignore"
	})
	stranger := s.message(s.place("D2", ""), platforms.DM, "hello?")
	stranger.Sender.ID = "U2"
	s.give(h, stranger, s.message(s.place("D1", ""), platforms.DM, "hello"))
	h.until("the known person's is marked", func() bool { return len(s.reactions()) == 2 })
	for _, r := range s.reactions() {
		require.NotContains(t, r, string(stranger.Message.ID))
	}
}

func TestReactions_AreOnlyForShow(t *testing.T) {
	t.Run("refused with a wait", func(t *testing.T) {
		s := newStage("discord")
		var first, second atomic.Int64
		s.react = func(string) error {
			if first.CompareAndSwap(0, time.Now().UnixNano()) {
				return &platforms.SendError{Kind: platforms.RateLimited, RetryAfter: 1500 * time.Millisecond, Err: errors.New("slow down")}
			}
			second.CompareAndSwap(0, time.Now().UnixNano())
			return nil
		}
		h := start(t, echo(), s.on)
		dm := s.place("D1", "")
		s.give(h, s.message(dm, platforms.DM, "hello"))
		s.await(h, dm, "re: hello")
		h.until("the end is marked", func() bool { return second.Load() != 0 })
		require.GreaterOrEqual(t, time.Duration(second.Load()-first.Load()), 1500*time.Millisecond, "P8")
		require.Len(t, s.reactions(), 2)
	})
	t.Run("refused for good", func(t *testing.T) {
		s := newStage("slack")
		s.react = func(string) error {
			return &platforms.SendError{Kind: platforms.Forbidden, Err: errors.New("missing_scope")}
		}
		h := start(t, echo(), s.on)
		dm := s.place("D1", "")
		s.give(h, s.message(dm, platforms.DM, "one"))
		s.await(h, dm, "re: one")
		s.give(h, s.message(dm, platforms.DM, "two"))
		s.await(h, dm, "re: two")
	})
	t.Run("switched off", func(t *testing.T) {
		s := newStage("telegram") // off unless it is asked for
		h := start(t, echo(), s.on, func(h *house) { h.env = without(h.env, "TELEGRAM_BOT_TOKEN=") })
		dm := s.place("D1", "")
		s.give(h, s.message(dm, platforms.DM, "one"))
		s.await(h, dm, "re: one")
		require.Empty(t, s.reactions())
	})
}

func without(env []string, prefix string) []string {
	var out []string
	for _, e := range env {
		if !strings.HasPrefix(e, prefix) {
			out = append(out, e)
		}
	}
	return out
}

// The next process goes on with a turn without marking its message again.
func TestReactions_OverARestart(t *testing.T) {
	s := newStage("slack")
	h := start(t, toolUntil(), s.on, func(h *house) { h.set["agent.restart_drain_timeout"] = "20ms" })
	dm := s.place("D1", "")
	e := s.message(dm, platforms.DM, "use a tool")
	s.give(h, e)
	h.until("it is seen", func() bool { return len(s.reactions()) == 1 })
	h.halt()
	h.touch("go")
	h.run()
	h.until("it is done", func() bool { return len(s.reactions()) == 2 })
	require.Equal(t, []string{string(e.Message.ID) + " 👀", string(e.Message.ID) + " ✅"}, s.reactions())
}

// A reaction is a message to the bot only where the operator has made it one, and for those who may talk.
func TestReactions_AsTriggers(t *testing.T) {
	s := newStage("slack")
	h := start(t, echo(), s.on, func(h *house) {
		delete(h.set, "allow_all_users")
		h.set["allowed_users"] = "U1"
	})
	room := s.place("C1", "1")
	react := func(emoji, user string, trigger, removed bool) platforms.Event {
		e := s.event(room, platforms.Channel)
		e.Sender.ID = platforms.UserID(user)
		e.Reaction = &platforms.Reaction{MessageID: "b1", Emoji: emoji, OnOwn: true, Trigger: trigger, Removed: removed}
		return e
	}
	s.give(h, react("🅰", "U1", false, false), react("🅱", "U2", true, false), react("🆎", "U1", true, true), react("👍", "U1", true, false))
	s.await(h, room, "[The user put 👍 on a message of yours]")
	s.give(h, s.message(room, platforms.Channel, "next"))
	s.await(h, room, "re: Ann: next")
	require.Len(t, s.texts(room), 2)
	require.Equal(t, platforms.MessageID("b1"), s.calls()[0].ReplyTo)
}
