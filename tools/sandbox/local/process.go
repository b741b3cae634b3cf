package local

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"herald/tools/sandbox"
	"herald/tools/sandbox/execution"
	"herald/tools/sandbox/output"
	"herald/tools/sandbox/proc"
	"herald/tools/sandbox/shell"
)

// Exec implements Environment.
func (l *Environment) Exec(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	return execution.Run(ctx, execution.Host{Begin: l.begin, Left: l.Dir, Remember: l.sessions.Remember}, c,
		output.NewWindow(l.opts.Window, l.spills.Open))
}

// begin starts a command for Exec.
func (l *Environment) begin(ctx context.Context, c sandbox.Command, win *output.Window) (execution.Running, error) {
	p, err := l.start(ctx, c, win)
	if err != nil {
		return nil, err
	}
	return running{l, p}, nil
}

// running makes an execution of a local process.
type running struct {
	l *Environment
	*process
}

func (r running) Finished() <-chan struct{} { return r.done }

func (r running) Outcome() execution.Outcome {
	o := execution.Outcome{Code: r.code}
	if r.marker.Seen {
		o.Dir = r.marker.Value
	}
	return o
}

func (r running) Where() (dir, note string) { return r.dir, r.note }

func (r running) End() <-chan struct{} {
	r.l.routines.Go(func() { r.kill(r.l.killer) })
	return r.killed
}

// process is a running command of Exec. One goroutine reads its output, one waits for its end.
type process struct {
	id     string
	pid    int
	tree   tree
	dir    string
	note   string
	marker *shell.Marker // owned by the reader until done
	errs   *os.File      // what comes from stderr, where that is kept apart
	code   int           // valid after done
	done   chan struct{}
	once   sync.Once
	killed chan struct{}
}

// kill ends the tree once; later calls return at once.
func (p *process) kill(k killer) {
	p.once.Do(func() {
		defer close(p.killed)
		select {
		case <-p.done: // nothing of ours to signal, and its number may be another's by now
		default:
			k.kill(p.tree)
		}
	})
}

// start runs a command. win may be nil.
func (l *Environment) start(ctx context.Context, c sandbox.Command, win *output.Window) (*process, error) {
	if err := execution.CheckLine(c.Line); err != nil {
		return nil, err
	}
	sh, err := l.theShell(ctx)
	if err != nil {
		return nil, err
	}
	id, err := l.nextID()
	if err != nil {
		return nil, err
	}
	p := &process{id: id, marker: shell.NewMarker(id), done: make(chan struct{}), killed: make(chan struct{})}
	mark := sandbox.NewID()
	p.tree.mark = shell.MarkName + "=" + mark

	cmd, out, err := l.spawn(sh, c, p, mark)
	if err != nil {
		return nil, err
	}
	l.routines.Go(func() { l.attend(cmd, out, c, p, win) })
	return p, nil
}

// nextID counts the commands of this environment.
func (l *Environment) nextID() (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return "", sandbox.ErrClosed
	}
	l.count++
	return fmt.Sprintf("%s-%d", l.id, l.count), nil
}

// spawn starts the shell in its own process group. A directory that vanishes between the look and the
// start is picked again once.
func (l *Environment) spawn(sh shell.Shell, c sandbox.Command, p *process, mark string) (*exec.Cmd, *os.File, error) {
	for try := 0; ; try++ {
		dir, note, err := l.dirFor(c)
		if err != nil {
			return nil, nil, err
		}
		p.dir, p.note = dir, note
		cmd, out, err := l.fork(sh, c, p, mark)
		if err == nil {
			return cmd, out, nil
		}
		if try > 0 || l.usable(dir) == nil {
			return nil, nil, fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err)
		}
	}
}

func (l *Environment) fork(sh shell.Shell, c sandbox.Command, p *process, mark string) (*exec.Cmd, *os.File, error) {
	env := maps.Clone(sh.Env)
	l.passThrough(env)
	maps.Copy(env, c.Env)
	env["PWD"], env[shell.MarkName] = p.dir, mark

	out, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer w.Close()
	cmd := exec.Command(sh.Argv[0], sh.Args(c.Line, p.marker)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.dir, sandbox.Environ(env), w, w
	if c.Errors != nil {
		errs, w, err := os.Pipe()
		if err != nil {
			out.Close()
			return nil, nil, err
		}
		defer w.Close()
		cmd.Stderr, p.errs = w, errs
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, feed, err := stdin(c.Stdin)
	if err != nil {
		p.closeOutputs(out)
		return nil, nil, err
	}
	if in != nil {
		defer in.Close()
		cmd.Stdin = in
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		err = sandbox.ErrClosed
	} else {
		err = cmd.Start()
	}
	if err != nil {
		p.closeOutputs(out)
		if feed != nil {
			feed.Close()
		}
		return nil, nil, err
	}
	p.pid, p.tree.leader = cmd.Process.Pid, cmd.Process.Pid
	if row, err := proc.Read(p.pid); err == nil {
		p.tree.start = row.Start
	}
	l.running[p] = struct{}{}
	if feed != nil {
		l.feed(feed, c.Stdin, p)
	}
	return cmd, out, nil
}

// closeOutputs closes our ends of the pipes.
func (p *process) closeOutputs(out *os.File) {
	out.Close()
	if p.errs != nil {
		p.errs.Close()
		p.errs = nil
	}
}

// passThrough gives the variables of the passthrough list the values they have now: the login snapshot may
// be old, and a secret that was taken away must not live on in it.
func (l *Environment) passThrough(env map[string]string) {
	if len(l.pass) == 0 {
		return
	}
	listed := func(name string) bool {
		return slices.ContainsFunc(l.pass, func(p string) bool { return strings.EqualFold(p, name) })
	}
	maps.DeleteFunc(env, func(name, _ string) bool { return listed(name) })
	for name, value := range sandbox.Scrub(l.opts.Environ(), l.pass, l.opts.Deny) {
		if listed(name) {
			env[name] = value
		}
	}
}

// stdin makes a pipe for r; both ends are nil when r is, and the command then reads from /dev/null.
func stdin(r io.Reader) (in, feed *os.File, err error) {
	if r == nil {
		return nil, nil, nil
	}
	return os.Pipe()
}

// feed copies r to the command until either ends. A command that does not read must not hold us, so the
// pipe is closed when it is done.
func (l *Environment) feed(w *os.File, r io.Reader, p *process) {
	copied := make(chan struct{})
	l.routines.Go(func() {
		defer close(copied)
		defer w.Close()
		_, _ = io.Copy(w, r)
	})
	l.routines.Go(func() {
		select {
		case <-copied:
		case <-p.done:
			_ = w.SetWriteDeadline(time.Unix(1, 0))
		}
	})
}

// attend owns a command from its start to its end.
func (l *Environment) attend(cmd *exec.Cmd, out *os.File, c sandbox.Command, p *process, win *output.Window) {
	var read sync.WaitGroup
	read.Go(func() { readOutput(out, c.Output, p.marker, win) })
	if p.errs != nil {
		read.Go(func() { readOutput(p.errs, c.Errors, &shell.Marker{Seen: true}, nil) })
	}
	_ = cmd.Wait() // the pipes are ours, so this waits for the shell alone
	p.code = proc.ExitCode(cmd.ProcessState)
	_ = out.SetReadDeadline(time.Now().Add(execution.DrainTime))
	if p.errs != nil {
		_ = p.errs.SetReadDeadline(time.Now().Add(execution.DrainTime))
	}
	read.Wait()
	p.closeOutputs(out)
	if win != nil {
		win.Close()
	}
	l.mu.Lock()
	delete(l.running, p)
	l.mu.Unlock()
	close(p.done)
}

// readOutput passes the command's text on until the pipe ends.
func readOutput(out io.Reader, sink io.Writer, m *shell.Marker, win *output.Window) {
	var dec output.Decoder
	pass := func(text []byte) {
		if len(text) == 0 {
			return
		}
		if win != nil {
			_, _ = win.Write(text)
		}
		if sink != nil {
			_, _ = sink.Write(text)
		}
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := out.Read(buf)
		if n > 0 {
			pass(dec.Decode(m.Filter(buf[:n])))
		}
		if err != nil {
			break
		}
	}
	pass(dec.Decode(m.Flush()))
	pass(dec.Flush())
}
