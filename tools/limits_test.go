package tools

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The results of one answer share a budget; what ends after it is used up goes to a file, unless it is so short that
// the words about the file would be longer.
func TestBus_Batch_ResultsShareABudget(t *testing.T) {
	r := NewRegistry(RegistryOptions{})
	require.NoError(t, r.Register(run("big", says(strings.Repeat("x", 3000)))))
	require.NoError(t, r.Register(run("small", says("short"))))
	require.NoError(t, r.Register(run("own", says(strings.Repeat("y", 9000)), func(s *Spec) { s.MaxResult = -1 })))
	b := NewBus(Options{Registry: r, Results: NewResultStore(t.TempDir(), ResultOptions{Preview: 100}), BatchMax: 7000})
	calls := []Call{{ID: "1", Name: "big"}, {ID: "2", Name: "big"}, {ID: "3", Name: "big"}, {ID: "4", Name: "small"}, {ID: "5", Name: "own"}}
	got := b.Batch(t.Context(), calls, nil)
	require.Len(t, got[0].Content, 3000)
	require.Len(t, got[1].Content, 3000)
	require.Contains(t, got[2].Content, "<persisted-output>")
	require.Less(t, len(got[2].Content), 1000)
	require.NotEmpty(t, got[2].Stored)
	require.Equal(t, "short", got[3].Content)
	require.Len(t, got[4].Content, 9000, "a tool that bounds itself is never stored")
	again := b.Batch(t.Context(), calls[:1], nil)
	require.Len(t, again[0].Content, 3000, "the next answer has a budget of its own")
	require.Len(t, b.Dispatch(t.Context(), calls[0]).Content, 3000)
}

func TestBus_Options_MaxResultAndPreview(t *testing.T) {
	r := NewRegistry(RegistryOptions{})
	require.NoError(t, r.Register(run("big", says(strings.Repeat("x", 3000)))))
	b := NewBus(Options{Registry: r, Results: NewResultStore(t.TempDir(), ResultOptions{Preview: -1}), MaxResult: 2999})
	got := b.Dispatch(t.Context(), Call{ID: "1", Name: "big"}).Content
	require.Contains(t, got, "The whole result is in:")
	require.NotContains(t, got, "xxx")
}

// Calls that run side by side have a time limit together. Those that had begun may have had an effect; the others are
// not run.
func TestBus_Batch_TimeLimitOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRegistry(RegistryOptions{})
		slow := func(ctx context.Context, _ Call) (Result, error) {
			select {
			case <-time.After(7 * time.Second):
				return Result{Content: "done"}, nil
			case <-ctx.Done():
				return Result{}, ctx.Err()
			}
		}
		require.NoError(t, r.Register(run("slow", slow, func(s *Spec) { s.ReadOnly, s.Parallel = true, Safe })))
		b := NewBus(Options{Registry: r, Width: 2, BatchTimeout: 10 * time.Second})
		calls := make([]Call, 5)
		for i := range calls {
			calls[i] = Call{ID: CallID(rune('1' + i)), Name: "slow"}
		}
		got := b.Batch(t.Context(), calls, nil)
		require.Equal(t, []string{ExitOK, ExitOK, ExitTimeout, ExitTimeout, ExitCancelled},
			[]string{got[0].Exit, got[1].Exit, got[2].Exit, got[3].Exit, got[4].Exit})
		require.Contains(t, got[2].Content, "longer than its limit of 10s")
		require.Contains(t, got[4].Content, "NOT invoked")
		require.Contains(t, got[4].Content, "time limit of the calls that ran side by side")
	})
}
