package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"herald/tools"
	"herald/tools/sandbox"
)

// Name is the tool's name.
const Name = "process"

const (
	// DefaultWait bounds the action wait where the tool names no other limit.
	DefaultWait = 180 * time.Second

	pollChars  = 1000
	defaultLog = 200  // lines
	maxLog     = 2000 // lines
	maxInput   = 64 << 10
)

// ToolOptions configure the tool.
type ToolOptions struct {
	// MaxWait is the longest that one call waits for an end; 0 takes DefaultWait.
	MaxWait time.Duration
}

const parameters = `{
  "type": "object",
  "properties": {
    "action": {"type": "string", "enum": ["list", "poll", "log", "wait", "kill", "write", "submit", "close"], "description": "list: the processes of this session. poll: state and newest output. log: output by lines. wait: until it ends or timeout. kill: end it and all it started. write: text to its input as it is. submit: text and Enter. close: end of its input."},
    "session_id": {"type": "string", "description": "The id that terminal gave (proc_...), or its beginning. For all actions but list."},
    "data": {"type": "string", "description": "Text for write and submit."},
    "timeout": {"type": "number", "exclusiveMinimum": 0, "description": "Seconds that wait waits at most; more than %v counts as that."},
    "offset": {"type": "integer", "minimum": 0, "description": "First line of log, from 0. Without it log shows the last lines."},
    "limit": {"type": "integer", "minimum": 1, "maximum": %d, "default": %d, "description": "Lines of log."}
  },
  "required": ["action"],
  "additionalProperties": false
}`

const description = `Look after the background processes that terminal started in this session with background=true. ` +
	`An id may be shortened to what is unique. wait that reaches its timeout is no error: the process runs on. Output is kept up to its newest 200,000 characters.`

type args struct {
	Action    string   `json:"action"`
	SessionID string   `json:"session_id"`
	Data      *string  `json:"data"`
	Timeout   *float64 `json:"timeout"`
	Offset    *int     `json:"offset"`
	Limit     *int     `json:"limit"`
}

// reply is what the model sees of one process.
type reply struct {
	SessionID string `json:"session_id"`
	Command   string `json:"command"`
	Status    State  `json:"status"`
	PID       int    `json:"pid,omitempty"`
	Uptime    int    `json:"uptime_seconds"`
	ExitCode  *int   `json:"exit_code,omitempty"`
	// ProcessRunning is there for wait alone.
	ProcessRunning *bool  `json:"process_running,omitempty"`
	Output         string `json:"output,omitempty"`
	Offset         *int   `json:"offset,omitempty"`
	Lines          *int   `json:"lines,omitempty"`
	TotalLines     *int   `json:"total_lines,omitempty"`
	Written        *int   `json:"bytes_written,omitempty"`
	Note           string `json:"note,omitempty"`
}

// Tool returns the process tool.
func (p *Processes) Tool(o ToolOptions) tools.Tool {
	if o.MaxWait <= 0 {
		o.MaxWait = DefaultWait
	}
	t := &tool{p, o}
	return tools.Tool{
		Spec: tools.Spec{
			Name: Name, Toolset: "terminal", Description: description, Parameters: json.RawMessage(fmt.Sprintf(parameters, o.MaxWait.Seconds(),
				maxLog, defaultLog)),
			Parallel: tools.Sequential, Core: true, Timeout: -1, Emoji: "⚙️", Preview: "session_id",
		},
		Run: t.run,
	}
}

type tool struct {
	p *Processes
	o ToolOptions
}

func (t *tool) run(ctx context.Context, call tools.Call) (tools.Result, error) {
	var a args
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return tools.Result{}, fmt.Errorf("arguments: %w", err)
	}
	if a.Action == "list" {
		return t.list(call.Caller), nil
	}
	if strings.TrimSpace(a.SessionID) == "" {
		return tools.Failure("session_id: action %s needs the id of a process", a.Action), nil
	}
	e, err := t.p.find(call.Caller, a.SessionID)
	if err != nil {
		return tools.Failure("%v", err), nil
	}
	switch a.Action {
	case "poll":
		e.load(ctx)
		return t.poll(e), nil
	case "log":
		e.load(ctx)
		return t.log(e, a), nil
	case "wait":
		e.load(ctx)
		return t.wait(ctx, e, a), nil
	case "kill":
		return t.kill(ctx, e), nil
	case "write", "submit":
		return t.write(e, a), nil
	case "close":
		return t.closeInput(e), nil
	}
	return tools.Failure("action %q is not known", a.Action), nil
}

// describe begins a reply.
func describe(e *entry) reply {
	v := e.view()
	return reply{SessionID: v.ID, Command: shorten(v.Command, 500), Status: v.State, PID: v.PID, Uptime: int(v.Age.Seconds()),
		ExitCode: v.Exit}
}

// text is the kept output as text.
func (e *entry) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return plain(e.out.text())
}

func (t *tool) list(caller tools.Caller) tools.Result {
	all := []reply{}
	for _, e := range t.p.of(func(o Owner) bool { return o.Session == caller.Session }) {
		all = append(all, describe(e))
	}
	r := tools.JSON(struct {
		Processes []reply `json:"processes"`
	}{all})
	r.Summary = fmt.Sprintf("%d processes", len(all))
	return r
}

func (t *tool) poll(e *entry) tools.Result {
	r := describe(e)
	r.Output = tail(e.text(), pollChars)
	return result(r)
}

// result is a reply with a line for the progress bubble.
func result(r reply) tools.Result {
	out := tools.JSON(r)
	out.Summary = string(r.Status)
	if r.ExitCode != nil {
		out.Summary = fmt.Sprintf("%s, exit %d", r.Status, *r.ExitCode)
	}
	return out
}

func (t *tool) log(e *entry, a args) tools.Result {
	r := describe(e) // before the text: an end that it tells of is in the text
	text := strings.TrimSuffix(e.text(), "\n")
	var lines []string
	if text != "" {
		lines = strings.Split(text, "\n")
	}
	limit := defaultLog
	if a.Limit != nil {
		limit = min(*a.Limit, maxLog)
	}
	from := max(0, len(lines)-limit)
	if a.Offset != nil {
		from = min(*a.Offset, len(lines))
	}
	to := min(len(lines), from+limit)
	shown, total := to-from, len(lines)
	r.Offset, r.Lines, r.TotalLines = &from, &shown, &total
	r.Output = strings.Join(lines[from:to], "\n")
	e.mu.Lock()
	if dropped := e.out.total - int64(e.out.chars); dropped > 0 {
		r.Note = fmt.Sprintf("The first %d characters of the output are not kept; lines are counted from what is.", dropped)
	}
	if to == total && r.Status.Ended() {
		e.rec.Told = true
	}
	e.mu.Unlock()
	return result(r)
}

func (t *tool) wait(ctx context.Context, e *entry, a args) tools.Result {
	limit := t.o.MaxWait
	if a.Timeout != nil {
		if *a.Timeout <= 0 {
			return tools.Failure("timeout: %v is not allowed; give more than 0 seconds", *a.Timeout)
		}
		limit = min(limit, time.Duration(*a.Timeout*float64(time.Second)))
	}
	e.mu.Lock()
	e.waiters++ // an end from now on is seen here, so it is not told
	e.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	note := ""
	select {
	case <-e.ended:
	case <-timer.C:
		note = fmt.Sprintf("It still runs after %s of waiting. Wait again, poll it later, or kill it.", limit.Round(time.Second))
	case <-tools.Attention(ctx):
		note = "The wait was cut short because the person has written; it runs on."
	case <-ctx.Done():
		note = "The wait was interrupted; it runs on."
	}
	e.mu.Lock()
	e.waiters--
	e.mu.Unlock()
	r := describe(e)
	running := !r.Status.Ended()
	if r.ProcessRunning = &running; running {
		r.Note = note
	}
	r.Output = tail(e.text(), 2*pollChars)
	return result(r)
}

func (t *tool) kill(ctx context.Context, e *entry) tools.Result {
	if !e.markKilled("") {
		if v := e.view(); v.State.Ended() {
			r := describe(e)
			r.Note = "It had ended before."
			return result(r)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killWait)
	defer cancel()
	if err := e.kill(ctx); err != nil {
		return tools.Failure("%s could not be ended: %v", e.rec.ID, err)
	}
	r := describe(e)
	r.Output = tail(e.text(), pollChars)
	return result(r)
}

func (t *tool) write(e *entry, a args) tools.Result {
	if a.Data == nil {
		return tools.Failure("data: action %s needs the text to write", a.Action)
	}
	if len(*a.Data) > maxInput {
		return tools.Failure("data: %d bytes are too many; at most %d are allowed", len(*a.Data), maxInput)
	}
	e.mu.Lock()
	proc, tty := e.proc, e.rec.TTY
	e.mu.Unlock()
	if proc == nil {
		return notThere(e)
	}
	data := *a.Data
	if a.Action == "submit" {
		data += map[bool]string{true: "\r", false: "\n"}[tty] // what the Enter key sends
	}
	n, err := proc.Write([]byte(data))
	switch {
	case errors.Is(err, sandbox.ErrGone):
		return notThere(e)
	case errors.Is(err, os.ErrDeadlineExceeded):
		r := describe(e)
		r.Written, r.Note = &n, "The process does not read its input now; the rest was not written."
		return result(r)
	case err != nil:
		return tools.Failure("%s: %v", e.rec.ID, err)
	}
	r := describe(e)
	r.Written = &n
	return result(r)
}

// notThere says why a process takes no input.
func notThere(e *entry) tools.Result {
	v := e.view()
	if v.State.Ended() {
		return tools.Failure("%s has ended (%s)", v.ID, v.State)
	}
	return tools.Failure("%s takes no input: it was closed, or the process is not found yet after a restart", v.ID)
}

func (t *tool) closeInput(e *entry) tools.Result {
	e.mu.Lock()
	proc := e.proc
	e.mu.Unlock()
	if proc == nil {
		return notThere(e)
	}
	if err := proc.CloseInput(); errors.Is(err, sandbox.ErrGone) {
		return notThere(e)
	} else if err != nil {
		return tools.Failure("%s: %v", e.rec.ID, err)
	}
	return result(describe(e))
}
