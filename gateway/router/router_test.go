package router_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"herald/gateway/router"
	rt "herald/gateway/router/routertest"
	"herald/gateway/turn"
	"herald/locales"
	"herald/platforms"
	"herald/sessions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRouter_AnswersInOrder(t *testing.T) {
	rt.Within(t, rt.Options{}, func(t *testing.T, r *rt.Rig) {
		r.Give(r.Text("a", "one"))
		r.Settle()
		r.Give(r.Text("a", "two"), r.Text("b", "three"))
		r.Settle()
		require.Equal(t, []string{"re: one", "re: two"}, r.Chat.Shown("a"))
		require.Equal(t, []string{"re: three"}, r.Chat.Shown("b"))
		require.Equal(t, router.Stats{}, r.Router.Stats(), "an idle conversation is forgotten")
		require.Equal(t, sessions.InboxDone, r.Inbox(3).State)
	})
}

// P1: Accept returns only when the events are on disk; one that the store can't take refuses the whole batch.
func TestRouter_AcceptCommitsFirstOrRefusesAll(t *testing.T) {
	rt.Within(t, rt.Options{}, func(t *testing.T, r *rt.Rig) {
		r.Model.Hold()
		r.Give(r.Text("a", "kept"))
		require.NotEmpty(t, r.Inbox(1).Event.Message.Text, "on disk when Accept has returned")
		r.Settle()

		one, two := r.Text("b", "one"), r.Text("b", "two")
		r.Store.Fail(sessions.EdgeAcceptBegin, 1)
		err := r.Router.Accept(t.Context(), one, two)
		require.ErrorIs(t, err, platforms.ErrRefused)
		require.ErrorIs(t, err, sessions.ErrFull)
		r.Settle()
		require.Equal(t, []string{"kept"}, r.Model.Asked(), "nothing started")
		require.Equal(t, 2, r.Counts.Of("message", "refused"))
		r.View(func(v sessions.View) error {
			_, err := v.InboxItem(2)
			require.ErrorIs(t, err, sessions.ErrNotFound)
			return nil
		})

		r.Model.Release()
		r.Settle()
		r.Model.Hold()
		r.Say("b", "zero")
		r.Give(one, two) // the platform offers them again
		r.Settle()
		r.Model.Release()
		r.Settle()
		require.Equal(t, []string{rt.Queued(), "re: zero", "re: one\n\ntwo"}, r.Chat.Shown("b"))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, r.Router.Accept(gone, r.Text("c", "?")), context.Canceled)
	})
}

// P2: a redelivered event starts nothing, in one batch, later, and in the next process.
func TestRouter_DuplicatesStartNothing(t *testing.T) {
	rt.Within(t, rt.Options{}, func(t *testing.T, r *rt.Rig) {
		e := r.Text("a", "once")
		r.Give(e, e)
		r.Settle()
		r.Give(e)
		r.Restart()
		r.Give(e)
		r.Settle()
		require.Equal(t, []string{"once"}, r.Model.Asked())
		require.Equal(t, []string{"re: once"}, r.Chat.Shown("a"))
		require.Equal(t, 3, r.Counts.Of("message", "duplicate"))
		other := e
		other.Address.Account = "second-bot"
		r.Give(other)
		r.Settle()
		require.Len(t, r.Model.Asked(), 2, "the same id on another account is another event")
	})
}

// P3: conversations run side by side, each one in order; what waits becomes one turn.
func TestRouter_OneTurnAtATime(t *testing.T) {
	rt.Within(t, rt.Options{}, func(t *testing.T, r *rt.Rig) {
		r.Model.Hold()
		for i := range 4 {
			r.Give(r.Text("a", fmt.Sprint("a", i)), r.Text("b", fmt.Sprint("b", i)), r.Text("c", fmt.Sprint("c", i)))
			r.Settle()
		}
		_, most := r.Model.Overlaps()
		require.Equal(t, 3, most)
		require.Equal(t, router.Stats{Actors: 3, Running: 3, Queued: 9}, r.Router.Stats())
		r.Model.Release()
		r.Settle()
		overlaps, _ := r.Model.Overlaps()
		require.Zero(t, overlaps)
		for _, chat := range []string{"a", "b", "c"} {
			require.Equal(t, []string{rt.Queued(), "re: " + chat + "0", fmt.Sprintf("re: %[1]s1\n\n%[1]s2\n\n%[1]s3", chat)}, r.Chat.Shown(chat))
		}
	})
}

// P7, P13: what is not let in leaves ids, a reason and a count, and no content.
func TestRouter_DeniedEventsKeepNoContent(t *testing.T) {
	strangers := 0
	opt := rt.Options{
		Deny: func(e platforms.Event) string {
			if e.Sender.ID == "user-x" {
				return "nobody knows them"
			}
			return ""
		},
		Tune: func(o *router.Options) { o.Stranger = func(context.Context, sessions.InboxItem) { strangers++ } },
	}
	rt.Within(t, opt, func(t *testing.T, r *rt.Rig) {
		message, click, reaction, edited := r.Text("x", "secret"), r.Text("x", ""), r.Text("a", ""), r.Text("a", "")
		click.Message, click.Click = nil, &platforms.Click{Data: "secret"}
		reaction.Message, reaction.Reaction = nil, &platforms.Reaction{Emoji: "👍"}
		edited.Message, edited.Edited = nil, &platforms.Edited{Text: "secret"}
		r.Give(message, click, reaction, edited)
		r.Settle()
		for id, reason := range map[sessions.InboxID]string{1: "not allowed: nobody knows them", 2: "not allowed: nobody knows them",
			3: "reactions start nothing here", 4: "the message was taken before it was edited"} {
			item := r.Inbox(id)
			require.Equal(t, sessions.InboxDropped, item.State)
			require.Equal(t, reason, item.Reason)
			require.NotContains(t, fmt.Sprintf("%+v %+v %+v", item.Event.Message, item.Event.Click, item.Event.Edited), "secret")
		}
		require.Empty(t, r.Model.Asked())
		require.Equal(t, 1, r.Counts.Of("message", "dropped"))
		require.Equal(t, 1, r.Counts.Of("click", "dropped"))
		require.Equal(t, 2, strangers)
		r.Give(message)
		require.Equal(t, 2, strangers, "a redelivery is answered once")

		r.Give(platforms.Event{ID: "broken"})
		require.Equal(t, 1, r.Counts.Of("", "invalid"), "what an adapter made wrong would fail each time")

		loop := r.Text("a", "beep")
		loop.Sender = platforms.User{ID: "loop", IsBot: true}
		r.Give(loop)
		r.Settle()
		require.Equal(t, 1, r.Counts.Of("message", "bot_loop"))
		require.Empty(t, r.Model.Asked())
		broken := r.Text("a", "beep")
		broken.Sender = platforms.User{ID: "broken", IsBot: true}
		require.ErrorIs(t, r.Router.Accept(t.Context(), broken), platforms.ErrRefused)
	})
}

func TestRouter_ObservedMessagesAreContextWithoutATurn(t *testing.T) {
	rt.Within(t, rt.Options{}, func(t *testing.T, r *rt.Rig) {
		hear := func(text string) {
			e := r.Text("a", text)
			e.Observed, e.Addressed = true, false
			r.Give(e)
			r.Settle()
		}
		hear("before anybody spoke to the bot")
		r.Say("a", "hello")
		hear("lunch?")
		require.Len(t, r.Model.Asked(), 1)
		require.Equal(t, "observed", r.Inbox(3).Reason)
		r.Say("a", "where?")
		require.Equal(t, "re: [Heard in the room, not said to you] Ada: lunch?\n\nwhere?", r.Chat.Last("a"))

		// A chat may have chosen something before it has a session, or when its sessions were deleted.
		r.Update(func(tx sessions.Tx) error { return tx.SetOptions(rt.KeyOf("empty"), sessions.Options{Busy: "steer"}) })
		e := r.Text("empty", "hm")
		e.Observed = true
		r.Give(e)
		r.Settle()
		require.Equal(t, sessions.InboxDone, r.Inbox(5).State)
	})
}

func TestRouter_RefusesWithAWord(t *testing.T) {
	opt := rt.Options{Tune: func(o *router.Options) {
		o.QueueMax, o.MaxText = 2, func() int64 { return 10 }
	}}
	rt.Within(t, opt, func(t *testing.T, r *rt.Rig) {
		r.Model.Hold()
		for _, text := range []string{"one", "two", "three", "four"} {
			r.Say("a", text)
		}
		require.Equal(t, []string{rt.Queued(), rt.Full(2)}, r.Chat.Shown("a"))
		require.Equal(t, sessions.InboxDropped, r.Inbox(4).State)
		require.Equal(t, 1, r.Counts.Of("message", "queue_full"))
		r.Say("b", strings.Repeat("x", 11))
		require.Equal(t, []string{"⚠️ " + rt.Text("inbound.too_long", locales.Str("size", "11 bytes"), locales.Str("max", "10 bytes"))}, r.Chat.Shown("b"))
		require.Equal(t, 1, r.Counts.Of("message", "too_long"))
		r.Model.Release()
		r.Settle()
		require.Equal(t, "re: two\n\nthree", r.Chat.Last("a"))
	})
}

// Acks are for people, not for machines: one in half a minute is enough.
func TestRouter_AcksNowAndThen(t *testing.T) {
	rt.Within(t, rt.Options{}, func(t *testing.T, r *rt.Rig) {
		r.Model.Hold()
		for i := range 4 {
			r.Say("a", fmt.Sprint(i))
		}
		require.Equal(t, []string{rt.Queued()}, r.Chat.Shown("a"))
		time.Sleep(31 * time.Second)
		r.Say("a", "still there?")
		require.Equal(t, []string{rt.Queued(), rt.Queued()}, r.Chat.Shown("a"))
		r.Model.Release()
	})
}

// MaxActive bounds turns; who waits longest is next, and nobody is forgotten.
func TestRouter_MaxActiveIsFair(t *testing.T) {
	opt := rt.Options{Tune: func(o *router.Options) { o.MaxActive = func() int { return 2 } }}
	rt.Within(t, opt, func(t *testing.T, r *rt.Rig) {
		r.Model.Hold()
		chats := strings.Split("abcdef", "")
		for _, chat := range chats {
			for i := range 3 {
				r.Say(chat, fmt.Sprint(chat, i))
			}
		}
		for range 10 {
			require.LessOrEqual(t, r.Router.Stats().Running, 2)
			r.Model.Step()
			r.Settle()
		}
		_, most := r.Model.Overlaps()
		require.Equal(t, 2, most)
		var first []string
		for _, text := range r.Model.Asked() {
			first = append(first, text[:1])
		}
		require.Equal(t, []string{"c", "d", "e", "f"}, slices.Sorted(slices.Values(first[2:6])), "%q: those who wait come before second turns", first)
		for _, chat := range chats {
			require.Contains(t, r.Chat.Last(chat), chat+"2")
		}
		require.Equal(t, router.Stats{}, r.Router.Stats())
	})
}

// A slot that nobody takes is passed on.
func TestRouter_MaxActivePassesUnusedSlotsOn(t *testing.T) {
	opt := rt.Options{Tune: func(o *router.Options) { o.MaxActive = func() int { return 1 } }}
	rt.Within(t, opt, func(t *testing.T, r *rt.Rig) {
		r.Model.Hold()
		for _, chat := range []string{"a", "b", "c"} {
			r.Say(chat, chat)
		}
		require.NoError(t, r.Router.Do(t.Context(), rt.KeyOf("b"), func(c *router.Control) {
			require.Len(t, c.Queued(), 1)
			c.Clear(c.Queued())
		}))
		r.Model.Step()
		r.Settle()
		require.Equal(t, []string{"a", "c"}, r.Model.Asked())
		r.Model.Release()
		r.Settle()
		require.Equal(t, "re: c", r.Chat.Last("c"))
	})
}

// A limit that is raised while the daemon runs counts at once, and not for newcomers first.
func TestRouter_MaxActiveMayChange(t *testing.T) {
	limit := 1
	opt := rt.Options{Tune: func(o *router.Options) { o.MaxActive = func() int { return limit } }}
	rt.Within(t, opt, func(t *testing.T, r *rt.Rig) {
		r.Model.Hold()
		r.Say("a", "a")
		r.Say("b", "b")
		limit = 2
		r.Say("c", "c")
		require.Equal(t, []string{"a", "b"}, r.Model.Asked())
		limit = 1
		r.Model.Step()
		r.Settle()
		require.Equal(t, []string{"a", "b", "c"}, r.Model.Asked())
		require.Equal(t, 1, r.Router.Stats().Running)
		r.Model.Release()
	})
}

// P10: what has not begun when the daemon stops waits in the inbox for the next one.
func TestRouter_DrainLeavesWhatWaitsToTheNextProcess(t *testing.T) {
	rt.Within(t, rt.Options{}, func(t *testing.T, r *rt.Rig) {
		r.Model.Hold()
		r.Say("a", "one")
		r.Say("a", "two")
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, r.Router.Drain(short), context.DeadlineExceeded)
		r.Say("b", "three") // taken, but not begun any more
		require.True(t, r.Router.Stats().Draining)
		r.Model.Release()
		require.NoError(t, r.Router.Drain(t.Context()))
		r.Settle()
		require.Equal(t, []string{"one"}, r.Model.Asked())
		require.Equal(t, sessions.InboxNew, r.Inbox(2).State)
		require.Equal(t, sessions.InboxNew, r.Inbox(3).State)
		r.Restart()
		require.Equal(t, []string{rt.Queued(), "re: one", "re: two"}, r.Chat.Shown("a"))
		require.Equal(t, []string{"re: three"}, r.Chat.Shown("b"))
	})
}

// P1, P10: a turn that was cut off goes on in the next process, before what came after it.
func TestRouter_RecoverGoesOn(t *testing.T) {
	rt.Within(t, rt.Options{}, func(t *testing.T, r *rt.Rig) {
		r.Model.Hold()
		r.Say("a", "one")
		r.Say("a", "two")
		r.Restart()
		require.Equal(t, []string{"one", "one"}, r.Model.Asked())
		require.Equal(t, 1, r.Router.Stats().Queued)
		r.Model.Release()
		r.Settle()
		require.Equal(t, []string{rt.Queued(), "re: one", "re: two"}, r.Chat.Shown("a"))
		require.Equal(t, []string{"user: one", "assistant: re: one", "user: two", "assistant: re: two"}, r.Transcript("a"))
	})
}

func TestRouter_RecoverParksWhatCrashesTooOften(t *testing.T) {
	rt.Within(t, rt.Options{}, func(t *testing.T, r *rt.Rig) {
		r.Model.Hold()
		r.Say("a", "poison")
		r.Say("a", "two")
		for range 3 {
			r.Restart()
		}
		require.Equal(t, []string{rt.Queued(), "⚠️ Herald crashed 3 times while it worked on your message, so I set it aside. /retry tries again, /new begins a new session."}, r.Chat.Shown("a"))
		require.Equal(t, "parked", r.Inbox(1).Reason)
		r.Model.Release()
		r.Settle()
		require.Contains(t, r.Chat.Last("a"), "two", "the conversation goes on")
	})
}

// An answer to something old would surprise: the turn goes on when its chat writes again.
func TestRouter_RecoverKeepsOldTurnsForTheNextMessage(t *testing.T) {
	rt.Within(t, rt.Options{}, func(t *testing.T, r *rt.Rig) {
		r.Model.Hold()
		r.Say("a", "old")
		r.Close()
		time.Sleep(2 * time.Hour)
		r.Model.Release()
		r.Open()
		r.Settle()
		require.Empty(t, r.Chat.Shown("a"))
		r.Say("b", "hi")
		require.Empty(t, r.Chat.Shown("a"), "another chat's message is no sign")
		r.Say("a", "new")
		answers := slices.DeleteFunc(r.Chat.Shown("a"), func(s string) bool { return s == rt.Queued() }) // acks have a lane of their own
		require.Equal(t, []string{"re: old", "re: new"}, answers)
		r.Restart()
		require.Len(t, r.Model.Asked(), 4)
	})
}

// P1: when the store has no room for a turn's beginning, the message waits, and is answered once.
func TestRouter_ATurnThatCanNotBeginIsTriedAgain(t *testing.T) {
	opt := rt.Options{Tune: func(o *router.Options) { o.MaxActive = func() int { return 1 } }}
	rt.Within(t, opt, func(t *testing.T, r *rt.Rig) {
		r.Store.Fail(sessions.EdgeTurnBegin, 3)
		r.Model.Hold()
		r.Say("z", "first") // has the only slot, so that the next one waits
		r.Say("a", "one")
		r.Model.Release()
		r.Settle()
		r.Say("a", "two")
		require.Equal(t, []string{"first"}, r.Model.Asked())
		require.Equal(t, router.Stats{Actors: 1, Queued: 2}, r.Router.Stats(), "no slot is lost")
		time.Sleep(10 * time.Second)
		r.Settle()
		require.Equal(t, []string{"re: one\n\ntwo"}, r.Chat.Shown("a"))
		time.Sleep(time.Minute)
		r.Settle()
		require.Len(t, r.Model.Asked(), 2)

		r.Model.Hold()
		r.Say("a", "three")
		r.Close()
		r.Open()
		r.Store.Fail(sessions.EdgeTurnResume, -1)
		r.Close()
		r.Open()
		r.Model.Release()
		r.Settle()
		require.Equal(t, "re: three", r.Chat.Last("a"))
	})
}

// scripted commands: dispatch, reject and interrupt, by name.
type scripted struct{ ran []string }

func (s *scripted) Parse(e platforms.Event) (router.Command, bool) {
	if e.Message == nil || !strings.HasPrefix(e.Message.Text, "/") {
		return router.Command{}, false
	}
	name, args, _ := strings.Cut(e.Message.Text[1:], " ")
	return router.Command{Name: name, Args: args, Busy: map[string]router.Busy{"reject": router.Reject, "stop": router.Interrupts}[name]}, true
}

func (s *scripted) Run(ctx context.Context, c router.Command, item sessions.InboxItem, control *router.Control) {
	s.ran = append(s.ran, fmt.Sprint(c.Name, " ", control.Busy()))
	switch c.Name {
	case "solo":
		control.Submit(ctx, item, c.Args, true)
	case "task":
		control.Task(func(ctx context.Context) { <-ctx.Done() })
	case "end":
		control.EndTask()
	}
}

func (s *scripted) Click(_ context.Context, item sessions.InboxItem, control *router.Control) {
	s.ran = append(s.ran, fmt.Sprint("click ", item.Event.Click.Data, " ", control.Busy()))
}

// P14: commands and buttons are handled beside a model that hangs; a command that can't is refused with a word.
func TestRouter_CommandsBesideATurn(t *testing.T) {
	s := &scripted{}
	rt.Within(t, rt.Options{Commands: func(*rt.Rig) router.Commands { return s }}, func(t *testing.T, r *rt.Rig) {
		r.Model.Hold()
		r.Say("a", "/reject")
		r.Say("a", "work")
		r.Say("a", "/status")
		r.Say("a", "/reject")
		r.Say("a", "/stop")
		click := r.Text("a", "")
		click.Message, click.Click = nil, &platforms.Click{Data: "yes"}
		r.Give(click)
		r.Settle()
		require.Equal(t, []string{"reject false", "status true", "stop true", "click yes true"}, s.ran)
		require.Equal(t, []string{rt.Busy("reject")}, r.Chat.Shown("a"))
		require.Equal(t, sessions.InboxDone, r.Inbox(4).State)
		r.Model.Release()
	})
}

func TestRouter_SoloMessagesGetATurnEach(t *testing.T) {
	s := &scripted{}
	rt.Within(t, rt.Options{Commands: func(*rt.Rig) router.Commands { return s }}, func(t *testing.T, r *rt.Rig) {
		r.Model.Hold()
		for _, text := range []string{"one", "two", "/solo three", "/solo four", "five", "six"} {
			r.Say("a", text)
		}
		require.NoError(t, r.Router.Do(t.Context(), rt.KeyOf("a"), func(c *router.Control) {
			require.False(t, c.Move(0, 1))
			require.False(t, c.Move(1, 6))
			require.True(t, c.Move(3, 1))
			require.True(t, c.Move(1, 3))
			_, ok := c.Remove(6)
			require.False(t, ok)
		}))
		r.Model.Release()
		r.Settle()
		require.Equal(t, []string{"one", "two", "three", "four", "five\n\nsix"}, r.Model.Asked())
	})
}

// A task keeps messages waiting, ends when it is told to, and never keeps the daemon from stopping.
func TestRouter_Tasks(t *testing.T) {
	s := &scripted{}
	rt.Within(t, rt.Options{Commands: func(*rt.Rig) router.Commands { return s }}, func(t *testing.T, r *rt.Rig) {
		r.Say("a", "/task")
		r.Say("a", "hello")
		require.Empty(t, r.Model.Asked())
		r.Say("a", "/end")
		require.Equal(t, []string{"hello"}, r.Model.Asked())
		r.Say("b", "/task")
	})
}

func TestRouter_DoHonoursItsContext(t *testing.T) {
	rt.Within(t, rt.Options{}, func(t *testing.T, r *rt.Rig) {
		block := make(chan struct{})
		go func() { _ = r.Router.Do(context.Background(), "k", func(*router.Control) { <-block }) }()
		r.Settle()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, r.Router.Do(short, "k", func(*router.Control) {}), context.DeadlineExceeded)
		close(block)
		r.Settle()
	})
}

// A message in the modes that change a running turn.
func TestRouter_BusyModes(t *testing.T) {
	for mode, want := range map[turn.Mode][]string{
		turn.Queue:     {rt.Queued(), "re: one", "re: two"},
		turn.Interrupt: {rt.Redirected(), "re: one\n\ntwo"},
		turn.Steer:     {rt.Steered(), "re: one", "re: two"}, // the answer was complete: no step was left for the note
	} {
		opt := rt.Options{Tune: func(o *router.Options) {
			o.Mode = func(platforms.Address, sessions.Options) turn.Mode { return mode }
		}}
		rt.Within(t, opt, func(t *testing.T, r *rt.Rig) {
			r.Model.Hold()
			r.Say("a", "one")
			r.Say("a", "two")
			r.Model.Release()
			r.Settle()
			require.Equal(t, want, r.Chat.Shown("a"))
			require.Equal(t, sessions.InboxDone, r.Inbox(2).State)
			overlaps, _ := r.Model.Overlaps()
			require.Zero(t, overlaps)
		})
	}
}
