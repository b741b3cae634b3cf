package docker

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page for people names every option that is taken, and every message of its table is one that the code says.
func TestDocs_Sandbox(t *testing.T) {
	page, err := os.ReadFile("../../../docs/sandbox.md")
	require.NoError(t, err)
	for _, flag := range ExtraFlags() {
		require.Contains(t, string(page), "`"+flag+"`")
	}
	var code strings.Builder
	contract, err := filepath.Glob("../*.go")
	require.NoError(t, err)
	files, err := filepath.Glob("../*/*.go")
	require.NoError(t, err)
	for _, name := range append(contract, files...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		code.Write(data)
	}
	_, table, found := strings.Cut(string(page), "## When something is wrong")
	require.True(t, found)
	messages := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1)
	require.Greater(t, len(messages), 10)
	for _, m := range messages {
		require.Contains(t, code.String(), m[1], "the code says this nowhere")
	}
}
