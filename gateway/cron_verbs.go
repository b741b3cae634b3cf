package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"herald/cron"
	"herald/gateway/command"
	"herald/gateway/config"
	"herald/gateway/jobs"
	"herald/locales"
	"herald/sessions"
)

// CronArgs is one action on jobs, for the command line.
type CronArgs struct {
	// Action is one of CronActions.
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

// CronActions are what can be asked.
var CronActions = []string{"list", "add", "edit", "pause", "resume", "remove", "run", "history", "status", "incidents", "ack", "doctor", "tick"}

// CronReply is what an action on jobs gives.
type CronReply struct {
	// Zone is whose clock the schedules are read on.
	Zone string    `json:"zone"`
	Jobs []JobLine `json:"jobs"`
	// Ended is how many jobs that have ended a list leaves out.
	Ended     int             `json:"ended,omitempty"`
	Runs      []RunLine       `json:"runs,omitempty"`
	Status    jobs.Status     `json:"status,omitzero"`
	Issues    []jobs.Issue    `json:"issues,omitempty"`
	Incidents []jobs.Incident `json:"incidents,omitempty"`
}

// RunLine is a run as lists show it.
type RunLine struct {
	jobs.RunView
	Name string `json:"name"` // of its job
}

// historyLength is how many runs are shown where nobody says how many.
const historyLength = 20

// cronClerk does what the command line asks of jobs.
type cronClerk struct {
	desk    *jobDesk
	views   jobs.Viewer
	printer *locales.Printer
	// status and doctor are asked of the daemon where one runs; look makes it look for due slots, nil: none runs.
	status func(ctx context.Context) (jobs.Status, error)
	doctor func(ctx context.Context) ([]jobs.Issue, error)
	look   func(ctx context.Context) error
}

// do runs an action.
func (c cronClerk) do(ctx context.Context, a CronArgs) (r CronReply, err error) {
	r = CronReply{Zone: command.ZoneName(c.desk.zone, c.views.Now()), Jobs: []JobLine{}}
	switch a.Action {
	case "list":
		return r, c.list(ctx, a, &r)
	case "history":
		return r, c.history(ctx, a, &r)
	case "add":
		return r, c.add(ctx, a, &r)
	case "status":
		r.Status, err = c.status(ctx)
		return r, err
	case "doctor":
		r.Issues, err = c.doctor(ctx)
		return r, err
	case "incidents":
		r.Incidents, err = c.views.Incidents(ctx, a.All)
		return r, err
	case "ack":
		var found jobs.Incident
		found, err = c.views.Ack(ctx, a.Incident, a.Back)
		r.Incidents = []jobs.Incident{found}
		return r, err
	case "tick":
		if c.look == nil {
			return r, errNoScheduler
		}
		return r, c.look(ctx)
	}
	return r, c.onJob(ctx, a, &r)
}

// onJob runs an action on one job.
func (c cronClerk) onJob(ctx context.Context, a CronArgs, r *CronReply) error {
	j, err := c.desk.Find(ctx, a.Job)
	if err != nil {
		return err
	}
	switch a.Action {
	case "edit":
		j, err = c.edit(ctx, j, a)
	case "pause":
		j, err = c.desk.Pause(ctx, j.ID, a.Note)
	case "resume":
		j, err = c.desk.Resume(ctx, j.ID)
	case "remove":
		j, err = c.desk.Remove(ctx, j.ID)
	case "run":
		err = c.desk.Run(ctx, j.ID, a.Note)
	default:
		return fmt.Errorf("action %q: want one of %s", a.Action, strings.Join(CronActions, ", "))
	}
	if err != nil {
		return err
	}
	return c.show(ctx, r, j)
}

// show puts jobs into a reply.
func (c cronClerk) show(ctx context.Context, r *CronReply, list ...cron.Job) (err error) {
	r.Jobs, err = lines(ctx, c.views, c.printer, list...)
	return err
}

func (c cronClerk) list(ctx context.Context, a CronArgs, r *CronReply) error {
	list, err := c.desk.List(ctx)
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

func (c cronClerk) add(ctx context.Context, a CronArgs, r *CronReply) error {
	change := a.change()
	if a.Phrase != "" {
		schedule, prompt, err := command.ParsePhrase(a.Phrase, c.views.Now(), c.desk.zone)
		if err != nil {
			return err
		}
		if change.Schedule == nil {
			change.Schedule = &schedule
		}
		if change.Prompt == nil && prompt != "" {
			change.Prompt = &prompt
		}
	}
	j, err := c.desk.Create(ctx, change, nil)
	if err != nil {
		return err
	}
	return c.show(ctx, r, j)
}

// change is the change that is asked for, whole.
func (a CronArgs) change() cron.Change {
	change := a.Change
	change.Unattach = a.Unattach
	return change
}

// edit changes a job. What is added to its skills and taken from them is relative to those that it has.
func (c cronClerk) edit(ctx context.Context, j cron.Job, a CronArgs) (cron.Job, error) {
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
	return c.desk.Update(ctx, j.ID, change)
}

func (c cronClerk) history(ctx context.Context, a CronArgs, r *CronReply) error {
	list, err := c.desk.List(ctx)
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
		r.Runs = append(r.Runs, RunLine{RunView: run, Name: names[run.Job]})
	}
	return nil
}

// ManageJobs does what the command line asks of the jobs in a home that no daemon serves.
func ManageJobs(ctx context.Context, store sessions.Store, cfg *config.Config, paths config.Paths, a CronArgs) (CronReply, error) {
	catalogs, err := locales.New(locales.Options{})
	if err != nil {
		return CronReply{}, err
	}
	var idle *jobs.Jobs // its scheduler never runs
	idle = jobs.New(jobs.Options{Store: store, Zone: func() *time.Location { return ZoneOf(cfg) }, Home: paths.Home, SkillsDir: paths.Skills, Now: time.Now,
		Check: func(ctx context.Context, t cron.Task) error { return idle.Check(ctx, t) }})
	c := cronClerk{desk: &jobDesk{book: idle.Book(), zone: ZoneOf(cfg), who: viewer{all: true}, by: cron.By{Source: cron.FromCLI}},
		views: jobs.Viewer{Store: store, Zone: func() *time.Location { return ZoneOf(cfg) }, Now: time.Now}, printer: catalogs.Printer("en")}
	c.status = c.views.Status
	c.doctor = func(ctx context.Context) ([]jobs.Issue, error) {
		issues, err := c.views.Doctor(ctx, jobs.Diagnosis{Check: idle.Check, Failing: cfg.Cron.Nudge})
		return append([]jobs.Issue{{Kind: jobs.IssueScheduler, Text: "no daemon is running, so no job runs", Do: "start one: herald run"}}, issues...), err
	}
	return c.do(ctx, a)
}
