package slack

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The rows of the troubleshooting table that quote a message quote what the code says.
func TestDocs_QuoteRealMessages(t *testing.T) {
	page, err := os.ReadFile("../../docs/platforms/slack.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "## When something is wrong")
	require.True(t, found)
	var source strings.Builder
	for _, dir := range []string{".", "../wire", "../../gateway", "../../gateway/*"} {
		files, err := filepath.Glob(dir + "/*.go")
		require.NoError(t, err)
		for _, f := range files {
			if !strings.HasSuffix(f, "_test.go") {
				text, err := os.ReadFile(f)
				require.NoError(t, err)
				source.Write(text)
			}
		}
	}
	quoted := 0
	for line := range strings.Lines(table) {
		row := strings.Split(line, "|")
		if len(row) < 3 {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			text := strings.TrimSuffix(strings.TrimSuffix(m[1], "…"), " ")
			if rest, ok := strings.CutPrefix(text, "platforms.slack.bot_token: "); ok {
				text = rest
			}
			if rest, ok := strings.CutPrefix(text, "platforms.slack.app_token: "); ok {
				text = rest
			}
			require.Contains(t, source.String(), text)
			quoted++
		}
	}
	require.Greater(t, quoted, 10)
}
