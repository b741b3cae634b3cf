package router_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/router"
	rt "herald/gateway/router/routertest"
	"herald/platforms"
	"herald/sessions"
)

// P1: where the conversation is idle, one commit accepts a message and begins its turn; the second one ends the turn and
// claims its send. The receipt is the third, beside the path.
func TestOpening_TwoCommitsToAnAnswer(t *testing.T) {
	rt.Within(t, rt.Options{}, func(t *testing.T, r *rt.Rig) {
		r.Say("a", "first") // makes the session
		r.Wait(1)
		before := r.Store.Metrics().Commits
		r.Model.Hold()
		r.Give(r.Text("a", "hi"))
		require.Equal(t, int64(1), r.Store.Metrics().Commits-before)
		require.Equal(t, sessions.InboxClaimed, r.Inbox(2).State, "Accept returns when the turn has begun on disk")
		r.Model.Release()
		r.Settle()
		require.Equal(t, "re: hi", r.Chat.Last("a"))
		require.Equal(t, int64(2), r.Store.Metrics().Commits-before, "the answer is there and its receipt still waits")
		time.Sleep(sessions.LaterDelay)
		r.Settle()
		require.Equal(t, int64(3), r.Store.Metrics().Commits-before)
		require.Equal(t, router.Stats{}, r.Router.Stats())
	})
}

// A batch begins the turns of all its idle conversations; the second message of one joins what runs there.
func TestOpening_ABatch(t *testing.T) {
	rt.Within(t, rt.Options{}, func(t *testing.T, r *rt.Rig) {
		r.Model.Hold()
		before := r.Store.Metrics().Commits
		r.Give(r.Text("a", "one"), r.Text("b", "two"), r.Text("a", "three"))
		require.Equal(t, int64(1), r.Store.Metrics().Commits-before)
		r.Settle()
		require.Equal(t, router.Stats{Actors: 2, Running: 2, Queued: 1}, r.Router.Stats())
		r.Model.Release()
		r.Settle()
		require.Equal(t, "re: three", r.Chat.Last("a"))
		require.Equal(t, []string{"re: two"}, r.Chat.Shown("b"))
		require.Equal(t, []string{"user: one", "assistant: re: one", "user: three", "assistant: re: three"}, r.Transcript("a"))
	})
}

// P1, P2: what can't begin gives its slot back: a message that the store refused, a duplicate, a turn that has no model.
func TestOpening_NoSlotIsLost(t *testing.T) {
	opt := rt.Options{Tune: func(o *router.Options) { o.MaxActive = func() int { return 1 } }}
	rt.Within(t, opt, func(t *testing.T, r *rt.Rig) {
		refused := r.Text("a", "one")
		r.Store.Fail(sessions.EdgeAcceptBegin, 1)
		require.ErrorIs(t, r.Router.Accept(t.Context(), refused), platforms.ErrRefused)
		require.Equal(t, router.Stats{}, r.Router.Stats())
		r.Give(refused)
		r.Settle()
		r.Give(refused)
		r.Settle()
		require.Equal(t, router.Stats{}, r.Router.Stats())
		require.Equal(t, []string{"one"}, r.Model.Asked())

		r.NoModel.Store(true)
		r.Say("a", "two")
		r.View(func(v sessions.View) error {
			open, err := v.InboxOpen()
			require.Len(t, open, 1, "it is accepted all the same")
			require.Equal(t, sessions.InboxNew, open[0].State)
			return err
		})
		require.Equal(t, router.Stats{Actors: 1, Queued: 1}, r.Router.Stats())
		r.NoModel.Store(false)
		r.Wait(5)
		require.Equal(t, []string{"re: one", "re: two"}, r.Chat.Shown("a"))
		require.Equal(t, router.Stats{}, r.Router.Stats())
	})
}

// Who has to wait for a slot waits as before, and nobody overtakes.
func TestOpening_NotBeforeThoseThatWaitForASlot(t *testing.T) {
	opt := rt.Options{Tune: func(o *router.Options) { o.MaxActive = func() int { return 1 } }}
	rt.Within(t, opt, func(t *testing.T, r *rt.Rig) {
		r.Model.Hold()
		r.Give(r.Text("a", "one"), r.Text("b", "two"))
		r.Settle()
		require.Equal(t, router.Stats{Actors: 2, Running: 1, Queued: 1}, r.Router.Stats())
		r.Give(r.Text("c", "three"))
		r.Settle()
		r.Model.Release()
		time.Sleep(time.Second)
		r.Settle()
		require.Equal(t, []string{"one", "two", "three"}, r.Model.Asked())
	})
}
