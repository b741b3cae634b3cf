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

// solo is a daemon with one chat and a scripted model.
type solo struct {
	t      *testing.T
	home   string
	env    []string
	tg     *telegramtest.Server
	proc   *process
	starts int
}

func newSolo(t *testing.T, answer func(modeltest.Request) modeltest.Reply) *solo {
	b := &solo{t: t, home: t.TempDir(), tg: telegramtest.New(telegramtest.Options{Token: botToken})}
	base, err := b.tg.Start()
	require.NoError(t, err)
	t.Cleanup(b.tg.Close)
	llm := modeltest.Serve(modeltest.Answering(answer))
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
func (b *solo) start(failpoint string) {
	b.t.Helper()
	b.starts++
	p, err := launch(b.env, []string{"--set", "http.listen=127.0.0.1:0"}, failpoint, filepath.Join(b.home, fmt.Sprintf("start-%d.log", b.starts)))
	require.NoError(b.t, err)
	b.proc = p
}

// shown counts the bot's messages with a text.
func (b *solo) shown(part string) int {
	n := 0
	for _, m := range b.tg.Visible(7) {
		if m.Bot && strings.Contains(m.Text, part) {
			n++
		}
	}
	return n
}

func (b *solo) until(what string, ok func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(2 * replyLimit); !ok(); {
		if time.Now().After(deadline) {
			b.t.Fatalf("gave up waiting until %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// stop ends the daemon in order.
func (b *solo) stop() {
	b.t.Helper()
	b.proc.signal(syscall.SIGTERM)
	require.True(b.t, b.proc.wait(stopLimit), "the daemon did not stop")
}
