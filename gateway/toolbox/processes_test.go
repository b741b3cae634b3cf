package toolbox

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/config"
	"herald/locales"
	"herald/platforms"
	"herald/tools/process"
)

// What a chat is told of its processes, by display.background_process_notifications.
func TestProcesses_Notice(t *testing.T) {
	catalogs, err := locales.New(locales.Options{})
	require.NoError(t, err)
	cfg := config.Default()
	r := &records{o: ProcessOptions{Config: func() *config.Config { return cfg },
		Printer: func(platforms.Address) *locales.Printer { return catalogs.Choose(cfg.Display.Language) }}}
	zero, three := 0, 3
	news := func(state process.State, exit *int) process.News {
		return process.News{Process: process.View{ID: "proc_1", Command: "make\nall", State: state, Exit: exit, Age: 90 * time.Second},
			Output: "1\n2\n3\n4\n5\n```6\n" + strings.Repeat("x", 600)}
	}
	good, bad, lost := news(process.Exited, &zero), news(process.Exited, &three), news(process.Lost, nil)
	stopped, match := news(process.Killed, nil), news(process.Running, nil)
	for mode, want := range map[string][]bool{ // good, bad, lost, stopped, match; then the lines of good
		"concise": {true, true, true, true, false, false},
		"result":  {true, true, true, true, false, true},
		"all":     {true, true, true, true, true, true},
		"error":   {false, true, true, false, false, false},
		"off":     {false, false, false, false, false, false},
	} {
		cfg = config.Default()
		cfg.Display.BackgroundNews = mode
		for i, n := range []process.News{good, bad, lost, stopped, match} {
			text := r.notice(platforms.Address{}, n)
			require.Equal(t, want[i], text != "", "%s: %q", mode, text)
		}
		require.Equal(t, want[5], strings.Contains(r.notice(platforms.Address{}, good), "```\n"), mode)
		require.Empty(t, r.notice(platforms.Address{}, process.News{Text: "about none"}))
	}
	cfg = config.Default()
	text := r.notice(platforms.Address{}, bad)
	require.True(t, strings.HasPrefix(text, "⚙️ `make all` has ended with exit code 3 after "), text)
	require.LessOrEqual(t, len(text), 700)
	bad.Output = "1\n2\n3\n4\n5\n```6"
	require.True(t, strings.HasSuffix(r.notice(platforms.Address{}, bad), "\n```\n2\n3\n4\n5\n'''6\n```"))
}

func newsOf(key string) process.News {
	return process.News{ID: "n1", Text: "it has ended",
		Owner: process.Owner{Key: key, Session: "s1", Platform: "web", Account: "a", Chat: "c", User: "u"}}
}
