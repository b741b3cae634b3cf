package proc

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseStat(t *testing.T) {
	tail := " S 10 20 20 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 987 0 0"
	p, err := parseStat(5, []byte("5 (a) b (c)"+tail))
	require.NoError(t, err)
	require.Equal(t, Process{PID: 5, Parent: 10, Group: 20, Start: 987}, p)
	p, err = parseStat(5, []byte("5 (x)"+strings.Replace(tail, "S", "Z", 1)))
	require.NoError(t, err)
	require.True(t, p.Zombie)
	for _, bad := range []string{"", "5 (x", "5 (x) S 1 2", "5 (x)" + strings.Replace(tail, "10", "x", 1)} {
		_, err := parseStat(5, []byte(bad))
		require.Error(t, err, bad)
	}
}
