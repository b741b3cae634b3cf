package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms/web/browsertest"
)

// What the agent broke in a chat comes back from the command line, beside a running daemon.
func TestRollback_OnTheCommandLine(t *testing.T) {
	b := browsertest.Start(t)
	p := newPlace(t)
	d := p.run()
	workspace := filepath.Join(p.home, "workspace")
	path := filepath.Join(workspace, "letter.txt")
	require.NoError(t, os.WriteFile(path, []byte("Dear reader\n"), 0o600))
	read := func() string {
		body, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(body)
	}
	require.Contains(t, p.good("rollback", "--dir", workspace), "no checkpoint")
	require.Contains(t, visit(t, b, d).say("write rubbish to letter.txt"), "Wrote letter.txt")
	require.Contains(t, p.good("rollback", "--dir", workspace), "before write_file: 1 files changed since")
	require.Contains(t, p.good("rollback", "1", "--dir", workspace), `bring back: "letter.txt"`)
	require.NotEqual(t, "Dear reader\n", read(), "a preview changes nothing")
	require.Contains(t, p.good("rollback", "--diff", "1", "--dir", workspace), "-Dear reader")
	require.Contains(t, p.good("rollback", "1", "--yes", "--dir", workspace), `as it was: "letter.txt"`)
	require.Equal(t, "Dear reader\n", read())
	require.Contains(t, p.good("rollback", "--undo", "--dir", workspace), "taken back")
	require.NotEqual(t, "Dear reader\n", read())
	r := p.herald("rollback", "77", "--dir", workspace)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "want 1 to")
	require.Contains(t, p.good("checkpoints", "status"), workspace)
	require.Contains(t, p.good("checkpoints", "prune"), "1 directories looked at")
	require.Equal(t, 1, p.herald("checkpoints", "clear").code)
	p.good("checkpoints", "clear", "--force")
	require.Contains(t, p.good("rollback", "--dir", workspace), "no checkpoint")
}
