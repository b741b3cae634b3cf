package ssh

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

	"herald/tools/sandbox"
	"herald/tools/sandbox/output"
	"herald/tools/sandbox/remote"
	"herald/tools/sandbox/sandboxtest"
	"herald/tools/sandbox/shell"
)

func sshOptions(t *testing.T, d *sandboxtest.SSHD) Options {
	t.Helper()
	me, err := user.Current()
	require.NoError(t, err)
	return Options{
		Host: "127.0.0.1", User: me.Username, Port: d.Port, Key: d.Key, Config: "/dev/null",
		KnownHosts: filepath.Join(d.Dir, "profile 100%", "known_hosts"), SpillDir: filepath.Join(d.Dir, "spill"),
	}
}

// host is an environment on a server, with the carrier below it.
type host struct {
	*remote.Environment
	carrier *carrier
}

// sshPlace makes an environment on the server.
func sshPlace(t *testing.T, d *sandboxtest.SSHD, change func(*Options)) *host {
	t.Helper()
	o := sshOptions(t, d)
	if change != nil {
		change(&o)
	}
	c, err := newCarrier(o)
	require.NoError(t, err)
	h := &host{over(c), c}
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

func TestSSH_OptionsAreChecked(t *testing.T) {
	for want, o := range map[string]Options{
		"no host is set": {}, "no host name": {Host: "-oProxyCommand=x"}, "no host name ": {Host: "a b"}, "no user name": {Host: "h", User: "-x"},
		"no port": {Host: "h", Port: 70_000}, "not an absolute": {Host: "h", KnownHosts: "k"}, "neither absolute": {Host: "h", Dir: "work"},
	} {
		_, err := New(o)
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
	r := sshPlace(t, d, func(o *Options) { o.Dir = "~/" })
	for range 3 {
		require.Equal(t, r.Home()+"\n", sandboxtest.MustExec(t, r, "pwd").Output)
	}
	require.Equal(t, 1, strings.Count(d.Log(), "Accepted publickey"))
	dir := r.carrier.dir
	require.FileExists(t, sshOptions(t, d).KnownHosts)
	require.NoError(t, r.Close())
	require.NoDirExists(t, dir)
	_, err := r.Exec(t.Context(), sandbox.Command{Line: "true"})
	require.ErrorIs(t, err, sandbox.ErrUnavailable)
	sandboxtest.Eventually(t, "the server's connection ends", func() bool { return d.Connections() == 0 })
}

func TestSSH_ErrorsSayWhatToDo(t *testing.T) {
	d := sandboxtest.NewSSHD(t)
	fails := func(r *host, want ...string) {
		t.Helper()
		_, err := r.Exec(t.Context(), sandbox.Command{Line: "true"})
		require.ErrorIs(t, err, sandbox.ErrUnavailable)
		for _, w := range want {
			require.ErrorContains(t, err, w)
		}
		_, err = r.Stat(t.Context(), "/")
		require.ErrorIs(t, err, sandbox.ErrUnavailable)
		require.Equal(t, "/", r.Home())
	}
	fails(sshPlace(t, d, func(o *Options) { o.Port = sandboxtest.FreePort(t) }), "can't be reached", "Connection refused", "terminal.ssh_port")

	other := filepath.Join(d.Dir, "other")
	d.NewKey(t, other)
	fails(sshPlace(t, d, func(o *Options) { o.Key = other }), "refuses us", "terminal.ssh_key")

	require.Equal(t, "ok\n", sandboxtest.MustExec(t, sshPlace(t, d, nil), "echo ok").Output)
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
	_, err := r.Exec(t.Context(), sandbox.Command{Line: "echo x >> " + shell.Quote(ran) + "; echo up; sleep 300",
		Output: sandboxtest.Writer(func([]byte) { once.Do(d.Stop) })})
	require.ErrorIs(t, err, sandbox.ErrUnavailable)
	require.ErrorIs(t, err, remote.ErrStarted)
	_, err = r.Exec(t.Context(), sandbox.Command{Line: "true"})
	require.ErrorIs(t, err, sandbox.ErrUnavailable)
	d.Start(t)
	require.Equal(t, "again\n", sandboxtest.MustExec(t, r, "echo again").Output)
	b, err := os.ReadFile(ran)
	require.NoError(t, err)
	require.Equal(t, "x\n", string(b))
}

// No variable's value is in an argument list of this machine while a command runs.
func TestSSH_ValuesAreInNoArguments(t *testing.T) {
	d := sandboxtest.NewSSHD(t)
	secret := "s3cr3t-" + sandbox.NewID()
	r := sshPlace(t, d, func(o *Options) { o.Env = func() map[string]string { return map[string]string{"VALUE": secret} } })
	seen := sandboxtest.MustExec(t, r, `echo "$VALUE"; `+sandboxtest.ArgumentsWithValue).Output
	require.Equal(t, secret+"\nlooked\n", seen)
}

// Every byte but NUL arrives as it was sent, in arguments, variables and input.
func TestSSH_AllBytes(t *testing.T) {
	r := sshPlace(t, sandboxtest.NewSSHD(t), nil)
	var all []byte
	for c := 1; c < 256; c++ {
		all = append(all, byte(c))
	}
	var out output.Tail
	code, err := r.carrier.Run(t.Context(), []string{"sh", "-c", `printf %s "$1" "$V"; cat`, "sh", string(all)},
		remote.Streams{In: bytes.NewReader(append(all, 0)), Out: &out, Env: map[string]string{"V": string(all)}})
	require.NoError(t, err)
	require.Zero(t, code)
	require.Equal(t, append(bytes.Repeat(all, 3), 0), out.Bytes())
}

// A host that takes connections and says nothing does not block a command forever.
func TestSSH_SilentHost(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	d := sandboxtest.NewSSHD(t)
	r := sshPlace(t, d, func(o *Options) { o.Port = l.Addr().(*net.TCPAddr).Port })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	res, err := r.Exec(ctx, sandbox.Command{Line: "true"})
	require.NoError(t, err)
	require.Equal(t, sandbox.ExitTimeout, res.ExitCode)
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

func TestSuite_SSH(t *testing.T) {
	d := sandboxtest.NewSSHD(t)
	sandboxtest.Suite(t, func(t *testing.T) sandbox.Environment { return sshPlace(t, d, func(o *Options) { o.KeepJobs = true }) })
}
