//go:build failpoint

package crash

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/sessions"
)

// edgeCall is the call to the platform itself: no commit, but the place where P4 is decided.
const edgeCall = "send.call"

var sides = []string{"before", "after"}

// passes are how-manieth passes that die beside the first one. A busy edge is passed for many reasons:
// preview or answer, command or notice, first or later step.
var passes = map[string][]int{
	string(sessions.EdgeAccept): {2, 4}, string(sessions.EdgeAcceptBegin): {4, 9, 14}, string(sessions.EdgeTurnBegin): {2},
	string(sessions.EdgeTurnAnswer): {2, 3},
	string(sessions.EdgeToolStart):  {2, 4}, string(sessions.EdgeToolFinish): {2, 4}, string(sessions.EdgeTurnFinish): {3, 8},
	string(sessions.EdgeSend): {3, 9, 14}, string(sessions.EdgeReceipt): {3, 9, 14}, edgeCall: {2, 5, 9, 14},
	string(sessions.EdgeCommand): {2, 3, 4},
	string(sessions.EdgeQueue):   {2, 3}, string(sessions.EdgePreview): {2}, string(sessions.EdgeLog): {2, 3},
}

// matrix lists what is killed where: the failpoints of the daemon's starts, in order.
func matrix() map[string][]string {
	all := map[string][]string{}
	for _, edge := range edges() {
		for _, side := range sides {
			point := edge + ":" + side
			plans := map[string][]string{point: {point}}
			for _, n := range passes[edge] {
				plans[point+":"+strconv.Itoa(n)] = []string{point + ":" + strconv.Itoa(n)}
			}
			if edge == string(sessions.EdgeTurnResume) {
				// Only a turn that has crashed before is resumed.
				plans = map[string][]string{
					point:                {"turn.finish:before", point},
					point + " in a tool": {"tool.finish:before", point},
					point + " parked":    {"turn.answer:after", point, point, point},
				}
			}
			for name, plan := range plans {
				all[name] = plan
			}
		}
	}
	return all
}

func edges() []string {
	var out []string
	for _, e := range sessions.Edges {
		out = append(out, string(e))
	}
	return append(out, edgeCall)
}

// TestMatrix kills the daemon once at every edge, before and after its commit, while many conversations go
// on, starts it again, and asserts P1 to P5 and P11 when all is quiet.
func TestMatrix(t *testing.T) {
	for name, plan := range matrix() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil, plan...)
			w.start()
			w.scene()
			w.until("the daemon has died at "+strings.Join(plan, " and "), replyLimit, func() bool { return len(w.Deaths()) == len(plan) })
			w.newBrowser("browser-chat-1").check()
			w.finish()
			require.Equal(t, plan, w.Deaths(), "the daemon dies of SIGKILL at each of these places and nowhere else")
		})
	}
}

// TestMatrix_CoversEveryEdge keeps a new edge from being forgotten: the number stands here in words.
func TestMatrix_CoversEveryEdge(t *testing.T) {
	const commits, calls = 19, 1
	require.Len(t, sessions.Edges, commits, "a new edge needs a place in the scene, and its number here")
	all := matrix()
	for _, edge := range edges() {
		for _, side := range sides {
			require.Contains(t, all, edge+":"+side)
		}
	}
	require.GreaterOrEqual(t, len(all), (commits+calls)*len(sides))
}

// TestScene is the scene without a death: what the matrix asserts holds in peace as well.
func TestScene(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.start()
	w.scene()
	w.newBrowser("browser-chat-1").check()
	w.finish()
	require.Empty(t, w.Deaths())
	require.Empty(t, w.tg.Violations(), "P8")
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// number reads a count from the environment.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}
