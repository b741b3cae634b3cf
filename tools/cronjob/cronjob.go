// Package cronjob is the tool by which the model makes and changes scheduled jobs. It has no rules of its own: it reads
// arguments, asks a Jobs, and says what came of it. It must not know schedules, the store, or who may see which job.
package cronjob

import (
	"context"
	"encoding/json"
	"fmt"

	"herald/tools"
)

// Name is the tool's name, and that of its toolset.
const Name = "cronjob"

// Job is a job as the model sees it. Times are RFC 3339 in the zone of the jobs' clocks.
type Job struct {
	ID      string   `json:"job_id"`
	Name    string   `json:"name"`
	Prompt  string   `json:"prompt,omitempty"`
	Skill   string   `json:"skill,omitempty"` // the first of Skills
	Skills  []string `json:"skills,omitempty"`
	Script  string   `json:"script,omitempty"`
	NoAgent bool     `json:"no_agent,omitempty"`
	Monitor string   `json:"monitor,omitempty"`
	// Schedule is as it was written, InWords what it means.
	Schedule    string   `json:"schedule"`
	InWords     string   `json:"schedule_in_words"`
	Repeat      string   `json:"repeat"` // "forever", or how often and how often it ran
	Deliver     string   `json:"deliver"`
	FailDeliver string   `json:"failure_deliver,omitempty"`
	Attach      *bool    `json:"attach_to_session,omitempty"`
	ContextFrom []string `json:"context_from,omitempty"`
	Toolsets    []string `json:"enabled_toolsets,omitempty"`
	Workdir     string   `json:"workdir,omitempty"`
	// State is scheduled, running, paused, completed or error.
	State        string `json:"state"`
	PausedReason string `json:"paused_reason,omitempty"`
	// Managed names the file that provides the job; it is changed there alone.
	Managed string `json:"managed_by,omitempty"`
	// NextRunAt is the next slot, "" for none; NextRuns are the next three.
	NextRunAt  string   `json:"next_run_at"`
	NextRuns   []string `json:"next_runs,omitempty"`
	LastRunAt  string   `json:"last_run_at,omitempty"`
	LastStatus string   `json:"last_status,omitempty"`
	LastError  string   `json:"last_error,omitempty"`

	// NextInWords says the next times as people read them. LocalOnly: what it makes is kept and sent to nobody.
	NextInWords string `json:"-"`
	LocalOnly   bool   `json:"-"`
	// Ended: no slot will come any more.
	Ended bool `json:"-"`
}

// AmbiguousError says that several jobs have the name that was given.
type AmbiguousError struct {
	Ref     string
	Matches []Job
}

// Error implements error.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%d jobs are called %q; give the job_id of one of the matches", len(e.Matches), e.Ref)
}

// Jobs are the profile's jobs, as far as a caller may see and change them; a job of somebody else is one that is not
// there. The text of an error is for the model. C is what its owner calls a change of a job: a struct into which the
// parameters of the tool are read by their JSON names, where a nil field is left as it is, and an empty text or list takes
// the value off.
type Jobs[C any] interface {
	// Find returns the job of an id or, in any case, of a name; *AmbiguousError when several have it.
	Find(ctx context.Context, by tools.Caller, ref string) (Job, error)
	// List returns the jobs, the oldest first.
	List(ctx context.Context, by tools.Caller) ([]Job, error)
	Create(ctx context.Context, by tools.Caller, c C) (Job, error)
	// Update, Pause, Resume and Remove take the id of a job that Find has returned. Remove returns it as it was.
	Update(ctx context.Context, by tools.Caller, id string, c C) (Job, error)
	Pause(ctx context.Context, by tools.Caller, id, why string) (Job, error)
	Resume(ctx context.Context, by tools.Caller, id string) (Job, error)
	Remove(ctx context.Context, by tools.Caller, id string) (Job, error)
	// Run begins a run beside the schedule and does not wait for its end; note is added to its prompt. began is false when
	// nothing was begun because a run goes on already.
	Run(ctx context.Context, by tools.Caller, id, note string) (began bool, err error)
}

// New returns the tool.
func New[C any](jobs Jobs[C]) tools.Tool {
	t := tool[C]{jobs}
	return tools.Tool{
		Spec: tools.Spec{Name: Name, Toolset: Name, Description: description, Parameters: json.RawMessage(parameters), Core: true,
			Emoji: "⏰", Preview: "action"},
		Run: func(ctx context.Context, call tools.Call) (tools.Result, error) {
			a, err := read[C](call.Args)
			if err != nil {
				return tools.Result{}, fmt.Errorf("read arguments: %w", err)
			}
			return t.run(ctx, call.Caller, a), nil
		},
	}
}
