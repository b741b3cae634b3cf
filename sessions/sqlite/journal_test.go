package sqlite

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/sessions"
)

func put(t testing.TB, s *Store, item sessions.InboxItem) (id sessions.InboxID, duplicate bool) {
	t.Helper()
	update(t, s, func(tx sessions.Tx) (err error) {
		id, duplicate, err = tx.PutInbox(item)
		return err
	})
	return id, duplicate
}

// P2: a redelivered event changes nothing, also after a restart.
func TestStore_PutInbox_P2_Duplicate(t *testing.T) {
	path := t.TempDir() + "/herald.db"
	s, err := Open(t.Context(), Options{Path: path})
	require.NoError(t, err)
	e := event("17", "ada", "buy milk")
	first, dup := put(t, s, sessions.InboxItem{Key: keyOf("ada"), Event: e})
	require.False(t, dup)
	require.NoError(t, s.Close())

	s = openAt(t, path)
	again, dup := put(t, s, sessions.InboxItem{Key: "other", Event: event("17", "ada", "changed")})
	require.True(t, dup)
	require.Equal(t, first, again)
	for _, other := range []func(*platforms.Event){
		func(e *platforms.Event) { e.ID = "18" },
		func(e *platforms.Event) { e.Address.Account = "bot2" },
		func(e *platforms.Event) { e.Address.Platform = "slack" },
	} {
		e := event("17", "ada", "another one")
		other(&e)
		_, dup := put(t, s, sessions.InboxItem{Key: keyOf("ada"), Event: e})
		require.False(t, dup)
	}
	viewing(t, s, func(v sessions.View) {
		got, err := v.InboxItem(first)
		require.NoError(t, err)
		require.Equal(t, "buy milk", got.Event.Message.Text)
		require.Equal(t, keyOf("ada"), got.Key)
		open, err := v.InboxOpen()
		require.NoError(t, err)
		require.Len(t, open, 4)
	})
}

func TestStore_PutInbox_KeepsTheEvent(t *testing.T) {
	s := openStore(t)
	e := event("1", "ada", "hi")
	e.Message.Attachments = []platforms.Attachment{{Kind: platforms.Document, Name: "../x", Ref: "file_1"}}
	e.At = clock
	id, _ := put(t, s, sessions.InboxItem{Key: keyOf("ada"), Event: e})
	viewing(t, s, func(v sessions.View) {
		got, err := v.InboxItem(id)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(sessions.InboxItem{ID: id, Key: keyOf("ada"), Event: e, State: sessions.InboxNew, At: clock}, got))
		_, err = v.InboxItem(99)
		require.ErrorIs(t, err, sessions.ErrNotFound)
	})
}

// A row that is dropped holds nothing that a person wrote or is called.
func TestStore_Inbox_DroppedKeepsNoContent(t *testing.T) {
	s := openStore(t)
	e := event("1", "ada", "secret words")
	e.ChatName, e.Sender.Username = "secret room", "secret_name"
	atOnce, _ := put(t, s, sessions.InboxItem{Event: e, State: sessions.InboxDropped, Reason: "not allowed"})
	e.ID = "2"
	later, _ := put(t, s, sessions.InboxItem{Event: e})
	update(t, s, func(tx sessions.Tx) error { return tx.SetInbox(sessions.InboxDropped, 0, "stale", later) })
	viewing(t, s, func(v sessions.View) {
		for id, reason := range map[sessions.InboxID]string{atOnce: "not allowed", later: "stale"} {
			got, err := v.InboxItem(id)
			require.NoError(t, err)
			require.Equal(t, reason, got.Reason)
			require.Nil(t, got.Event.Message)
			require.Equal(t, e.Address, got.Event.Address)
			raw, err := v.(*view).c.text("SELECT event FROM inbox WHERE id = ?", int64(id))
			require.NoError(t, err)
			require.NotContains(t, raw, "secret")
			require.NotContains(t, raw, "Name of")
		}
	})
}

// P1: what is open is exactly what a restart has to go on with.
func TestStore_InboxOpen_P1(t *testing.T) {
	s := openStore(t)
	ids := make([]sessions.InboxID, 5)
	for i := range ids {
		ids[i], _ = put(t, s, sessions.InboxItem{Key: keyOf("ada"), Event: event(string(rune('1'+i)), "ada", "x")})
	}
	running, over := &sessions.Turn{Key: keyOf("ada")}, &sessions.Turn{Key: keyOf("ada")}
	update(t, s, func(tx sessions.Tx) error {
		require.NoError(t, tx.BeginTurn(running))
		require.NoError(t, tx.BeginTurn(over))
		require.NoError(t, tx.SetInbox(sessions.InboxClaimed, running.ID, "", ids[1], ids[3]))
		require.NoError(t, tx.SetInbox(sessions.InboxClaimed, over.ID, "", ids[2]))
		require.NoError(t, tx.SetInbox(sessions.InboxDone, 0, "", ids[4]))
		return tx.SetTurn(over.ID, sessions.TurnFailed, "broken", clock)
	})
	viewing(t, s, func(v sessions.View) {
		open, err := v.InboxOpen()
		require.NoError(t, err)
		var got []sessions.InboxID
		for _, it := range open {
			got = append(got, it.ID)
		}
		require.Equal(t, []sessions.InboxID{ids[0], ids[1], ids[3]}, got)
		of, err := v.InboxOf(running.ID)
		require.NoError(t, err)
		require.Len(t, of, 2)
		of, err = v.InboxOf(0)
		require.NoError(t, err)
		require.Empty(t, of)
	})
}

func TestStore_SetInbox_MissingRowMovesNone(t *testing.T) {
	s := openStore(t)
	id, _ := put(t, s, sessions.InboxItem{Event: event("1", "ada", "x")})
	err := s.Update(t.Context(), sessions.EdgeDrop, func(tx sessions.Tx) error { return tx.SetInbox(sessions.InboxDone, 0, "", id, 99) })
	require.ErrorIs(t, err, sessions.ErrNotFound)
	viewing(t, s, func(v sessions.View) {
		got, err := v.InboxItem(id)
		require.NoError(t, err)
		require.Equal(t, sessions.InboxNew, got.State)
	})
}

func TestStore_Turn(t *testing.T) {
	s := openStore(t)
	turn := &sessions.Turn{Session: "s", Key: keyOf("ada"), Address: platforms.Address{Platform: "telegram", Account: "bot", Chat: "ada",
		Thread: "7"}, ReplyTo: "m1", Began: clock}
	update(t, s, func(tx sessions.Tx) error { return tx.BeginTurn(turn) })
	require.Equal(t, sessions.TurnRunning, turn.State)
	moved := platforms.Address{Platform: "telegram", Account: "bot", Chat: "ada"}
	update(t, s, func(tx sessions.Tx) error {
		got, err := tx.Turn(turn.ID)
		require.NoError(t, err)
		require.Equal(t, *turn, got)
		n, err := tx.RetryTurn(turn.ID)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.NoError(t, tx.RouteTurn(turn.ID, moved, "m2"))
		running, err := tx.TurnsRunning()
		require.NoError(t, err)
		require.Len(t, running, 1)
		require.NoError(t, tx.SetTurn(turn.ID, sessions.TurnRunning, "waits", clock.Add(1)))
		return tx.SetTurn(turn.ID, sessions.TurnParked, "crashed", clock.Add(time.Minute))
	})
	viewing(t, s, func(v sessions.View) {
		got, err := v.Turn(turn.ID)
		require.NoError(t, err)
		require.Equal(t, sessions.Turn{ID: turn.ID, Session: "s", Key: keyOf("ada"), State: sessions.TurnParked, Attempts: 2, Address: moved,
			ReplyTo: "m2",
			Reason:  "crashed", Began: clock, Ended: clock.Add(time.Minute)}, got)
		running, err := v.TurnsRunning()
		require.NoError(t, err)
		require.Empty(t, running)
		_, err = v.Turn(99)
		require.ErrorIs(t, err, sessions.ErrNotFound)
	})
	update(t, s, func(tx sessions.Tx) error {
		_, err := tx.RetryTurn(99)
		require.ErrorIs(t, err, sessions.ErrNotFound)
		require.ErrorIs(t, tx.SetTurn(99, sessions.TurnDone, "", clock), sessions.ErrNotFound)
		require.ErrorIs(t, tx.RouteTurn(99, moved, ""), sessions.ErrNotFound)
		return nil
	})
}

func TestStore_Calls(t *testing.T) {
	s := openStore(t)
	turn := &sessions.Turn{}
	update(t, s, func(tx sessions.Tx) error {
		require.NoError(t, tx.BeginTurn(turn))
		require.NoError(t, tx.StartCall(turn.ID, "z", "terminal", clock))
		require.NoError(t, tx.StartCall(turn.ID, "a", "patch", clock))
		require.ErrorIs(t, tx.StartCall(turn.ID, "z", "terminal", clock), sessions.ErrConflict)
		require.ErrorIs(t, tx.StartCall(99, "z", "terminal", clock), sessions.ErrNotFound)
		require.ErrorIs(t, tx.FinishCall(turn.ID, "none", clock), sessions.ErrNotFound)
		require.NoError(t, tx.FinishCall(turn.ID, "z", clock.Add(1)))
		return tx.FinishCall(turn.ID, "z", clock.Add(2))
	})
	viewing(t, s, func(v sessions.View) {
		calls, err := v.Calls(turn.ID)
		require.NoError(t, err)
		require.Equal(t, []sessions.CallRow{
			{Turn: turn.ID, Call: "z", Name: "terminal", State: sessions.CallFinished, Started: clock, Ended: clock.Add(1)},
			{Turn: turn.ID, Call: "a", Name: "patch", State: sessions.CallStarted, Started: clock},
		}, calls)
	})
}

func TestStore_Outbox(t *testing.T) {
	s := openStore(t)
	at := platforms.Address{Platform: "telegram", Account: "bot", Chat: "ada/1"}
	plain := &sessions.OutboxRow{Kind: sessions.OutFinal, Turn: 3, Session: "s",
		Message: platforms.Outgoing{Address: at, Text: platforms.Text{Body: "<b>hi</b>"},
			Buttons: [][]platforms.Button{{{Label: "ok", Data: "1"}}}}}
	given := &sessions.OutboxRow{Kind: sessions.OutControl, Lane: "x#control", State: sessions.OutCancelled,
		Message: platforms.Outgoing{Address: at, Nonce: "mine"}}
	update(t, s, func(tx sessions.Tx) error { return tx.PutOutbox(plain, given) })
	require.Equal(t, at.String(), plain.Lane)
	require.Equal(t, sessions.OutPending, plain.State)
	require.Len(t, plain.Message.Nonce, 32)
	require.Equal(t, "mine", given.Message.Nonce)
	require.Equal(t, "x#control", given.Lane)
	changed := *plain
	changed.State, changed.Sent, changed.Attempts, changed.NotBefore, changed.Error = sessions.OutAttempting, "77", 2, clock.Add(time.Hour), "slow down"
	changed.Message.Text.Body = "plain"
	update(t, s, func(tx sessions.Tx) error {
		require.ErrorIs(t, tx.SetOutbox(sessions.OutboxRow{ID: 99}), sessions.ErrNotFound)
		return tx.SetOutbox(changed)
	})
	viewing(t, s, func(v sessions.View) {
		got, err := v.OutboxRow(plain.ID)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(changed, got))
		_, err = v.OutboxRow(99)
		require.ErrorIs(t, err, sessions.ErrNotFound)
		open, err := v.OutboxOpen()
		require.NoError(t, err)
		require.Empty(t, cmp.Diff([]sessions.OutboxRow{changed}, open))
		of, err := v.OutboxOf(3)
		require.NoError(t, err)
		require.Len(t, of, 1)
		of, err = v.OutboxOf(0)
		require.NoError(t, err)
		require.Empty(t, of)
	})
}

// The ids of rows are given in place even when the update is then undone; the rows are not there.
func TestStore_PutOutbox_Undone(t *testing.T) {
	s := openStore(t)
	row := &sessions.OutboxRow{}
	err := s.Update(t.Context(), sessions.EdgeQueue, func(tx sessions.Tx) error {
		require.NoError(t, tx.PutOutbox(row))
		return errors.New("no")
	})
	require.Error(t, err)
	viewing(t, s, func(v sessions.View) {
		open, err := v.OutboxOpen()
		require.NoError(t, err)
		require.Empty(t, open)
	})
}
