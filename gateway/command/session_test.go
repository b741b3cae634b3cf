package command_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/model"
	"herald/gateway/router"
	rt "herald/gateway/router/routertest"
	"herald/platforms"
	"herald/sessions"
)

type routerOptions = router.Options

func TestTitle(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, _ *desk) {
		require.Contains(t, ask(r, "a", "/title"), "no title")
		require.Equal(t, `This session is now called "My talk".`, ask(r, "a", "/title  My \n talk "))
		require.Equal(t, `This session is called "My talk".`, ask(r, "a", "/title"))
		require.Equal(t, `Another session is called "My talk". Choose another title.`, ask(r, "b", "/title My talk"))
		require.Contains(t, ask(r, "b", "/title "+strings.Repeat("x", 101)), "101 characters; at most 100")
	})
}

func TestSessionsAndResume(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, d *desk) {
		require.Equal(t, "There are no earlier sessions.", ask(r, "a", "/sessions"))
		r.Say("other", "a secret of somebody else")
		r.Say("other", "/title plan of the other")
		for _, title := range []string{"plan", "plan b", "2026", "untitled"} {
			r.Say("a", "words of "+title)
			if title != "untitled" {
				r.Say("a", "/title "+title)
			}
			r.Say("a", "/new")
			r.Wait(60) // lists are in the order of time
		}
		list := ask(r, "a", "/sessions")
		require.Contains(t, list, "2. **words of untitled** (2 messages")
		require.Contains(t, list, "5. **plan** (2 messages")
		require.NotContains(t, list, "other", "P6")
		require.Equal(t, list, ask(r, "a", "/resume"))
		require.NotContains(t, ask(r, "a", "/sessions search plan"), "2026")
		require.Equal(t, `No session matches "nope".`, ask(r, "a", "/sessions nope"))
		require.Contains(t, ask(r, "a", "/sessions all"), "plan of the other")
		d.user = true
		require.Contains(t, ask(r, "a", "/sessions all"), "may list the sessions of all chats.")

		require.Equal(t, `Back in "plan" (2 messages).`, ask(r, "a", "/resume Plan"), "the exact title, not the newer one that contains it")
		require.Equal(t, []string{"user: words of plan", "assistant: re: words of plan"}, r.Transcript("a"))
		require.Equal(t, "You are in that session already.", ask(r, "a", "/resume plan"))
		require.Equal(t, `Back in "2026" (2 messages).`, ask(r, "a", "/resume 2026"))
		require.Contains(t, ask(r, "a", "/resume pla"), "Several sessions match")
		require.Equal(t, `Back in "plan b" (2 messages).`, ask(r, "a", "/resume an b"))
		require.Contains(t, ask(r, "a", "/resume words of"), "No session here is called")

		var id, theirs sessions.ID
		r.View(func(v sessions.View) error {
			found, err := v.Sessions(sessions.SessionQuery{Title: "plan"})
			other, _ := v.Route(rt.KeyOf("other"))
			id, theirs = found[0].ID, other.Session
			return err
		})
		require.Equal(t, `Back in "plan" (2 messages).`, ask(r, "a", "/resume "+string(id)))
		for _, name := range []string{string(theirs), "plan of the other", "of the other", "99", "0", "-1"} {
			require.Contains(t, ask(r, "a", "/resume "+name), "No session here is called", "P6: %s", name)
		}
		require.Equal(t, "re: more", ask(r, "a", "more"))
		require.Equal(t, "user: words of plan", r.Transcript("a")[0])
	})
}

func TestModel(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, _ *desk) {
		require.Contains(t, ask(r, "a", "/model"), "This session uses `test/scripted`.\nModels:\n- `test/scripted`\n- `test/good`")
		require.Equal(t, `I can't use "bad\*". /model lists what is possible. (no such model)`, ask(r, "a", "/model bad*"))
		require.Equal(t, "This session now uses `test/good`.", ask(r, "a", "/model good"))
		require.Contains(t, ask(r, "a", "/model"), "This session uses `test/good`; the configured one is `test/scripted`.")
		require.Contains(t, ask(r, "a", "/status"), "Model: `test/good`")
		r.Say("a", "/new")
		require.Contains(t, ask(r, "a", "/model"), "This session uses `test/scripted`.", "a choice ends with its session")
		r.Say("a", "/model good")
		for _, word := range []string{"default", "reset"} {
			require.Equal(t, "This session uses the configured model again: `test/scripted`.", ask(r, "a", "/model "+word))
		}
	})
}

func TestCompress(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, d *desk) {
		r.Model.Answer = func(ctx context.Context, req model.Request) (model.Response, error) {
			text := "re: " + rt.LastUser(req)
			if strings.HasPrefix(req.System, "Summarise") {
				text = "the gist"
			}
			return model.Response{Text: text}, nil
		}
		require.Equal(t, "The conversation is too short to be summarised.", ask(r, "a", "/compress"))
		for _, text := range []string{"one", "two", "three", "four"} {
			r.Say("a", text)
		}
		require.Equal(t, "\"many\" is no number from 0 to 1000.", ask(r, "a", "/compress here many"))
		require.Contains(t, ask(r, "a", "/compact the plan"), "Summarised: from ")
		require.Equal(t, "the plan", d.focus)
		talk := r.Transcript("a")
		require.Len(t, talk, 5)
		require.Contains(t, talk[0], "the gist")
		require.Equal(t, "user: three", talk[1])
		require.Contains(t, ask(r, "a", "/compress here 0"), "Summarised")
		require.Equal(t, "user: four", r.Transcript("a")[1], "the newest question stays")
		require.Contains(t, ask(r, "a", "five"), "re: ")

		// A chat in which only Herald has spoken.
		r.Say("b", "/title quiet")
		r.Update(func(tx sessions.Tx) error {
			route, err := tx.Route(rt.KeyOf("b"))
			for range 3 {
				if err == nil {
					err = tx.Append(&sessions.Message{Session: route.Session, Role: sessions.Assistant, Kind: sessions.KindMirror, Content: "it is noon",
						Active: true})
				}
			}
			return err
		})
		require.Contains(t, ask(r, "b", "/compress here 0"), "Summarised")
	})
}

// A model that hangs holds neither /stop nor the daemon up.
func TestCompress_ThatHangs(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, _ *desk) {
		for _, text := range []string{"one", "two", "three", "four"} {
			r.Say("a", text)
		}
		r.Model.Hold()
		r.Say("a", "/compress")
		r.Say("a", "five")
		require.Equal(t, rt.Busy("undo"), ask(r, "a", "/undo"))
		require.Equal(t, "Stopped. 1 message that waited is dropped.", ask(r, "a", "/stop"))
		require.Len(t, r.Transcript("a"), 8)
		require.Equal(t, sessions.InboxDone, r.Inbox(5).State)
		r.Say("a", "/compress here 1")
		r.Restart()
		r.Model.Release()
		r.Settle()
		require.Contains(t, r.Chat.Last("a"), "Summarised", "the next process takes it up again")
	})
}

func TestInfo(t *testing.T) {
	at(t, func(t *testing.T, r *rt.Rig, _ *desk) {
		require.Empty(t, ask(r, "a", "/start"))
		require.Contains(t, ask(r, "a", "/usage"), "no tokens yet")
		require.Contains(t, ask(r, "a", "/context"), "no tokens yet")
		r.Say("a", "hello")
		require.Contains(t, ask(r, "a", "/usage"), "1 model call")
		require.Contains(t, ask(r, "a", "/context"), "1,000")
		require.Contains(t, ask(r, "a", "/help q"), "`/queue <message>")
		require.Contains(t, ask(r, "a", "/help q"), "Also: /q")
		require.Contains(t, ask(r, "a", "/help !nope*"), `I don't know /nope\*.`)
		require.Contains(t, ask(r, "a", "/commands"), "Commands, page 1 of 3:")
		require.Contains(t, ask(r, "a", "/commands 2"), "page 2 of 3")
		for _, bad := range []string{"0", "4", "x"} {
			require.Equal(t, "\""+bad+"\" is no number from 1 to 3.", ask(r, "a", "/commands "+bad))
		}
		status := ask(r, "a", "/status")
		for _, part := range []string{"State: idle", "Messages: 2", "an account", "Tokens: 1 in, 1 out"} {
			require.Contains(t, status, part)
		}
		r.Model.Hold()
		r.Say("a", "one")
		r.Say("a", "two")
		status = ask(r, "a", "/status")
		require.Contains(t, status, "Waiting for the model")
		require.Contains(t, status, "Waiting: 1 message")
		r.Model.Release()
		r.Settle()

		anonymous := r.Text("a", "/whoami")
		anonymous.ChatType, anonymous.Sender = platforms.Group, platforms.User{}
		r.Give(anonymous)
		r.Settle()
		require.Contains(t, r.Chat.Last("a"), "The platform does not say who you are.")
		require.Contains(t, r.Chat.Last("a"), "group")
	})
}
