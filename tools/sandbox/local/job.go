package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"herald/tools/sandbox"
	"herald/tools/sandbox/execution"
	"herald/tools/sandbox/shell"
	"herald/tools/spill"
)

const (
	// lookEvery is how often a command is looked at whose supervisor is gone, and a pipe that can't wake us.
	lookEvery = time.Second
	// jobKeep and maxJobs bound the directories of commands that ended.
	jobKeep = 24 * time.Hour
	maxJobs = 128
)

// job is a background command of this machine as the daemon sees it. One goroutine follows its output and its end.
type job struct {
	id, dir string
	who     jobIdentity
	code    int // valid after done
	done    chan struct{}
	once    sync.Once
	killed  chan struct{}
	left    chan struct{} // closed when the environment is closed and leaves it running
	fed     chan struct{} // closed when the input that the command began with was written

	mu     sync.Mutex
	offset int64 // bytes of the output that went to the sink
	in     *os.File
	bell   *os.File
	closed bool // the input
}

func newJob(id, dir string, who jobIdentity) *job {
	return &job{id: id, dir: dir, who: who, done: make(chan struct{}), killed: make(chan struct{}), left: make(chan struct{}),
		fed: make(chan struct{})}
}

// ID implements Process.
func (j *job) ID() string { return j.id }

// PID implements Process.
func (j *job) PID() int { return j.who.PID }

// Done implements Process.
func (j *job) Done() <-chan struct{} { return j.done }

// ExitCode implements Process.
func (j *job) ExitCode() int { return j.code }

// Ref implements Process.
func (j *job) Ref() sandbox.Ref {
	j.mu.Lock()
	defer j.mu.Unlock()
	return sandbox.Ref{ID: j.id, PID: j.who.PID, Start: j.who.Start, Mark: j.who.Mark, Dir: j.dir, Offset: j.offset}
}

// Write implements Process.
func (j *job) Write(p []byte) (int, error) {
	if _, ok := execution.Within(execution.WriteWait, j.fed); !ok {
		return 0, fmt.Errorf("the command does not read its input: %w", os.ErrDeadlineExceeded)
	}
	return j.write(p)
}

// write is Write without the wait for what comes first.
func (j *job) write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.openInput(); err != nil {
		return 0, err
	}
	deadline := time.Now().Add(execution.WriteWait)
	for n := 0; ; {
		part := p[n:min(len(p), n+frameMax)]
		if len(part) == 0 {
			return n, nil
		}
		if err := j.send(frame(frameData, part), deadline); err != nil {
			return n, err
		}
		n += len(part)
	}
}

// CloseInput implements Process.
func (j *job) CloseInput() error {
	if _, ok := execution.Within(execution.WriteWait, j.fed); !ok {
		return fmt.Errorf("the command does not read its input: %w", os.ErrDeadlineExceeded)
	}
	return j.closeInput()
}

func (j *job) closeInput() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.openInput()
	if j.closed {
		return nil
	}
	if err == nil {
		err = j.send(frame(frameClose, nil), time.Now().Add(execution.WriteWait))
	}
	if err != nil || j.who.TTY { // a terminal's input goes on after Ctrl-D
		return err
	}
	j.closed = true
	return spill.WriteExclusive(filepath.Join(j.dir, jobClosed), nil, true, true)
}

// openInput readies the input pipe. j.mu is held.
func (j *job) openInput() error {
	if !j.who.Input {
		return errors.New("the command was started without an input")
	}
	if _, err := os.Lstat(filepath.Join(j.dir, jobClosed)); j.closed || err == nil {
		j.closed = true
		return fmt.Errorf("its input is closed: %w", sandbox.ErrGone)
	}
	select {
	case <-j.done:
		return fmt.Errorf("it has ended: %w", sandbox.ErrGone)
	default:
	}
	if j.in != nil {
		return nil
	}
	f, err := openPipe(j.dir, jobInput, os.O_WRONLY)
	if err != nil {
		if noReader(err) {
			return fmt.Errorf("it has ended: %w", sandbox.ErrGone)
		}
		return err
	}
	j.in = f
	return nil
}

// send writes one frame, which a pipe takes whole or not at all. j.mu is held.
func (j *job) send(b []byte, deadline time.Time) error {
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		var n int
		var err error
		raw, rerr := j.in.SyscallConn()
		if rerr != nil {
			return rerr
		}
		if rerr := raw.Control(func(fd uintptr) { n, err = syscall.Write(int(fd), b) }); rerr != nil {
			return rerr
		}
		switch {
		case err == nil && n == len(b):
			return nil
		case err == nil:
			return io.ErrShortWrite
		case noReader(err):
			return fmt.Errorf("it has ended: %w", sandbox.ErrGone)
		case !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR):
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("the command does not read its input: %w", os.ErrDeadlineExceeded)
		}
		select {
		case <-j.done:
		case <-time.After(pause):
		}
	}
}

// kill ends the tree once; later calls return at once.
func (j *job) kill(k killer) {
	j.once.Do(func() {
		defer close(j.killed)
		select {
		case <-j.done: // nothing of ours to signal, and its number may be another's by now
			return
		default:
		}
		t := tree{leader: j.who.PID, start: j.who.Start, mark: shell.MarkName + "=" + j.who.Mark}
		if !j.who.alive() {
			t.leader = 0 // its number belongs to nobody or to a stranger: only what carries the mark is ours
		}
		k.kill(t)
	})
}

// Start implements Environment.
func (l *Environment) Start(ctx context.Context, c sandbox.Command) (sandbox.Process, error) {
	if c.Errors != nil {
		return nil, errors.New("the errors of a background command can't be told from its output")
	}
	if err := execution.CheckLine(c.Line); err != nil {
		return nil, err
	}
	if len(l.opts.Supervisor) == 0 {
		return nil, errors.New("background commands are not available: no supervisor is set")
	}
	sh, err := l.theShell(ctx)
	if err != nil {
		return nil, err
	}
	dir, _, err := l.dirFor(c)
	if err != nil {
		return nil, err
	}
	id := c.ID
	if id == "" {
		id = sandbox.NewID()
	}
	own, err := l.newJobDir(id)
	if err != nil {
		return nil, err
	}
	j, err := l.supervise(ctx, id, l.jobSpec(sh, c, dir, own), c)
	if err != nil {
		_ = os.RemoveAll(own)
		return nil, err
	}
	return j, nil
}

// jobSpec is what the supervisor must know.
func (l *Environment) jobSpec(sh shell.Shell, c sandbox.Command, dir, own string) jobSpec {
	env := maps.Clone(sh.Env)
	l.passThrough(env)
	if c.TTY != nil && (env["TERM"] == "" || env["TERM"] == "dumb") {
		env["TERM"] = "xterm-256color"
	}
	maps.Copy(env, c.Env)
	mark := sandbox.NewID()
	env["PWD"], env[shell.MarkName] = dir, mark
	spec := jobSpec{Job: own, Argv: append([]string{sh.Argv[0]}, sh.Args(c.Line, nil)...), Dir: dir, Env: sandbox.Environ(env), Mark: mark,
		Input: c.Input || c.Stdin != nil || c.TTY != nil, Log: l.opts.JobLog}
	if t := c.TTY; t != nil {
		spec.TTY = &sandbox.TTY{Rows: t.Rows, Cols: t.Cols}
		if t.Rows == 0 || t.Cols == 0 {
			spec.TTY = &sandbox.TTY{Rows: 24, Cols: 80}
		}
	}
	return spec
}

// newJobDir makes a job's directory with its pipes.
func (l *Environment) newJobDir(id string) (string, error) {
	if !sandbox.ValidID(id) {
		return "", fmt.Errorf("%q is no name for a background command", id)
	}
	if err := spill.EnsureDir(l.jobDir(), true); err != nil {
		return "", err
	}
	l.pruneJobs()
	dir := filepath.Join(l.jobDir(), id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("directory of a background command: %w", err)
	}
	if err := makePipes(dir); err != nil {
		_ = os.RemoveAll(dir)
		return "", err
	}
	return dir, nil
}

// jobDir is where the directories of jobs are.
func (l *Environment) jobDir() string {
	if l.opts.JobDir != "" {
		return l.opts.JobDir
	}
	return filepath.Join(l.private, "jobs")
}

// supervise starts the supervisor and waits for its answer.
func (l *Environment) supervise(ctx context.Context, id string, spec jobSpec, c sandbox.Command) (*job, error) {
	cmd, answer, err := l.startSupervisor(spec)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err)
	}
	defer answer.Close()
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	var ready jobReady
	err = json.NewDecoder(answer).Decode(&ready)
	if !stop() { // ctx ended, so the supervisor is being killed
		err = ctx.Err()
	}
	switch {
	case err == nil && ready.Error != "":
		err = fmt.Errorf("%w: %s", sandbox.ErrUnavailable, ready.Error)
	case err != nil && ctx.Err() != nil:
		err = ctx.Err()
	case err != nil:
		err = fmt.Errorf("%w: the supervisor of a background command did not answer: %w", sandbox.ErrUnavailable, err)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		l.killer.killMarked(tree{mark: shell.MarkName + "=" + spec.Mark})
		return nil, err
	}
	j := newJob(id, spec.Job, ready.jobIdentity)
	if !l.follow(j, c, cmd) {
		j.kill(l.killer)
		_ = cmd.Wait()
		return nil, sandbox.ErrClosed
	}
	if c.Stdin != nil {
		l.routines.Go(func() { j.feed(c.Stdin, c.Input || c.TTY != nil) })
	} else {
		close(j.fed)
	}
	return j, nil
}

// startSupervisor hands the spec over. answer gives the supervisor's.
func (l *Environment) startSupervisor(spec jobSpec) (cmd *exec.Cmd, answer *os.File, err error) {
	told, tell, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer told.Close()
	defer tell.Close()
	answer, ready, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer ready.Close()
	argv := l.opts.Supervisor
	cmd = exec.Command(argv[0], argv[1:]...)
	cmd.Args[0] = "background-command"
	cmd.Dir, cmd.ExtraFiles = "/", []*os.File{told, ready}
	cmd.Env = []string{"GOMAXPROCS=2", "GOMEMLIMIT=32MiB"} // it copies bytes; nothing of the daemon's is its business
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		answer.Close()
		return nil, nil, err
	}
	told.Close()
	if err := json.NewEncoder(tell).Encode(spec); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		answer.Close()
		return nil, nil, err
	}
	return cmd, answer, nil
}

// feed writes r to the command and, unless it is kept open, ends its input.
func (j *job) feed(r io.Reader, open bool) {
	defer close(j.fed)
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		for sent := 0; sent < n; {
			k, werr := j.write(buf[sent:n])
			sent += k
			if werr != nil && !errors.Is(werr, os.ErrDeadlineExceeded) {
				return
			}
			select {
			case <-j.left:
				return
			default:
			}
		}
		if err != nil {
			if !open {
				_ = j.closeInput()
			}
			return
		}
	}
}

// Resume implements Environment.
func (l *Environment) Resume(_ context.Context, ref sandbox.Ref, c sandbox.Command) (sandbox.Process, error) {
	if !sandbox.ValidID(ref.ID) {
		return nil, fmt.Errorf("background command %q: %w", ref.ID, sandbox.ErrGone)
	}
	dir := filepath.Join(l.jobDir(), ref.ID)
	if st, err := os.Lstat(dir); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("background command %s: %w", ref.ID, sandbox.ErrGone)
	}
	who, err := readIdentity(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("background command %s: %w", ref.ID, sandbox.ErrGone)
	}
	if err != nil {
		return nil, fmt.Errorf("background command %s: %w", ref.ID, err)
	}
	if ref.Mark != "" && ref.Mark != who.Mark {
		return nil, fmt.Errorf("background command %s is another one by now: %w", ref.ID, sandbox.ErrGone)
	}
	j := newJob(ref.ID, dir, who)
	j.offset = max(0, ref.Offset)
	close(j.fed)
	if !l.follow(j, c, nil) {
		return nil, sandbox.ErrClosed
	}
	return j, nil
}

// Kill implements Environment.
func (l *Environment) Kill(ctx context.Context, p sandbox.Process) error {
	j, ok := p.(*job)
	if !ok {
		return fmt.Errorf("process %s: %w", p.ID(), sandbox.ErrForeign)
	}
	l.routines.Go(func() { j.kill(l.jobKiller()) })
	for _, step := range []<-chan struct{}{j.killed, j.done} {
		select {
		case <-step:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// jobKiller is the killer with the grace of background commands.
func (l *Environment) jobKiller() killer {
	k := l.killer
	k.grace = l.opts.JobGrace
	return k
}

// follow begins to read the job's output and to wait for its end. cmd is the supervisor if it is our child. false
// means that the environment is closed.
func (l *Environment) follow(j *job, c sandbox.Command, cmd *exec.Cmd) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.jobs[j] = struct{}{}
	l.routines.Go(func() {
		ended := j.attend(c)
		if ended && cmd != nil {
			_ = cmd.Wait()
		}
		l.mu.Lock()
		delete(l.jobs, j)
		l.mu.Unlock()
		if ended {
			close(j.done)
		}
	})
	return true
}

// pruneJobs removes the directories of commands that ended long ago, and of the oldest when there are many.
func (l *Environment) pruneJobs() {
	entries, err := os.ReadDir(l.jobDir())
	if err != nil {
		return
	}
	l.mu.Lock()
	busy := map[string]bool{}
	for j := range l.jobs {
		busy[j.id] = true
	}
	l.mu.Unlock()
	type old struct {
		path string
		at   time.Time
	}
	var ended []old
	for _, e := range entries {
		dir := filepath.Join(l.jobDir(), e.Name())
		st, err := os.Lstat(filepath.Join(dir, jobExit))
		if err != nil && !busy[e.Name()] {
			st, err = lostJob(dir)
		}
		if err == nil && !busy[e.Name()] && !strings.HasPrefix(e.Name(), ".") {
			ended = append(ended, old{dir, st.ModTime()})
		}
	}
	slices.SortFunc(ended, func(a, b old) int { return b.at.Compare(a.at) })
	for i, o := range ended {
		if i >= maxJobs || l.opts.Now().Sub(o.at) > jobKeep {
			_ = os.RemoveAll(o.path)
		}
	}
}
