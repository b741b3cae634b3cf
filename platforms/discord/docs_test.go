package discord

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// elsewhere are messages of the table that the gateway prints, not the adapter.
var elsewhere = map[string]bool{"this account is used by another process": true, "not allowed: …": true}

// What the page says is seen when something is wrong is really written somewhere.
func TestDocs_TroubleTableQuotesOurOwnMessages(t *testing.T) {
	page, err := os.ReadFile("../../docs/platforms/discord.md")
	require.NoError(t, err)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var source strings.Builder
	for _, name := range files {
		if !strings.HasSuffix(name, "_test.go") {
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
			text := strings.TrimPrefix(quoted[1], "token: ")
			if elsewhere[text] || text == "herald status" || text == "deaf" || text == "paused" {
				continue
			}
			require.Contains(t, source.String(), text)
			rows++
		}
	}
	require.Greater(t, rows, 8)
}
