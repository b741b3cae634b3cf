package cron

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"herald/platforms"
	"herald/sessions"
)

// Task is what a run of a job does and where its output goes: the part of a Plan that the scheduler does not read.
type Task struct {
	// Prompt is what the agent is asked. It may be empty where Skills or Script say what is to be done.
	Prompt string   `json:"prompt,omitempty"`
	Skills []string `json:"skills,omitempty"` // names, read in this order
	// Script is a path below the home's scripts folder. Its output goes before the prompt or, with NoAgent, is the output.
	Script  string `json:"script,omitempty"`
	NoAgent bool   `json:"no_agent,omitempty"`
	// MonitorScript and MonitorURL, at most one of them, are watched: a run does something only when what they give has
	// changed since the last one.
	MonitorScript string `json:"monitor_script,omitempty"`
	MonitorURL    string `json:"monitor_url,omitempty"`
	// ContextFrom are jobs whose newest output the prompt begins with; Self is this one.
	ContextFrom []string `json:"context_from,omitempty"`
	// Deliver says where the output goes (see ParseDeliver); FailureDeliver, where set, replaces it for failures.
	Deliver        string `json:"deliver,omitempty"`
	FailureDeliver string `json:"failure_deliver,omitempty"`
	// Origin is the chat that the job was made in; nil for one made elsewhere.
	Origin *sessions.Origin `json:"origin,omitempty"`
	// Attach is whether what is delivered becomes part of the conversation there; nil follows cron.mirror_delivery.
	Attach *bool `json:"attach_to_session,omitempty"`
	// Toolsets are those that the agent has; empty: the usual ones.
	Toolsets []string `json:"enabled_toolsets,omitempty"`
	// Workdir is an absolute path in which tools and scripts start; empty: the usual ones.
	Workdir string `json:"workdir,omitempty"`
	// Model and Reasoning pin what the configuration says otherwise.
	Model     string `json:"model,omitempty"`
	Reasoning string `json:"reasoning_effort,omitempty"`
}

// Self is the word for the job itself in ContextFrom.
const Self = "self"

// The words of Deliver that do not name a platform.
const (
	DeliverLocal  = platforms.TargetLocal  // the output is only kept
	DeliverOrigin = platforms.TargetOrigin // the chat the job was made in, else the first home channel
	DeliverAll    = "all"                  // every home channel
)

// The bounds of a task's texts.
const (
	MaxPrompt = 64 << 10 // bytes
	MaxName   = 120      // characters
)

// TaskError is a job that can't be made or changed so: which field, and why.
type TaskError struct {
	Field  string
	Value  string // shortened; empty where it does not help
	Reason string
}

// Error implements error.
func (e *TaskError) Error() string {
	if e.Value == "" {
		return e.Field + ": " + e.Reason
	}
	return fmt.Sprintf("%s %q: %s", e.Field, e.Value, e.Reason)
}

func wrong(field, value, format string, args ...any) error {
	if utf8.RuneCountInString(value) > 80 {
		value = string([]rune(value)[:79]) + "…"
	}
	return &TaskError{Field: field, Value: value, Reason: fmt.Sprintf(format, args...)}
}

// Empty reports whether there is nothing to do.
func (t Task) Empty() bool {
	return strings.TrimSpace(t.Prompt) == "" && len(t.Skills) == 0 && strings.TrimSpace(t.Script) == ""
}

// Monitored reports whether a run depends on something that is watched.
func (t Task) Monitored() bool { return t.Monitor() != "" }

// Monitor is what a run looks at, as its author wrote it: a URL or a script; "" for nothing.
func (t Task) Monitor() string { return cmp.Or(t.MonitorURL, t.MonitorScript) }

// Continues reports whether the job reads its own newest output.
func (t Task) Continues() bool { return slices.Contains(t.ContextFrom, Self) }

// Validate reports what keeps the task from being run, as a *TaskError. It looks at the task alone: whether a script,
// a skill or a folder is there is asked elsewhere.
func (t Task) Validate() error {
	switch {
	case t.Empty():
		return wrong("prompt", "", "the job has nothing to do: give a prompt, skills or a script")
	case len(t.Prompt) > MaxPrompt:
		return wrong("prompt", "", "it has %d bytes; at most %d are allowed", len(t.Prompt), MaxPrompt)
	case t.NoAgent && t.Script == "":
		return wrong("no_agent", "", "a job without an agent needs a script")
	case t.MonitorScript != "" && t.MonitorURL != "":
		return wrong("monitor", "", "a job watches either a script or a URL, not both")
	case t.NoAgent && t.Monitored():
		return wrong("monitor", "", "a job without an agent watches nothing: let its script decide and print nothing")
	}
	for _, ref := range t.ContextFrom {
		if ref != Self && !ValidJobID(ref) {
			return wrong("context_from", ref, "it is no job's id (12 characters of 0-9 and a-f) and not %q", Self)
		}
	}
	if err := ScanPrompt(t.Prompt); err != nil {
		return wrong("prompt", "", "%v", err)
	}
	if _, err := ParseDeliver(t.Deliver); err != nil {
		return wrong("deliver", t.Deliver, "%v", err)
	}
	if _, err := ParseDeliver(t.FailureDeliver); err != nil {
		return wrong("failure_deliver", t.FailureDeliver, "%v", err)
	}
	if t.Workdir != "" && !strings.HasPrefix(t.Workdir, "/") {
		return wrong("workdir", t.Workdir, "it must be an absolute path")
	}
	return nil
}

// ReadTask reads the task of a plan.
func (p Plan) ReadTask() (Task, error) {
	var t Task
	if len(bytes.TrimSpace(p.Task)) == 0 {
		return t, nil
	}
	if err := json.Unmarshal(p.Task, &t); err != nil {
		return t, fmt.Errorf("what the job does can't be read: %w", err)
	}
	return t, nil
}

// TitleOf is the name of a job that was given none: the beginning of its prompt, else its first skill or its script.
func TitleOf(t Task) string {
	title := strings.Join(strings.Fields(t.Prompt), " ")
	switch {
	case title != "":
	case len(t.Skills) > 0:
		title = t.Skills[0]
	case t.Script != "":
		title = t.Script
	default:
		title = "cron job"
	}
	if r := []rune(title); len(r) > 50 {
		title = strings.TrimSpace(string(r[:50]))
	}
	return title
}

// ValidJobID reports whether a text has the form of a job's id: 12 characters of 0-9 and a-f.
func ValidJobID(id string) bool {
	if len(id) != 12 {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') })
}
