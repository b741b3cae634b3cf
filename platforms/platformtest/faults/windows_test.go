package faults

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Windows[string]
		require.LessOrEqual(t, w.Enter("a", "send to a"), time.Duration(0), "nothing is closed at first")
		w.Open("a", time.Second)
		require.Equal(t, time.Second, w.Left("a"))
		require.LessOrEqual(t, w.Left("b"), time.Duration(0), "other keys go on")
		time.Sleep(400 * time.Millisecond)
		require.Equal(t, 600*time.Millisecond, w.Enter("a", "send to a"))
		require.Equal(t, []string{"send to a came 600ms too early"}, w.Violations())
		time.Sleep(600 * time.Millisecond)
		require.LessOrEqual(t, w.Enter("a", "send to a"), time.Duration(0), "the end is outside")
		w.Open("a", time.Second)
		w.Clear()
		require.LessOrEqual(t, w.Left("a"), time.Duration(0))
		require.Len(t, w.Violations(), 1)
	})
}

func TestRoutes_Unused(t *testing.T) {
	r := NewRoutes("fake")
	r.Add("b", "a", "c")
	r.Hit("b")
	r.Hit("nothing of the kind")
	r.Add("a", "b") // as the next server does
	require.Equal(t, []string{"a", "c"}, r.Unused())
}
