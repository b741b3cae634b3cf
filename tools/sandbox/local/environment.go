// Package local is the environment on this machine: commands run as the user of the daemon, and whole process trees are
// killed. A background command has a supervisor, a small process of the daemon's own program that outlives the daemon, so
// that its output stays within bounds and its exit code is written down. The package knows no container and no other host.
package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"herald/tools/sandbox"
	"herald/tools/sandbox/execution"
	"herald/tools/sandbox/output"
	"herald/tools/sandbox/scratch"
	"herald/tools/sandbox/shell"
)

// unixAccessX is X_OK of access(2).
const unixAccessX = 1

// Options configure the environment on this machine. The zero value works: the process's directory,
// the user's home, no spill files.
type Options struct {
	// Dir is where sessions start, absolute; empty takes the working directory of the process.
	Dir string
	// Home is the home directory of commands, absolute; empty takes the user's.
	Home string
	// SpillDir is where outputs too long for a Result are stored; empty stores none.
	SpillDir string
	// Passthrough names variables that reach commands although they look like credentials. The daemon's
	// own are refused (see CheckPassthrough).
	Passthrough []string
	// Deny names variables that never reach commands: the profile's secrets.
	Deny []string
	// InitFiles are sourced once by the login shell whose state commands start from.
	InitFiles []string
	// Shell runs the commands: a name that is looked for on PATH or an absolute path, of a shell that speaks as
	// sh does. Empty takes bash where it is installed, else sh.
	Shell string
	// Supervisor is the program with its arguments that keeps the output of background commands: see SelfSupervisor.
	// Without one there are no background commands.
	Supervisor []string
	// JobDir is where background commands keep output and exit code, absolute. It survives restarts, so that Resume
	// finds them. Empty takes a directory that Close removes.
	JobDir string
	// JobLog is how many bytes of a background command's output are kept; older ones are dropped. 0 takes DefaultJobLog.
	JobLog int64
	// KeepJobs makes Close leave background commands running for the next daemon; without it Close ends them.
	KeepJobs bool
	// JobGrace is how long a background command has to end after TERM, before KILL; 0 takes a second.
	JobGrace time.Duration
	// Window is how many bytes of output a Result carries; 0 takes output.DefaultWindow.
	Window int
	// Environ, Getwd, LookPath and Now are the system, which tests replace; nil takes the real ones.
	Environ  func() []string
	Getwd    func() (string, error)
	LookPath func(name string) (string, error)
	Now      func() time.Time
}

// Environment runs commands on this machine as the user of the daemon. It is safe for concurrent use.
type Environment struct {
	files
	sessions *execution.Sessions
	opts     Options
	home     string
	pass     []string
	id       string // random, of this environment
	private  string // owner-only directory for the login snapshot
	killer   killer
	usable   func(dir string) error

	shellOnce sync.Mutex
	shell     *shell.Shell

	mu       sync.Mutex
	closed   bool
	count    int
	running  map[*process]struct{}
	jobs     map[*job]struct{}
	spills   output.Spills
	routines sync.WaitGroup
}

// New makes the environment. The shell is looked for by the first command.
func New(o Options) (*Environment, error) {
	if o.Environ == nil {
		o.Environ = os.Environ
	}
	if o.Getwd == nil {
		o.Getwd = os.Getwd
	}
	if o.LookPath == nil {
		o.LookPath = exec.LookPath
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Window <= 0 {
		o.Window = output.DefaultWindow
	}
	if o.JobLog <= 0 {
		o.JobLog = sandbox.DefaultJobLog
	}
	for name, p := range map[string]string{"Dir": o.Dir, "Home": o.Home, "SpillDir": o.SpillDir, "JobDir": o.JobDir} {
		if p != "" && !filepath.IsAbs(p) {
			return nil, fmt.Errorf("local sandbox: %s %q is not an absolute path", name, p)
		}
	}
	home := o.Home
	if home == "" {
		h, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("local sandbox: no home directory: %w; set HOME", err)
		}
		home = h
	}
	scratch.Sweep(o.Now())
	private, err := scratch.Make("")
	if err != nil {
		return nil, fmt.Errorf("local sandbox: %w", err)
	}
	allowed, _ := sandbox.CheckPassthrough(o.Passthrough)
	l := &Environment{
		opts: o, home: home, pass: allowed, id: sandbox.NewID(), private: private, killer: newKiller(),
		usable: usableDir, running: map[*process]struct{}{}, jobs: map[*job]struct{}{}, sessions: execution.NewSessions(),
	}
	l.spills = output.Spills{Dir: o.SpillDir, Now: o.Now}
	return l, nil
}

// Backend is "local".
func (l *Environment) Backend() string { return "local" }

// Home is the home directory of commands.
func (l *Environment) Home() string { return l.home }

// Forget drops the directory of a session.
func (l *Environment) Forget(session string) { l.sessions.Forget(session) }

// Dir returns where the session left off, or where a new one starts.
func (l *Environment) Dir(session string) (string, bool) {
	if dir, ok := l.sessions.Dir(session); ok {
		return dir, true
	}
	return l.defaultDir(), false
}

// defaultDir is the configured directory, or that of the process, or home.
func (l *Environment) defaultDir() string {
	if l.opts.Dir != "" {
		return l.opts.Dir
	}
	dir, err := SafeDir(l.opts.Getwd, "", l.home)
	if err != nil {
		return l.home
	}
	return dir
}

// dirFor decides where a command runs. note is for the reader when that is not where it was left.
func (l *Environment) dirFor(c sandbox.Command) (dir, note string, err error) {
	if c.Dir != "" {
		if !filepath.IsAbs(c.Dir) {
			return "", "", fmt.Errorf("directory %q is not an absolute path", c.Dir)
		}
		if err := l.usable(c.Dir); err != nil {
			return "", "", fmt.Errorf("directory %q can't be used: %w", c.Dir, err)
		}
		return c.Dir, "", nil
	}
	want, known := l.Dir(c.Session)
	if c.Session == "" || !known {
		if c.Start != "" {
			want = c.Start
		} else if l.opts.Dir == "" {
			if want, err = SafeDir(l.opts.Getwd, "", l.home); err != nil {
				return "", "", err
			}
		}
	}
	dir, moved, err := pickDir(l.usable, want, l.opts.Dir, l.home)
	if err != nil {
		return "", "", err
	}
	if moved {
		note = fmt.Sprintf("The directory %s is gone or closed to us; the command ran in %s.", want, dir)
	}
	return dir, note, nil
}

// usableDir returns nil for a directory that a process can enter.
func usableDir(dir string) error {
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return &os.PathError{Op: "enter", Path: dir, Err: syscall.ENOTDIR}
	}
	if err := syscall.Access(dir, unixAccessX); err != nil {
		return &os.PathError{Op: "enter", Path: dir, Err: err}
	}
	return nil
}

// theShell finds the shell once; a failure is tried again by the next command.
func (l *Environment) theShell(ctx context.Context) (shell.Shell, error) {
	l.shellOnce.Lock()
	defer l.shellOnce.Unlock()
	if l.shell != nil {
		return *l.shell, nil
	}
	s, err := l.findShell(ctx)
	if err != nil {
		return shell.Shell{}, err
	}
	l.shell = &s
	return s, nil
}

// Close kills the commands of Exec and, unless KeepJobs is set, the background commands, waits for them, and removes the
// login snapshot.
func (l *Environment) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	all, jobs := slices.Collect(maps.Keys(l.running)), slices.Collect(maps.Keys(l.jobs))
	l.mu.Unlock()
	var wg sync.WaitGroup
	for _, p := range all {
		wg.Go(func() { p.kill(l.killer) })
	}
	for _, j := range jobs {
		if l.opts.KeepJobs {
			j.leave()
		} else {
			wg.Go(func() { j.kill(l.jobKiller()) })
		}
	}
	wg.Wait()
	l.routines.Wait()
	if err := os.RemoveAll(l.private); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("local sandbox: %w", err)
	}
	return nil
}
