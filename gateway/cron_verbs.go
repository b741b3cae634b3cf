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
	// Action is list, add, edit, pause, resume, remove, run or history.
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
	// All lists the jobs that have ended as well.
	All   bool `json:"all,omitempty"`
	Limit int  `json:"limit,omitempty"` // of history; 0: 20
}

// CronReply is what an action on jobs gives.
type CronReply struct {
	// Zone is whose clock the schedules are read on.
	Zone string    `json:"zone"`
	Jobs []JobLine `json:"jobs"`
	// Ended is how many jobs that have ended a list leaves out.
	Ended int       `json:"ended,omitempty"`
	Runs  []RunLine `json:"runs,omitempty"`
}

// RunLine is a run as lists show it.
type RunLine struct {
	Job  string `json:"job_id"`
	Name string `json:"name"`
	// Slot is the time that was due; of a stretch of missed ones Until is the last and Slots their number.
	Slot   time.Time         `json:"slot"`
	Until  time.Time         `json:"until,omitzero"`
	Slots  int               `json:"slots,omitempty"`
	Kind   sessions.RunKind  `json:"kind"`
	State  sessions.RunState `json:"state"`
	Reason string            `json:"reason,omitempty"`
	Began  time.Time         `json:"began,omitzero"`
	Ended  time.Time         `json:"ended,omitzero"`
}

// historyLength is how many runs are shown where nobody says how many.
const historyLength = 20

// cronClerk does what the command line asks of jobs.
type cronClerk struct {
	desk    *jobDesk
	printer *locales.Printer
	now     func() time.Time
}

// do runs an action.
func (c cronClerk) do(ctx context.Context, a CronArgs) (CronReply, error) {
	switch a.Action {
	case "list":
		return c.list(ctx, a)
	case "history":
		return c.history(ctx, a)
	case "add":
		return c.add(ctx, a)
	}
	j, err := c.desk.Find(ctx, a.Job)
	if err != nil {
		return CronReply{}, err
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
		return CronReply{}, fmt.Errorf("action %q: want list, add, edit, pause, resume, remove, run or history", a.Action)
	}
	if err != nil {
		return CronReply{}, err
	}
	return c.reply(ctx, j)
}

// reply shows jobs.
func (c cronClerk) reply(ctx context.Context, list ...cron.Job) (CronReply, error) {
	running, err := c.desk.book.Running(ctx)
	r := CronReply{Zone: command.ZoneName(c.desk.zone, c.now()), Jobs: []JobLine{}}
	for _, j := range list {
		r.Jobs = append(r.Jobs, lineOf(c.printer, j, running[j.ID], c.now(), c.desk.zone))
	}
	return r, err
}

func (c cronClerk) list(ctx context.Context, a CronArgs) (CronReply, error) {
	list, err := c.desk.List(ctx)
	if err != nil {
		return CronReply{}, err
	}
	total := len(list)
	if !a.All {
		list = slices.DeleteFunc(list, func(j cron.Job) bool { return j.Done != "" })
	}
	r, err := c.reply(ctx, list...)
	r.Ended = total - len(list)
	return r, err
}

func (c cronClerk) add(ctx context.Context, a CronArgs) (CronReply, error) {
	change := a.change()
	if a.Phrase != "" {
		schedule, prompt, err := command.ParsePhrase(a.Phrase, c.now(), c.desk.zone)
		if err != nil {
			return CronReply{}, err
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
		return CronReply{}, err
	}
	return c.reply(ctx, j)
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

func (c cronClerk) history(ctx context.Context, a CronArgs) (CronReply, error) {
	list, err := c.desk.List(ctx)
	if err != nil {
		return CronReply{}, err
	}
	var id cron.JobID
	if a.Job != "" {
		j, err := cron.Pick(list, a.Job)
		if err != nil {
			return CronReply{}, err
		}
		id = j.ID
	}
	limit := a.Limit
	if limit < 1 {
		limit = historyLength
	}
	runs, err := c.desk.Runs(ctx, id, limit)
	if err != nil {
		return CronReply{}, err
	}
	r := CronReply{Zone: command.ZoneName(c.desk.zone, c.now()), Jobs: []JobLine{}, Runs: []RunLine{}}
	for _, run := range runs {
		r.Runs = append(r.Runs, runLine(list, run, c.desk.zone))
	}
	return r, nil
}

// runLine is a run for lists. list are the jobs, for its name.
func runLine(list []cron.Job, run sessions.Run, zone *time.Location) RunLine {
	l := RunLine{Job: string(run.Job), Slot: run.Slot.In(zone), Kind: run.Kind, State: run.State, Reason: run.Reason}
	if i := slices.IndexFunc(list, func(j cron.Job) bool { return j.ID == run.Job }); i >= 0 {
		l.Name = list[i].Name
	}
	if run.Slots > 1 {
		l.Until, l.Slots = run.Until.In(zone), run.Slots
	}
	if !run.Began.IsZero() {
		l.Began = run.Began.In(zone)
	}
	if !run.Ended.IsZero() {
		l.Ended = run.Ended.In(zone)
	}
	return l
}

// ManageJobs does what the command line asks of the jobs in a home that no daemon serves.
func ManageJobs(ctx context.Context, store sessions.Store, cfg *config.Config, paths config.Paths, a CronArgs) (CronReply, error) {
	catalogs, err := locales.New(locales.Options{})
	if err != nil {
		return CronReply{}, err
	}
	var idle *jobs.Jobs // its scheduler never runs
	idle = jobs.New(jobs.Options{Store: store, Zone: func() *time.Location { return zoneOf(cfg) }, Home: paths.Home, SkillsDir: paths.Skills, Now: time.Now,
		Check: func(ctx context.Context, t cron.Task) error { return idle.Check(ctx, t) }})
	desk := &jobDesk{book: idle.Book(), zone: zoneOf(cfg), who: viewer{all: true}, by: cron.By{Source: cron.FromCLI}}
	return cronClerk{desk: desk, printer: catalogs.Printer("en"), now: time.Now}.do(ctx, a)
}
