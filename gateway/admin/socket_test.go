package admin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"herald/gateway/admin"
)

// serve opens a control socket with a few verbs and closes it with the test.
func serve(t *testing.T, path string) *admin.Server {
	t.Helper()
	s := admin.NewServer(zerolog.Nop(), map[string]admin.Verb{
		"echo":  func(_ context.Context, args json.RawMessage) (any, error) { return args, nil },
		"fail":  func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("no room") },
		"panic": func(context.Context, json.RawMessage) (any, error) { panic("boom") },
		"odd":   func(context.Context, json.RawMessage) (any, error) { return make(chan int), nil },
		"hang": func(ctx context.Context, _ json.RawMessage) (any, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		},
	})
	require.NoError(t, s.Listen(path))
	t.Cleanup(s.Close)
	return s
}

func TestServer_Call(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.sock")
	serve(t, path)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	var out struct{ N int }
	require.NoError(t, admin.Call(t.Context(), path, "echo", map[string]int{"n": 7}, &out))
	require.Equal(t, 7, out.N)
	require.NoError(t, admin.Call(t.Context(), path, "echo", nil, nil))
	require.EqualError(t, admin.Call(t.Context(), path, "fail", nil, nil), "no room")
	require.ErrorContains(t, admin.Call(t.Context(), path, "nope", nil, nil), `does not know the verb "nope"; it may be another version`)
	require.ErrorContains(t, admin.Call(t.Context(), path, "odd", nil, nil), "json")
	require.ErrorContains(t, admin.Call(t.Context(), path, "panic", nil, nil), "boom")
	require.NoError(t, admin.Call(t.Context(), path, "echo", nil, nil), "the daemon lives on")

	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, admin.Call(short, path, "hang", nil, nil), "did not answer")
}

func TestServer_SpeaksLinesOfJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.sock")
	serve(t, path)
	for name, c := range map[string]struct {
		send string
		want []string
	}{
		"two requests": {`{"verb":"echo","args":1}` + "\n" + `{"verb":"fail"}` + "\n", []string{`{"ok":true,"result":1}`, `{"ok":false,"error":"no room"}`}},
		"no JSON":      {"hello\n" + `{"verb":"echo"}` + "\n", []string{"the request is not JSON"}},
		"too long":     {`{"verb":"` + strings.Repeat("x", 1<<20) + "\n", []string{"longer than 1048576 bytes"}},
		"nothing":      {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("unix", path)
			require.NoError(t, err)
			defer conn.Close()
			require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
			_, _ = conn.Write([]byte(c.send))
			require.NoError(t, conn.(*net.UnixConn).CloseWrite())
			lines := bufio.NewScanner(conn)
			for _, want := range c.want {
				require.True(t, lines.Scan(), "a line with %q", want)
				require.Contains(t, lines.Text(), want)
			}
			require.False(t, lines.Scan(), lines.Text())
		})
	}
}

func TestServer_CloseEndsConnectionsThatHang(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.sock")
	s := serve(t, path)
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer conn.Close()
	done := make(chan error, 1)
	go func() { done <- admin.Call(context.Background(), path, "hang", nil, nil) }()
	require.NoError(t, admin.Call(t.Context(), path, "echo", nil, nil))
	s.Close()
	require.Error(t, <-done)
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.NoFileExists(t, path)
	s.Close()
	err = admin.Call(t.Context(), path, "echo", nil, nil)
	require.ErrorIs(t, err, admin.ErrNoDaemon)
	require.ErrorContains(t, err, "herald run")
	admin.NewServer(zerolog.Nop(), nil).Close()
}

// A process that was killed leaves its socket behind.
func TestServer_ReplacesAStaleSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.sock")
	stale, err := net.Listen("unix", path)
	require.NoError(t, err)
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, stale.Close())
	require.FileExists(t, path)
	serve(t, path)
	require.NoError(t, admin.Call(t.Context(), path, "echo", nil, nil))
}

// Socket names are short: a deep home gets one elsewhere, and a file that says where.
func TestServer_DeepHomes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep/", 25))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	path := filepath.Join(dir, "control.sock")
	socket, pointer := admin.SocketPath(path)
	require.Less(t, len(socket), 100)
	require.Equal(t, path+".path", pointer)
	other, _ := admin.SocketPath(path + "x")
	require.NotEqual(t, socket, other)
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(socket)) })

	s := serve(t, path)
	require.NoError(t, admin.Call(t.Context(), path, "echo", nil, nil))
	said, err := os.ReadFile(pointer)
	require.NoError(t, err)
	require.Equal(t, socket+"\n", string(said))
	info, err := os.Stat(filepath.Dir(socket))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	s.Close()
	require.ErrorIs(t, admin.Call(t.Context(), path, "echo", nil, nil), admin.ErrNoDaemon)
}
