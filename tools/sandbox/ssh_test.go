package sandbox

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/tools/sandbox/sandboxtest"
)

func sshOptions(t *testing.T, d *sandboxtest.SSHD) SSHOptions {
	t.Helper()
	me, err := user.Current()
	require.NoError(t, err)
	return SSHOptions{
		Host: "127.0.0.1", User: me.Username, Port: d.Port, Key: d.Key, Config: "/dev/null",
		KnownHosts: filepath.Join(d.Dir, "profile 100%", "known_hosts"), SpillDir: filepath.Join(d.Dir, "spill"),
	}
}

// sshPlace makes an environment on the server.
func sshPlace(t *testing.T, d *sandboxtest.SSHD, change func(*SSHOptions)) *remote {
	t.Helper()
	o := sshOptions(t, d)
	if change != nil {
		change(&o)
	}
	e, err := NewSSH(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e.(*remote)
}

func exec1(t *testing.T, e Environment, line string) Result {
	t.Helper()
	r, err := e.Exec(t.Context(), Command{Line: line})
	require.NoError(t, err)
	return r
}

func TestSSH_OptionsAreChecked(t *testing.T) {
	for want, o := range map[string]SSHOptions{
		"no host is set": {}, "no host name": {Host: "-oProxyCommand=x"}, "no host name ": {Host: "a b"}, "no user name": {Host: "h", User: "-x"},
		"no port": {Host: "h", Port: 70_000}, "not an absolute": {Host: "h", KnownHosts: "k"}, "neither absolute": {Host: "h", Dir: "work"},
	} {
		_, err := NewSSH(o)
		require.ErrorContains(t, err, strings.TrimSpace(want))
	}
}

func TestSSH_SocketPathIsShort(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 60))
	require.NoError(t, os.Mkdir(long, 0o700))
	dir, err := socketDir(long, "/tmp")
	require.NoError(t, err)
	defer os.Remove(dir)
	require.Equal(t, "/tmp", filepath.Dir(dir))
	st, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), st.Mode().Perm())
	_, err = socketDir(long)
	require.ErrorContains(t, err, "103 bytes")
	left, err := os.ReadDir(long)
	require.NoError(t, err)
	require.Empty(t, left)
}

// One connection carries many commands, and is closed with the environment.
func TestSSH_OneConnection(t *testing.T) {
	d := sandboxtest.NewSSHD(t)
	r := sshPlace(t, d, func(o *SSHOptions) { o.Dir = "~/" })
	for range 3 {
		require.Equal(t, r.Home()+"\n", exec1(t, r, "pwd").Output)
	}
	require.Equal(t, 1, strings.Count(d.Log(), "Accepted publickey"))
	dir := r.carrier.(*sshCarrier).dir
	require.FileExists(t, sshOptions(t, d).KnownHosts)
	require.NoError(t, r.Close())
	require.NoDirExists(t, dir)
	_, err := r.Exec(t.Context(), Command{Line: "true"})
	require.ErrorIs(t, err, ErrUnavailable)
	eventually(t, "the server's connection ends", func() bool { return d.Connections() == 0 })
}

func TestSSH_ErrorsSayWhatToDo(t *testing.T) {
	d := sandboxtest.NewSSHD(t)
	fails := func(r *remote, want ...string) {
		t.Helper()
		_, err := r.Exec(t.Context(), Command{Line: "true"})
		require.ErrorIs(t, err, ErrUnavailable)
		for _, w := range want {
			require.ErrorContains(t, err, w)
		}
		_, err = r.Stat(t.Context(), "/")
		require.ErrorIs(t, err, ErrUnavailable)
		require.Equal(t, "/", r.Home())
	}
	fails(sshPlace(t, d, func(o *SSHOptions) { o.Port = sandboxtest.FreePort(t) }), "can't be reached", "Connection refused", "terminal.ssh_port")

	other := filepath.Join(d.Dir, "other")
	d.NewKey(t, other)
	fails(sshPlace(t, d, func(o *SSHOptions) { o.Key = other }), "refuses us", "terminal.ssh_key")

	require.Equal(t, "ok\n", exec1(t, sshPlace(t, d, nil), "echo ok").Output)
	d.Stop()
	d.NewKey(t, filepath.Join(d.Dir, "host"))
	d.Start(t)
	fails(sshPlace(t, d, nil), "another host key than before", "ssh-keygen -R 127.0.0.1")
}

// A connection that died is made again by the next command; the command that it carried is not repeated.
func TestSSH_Reconnects(t *testing.T) {
	d := sandboxtest.NewSSHD(t)
	r := sshPlace(t, d, nil)
	ran := filepath.Join(d.Dir, "ran")
	var once sync.Once
	_, err := r.Exec(t.Context(), Command{Line: "echo x >> " + quote(ran) + "; echo up; sleep 300", Output: writer(func([]byte) { once.Do(d.Stop) })})
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorIs(t, err, errStarted)
	_, err = r.Exec(t.Context(), Command{Line: "true"})
	require.ErrorIs(t, err, ErrUnavailable)
	d.Start(t)
	require.Equal(t, "again\n", exec1(t, r, "echo again").Output)
	b, err := os.ReadFile(ran)
	require.NoError(t, err)
	require.Equal(t, "x\n", string(b))
}

// A file that is being sent when the connection breaks stays as it was.
func TestSSH_BrokenWriteKeepsTheOldFile(t *testing.T) {
	d := sandboxtest.NewSSHD(t)
	r := sshPlace(t, d, nil)
	p := filepath.Join(d.Dir, "file")
	require.NoError(t, r.WriteFile(t.Context(), p, []byte("old"), 0o644))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	part := &stalled{Reader: bytes.NewReader(make([]byte, 200_000)), at: cancel}
	_, err := r.call(ctx, "write", p, writeScript, part, p+".tmp", "400000", "0644")
	require.Error(t, err)
	eventually(t, "the half file is removed", func() bool { _, err := os.Lstat(p + ".tmp"); return os.IsNotExist(err) })
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

// No variable's value is in an argument list of this machine while a command runs.
func TestSSH_ValuesAreInNoArguments(t *testing.T) {
	d := sandboxtest.NewSSHD(t)
	secret := "s3cr3t-" + randomID()
	r := sshPlace(t, d, func(o *SSHOptions) { o.Env = func() map[string]string { return map[string]string{"VALUE": secret} } })
	seen := exec1(t, r, `echo "$VALUE"; `+argumentsWithValue).Output
	require.Equal(t, secret+"\nlooked\n", seen)
}

// Every byte but NUL arrives as it was sent, in arguments, variables and input.
func TestSSH_AllBytes(t *testing.T) {
	r := sshPlace(t, sandboxtest.NewSSHD(t), nil)
	var all []byte
	for c := 1; c < 256; c++ {
		all = append(all, byte(c))
	}
	var out tail
	code, err := r.carrier.run(t.Context(), []string{"sh", "-c", `printf %s "$1" "$V"; cat`, "sh", string(all)},
		streams{in: bytes.NewReader(append(all, 0)), out: &out, env: map[string]string{"V": string(all)}})
	require.NoError(t, err)
	require.Zero(t, code)
	require.Equal(t, append(bytes.Repeat(all, 3), 0), out.b)
}

// A host that takes connections and says nothing does not hold a command for ever.
func TestSSH_SilentHost(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	d := sandboxtest.NewSSHD(t)
	r := sshPlace(t, d, func(o *SSHOptions) { o.Port = l.Addr().(*net.TCPAddr).Port })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	res, err := r.Exec(ctx, Command{Line: "true"})
	require.NoError(t, err)
	require.Equal(t, ExitTimeout, res.ExitCode)
}

// What the start files of the user's shell print is in no result.
func TestSSH_NoiseOfStartFiles(t *testing.T) {
	var out bytes.Buffer
	for _, parts := range [][]string{{"noise\nwo", "rd", "\ntext"}, {"word\n", "te", "xt"}, {"a word\nword\ntext"}} {
		out.Reset()
		w := after("word", &out)
		for _, p := range parts {
			n, err := w.Write([]byte(p))
			require.NoError(t, err)
			require.Equal(t, len(p), n)
		}
		if parts[0] == "a word\nword\ntext" {
			require.Equal(t, "word\ntext", out.String(), "the word is random, and nobody else prints it")
			continue
		}
		require.Equal(t, "text", out.String())
	}
	require.Nil(t, after("word", nil))
}
