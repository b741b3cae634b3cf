package platforms

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMarks_KeepTheNewestOverARestart(t *testing.T) {
	ctx, memory := context.Background(), NewMemory()
	m := NewMarks(memory, "threads", 3)
	for i := range 5 {
		require.NoError(t, m.Add(ctx, fmt.Sprint(i)))
		require.NoError(t, m.Add(ctx, "2")) // stays young
	}
	for _, m := range []*Marks{m, NewMarks(memory, "threads", 3)} {
		for name, want := range map[string]bool{"0": false, "1": false, "2": true, "3": true, "4": true} {
			got, err := m.Has(ctx, name)
			require.NoError(t, err)
			require.Equal(t, want, got, name)
		}
	}
	facts, err := memory.Recall(ctx, "")
	require.NoError(t, err)
	require.Len(t, facts, 3)
	other, err := NewMarks(memory, "thread", 3).Has(ctx, "2")
	require.NoError(t, err)
	require.False(t, other)
}

func TestMarks_MoreAtOnceThanItHolds(t *testing.T) {
	ctx, memory := context.Background(), NewMemory()
	m := NewMarks(memory, "own", 2)
	require.NoError(t, m.Add(ctx, "a", "b", "c", "d"))
	facts, err := memory.Recall(ctx, "")
	require.NoError(t, err)
	require.Len(t, facts, 2)
}

type brokenMemory struct{ Memory }

func (brokenMemory) Keep(context.Context, ...Fact) error { return errors.New("disk full") }

func TestMarks_WhatWasNotKeptIsNotThere(t *testing.T) {
	ctx := context.Background()
	m := NewMarks(brokenMemory{NewMemory()}, "own", 2)
	require.Error(t, m.Add(ctx, "a"))
	has, err := m.Has(ctx, "a")
	require.NoError(t, err)
	require.False(t, has)
}
