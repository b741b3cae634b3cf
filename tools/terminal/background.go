package terminal

import (
	"context"
	"errors"
	"fmt"

	"herald/tools"
	"herald/tools/process"
	"herald/tools/sandbox"
)

const timeoutText = "Seconds after which the command and everything it started is killed."

// backgroundOptions are the parameters that need Deps.Processes.
const backgroundOptions = `,
    "background": {"type": "boolean", "default": false, "description": "Return at once with a session_id and let it run on; the process tool looks after it. For servers, watchers and long work, in place of &, nohup or setsid. timeout does not apply."},
    "pty": {"type": "boolean", "default": false, "description": "With background: run it on a terminal, for programs that want one."},
    "notify_on_complete": {"type": "boolean", "default": false, "description": "With background: you are told once when it has ended. Then there is no need to wait or poll."},
    "watch_patterns": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": %d}, "maxItems": %d, "description": "With background and without notify_on_complete: you are told when a line of output contains one of these texts. For rare lines, such as 'listening on'; too many matches end it."}`

// parameters is the tool's schema.
func (d Deps) parameters() string {
	if d.Processes == nil {
		return fmt.Sprintf(schema, fmt.Sprintf(`"maximum": %v, "default": %v, "description": %q`, d.MaxTimeout.Seconds(), d.Timeout.Seconds(), timeoutText), "")
	}
	timeout := fmt.Sprintf(`"default": %v, "description": "%s With more than %v it runs in the background without a limit."`, d.Timeout.Seconds(), timeoutText, d.MaxTimeout.Seconds())
	return fmt.Sprintf(schema, timeout, fmt.Sprintf(backgroundOptions, process.MaxPattern, process.MaxPatterns))
}

// backgroundResult is what the model sees of a command that was sent to the background.
type backgroundResult struct {
	SessionID string        `json:"session_id"`
	Status    process.State `json:"status"`
	PID       int           `json:"pid,omitempty"`
	Cwd       string        `json:"cwd"`
	Note      string        `json:"note"`
}

// wrong says what is wrong with options of the background, "" for nothing.
func (a args) wrong(promoted bool) string {
	background := a.Background || promoted
	switch {
	case background:
		return ""
	case a.PTY:
		return "pty: a terminal is there in the background only; set background to true, or leave pty out"
	case a.Notify:
		return "notify_on_complete: the result of a foreground command tells of its end; set background to true, or leave it out"
	case len(a.Watch) > 0:
		return "watch_patterns: only background commands are watched; set background to true, or leave it out"
	}
	return ""
}

// background starts the command as a process of the session. promoted tells that it was not asked for, but the time
// limit is longer than a foreground command may have.
//
// A line such as "A && B &" needs no rewriting: every command is evaluated by a shell of its own that ends at once, and
// the output that the job it left behind holds open is let go after a moment.
func (d Deps) background(ctx context.Context, call tools.Call, env sandbox.Environment, c sandbox.Command, dir string, a args,
	promoted bool) tools.Result {
	if d.Processes == nil {
		return tools.Failure("background: commands can't run in the background here")
	}
	c.Timeout = 0
	if a.PTY {
		c.TTY = &sandbox.TTY{}
	}
	notify := a.Notify || promoted
	v, err := d.Processes.Start(ctx, call.Caller, env, process.Request{Command: c, Dir: dir, Notify: notify, Watch: a.Watch})
	switch {
	case errors.Is(err, sandbox.ErrUnavailable):
		return unavailable(err)
	case err != nil:
		return tools.Failure("The command was not started: %v", err)
	}
	out := backgroundResult{SessionID: v.ID, Status: v.State, PID: v.PID, Cwd: dir}
	switch {
	case promoted:
		out.Note = fmt.Sprintf("A foreground command may take %s at most, so it runs in the background, without a limit. You will be told once when it has ended; go on with other work or end your turn.", d.MaxTimeout)
	case notify:
		out.Note = "You will be told once when it has ended; go on with other work or end your turn."
	case len(a.Watch) > 0:
		out.Note = "You will be told when a line matches."
	default:
		out.Note = "Look after it with the process tool; you will not be told of its end."
	}
	if a.Notify && len(a.Watch) > 0 {
		out.Note += " Nothing is watched for: notify_on_complete goes before watch_patterns."
	}
	r := tools.JSON(out)
	r.Summary = "in the background as " + v.ID
	return r
}
