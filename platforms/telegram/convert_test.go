package telegram

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestEvents_Golden pins what each kind of update becomes. Update 22 has a type that the library refuses:
// the rest of its message still arrives.
func TestEvents_Golden(t *testing.T) {
	raw, err := os.ReadFile("testdata/updates.json")
	require.NoError(t, err)
	counter := &countedMetrics{}
	a, err := New(Options{Token: testToken, Metrics: counter})
	require.NoError(t, err)
	a.me.got.Store(&profile{id: 4242, username: "herald_bot"})
	close(a.me.known)
	a.own.Put(ownMessage{-1001, 31}, 77)
	a.own.Put(ownMessage{501, 40}, 0)
	updates, skipped, err := decodeUpdates(raw)
	require.NoError(t, err)
	require.Empty(t, skipped)
	events, err := a.events(t.Context(), updates)
	require.NoError(t, err)
	for _, e := range events {
		require.NoError(t, e.Validate())
	}
	got, err := json.MarshalIndent(events, "", "  ")
	require.NoError(t, err)
	const golden = "testdata/events.golden.json"
	if *update {
		require.NoError(t, os.WriteFile(golden, append(got, '\n'), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got)+"\n")
	require.Equal(t, map[string]int{dropService: 2}, counter.dropped)
}
