package gateway_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway"
	"herald/gateway/config"
	"herald/gateway/gatewaytest"
)

// The home holds credentials: a start closes it to others, and so does a change of the configuration.
func TestSecure_TheHomeIsTheOwners(t *testing.T) {
	h := gatewaytest.Build(t, gatewaytest.Echo())
	mode := func() os.FileMode {
		info, err := os.Stat(h.Home)
		require.NoError(t, err)
		return info.Mode().Perm()
	}
	require.NoError(t, os.Chmod(h.Home, 0o755))
	h.Run()
	require.Equal(t, os.FileMode(0o700), mode())
	h.Halt()
	require.NoError(t, os.Chmod(h.Home, 0o755))
	require.NoError(t, gateway.EditConfig(h.Home+"/config.yaml", func(text []byte) ([]byte, error) { return config.SetText(text, "approvals.mode", "manual") }))
	require.Equal(t, os.FileMode(0o700), mode())
	info, err := os.Stat(h.Home + "/config.yaml")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// P10: a daemon that is told to stop while it starts ends as cleanly as one that runs.
func TestRun_StoppedWhileItStarts(t *testing.T) {
	h := gatewaytest.Build(t, gatewaytest.Echo())
	g, err := h.Open()
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	require.NoError(t, g.Run(ctx))
	h.Run()
	h.Halt()
}
