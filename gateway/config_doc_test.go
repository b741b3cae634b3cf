package gateway_test

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/config"
)

var update = flag.Bool("update", false, "write generated documents anew")

// docs/configuration.md is made from the settings themselves, so that it can't say anything else.
func TestDocs_ConfigurationIsCurrent(t *testing.T) {
	const path = "../docs/configuration.md"
	want := string(config.Reference())
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run: go test -tags sqlite_fts5 ./gateway -run TestDocs -update")
}
