package router_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/model"
	"herald/gateway/router"
	rt "herald/gateway/router/routertest"
	"herald/gateway/turn"
	"herald/platforms"
	"herald/sessions"
	"herald/tools"
)

// wake is news for a chat that has a session.
func wake(r *rt.Rig, chat, id, text string) router.Wake {
	w := router.Wake{ID: id, Source: "process", Key: rt.KeyOf(chat), Address: rt.Address(chat), User: platforms.UserID("user-" + chat), Text: text}
	r.View(func(v sessions.View) error {
		route, err := v.Route(w.Key)
		w.Session = route.Session
		return err
	})
	return w
}

func give(t *testing.T, r *rt.Rig, w router.Wake) {
	t.Helper()
	require.NoError(t, r.Router.Wake(t.Context(), w, nil))
}

// P5: news of Herald's own become a turn of their conversation, once, behind what runs there.
func TestRouter_WakeIsATurnOnce(t *testing.T) {
	rt.Within(t, rt.Options{}, func(t *testing.T, r *rt.Rig) {
		r.Say("a", "start it")
		r.Model.Hold()
		r.Give(r.Text("a", "meanwhile"))
		r.Settle()
		w := wake(r, "a", "p1/done", "it has ended")
		w.Notice = rt.Row(rt.Address("a"), "⚙️ ended")
		give(t, r, w)
		w.Notice = rt.Row(rt.Address("a"), "⚙️ ended")
		give(t, r, w)
		give(t, r, wake(r, "a", "p2/done", "so has the other"))
		r.Settle()
		require.Equal(t, []string{"start it", "meanwhile"}, r.Model.Asked(), "it waits behind the running turn")
		r.Model.Release()
		r.Settle()
		require.Equal(t, []string{"re: start it", "⚙️ ended", "re: meanwhile", "re: it has ended\n\nso has the other"}, r.Chat.Shown("a"))
		require.Equal(t, 1, r.Counts.Of("internal", "duplicate"))
		require.Equal(t, 2, r.Counts.Of("internal", "accepted"))
		require.Contains(t, r.Transcript("a"), "user: it has ended")
		require.Empty(t, r.Chat.Shown("b"))
	})
}

// P1: accepted news survive the process, also what their caller noted with them.
func TestRouter_WakeSurvivesARestart(t *testing.T) {
	rt.Within(t, rt.Options{}, func(t *testing.T, r *rt.Rig) {
		r.Say("a", "start it")
		r.Model.Hold()
		require.NoError(t, r.Router.Wake(t.Context(), wake(r, "a", "p1/done", "it has ended"), func(tx sessions.Tx) error {
			return tx.SetValue("test", "told", []byte("1"), r.Inbox(1).At)
		}))
		r.Settle()
		r.Restart()
		r.Model.Release()
		r.Settle()
		require.Equal(t, []string{"re: start it", "re: it has ended"}, r.Chat.Shown("a"))
		r.View(func(v sessions.View) error {
			_, err := v.Value("test", "told")
			return err
		})

		r.Store.Fail(sessions.EdgeAccept, 1)
		w := wake(r, "a", "p2/done", "lost")
		require.ErrorIs(t, r.Router.Wake(t.Context(), w, func(tx sessions.Tx) error {
			return tx.SetValue("test", "lost", []byte("1"), r.Inbox(1).At)
		}), sessions.ErrFull)
		r.View(func(v sessions.View) error {
			_, err := v.Value("test", "lost")
			require.ErrorIs(t, err, sessions.ErrNotFound)
			return nil
		})
	})
}

// P6, P7: news of a session in whose place another has begun are heard by nobody, and counted; also when they were
// accepted before.
func TestRouter_WakeOfAnEndedSessionIsDropped(t *testing.T) {
	renew := func(r *rt.Rig, chat string) {
		r.Update(func(tx sessions.Tx) error {
			s, err := tx.OpenSession(rt.KeyOf(chat), sessions.Origin{}, r.Inbox(1).At)
			if err != nil {
				return err
			}
			_, err = tx.NewSession(rt.KeyOf(chat), s.Origin, "new", r.Inbox(1).At)
			return err
		})
	}
	rt.Within(t, rt.Options{}, func(t *testing.T, r *rt.Rig) {
		r.Say("a", "start it")
		before := wake(r, "a", "p1/done", "secret of the old session")
		renew(r, "a")
		give(t, r, before)
		r.Settle()
		require.Equal(t, []string{"start it"}, r.Model.Asked())
		item := r.Inbox(2)
		require.Equal(t, sessions.InboxDropped, item.State)
		require.Equal(t, "its session has ended", item.Reason)
		require.Nil(t, item.Event.Internal, "a dropped row keeps no content")
		require.Equal(t, 1, r.Counts.Of("internal", "dropped"))

		r.Model.Hold()
		r.Give(r.Text("a", "again"))
		r.Settle()
		give(t, r, wake(r, "a", "p2/done", "too late"))
		r.Settle()
		renew(r, "a")
		r.Model.Release()
		r.Settle()
		require.NotContains(t, r.Model.Asked(), "too late")
		require.Equal(t, sessions.InboxDropped, r.Inbox(4).State)
		require.Equal(t, 2, r.Counts.Of("internal", "dropped"))
	})
}

// Only the core makes internal events.
func TestRouter_InternalEventsOfAdaptersAreRefused(t *testing.T) {
	rt.Within(t, rt.Options{}, func(t *testing.T, r *rt.Rig) {
		e := r.Text("a", "")
		e.Message, e.Internal = nil, &platforms.Internal{Source: "process", Text: "do it"}
		require.NoError(t, r.Router.Accept(context.Background(), e))
		r.Settle()
		require.Empty(t, r.Model.Asked())
		require.Equal(t, 1, r.Counts.Of("internal", "invalid"))
	})
}

// A call that only waits makes way for a person's message, and the turn takes it in.
func TestRouter_MessagesEndCallsThatWait(t *testing.T) {
	waiting := tools.Tool{Spec: tools.Spec{Name: "wait", Toolset: "test", Timeout: -1},
		Run: func(ctx context.Context, _ tools.Call) (tools.Result, error) {
			select {
			case <-tools.Attention(ctx):
				return tools.Result{Content: "cut short"}, nil
			case <-ctx.Done():
				return tools.Result{}, ctx.Err()
			}
		}}
	for _, mode := range []turn.Mode{turn.Interrupt, turn.Steer} {
		t.Run(string(mode), func(t *testing.T) {
			rt.Within(t, rt.Options{Tools: []tools.Tool{waiting}, Tune: func(o *router.Options) {
				o.Mode = func(platforms.Address, sessions.Options) turn.Mode { return mode }
			}}, func(t *testing.T, r *rt.Rig) {
				r.Model.Answer = func(_ context.Context, req model.Request) (model.Response, error) {
					last := req.Messages[len(req.Messages)-1]
					if last.Role == "user" && last.Text == "go" {
						return model.Response{ToolCalls: []model.ToolCall{{ID: "c1", Name: "wait", Arguments: "{}"}}}, nil
					}
					return model.Response{Text: "heard " + last.Text}, nil
				}
				r.Say("a", "go")
				r.Say("a", "stop waiting")
				shown := strings.Join(r.Chat.Shown("a"), "\n") // the ack has a lane of its own: it may come before or behind the answer
				require.Regexp(t, `heard (?s:.*)stop waiting`, shown)
				require.Contains(t, r.Transcript("a"), "tool: cut short")
			})
		})
	}
}
