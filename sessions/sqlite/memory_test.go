package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
)

func TestMemoryOf_SurvivesAndIsTheAccountsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "herald.db")
	store, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	require.NoError(t, err)
	mine := platforms.Account{Platform: "slack", ID: "T1"}
	clock := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	m := sessions.MemoryOf(store, mine, func() time.Time { return clock })
	old := clock.Add(-time.Hour)
	require.NoError(t, m.Keep(t.Context(), platforms.Fact{Key: "url/b", Data: []byte(`"https://b"`)},
		platforms.Fact{Key: "url/a", Data: []byte(`{"a":1}`)}, platforms.Fact{Key: "mark", Data: []byte("7"), At: old}))
	other := sessions.MemoryOf(store, platforms.Account{Platform: "slack", ID: "T2"}, nil)
	require.NoError(t, other.Keep(t.Context(), platforms.Fact{Key: "url/a", Data: []byte("2")}))
	require.NoError(t, store.Close())

	store, err = sqlite.Open(t.Context(), sqlite.Options{Path: path})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	m = sessions.MemoryOf(store, mine, nil)
	facts, err := m.Recall(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"mark", "url/b", "url/a"}, keys(facts), "oldest first, in the order they were kept")
	require.True(t, facts[0].At.Equal(old))
	require.True(t, facts[1].At.Equal(clock))
	require.JSONEq(t, `{"a":1}`, string(facts[2].Data))
	facts, err = m.Recall(t.Context(), "url/")
	require.NoError(t, err)
	require.Len(t, facts, 2)

	require.NoError(t, m.Keep(t.Context(), platforms.Fact{Key: "url/b"}, platforms.Fact{Key: "never there"}))
	facts, err = m.Recall(t.Context(), "url/")
	require.NoError(t, err)
	require.Equal(t, []string{"url/a"}, keys(facts), "a fact without data is forgotten")
}

func TestMemoryOf_AllOrNothingWithinBounds(t *testing.T) {
	store, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "herald.db")})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	m := sessions.MemoryOf(store, platforms.Account{Platform: "teams", ID: "app"}, nil)
	good := platforms.Fact{Key: "good", Data: []byte("1")}
	many := make([]platforms.Fact, sessions.MaxFacts+1)
	for i := range many {
		many[i] = platforms.Fact{Key: fmt.Sprint(i), Data: []byte("1")}
	}
	for name, facts := range map[string][]platforms.Fact{
		"no key":   {good, {Data: []byte("1")}},
		"long key": {good, {Key: strings.Repeat("k", sessions.MaxFactKey+1), Data: []byte("1")}},
		"large":    {good, {Key: "large", Data: []byte(`"` + strings.Repeat("x", sessions.MaxFactData) + `"`)}},
		"no JSON":  {good, {Key: "bad", Data: []byte("{")}},
		"too many": many,
	} {
		require.Error(t, m.Keep(t.Context(), facts...), name)
		kept, err := m.Recall(t.Context(), "")
		require.NoError(t, err)
		require.Empty(t, kept, name)
	}
	require.NoError(t, m.Keep(t.Context()))
	require.NoError(t, m.Keep(t.Context(), platforms.Fact{Key: strings.Repeat("k", sessions.MaxFactKey),
		Data: []byte(`"` + strings.Repeat("x", sessions.MaxFactData-2) + `"`)}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = m.Recall(ctx, "")
	require.Error(t, err)
}

// Marks keep their bound and their order over a restart of the store.
func TestMemoryOf_CarriesMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "herald.db")
	account := platforms.Account{Platform: "slack", ID: "T1"}
	for round := range 3 {
		store, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
		require.NoError(t, err)
		marks := platforms.NewMarks(sessions.MemoryOf(store, account, nil), "threads", 3)
		for i := range 4 {
			require.NoError(t, marks.Add(t.Context(), fmt.Sprintf("%d-%d", round, i)))
		}
		require.NoError(t, store.Close())
		store, err = sqlite.Open(t.Context(), sqlite.Options{Path: path})
		require.NoError(t, err)
		marks = platforms.NewMarks(sessions.MemoryOf(store, account, nil), "threads", 3)
		for i, want := range []bool{false, true, true, true} {
			has, err := marks.Has(t.Context(), fmt.Sprintf("%d-%d", round, i))
			require.NoError(t, err)
			require.Equal(t, want, has, "%d-%d", round, i)
		}
		require.NoError(t, store.Close())
	}
}

func keys(facts []platforms.Fact) []string {
	var out []string
	for _, f := range facts {
		out = append(out, f.Key)
	}
	return out
}
