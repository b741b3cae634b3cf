//go:build failpoint

package crash

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/model/modeltest"
)

// backgroundAnswer starts a background process that waits for a file, and reports its news.
func backgroundAnswer(r modeltest.Request) modeltest.Reply {
	last := r.LastUser()
	_, answered := r.ToolResult()
	switch {
	case answered:
		return modeltest.Text("Started.")
	case strings.Contains(last, "[Background process"):
		return modeltest.Text("News: " + last[strings.LastIndex(last, "[Background process"):])
	case strings.Contains(last, "begin"):
		return modeltest.Calls("c1", "terminal", `{"command":"while [ ! -f go ]; do sleep 0.05; done; exit 3","background":true,"notify_on_complete":true}`)
	}
	return modeltest.Text("You said " + last)
}

// doubt is what a person sees when the daemon died while an answer was being sent: the commit that ends a turn begins
// the first attempt.
const doubt = "I can't tell whether my last message arrived"

// P1, P4, P5: whichever commit the daemon dies at between the end of a background process and the answer to it, the end
// is told once. The end of a turn is passed once by the person's own message before; that one is accepted together with the
// begin of its turn.
func TestBackground_EndIsToldOnceAtEveryEdge(t *testing.T) {
	for _, point := range []string{"accept:before", "accept:after", "turn.begin:before", "turn.begin:after", "turn.finish:before:2", "turn.finish:after:2"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b := newSolo(t, backgroundAnswer)
			b.start(point)
			b.tg.Say(7, "begin")
			b.until("it has started", func() bool { return b.shown("Started.") == 1 })
			require.True(t, b.proc.alive(), "it died too early")
			require.NoError(t, os.WriteFile(filepath.Join(b.home, "workspace", "go"), nil, 0o600))
			b.until("the end is told", func() bool {
				if !b.proc.alive() && b.starts == 1 {
					require.True(t, b.proc.killed())
					b.start("")
				}
				return b.starts == 2 && b.shown("News: ")+b.shown(doubt) >= 1
			})
			b.tg.Say(7, "and now?")
			b.until("it goes on", func() bool { return b.shown("You said and now?") == 1 })
			require.Equal(t, 1, b.shown("News: ")+b.shown(doubt), "told, or said to be in doubt")
			if !strings.HasPrefix(point, "turn.finish:after") {
				require.Zero(t, b.shown(doubt), "only an answer whose sending has begun can be in doubt")
			}
			require.LessOrEqual(t, b.shown("⚙️"), 2, "a notice that was being sent is repeated once, as all notices are")
		})
	}
}
