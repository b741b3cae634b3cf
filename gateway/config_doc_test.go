package gateway_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/config"
	"herald/platforms/all"
	"herald/tools/terminal"
)

var update = flag.Bool("update", false, "write generated documents anew")

// docs/configuration.md is made from the settings themselves, so that it can't say anything else.
func TestDocs_ConfigurationIsCurrent(t *testing.T) {
	const path = "../docs/configuration.md"
	want := string(config.Reference(all.Kinds()...))
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run: go test -tags sqlite_fts5 ./gateway -run TestDocs -update")
}

// The page about approvals names every kind of danger.
func TestDocs_ApprovalsNamesEveryDanger(t *testing.T) {
	page, err := os.ReadFile("../docs/approvals.md")
	require.NoError(t, err)
	for _, k := range terminal.Kinds() {
		require.Contains(t, string(page), "| `"+k.Key+"` | "+strings.TrimPrefix(k.Reason, "it ")+" |")
	}
}
