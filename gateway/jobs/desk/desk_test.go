package desk

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/jobs"
	"herald/gateway/jobs/view"
	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
	"herald/tools"
)

// P6: a call of the tool sees the jobs of whoever wrote the message that its turn answers, in a run those of the chat of
// its job, and outside of a turn those of its session.
func TestDesk_OfCaller(t *testing.T) {
	store, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "herald.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	zone := func() *time.Location { return time.UTC }
	book := cron.NewBook(cron.BookOptions{Store: store, Zone: zone})
	d := New(Options{Store: store, Book: book, Views: view.Reader{Store: store, Zone: zone, Now: time.Now},
		KeyOptions: sessions.DefaultKeyOptions,
		Named:      func(o sessions.Origin) bool { return o.User == "admin" }})
	n := 0
	// turn begins a turn for a message of a person and returns the calls in it and after it.
	turn := func(at platforms.Address, kind platforms.ChatType, user string) (during, after tools.Caller) {
		n++
		e := platforms.Event{ID: platforms.EventID(string(rune('a' + n))), Address: at, ChatType: kind,
			Sender:  platforms.User{ID: platforms.UserID(user)},
			Message: &platforms.Message{ID: "m", Text: "x"}}
		key := sessions.KeyFor(sessions.SourceOf("default", e), sessions.DefaultKeyOptions())
		turn := sessions.Turn{Key: key, State: sessions.TurnRunning, Attempts: 1, Address: at, ReplyTo: "m", Began: time.Now()}
		require.NoError(t, store.Update(t.Context(), sessions.EdgeTurnBegin, func(tx sessions.Tx) error {
			id, _, err := tx.PutInbox(sessions.InboxItem{Key: key, Event: e, State: sessions.InboxNew, At: time.Now()})
			if err != nil {
				return err
			}
			s, err := tx.OpenSession(key, sessions.OriginOf(e, sessions.DefaultKeyOptions()), time.Now())
			if err != nil {
				return err
			}
			turn.Session = s.ID
			if err := tx.BeginTurn(&turn); err != nil {
				return err
			}
			return tx.SetInbox(sessions.InboxClaimed, turn.ID, "", id)
		}))
		during = tools.Caller{Session: string(turn.Session), Turn: int64(turn.ID)}
		return during, tools.Caller{Session: during.Session}
	}
	names := func(by tools.Caller) (out []string) {
		mine, err := d.OfCaller(t.Context(), by)
		require.NoError(t, err)
		list, err := mine.List(t.Context())
		require.NoError(t, err)
		for _, j := range list {
			out = append(out, j.Name)
		}
		return out
	}
	anna := from("slack", "D1", "anna")
	hers := newJob(t, book, "hers", &anna)
	nobodys := newJob(t, book, "nobody's", nil)

	during, after := turn(anna.Address, platforms.DM, "anna")
	require.Equal(t, []string{"hers"}, names(during))
	require.Equal(t, []string{"hers"}, names(after))
	bobs, _ := turn(from("slack", "D2", "bob").Address, platforms.DM, "bob")
	require.Empty(t, names(bobs))
	admins, _ := turn(from("slack", "D3", "admin").Address, platforms.DM, "admin")
	require.Equal(t, []string{"hers", "nobody's"}, names(admins))
	room, _ := turn(from("slack", "C1", "admin").Address, platforms.Channel, "admin")
	require.Empty(t, names(room), "a room is not shown what other people have asked for")

	run := func(id cron.JobID) tools.Caller {
		at := platforms.Address{Platform: jobs.Platform, Account: "default", Chat: platforms.ChatID(id), Thread: "1"}
		during, _ := turn(at, platforms.DM, "")
		return during
	}
	require.Equal(t, []string{"hers"}, names(run(hers.ID)))
	require.Empty(t, names(run(nobodys.ID)))
	mine, err := d.OfCaller(t.Context(), run(hers.ID))
	require.NoError(t, err)
	made, err := mine.Create(t.Context(), cron.Change{Schedule: ptr("30m"), Prompt: ptr("p")}, nil)
	require.NoError(t, err)
	task, err := made.Plan.ReadTask()
	require.NoError(t, err)
	require.Equal(t, anna.User, task.Origin.User, "what a run makes belongs to the chat of its job")

	_, err = d.OfCaller(t.Context(), tools.Caller{Session: "none"})
	require.ErrorIs(t, err, sessions.ErrNotFound)
}
