package sqlite

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/sessions"
)

func TestStore_OpenSession_OncePerKey(t *testing.T) {
	s := openStore(t)
	viewing(t, s, func(v sessions.View) {
		_, err := v.Route(keyOf("ada"))
		require.ErrorIs(t, err, sessions.ErrNotFound)
		_, err = v.Session("none")
		require.ErrorIs(t, err, sessions.ErrNotFound)
	})
	first := openSession(t, s, "ada")
	require.Equal(t, first, openSession(t, s, "ada"))
	require.NotEqual(t, first.ID, openSession(t, s, "bob").ID)
	viewing(t, s, func(v sessions.View) {
		got, err := v.Session(first.ID)
		require.NoError(t, err)
		require.Equal(t, first, got)
		require.Equal(t, origin("ada"), got.Origin)
		require.Equal(t, clock, got.CreatedAt)
		route, err := v.Route(keyOf("ada"))
		require.NoError(t, err)
		require.Equal(t, sessions.Route{Key: keyOf("ada"), Session: first.ID}, route)
	})
}

func TestStore_NewSession_EndsTheOldOne(t *testing.T) {
	s := openStore(t)
	old := openSession(t, s, "ada")
	later := clock.Add(time.Hour)
	var fresh sessions.Session
	update(t, s, func(tx sessions.Tx) (err error) {
		require.NoError(t, tx.SetOptions(keyOf("ada"), sessions.Options{Busy: "queue", Model: "big", Progress: "all"}))
		fresh, err = tx.NewSession(keyOf("ada"), origin("ada"), "new", later)
		return err
	})
	viewing(t, s, func(v sessions.View) {
		route, err := v.Route(keyOf("ada"))
		require.NoError(t, err)
		require.Equal(t, fresh.ID, route.Session)
		require.Equal(t, sessions.Options{Busy: "queue", Progress: "all"}, route.Options, "the model goes, the rest stays")
		ended, err := v.Session(old.ID)
		require.NoError(t, err)
		require.Equal(t, later, ended.EndedAt)
		require.Equal(t, "new", ended.EndReason)
	})
}

func TestStore_SetOptions_BeforeTheFirstSession(t *testing.T) {
	s := openStore(t)
	update(t, s, func(tx sessions.Tx) error { return tx.SetOptions(keyOf("ada"), sessions.Options{Busy: "steer"}) })
	se := openSession(t, s, "ada")
	viewing(t, s, func(v sessions.View) {
		route, err := v.Route(keyOf("ada"))
		require.NoError(t, err)
		require.Equal(t, sessions.Route{Key: keyOf("ada"), Session: se.ID, Options: sessions.Options{Busy: "steer"}}, route)
	})
}

func TestStore_SwitchSession(t *testing.T) {
	s := openStore(t)
	first, bob := openSession(t, s, "ada"), openSession(t, s, "bob")
	var second sessions.Session
	update(t, s, func(tx sessions.Tx) (err error) {
		second, err = tx.NewSession(keyOf("ada"), origin("ada"), "new", clock)
		require.NoError(t, err)
		return tx.SetOptions(keyOf("ada"), sessions.Options{Busy: "queue", Model: "big"})
	})
	try := func(to, expected sessions.ID) (got sessions.Session, err error) {
		err = s.Update(t.Context(), sessions.EdgeCommand, func(tx sessions.Tx) (err error) {
			got, err = tx.SwitchSession(keyOf("ada"), to, expected, clock.Add(time.Minute))
			return err
		})
		return got, err
	}
	_, err := try(first.ID, first.ID)
	require.ErrorIs(t, err, sessions.ErrConflict, "the session moved on")
	_, err = try("none", second.ID)
	require.ErrorIs(t, err, sessions.ErrNotFound)
	_, err = try(bob.ID, "")
	require.ErrorIs(t, err, sessions.ErrConflict, "P3, P6: another conversation's current session can't be taken")
	got, err := try(first.ID, second.ID)
	require.NoError(t, err)
	require.True(t, got.EndedAt.IsZero())
	require.Empty(t, got.EndReason)
	viewing(t, s, func(v sessions.View) {
		route, err := v.Route(keyOf("ada"))
		require.NoError(t, err)
		require.Equal(t, sessions.Route{Key: keyOf("ada"), Session: first.ID, Options: sessions.Options{Busy: "queue"}}, route)
		ended, err := v.Session(second.ID)
		require.NoError(t, err)
		require.False(t, ended.EndedAt.IsZero())
	})
	same, err := try(first.ID, first.ID)
	require.NoError(t, err)
	require.True(t, same.EndedAt.IsZero(), "switching to the current one ends nothing")
}

func TestStore_SetTitle(t *testing.T) {
	s := openStore(t)
	a, b := openSession(t, s, "ada"), openSession(t, s, "bob")
	set := func(id sessions.ID, title string) error {
		return s.Update(t.Context(), sessions.EdgeCommand, func(tx sessions.Tx) error { return tx.SetTitle(id, title) })
	}
	require.NoError(t, set(a.ID, "Ärger mit Größen"))
	require.ErrorIs(t, set(b.ID, "Ärger mit Größen"), sessions.ErrConflict)
	require.NoError(t, set(a.ID, "Ärger mit Größen"), "its own title again")
	require.ErrorIs(t, set("none", "x"), sessions.ErrNotFound)
	require.ErrorContains(t, set(b.ID, strings.Repeat("ä", 101)), "101 characters, at most 100")
	require.NoError(t, set(b.ID, strings.Repeat("ä", 100)))
	require.NoError(t, set(b.ID, ""), "taking the title off")
	require.NoError(t, set(a.ID, ""))
	require.NoError(t, set(b.ID, "Ärger mit Größen"))
}

func TestStore_SetPrompt_AddUsage(t *testing.T) {
	s := openStore(t)
	se := openSession(t, s, "ada")
	update(t, s, func(tx sessions.Tx) error {
		require.NoError(t, tx.SetPrompt(se.ID, "You are\x00 Herald.", []string{"terminal", "patch"}))
		require.NoError(t, tx.AddUsage(se.ID, sessions.Usage{Calls: 1, Input: 2, Output: 3, CacheRead: 4, CacheWrite: 5, Reasoning: 6,
			ToolCalls: 7, LastPrompt: 8, LastContext: 9}))
		require.NoError(t, tx.AddUsage(se.ID, sessions.Usage{Calls: 1, Input: 2, Output: 3, CacheRead: 4, CacheWrite: 5, Reasoning: 6,
			ToolCalls: 7, LastPrompt: 5, LastContext: 6}))
		require.ErrorIs(t, tx.SetPrompt("none", "", nil), sessions.ErrNotFound)
		require.ErrorIs(t, tx.AddUsage("none", sessions.Usage{}), sessions.ErrNotFound)
		return nil
	})
	viewing(t, s, func(v sessions.View) {
		got, err := v.Session(se.ID)
		require.NoError(t, err)
		require.Equal(t, "You are\x00 Herald.", got.SystemPrompt)
		require.Equal(t, []string{"terminal", "patch"}, got.Tools)
		require.Equal(t, sessions.Usage{Calls: 2, Input: 4, Output: 6, CacheRead: 8, CacheWrite: 10, Reasoning: 12, ToolCalls: 14,
			LastPrompt: 5, LastContext: 6}, got.Usage)
	})
}

func TestStore_Sessions_Query(t *testing.T) {
	s := openStore(t)
	room := platforms.Address{Platform: "slack", Account: "w", Chat: "C1"}
	add := func(key sessions.Key, o sessions.Origin, minutes int) (out sessions.Session) {
		update(t, s, func(tx sessions.Tx) (err error) {
			out, err = tx.OpenSession(key, o, clock.Add(time.Duration(minutes)*time.Minute))
			return err
		})
		return out
	}
	ada := add(keyOf("ada"), origin("ada"), 1)
	bob := add(keyOf("bob"), origin("bob"), 2)
	inRoom := add("agent:main:slack:channel:C1:U%3A1", sessions.Origin{Address: room, ChatType: platforms.Channel, User: "other"}, 3)
	alt := add("agent:main:slack:channel:C1:V2", sessions.Origin{Address: room, ChatType: platforms.Channel, User: "U2", UserAlt: "V2"}, 4)
	var ada2 sessions.Session
	update(t, s, func(tx sessions.Tx) (err error) {
		ada2, err = tx.NewSession(keyOf("ada"), origin("ada"), "new", clock.Add(5*time.Minute))
		require.NoError(t, err)
		return tx.SetTitle(ada.ID, "Über Milch 100%")
	})
	for _, c := range []struct {
		name string
		q    sessions.SessionQuery
		want []sessions.ID
	}{
		{"all, newest first", sessions.SessionQuery{}, []sessions.ID{max(ada.ID, ada2.ID), min(ada.ID, ada2.ID), alt.ID, inRoom.ID, bob.ID}},
		{"key", sessions.SessionQuery{Key: keyOf("bob")}, []sessions.ID{bob.ID}},
		{"live", sessions.SessionQuery{Key: keyOf("ada"), Live: true}, []sessions.ID{ada2.ID}},
		{"platform and chat", sessions.SessionQuery{Platform: "slack", Account: "w", Chat: "C1"}, []sessions.ID{alt.ID, inRoom.ID}},
		{"another account", sessions.SessionQuery{Platform: "slack", Account: "v"}, nil},
		{"person of the key, escaped", sessions.SessionQuery{User: "U:1"}, []sessions.ID{inRoom.ID}},
		{"person of the origin", sessions.SessionQuery{User: "U2"}, []sessions.ID{alt.ID}},
		{"person's other id", sessions.SessionQuery{User: "V2"}, []sessions.ID{alt.ID}},
		{"no part of an id", sessions.SessionQuery{User: "2"}, nil},
		{"title", sessions.SessionQuery{Title: "Über Milch 100%"}, []sessions.ID{ada.ID}},
		{"title is exact", sessions.SessionQuery{Title: "Über"}, nil},
		{"part of the title, any case", sessions.SessionQuery{TitleIn: "üBER m"}, []sessions.ID{ada.ID}},
		{"part of the title, literally", sessions.SessionQuery{TitleIn: "%"}, []sessions.ID{ada.ID}},
		{"limit and offset", sessions.SessionQuery{Limit: 2, Offset: 2}, []sessions.ID{alt.ID, inRoom.ID}},
	} {
		t.Run(c.name, func(t *testing.T) {
			viewing(t, s, func(v sessions.View) {
				list, err := v.Sessions(c.q)
				require.NoError(t, err)
				var got []sessions.ID
				for _, se := range list {
					got = append(got, se.ID)
				}
				require.Equal(t, c.want, got)
			})
		})
	}
}

func TestStore_Counts(t *testing.T) {
	s := openStore(t)
	a := openSession(t, s, "ada")
	say(t, s, a.ID, "one", "two")
	update(t, s, func(tx sessions.Tx) error {
		_, err := tx.NewSession(keyOf("ada"), origin("ada"), "new", clock)
		require.NoError(t, err)
		_, _, err = tx.PutInbox(sessions.InboxItem{Event: event("1", "ada", "hi")})
		require.NoError(t, err)
		require.NoError(t, tx.BeginTurn(&sessions.Turn{Session: a.ID}))
		return tx.PutOutbox(&sessions.OutboxRow{}, &sessions.OutboxRow{State: sessions.OutAttempting},
			&sessions.OutboxRow{State: sessions.OutUnknown},
			&sessions.OutboxRow{State: sessions.OutSent})
	})
	viewing(t, s, func(v sessions.View) {
		n, err := v.Counts()
		require.NoError(t, err)
		require.Positive(t, n.Bytes)
		n.Bytes = 0
		require.Equal(t, sessions.Counts{Sessions: 2, Live: 1, Messages: 2, InboxNew: 1, TurnsRunning: 1, OutboxPending: 2, OutboxUnknown: 1}, n)
	})
}

func TestStore_Value(t *testing.T) {
	s := openStore(t)
	update(t, s, func(tx sessions.Tx) error {
		require.NoError(t, tx.SetValue("gate", "b", []byte(`{"until":1}`), clock))
		require.NoError(t, tx.SetValue("gate", "a", []byte(`null`), clock))
		require.NoError(t, tx.SetValue("gate", "b", []byte(`{"until":2}`), clock.Add(1)))
		require.NoError(t, tx.SetValue("other", "b", []byte(`3`), clock))
		require.NoError(t, tx.SetValue("gate", "gone", nil, clock))
		require.ErrorContains(t, tx.SetValue("gate", "bad", []byte(`{`), clock), "no JSON")
		list, err := tx.Values("gate")
		require.NoError(t, err)
		require.Equal(t, []sessions.Value{{Space: "gate", Name: "a", Data: []byte("null"), At: clock},
			{Space: "gate", Name: "b", Data: []byte(`{"until":2}`), At: clock.Add(1)}}, list)
		return tx.SetValue("gate", "a", nil, clock)
	})
	viewing(t, s, func(v sessions.View) {
		got, err := v.Value("other", "b")
		require.NoError(t, err)
		require.Equal(t, sessions.Value{Space: "other", Name: "b", Data: []byte("3"), At: clock}, got)
		_, err = v.Value("gate", "a")
		require.ErrorIs(t, err, sessions.ErrNotFound)
		none, err := v.Values("nothing")
		require.NoError(t, err)
		require.Empty(t, none)
	})
}

func TestStore_ChatLog(t *testing.T) {
	s := openStore(t)
	log, ctx := s.ChatLog(), t.Context()
	add := func(chat platforms.ChatID, nonce, payload string) int64 {
		seq, err := log.Append(ctx, chat, nonce, []byte(payload))
		require.NoError(t, err)
		return seq
	}
	a1 := add("a", "n1", "one")
	b1 := add("b", "n1", "other chat, same nonce")
	require.Greater(t, b1, a1)
	require.Equal(t, a1, add("a", "n1", "again"), "a nonce is kept once for a chat")
	a2, a3 := add("a", "", "two"), add("a", "", "three")
	require.Greater(t, a3, a2, "an empty nonce is never a repetition")
	require.NoError(t, log.Update(ctx, "a", a2, []byte{0, 1}))
	require.ErrorIs(t, log.Update(ctx, "b", a2, nil), platforms.ErrNoEntry, "another chat's entry")
	require.ErrorIs(t, log.Update(ctx, "a", 999, nil), platforms.ErrNoEntry)
	list, err := log.List(ctx, "a", 0, 2)
	require.NoError(t, err)
	require.Equal(t, []platforms.LogEntry{{Chat: "a", Seq: a2, Payload: []byte{0, 1}}, {Chat: "a", Seq: a3, Payload: []byte("three")}}, list)
	list, err = log.List(ctx, "a", a2, 10)
	require.NoError(t, err)
	require.Equal(t, []platforms.LogEntry{{Chat: "a", Seq: a1, Payload: []byte("one")}}, list)
	chats, err := log.Chats(ctx, 10)
	require.NoError(t, err)
	require.Equal(t, []platforms.LogEntry{{Chat: "a", Seq: a3, Payload: []byte("three")}, {Chat: "b", Seq: b1, Payload: []byte("other chat, same nonce")}}, chats)
	require.NoError(t, log.Remove(ctx, "a", a3))
	require.NoError(t, log.Remove(ctx, "a", a3), "gone already is no error")
	require.NoError(t, log.Remove(ctx, "a", b1), "another chat's entry stays")
	chats, err = log.Chats(ctx, 1)
	require.NoError(t, err)
	require.Equal(t, a2, max(chats[0].Seq, a2))
	require.Greater(t, add("a", "", "four"), a3, "numbers only grow")
}

func TestStore_Update_ErrorUndoesAll(t *testing.T) {
	s := openStore(t)
	boom := errors.New("boom")
	err := s.Update(t.Context(), sessions.EdgeState, func(tx sessions.Tx) error {
		se, err := tx.OpenSession(keyOf("ada"), origin("ada"), clock)
		require.NoError(t, err)
		require.NoError(t, tx.Append(&sessions.Message{Session: se.ID, Role: sessions.User, Content: "x"}))
		return fmt.Errorf("after that: %w", boom)
	})
	require.ErrorIs(t, err, boom)
	viewing(t, s, func(v sessions.View) {
		_, err := v.Route(keyOf("ada"))
		require.ErrorIs(t, err, sessions.ErrNotFound)
	})
}

// A session that was made before anybody spoke in it learns who does, so that search finds it for them; one that knows its
// person keeps it.
func TestStore_OpenSession_LearnsItsPerson(t *testing.T) {
	s := openStore(t)
	whole := origin("ada")
	bare := sessions.Origin{Address: whole.Address, ChatType: whole.ChatType}
	open := func(o sessions.Origin) (se sessions.Session) {
		update(t, s, func(tx sessions.Tx) (err error) {
			se, err = tx.OpenSession(keyOf("ada"), o, clock)
			return err
		})
		return se
	}
	made := open(bare)
	require.Equal(t, bare, made.Origin)
	say(t, s, made.ID, "the wombat report")
	scope := sessions.Scope{Platform: whole.Address.Platform, User: whole.User}
	find := func() (n int) {
		viewing(t, s, func(v sessions.View) {
			hits, err := v.Search(sessions.SearchQuery{Text: "wombat", Scope: scope})
			require.NoError(t, err)
			n = len(hits)
		})
		return n
	}
	require.Zero(t, find())
	learnt := open(whole)
	require.Equal(t, made.ID, learnt.ID)
	require.Equal(t, whole.User, learnt.Origin.User)
	require.Equal(t, 1, find())
	other := whole
	other.User = "bob"
	require.Equal(t, whole.User, open(other).Origin.User)
	viewing(t, s, func(v sessions.View) {
		got, err := v.Session(made.ID)
		require.NoError(t, err)
		require.Equal(t, learnt.Origin, got.Origin)
	})
}
