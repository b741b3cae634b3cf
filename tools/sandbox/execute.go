package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Time limits of commands, the same in every environment.
const (
	// drainTime is how long output is still read after the shell ended: a background child may hold the pipe open.
	drainTime = 300 * time.Millisecond
	// backstop is how long a kill may take before Exec returns without having seen the end.
	backstop = 2 * time.Second
	// termGrace and killGrace are how long the processes of a command may take to end after TERM, and after KILL.
	termGrace = time.Second
	killGrace = 2 * time.Second
	// writeWait is how long Process.Write waits for a command that does not read.
	writeWait = 5 * time.Second
)

// execution is a command under way.
type execution interface {
	// finished is closed when the command ended and its output was drained.
	finished() <-chan struct{}
	// outcome is valid after finished.
	outcome() outcome
	// place says where the command runs, as far as it is known. note is for the reader of the result.
	place() (dir, note string)
	// end kills the command and what it started, in a goroutine of the environment. The channel is closed when that
	// was done.
	end() <-chan struct{}
}

// outcome is how an execution ended.
type outcome struct {
	code int
	dir  string // that the shell reported last; empty when it reported none
	err  error  // it could not be run, or its end was not seen
}

// host is what Exec needs of an environment.
type host struct {
	// begin starts a command whose output goes to win and to c.Output.
	begin func(ctx context.Context, c Command, win *window) (execution, error)
	// left says where the session is, or would start, as far as that is known without asking the place.
	left     func(session string) (dir string, ok bool)
	remember func(session, dir string)
}

// execute is Exec for all environments: begin, wait, end where needed, and what became of it.
func execute(ctx context.Context, e host, c Command, win *window) (Result, error) {
	began := time.Now()
	if ctx.Err() != nil {
		return finish(e, reason(ctx, Result{}), c, "", began), nil
	}
	p, err := e.begin(ctx, c, win)
	if err != nil {
		if ctx.Err() != nil {
			return finish(e, reason(ctx, Result{}), c, "", began), nil
		}
		return Result{}, err
	}
	var limit <-chan time.Time
	if c.Timeout > 0 {
		t := time.NewTimer(c.Timeout)
		defer t.Stop()
		limit = t.C
	}
	var r Result
	select {
	case <-p.finished():
	case <-limit:
		r.TimedOut = true
		r.Detached = !stop(p)
	case <-ctx.Done():
		r = reason(ctx, r)
		r.Detached = !stop(p)
	}
	v := win.view()
	r.Output, r.Truncated, r.FullPath, r.TotalChars = v.text, v.truncated, v.path, v.chars
	dir, note := p.place()
	r.Note = note
	if !r.Detached {
		o := p.outcome()
		if o.err != nil && !r.TimedOut && !r.Interrupted {
			return finish(e, r, c, dir, began), o.err
		}
		r.ExitCode = o.code
		if o.dir != "" {
			r.Dir, r.Observed = o.dir, true
			if c.Dir == "" {
				e.remember(c.Session, r.Dir)
			}
		}
	}
	return finish(e, r, c, dir, began), nil
}

// stop kills the command and reports whether it was seen to end in time.
func stop(p execution) bool {
	killed := p.end()
	t := time.NewTimer(backstop)
	defer t.Stop()
	select {
	case <-killed:
		select {
		case <-p.finished():
			return true
		case <-t.C:
			return false
		}
	case <-t.C:
		return false
	}
}

// reason tells a passed deadline from an interrupt.
func reason(ctx context.Context, r Result) Result {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		r.TimedOut = true
	} else {
		r.Interrupted = true
	}
	return r
}

// finish sets what depends on how the command ended. An empty dir is that of the session.
func finish(e host, r Result, c Command, dir string, began time.Time) Result {
	r.Took = time.Since(began)
	switch {
	case r.TimedOut:
		r.ExitCode = ExitTimeout
		r.Output = addLine(r.Output, fmt.Sprintf("[the command was stopped after %s: time limit]", r.Took.Round(100*time.Millisecond)))
	case r.Interrupted:
		r.ExitCode = ExitInterrupted
		r.Output = addLine(r.Output, "[the command was interrupted]")
	}
	if c.Dir != "" || r.Dir == "" {
		left, ok := e.left(c.Session)
		r.Dir = dir
		if ok || dir == "" {
			r.Dir = left
		}
	}
	return r
}

func addLine(text, line string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line
}

// checkLine refuses what can't be a command.
func checkLine(line string) error {
	switch {
	case strings.TrimSpace(line) == "":
		return errors.New("the command is empty")
	case len(line) > MaxCommand:
		return fmt.Errorf("the command has %d bytes, at most %d are allowed; write it to a file and run that", len(line), MaxCommand)
	case strings.ContainsRune(line, 0):
		return errors.New("the command contains a NUL byte")
	}
	return nil
}

// within receives from ch, for at most d.
func within[T any](d time.Duration, ch <-chan T) (v T, ok bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case v = <-ch:
		return v, true
	case <-t.C:
		return v, false
	}
}
