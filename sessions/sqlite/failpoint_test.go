//go:build failpoint

package sqlite

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/sessions"
)

// P1, P11: the process dies right before and right after the commit of each edge of a turn. Before: the
// step has not happened. After: it has, although nobody was told.
func TestStore_Failpoint_P1_P11_EachEdgeOfATurn(t *testing.T) {
	type state struct{ inbox, turns, done, finals, attempting, sent int64 }
	nothing := state{}
	accepted := state{inbox: 1}
	begun := state{inbox: 1, turns: 1}
	finished := state{inbox: 1, turns: 1, done: 1, finals: 1}
	sending := state{inbox: 1, turns: 1, done: 1, finals: 1, attempting: 1}
	sent := state{inbox: 1, turns: 1, done: 1, finals: 1, sent: 1}
	for _, c := range []struct {
		edge          sessions.Edge
		before, after state
	}{
		{sessions.EdgeAccept, nothing, accepted},
		{sessions.EdgeTurnBegin, accepted, begun},
		{sessions.EdgeTurnFinish, begun, finished},
		{sessions.EdgeSend, finished, sending},
		{sessions.EdgeReceipt, sending, sent},
	} {
		for moment, want := range map[string]state{"before": c.before, "after": c.after} {
			name := fmt.Sprintf("%s:%s", c.edge, moment)
			t.Run(name, func(t *testing.T) {
				path := t.TempDir() + "/herald.db"
				t.Setenv("HERALD_FAILPOINT", name)
				cmd, _, out := child(t, "load1", path)
				said, err := io.ReadAll(out)
				require.NoError(t, err)
				require.Equal(t, "open\n", string(said), "it died before it could say more")
				require.ErrorContains(t, cmd.Wait(), "killed")
				require.NoError(t, os.Unsetenv("HERALD_FAILPOINT"))
				s := openAt(t, path)
				var got state
				for sql, n := range map[string]*int64{
					"SELECT count(*) FROM inbox":                             &got.inbox,
					"SELECT count(*) FROM turns":                             &got.turns,
					"SELECT count(*) FROM turns WHERE state = 'done'":        &got.done,
					"SELECT count(*) FROM outbox":                            &got.finals,
					"SELECT count(*) FROM outbox WHERE state = 'attempting'": &got.attempting,
					"SELECT count(*) FROM outbox WHERE state = 'sent'":       &got.sent,
				} {
					viewing(t, s, func(v sessions.View) {
						*n, err = v.(*view).c.int(sql)
						require.NoError(t, err)
					})
				}
				require.Equal(t, want, got)
				report, err := s.Check(t.Context())
				require.NoError(t, err)
				require.Empty(t, report.Problems())
			})
		}
	}
}
