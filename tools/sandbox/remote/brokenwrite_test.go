package remote_test

import (
	"bytes"
	"context"
	"os"
	"os/user"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/tools/sandbox/remote"
	"herald/tools/sandbox/sandboxtest"
	"herald/tools/sandbox/ssh"
)

// A file that is being sent when the connection breaks stays as it was.
func TestSSH_BrokenWriteKeepsTheOldFile(t *testing.T) {
	d := sandboxtest.NewSSHD(t)
	me, err := user.Current()
	require.NoError(t, err)
	e, err := ssh.New(ssh.Options{Host: "127.0.0.1", User: me.Username, Port: d.Port, Key: d.Key, Config: "/dev/null", KnownHosts: filepath.Join(d.Dir, "known_hosts")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	p := filepath.Join(d.Dir, "file")
	require.NoError(t, e.WriteFile(t.Context(), p, []byte("old"), 0o644))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	part := &stalled{Reader: bytes.NewReader(make([]byte, 200_000)), at: cancel}
	require.Error(t, e.(*remote.Environment).WritePart(ctx, p, part, 400_000))
	sandboxtest.Eventually(t, "the half file is removed", func() bool { _, err := os.Lstat(p + ".tmp"); return os.IsNotExist(err) })
	b, err := os.ReadFile(p)
	require.NoError(t, err)
	require.Equal(t, "old", string(b))
}

// stalled calls at when its bytes are used up, and ends.
type stalled struct {
	*bytes.Reader
	at func()
}

func (s *stalled) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err != nil {
		s.at()
	}
	return n, err
}
