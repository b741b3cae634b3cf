package teams

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the page says is seen when something is wrong is really written somewhere, here or in the gateway.
func TestDocs_TroubleTableQuotesOurOwnMessages(t *testing.T) {
	page, err := os.ReadFile("../../docs/platforms/teams.md")
	require.NoError(t, err)
	var source strings.Builder
	for _, pattern := range []string{"*.go", "../wire/*.go", "../../gateway/*.go", "../../gateway/*/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			raw, err := os.ReadFile(name)
			require.NoError(t, err)
			source.Write(raw)
		}
	}
	_, table, ok := strings.Cut(string(page), "## When something is wrong")
	require.True(t, ok)
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			text := strings.TrimSuffix(quoted[1], "…")
			if text == "herald status" {
				continue
			}
			require.Contains(t, strings.ToLower(source.String()), strings.ToLower(text))
			rows++
		}
	}
	require.Greater(t, rows, 15)
}
