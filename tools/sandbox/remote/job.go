package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"herald/tools/sandbox"
	"herald/tools/sandbox/execution"
	"herald/tools/sandbox/output"
)

const (
	// pollSoon and pollLate are the pauses between looks at a background command elsewhere: short at first
	// and while it prints, then longer.
	pollSoon = 200 * time.Millisecond
	pollLate = 2 * time.Second
	// pollLost is the pause while the other side is out of reach.
	pollLost = 15 * time.Second
	// pollTimeout bounds one look.
	pollTimeout = 60 * time.Second
	// inputChunk is how many bytes of input go into one line: with its escapes a pipe takes it in one piece.
	inputChunk = 700
)

// job is a background command on the other side. One goroutine polls it.
type job struct {
	r       *Environment
	id, dir string
	mark    string
	input   bool
	pid     int
	start   uint64
	code    int // valid after done
	done    chan struct{}
	once    sync.Once
	dying   atomic.Bool
	killed  chan struct{}
	nudge   chan struct{}   // wakes the poll
	ctx     context.Context // ends when the environment is closed and leaves it running
	leave   context.CancelFunc

	writing sync.Mutex // one writer at a time
	mu      sync.Mutex
	offset  int64 // bytes of the output that went to the sink
	closed  bool  // the input
}

// Start implements Environment. The command runs in a directory of its own on the other side; its connection is dropped when
// it has begun.
func (r *Environment) Start(ctx context.Context, c sandbox.Command) (sandbox.Process, error) {
	if c.TTY != nil {
		return nil, fmt.Errorf("the %s environment has no terminals", r.Backend())
	}
	id := c.ID
	if id == "" {
		id = sandbox.NewID()
	}
	if !sandbox.ValidID(id) {
		return nil, fmt.Errorf("%q is no name for a background command", id)
	}
	p, s, err := r.newCommand(ctx, c, nil)
	if err != nil {
		return nil, err
	}
	jobs, err := s.jobs()
	if err != nil {
		return nil, err
	}
	boot, err := r.call(ctx, "mkdir", jobs, jobMakeScript, nil, id)
	if err != nil {
		return nil, fmt.Errorf("directory of a background command: %w", err)
	}
	j := newJob(r, id, path.Join(jobs, id), p.mark)
	if err := j.launch(ctx, p, s, c, string(boot)); err != nil {
		r.discard(j)
		return nil, err
	}
	if !r.follow(j, c) {
		r.discard(j)
		return nil, sandbox.ErrClosed
	}
	return j, nil
}

func newJob(r *Environment, id, dir, mark string) *job {
	j := &job{r: r, id: id, dir: dir, mark: mark, done: make(chan struct{}), killed: make(chan struct{}), nudge: make(chan struct{}, 1)}
	j.ctx, j.leave = context.WithCancel(r.ctx)
	return j
}

// jobs is the directory of all background commands.
func (s *setting) jobs() (string, error) {
	if s.private == "" {
		return "", errors.New("background commands are not available: no directory of the other side can be kept to ourselves")
	}
	return path.Join(s.private, "jobs"), nil
}

// launch runs the leader and waits for its report.
func (j *job) launch(ctx context.Context, p *command, s *setting, c sandbox.Command, boot string) error {
	input := "none"
	switch {
	case c.Input:
		input, j.input = "open", true
	case c.Stdin != nil:
		input = "file"
	}
	if c.Stdin != nil {
		if _, err := j.r.call(ctx, "write", path.Join(j.dir, "stdin"), `umask 077; cat >"$1"`, c.Stdin); err != nil {
			return fmt.Errorf("input of a background command: %w", err)
		}
	}
	script := jobHead + wrapHead + jobStateScript + p.start.Print(startWord) + jobBody
	args := append([]string{j.dir, input, p.mark, boot, strconv.FormatInt(j.r.opts.JobLog/2, 10)}, p.args(s, nil)...)
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	over := make(chan error, 1)
	ok := j.r.spawn(func() {
		code, err := j.r.carrier.Run(run, scriptArgs(script, args), Streams{Out: sink(p.take), Err: &p.errs, Env: p.env(s)})
		p.judge(code, err)
		over <- nil
	})
	if !ok {
		return sandbox.ErrClosed
	}
	select {
	case <-p.started:
	case <-over:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	j.pid, j.start = p.pid, p.startTime
	if p.err == nil && !p.start.Seen {
		return fmt.Errorf("%w: a background command did not report its start", sandbox.ErrUnavailable)
	}
	return p.err
}

// discard ends what may run of a job that could not be started, and removes its directory.
func (r *Environment) discard(j *job) {
	r.spawn(func() {
		ctx, cancel := context.WithTimeout(r.ctx, killTimeout)
		defer cancel()
		r.killer.kill(ctx, r.carrier, 0, 0, j.mark)
		_, _ = r.call(ctx, "remove", j.dir, `rm -rf -- "$1"`, nil)
	})
}

// Resume implements Environment.
func (r *Environment) Resume(ctx context.Context, ref sandbox.Ref, c sandbox.Command) (sandbox.Process, error) {
	gone := fmt.Errorf("background command %q: %w", ref.ID, sandbox.ErrGone)
	if !sandbox.ValidID(ref.ID) {
		return nil, gone
	}
	s, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	jobs, err := s.jobs()
	if err != nil {
		return nil, gone
	}
	dir := path.Join(jobs, ref.ID)
	out, err := r.ReadFile(ctx, path.Join(dir, "state"), 10_000)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, gone
	}
	if err != nil {
		return nil, err
	}
	f := strings.Fields(string(out))
	if len(f) != 5 {
		return nil, fmt.Errorf("background command %s: its state says %q", ref.ID, out)
	}
	if ref.Mark != "" && ref.Mark != f[3] {
		return nil, fmt.Errorf("background command %s is another one by now: %w", ref.ID, sandbox.ErrGone)
	}
	j := newJob(r, ref.ID, dir, f[3])
	j.pid, _ = strconv.Atoi(f[0])
	j.start, _ = strconv.ParseUint(f[1], 10, 64)
	j.input, j.offset = f[4] == "open", max(0, ref.Offset)
	if !r.follow(j, c) {
		return nil, sandbox.ErrClosed
	}
	return j, nil
}

// follow begins to poll a job. false means that the environment is closed.
func (r *Environment) follow(j *job, c sandbox.Command) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.jobs[j] = struct{}{}
	r.routines.Go(func() {
		defer j.leave()
		ended := j.attend(c)
		r.mu.Lock()
		delete(r.jobs, j)
		r.mu.Unlock()
		if ended {
			close(j.done)
		}
	})
	return true
}

// Kill implements Environment.
func (r *Environment) Kill(ctx context.Context, p sandbox.Process) error {
	j, ok := p.(*job)
	if !ok || j.r != r {
		return fmt.Errorf("process %s: %w", p.ID(), sandbox.ErrForeign)
	}
	if !r.spawn(j.kill) {
		return sandbox.ErrClosed
	}
	for _, step := range []<-chan struct{}{j.killed, j.done} {
		select {
		case <-step:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// kill ends the job and all that it started, once. One whose leader is gone is ended by its mark: the leader's number
// may be a stranger's by now, which the start time tells.
func (j *job) kill() {
	j.once.Do(func() {
		defer close(j.killed)
		select {
		case <-j.done:
			return
		default:
		}
		j.dying.Store(true)
		k := j.r.killer
		k.grace = j.r.opts.JobGrace
		k.kill(j.r.ctx, j.r.carrier, j.pid, j.start, j.mark)
		j.wake()
	})
}

func (j *job) wake() {
	select {
	case j.nudge <- struct{}{}:
	default:
	}
}

// ID implements Process.
func (j *job) ID() string { return j.id }

// PID implements Process.
func (j *job) PID() int { return j.pid }

// Done implements Process.
func (j *job) Done() <-chan struct{} { return j.done }

// ExitCode implements Process.
func (j *job) ExitCode() int { return j.code }

// Ref implements Process.
func (j *job) Ref() sandbox.Ref {
	j.mu.Lock()
	defer j.mu.Unlock()
	return sandbox.Ref{ID: j.id, PID: j.pid, Start: j.start, Mark: j.mark, Dir: j.dir, Offset: j.offset}
}

// Write implements Process.
func (j *job) Write(p []byte) (int, error) {
	j.writing.Lock()
	defer j.writing.Unlock()
	deadline := time.Now().Add(execution.WriteWait)
	for n := 0; ; {
		part := p[n:min(len(p), n+inputChunk)]
		if len(part) == 0 && n > 0 {
			return n, nil
		}
		if n > 0 && time.Now().After(deadline) {
			return n, fmt.Errorf("the command reads its input slowly: %w", os.ErrDeadlineExceeded)
		}
		if err := j.send("d"+escaped(part), ""); err != nil {
			return n, err
		}
		n += len(part)
		if len(part) == 0 {
			return n, nil
		}
	}
}

// CloseInput implements Process.
func (j *job) CloseInput() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	closed := j.closed
	j.mu.Unlock()
	if closed {
		return nil
	}
	if err := j.send("c", "end"); err != nil && !errors.Is(err, errInputClosed) {
		return err
	}
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	return nil
}

// errInputClosed is what Write says after CloseInput.
var errInputClosed = fmt.Errorf("its input is closed: %w", sandbox.ErrGone)

// send writes one line to the command's input.
func (j *job) send(line, end string) error {
	if !j.input {
		return errors.New("the command was started without an input")
	}
	select {
	case <-j.done:
		return fmt.Errorf("it has ended: %w", sandbox.ErrGone)
	default:
	}
	ctx, cancel := context.WithTimeout(j.r.ctx, pollTimeout)
	defer cancel()
	var errs output.Tail
	code, err := j.r.carrier.Run(ctx, scriptArgs(jobWriteScript, []string{j.dir, end}), Streams{In: strings.NewReader(line + "\n"), Err: &errs})
	switch {
	case err != nil:
		return err
	case code == 3:
		return fmt.Errorf("it has ended: %w", sandbox.ErrGone)
	case code == 5:
		return errInputClosed
	case code == 4:
		return fmt.Errorf("the command does not read its input: %w", os.ErrDeadlineExceeded)
	case code != 0:
		return fmt.Errorf("input of a background command: %w", scriptError(errs.Line(), code))
	}
	return nil
}

// escaped writes bytes for printf %b.
func escaped(p []byte) string {
	var b strings.Builder
	for _, c := range p {
		if c == '\\' || c < ' ' || c > '~' {
			fmt.Fprintf(&b, `\0%03o`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// attend passes the output on while it is found. It returns true when the command has ended and all of its output was
// passed on, and false when the environment leaves the command running.
func (j *job) attend(c sandbox.Command) (ended bool) {
	t := jobTail{job: j, until: j.Ref().Offset, replay: c.Replay, out: c.Output}
	for pause := pollSoon; ; {
		before := t.at
		state, code, err := t.poll()
		switch {
		case errors.Is(err, ErrVanished), errors.Is(err, fs.ErrNotExist):
			state, code = "lost", sandbox.ExitUnknown
		case err != nil:
			pause = pollLost
		case t.at > before:
			pause = pollSoon
		default:
			pause = min(2*pause, pollLate)
		}
		select {
		case <-j.ctx.Done():
			return false
		default:
		}
		if state == "ended" || state == "lost" {
			t.flush()
			if j.code = code; state == "lost" {
				j.code = j.lostCode()
			}
			return true
		}
		select {
		case <-j.ctx.Done():
			return false
		case <-j.nudge:
		case <-time.After(pause):
		}
	}
}

// lostCode is the exit code of a command that ended without anybody to write it down.
func (j *job) lostCode() int {
	if j.dying.Load() {
		return 128 + int(syscall.SIGKILL) // ours
	}
	return sandbox.ExitUnknown
}

// jobTail makes text of a job's log.
type jobTail struct {
	job         *job
	dec         output.Decoder
	at          int64 // number of the next byte
	until       int64 // what is before goes to replay
	replay, out io.Writer
}

// poll looks once. The state is "alive", "ended" or "lost", empty when there was no answer.
func (t *jobTail) poll() (state string, code int, err error) {
	ctx, cancel := context.WithTimeout(t.job.r.ctx, pollTimeout)
	defer cancel()
	defer context.AfterFunc(t.job.ctx, cancel)()
	b, err := t.job.r.call(ctx, "poll", t.job.dir, jobPollScript, nil, strconv.FormatInt(t.at, 10))
	if err != nil {
		return "", 0, err
	}
	head, b, _ := bytes.Cut(b, []byte("\n"))
	state, word, _ := strings.Cut(string(head), " ")
	if code, err = strconv.Atoi(word); err != nil {
		code = sandbox.ExitUnknown
	}
	for len(b) > 0 {
		head, rest, _ := bytes.Cut(b, []byte("\n"))
		first, size, _ := strings.Cut(string(head), " ")
		base, err1 := strconv.ParseInt(first, 10, 64)
		n, err2 := strconv.ParseInt(size, 10, 64)
		if err := errors.Join(err1, err2); err != nil || n > int64(len(rest)) {
			// A piece was removed while it was read; the next look tells.
			return "", 0, fmt.Errorf("the log of a background command is cut off: %w", err)
		}
		t.take(base, rest[:n])
		b = rest[n:]
	}
	return state, code, nil
}

// take passes on a piece of the log whose first byte has the number base.
func (t *jobTail) take(base int64, b []byte) {
	if base > t.at {
		t.pass(append(t.dec.Flush(), output.Dropped(base-t.at)...), base)
		t.at = base
	}
	for len(b) > 0 {
		part := b
		if t.at < t.until {
			part = b[:min(int64(len(b)), t.until-t.at)]
		}
		end := t.at + int64(len(part))
		text := t.dec.Decode(part)
		t.pass(text, end-int64(t.dec.Held()))
		t.at, b = end, b[len(part):]
	}
}

// pass hands text to the sink. The offset is ahead of the sink, so that who asks from within it finds it counted.
func (t *jobTail) pass(text []byte, offset int64) {
	to := t.out
	if t.at < t.until {
		to = t.replay
	}
	t.job.mu.Lock()
	t.job.offset = max(t.job.offset, offset)
	t.job.mu.Unlock()
	if to != nil && len(text) > 0 {
		_, _ = to.Write(text)
	}
}

func (t *jobTail) flush() { t.pass(t.dec.Flush(), t.at) }
