package oracle

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"herald/tools/needtest"
)

// patience is how long a step of a script may take. It is only reached by a failure.
const patience = 60 * time.Second

// Process is a running script.
type Process struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	steps chan step

	mu   sync.Mutex
	said bytes.Buffer // its standard error, for a failure's text
}

type step struct {
	Step string          `json:"step"`
	Data json.RawMessage `json:"data"`
}

// Start runs a script of this folder with Node. env are further variables, "NAME=value"; of the test's own
// environment it gets PATH alone. It ends with the test. Without Node or the packages the test is skipped, and fails
// where CI is set.
func Start(t testing.TB, script string, env ...string) *Process {
	t.Helper()
	needtest.Heavy(t, "clients from npm")
	dir, err := scripts()
	var node string
	if err == nil {
		node, err = exec.LookPath("node")
	}
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		needtest.Lacking(t, "no oracle: %v (run `make oracles`)", err)
	}
	p := &Process{t: t, steps: make(chan step, 64)}
	p.cmd = exec.Command(node, filepath.Join(dir, script))
	p.cmd.Dir = dir
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "NO_PROXY=*"}, env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr = (*stderr)(p)
	p.in, err = p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go p.read(out, read)
	t.Cleanup(func() {
		_ = p.in.Close()
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		for range p.steps { // lets the reader end
		}
		<-read
		_ = p.cmd.Wait()
	})
	return p
}

func (p *Process) read(out io.Reader, done chan struct{}) {
	defer close(done)
	defer close(p.steps)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var s step
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil || s.Step == "" {
			_, _ = (*stderr)(p).Write(append(lines.Bytes(), '\n')) // a library that prints
			continue
		}
		p.steps <- s
	}
}

// Tell sends a command.
func (p *Process) Tell(command any) {
	p.t.Helper()
	line, err := json.Marshal(command)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		p.t.Fatalf("the script is gone: %v\n%s", err, p.errors())
	}
}

// Expect waits for the next step, which must be the named one, and decodes what it said into data, if that is not
// nil.
func (p *Process) Expect(name string, data any) {
	p.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case s, ok := <-p.steps:
		switch {
		case !ok:
			p.t.Fatalf("the script ended before %q\n%s", name, p.errors())
		case s.Step != name:
			p.t.Fatalf("the script said %q, want %q: %s\n%s", s.Step, name, readable(s.Data), p.errors())
		case data == nil:
		default:
			if err := json.Unmarshal(s.Data, data); err != nil {
				p.t.Fatalf("%q said %s: %v", name, s.Data, err)
			}
		}
	case <-timer.C:
		p.t.Fatalf("waited %s in vain for %q\n%s", patience, name, p.errors())
	}
}

// readable writes an error's lines as lines.
func readable(data json.RawMessage) string {
	var failed struct{ Error string }
	if json.Unmarshal(data, &failed) == nil && failed.Error != "" {
		return failed.Error
	}
	return string(data)
}

func (p *Process) errors() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said.Len() == 0 {
		return ""
	}
	return fmt.Sprintf("it printed:\n%s", strings.TrimSpace(p.said.String()))
}

// stderr keeps the newest part of what a script prints.
type stderr Process

func (w *stderr) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.said.Len() > 64<<10 {
		w.said.Reset()
	}
	return w.said.Write(b)
}

// scripts returns the directory of the clients' scripts: below the module that the test runs in.
func scripts() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "platforms", "platformtest", "oracle"), nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("the test runs outside of the module")
		}
		dir = up
	}
}
