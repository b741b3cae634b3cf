package cronjob

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"herald/tools"
)

// maxListed is how much of a prompt a list shows, in characters.
const maxListed = 200

// reply is what the model gets. The fields of the job stand beside Job as well, where models look for them.
type reply struct {
	Success   bool     `json:"success"`
	Error     string   `json:"error,omitempty"`
	Message   string   `json:"message,omitempty"`
	Notice    string   `json:"notice,omitempty"`
	JobID     string   `json:"job_id,omitempty"`
	Name      string   `json:"name,omitempty"`
	Skill     string   `json:"skill,omitempty"`
	Skills    []string `json:"skills,omitempty"`
	Schedule  string   `json:"schedule,omitempty"`
	InWords   string   `json:"schedule_in_words,omitempty"`
	Repeat    string   `json:"repeat,omitempty"`
	Deliver   string   `json:"deliver,omitempty"`
	NextRunAt string   `json:"next_run_at,omitempty"`
	NextRuns  []string `json:"next_runs,omitempty"`
	Executed  *bool    `json:"executed,omitempty"`
	Mode      string   `json:"execution_mode,omitempty"`
	Skipped   string   `json:"execution_skipped,omitempty"`
	Failed    string   `json:"execution_error,omitempty"`
	Job       *Job     `json:"job,omitempty"`
	Matches   []Job    `json:"matches,omitempty"`
	Count     *int     `json:"count,omitempty"`
	Jobs      []Job    `json:"jobs,omitzero"`
}

// tool runs the actions.
type tool[C any] struct{ jobs Jobs[C] }

// run does an action. The job is looked for first, so that an unknown action on an unknown job is answered about the job.
func (t tool[C]) run(ctx context.Context, by tools.Caller, a arguments[C]) tools.Result {
	action := strings.ToLower(strings.TrimSpace(a.Action))
	switch action {
	case "create":
		return t.create(ctx, by, a)
	case "list":
		return t.list(ctx, by, a)
	case "resnap":
		return tools.JSON(reply{Success: true, Message: "Nothing to do: the model of a job is pinned by the operator or follows the configuration at each run."})
	}
	ref := strings.TrimSpace(a.JobID)
	if ref == "" {
		return refuse(fmt.Errorf("action %q needs job_id, the id or the name of a job; action list shows them", action))
	}
	job, err := t.jobs.Find(ctx, by, ref)
	if err != nil {
		return refuse(err)
	}
	switch action {
	case "update":
		job, err = t.jobs.Update(ctx, by, job.ID, a.change)
		return told(job, err, "changed")
	case "pause":
		job, err = t.jobs.Pause(ctx, by, job.ID, strings.TrimSpace(a.Reason))
		return told(job, err, "paused")
	case "resume":
		job, err = t.jobs.Resume(ctx, by, job.ID)
		return told(job, err, "resumed")
	case "remove":
		job, err = t.jobs.Remove(ctx, by, job.ID)
		return removed(job, err)
	case "run", "run_now", "trigger":
		return t.runNow(ctx, by, job, a)
	}
	return refuse(fmt.Errorf("there is no action %q; use create, list, update, pause, resume, remove or run", a.Action))
}

func (t tool[C]) create(ctx context.Context, by tools.Caller, a arguments[C]) tools.Result {
	job, err := t.jobs.Create(ctx, by, a.change)
	return told(job, err, "made")
}

// told is the answer about a job that was made or changed: what, when, and the next times.
func told(job Job, err error, what string) tools.Result {
	if err != nil {
		return refuse(err)
	}
	r := about(job)
	r.Message = fmt.Sprintf("Job %q (%s) is %s: %s.", job.Name, job.ID, what, job.InWords)
	switch {
	case job.State == "paused":
		r.Message += " It is paused and does not run until it is resumed."
	case job.NextInWords != "":
		r.Message += " " + job.NextInWords
	}
	if job.LocalOnly {
		r.Notice = "Its output is only kept here and sent to nobody, because deliver is local or names no chat. Set deliver to send it somewhere."
	}
	return answer(r, what)
}

// about fills in what is said of a job in every answer.
func about(job Job) reply {
	return reply{Success: true, JobID: job.ID, Name: job.Name, Skill: job.Skill, Skills: job.Skills, Schedule: job.Schedule,
		InWords: job.InWords,
		Repeat:  job.Repeat, Deliver: job.Deliver, NextRunAt: job.NextRunAt, NextRuns: job.NextRuns, Job: &job}
}

// answer is a reply with a line for progress and logs.
func answer(r reply, summary string) tools.Result {
	res := tools.JSON(r)
	res.Summary = summary + ": " + r.Name
	return res
}

func removed(job Job, err error) tools.Result {
	if err != nil {
		return refuse(err)
	}
	return answer(reply{Success: true, JobID: job.ID, Name: job.Name,
		Message: fmt.Sprintf("Job %q (%s) is removed and will not run any more.", job.Name, job.ID)}, "removed")
}

func (t tool[C]) list(ctx context.Context, by tools.Caller, a arguments[C]) tools.Result {
	all, err := t.jobs.List(ctx, by)
	if err != nil {
		return refuse(err)
	}
	r := reply{Success: true, Jobs: []Job{}}
	ended := 0
	for _, job := range all {
		if job.Ended && !a.All {
			ended++
			continue
		}
		job.Prompt = clip(job.Prompt)
		r.Jobs = append(r.Jobs, job)
	}
	n := len(r.Jobs)
	r.Count = &n
	switch {
	case n == 0:
		r.Message = "There are no jobs."
	case n == 1:
		r.Message = "There is one job."
	default:
		r.Message = fmt.Sprintf("There are %d jobs.", n)
	}
	if ended > 0 {
		r.Message += fmt.Sprintf(" %d more have ended; all: true shows them.", ended)
	}
	res := tools.JSON(r)
	res.Summary = fmt.Sprintf("%d jobs", n)
	return res
}

// runNow begins a run. Its output goes where that of any other run goes, so nothing waits for it here.
func (t tool[C]) runNow(ctx context.Context, by tools.Caller, job Job, a arguments[C]) tools.Result {
	executed, err := t.jobs.Run(ctx, by, job.ID, strings.TrimSpace(a.Prompt))
	r := reply{Success: executed, JobID: job.ID, Name: job.Name, Executed: &executed}
	switch {
	case err != nil:
		r.Error, r.Failed = err.Error(), err.Error()
	case !executed:
		r.Error, r.Skipped = fmt.Sprintf("job %q was not started: it is running already", job.Name), "already running"
	default:
		r.Mode, r.Deliver = "background", job.Deliver
		r.Message = fmt.Sprintf("Job %q (%s) runs now, in the background. Its output goes to %s when it is done; don't wait for it.",
			job.Name, job.ID, job.Deliver)
	}
	res := answer(r, "runs")
	res.IsError = !executed
	return res
}

// refuse is the answer to what can't be done. Its text is for the model.
func refuse(err error) tools.Result {
	r := reply{Error: err.Error()}
	var several *AmbiguousError
	if errors.As(err, &several) {
		for _, job := range several.Matches {
			job.Prompt = clip(job.Prompt)
			r.Matches = append(r.Matches, job)
		}
	}
	res := tools.JSON(r)
	res.IsError = true
	return res
}

func clip(s string) string {
	if r := []rune(s); len(r) > maxListed {
		return string(r[:maxListed-1]) + "…"
	}
	return s
}
