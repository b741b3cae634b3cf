package signal

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every message that the page's table explains is one that the code prints.
func TestDocs_TroubleshootingNamesOurMessages(t *testing.T) {
	page, err := os.ReadFile("../../docs/platforms/signal.md")
	require.NoError(t, err)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var code strings.Builder
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		code.Write(b)
	}
	_, table, found := strings.Cut(string(page), "## When something is wrong")
	require.True(t, found)
	rows := 0
	for _, line := range strings.Split(table, "\n") {
		cell, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !ok || !strings.HasPrefix(cell, "`") {
			continue
		}
		rows++
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
			require.Contains(t, code.String(), m[1])
		}
	}
	require.GreaterOrEqual(t, rows, 15)
}
