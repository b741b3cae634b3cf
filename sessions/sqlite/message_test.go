package sqlite

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"herald/platforms"
	"herald/sessions"
)

func transcript(t testing.TB, s *Store, id sessions.ID, all bool) (rows []sessions.Message) {
	t.Helper()
	viewing(t, s, func(v sessions.View) {
		var err error
		rows, err = v.Transcript(id, all, 0, 0)
		require.NoError(t, err)
	})
	return rows
}

func TestStore_Append_KeepsEveryField(t *testing.T) {
	s := openStore(t)
	se := openSession(t, s, "ada")
	full := &sessions.Message{
		Session: se.ID, Turn: 7, Role: sessions.Assistant, Kind: sessions.KindPartial, Content: "a\x00b\xffc é 漢",
		Attachments: []platforms.Attachment{{Kind: platforms.Image, Name: "a.png", Path: "/x/a.png", Size: 3}},
		ToolCalls:   []sessions.ToolCall{{ID: "c1", Name: "terminal", Arguments: `{"cmd": "ls`}},
		ToolCallID:  "c0", ToolName: "patch", Reasoning: "hm", Replay: []byte(`[{"type":"thinking"}]`), Sender: "Ada", Platform: "17.2",
		At: clock, Tokens: 12,
	}
	bare := &sessions.Message{Session: se.ID, Role: sessions.User}
	update(t, s, func(tx sessions.Tx) error { return tx.Append(full, bare) })
	require.Equal(t, clock, bare.At, "a row without time gets the store's")
	require.Greater(t, bare.ID, full.ID)
	require.True(t, full.Active)
	require.Empty(t, cmp.Diff([]sessions.Message{*full, *bare}, transcript(t, s, se.ID, false)))
	viewing(t, s, func(v sessions.View) {
		got, err := v.Session(se.ID)
		require.NoError(t, err)
		require.Equal(t, 2, got.Messages)
	})
}

func TestStore_Append_UnknownSession(t *testing.T) {
	s := openStore(t)
	err := s.Update(t.Context(), sessions.EdgeState, func(tx sessions.Tx) error { return tx.Append(&sessions.Message{Session: "none"}) })
	require.ErrorIs(t, err, sessions.ErrNotFound)
}

func TestStore_Append_TouchesTheSession(t *testing.T) {
	s := openStore(t)
	se := openSession(t, s, "ada")
	for _, c := range []struct{ at, want time.Time }{{clock.Add(time.Hour), clock.Add(time.Hour)}, {clock, clock.Add(time.Hour)}} {
		update(t, s, func(tx sessions.Tx) error {
			require.NoError(t, tx.Append(&sessions.Message{Session: se.ID, At: c.at}))
			got, err := tx.Session(se.ID)
			require.Equal(t, c.want, got.UpdatedAt)
			return err
		})
	}
}

func TestStore_Transcript_AfterAndLimit(t *testing.T) {
	s := openStore(t)
	se := openSession(t, s, "ada")
	rows := say(t, s, se.ID, "a", "b", "c", "d")
	viewing(t, s, func(v sessions.View) {
		got, err := v.Transcript(se.ID, false, rows[0].ID, 2)
		require.NoError(t, err)
		require.Equal(t, []string{"b", "c"}, contents(got))
		got, err = v.Transcript(se.ID, false, rows[3].ID, 0)
		require.NoError(t, err)
		require.Empty(t, got)
		got, err = v.Transcript("none", true, 0, 0)
		require.NoError(t, err)
		require.Empty(t, got)
	})
}

// Undo marks; it deletes nothing.
func TestStore_Undo(t *testing.T) {
	s := openStore(t)
	se := openSession(t, s, "ada")
	undo := func(n int) (got []string) {
		update(t, s, func(tx sessions.Tx) error {
			rows, err := tx.Undo(se.ID, n)
			for _, m := range rows {
				require.False(t, m.Active)
			}
			got = contents(rows)
			return err
		})
		return got
	}
	require.Empty(t, undo(1))
	update(t, s, func(tx sessions.Tx) error {
		return tx.Append(
			&sessions.Message{Session: se.ID, Role: sessions.User, Kind: sessions.KindObserved, Content: "heard"},
			&sessions.Message{Session: se.ID, Turn: 1, Role: sessions.User, Content: "u1"},
			&sessions.Message{Session: se.ID, Turn: 1, Role: sessions.Assistant, Content: "a1"},
			&sessions.Message{Session: se.ID, Turn: 2, Role: sessions.User, Content: "u2"},
			&sessions.Message{Session: se.ID, Turn: 2, Role: sessions.Tool, Content: "t2"},
			&sessions.Message{Session: se.ID, Turn: 2, Role: sessions.User, Kind: sessions.KindSteer, Content: "steer2"},
			&sessions.Message{Session: se.ID, Turn: 2, Role: sessions.User, Content: "correction2"},
			&sessions.Message{Session: se.ID, Turn: 2, Role: sessions.Assistant, Content: "a2"},
			&sessions.Message{Session: se.ID, Turn: 3, Role: sessions.User, Content: "u3"},
		)
	})
	require.Empty(t, undo(0))
	require.Equal(t, []string{"u3"}, undo(1))
	require.Equal(t, []string{"u2", "t2", "steer2", "correction2", "a2"}, undo(1), "a correction within a turn is no turn")
	require.Equal(t, []string{"u1", "a1"}, undo(5), "fewer turns than asked for: all of them")
	require.Equal(t, []string{"heard"}, contents(transcript(t, s, se.ID, false)))
	all := transcript(t, s, se.ID, true)
	require.Len(t, all, 9)
	for _, m := range all {
		require.False(t, m.Compacted)
	}
}

func TestStore_Compact(t *testing.T) {
	s := openStore(t)
	se := openSession(t, s, "ada")
	rows := say(t, s, se.ID, "u1", "a1", "u2", "a2", "u3", "a3")
	compact := func(upTo sessions.RowID, keep []sessions.RowID, text string) *sessions.Message {
		m := &sessions.Message{Content: text}
		update(t, s, func(tx sessions.Tx) error { return tx.Compact(se.ID, upTo, keep, m) })
		return m
	}
	first := compact(rows[3].ID, []sessions.RowID{rows[0].ID}, "sum1")
	require.Equal(t, sessions.KindSummary, first.Kind)
	require.Equal(t, sessions.User, first.Role)
	require.Equal(t, []string{"u1", "sum1", "u3", "a3"}, contents(transcript(t, s, se.ID, false)))
	require.Equal(t, []string{"u1", "a1", "u2", "a2", "sum1", "u3", "a3"}, contents(transcript(t, s, se.ID, true)), "nothing is deleted")
	say(t, s, se.ID, "u4", "a4")
	viewing(t, s, func(v sessions.View) {
		got, err := v.Transcript(se.ID, false, first.ID, 2)
		require.NoError(t, err)
		require.Equal(t, []string{"u3", "a3"}, contents(got), "after goes by the order of the conversation")
	})
	update(t, s, func(tx sessions.Tx) error {
		undone, err := tx.Undo(se.ID, 9)
		require.Equal(t, []string{"u3", "a3", "u4", "a4"}, contents(undone), "undo stops at the summary")
		return err
	})
	rows = append(rows, say(t, s, se.ID, "u5", "a5")...)
	compact(rows[6].ID, nil, "sum2")
	require.Equal(t, []string{"sum2", "a5"}, contents(transcript(t, s, se.ID, false)))
	third := compact(rows[6].ID, nil, "sum3")
	require.Equal(t, []string{"sum2", "sum3", "a5"}, contents(transcript(t, s, se.ID, false)), "a row that stands before the summary ends before it")
	compact(third.ID, nil, "sum4")
	require.Equal(t, []string{"sum4", "a5"}, contents(transcript(t, s, se.ID, false)))
	update(t, s, func(tx sessions.Tx) error {
		require.ErrorIs(t, tx.Compact(se.ID, 9999, nil, nil), sessions.ErrNotFound)
		require.ErrorIs(t, tx.Compact("other", rows[0].ID, nil, nil), sessions.ErrNotFound)
		return tx.Compact(se.ID, third.ID, nil, nil)
	})
}

func TestStore_Around(t *testing.T) {
	s := openStore(t)
	se := openSession(t, s, "ada")
	rows := say(t, s, se.ID, "u1", "a1", "u2", "a2", "u3", "a3", "u4", "a4")
	update(t, s, func(tx sessions.Tx) error {
		_, err := tx.Undo(se.ID, 1)
		require.NoError(t, err)
		return tx.Compact(se.ID, rows[3].ID, nil, &sessions.Message{Content: "sum"})
	})
	viewing(t, s, func(v sessions.View) {
		around := func(row sessions.RowID, before, after int) []string {
			got, err := v.Around(se.ID, row, before, after)
			require.NoError(t, err)
			return contents(got)
		}
		require.Equal(t, []string{"sum", "u3", "a3"}, around(rows[4].ID, 5, 5))
		require.Equal(t, []string{"u3"}, around(rows[4].ID, 0, 0))
		require.Equal(t, []string{"a1", "u2", "a2", "u3"}, around(rows[2].ID, 1, 2), "around a compacted row: as it was")
		require.Equal(t, []string{"a3"}, around(rows[6].ID, 1, 1), "an undone row is not shown")
		_, err := v.Around("other", rows[0].ID, 1, 1)
		require.ErrorIs(t, err, sessions.ErrNotFound, "P6")
	})
}

// The model is the plain list of what was said; the store must agree with it after any sequence of
// appends, undos and compactions.
func TestStore_Transcript_AgreesWithAList(t *testing.T) {
	s := openStore(t)
	users := 0
	rapid.Check(t, func(rt *rapid.T) {
		users++
		se := openSession(t, s, "user"+string(rune('a'+users%26))+clock.Add(time.Duration(users)).String())
		type entry struct {
			id        sessions.RowID
			user, sum bool
		}
		var active []entry
		total := 0
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"say", "say", "undo", "compact"}).Draw(rt, "step") {
			case "say":
				for _, m := range say(t, s, se.ID, "u", "a")[:2] {
					active = append(active, entry{id: m.ID, user: m.Role == sessions.User})
				}
				total += 2
			case "undo":
				n := rapid.IntRange(1, 3).Draw(rt, "n")
				update(t, s, func(tx sessions.Tx) error { _, err := tx.Undo(se.ID, n); return err })
				cut, from := len(active), 0
				for i, e := range active {
					if e.sum {
						from = i + 1
					}
				}
				for i := len(active) - 1; i >= from && n > 0; i-- {
					if active[i].user {
						cut, n = i, n-1
					}
				}
				active = active[:cut]
			case "compact":
				if len(active) == 0 {
					continue
				}
				at := rapid.IntRange(0, len(active)-1).Draw(rt, "at")
				sum := &sessions.Message{Content: "sum"}
				update(t, s, func(tx sessions.Tx) error { return tx.Compact(se.ID, active[at].id, nil, sum) })
				active = append([]entry{{id: sum.ID, sum: true}}, active[at+1:]...)
				total++
			}
		}
		var want, got []sessions.RowID
		for _, e := range active {
			want = append(want, e.id)
		}
		for _, m := range transcript(t, s, se.ID, false) {
			got = append(got, m.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
		if all := transcript(t, s, se.ID, true); len(all) != total {
			rt.Fatalf("%d rows in all, want %d: transcripts are append-only", len(all), total)
		}
	})
}

// What a job has brought is no turn of a person, and stays when one is taken back.
func TestStore_Undo_KeepsWhatAJobBrought(t *testing.T) {
	s := openStore(t)
	se := openSession(t, s, "ada")
	brief := func(text string) *sessions.Message {
		return &sessions.Message{Session: se.ID, Role: sessions.User, Kind: sessions.KindMirror, Content: text}
	}
	update(t, s, func(tx sessions.Tx) error {
		err := tx.Append(brief("b1"),
			&sessions.Message{Session: se.ID, Turn: 1, Role: sessions.User, Content: "u1"},
			brief("b2"),
			&sessions.Message{Session: se.ID, Turn: 1, Role: sessions.Assistant, Content: "a1"},
			brief("b3"))
		require.NoError(t, err)
		rows, err := tx.Undo(se.ID, 2)
		require.NoError(t, err)
		require.Equal(t, []string{"u1", "a1"}, contents(rows))
		rows, err = tx.Undo(se.ID, 1)
		require.NoError(t, err)
		require.Empty(t, rows)
		return nil
	})
	viewing(t, s, func(v sessions.View) {
		rows, err := v.Transcript(se.ID, false, 0, 0)
		require.NoError(t, err)
		require.Equal(t, []string{"b1", "b2", "b3"}, contents(rows))
	})
}
