package view

import (
	"context"
	"fmt"
	"slices"

	"herald/cron"
	"herald/sessions"
)

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
func (v Reader) Doctor(ctx context.Context, d Diagnosis) (issues []Issue, err error) {
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
func (v Reader) examine(ctx context.Context, d Diagnosis, j Job) (issues []Issue) {
	found := func(kind, do, format string, args ...any) {
		issues = append(issues, Issue{Kind: kind, Job: j.ID, Name: j.Name, Text: fmt.Sprintf(format, args...), Do: do})
	}
	change := "change it: herald cron edit " + string(j.ID)
	if j.Managed {
		change = "change it in " + j.Source
	}
	switch {
	case j.State == StateBroken && j.Managed:
		found(IssueBroken, "repair "+j.Source+"; its jobs are then made again", "it can't be used: %s", j.Why)
		return issues
	case j.State == StateBroken:
		found(IssueBroken, "remove it (herald cron remove "+string(j.ID)+") and make a new one", "it can't be used: %s", j.Why)
		return issues
	case j.State == StateDone && j.Last != nil && j.Last.State == sessions.RunMissed:
		found(IssueMissed, "run it now if it is still wanted: herald cron run "+string(j.ID),
			"its time, %s, passed while nobody was there", j.Last.Slot.In(v.Zone()).Format("2006-01-02 15:04 MST"))
		return issues
	case j.State == StateDone || j.State == StatePaused:
		return nil
	case j.State == StateBlocked:
		found(IssueBlocked, "put that right, and then: herald cron run "+string(j.ID), "it can't run: %s", j.Why)
	}
	if j.Overdue {
		found(IssueOverdue, "see whether Herald runs (herald status) and what else runs now (herald cron status)",
			"its run of %s has not begun", j.Next[0].In(v.Zone()).Format("2006-01-02 15:04 MST"))
	}
	if j.Streak >= d.Failing && j.State != StateBlocked && j.Last != nil {
		found(IssueFailing, "read herald cron history "+string(j.ID)+", and put it right or pause it",
			"it has failed %d times in a row: %s", j.Streak, cron.FailureLine(j.Last.Reason))
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
func (v Reader) examineTargets(ctx context.Context, places cron.Places, j Job, change string,
	found func(kind, do, format string, args ...any)) {
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
			found(IssueHome, "write /sethome in the chat that it is to go to, or "+change,
				"%s %q goes to a home channel, and there is none: the output is only kept in a file", field.name, field.value)
		}
	}
}
