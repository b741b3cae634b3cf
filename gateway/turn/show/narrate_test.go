package show_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"herald/gateway/gatewaytest"
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
			s := gatewaytest.NewStage("telegram") // a name whose shared settings exist
			h := gatewaytest.Start(t, script(), s.On, func(h *gatewaytest.House) {
				h.Env = slices.DeleteFunc(h.Env, func(e string) bool { return strings.HasPrefix(e, "TELEGRAM_BOT_TOKEN=") })
				h.Set["display.live_status"], h.Set["display.language"] = c.mode, c.lang
				if c.status != "" {
					h.Set["platforms.telegram.typing_status_text"] = c.status
				}
			})
			dm := s.Place("D1", "")
			s.Give(h, s.Message(dm, platforms.DM, "go"))
			if c.want == "" {
				h.Until("the plain sign is shown", func() bool { return s.Typed() > 5 })
				require.Empty(t, s.Narrations())
			} else {
				h.Until("it narrates "+c.want, func() bool {
					return slices.ContainsFunc(s.Narrations(), func(n string) bool { return strings.HasPrefix(n, c.want) })
				})
			}
			require.NoError(t, os.WriteFile(filepath.Join(h.Home, "workspace", "go"), nil, 0o600))
			s.Await(h, dm, "done")
			if c.want != "" {
				h.Until("the words are taken off", func() bool { n := s.Narrations(); return n[len(n)-1] == "" })
			}
			said := s.Narrations()
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
