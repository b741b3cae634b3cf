package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"herald/tools/sandbox"
	"herald/tools/sandbox/execution"
	"herald/tools/sandbox/output"
	"herald/tools/sandbox/shell"
)

// ErrStarted is wrapped beside ErrUnavailable or ErrVanished when the connection was lost while a command ran: it may
// have had an effect and must not be run again by itself.
var ErrStarted = errors.New("the command had started; how it ended is not known")

// startGrace is how long a kill waits for the report of a command that is just being started.
const startGrace = 10 * time.Second

// wrapHead and wrapTail surround the reports of one command in the script that runs its shell on the other side. Its
// arguments: the wanted directory; "strict" when no other will do; the configured directory; home; the snapshot, if
// any; then the program of the shell with its arguments. It reports process id, start time and directory before the
// command begins, and the exit code when the shell has ended, whoever else still holds the pipe. It outlives a TERM
// of its group, so that it still reports then. Where the snapshot is gone bash becomes a login shell.
const (
	wrapHead = `want=$1 strict=$2 configured=$3 home=$4 snapshot=$5
shift 5
exec 2>/dev/null
unset BASH_ENV ENV
[ -n "${PATH:-}" ] || PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
: "${TERM:=dumb}" "${HOME:=$home}"
export PATH TERM HOME
SHLVL=1 # or bash takes itself for the first shell of an SSH session and reads .bashrc
export SHLVL
born() {
	s= l=
	{ while IFS= read -r l || [ -n "$l" ]; do s="$s$l "; done </proc/$$/stat; } 2>/dev/null
	set -- ${s##*) }
	[ $# -ge 20 ] || return 0
	shift 19
	start=$1
}
enter() {
	status=ok
	for dir in "$want" "$configured" "$home"; do
		[ -n "$dir" ] || continue
		if [ -d "$dir" ] && cd "$dir"; then
			[ "$dir" = "$want" ] || status=moved
			return
		fi
		if [ -d "$dir" ]; then status=closed; elif [ -e "$dir" ]; then status=nodir; else status=gone; fi
		if [ $status = nodir ] || [ -n "$strict" ]; then return; fi
	done
}
start=0 lost=
born
enter
if [ -n "$snapshot" ] && ! [ -f "$snapshot" ]; then
	lost=lost bash=$1
	shift
	set -- "$bash" -l "$@"
fi
`
	startWord = `"$$:$start:$status:$lost:$dir"`
	wrapTail  = `
case $status in ok | moved) ;; *) exit 0 ;; esac
trap : TERM HUP INT
(exec "$@" 2>&1)
code=$?
`
	endWord = `"$code"`
)

// command is a command that runs on the other side. The carrier writes its output to take.
type command struct {
	r        *Environment
	c        sandbox.Command
	win      *output.Window
	want     string
	mark     string             // the value of shell.MarkName
	cancel   context.CancelFunc // drops the connection
	started  chan struct{}      // closed at the report of the start
	reported chan struct{}      // closed at the report of the end
	done     chan struct{}
	once     sync.Once
	killed   chan struct{}
	errs     output.Tail // what was said beside the output, by the carrier's own programs

	mu                  sync.Mutex
	start, where, ended *shell.Marker
	dec                 output.Decoder
	closed              bool // what comes is dropped
	pid                 int
	startTime           uint64
	dir, note           string
	code                int
	err                 error
}

// begin starts a command for Exec.
func (r *Environment) begin(ctx context.Context, c sandbox.Command, win *output.Window) (execution.Running, error) {
	p, s, err := r.newCommand(ctx, c, win)
	if err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel = cancel
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		cancel()
		return nil, sandbox.ErrClosed
	}
	r.running[p] = struct{}{}
	r.routines.Go(func() { p.attend(run, s) })
	return p, nil
}

// newCommand checks a command and readies what reads its reports.
func (r *Environment) newCommand(ctx context.Context, c sandbox.Command, win *output.Window) (*command, *setting, error) {
	if c.Errors != nil {
		return nil, nil, fmt.Errorf("the %s environment can't tell a command's errors from its output", r.Backend())
	}
	if err := execution.CheckLine(c.Line); err != nil {
		return nil, nil, err
	}
	if c.Dir != "" && !path.IsAbs(c.Dir) {
		return nil, nil, fmt.Errorf("directory %q is not an absolute path", c.Dir)
	}
	s, err := r.look(ctx)
	if err != nil {
		return nil, nil, err
	}
	p := &command{
		r: r, c: c, win: win, want: r.wantedDir(c), mark: sandbox.NewID(), started: make(chan struct{}), reported: make(chan struct{}),
		done: make(chan struct{}), killed: make(chan struct{}),
	}
	r.mu.Lock()
	r.count++
	id := fmt.Sprintf("%s-%d", r.id, r.count)
	r.mu.Unlock()
	p.start, p.where, p.ended = shell.NewReport("START", id), shell.NewMarker(id), shell.NewReport("END", id)
	return p, s, nil
}

// wantedDir is where a command should run.
func (r *Environment) wantedDir(c sandbox.Command) string {
	if c.Dir != "" {
		return c.Dir
	}
	dir, known := r.Dir(c.Session)
	if (c.Session == "" || !known) && c.Start != "" {
		return c.Start
	}
	return dir
}

// argv is the program that runs the command.
func (p *command) argv(s *setting) []string {
	return scriptArgs(wrapHead+p.start.Print(startWord)+wrapTail+p.ended.Print(endWord)+"\nexit 0\n", p.args(s, p.where))
}

// args are the arguments of wrapHead. where is nil when nobody asks for the directory afterwards.
func (p *command) args(s *setting, where *shell.Marker) []string {
	strict := ""
	if p.c.Dir != "" {
		strict = "strict"
	}
	args := []string{p.want, strict, p.r.startDir(), s.home, s.shell.Source, s.shell.Argv[0]}
	return append(args, s.shell.Args(p.c.Line, where)...)
}

// env are the variables of the command.
func (p *command) env(s *setting) map[string]string {
	env := maps.Clone(s.shell.Env)
	if env == nil {
		env = map[string]string{}
	}
	if p.r.opts.Env != nil {
		maps.Copy(env, p.r.opts.Env())
	}
	maps.Copy(env, p.c.Env)
	env[shell.MarkName] = p.mark
	return env
}

// attend owns a command from its start to its end.
func (p *command) attend(ctx context.Context, s *setting) {
	type end struct {
		code int
		err  error
	}
	over := make(chan end, 1)
	p.r.spawn(func() {
		code, err := p.r.carrier.Run(ctx, p.argv(s), Streams{In: p.c.Stdin, Out: sink(p.take), Err: &p.errs, Env: p.env(s)})
		over <- end{code, err}
	})
	select {
	case e := <-over:
		p.judge(e.code, e.err)
	case <-p.reported:
		// Whoever still holds the pipe must not hold us.
		if _, ok := execution.Within(execution.DrainTime, over); !ok {
			p.cancel()
			execution.Within(execution.Backstop, over)
		}
	}
	p.cancel()
	p.close()
	p.r.mu.Lock()
	delete(p.r.running, p)
	p.r.mu.Unlock()
	close(p.done)
}

// judge takes the end of the connection as that of the command when the wrapper did not report it.
func (p *command) judge(code int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	started := p.start.Seen
	switch {
	case p.ended.Seen || p.err != nil:
	case err != nil && started:
		p.err = fmt.Errorf("%w: %w", err, ErrStarted)
	case err != nil:
		p.err = err
	case !started:
		p.err = fmt.Errorf("%w: sh did not run in the %s environment (code %d): %s", sandbox.ErrUnavailable, p.r.Backend(), code, p.errs.Line())
	default:
		p.code = code // a signal ended the wrapper
	}
}

// sink is a function as a writer.
type sink func(b []byte) (int, error)

func (s sink) Write(b []byte) (int, error) { return s(b) }

// take receives output of the other side: it takes out the reports and passes on the rest.
func (p *command) take(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return len(b), nil
	}
	text, began := observe(p.start, b)
	if began {
		p.onStart(p.start.Value)
		close(p.started)
	}
	// The end comes last and must not wait for a filter that takes its last byte for a beginning.
	text, ended := observe(p.ended, text)
	text, _ = observe(p.where, text)
	if ended {
		p.code, _ = strconv.Atoi(p.ended.Value)
	}
	p.pass(p.dec.Decode(text))
	if ended {
		close(p.reported)
	}
	return len(b), nil
}

// observe filters b and tells whether the report is complete since now.
func observe(m *shell.Marker, b []byte) (text []byte, now bool) {
	before := m.Seen
	text = m.Filter(b)
	return text, m.Seen && !before
}

// close passes on what was held back and drops what may still come.
func (p *command) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.start.Flush()
	for _, m := range []*shell.Marker{p.ended, p.where} {
		text = append(append([]byte(nil), m.Filter(text)...), m.Flush()...)
	}
	p.pass(p.dec.Decode(text))
	p.pass(p.dec.Flush())
	p.closed = true
	if p.win != nil {
		p.win.Close()
	}
}

func (p *command) pass(text []byte) {
	if len(text) == 0 {
		return
	}
	if p.win != nil {
		_, _ = p.win.Write(text)
	}
	if p.c.Output != nil {
		_, _ = p.c.Output.Write(text)
	}
}

// onStart reads the report of the start, see startWord.
func (p *command) onStart(report string) {
	f := strings.SplitN(report, ":", 5)
	if len(f) != 5 {
		return
	}
	p.pid, _ = strconv.Atoi(f[0])
	p.startTime, _ = strconv.ParseUint(f[1], 10, 64)
	if f[3] != "" {
		p.r.spawn(p.r.Reset) // the next command makes a new snapshot
	}
	dir := f[4]
	switch f[2] {
	case "ok":
		p.dir = dir
	case "moved":
		p.dir, p.note = dir, movedNote(p.want, dir)
	case "gone":
		p.err = p.dirError(dir, fs.ErrNotExist)
	case "closed":
		p.err = p.dirError(dir, fs.ErrPermission)
	case "store":
		p.err = errors.New("the directory of the background command can't be written")
	default:
		p.err = p.dirError(dir, syscall.ENOTDIR)
	}
}

// movedNote tells the reader of a result that a command ran elsewhere.
func movedNote(want, dir string) string {
	return fmt.Sprintf("The directory %s is gone or closed to us; the command ran in %s.", want, dir)
}

func (p *command) dirError(dir string, why error) error {
	if p.c.Dir != "" {
		return fmt.Errorf("directory %q can't be used: %w", dir, why)
	}
	return fmt.Errorf("working directory %q: %w", dir, why)
}

// Finished implements execution.Running.
func (p *command) Finished() <-chan struct{} { return p.done }

// Outcome implements execution.Running.
func (p *command) Outcome() execution.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	return execution.Outcome{Code: p.code, Dir: p.where.Value, Err: p.err}
}

// Where implements execution.Running.
func (p *command) Where() (dir, note string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dir, p.note
}

// End implements execution.Running.
func (p *command) End() <-chan struct{} {
	if !p.r.spawn(p.kill) {
		p.once.Do(func() { close(p.killed) })
	}
	return p.killed
}

// kill ends the command on the other side, once, and then the connection. A command that is just being started is killed
// as soon as it says who it is, so that it can't begin after its kill.
func (p *command) kill() {
	p.once.Do(func() {
		defer close(p.killed)
		t := time.NewTimer(startGrace)
		defer t.Stop()
		select {
		case <-p.done:
			return
		case <-p.started:
		case <-t.C:
			p.cancel()
		}
		p.mu.Lock()
		pid, start := p.pid, p.startTime
		p.mu.Unlock()
		p.r.killer.kill(p.r.ctx, p.r.carrier, pid, start, p.mark)
		execution.Within(execution.DrainTime, p.done)
		p.cancel()
	})
}
