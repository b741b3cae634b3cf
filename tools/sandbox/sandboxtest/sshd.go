package sandboxtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"herald/tools/needtest"
)

// SSHD is a real OpenSSH server on loopback that runs as the current user.
type SSHD struct {
	Dir  string // of its files, removed at the end of the test
	Key  string // the file of a private key that it accepts
	Port int
	cmd  *exec.Cmd
}

const sshdProgram = "/usr/sbin/sshd"

// NewSSHD starts a server with a host key of its own. It ends with the test.
func NewSSHD(t testing.TB) *SSHD {
	t.Helper()
	needtest.Heavy(t, "an SSH server")
	if _, err := os.Stat(sshdProgram); err != nil {
		needtest.Lacking(t, "no sshd is installed")
	}
	d := &SSHD{Dir: t.TempDir(), Port: FreePort(t)}
	d.Key = filepath.Join(d.Dir, "user key")
	d.NewKey(t, d.Key)
	d.NewKey(t, filepath.Join(d.Dir, "host"))
	public, err := os.ReadFile(d.Key + ".pub")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(d.Dir, "authorized"), public, 0o600))
	d.Start(t)
	t.Cleanup(d.Stop)
	return d
}

// FreePort returns a port of loopback that nobody listens on.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// NewKey makes a key pair. The host's own is the file "host" in Dir; a server that is started again uses the new one.
func (d *SSHD) NewKey(t testing.TB, file string) {
	t.Helper()
	_ = os.Remove(file)
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
}

// Start runs the server again and waits until it listens.
func (d *SSHD) Start(t testing.TB) {
	t.Helper()
	if os.Geteuid() == 0 {
		_ = os.MkdirAll("/run/sshd", 0o755) // where a server of root leaves its children
	}
	config := filepath.Join(d.Dir, "config")
	// With SHLVL set bash does not read the .bashrc of whoever runs the tests.
	must(t, os.WriteFile(config, fmt.Appendf(nil, `Port %[1]d
ListenAddress 127.0.0.1
HostKey %[2]s/host
AuthorizedKeysFile %[2]s/authorized
PidFile %[2]s/pid
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
SetEnv SHLVL=2
`, d.Port, d.Dir), 0o600))
	log, err := os.OpenFile(filepath.Join(d.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(t, err)
	defer log.Close()
	d.cmd = exec.Command(sshdProgram, "-D", "-e", "-f", config)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, d.cmd.Start())
	for deadline := time.Now().Add(30 * time.Second); ; <-time.After(10 * time.Millisecond) {
		c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(d.Port))
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("sshd does not listen: %v", err)
		}
	}
}

// Log is what the server said.
func (d *SSHD) Log() string {
	b, _ := os.ReadFile(filepath.Join(d.Dir, "log"))
	return string(b)
}

// Connections is how many processes serve connections.
func (d *SSHD) Connections() int { return len(children(d.cmd.Process.Pid)) }

// Stop ends the server and, as a dead machine would, all its connections. What runs over them is left alone.
func (d *SSHD) Stop() {
	serving := children(d.cmd.Process.Pid)
	for _, pid := range serving {
		for _, below := range children(pid) { // a server of another user has two processes for each
			if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", below)); strings.HasPrefix(string(name), "sshd") {
				serving = append(serving, below)
			}
		}
	}
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
	for _, pid := range serving {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// children lists the processes whose parent is pid.
func children(pid int) []int {
	var out []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		f := strings.Fields(rest)
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && len(f) > 1 && f[1] == strconv.Itoa(pid) {
			out = append(out, child)
		}
	}
	return out
}
