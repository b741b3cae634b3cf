package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"herald/cron"
	"herald/tools/sandbox"
	"herald/tools/sandbox/local"
	"herald/tools/sandbox/shell"
)

// ScriptsDir is the folder of a home that the scripts of jobs lie in. Nothing outside of it is run.
const ScriptsDir = "scripts"

const (
	// scriptWindow is how many bytes of a script's output are kept; the middle is left out.
	scriptWindow = 128 << 10
	// scriptErrors is how many bytes of what a script writes to stderr are kept, the last ones.
	scriptErrors = 4 << 10
	// maxScript is how large a script may be, in bytes: it is read before it runs.
	maxScript = 1 << 20
)

// ScriptOptions are what Scripts work with.
type ScriptOptions struct {
	// Dir is the folder of the scripts, absolute.
	Dir string
	// Timeout bounds one run; it is asked each time.
	Timeout func() time.Duration
	// Deny names variables that no script sees beside those that a command never sees (see sandbox.Scrub), and
	// Passthrough those that it sees although they look like credentials.
	Deny, Passthrough []string
	// Environ is the daemon's environment; nil is the real one.
	Environ func() []string
	// Redact takes secrets out of what a script puts out; nil changes nothing.
	Redact func(string) string
}

// Scripts runs the scripts of jobs, each with all that it starts in a process tree of its own. It is safe for concurrent
// use.
type Scripts struct {
	o ScriptOptions

	mu    sync.Mutex
	local *local.Environment // made by the first run
}

// NewScripts returns the scripts of a folder, which need not be there yet.
func NewScripts(o ScriptOptions) *Scripts {
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	return &Scripts{o: o}
}

// Close ends the scripts that run, with all that they have started.
func (s *Scripts) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.local == nil {
		return nil
	}
	return s.local.Close()
}

// Check reports why a script can't be run: it is not there, it is not a file, it is outside of the folder, or it would
// stop Herald.
func (s *Scripts) Check(name string) error {
	path, err := s.find(name)
	if err != nil {
		return err
	}
	return s.scan(path)
}

// find returns the real path of a script.
func (s *Scripts) find(name string) (string, error) {
	name = strings.TrimSpace(name)
	switch {
	case name == "":
		return "", errors.New("it has no name")
	case strings.ContainsRune(name, 0):
		return "", errors.New("its name holds a NUL byte")
	case strings.HasPrefix(name, "~"):
		home, err := os.UserHomeDir()
		if rest, own := strings.CutPrefix(name, "~/"); own && err == nil {
			name = filepath.Join(home, rest)
			break
		}
		return "", fmt.Errorf("the home that %q means is not known; write the path below %s", name, s.o.Dir)
	}
	root, err := filepath.EvalSymlinks(s.o.Dir)
	if err != nil {
		return "", fmt.Errorf("there is no folder %s; make it and put the script in it", s.o.Dir)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(s.o.Dir, name)
	}
	path, err := filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("it is not in %s", s.o.Dir)
	}
	if err != nil {
		return "", fmt.Errorf("it can't be found: %w", err)
	}
	if rel, err := filepath.Rel(root, path); err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("it leads out of %s; only scripts in there are run", s.o.Dir)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return "", fmt.Errorf("it can't be read: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is no file")
	}
	if info.Size() > maxScript {
		return "", fmt.Errorf("it has %d bytes; at most %d are allowed", info.Size(), maxScript)
	}
	return path, nil
}

func (s *Scripts) scan(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, maxScript))
	if err != nil {
		return err
	}
	return cron.ScanScript(string(text))
}

// interpreter returns the program for a script's extension; its first line is ignored.
func interpreter(path string) (string, error) {
	names := []string{"python3", "python"}
	if ext := filepath.Ext(path); ext == ".sh" || ext == ".bash" {
		names = []string{"bash", "/bin/bash"}
	}
	for _, name := range names {
		if found, err := exec.LookPath(name); err == nil {
			return filepath.Abs(found)
		}
	}
	return "", fmt.Errorf("%s is not installed here", names[0])
}

// Run runs a script to its end, in workdir where that is set, else in the folder of the scripts. Whatever goes wrong is
// in the result: the text begins with the word script.
func (s *Scripts) Run(ctx context.Context, name, workdir string) cron.ScriptRun {
	run := cron.ScriptRun{Name: name}
	out, err := s.run(ctx, name, workdir)
	run.Stdout = s.o.Redact(strings.TrimSpace(out))
	if err != nil {
		run.Err = s.o.Redact(fmt.Sprintf("script %s: %v", cron.Plain(name, 200), err))
	}
	return run
}

func (s *Scripts) run(ctx context.Context, name, workdir string) (stdout string, err error) {
	path, err := s.find(name)
	if err != nil {
		return "", err
	}
	if err := s.scan(path); err != nil {
		return "", err
	}
	program, err := interpreter(path)
	if err != nil {
		return "", err
	}
	local, err := s.place()
	if err != nil {
		return "", err
	}
	if workdir == "" {
		workdir = s.o.Dir
	}
	limit := s.o.Timeout()
	errs := &tail{limit: scriptErrors}
	r, err := local.Exec(ctx, sandbox.Command{Line: "exec " + shell.Quote(program) + " " + shell.Quote(path), Dir: workdir, Timeout: limit,
		Errors: errs})
	switch {
	case err != nil:
		return "", err
	case r.TimedOut:
		return r.Output, fmt.Errorf("it ran longer than %s and was ended", limit)
	case r.Interrupted:
		return r.Output, errors.New("it was ended because Herald stops")
	case r.ExitCode != 0:
		return r.Output, errors.New(strings.TrimSpace(fmt.Sprintf("exit code %d\n%s", r.ExitCode, errs.text())))
	}
	return r.Output, nil
}

// place returns the environment in which scripts run.
func (s *Scripts) place() (*local.Environment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.local != nil {
		return s.local, nil
	}
	local, err := local.New(local.Options{Dir: s.o.Dir, Deny: slices.Clone(s.o.Deny), Passthrough: s.o.Passthrough,
		Environ: s.o.Environ, Window: scriptWindow})
	if err != nil {
		return nil, err
	}
	s.local = local
	return local, nil
}

// tail keeps the last bytes of what is written to it, whole lines of it. A script's end may be told before the last write
// of what it has left running.
type tail struct {
	limit int
	mu    sync.Mutex
	kept  []byte
	cut   bool
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.limit; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
		t.cut = true
	}
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := string(t.kept)
	if _, rest, ok := strings.Cut(text, "\n"); t.cut && ok {
		text = rest
	}
	return strings.ToValidUTF8(strings.TrimSpace(text), "")
}
