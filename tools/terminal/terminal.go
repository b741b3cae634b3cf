package terminal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"herald/tools"
	"herald/tools/process"
	"herald/tools/sandbox"
)

// The time limits of a foreground command, and how often its last line is shown while it runs.
const (
	DefaultTimeout = 180 * time.Second
	MaxTimeout     = 600 * time.Second
	progressEvery  = 500 * time.Millisecond
	// beatEvery is how often a command that prints nothing shows that it still runs.
	beatEvery = 10 * time.Second
	// maxProgress is the longest line that is shown, in bytes.
	maxProgress = 200
)

// Deps is what the tool needs.
type Deps struct {
	// Environment returns where the caller's commands run. It is asked for each call and must be cheap.
	Environment func(caller tools.Caller) (sandbox.Environment, error)
	// Protected are absolute directories of the daemon that no command may remove as a whole.
	Protected []string
	// DaemonPID is the process that commands must not kill; 0 takes this process.
	DaemonPID int
	// Timeout is the time limit of a command that names none, and MaxTimeout the longest that one may ask for;
	// 0 takes DefaultTimeout and MaxTimeout. The longest is never less than the first.
	Timeout    time.Duration
	MaxTimeout time.Duration
	// Processes run commands in the background; nil: there is no background.
	Processes *process.Processes
	// Now is the clock of the progress throttle; nil takes time.Now.
	Now func() time.Time
}

type args struct {
	Command string   `json:"command"`
	Timeout *float64 `json:"timeout"` // seconds
	Workdir string   `json:"workdir"`

	Background bool     `json:"background"`
	PTY        bool     `json:"pty"`
	Notify     bool     `json:"notify_on_complete"`
	Watch      []string `json:"watch_patterns"`
}

// result is what the model sees.
type result struct {
	Output           string `json:"output"`
	ExitCode         int    `json:"exit_code"`
	Cwd              string `json:"cwd"`
	DurationMS       int64  `json:"duration_ms"`
	Truncated        bool   `json:"truncated,omitempty"`
	OutputTotalChars int64  `json:"output_total_chars,omitempty"`
	FullOutputPath   string `json:"full_output_path,omitempty"`
	TimedOut         bool   `json:"timed_out,omitempty"`
	Interrupted      bool   `json:"interrupted,omitempty"`
	Note             string `json:"note,omitempty"`
}

// degraded is what the model sees when the place for commands is out of reach.
type degraded struct {
	Error    string `json:"error"`
	Status   string `json:"status"`
	ExitCode int    `json:"exit_code"`
	Hint     string `json:"retry_hint"`
}

const schema = `{
  "type": "object",
  "properties": {
    "command": {"type": "string", "minLength": 1, "description": "Shell text for bash. Several lines, pipes and here documents are fine."},
    "timeout": {"type": "number", "exclusiveMinimum": 0, %s},
    "workdir": {"type": "string", "description": "Directory for this command alone, absolute or relative to the session's. Without it the command runs where the last one ended."}%s
  },
  "required": ["command"],
  "additionalProperties": false
}`

const description = `Run a shell command and return its output (stdout and stderr together) and exit code.
The working directory carries over from one command to the next; variables and functions set by a command do not. Input is empty, so pass flags such as -y to programs that would ask. A command that passes its time limit is killed with all its children and returns exit code 124 with the output so far. Long output is shortened in the middle; full_output_path then names a file with all of it.`

// New returns the terminal tool.
func New(d Deps) tools.Tool {
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Timeout <= 0 {
		d.Timeout = DefaultTimeout
	}
	if d.MaxTimeout <= 0 {
		d.MaxTimeout = MaxTimeout
	}
	d.MaxTimeout = max(d.MaxTimeout, d.Timeout)
	return tools.Tool{
		Spec: tools.Spec{
			Name: "terminal", Toolset: "terminal", Description: description, Parameters: json.RawMessage(d.parameters()),
			Parallel: tools.Sequential, ChangesFiles: true, Core: true, Timeout: -1, Emoji: "💻", Preview: "command",
		},
		Run: d.run,
	}
}

func (d Deps) run(ctx context.Context, call tools.Call) (tools.Result, error) {
	var a args
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return tools.Result{}, fmt.Errorf("arguments: %w", err)
	}
	limit, promoted := d.Timeout, false
	if a.Timeout != nil && !a.Background {
		promoted = *a.Timeout > d.MaxTimeout.Seconds() && d.Processes != nil
		if !promoted && (*a.Timeout <= 0 || *a.Timeout > d.MaxTimeout.Seconds()) {
			return tools.Failure("timeout: %v is not allowed; give more than 0 and at most %v seconds", *a.Timeout, d.MaxTimeout.Seconds()), nil
		}
		limit = time.Duration(min(*a.Timeout, d.MaxTimeout.Seconds()) * float64(time.Second))
	}
	if why := a.wrong(promoted); why != "" {
		return tools.Failure("%s", why), nil
	}
	env, err := d.Environment(call.Caller)
	if err != nil {
		return unavailable(err), nil
	}
	c := sandbox.Command{Line: a.Command, Session: call.Caller.Session, Start: call.Caller.Dir, Timeout: limit}
	place, dir := d.place(env, call.Caller, a.Workdir)
	c.Dir = dir
	if why := Refusal(a.Command, place); why != "" {
		r := tools.Failure("The command was not run: %s. This is never allowed, and no approval changes it; don't try it in another form.", why)
		r.Exit, r.Summary = tools.ExitDenied, "refused: "+why
		return r, nil
	}
	if a.Background || promoted {
		return d.background(ctx, call, env, c, place.Dir, a, promoted), nil
	}
	p := &progress{now: d.Now, began: d.Now(), show: func(line string) { tools.Progress(ctx, line) }}
	c.Output = p
	stop := p.keepBeating()
	r, err := env.Exec(ctx, c)
	stop()
	if err != nil {
		if errors.Is(err, sandbox.ErrUnavailable) {
			return unavailable(err), nil
		}
		return tools.Failure("The command was not run: %v", err), nil
	}
	return answer(r), nil
}

// place is where a command would run; dir is the directory that it asks for, "" for none.
func (d Deps) place(env sandbox.Environment, caller tools.Caller, workdir string) (p Place, dir string) {
	p = Place{Dir: startDir(env, caller), Home: env.Home(), Protected: d.Protected}
	if workdir != "" {
		dir = absolute(env, p.Dir, workdir)
		p.Dir = dir
	}
	if env.Backend() == "local" {
		p.DaemonPID = d.DaemonPID // elsewhere the number is another process's
		if p.DaemonPID == 0 {
			p.DaemonPID = os.Getpid()
		}
	}
	return p, dir
}

// startDir is where the session's next command runs.
func startDir(env sandbox.Environment, caller tools.Caller) string {
	dir, known := env.Dir(caller.Session)
	if !known && caller.Dir != "" {
		return caller.Dir
	}
	return dir
}

// absolute resolves a directory that the model named.
func absolute(env sandbox.Environment, dir, name string) string {
	switch {
	case name == "~" || strings.HasPrefix(name, "~/"):
		return path.Join(env.Home(), name[1:])
	case path.IsAbs(name):
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

func unavailable(err error) tools.Result {
	r := tools.JSON(degraded{
		Error: err.Error(), Status: "degraded", ExitCode: -1,
		Hint: "The place where commands run can't be reached. Nothing was run. Try once more; if it stays so, tell the user.",
	})
	r.IsError, r.Exit = true, tools.ExitError
	return r
}

func answer(r sandbox.Result) tools.Result {
	out := result{
		Output: r.Output, ExitCode: r.ExitCode, Cwd: r.Dir, DurationMS: r.Took.Milliseconds(),
		TimedOut: r.TimedOut, Interrupted: r.Interrupted, Note: r.Note,
	}
	if r.Truncated {
		out.Truncated, out.OutputTotalChars, out.FullOutputPath = true, r.TotalChars, r.FullPath
	}
	if r.Detached {
		out.Note = strings.TrimSpace(out.Note + " The command did not end in time after it was killed; it is still being killed.")
	}
	res := tools.JSON(out)
	res.Summary = fmt.Sprintf("exit %d after %s", r.ExitCode, r.Took.Round(10*time.Millisecond))
	switch {
	case r.TimedOut:
		res.Exit = tools.ExitTimeout
	case r.Interrupted:
		res.Exit = tools.ExitCancelled
	}
	return res
}

// progress shows the last line of a stream from time to time.
type progress struct {
	mu    sync.Mutex
	now   func() time.Time
	began time.Time
	show  func(line string)
	line  []byte // the unfinished line, its beginning
	last  string // the last finished one that is not blank
	shown time.Time
}

// Write takes the next text.
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(b)
	for {
		i := bytes.IndexAny(b, "\r\n")
		if i < 0 {
			p.keep(b)
			break
		}
		p.keep(b[:i])
		if line := strings.TrimSpace(strings.ToValidUTF8(string(p.line), "")); line != "" {
			p.last = line
		}
		p.line, b = p.line[:0], b[i+1:]
	}
	if now := p.now(); p.last != "" && now.Sub(p.shown) >= progressEvery {
		p.shown = now
		p.show(p.last)
		p.last = ""
	}
	return n, nil
}

// keepBeating calls beat until stop, which waits for it to end.
func (p *progress) keepBeating() (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(beatEvery)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				p.beat()
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

// beat shows what was held back, or that time passes.
func (p *progress) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if now.Sub(p.shown) < beatEvery {
		return
	}
	line := p.last
	if line == "" {
		line = fmt.Sprintf("running for %s", now.Sub(p.began).Round(time.Second))
	}
	p.shown, p.last = now, ""
	p.show(line)
}

func (p *progress) keep(b []byte) {
	if room := maxProgress - len(p.line); room > 0 {
		p.line = append(p.line, b[:min(room, len(b))]...)
	}
}
