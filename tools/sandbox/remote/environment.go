// Package remote is an environment over a carrier, which runs programs on a machine or in a container that is not this one: shell, files,
// background commands and kills by short POSIX scripts that run there. The other side needs sh and what busybox has. The package
// doesn't know what carries: containers and hosts behind SSH are its users.
package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"herald/tools/sandbox"
	"herald/tools/sandbox/execution"
	"herald/tools/sandbox/output"
	"herald/tools/sandbox/shell"
)

// Options configure an environment over a carrier. The zero value works: sessions start at home, nothing is
// stored of long outputs.
type Options struct {
	// Dir is where sessions start: absolute, "~", or "~/" and a path below home. Empty takes home.
	Dir string
	// SpillDir is where on this machine outputs too long for a Result are stored; empty stores none.
	SpillDir string
	// Window is how many bytes of output a Result carries; 0 takes output.DefaultWindow.
	Window int
	// Passthrough and Deny name variables of the other side's login shell that reach commands although they look like
	// credentials, and that never do.
	Passthrough, Deny []string
	// InitFiles are sourced once by the login shell whose state commands start from.
	InitFiles []string
	// Env returns variables that every command gets, as they are now; nil adds none.
	Env func() map[string]string
	// KeepJobs makes Close leave background commands running; without it Close ends them.
	KeepJobs bool
	// JobLog is how many bytes of a background command's output are kept on the other side, at least the newest half of
	// them; 0 takes DefaultJobLog.
	JobLog int64
	// JobGrace is how long a background command has to end after TERM, before KILL; 0 takes a second.
	JobGrace time.Duration
	// Now is the clock, which tests replace; nil takes the real one.
	Now func() time.Time
}

// Environment is an Environment over a carrier: a shell, files and kills by short POSIX scripts that run on the other side. It
// needs sh there and what busybox has; with bash commands get the state of a login shell. It is safe for concurrent
// use.
type Environment struct {
	sessions *execution.Sessions
	carrier  Carrier
	opts     Options
	id       string // random, of this environment
	killer   killer
	spills   output.Spills

	turn    chan struct{} // holds a token while nobody looks at the other side
	setting *setting      // under turn

	mu       sync.Mutex
	closed   bool // no command begins any more
	drained  bool // no goroutine begins any more
	count    int
	known    *setting // the last setting, for those who can't wait
	running  map[*command]struct{}
	jobs     map[*job]struct{}
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	routines sync.WaitGroup
}

// setting is what is known about the other side.
type setting struct {
	home    string // absolute
	private string // absolute directory that only the user may enter; empty when none could be made
	shell   shell.Shell
}

// New makes the environment. Nothing is run before the first command.
func New(c Carrier, o Options) *Environment {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Window <= 0 {
		o.Window = output.DefaultWindow
	}
	if o.JobLog <= 0 {
		o.JobLog = sandbox.DefaultJobLog
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Environment{
		sessions: execution.NewSessions(), carrier: c, opts: o, id: sandbox.NewID(), killer: killer{table: tableScript},
		turn: make(chan struct{}, 1), running: map[*command]struct{}{}, jobs: map[*job]struct{}{}, ctx: ctx, cancel: cancel,
	}
	r.spills = output.Spills{Dir: o.SpillDir, Now: o.Now}
	r.turn <- struct{}{}
	return r
}

// Backend names the kind of the environment.
func (r *Environment) Backend() string { return r.carrier.Backend() }

// homeTimeout bounds how long Home and Dir wait for another side that was not looked at yet.
const homeTimeout = 15 * time.Second

// Home is the home directory of commands, or "/" when the other side can't be asked.
func (r *Environment) Home() string {
	r.mu.Lock()
	known := r.known
	r.mu.Unlock()
	if known == nil {
		ctx, cancel := context.WithTimeout(r.ctx, homeTimeout)
		defer cancel()
		var err error
		if known, err = r.look(ctx); err != nil {
			return "/"
		}
	}
	return known.home
}

// Forget drops the directory of a session.
func (r *Environment) Forget(session string) { r.sessions.Forget(session) }

// Dir returns where the session left off, or where a new one starts.
func (r *Environment) Dir(session string) (string, bool) {
	if dir, ok := r.sessions.Dir(session); ok {
		return dir, true
	}
	return r.startDir(), false
}

// left is Dir as far as it is known without asking the other side.
func (r *Environment) left(session string) (string, bool) {
	dir, ok := r.sessions.Dir(session)
	if ok {
		return dir, true
	}
	r.mu.Lock()
	known := r.known
	r.mu.Unlock()
	if known == nil && !path.IsAbs(r.opts.Dir) {
		return "", false
	}
	return r.startDir(), false
}

// startDir is the configured directory, or home.
func (r *Environment) startDir() string {
	switch {
	case path.IsAbs(r.opts.Dir):
		return r.opts.Dir
	case strings.HasPrefix(r.opts.Dir, "~/"):
		return path.Join(r.Home(), r.opts.Dir[2:])
	default:
		return r.Home()
	}
}

// Exec implements Environment. An error that wraps ErrStarted means that the connection was lost while the command
// ran; the Result then has its output so far.
func (r *Environment) Exec(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	return execution.Run(ctx, execution.Host{Begin: r.begin, Left: r.left, Remember: r.sessions.Remember}, c,
		output.NewWindow(r.opts.Window, r.spills.Open))
}

// Busy reports whether a command of Exec runs.
func (r *Environment) Busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.running) > 0
}

// Reset forgets what is known about the other side, after it was replaced by another one. Directories of sessions are
// kept; a command finds out by itself when its directory is gone.
func (r *Environment) Reset() {
	<-r.turn
	r.setting = nil
	r.turn <- struct{}{}
	r.mu.Lock()
	r.known = nil
	r.mu.Unlock()
}

// look finds out about the other side once; a failure is tried again by the next command.
func (r *Environment) look(ctx context.Context) (*setting, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	select {
	case <-r.turn:
		defer func() { r.turn <- struct{}{} }()
	case <-ctx.Done():
	}
	switch {
	case r.ctx.Err() != nil:
		return nil, sandbox.ErrClosed
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	if r.setting != nil {
		return r.setting, nil
	}
	s, err := r.survey(ctx)
	if err != nil {
		return nil, err
	}
	r.setting = s
	r.mu.Lock()
	r.known = s
	r.mu.Unlock()
	return s, nil
}

// surveyScript reports the home directory, an owner-only directory, and bash, each followed by the cut. The private
// directory has the same name for every daemon of the user, so that it is found again; somebody else's, or a link in
// its place, is not taken. Snapshots of daemons that were killed go after a week; one that is still wanted is made again.
const surveyScript = `cut=$1
uid=$(id -u) || exit 9
home=${HOME:-}
[ -n "$home" ] || home=$(cd ~ 2>/dev/null && pwd)
private=
for base in "${TMPDIR:-}" /tmp /var/tmp /dev/shm "$home"; do
	[ -n "$base" ] && [ -d "$base" ] && [ -w "$base" ] || continue
	dir=${base%/}/.herald-$uid
	mkdir -m 700 -- "$dir" 2>/dev/null
	if [ -d "$dir" ] && [ ! -L "$dir" ] && [ -O "$dir" ] && chmod 700 -- "$dir" 2>/dev/null; then
		private=$dir
		find "$private" -name 'shell-*.sh' -mtime +7 -exec rm -f -- {} \; 2>/dev/null
		break
	fi
done
printf '%s%s%s%s%s%s' "${home:-/}" "$cut" "$private" "$cut" "$(command -v bash)" "$cut"
`

// survey looks at the other side: its directories, and how commands can be run there. With bash it captures what a login
// shell makes of the environment; when that fails each command gets a login shell, or a plain bash where login shells
// do not work at all. Without bash it is sh.
func (r *Environment) survey(ctx context.Context) (*setting, error) {
	cut := shell.NewCut(r.id)
	out, err := r.probe(ctx, []string{"sh", "-c", surveyScript, "sh", cut})
	if err != nil {
		return nil, err
	}
	parts := bytes.Split(out, []byte(cut))
	if len(parts) != 4 || !path.IsAbs(string(parts[0])) {
		return nil, fmt.Errorf("%w: sh runs in the %s environment, but does not report a home directory", sandbox.ErrUnavailable, r.Backend())
	}
	s := &setting{home: path.Clean(string(parts[0])), private: string(parts[1]), shell: shell.Shell{Argv: []string{"sh", "-c"}}}
	if bash := string(parts[2]); path.IsAbs(bash) {
		s.shell, err = r.bash(ctx, bash, s.private)
	}
	return s, err
}

// bash finds the best way to run bash.
func (r *Environment) bash(ctx context.Context, bash, private string) (shell.Shell, error) {
	if s, err := r.snapshot(ctx, bash, private); err == nil {
		return s, nil
	}
	for _, argv := range [][]string{{bash, "-l", "-c"}, {bash, "-c"}} {
		if _, err := r.probe(ctx, append(argv[:len(argv):len(argv)], "true")); err == nil {
			return shell.Shell{Argv: argv}, nil
		} else if ctx.Err() != nil || errors.Is(err, ErrVanished) {
			return shell.Shell{}, err
		}
	}
	return shell.Shell{}, fmt.Errorf("%w: %s of the %s environment does not run", sandbox.ErrUnavailable, bash, r.Backend())
}

// snapshot runs the start files of a login shell once and stores its functions and aliases in the private directory.
func (r *Environment) snapshot(ctx context.Context, bash, private string) (shell.Shell, error) {
	if private == "" {
		return shell.Shell{}, errors.New("no private directory for the snapshot")
	}
	cut := shell.NewCut(r.id)
	out, err := r.probe(ctx, []string{bash, "-l", "-c", shell.SnapshotScript(cut, r.opts.InitFiles)})
	if err != nil {
		return shell.Shell{}, err
	}
	vars, functions, err := shell.ParseSnapshot(out, cut, r.opts.Passthrough, r.opts.Deny)
	if err != nil {
		return shell.Shell{}, err
	}
	maps.DeleteFunc(vars, func(name, _ string) bool { return !shell.Exportable(name) })
	file := path.Join(private, "shell-"+r.id+".sh")
	if err := r.WriteFile(ctx, file, functions, 0o600); err != nil {
		return shell.Shell{}, err
	}
	return shell.Shell{Argv: []string{bash, "-c"}, Env: vars, Source: file}, nil
}

// probe runs a short program of ours and returns its output. The processes it started do not outlive it.
func (r *Environment) probe(ctx context.Context, argv []string) ([]byte, error) {
	short, cancel := context.WithTimeout(ctx, shell.SnapshotTimeout)
	defer cancel()
	var out, errs output.Tail
	mark := sandbox.NewID()
	code, err := r.carrier.Run(short, argv, Streams{Out: &out, Err: &errs, Env: map[string]string{shell.MarkName: mark}})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case short.Err() != nil:
		r.spawn(func() { r.killer.kill(r.ctx, r.carrier, 0, 0, mark) })
		return nil, fmt.Errorf("%w: %s does not end within %s", sandbox.ErrUnavailable, argv[0], shell.SnapshotTimeout)
	case err != nil:
		return nil, err
	case code != 0:
		return nil, fmt.Errorf("%w: %s ended with code %d: %s", sandbox.ErrUnavailable, argv[0], code, errs.Line())
	}
	return out.Bytes(), nil
}

// Close kills the commands of Exec and, unless KeepJobs is set, the background commands, waits for them, removes the login
// snapshot and closes the carrier.
func (r *Environment) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	running, jobs := slices.Collect(maps.Keys(r.running)), slices.Collect(maps.Keys(r.jobs))
	known := r.known
	r.mu.Unlock()
	var ends []<-chan struct{}
	for _, p := range running {
		ends = append(ends, p.End())
	}
	for _, j := range jobs {
		if !r.opts.KeepJobs && r.spawn(j.kill) {
			ends = append(ends, j.killed)
		}
	}
	for _, end := range ends {
		<-end
	}
	for _, j := range jobs {
		if !r.opts.KeepJobs {
			execution.Within(pollLate, j.done)
		}
		j.leave()
	}
	if known != nil && known.shell.Source != "" {
		ctx, cancel := context.WithTimeout(r.ctx, execution.Backstop)
		_ = r.Remove(ctx, known.shell.Source) // the other side may be gone
		cancel()
	}
	r.mu.Lock()
	r.drained = true
	r.mu.Unlock()
	r.cancel()
	r.routines.Wait()
	return r.carrier.Close()
}

// spawn starts a goroutine that Close waits for. After Close it reports false.
func (r *Environment) spawn(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.drained {
		return false
	}
	r.routines.Go(f)
	return true
}
