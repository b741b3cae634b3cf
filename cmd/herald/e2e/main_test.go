// Package e2e_test drives the real binary as people do: through the browser page, the command line, and signals.
package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long a step may take on a busy machine.
const patience = 30 * time.Second

// binary is the daemon that all tests run. It is built once.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "herald-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// Another user must be able to run it.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binary = filepath.Join(dir, "herald")
	build := exec.Command("go", "build", "-tags", "sqlite_fts5", "-ldflags", "-X main.buildVersion=9.8.7-e2e", "-o", binary, "herald/cmd/herald")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build herald:", err)
		return 1
	}
	return m.Run()
}

// place is a home with the environment that the commands of a test get: no model key, no platform of the
// machine that runs the tests.
type place struct {
	t    *testing.T
	home string
	env  []string
	user *syscall.Credential // nil: whoever runs the tests
}

func newPlace(t *testing.T) *place {
	home := filepath.Join(t.TempDir(), "home")
	return &place{t: t, home: home, env: []string{
		"HOME=" + filepath.Dir(home), "HERALD_HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TMPDIR=" + os.TempDir(),
		"HERALD_TERMINAL_BACKEND=local", "HERALD_GATEWAY_LOCK_DIR=" + filepath.Join(filepath.Dir(home), "locks"),
		"OLLAMA_HOST=http://127.0.0.1:1", // nothing answers there: the demo model is picked everywhere
	}}
}

func (p *place) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env, cmd.Dir = p.env, filepath.Dir(p.home)
	if p.user != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.user}
		cmd.Dir = "/"
	}
	return cmd
}

// result is what came of a command.
type result struct {
	out, err string
	code     int
}

// herald runs one verb to its end.
func (p *place) herald(args ...string) result {
	p.t.Helper()
	return p.heraldIn("", args...)
}

// heraldIn is herald with something on its standard input.
func (p *place) heraldIn(input string, args ...string) result {
	p.t.Helper()
	cmd := p.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	require.NoError(p.t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(2 * patience):
		_ = cmd.Process.Kill()
		<-ended
		p.t.Fatalf("herald %v did not end; it wrote %s %s", args, out.String(), errs.String())
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// good runs a verb that must succeed and returns what it printed.
func (p *place) good(args ...string) string {
	p.t.Helper()
	r := p.herald(args...)
	require.Zero(p.t, r.code, "herald %v: %s%s", args, r.out, r.err)
	return r.out
}

// daemon is a running herald.
type daemon struct {
	*place
	cmd   *exec.Cmd
	ended chan struct{}

	mu    sync.Mutex
	lines []string
	url   string
}

// run starts the daemon and waits until it serves. Its address comes from its log.
func (p *place) run(args ...string) *daemon {
	p.t.Helper()
	d := p.begin(args...)
	d.until("the daemon tells its address", func() bool { return d.address() != "" || d.over() })
	require.False(p.t, d.over(), "the daemon ended: %s", d.log())
	return d
}

// begin starts the daemon and does not wait for it.
func (p *place) begin(args ...string) *daemon {
	p.t.Helper()
	d := &daemon{place: p, ended: make(chan struct{})}
	d.cmd = p.command(append([]string{"run", "--set", "http.listen=127.0.0.1:0"}, args...)...)
	errs, err := d.cmd.StderrPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, d.cmd.Start())
	read := make(chan struct{})
	go func() {
		defer close(read)
		d.read(errs)
	}()
	go func() {
		defer close(d.ended)
		<-read
		_ = d.cmd.Wait()
	}()
	p.t.Cleanup(func() {
		if !d.over() {
			_ = d.cmd.Process.Signal(syscall.SIGTERM)
			select {
			case <-d.ended:
			case <-time.After(patience):
				_ = d.cmd.Process.Kill()
				<-d.ended
				p.t.Errorf("the daemon did not stop on SIGTERM")
			}
		}
		if p.t.Failed() {
			p.t.Log(d.log())
		}
	})
	return d
}

func (d *daemon) read(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		var entry struct {
			URL string `json:"url"`
		}
		_ = json.Unmarshal([]byte(line), &entry) // the last line of a failed start is plain text
		d.mu.Lock()
		d.lines = append(d.lines, line)
		if entry.URL != "" && d.url == "" {
			d.url = entry.URL
		}
		d.mu.Unlock()
	}
}

func (d *daemon) address() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.url
}

func (d *daemon) log() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.lines, "\n")
}

func (d *daemon) over() bool {
	select {
	case <-d.ended:
		return true
	default:
		return false
	}
}

// wait waits for the end and returns the exit code; -1 for a signal.
func (d *daemon) wait() int {
	d.t.Helper()
	select {
	case <-d.ended:
	case <-time.After(patience):
		d.t.Fatalf("the daemon does not end: %s", d.log())
	}
	return d.cmd.ProcessState.ExitCode()
}

// stop ends the daemon as a supervisor does.
func (d *daemon) stop() {
	d.t.Helper()
	require.NoError(d.t, d.cmd.Process.Signal(syscall.SIGTERM))
	require.Zero(d.t, d.wait(), d.log())
}

// until polls a condition with a deadline.
func (p *place) until(what string, cond func() bool) {
	p.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-limit.C:
			p.t.Fatalf("gave up waiting until %s", what)
		}
	}
}

// get asks the daemon for a path.
func (d *daemon) get(path string) (int, string) {
	d.t.Helper()
	resp, err := http.Get(strings.TrimSuffix(d.address(), "/") + path)
	require.NoError(d.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(d.t, err)
	return resp.StatusCode, string(body)
}
