// Package execution is the way of one command from its begin to its result, the same in every environment: time limit,
// interrupt, backstop, the directory that a session is left in. How a command is started and killed is the environment's.
package execution

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"herald/tools/sandbox"
	"herald/tools/sandbox/output"
)

// Time limits of commands, the same in every environment.
const (
	// DrainTime is how long output is still read after the shell ended: a background child may hold the pipe open.
	DrainTime = 300 * time.Millisecond
	// Backstop is how long a kill may take before Exec returns without having seen the end.
	Backstop = 2 * time.Second
	// TermGrace and KillGrace are how long the processes of a command may take to end after TERM, and after KILL.
	TermGrace = time.Second
	KillGrace = 2 * time.Second
	// WriteWait is how long Process.Write waits for a command that does not read.
	WriteWait = 5 * time.Second
)

// Running is a command under way.
type Running interface {
	// Finished is closed when the command ended and its output was drained.
	Finished() <-chan struct{}
	// Outcome is valid after finished.
	Outcome() Outcome
	// Where says where the command runs, as far as it is known. note is for the reader of the result.
	Where() (dir, note string)
	// End kills the command and what it started, in a goroutine of the environment. The channel is closed when that
	// was done.
	End() <-chan struct{}
}

// Outcome is how an execution ended.
type Outcome struct {
	Code int
	Dir  string // that the shell reported last; empty when it reported none
	Err  error  // it could not be run, or its end was not seen
}

// Host is what Exec needs of an environment.
type Host struct {
	// Begin starts a command whose output goes to win and to c.Output.
	Begin func(ctx context.Context, c sandbox.Command, win *output.Window) (Running, error)
	// Left says where the session is, or would start, as far as that is known without asking the place.
	Left     func(session string) (dir string, ok bool)
	Remember func(session, dir string)
}

// Run is Exec for all environments: begin, wait, end where needed, and what became of it.
func Run(ctx context.Context, e Host, c sandbox.Command, win *output.Window) (sandbox.Result, error) {
	began := time.Now()
	if ctx.Err() != nil {
		return finish(e, reason(ctx, sandbox.Result{}), c, "", began), nil
	}
	p, err := e.Begin(ctx, c, win)
	if err != nil {
		if ctx.Err() != nil {
			return finish(e, reason(ctx, sandbox.Result{}), c, "", began), nil
		}
		return sandbox.Result{}, err
	}
	var limit <-chan time.Time
	if c.Timeout > 0 {
		t := time.NewTimer(c.Timeout)
		defer t.Stop()
		limit = t.C
	}
	var r sandbox.Result
	select {
	case <-p.Finished():
	case <-limit:
		r.TimedOut = true
		r.Detached = !stop(p)
	case <-ctx.Done():
		r = reason(ctx, r)
		r.Detached = !stop(p)
	}
	v := win.View()
	r.Output, r.Truncated, r.FullPath, r.TotalChars = v.Text, v.Truncated, v.Path, v.Chars
	dir, note := p.Where()
	r.Note = note
	if !r.Detached {
		o := p.Outcome()
		if o.Err != nil && !r.TimedOut && !r.Interrupted {
			return finish(e, r, c, dir, began), o.Err
		}
		r.ExitCode = o.Code
		if o.Dir != "" {
			r.Dir, r.Observed = o.Dir, true
			if c.Dir == "" {
				e.Remember(c.Session, r.Dir)
			}
		}
	}
	return finish(e, r, c, dir, began), nil
}

// stop kills the command and reports whether it was seen to end in time.
func stop(p Running) bool {
	killed := p.End()
	t := time.NewTimer(Backstop)
	defer t.Stop()
	select {
	case <-killed:
		select {
		case <-p.Finished():
			return true
		case <-t.C:
			return false
		}
	case <-t.C:
		return false
	}
}

// reason tells a passed deadline from an interrupt.
func reason(ctx context.Context, r sandbox.Result) sandbox.Result {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		r.TimedOut = true
	} else {
		r.Interrupted = true
	}
	return r
}

// finish sets what depends on how the command ended. An empty dir is that of the session.
func finish(e Host, r sandbox.Result, c sandbox.Command, dir string, began time.Time) sandbox.Result {
	r.Took = time.Since(began)
	switch {
	case r.TimedOut:
		r.ExitCode = sandbox.ExitTimeout
		r.Output = AddLine(r.Output, fmt.Sprintf("[the command was stopped after %s: time limit]", r.Took.Round(100*time.Millisecond)))
	case r.Interrupted:
		r.ExitCode = sandbox.ExitInterrupted
		r.Output = AddLine(r.Output, "[the command was interrupted]")
	}
	if c.Dir != "" || r.Dir == "" {
		left, ok := e.Left(c.Session)
		r.Dir = dir
		if ok || dir == "" {
			r.Dir = left
		}
	}
	return r
}

func AddLine(text, line string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line
}

// CheckLine refuses what can't be a command.
func CheckLine(line string) error {
	switch {
	case strings.TrimSpace(line) == "":
		return errors.New("the command is empty")
	case len(line) > sandbox.MaxCommand:
		return fmt.Errorf("the command has %d bytes, at most %d are allowed; write it to a file and run that", len(line), sandbox.MaxCommand)
	case strings.ContainsRune(line, 0):
		return errors.New("the command contains a NUL byte")
	}
	return nil
}

// Within receives from ch, for at most d.
func Within[T any](d time.Duration, ch <-chan T) (v T, ok bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case v = <-ch:
		return v, true
	case <-t.C:
		return v, false
	}
}
