package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"herald/tools/spill"
)

// call is one run of git. It sees nothing of the user's configuration and of the user's repository: the store's
// directory, the tree and the index are given, every other variable is left out.
type call struct {
	tree  string // the directory that pictures are taken of
	index string
	in    []byte
	slow  bool // twice the time
	env   []string
	args  []string
}

// gitError is a git call that failed.
type gitError struct {
	verb   string
	code   int
	stderr string
}

// Error names the call and the first line of what git said.
func (e *gitError) Error() string {
	line, _, _ := strings.Cut(strings.TrimSpace(e.stderr), "\n")
	return fmt.Sprintf("git %s ended with %d: %s", e.verb, e.code, line)
}

// run returns what git printed.
func (s *Store) run(ctx context.Context, c call) ([]byte, error) {
	s.o.Moment()
	defer s.o.Moment()
	limit := s.o.Timeout
	if c.slow {
		limit *= 2
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := s.command(ctx, c.args...)
	cmd.Env = append(cmd.Env, c.env...)
	if c.tree != "" {
		cmd.Env, cmd.Dir = append(cmd.Env, "GIT_WORK_TREE="+c.tree), c.tree
	}
	if c.index != "" {
		cmd.Env = append(cmd.Env, "GIT_INDEX_FILE="+c.index)
	}
	cmd.Stdin = bytes.NewReader(c.in)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := runBound(cmd)
	if ctx.Err() != nil {
		endGroup(cmd)
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("git %s: %w", c.args[0], context.Cause(ctx))
	case errors.As(err, &exit):
		return out.Bytes(), &gitError{c.args[0], exit.ExitCode(), said.String()}
	}
	return nil, fmt.Errorf("git %s: %w", c.args[0], err)
}

// command is a git process of the store. It leads a process group of its own, which is ended when ctx ends, with all that
// git started.
func (s *Store) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.git, args...)
	cmd.Env, cmd.Dir = s.env(), s.o.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if s.held != nil {
		cmd.ExtraFiles = []*os.File{s.held}
	}
	return cmd
}

// endGroup waits until all that a git process which was given up had started is gone: nobody writes to the store or reads
// the tree after an operation.
func endGroup(cmd *exec.Cmd) {
	if cmd.Process == nil {
		return
	}
	for range 200 {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
			return // there is none any more
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// env is all that a git process sees of the environment.
func (s *Store) env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + s.o.Dir, "XDG_CONFIG_HOME=" + s.o.Dir,
		"GIT_DIR=" + s.root, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=" + os.DevNull, "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0", "GIT_LITERAL_PATHSPECS=1", "GIT_ATTR_NOSYSTEM=1",
		"GIT_DEFAULT_HASH=sha1", "GIT_DEFAULT_REF_FORMAT=files"}
}

// line is run for an answer of one line.
func (s *Store) line(ctx context.Context, c call) (string, error) {
	out, err := s.run(ctx, c)
	return strings.TrimSpace(string(out)), err
}

// names splits an answer of -z.
func names(out []byte) []string {
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// excluded is what no checkpoint holds: what tools make again, secrets, and media that are large and rarely
// the agent's.
const excluded = `node_modules/
dist/
build/
target/
out/
.next/
.nuxt/
__pycache__/
*.pyc
*.pyo
.cache/
.pytest_cache/
.mypy_cache/
.ruff_cache/
coverage/
.coverage
.venv/
venv/
env/
.git/
.hg/
.svn/
.worktrees/
*.so
*.dylib
*.dll
*.o
*.a
*.jar
*.class
*.exe
*.obj
*.mp4
*.mov
*.mkv
*.webm
*.zip
*.tar
*.tar.gz
*.tgz
*.7z
*.rar
*.iso
.env
.env.*
.DS_Store
Thumbs.db
*.log
.herald-restore-*
`

// attributes switch off whatever a user's .gitattributes would do to the bytes of a file.
const attributes = "* -text -eol -filter -ident -working-tree-encoding\n"

// refOf reads a ref of the store, empty when there is none. Git's own answer costs a process.
func (s *Store) refOf(name string) (string, error) {
	data, err := os.ReadFile(filepath.Join(s.root, name))
	if err == nil {
		return strings.TrimSpace(string(data)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	packed, err := os.ReadFile(filepath.Join(s.root, "packed-refs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for line := range strings.Lines(string(packed)) {
		if hash, ok := strings.CutSuffix(strings.TrimSpace(line), " "+name); ok {
			return hash, nil
		}
	}
	return "", nil
}

// settings are the store's own configuration.
var settings = [][2]string{
	{"user.name", "Herald Checkpoint"}, {"user.email", "herald@local"}, {"commit.gpgSign", "false"}, {"gc.auto", "0"},
	{"core.hooksPath", os.DevNull}, {"core.autocrlf", "false"}, {"core.safecrlf", "false"}, {"core.fsmonitor", "false"},
	{"core.quotePath", "false"}, {"core.excludesFile", os.DevNull}, {"core.attributesFile", os.DevNull}, {"core.fileMode", "true"},
	{"core.symlinks", "true"}, {"core.ignoreCase", "false"}, {"core.precomposeUnicode", "false"}, {"core.bare", "false"},
	// Names that other systems take for .git are names like others here.
	{"core.protectNTFS", "false"}, {"core.protectHFS", "false"},
	{"core.logAllRefUpdates", "false"}, {"core.fsync", "committed,index"}, {"index.version", "4"}, {"core.untrackedCache", "false"},
}

// prepare makes the store when it is not there.
func (s *Store) prepare(ctx context.Context) error {
	if s.init {
		if _, err := os.Stat(filepath.Join(s.root, "HEAD")); err == nil {
			return nil
		}
	}
	if err := spill.EnsureDir(s.o.Dir, true); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(s.root, "HEAD")); errors.Is(err, fs.ErrNotExist) {
		if _, err := s.run(ctx, call{args: []string{"init", "-q", "--bare", s.root}}); err != nil {
			return err
		}
	}
	s.sweepLocks()
	var config strings.Builder
	config.WriteString("[core]\n\trepositoryformatversion = 0\n")
	for _, kv := range settings {
		section, name, _ := strings.Cut(kv[0], ".")
		fmt.Fprintf(&config, "[%s]\n\t%s = %q\n", section, name, kv[1])
	}
	for name, text := range map[string]string{"config": config.String(), "info/exclude": excluded, "info/attributes": attributes} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(s.root, name)), 0o700); err != nil {
			return err
		}
		if err := s.writeAtomic(filepath.Join(s.root, name), []byte(text)); err != nil {
			return err
		}
	}
	for _, dir := range []string{"indexes", "projects", "ledgers", "restores"} {
		if err := os.MkdirAll(filepath.Join(s.root, dir), 0o700); err != nil {
			return err
		}
	}
	s.init = true
	return nil
}

// sweepLocks removes git's own lock files: the store is ours alone, so they are those of a process that was killed.
func (s *Store) sweepLocks() {
	_ = filepath.WalkDir(s.root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case e.IsDir() && e.Name() == "objects":
			return fs.SkipDir
		case strings.HasSuffix(path, ".lock"):
			_ = os.Remove(path)
		}
		return nil
	})
}

// lockPath stands beside the base directory, so that clearing the base can't give two processes a lock each.
func (s *Store) lockPath() string {
	return filepath.Join(filepath.Dir(s.o.Dir), "."+filepath.Base(s.o.Dir)+".lock")
}

// lock takes the store's lock. The git processes inherit it: one that outlives a daemon that was killed keeps it until it
// has ended itself, so that the next daemon does not work beside it.
func (s *Store) lock(ctx context.Context, wait time.Duration) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(s.o.Dir), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(s.lockPath(), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", s.lockPath(), err)
	}
	if err := flock(ctx, f, wait); err != nil {
		_ = f.Close()
		return nil, err
	}
	s.held = f
	return func() {
		s.held = nil
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // a process that is just being made may still have the file open
		_ = f.Close()
	}, nil
}

// lockEvery is how often a lock that another process has is tried.
const lockEvery = 20 * time.Millisecond

func flock(ctx context.Context, f *os.File, wait time.Duration) error {
	over := time.NewTimer(max(wait, 0))
	defer over.Stop()
	again := time.NewTicker(lockEvery)
	defer again.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-over.C:
			return ErrBusy
		case <-again.C:
		}
	}
}

// writeAtomic replaces a file of the store, private, in one step and on disk.
func (s *Store) writeAtomic(path string, data []byte) error {
	s.o.Moment()
	defer s.o.Moment()
	tmp := path + ".new"
	f, err := spill.OpenExclusive(tmp, true, true)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
