//go:build failpoint

package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/telegramtest"
)

// backgroundAnswer starts a background process that waits for a file, and tells of its news.
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
// is told once. Every point is passed once by the person's own message before.
func TestBackground_EndIsToldOnceAtEveryEdge(t *testing.T) {
	for _, point := range []string{"accept:before:2", "accept:after:2", "turn.begin:before:2", "turn.begin:after:2", "turn.finish:before:2", "turn.finish:after:2"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			b := newBackground(t)
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

// background is a daemon with one chat.
type background struct {
	t      *testing.T
	home   string
	env    []string
	tg     *telegramtest.Server
	proc   *process
	starts int
}

func newBackground(t *testing.T) *background {
	b := &background{t: t, home: t.TempDir(), tg: telegramtest.New(telegramtest.Options{Token: botToken})}
	base, err := b.tg.Start()
	require.NoError(t, err)
	t.Cleanup(b.tg.Close)
	llm := modeltest.Serve(modeltest.Answering(backgroundAnswer))
	t.Cleanup(llm.Close)
	b.env = []string{"HOME=" + b.home, "PATH=" + os.Getenv("PATH"), "HERALD_HOME=" + b.home, "HERALD_TERMINAL_BACKEND=local", "HERALD_GATEWAY_LOCK_DIR=" + filepath.Join(b.home, "locks"),
		"TELEGRAM_BOT_TOKEN=" + botToken, "HERALD_TELEGRAM_BASE_URL=" + base, "HERALD_TELEGRAM_ALLOW_FROM=*", "HERALD_TELEGRAM_RATE_LIMIT=off",
		"OPENAI_API_KEY=sk-crash-tests-0123456789", "OPENAI_BASE_URL=" + llm.OpenAI(), "HERALD_MODEL=crash-model", "HERALD_MODEL_PROVIDER=openai",
		"GORACE=halt_on_error=0", "GOMAXPROCS=2"}
	t.Cleanup(func() {
		// A job of a failed test ends by itself when its file is there.
		_ = os.WriteFile(filepath.Join(b.home, "workspace", "go"), nil, 0o600)
		if b.proc == nil {
			return
		}
		if b.proc.alive() {
			b.proc.signal(syscall.SIGTERM)
			if !b.proc.wait(stopLimit) {
				b.proc.signal(syscall.SIGKILL)
				<-b.proc.ended
				t.Error("the daemon did not stop")
			}
		}
		if log, race := b.proc.tail(4000); race || t.Failed() {
			t.Errorf("%s", log)
		}
	})
	return b
}

// start starts the daemon with a failpoint, "" for none.
func (b *background) start(failpoint string) {
	b.t.Helper()
	b.starts++
	p, err := launch(b.env, []string{"--set", "http.listen=127.0.0.1:0"}, failpoint, filepath.Join(b.home, fmt.Sprintf("start-%d.log", b.starts)))
	require.NoError(b.t, err)
	b.proc = p
}

// shown counts the bot's messages with a text.
func (b *background) shown(part string) int {
	n := 0
	for _, m := range b.tg.Visible(7) {
		if m.Bot && strings.Contains(m.Text, part) {
			n++
		}
	}
	return n
}

func (b *background) until(what string, ok func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(2 * replyLimit); !ok(); {
		if time.Now().After(deadline) {
			b.t.Fatalf("gave up waiting until %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}
