package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"herald/cron"
	"herald/sessions"
)

// StuckAfter is how long after its last look for due slots the scheduler counts as stuck: it looks every half minute.
const StuckAfter = 2 * time.Minute

// Status is how the scheduler and its jobs are.
type Status struct {
	// Alive says that due slots are looked for; LastLook when they were last, zero before the first time.
	Alive    bool      `json:"alive"`
	LastLook time.Time `json:"last_look,omitzero"`
	// NextDue is the next slot of all jobs; zero when none is planned.
	NextDue time.Time `json:"next_due,omitzero"`
	Counts
	// Running are the jobs that run now.
	Running []JobView `json:"running,omitempty"`
	// Ran, Failed, Missed and Skipped count the slots with that end of the last 24 hours.
	Ran     int `json:"ran"`
	Failed  int `json:"failed"`
	Missed  int `json:"missed"`
	Skipped int `json:"skipped"`
	// Files provide jobs; those with problems can't be used.
	Files []ProvidedFile `json:"files,omitempty"`
}

// Counts are how many jobs there are.
type Counts struct {
	// Jobs counts them by their state; Overdue those whose slot should have begun; Undelivered those whose newest output
	// did not arrive.
	Jobs        map[State]int `json:"jobs"`
	Overdue     int           `json:"overdue"`
	Undelivered int           `json:"undelivered"`
}

func count(list []JobView) Counts {
	c := Counts{Jobs: map[State]int{}}
	for _, j := range list {
		c.Jobs[j.State]++
		if j.Overdue {
			c.Overdue++
		}
		if j.Undelivered != "" {
			c.Undelivered++
		}
	}
	return c
}

// Counts counts the jobs, for what is read often.
func (v Viewer) Counts(ctx context.Context) (c Counts, err error) {
	err = v.Store.View(ctx, func(s sessions.View) error {
		list, err := v.all(s)
		c = count(list)
		return err
	})
	return c, err
}

// Status reads what the store knows. Alive and LastLook are a daemon's to say, and Files too.
func (v Viewer) Status(ctx context.Context) (st Status, err error) {
	err = v.Store.View(ctx, func(s sessions.View) error {
		list, err := v.all(s)
		if err != nil {
			return err
		}
		st.Counts = count(list)
		for _, j := range list {
			if j.Running != nil {
				st.Running = append(st.Running, j)
			}
		}
		if st.NextDue, err = s.NextJob(); err != nil {
			return err
		}
		return v.lately(s, "", st.count)
	})
	return st, err
}

func (st *Status) count(run sessions.Run) {
	slots := max(1, run.Slots)
	switch run.State {
	case sessions.RunRan:
		st.Ran += slots
	case sessions.RunFailed:
		st.Failed += slots
	case sessions.RunMissed:
		st.Missed += slots
	case sessions.RunSkipped:
		st.Skipped += slots
	}
}

// Issue is something that somebody should put right.
type Issue struct {
	// Kind is one of the Issue constants.
	Kind string     `json:"kind"`
	Job  cron.JobID `json:"job,omitempty"`
	Name string     `json:"name,omitempty"`
	// Text says what is wrong, Do what to do about it.
	Text string `json:"text"`
	Do   string `json:"do"`
}

// The kinds of issues.
const (
	IssueScheduler   = "scheduler"   // due slots are not looked for
	IssueFile        = "file"        // a file of jobs can't be used
	IssueBroken      = "broken"      // a job can't be read
	IssueBlocked     = "blocked"     // a job can't begin
	IssueOverdue     = "overdue"     // a slot is past and did not begin
	IssueFailing     = "failing"     // a job fails again and again
	IssueMissed      = "missed"      // the time of a one-shot job has passed without it
	IssueTarget      = "target"      // the output of a job has no place to go to
	IssueHome        = "home"        // it would go to a home channel, and there is none
	IssueUndelivered = "undelivered" // the newest output did not arrive
	IssueMissing     = "missing"     // a script, skill or folder that a job needs is not there
)

// failingAfter is how many failures in a row are an issue where the configuration asks for no notice of them.
const failingAfter = 3

// Diagnosis is what Doctor asks beside the store.
type Diagnosis struct {
	// Places resolves targets; nil asks nothing of them.
	Places cron.Places
	// Check is Book's; nil checks nothing.
	Check func(ctx context.Context, t cron.Task) error
	// Failing is after how many failures in a row a job is an issue; 0 takes 3.
	Failing int
}

// Doctor returns what of the jobs somebody should put right, the worst first. Jobs that are done or paused have no issues
// but that they were missed.
func (v Viewer) Doctor(ctx context.Context, d Diagnosis) (issues []Issue, err error) {
	if d.Failing <= 0 {
		d.Failing = failingAfter
	}
	list, _, err := v.List(ctx, 0, 0)
	if err != nil {
		return nil, err
	}
	for _, j := range list {
		issues = append(issues, v.examine(ctx, d, j)...)
	}
	slices.SortStableFunc(issues, func(a, b Issue) int { return rankIssue(a.Kind) - rankIssue(b.Kind) })
	return issues, nil
}

func rankIssue(kind string) int {
	return slices.Index([]string{IssueScheduler, IssueFile, IssueBroken, IssueBlocked, IssueOverdue, IssueFailing, IssueMissed,
		IssueTarget, IssueHome, IssueUndelivered, IssueMissing}, kind)
}

// examine looks at one job.
func (v Viewer) examine(ctx context.Context, d Diagnosis, j JobView) (issues []Issue) {
	found := func(kind, do, format string, args ...any) {
		issues = append(issues, Issue{Kind: kind, Job: j.ID, Name: j.Name, Text: fmt.Sprintf(format, args...), Do: do})
	}
	change := "change it: herald cron edit " + string(j.ID)
	if j.Managed {
		change = "change it in " + j.Source
	}
	switch {
	case j.State == StateBroken && j.Managed:
		found(IssueBroken, "write "+j.Source+" anew; its jobs are then made anew", "it can't be used: %s", j.Why)
		return issues
	case j.State == StateBroken:
		found(IssueBroken, "remove it (herald cron remove "+string(j.ID)+") and make it anew", "it can't be used: %s", j.Why)
		return issues
	case j.State == StateDone && j.Last != nil && j.Last.State == sessions.RunMissed:
		found(IssueMissed, "run it now if it is still wanted: herald cron run "+string(j.ID), "its time, %s, passed while nobody was there", j.Last.Slot.In(v.Zone()).Format("2006-01-02 15:04 MST"))
		return issues
	case j.State == StateDone || j.State == StatePaused:
		return nil
	case j.State == StateBlocked:
		found(IssueBlocked, "put that right, and then: herald cron run "+string(j.ID), "it can't run: %s", j.Why)
	}
	if j.Overdue {
		found(IssueOverdue, "see whether Herald runs (herald status) and what else runs now (herald cron status)", "its run of %s has not begun", j.Next[0].In(v.Zone()).Format("2006-01-02 15:04 MST"))
	}
	if j.Streak >= d.Failing && j.State != StateBlocked && j.Last != nil {
		found(IssueFailing, "read herald cron history "+string(j.ID)+", and put it right or pause it", "it has failed %d times in a row: %s", j.Streak, cron.FailureLine(j.Last.Reason))
	}
	if j.Undelivered != "" {
		found(IssueUndelivered, "see that the platform and the place are there; the output is kept in a file (herald cron history "+string(j.ID)+")", "its newest output did not arrive everywhere: %s", j.Undelivered)
	}
	if d.Places != nil {
		v.examineTargets(ctx, d.Places, j, change, found)
	}
	if d.Check != nil && j.State != StateBlocked {
		if err := d.Check(ctx, j.Task); err != nil {
			found(IssueMissing, change, "%v", err)
		}
	}
	return issues
}

// examineTargets looks at where the output of a job goes.
func (v Viewer) examineTargets(ctx context.Context, places cron.Places, j JobView, change string, found func(kind, do, format string, args ...any)) {
	for _, field := range []struct{ name, value string }{{"deliver", j.Task.Deliver}, {"failure_deliver", j.Task.FailureDeliver}} {
		if field.value == "" {
			continue
		}
		targets, problems := cron.ResolveTargets(ctx, field.value, j.Task.Origin, places)
		if len(targets) == 0 && len(problems) > 1 {
			problems = problems[:len(problems)-1] // that nothing is left follows from the others
		}
		for _, err := range problems {
			found(IssueTarget, change, "%s: %v", field.name, err)
		}
		tokens, _ := cron.ParseDeliver(field.value)
		origin := slices.ContainsFunc(tokens, func(t cron.Token) bool { return t.Word == cron.DeliverOrigin })
		if origin && len(targets) == 0 && len(problems) == 0 {
			found(IssueHome, "write /sethome in the chat that it is to go to, or "+change, "%s %q goes to a home channel, and there is none: the output is only kept in a file", field.name, field.value)
		}
	}
}

// Viewer reads what people see of the jobs.
func (j *Jobs) Viewer() Viewer {
	return Viewer{Store: j.o.Store, Zone: j.o.Zone, Now: j.o.Now}
}

// Stuck says since when due slots are not looked for any more, and false while they are. Before Run they are not.
func (j *Jobs) Stuck() (since time.Time, stuck bool) {
	pulse := time.UnixMilli(j.pulse.Load())
	return pulse, j.o.Now().Sub(pulse) > StuckAfter
}

// Provided are the files of the home that provide jobs.
func (j *Jobs) Provided() []ProvidedFile { return j.provision.Files() }

// Status is how the scheduler and its jobs are.
func (j *Jobs) Status(ctx context.Context) (Status, error) {
	st, err := j.Viewer().Status(ctx)
	_, stuck := j.Stuck()
	st.Alive, st.Files = !stuck, j.Provided()
	if at := j.looks.Load(); at > 0 {
		st.LastLook = time.UnixMilli(at)
	}
	return st, err
}

// Doctor returns what somebody should put right, the worst first.
func (j *Jobs) Doctor(ctx context.Context) ([]Issue, error) {
	var issues []Issue
	if since, stuck := j.Stuck(); stuck {
		issues = append(issues, Issue{Kind: IssueScheduler, Text: "due jobs are not looked for since " + since.In(j.o.Zone()).Format("2006-01-02 15:04 MST"),
			Do: "read the log for what the scheduler says, and start Herald again"})
	}
	for _, f := range j.Provided() {
		for _, text := range f.Problems {
			issues = append(issues, Issue{Kind: IssueFile, Text: text, Do: "mend the file; it is read again by itself"})
		}
	}
	more, err := j.Viewer().Doctor(ctx, Diagnosis{Places: j.o.Places, Check: j.o.Check, Failing: j.o.Config().Nudge})
	for i := range more {
		more[i].Text = j.o.Redact(more[i].Text)
	}
	return append(issues, more...), err
}
