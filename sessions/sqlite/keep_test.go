package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/sessions"
)

const day = 24 * time.Hour

// movingClock is a clock that a test moves.
type movingClock struct{ now time.Time }

func (c *movingClock) options(o *Options) { o.Clock = func() time.Time { return c.now } }

// P2: what is finished goes after seven days and not before; what is open always stays.
func TestStore_Prune_P2_FinishedRows(t *testing.T) {
	c := &movingClock{now: clock}
	s := openStore(t, c.options)
	states := []sessions.InboxState{sessions.InboxNew, sessions.InboxClaimed, sessions.InboxDone, sessions.InboxDropped}
	add := func(name string) {
		for i, state := range states {
			put(t, s, sessions.InboxItem{Event: event(name+fmt.Sprint(i), "ada", "x"), State: state})
		}
		update(t, s, func(tx sessions.Tx) error {
			for _, state := range []sessions.TurnState{sessions.TurnRunning, sessions.TurnDone, sessions.TurnParked} {
				turn := &sessions.Turn{Key: "k"}
				require.NoError(t, tx.BeginTurn(turn))
				require.NoError(t, tx.StartCall(turn.ID, "c", "terminal", c.now))
				if state != sessions.TurnRunning {
					require.NoError(t, tx.SetTurn(turn.ID, state, "", c.now))
				}
			}
			for _, state := range []sessions.OutboxState{sessions.OutPending, sessions.OutAttempting, sessions.OutSent, sessions.OutFailed,
				sessions.OutCancelled, sessions.OutUnknown} {
				require.NoError(t, tx.PutOutbox(&sessions.OutboxRow{State: state}))
			}
			return nil
		})
	}
	prune := func() Pruned {
		p, err := s.Prune(t.Context(), Retention{Finished: time.Hour}) // less than seven days counts as seven
		require.NoError(t, err)
		return p
	}
	add("old")
	c.now = clock.Add(7 * day)
	require.Equal(t, Pruned{}, prune(), "an event is known for seven days")
	_, dup := put(t, s, sessions.InboxItem{Event: event("old2", "ada", "x")})
	require.True(t, dup)
	add("young")
	c.now = clock.Add(7*day + 1)
	require.Equal(t, Pruned{Inbox: 2, Turns: 2, Calls: 2, Outbox: 3}, prune())
	require.Equal(t, Pruned{}, prune())
	c.now = clock.Add(30*day + 1)
	require.Equal(t, Pruned{Inbox: 2, Turns: 2, Calls: 2, Outbox: 4}, prune(), "an unknown outcome can be sent again for thirty days")
	viewing(t, s, func(v sessions.View) {
		n, err := v.Counts()
		require.NoError(t, err)
		require.Equal(t, int64(2), n.InboxNew)
		require.Equal(t, int64(2), n.TurnsRunning)
		require.Equal(t, int64(4), n.OutboxPending)
		require.Equal(t, int64(1), n.OutboxUnknown)
	})
}

func TestStore_Prune_InSteps(t *testing.T) {
	c := &movingClock{now: clock}
	s := openStore(t, c.options)
	const n = 2*pruneStep + 7
	update(t, s, func(tx sessions.Tx) error {
		for i := range n {
			if _, _, err := tx.PutInbox(sessions.InboxItem{Event: event(fmt.Sprint(i), "ada", "x"), State: sessions.InboxDone}); err != nil {
				return err
			}
		}
		return nil
	})
	c.now = clock.Add(8 * day)
	before := s.Metrics().Updates
	p, err := s.Prune(t.Context(), Retention{})
	require.NoError(t, err)
	require.Equal(t, int64(n), p.Inbox)
	require.GreaterOrEqual(t, s.Metrics().Updates-before, int64(3), "the writer is held for a step only")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Prune(ctx, Retention{})
	require.ErrorIs(t, err, context.Canceled)
}

// Only ended sessions go, and those that continue each other go together.
func TestStore_Prune_SessionsByLine(t *testing.T) {
	c := &movingClock{now: clock}
	s := openStore(t, c.options)
	make := func(user string, ended bool, rows int) sessions.ID {
		se := openSession(t, s, user)
		var list []string
		for i := range rows {
			list = append(list, fmt.Sprintf("milk 牛奶 of %s %d", user, i))
		}
		say(t, s, se.ID, list...)
		update(t, s, func(tx sessions.Tx) error {
			require.NoError(t, tx.SetPrompt(se.ID, "prompt", nil))
			if !ended {
				return nil
			}
			_, err := tx.NewSession(keyOf(user), origin(user), "new", c.now)
			return err
		})
		return se.ID
	}
	parent := func(child, parent sessions.ID) {
		update(t, s, func(st sessions.Tx) error {
			_, _, err := st.(*tx).c.exec("UPDATE sessions SET parent = ? WHERE id = ?", string(parent), string(child))
			return err
		})
	}
	alone, live := make("alone", true, 2*pruneStep+3), make("live", false, 2)
	root, middle, leaf := make("root", true, 2), make("middle", true, 2), make("leaf", true, 2)
	parent(middle, root)
	parent(leaf, middle)
	ofLive := make("of live", true, 2)
	parent(ofLive, live)
	ofYoung := make("of young", true, 2)
	c.now = clock.Add(10 * day)
	youngEnd := make("young", true, 2)
	require.NoError(t, s.catchUp(t.Context()))

	p, err := s.Prune(t.Context(), Retention{})
	require.NoError(t, err)
	require.Zero(t, p.Sessions, "0 keeps sessions")
	c.now = clock.Add(90*day + 2)
	parent(ofYoung, youngEnd)
	p, err = s.Prune(t.Context(), Retention{Ended: DefaultEnded})
	require.NoError(t, err)
	require.Equal(t, Pruned{Sessions: 4, Messages: 2*pruneStep + 3 + 6}, p)
	viewing(t, s, func(v sessions.View) {
		for _, id := range []sessions.ID{alone, root, middle, leaf} {
			_, err := v.Session(id)
			require.ErrorIs(t, err, sessions.ErrNotFound)
		}
		for _, id := range []sessions.ID{live, ofLive, youngEnd, ofYoung} {
			_, err := v.Session(id)
			require.NoError(t, err)
		}
		hits, err := v.Search(sessions.SearchQuery{Text: "milk", Scope: everything, Limit: 300})
		require.NoError(t, err)
		require.Len(t, hits, 8)
		hits, err = v.Search(sessions.SearchQuery{Text: "牛奶 of", Scope: everything, Limit: 300})
		require.NoError(t, err)
		require.Len(t, hits, 8)
	})
	report, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, report.Problems())
	// Ids of deleted rows are never given again.
	last := say(t, s, live, "next")[0].ID
	require.Greater(t, int64(last), int64(2*pruneStep+3+14))
}

// Rows that were deleted before the index knew them leave nothing behind, and new rows get new ids even
// after a restart.
func TestStore_Prune_UnindexedRowsAndRestart(t *testing.T) {
	c := &movingClock{now: clock}
	path := t.TempDir() + "/herald.db"
	s, err := Open(t.Context(), Options{Path: path, Clock: func() time.Time { return c.now }})
	require.NoError(t, err)
	other := openSession(t, s, "bob")
	se := openSession(t, s, "ada")
	rows := say(t, s, se.ID, "milk", "milk")
	update(t, s, func(tx sessions.Tx) error {
		_, err := tx.NewSession(keyOf("ada"), origin("ada"), "new", c.now)
		return err
	})
	c.now = clock.Add(100 * day)
	_, err = s.Prune(t.Context(), Retention{Ended: day})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	s = openAt(t, path, c.options)
	next := say(t, s, other.ID, "milk again")
	require.Greater(t, next[0].ID, rows[1].ID)
	require.Len(t, find(t, s, sessions.SearchQuery{Text: "milk", Scope: everything}), 1)
	report, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, report.Problems())
}

func TestStore_Vacuum(t *testing.T) {
	c := &movingClock{now: clock}
	s := openStore(t, c.options)
	se := openSession(t, s, "ada")
	for range 40 {
		say(t, s, se.ID, strings.Repeat("text ", 4000), "x")
	}
	freed, err := s.Vacuum(t.Context())
	require.NoError(t, err)
	require.Zero(t, freed, "less than a quarter is free")
	update(t, s, func(tx sessions.Tx) error {
		_, err := tx.NewSession(keyOf("ada"), origin("ada"), "new", c.now)
		return err
	})
	c.now = clock.Add(100 * day)
	_, err = s.Prune(t.Context(), Retention{Ended: day})
	require.NoError(t, err)
	before := fileSize(s.Path())
	freed, err = s.Vacuum(t.Context())
	require.NoError(t, err)
	require.Greater(t, freed, int64(500_000))
	require.Less(t, fileSize(s.Path()), max(before, freed), "the file shrank")
	say(t, s, openSession(t, s, "ada").ID, "and goes on")
	report, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, report.Problems())
}

// P11: a backup of a store under load restores and passes its check.
func TestStore_Backup_P11_UnderLoad(t *testing.T) {
	s := openStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 4)
	for g := range cap(done) {
		go func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := oneTurn(s, fmt.Sprint("user", g), fmt.Sprint(g, "-", i)); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	require.Eventually(t, func() bool { return s.Metrics().Updates > 200 }, pollFor, pollEvery)
	before := s.Metrics().Updates
	dest := filepath.Join(t.TempDir(), "it's a backup.db")
	require.NoError(t, s.Backup(t.Context(), dest))
	after := s.Metrics().Updates
	cancel()
	for range cap(done) {
		require.NoError(t, <-done)
	}
	info, err := os.Stat(dest)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := filepath.Glob(filepath.Dir(dest) + "/.*")
	require.NoError(t, err)
	require.Empty(t, left, "nothing else is left behind")

	restored := openAt(t, dest)
	report, err := restored.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, report.Problems())
	viewing(t, restored, func(v sessions.View) {
		n, err := v.Counts()
		require.NoError(t, err)
		require.GreaterOrEqual(t, n.Messages, int64(2*(before/5-4)))
		require.LessOrEqual(t, n.Messages, 2*after)
		hits, err := v.Search(sessions.SearchQuery{Text: "sunny", Scope: everything})
		require.NoError(t, err)
		require.NotEmpty(t, hits)
	})
	require.NoError(t, oneTurn(restored, "user0", "after the restore"))
}

func TestStore_Backup_Refuses(t *testing.T) {
	s := openStore(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/there", []byte("mine"), 0o644))
	require.NoError(t, os.Symlink("/nowhere", dir+"/link"))
	for _, name := range []string{"there", "link"} {
		err := s.Backup(t.Context(), dir+"/"+name)
		require.ErrorIs(t, err, fs.ErrExist)
		require.ErrorContains(t, err, "name a file that is not there yet")
	}
	kept, err := os.ReadFile(dir + "/there")
	require.NoError(t, err)
	require.Equal(t, "mine", string(kept))
	require.ErrorIs(t, s.Backup(t.Context(), dir+"/none/x.db"), fs.ErrNotExist)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = s.Backup(ctx, dir+"/x.db")
	require.True(t, errors.Is(err, context.Canceled), err)
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, names, 2)
}

func TestReport_Golden(t *testing.T) {
	ok := Report{Path: "/home/me/.herald/herald.db", Version: 2, Bytes: 52 << 20, LogBytes: 4152, FreeBytes: 300 << 10,
		Counts: sessions.Counts{Sessions: 12, Live: 3, Messages: 4711, InboxNew: 1, TurnsRunning: 2, OutboxPending: 3, OutboxUnknown: 4},
		Tables: []TableSize{{"sessions", 12}, {"messages", 4711}}, Unindexed: 5}
	bad := ok
	bad.Integrity = []string{"integrity: row 3 missing from index x"}
	bad.ForeignKeys = []string{"foreign key: a row of messages points at a row of sessions that is not there"}
	bad.Orphans = []string{"orphans: 2 routes to an ended session"}
	bad.Misindexed = 7
	require.True(t, ok.OK())
	require.False(t, bad.OK())
	golden(t, "report.golden", ok.String()+"\n"+bad.String())
}

func TestStore_Check_FindsWhatIsWrong(t *testing.T) {
	s := openStore(t)
	se := openSession(t, s, "ada")
	say(t, s, se.ID, "a", "b")
	require.NoError(t, s.alone(t.Context(), func(c *conn) error {
		return c.script(`PRAGMA foreign_keys = off;
			UPDATE sessions SET ended = 1;
			INSERT INTO inbox (platform, account, event_id, key, event, state, turn, reason, at) VALUES ('p', 'a', 'e', 'k', '{}', 'claimed', 99, '', 1);
			INSERT INTO prompts (session, prompt, tools) VALUES ('gone', '', '');
			PRAGMA foreign_keys = on`)
	}))
	r, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"foreign key: a row of prompts points at a row of sessions that is not there",
		"orphans: 1 claimed inbox rows without their turn", "orphans: 1 routes to an ended session"}, r.Problems())
	require.Equal(t, int64(2), r.Counts.Messages)
	_, err = CheckFile(t.Context(), t.TempDir()+"/none.db")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// The store fits what it promises to be.
func TestStore_IsAStoreAndHasALog(t *testing.T) {
	var st sessions.Store = openStore(t)
	require.Implements(t, (*platforms.Log)(nil), st.(*Store).ChatLog())
}
