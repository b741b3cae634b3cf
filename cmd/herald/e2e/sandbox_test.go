package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"herald/platforms/web/browsertest"
	"herald/tools/sandbox/sandboxtest"
)

// containers lets the place's commands run in containers of its own.
func (p *place) containers(backend string) (dir string) {
	dir = filepath.Join(p.home, "sandboxes")
	sandboxtest.Need(p.t, dir)
	for i, e := range p.env {
		if strings.HasPrefix(e, "HERALD_TERMINAL_BACKEND=") {
			p.env[i] = "HERALD_TERMINAL_BACKEND=" + backend
		}
	}
	p.env = append(p.env, "TERMINAL_DOCKER_IMAGE="+sandboxtest.Image)
	return dir
}

// A message makes the model run a command in the container; the command line looks into the same one; and both outlive a
// daemon that is killed, and a container that is removed.
func TestSandbox_ChatAndCommandLineShareTheContainer(t *testing.T) {
	b := browsertest.Start(t)
	p := newPlace(t)
	dir := p.containers("auto")
	require.Contains(t, p.good("sandbox", "status"), "none yet; the first command makes it")
	d := p.run()
	require.Empty(t, sandboxtest.Containers(t, dir), "a start makes no container")
	require.Contains(t, p.good("status"), "commands  auto (the first command decides)")

	v := visit(t, b, d)
	require.Contains(t, v.say("run echo from-the-chat >/workspace/note; echo tool >/opt/tool; pwd"), "/workspace")
	require.Len(t, sandboxtest.Containers(t, dir), 1)
	require.Contains(t, p.good("status"), "commands  docker (Docker")
	require.Equal(t, "from-the-chat\ntool\n", p.good("sandbox", "exec", "cat /workspace/note /opt/tool"))
	require.Equal(t, "a b\n", p.good("sandbox", "exec", "--", "printf", "%s\n", "a b"))
	r := p.herald("sandbox", "exec", "exit 7")
	require.Equal(t, 7, r.code)
	require.Equal(t, "in\n", p.heraldIn("in\n", "sandbox", "exec", "cat").out)
	status := p.good("sandbox", "status")
	for _, part := range []string{"daemon     uses docker", "engine     Docker", "key        default", "running", "network    on", "mount      /workspace is " + filepath.Join(dir, "docker", "default", "workspace")} {
		require.Contains(t, status, part)
	}

	require.NoError(t, d.cmd.Process.Kill())
	d.wait()
	d = p.run()
	v = visit(t, b, d)
	require.Contains(t, v.say("run cat /opt/tool"), "tool")
	require.Len(t, sandboxtest.Containers(t, dir), 1, "the container of the killed daemon is taken up")

	require.Contains(t, p.good("sandbox", "reset"), "containers removed: 1")
	require.Contains(t, v.say("run cat /workspace/note; test -e /opt/tool || echo a-new-one"), "a-new-one")
	require.Contains(t, p.good("sandbox", "prune"), "containers removed: 0")
	d.stop()
	require.Len(t, sandboxtest.Containers(t, dir), 1, "it runs on")

	r = p.herald("sandbox", "reset", "--files")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "say --yes too")
	require.Contains(t, p.good("sandbox", "reset", "--files", "--yes"), "files deleted")
	require.NoDirExists(t, filepath.Join(dir, "docker", "default"))
	require.Contains(t, p.good("sandbox", "build"), "is there")
}

// A person's shell, on a terminal.
func TestSandbox_Shell(t *testing.T) {
	p := newPlace(t)
	p.containers("docker")
	cmd := p.command("sandbox", "shell")
	cmd.Env = append(cmd.Env, "TERM=xterm")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 33, Cols: 77})
	require.NoError(t, err)
	defer tty.Close()
	seen := make(chan string, 1)
	go func() {
		var all bytes.Buffer
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			all.Write(buf[:n])
			if err != nil {
				seen <- all.String()
				return
			}
		}
	}()
	_, err = tty.Write([]byte("stty size; echo $((40+2))-$PWD; exit 5\n"))
	require.NoError(t, err)
	select {
	case text := <-seen:
		require.Contains(t, text, "33 77")
		require.Contains(t, text, "42-/workspace")
	case <-time.After(2 * patience):
		_ = cmd.Process.Kill()
		t.Fatal("the shell does not end")
	}
	_ = cmd.Wait()
	require.Equal(t, 5, cmd.ProcessState.ExitCode())

	r := p.heraldIn("", "sandbox", "shell")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "standard input is no terminal")
}

// Without containers the verbs say so, and exec runs on this machine.
func TestSandbox_OnThisMachine(t *testing.T) {
	p := newPlace(t)
	require.Contains(t, p.good("sandbox", "status"), "backend    local")
	require.Equal(t, filepath.Join(p.home, "workspace")+"\n", p.good("sandbox", "exec", "pwd"))
	r := p.herald("sandbox", "shell")
	require.Equal(t, 78, r.code)
	require.Contains(t, r.err, "terminal.backend is local: there is no container")
	_, err := os.Stat(filepath.Join(p.home, "sandboxes"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
