package sandbox

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
)

// remoteOptions configure an environment over a carrier. The zero value works: sessions start at home, nothing is
// stored of long outputs.
type remoteOptions struct {
	// Dir is where sessions start: absolute, "~", or "~/" and a path below home. Empty takes home.
	Dir string
	// SpillDir is where on this machine outputs too long for a Result are stored; empty stores none.
	SpillDir string
	// Window is how many bytes of output a Result carries; 0 takes DefaultWindow.
	Window int
	// Passthrough and Deny name variables of the place's login shell that reach commands although they look like
	// credentials, and that never do.
	Passthrough, Deny []string
	// InitFiles are sourced once by the login shell whose state commands start from.
	InitFiles []string
	// Env returns variables that every command gets, as they are now; nil adds none.
	Env func() map[string]string
	// KeepJobs makes Close leave background commands running; without it Close ends them.
	KeepJobs bool
	// JobLog is how many bytes of a background command's output are kept in the place, at least the newest half of
	// them; 0 takes DefaultJobLog.
	JobLog int64
	// JobGrace is how long a background command has to end after TERM, before KILL; 0 takes a second.
	JobGrace time.Duration
	// Now stands in for the clock in tests; nil takes the real one.
	Now func() time.Time
}

// remote is an Environment over a carrier: a shell, files and kills by short POSIX scripts that run in the place. It
// needs sh there and what busybox has; with bash commands get the state of a login shell. It is safe for concurrent
// use.
type remote struct {
	sessions *sessions
	carrier  carrier
	opts     remoteOptions
	id       string // random, of this environment
	killer   remoteKiller
	spills   spills

	turn    chan struct{} // holds a token while nobody looks at the place
	setting *setting      // under turn

	mu       sync.Mutex
	closed   bool // no command begins any more
	drained  bool // no goroutine begins any more
	count    int
	known    *setting // the last setting, for those who can't wait
	running  map[*remoteCommand]struct{}
	jobs     map[*remoteJob]struct{}
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	routines sync.WaitGroup
}

// setting is what is known about the place.
type setting struct {
	home    string // absolute
	private string // absolute directory that only the user may enter; empty when none could be made
	shell   shell
}

// newRemote makes the environment. Nothing is run before the first command.
func newRemote(c carrier, o remoteOptions) *remote {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Window <= 0 {
		o.Window = DefaultWindow
	}
	if o.JobLog <= 0 {
		o.JobLog = DefaultJobLog
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &remote{
		sessions: newSessions(), carrier: c, opts: o, id: randomID(), killer: remoteKiller{table: tableScript},
		turn: make(chan struct{}, 1), running: map[*remoteCommand]struct{}{}, jobs: map[*remoteJob]struct{}{}, ctx: ctx, cancel: cancel,
	}
	r.spills = spills{dir: o.SpillDir, now: o.Now}
	r.turn <- struct{}{}
	return r
}

// Backend names the kind of the place.
func (r *remote) Backend() string { return r.carrier.backend() }

// homeTimeout bounds how long Home and Dir wait for a place that was not looked at yet.
const homeTimeout = 15 * time.Second

// Home is the home directory of commands, or "/" when the place can't be asked.
func (r *remote) Home() string {
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
func (r *remote) Forget(session string) { r.sessions.Forget(session) }

// Dir returns where the session left off, or where a new one starts.
func (r *remote) Dir(session string) (string, bool) {
	if dir, ok := r.sessions.dir(session); ok {
		return dir, true
	}
	return r.startDir(), false
}

// left is Dir as far as it is known without asking the place.
func (r *remote) left(session string) (string, bool) {
	dir, ok := r.sessions.dir(session)
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
func (r *remote) startDir() string {
	switch {
	case path.IsAbs(r.opts.Dir):
		return r.opts.Dir
	case strings.HasPrefix(r.opts.Dir, "~/"):
		return path.Join(r.Home(), r.opts.Dir[2:])
	default:
		return r.Home()
	}
}

// Exec implements Environment. An error that wraps errStarted means that the connection was lost while the command
// ran; the Result then has its output so far.
func (r *remote) Exec(ctx context.Context, c Command) (Result, error) {
	return execute(ctx, host{begin: r.begin, left: r.left, remember: r.sessions.remember}, c, newWindow(r.opts.Window, r.spills.open))
}

// Busy reports whether a command of Exec runs.
func (r *remote) Busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.running) > 0
}

// reset forgets what is known about the place, after it was replaced by another one. Directories of sessions are
// kept; a command finds out by itself when its directory is gone.
func (r *remote) reset() {
	<-r.turn
	r.setting = nil
	r.turn <- struct{}{}
	r.mu.Lock()
	r.known = nil
	r.mu.Unlock()
}

// look finds out about the place once; a failure is tried again by the next command.
func (r *remote) look(ctx context.Context) (*setting, error) {
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
		return nil, errClosed
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
// its place, is not taken. Snapshots of daemons that were killed go after a week; one that is still wanted is made anew.
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

// survey looks at the place: its directories, and how commands can be run there. With bash it captures what a login
// shell makes of the environment; when that fails each command gets a login shell, or a plain bash where login shells
// do not work at all. Without bash it is sh.
func (r *remote) survey(ctx context.Context) (*setting, error) {
	cut := newCut(r.id)
	out, err := r.probe(ctx, []string{"sh", "-c", surveyScript, "sh", cut})
	if err != nil {
		return nil, err
	}
	parts := bytes.Split(out, []byte(cut))
	if len(parts) != 4 || !path.IsAbs(string(parts[0])) {
		return nil, fmt.Errorf("%w: sh runs in the %s place, but does not report a home directory", ErrUnavailable, r.Backend())
	}
	s := &setting{home: path.Clean(string(parts[0])), private: string(parts[1]), shell: shell{argv: []string{"sh", "-c"}}}
	if bash := string(parts[2]); path.IsAbs(bash) {
		s.shell, err = r.bash(ctx, bash, s.private)
	}
	return s, err
}

// bash finds the best way to run bash.
func (r *remote) bash(ctx context.Context, bash, private string) (shell, error) {
	if s, err := r.snapshot(ctx, bash, private); err == nil {
		return s, nil
	}
	for _, argv := range [][]string{{bash, "-l", "-c"}, {bash, "-c"}} {
		if _, err := r.probe(ctx, append(argv[:len(argv):len(argv)], "true")); err == nil {
			return shell{argv: argv}, nil
		} else if ctx.Err() != nil || errors.Is(err, errVanished) {
			return shell{}, err
		}
	}
	return shell{}, fmt.Errorf("%w: %s of the %s place does not run", ErrUnavailable, bash, r.Backend())
}

// snapshot runs the start files of a login shell once and stores its functions and aliases in the private directory.
func (r *remote) snapshot(ctx context.Context, bash, private string) (shell, error) {
	if private == "" {
		return shell{}, errors.New("no private directory for the snapshot")
	}
	cut := newCut(r.id)
	out, err := r.probe(ctx, []string{bash, "-l", "-c", snapshotScript(cut, r.opts.InitFiles)})
	if err != nil {
		return shell{}, err
	}
	vars, functions, err := parseSnapshot(out, cut, r.opts.Passthrough, r.opts.Deny)
	if err != nil {
		return shell{}, err
	}
	maps.DeleteFunc(vars, func(name, _ string) bool { return !variable.MatchString(name) })
	file := path.Join(private, "shell-"+r.id+".sh")
	if err := r.WriteFile(ctx, file, functions, 0o600); err != nil {
		return shell{}, err
	}
	return shell{argv: []string{bash, "-c"}, env: vars, source: file}, nil
}

// probe runs a short program of ours and returns its output. The processes it started do not outlive it.
func (r *remote) probe(ctx context.Context, argv []string) ([]byte, error) {
	short, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	var out, errs tail
	mark := randomID()
	code, err := r.carrier.run(short, argv, streams{out: &out, err: &errs, env: map[string]string{markName: mark}})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case short.Err() != nil:
		r.spawn(func() { r.killer.kill(r.ctx, r.carrier, 0, 0, mark) })
		return nil, fmt.Errorf("%w: %s does not end within %s", ErrUnavailable, argv[0], snapshotTimeout)
	case err != nil:
		return nil, err
	case code != 0:
		return nil, fmt.Errorf("%w: %s ended with code %d: %s", ErrUnavailable, argv[0], code, errs.line())
	}
	return out.b, nil
}

// Close kills the commands of Exec and, unless KeepJobs is set, the background commands, waits for them, removes the login
// snapshot and closes the carrier.
func (r *remote) Close() error {
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
		ends = append(ends, p.end())
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
			within(pollLate, j.done)
		}
		j.leave()
	}
	if known != nil && known.shell.source != "" {
		ctx, cancel := context.WithTimeout(r.ctx, backstop)
		_ = r.Remove(ctx, known.shell.source) // the place may be gone
		cancel()
	}
	r.mu.Lock()
	r.drained = true
	r.mu.Unlock()
	r.cancel()
	r.routines.Wait()
	return r.carrier.close()
}

// spawn starts a goroutine that Close waits for. After Close it reports false.
func (r *remote) spawn(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.drained {
		return false
	}
	r.routines.Go(f)
	return true
}
