package gatewaytest

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
)

// Configure writes the house's config.yaml as an editor does.
func (h *House) Configure(text string) {
	h.T.Helper()
	file := filepath.Join(h.Home, "config.yaml")
	require.NoError(h.T, os.WriteFile(file+".new", []byte(text), 0o600))
	require.NoError(h.T, os.Rename(file+".new", file))
}

// Without takes a variable out of the house's environment, because it would win over config.yaml.
func (h *House) Without(name string) {
	kept := h.Env[:0]
	for _, kv := range h.Env {
		if !strings.HasPrefix(kv, name+"=") {
			kept = append(kept, kv)
		}
	}
	h.Env = kept
}

// With returns what makes Start configure the house before it runs it.
func With(text string) func(*House) {
	return func(h *House) { h.Configure(text) }
}
