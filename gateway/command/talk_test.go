package command_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	rt "herald/gateway/router/routertest"
	"herald/platforms"
	"herald/sessions"
)

func queued(r *rt.Rig, chat string) []string {
	text := ask(r, chat, "/queue")
	var out []string
	for _, line := range strings.Split(text, "\n")[1:] {
		_, line, _ = strings.Cut(line, "`")
		out = append(out, strings.TrimSuffix(line, "`"))
	}
	return out
}

func TestQueue(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, _ *desk) {
		require.Equal(t, "Nothing waits in line.", ask(r, "a", "/queue"))
		require.Equal(t, "re: at once", ask(r, "a", "/queue at once"))
		r.Model.Hold()
		r.Say("a", "running")
		for i, text := range []string{"one", "two", "three", "clear the table", "list my files"} {
			require.Equal(t, fmt.Sprintf("Queued, number %d in line.", i+1), ask(r, "a", "/q "+text))
		}
		require.Equal(t, []string{"one", "two", "three", "clear the table", "list my files"}, queued(r, "a"))
		require.Equal(t, "Number 5 is removed.", ask(r, "a", "/queue rm 5"))
		require.True(t, strings.HasPrefix(ask(r, "a", "/queue move 4 2"), "Number 4 is now number 2.\n"))
		require.Equal(t, "Number 3 now reads: `second`", ask(r, "a", "/queue edit 3 second"))
		require.Equal(t, []string{"one", "clear the table", "second", "three"}, queued(r, "a"))

		for _, bad := range [][2]string{
			{"/queue rm 9", "There is no number 9 in line; there are 4."}, {"/queue rm", "There is no number  in line; there are 4."},
			{"/queue rm x", "There is no number x in line; there are 4."}, {"/queue move 1 9", "There is no number 9 in line; there are 4."},
			{"/queue move 0 1", "There is no number 0 in line; there are 4."}, {"/queue edit 7 x", "There is no number 7 in line; there are 4."},
		} {
			require.Equal(t, bad[1], ask(r, "a", bad[0]))
		}
		require.Contains(t, ask(r, "a", "/queue move 1"), "\"move 1\"? Usage: `/queue")
		require.Contains(t, ask(r, "a", "/queue edit 1"), "Usage: `/queue")
		require.Equal(t, []string{"one", "clear the table", "second", "three"}, queued(r, "a"))

		r.Model.Release()
		r.Settle()
		require.Equal(t, []string{"at once", "running", "one", "clear the table", "second", "three"}, r.Model.Asked())
		r.Model.Hold()
		r.Say("a", "running")
		r.Say("a", "/q one")
		r.Say("a", "/q two")
		require.Equal(t, "2 messages are removed from the line.", ask(r, "a", "/queue clear"))
		require.Equal(t, "Nothing waits in line.", ask(r, "a", "/queue list"))
		r.Model.Release()
	})
}

// P1: what waits in line, also edited, waits for the next process, and nothing else is hit when a row runs again.
func TestQueue_SurvivesACrash(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, _ *desk) {
		r.Model.Hold()
		r.Say("a", "running")
		r.Say("a", "/q one")
		r.Say("a", "/q two")
		r.Say("a", "/queue edit 1 first")
		r.Restart()
		require.Equal(t, []string{"two", "first"}, queued(r, "a"))
		r.Restart()
		require.Equal(t, []string{"two", "first"}, queued(r, "a"))
		r.Model.Release()
		r.Settle()
		require.Equal(t, []string{"two", "first"}, r.Model.Asked()[3:])
		require.Equal(t, "replaced by /queue edit", r.Inbox(2).Reason)
	})
}

func TestQueue_FullIsSaidOnce(t *testing.T) {
	d := &desk{}
	rt.Within(t, rt.Options{Commands: d.commands(t), Tune: func(o *routerOptions) { o.QueueMax = 1 }}, func(t *testing.T, r *rt.Rig) {
		r.Model.Hold()
		r.Say("a", "running")
		r.Say("a", "/q one")
		for _, text := range []string{"/q two", "/steer two"} {
			before := len(r.Chat.Shown("a"))
			if text == "/steer two" {
				continue // a running turn takes it
			}
			r.Say("a", text)
			require.Equal(t, []string{rt.Full(1)}, r.Chat.Shown("a")[before:])
		}
		r.Model.Release()
	})
}

func TestStop(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, _ *desk) {
		require.Equal(t, "Nothing is running.", ask(r, "a", "/stop"))
		r.Model.Hold()
		r.Say("a", "one")
		require.Equal(t, "Stopped.", ask(r, "a", "/stop"))
		r.Say("a", "two")
		r.Say("a", "three")
		require.Equal(t, "Stopped. 1 message that waited is dropped.", ask(r, "a", "/stop"))
		require.Equal(t, "Nothing is running.", ask(r, "a", "/stop"))
		r.Model.Release()
		require.Equal(t, "re: one\n\ntwo\n\nfour", ask(r, "a", "four"))
		before := r.Chat.Shown("a")
		r.Restart()
		require.Equal(t, before, r.Chat.Shown("a"), "what was stopped stays stopped")
	})
}

// P1, and a full disk: a stop that can't be written down leaves the turn running, with what it was told meanwhile.
func TestStop_ThatFailsLetsTheTurnGoOn(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, _ *desk) {
		r.Model.Hold()
		r.Say("a", "one")
		r.Say("a", "/steer two")
		r.Store.Fail("command", 1)
		require.Equal(t, "/stop failed: the disk is full", ask(r, "a", "/stop"))
		r.Model.Release()
		r.Settle()
		require.Equal(t, []string{"re: one", "re: two"}, last(r.Chat.Shown("a"), 2), "no step was left that could take the note in: it comes next")
		require.Equal(t, sessions.InboxDone, r.Inbox(2).State)
	})
}

func TestNew(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, _ *desk) {
		r.Say("a", "hello")
		require.Contains(t, ask(r, "a", "/new"), "New session.")
		require.Equal(t, "re: hi", ask(r, "a", "hi"), "nothing of the old session")
		for args, title := range map[string]string{"": "", "now": "", "-y": "", "--yes": "", "Buy snow": "Buy snow", "We know": "We know",
			"Rome now": "Rome", "daily-y": "daily-y", "  Two\n lines  ": "Two lines", "*star*": `\*star\*`} {
			got := ask(r, "a", "/new "+args)
			if title == "" {
				require.True(t, strings.HasPrefix(got, "New session."), got)
			} else {
				require.True(t, strings.HasPrefix(got, "New session: "+title+"."), "%q: %s", args, got)
			}
		}
		require.Contains(t, ask(r, "a", "/new Rome"), "Another session is called \"Rome\", so the new one has no title.")
		require.Contains(t, ask(r, "a", "/title"), "no title")
		require.Equal(t, "That title has 101 characters; at most 100 are possible.", ask(r, "a", "/new "+strings.Repeat("ä", 101)))
		r.Model.Hold()
		r.Say("a", "one")
		r.Say("a", "two")
		require.Contains(t, ask(r, "a", "/new"), "New session.")
		r.Model.Release()
		require.Equal(t, "re: three", ask(r, "a", "three"))
		require.Equal(t, sessions.InboxDropped, r.Inbox(18).State)
	})
}

func TestUndoAndRetry(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, _ *desk) {
		require.Equal(t, "There is nothing to undo.", ask(r, "a", "/undo"))
		require.Equal(t, "There is no message to try again.", ask(r, "a", "/retry"))
		for _, text := range []string{"one", "two", "three", "four"} {
			r.Say("a", text)
		}
		require.Equal(t, "The last turn is undone. It began with: `four`", ask(r, "a", "/undo"))
		require.Equal(t, "The last 2 turns are undone. The first of them began with: `two`", ask(r, "a", "/undo 2"))
		for _, bad := range []string{"0", "-1", "x", "1001", "2 please"} {
			require.Equal(t, fmt.Sprintf("\"%s\" is no number from 1 to 1000.", strings.Replace(bad, "-", `\-`, 1)), ask(r, "a", "/undo "+bad))
		}
		require.Equal(t, []string{"user: one", "assistant: re: one"}, r.Transcript("a"))
		require.Equal(t, "re: one", ask(r, "a", "/retry"))
		require.Len(t, r.Model.Asked(), 5)
		require.Equal(t, []string{"user: one", "assistant: re: one"}, r.Transcript("a"))
		require.Equal(t, "The last turn is undone. It began with: `one`", ask(r, "a", "/undo 50"))
		require.Empty(t, r.Transcript("a"))
		r.Model.Hold()
		r.Say("a", "five")
		require.Equal(t, rt.Busy("undo"), ask(r, "a", "/undo"))
		require.Equal(t, rt.Busy("retry"), ask(r, "a", "/retry"))
		r.Model.Release()
	})
}

// P1: a crash between the undo and the turn of a /retry neither loses the message nor takes a second one back.
func TestRetry_AfterACrash(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, _ *desk) {
		r.Say("a", "one")
		r.Say("a", "two")
		r.Store.Fail("turn.begin", -1)
		r.Say("a", "/retry")
		require.Equal(t, []string{"user: one", "assistant: re: one"}, r.Transcript("a"))
		r.Restart()
		require.Equal(t, []string{"one", "two", "two"}, r.Model.Asked())
		require.Equal(t, []string{"user: one", "assistant: re: one", "user: two", "assistant: re: two"}, r.Transcript("a"))
		again(r, "/retry")
		require.Len(t, r.Model.Asked(), 3, "a row that is done runs no second time")
		r.Say("a", "/retry")
		r.View(func(v sessions.View) error {
			values, err := v.Values("retry")
			require.Len(t, values, 1, "the marks of old rows are gone")
			return err
		})
	})
}

func TestSteer(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, _ *desk) {
		require.Equal(t, "Usage: `/steer <note>`", ask(r, "a", "/steer"))
		r.Say("a", "/steer alone")
		require.ElementsMatch(t, []string{"re: alone", "Nothing is running, so I take it as a new message."}, r.Chat.Shown("a")[1:])
		r.Model.Hold()
		r.Say("a", "one")
		require.Equal(t, "Noted; I'll see it after the current step.", ask(r, "a", "/steer in red"))
		r.Model.Release()
		r.Settle()
		require.Equal(t, []string{"re: one", "re: in red"}, last(r.Chat.Shown("a"), 2), "no step was left that could take the note in: it comes next")
	})
}

func last(texts []string, n int) []string { return texts[max(0, len(texts)-n):] }

func TestBusyAndVerbose(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, _ *desk) {
		require.Contains(t, ask(r, "a", "/busy"), "handled like this: queue (it waits and comes next).")
		require.Equal(t, "\"loud\" is no such choice. Choose interrupt, queue or steer.", ask(r, "a", "/busy loud"))
		require.Contains(t, ask(r, "a", "/busy STEER"), "From now on, while I work: steer")
		require.Contains(t, ask(r, "a", "/busy status"), "steer")
		require.Contains(t, ask(r, "b", "/busy"), "queue", "another chat chooses for itself")
		require.Contains(t, ask(r, "a", "/status"), "steer")

		require.Equal(t, "Tool calls shown: all, with full arguments.", ask(r, "a", "/verbose"))
		require.Equal(t, "Tool calls shown: none.", ask(r, "a", "/verbose"))
		require.Equal(t, "Tool calls shown: when the tool changes.", ask(r, "a", "/verbose new"))
		require.Equal(t, "\"loud\"? Usage: `/verbose [off | new | all | verbose]`", ask(r, "a", "/verbose loud"))
		r.Restart()
		require.Contains(t, ask(r, "a", "/busy"), "steer")
		require.Equal(t, "Tool calls shown: all.", ask(r, "a", "/verbose"))
	})
}

func TestResend(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, _ *desk) {
		require.Equal(t, "Usage: `/resend <number>`", ask(r, "a", "/resend"))
		require.Equal(t, "\"x\"? Usage: `/resend <number>`", ask(r, "a", "/resend x"))
		require.Contains(t, ask(r, "a", "/resend #77"), "nothing to show again")
		r.Say("a", "hi")
		require.Contains(t, ask(r, "a", "/resend 1"), "nothing to show again", "what has arrived")
	})
}

// The effect, the answer and the end of the row are one: a row that runs again does nothing.
func TestCommands_RunOnce(t *testing.T) {
	for _, text := range []string{"/new Rome", "/undo", "/stop", "/queue clear", "/title Rome", "/busy steer", "/verbose off", "/model good", "/status", "/resume 1"} {
		at(t, func(t *testing.T, r *rt.Rig, _ *desk) {
			r.Say("a", "one")
			r.Say("a", "two")
			r.Say("a", text)
			shown, talk := r.Chat.Shown("a"), r.Transcript("a")
			again(r, text)
			require.Equal(t, shown, r.Chat.Shown("a"), text)
			require.Equal(t, talk, r.Transcript("a"), text)
		})
	}
}

// P1, P2, P3: whatever people, a stopping daemon and a platform that delivers twice do, turns of a conversation never
// overlap, every message ends, and none is answered twice.
func TestConversations_Property(t *testing.T) {
	rapid.Check(t, func(rapidT *rapid.T) {
		ops := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "a", "b", "steer a", "/stop a", "/new a", "/q a", "/undo a", "/retry a", "/stop b",
			"again", "step", "restart", "full"}), 1, 30).Draw(rapidT, "ops")
		d := &desk{}
		opt := rt.Options{Commands: d.commands(t), Tune: func(o *routerOptions) { o.MaxActive = func() int { return 1 } }}
		problem := ""
		rt.Within(t, opt, func(t *testing.T, r *rt.Rig) {
			r.Model.Hold()
			var last platforms.Event
			n := 0
			for _, op := range ops {
				verb, chat, _ := strings.Cut(op, " ")
				n++
				words := fmt.Sprintf("w%dw", n)
				switch {
				case op == "again":
					if last.ID != "" {
						r.Give(last)
					}
				case op == "step":
					r.Model.Step()
				case op == "restart":
					r.Restart()
				case op == "full":
					r.Store.Fail("turn.begin", 1)
				case verb == "steer":
					r.Give(r.Text(chat, "/steer "+words))
				case verb == "/q":
					r.Give(r.Text(chat, "/queue "+words))
				case chat != "":
					r.Give(r.Text(chat, verb))
				default:
					last = r.Text(verb, words)
					r.Give(last)
				}
				r.Settle()
			}
			r.Model.Release()
			r.Wait(60)
			if over, _ := r.Model.Overlaps(); over > 0 {
				problem = fmt.Sprint(over, " overlapping turns")
			}
			r.View(func(v sessions.View) error {
				counts, err := v.Counts()
				if counts.InboxNew != 0 || counts.TurnsRunning != 0 || counts.OutboxPending != 0 {
					problem += fmt.Sprintf(" left open: %+v", counts)
				}
				return err
			})
			if s := r.Router.Stats(); s.Actors+s.Running+s.Queued != 0 {
				problem += fmt.Sprintf(" not idle: %+v", s)
			}
			// A word may be in several answers, but it enters the conversations once, unless /retry puts it there again.
			seen := map[string]int{}
			r.View(func(v sessions.View) error {
				list, err := v.Sessions(sessions.SessionQuery{})
				for _, s := range list {
					rows, _ := v.Transcript(s.ID, true, 0, 0)
					for _, row := range rows {
						if row.Role == sessions.User {
							seen[row.Content]++
						}
					}
				}
				return err
			})
			retries := strings.Count(strings.Join(ops, ","), "/retry")
			for text, times := range seen {
				if times > 1+retries {
					problem += fmt.Sprintf(" %q was taken %d times", text, times)
				}
			}
		})
		if problem != "" {
			rapidT.Fatalf("%s after %q", problem, ops)
		}
	})
}
