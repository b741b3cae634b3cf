package desk

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"herald/cron"
	"herald/gateway/jobs/view"
	"herald/locales"
	"herald/sessions"
)

// Args is one action on jobs, for the command line.
type Args struct {
	// Action is one of Actions.
	Action string `json:"action"`
	// Job is an id or a name; history takes "" for all.
	Job string `json:"job,omitempty"`
	// Phrase is a time and a prompt in one, for add; Change wins over it.
	Phrase string      `json:"phrase,omitempty"`
	Change cron.Change `json:"change"`
	// Unattach makes attach_to_session follow the configuration again.
	Unattach bool `json:"unattach,omitempty"`
	// AddSkills and RemoveSkills change the list of skills that edit finds.
	AddSkills    []string `json:"add_skills,omitempty"`
	RemoveSkills []string `json:"remove_skills,omitempty"`
	// Note is why a job is paused, or what is added to the prompt of a run.
	Note string `json:"note,omitempty"`
	// All lists the jobs that have ended, and the incidents that are over, as well.
	All   bool `json:"all,omitempty"`
	Limit int  `json:"limit,omitempty"` // of history; 0: 20
	// Incident is the id of one that is acknowledged; Back takes that back.
	Incident string `json:"incident,omitempty"`
	Back     bool   `json:"back,omitempty"`
}

// Actions are what can be asked.
var Actions = []string{"list", "add", "edit", "pause", "resume", "remove", "run", "history", "status", "incidents", "ack", "doctor", "tick"}

// Reply is what an action on jobs gives.
type Reply struct {
	// Zone is whose clock the schedules are read on.
	Zone string      `json:"zone"`
	Jobs []view.Line `json:"jobs"`
	// Ended is how many jobs that have ended a list leaves out.
	Ended     int             `json:"ended,omitempty"`
	Runs      []RunLine       `json:"runs,omitempty"`
	Status    view.Status     `json:"status,omitzero"`
	Issues    []view.Issue    `json:"issues,omitempty"`
	Incidents []view.Incident `json:"incidents,omitempty"`
}

// RunLine is a run as lists show it.
type RunLine struct {
	view.Run
	Name string `json:"name"` // of its job
}

// historyLength is how many runs are shown where nobody says how many.
const historyLength = 20

// Scheduler is what the command line asks of the daemon, beside the jobs themselves.
type Scheduler interface {
	Status(ctx context.Context) (view.Status, error)
	Doctor(ctx context.Context) ([]view.Issue, error)
	// Tick looks for due slots now; ErrNoScheduler where none is looked for.
	Tick(ctx context.Context) error
}

// Clerk does what the command line asks of jobs. It may see and change all of them.
type Clerk struct {
	jobs      *Jobs
	views     view.Reader
	printer   *locales.Printer
	scheduler Scheduler
}

// Clerk returns the clerk of the jobs.
func (d *Desk) Clerk(s Scheduler) Clerk {
	return Clerk{jobs: d.All(), views: d.o.Views, printer: d.o.Printer, scheduler: s}
}

// Do runs an action. The errors are those of cron.Book, ErrNoScheduler, and one that names the actions there are.
func (c Clerk) Do(ctx context.Context, a Args) (r Reply, err error) {
	r = Reply{Zone: view.ZoneName(c.jobs.Zone(), c.views.Now()), Jobs: []view.Line{}}
	switch a.Action {
	case "list":
		return r, c.list(ctx, a, &r)
	case "history":
		return r, c.history(ctx, a, &r)
	case "add":
		return r, c.add(ctx, a, &r)
	case "status":
		r.Status, err = c.scheduler.Status(ctx)
		return r, err
	case "doctor":
		r.Issues, err = c.scheduler.Doctor(ctx)
		return r, err
	case "incidents":
		r.Incidents, err = c.views.Incidents(ctx, a.All)
		return r, err
	case "ack":
		var found view.Incident
		found, err = c.views.Ack(ctx, a.Incident, a.Back)
		r.Incidents = []view.Incident{found}
		return r, err
	case "tick":
		return r, c.scheduler.Tick(ctx)
	}
	return r, c.onJob(ctx, a, &r)
}

// onJob runs an action on one job.
func (c Clerk) onJob(ctx context.Context, a Args, r *Reply) error {
	j, err := c.jobs.Find(ctx, a.Job)
	if err != nil {
		return err
	}
	switch a.Action {
	case "edit":
		j, err = c.edit(ctx, j, a)
	case "pause":
		j, err = c.jobs.Pause(ctx, j.ID, a.Note)
	case "resume":
		j, err = c.jobs.Resume(ctx, j.ID)
	case "remove":
		j, err = c.jobs.Remove(ctx, j.ID)
	case "run":
		err = c.jobs.Run(ctx, j.ID, a.Note)
	default:
		return fmt.Errorf("action %q: want one of %s", a.Action, strings.Join(Actions, ", "))
	}
	if err != nil {
		return err
	}
	return c.show(ctx, r, j)
}

// show puts jobs into a reply.
func (c Clerk) show(ctx context.Context, r *Reply, list ...cron.Job) (err error) {
	r.Jobs, err = c.views.Lines(ctx, c.printer, list...)
	return err
}

func (c Clerk) list(ctx context.Context, a Args, r *Reply) error {
	list, err := c.jobs.List(ctx)
	if err != nil {
		return err
	}
	total := len(list)
	if !a.All {
		list = slices.DeleteFunc(list, func(j cron.Job) bool { return j.Done != "" })
	}
	r.Ended = total - len(list)
	return c.show(ctx, r, list...)
}

func (c Clerk) add(ctx context.Context, a Args, r *Reply) error {
	change := a.change()
	if a.Phrase != "" {
		said, err := cron.ParseSentence(a.Phrase, c.views.Now(), c.jobs.Zone())
		if err != nil {
			return err
		}
		if change.Schedule == nil {
			change.Schedule = &said.Schedule
		}
		if change.Prompt == nil && said.Prompt != "" {
			change.Prompt = &said.Prompt
		}
	}
	j, err := c.jobs.Create(ctx, change, nil)
	if err != nil {
		return err
	}
	return c.show(ctx, r, j)
}

// change is the change that is asked for, whole.
func (a Args) change() cron.Change {
	change := a.Change
	change.Unattach = a.Unattach
	return change
}

// edit changes a job. What is added to its skills and taken from them is relative to those that it has.
func (c Clerk) edit(ctx context.Context, j cron.Job, a Args) (cron.Job, error) {
	change := a.change()
	if len(a.AddSkills)+len(a.RemoveSkills) > 0 {
		t, err := j.Plan.ReadTask()
		if err != nil {
			return j, err
		}
		have := t.Skills
		if change.Skills != nil {
			have = *change.Skills
		}
		list := slices.DeleteFunc(append(slices.Clone(have), a.AddSkills...), func(s string) bool {
			return slices.ContainsFunc(a.RemoveSkills, func(r string) bool { return strings.EqualFold(r, s) })
		})
		change.Skills = &list
	}
	return c.jobs.Update(ctx, j.ID, change)
}

func (c Clerk) history(ctx context.Context, a Args, r *Reply) error {
	list, err := c.jobs.List(ctx)
	if err != nil {
		return err
	}
	q := sessions.RunQuery{Limit: a.Limit}
	if q.Limit < 1 {
		q.Limit = historyLength
	}
	if a.Job != "" {
		j, err := cron.Pick(list, a.Job)
		if err != nil {
			return err
		}
		q.Job = j.ID
	}
	runs, err := c.views.Runs(ctx, q)
	if err != nil {
		return err
	}
	names := make(map[cron.JobID]string, len(list))
	for _, j := range list {
		names[j.ID] = j.Name
	}
	r.Runs = []RunLine{}
	for _, run := range runs {
		r.Runs = append(r.Runs, RunLine{Run: run, Name: names[run.Job]})
	}
	return nil
}
