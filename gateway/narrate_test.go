package gateway_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"herald/gateway/model/modeltest"
	"herald/platforms"
)

// The sign of life says which tool runs, in the calls that show it anyway.
func TestNarrator_SaysWhichToolRuns(t *testing.T) {
	script := func() *modeltest.Script {
		return modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
			if _, ok := r.ToolResult(); ok {
				return modeltest.Text("done")
			}
			return modeltest.Calls("c1", "terminal", `{"command":"echo sk-house-tests-0123456789 and a good many words more; while [ ! -e go ]; do sleep 0.02; done"}`)
		})
	}
	for _, c := range []struct{ mode, lang, status, want string }{
		{"full", "en", "", "runs echo "},
		{"full", "de", "", "führt echo "},
		{"verb", "en", "", "runs a command"},
		{"verb", "de", "is busy", "führt einen Befehl aus"},
		{"off", "en", "is busy", "is busy"},
		{"off", "en", "", ""},
	} {
		t.Run(c.mode+" "+c.lang+" "+c.status, func(t *testing.T) {
			s := newStage("telegram") // a name whose shared settings exist
			h := start(t, script(), s.on, func(h *house) {
				h.env = slices.DeleteFunc(h.env, func(e string) bool { return strings.HasPrefix(e, "TELEGRAM_BOT_TOKEN=") })
				h.set["display.live_status"], h.set["display.language"] = c.mode, c.lang
				if c.status != "" {
					h.set["platforms.telegram.typing_status_text"] = c.status
				}
			})
			dm := s.place("D1", "")
			s.give(h, s.message(dm, platforms.DM, "go"))
			if c.want == "" {
				h.until("the plain sign is shown", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.typed > 5 })
				require.Empty(t, s.narrations())
			} else {
				h.until("it narrates "+c.want, func() bool {
					return slices.ContainsFunc(s.narrations(), func(n string) bool { return strings.HasPrefix(n, c.want) })
				})
			}
			require.NoError(t, os.WriteFile(filepath.Join(h.home, "workspace", "go"), nil, 0o600))
			s.await(h, dm, "done")
			if c.want != "" {
				h.until("the words are taken off", func() bool { n := s.narrations(); return n[len(n)-1] == "" })
			}
			said := s.narrations()
			for i, n := range said {
				require.LessOrEqual(t, utf8.RuneCountInString(n), 50, n)
				require.NotContains(t, n, "sk-house")
				require.True(t, n != "" || i == len(said)-1, "taken off once, at the end")
			}
			if c.mode == "verb" {
				require.NotContains(t, strings.Join(said, "\n"), "echo")
			}
		})
	}
}
