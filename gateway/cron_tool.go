package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"herald/cron"
	"herald/gateway/command"
	"herald/gateway/jobs"
	"herald/locales"
	"herald/sessions"
	"herald/tools"
	"herald/tools/cronjob"
)

// cronTool lets the model make and change the jobs of the conversation that it is in.
type cronTool struct {
	// desk returns the jobs as the conversation of a call may see and change them.
	desk    func(ctx context.Context, by tools.Caller) (*jobDesk, error)
	views   jobs.Viewer
	printer *locales.Printer // of what the model reads
}

// on runs fn with the jobs of a call's conversation and returns the job that it gives, as the model sees it.
func (t cronTool) on(ctx context.Context, by tools.Caller, fn func(d *jobDesk) (cron.Job, error)) (cronjob.Job, error) {
	d, err := t.desk(ctx, by)
	if err != nil {
		return cronjob.Job{}, err
	}
	j, err := fn(d)
	if err != nil {
		return cronjob.Job{}, t.told(ctx, err)
	}
	shown, err := t.shown(ctx, j)
	if err != nil {
		return cronjob.Job{}, err
	}
	return shown[0], nil
}

// told is an error as the tool knows it.
func (t cronTool) told(ctx context.Context, err error) error {
	var several *cron.AmbiguousError
	if !errors.As(err, &several) {
		return err
	}
	matches, err := t.shown(ctx, several.Jobs...)
	if err != nil {
		return err
	}
	return &cronjob.AmbiguousError{Ref: several.Ref, Matches: matches}
}

// Find implements cronjob.Jobs.
func (t cronTool) Find(ctx context.Context, by tools.Caller, ref string) (cronjob.Job, error) {
	return t.on(ctx, by, func(d *jobDesk) (cron.Job, error) { return d.Find(ctx, ref) })
}

// List implements cronjob.Jobs.
func (t cronTool) List(ctx context.Context, by tools.Caller) ([]cronjob.Job, error) {
	d, err := t.desk(ctx, by)
	if err != nil {
		return nil, err
	}
	list, err := d.List(ctx)
	if err != nil {
		return nil, err
	}
	return t.shown(ctx, list...)
}

// Create implements cronjob.Jobs.
func (t cronTool) Create(ctx context.Context, by tools.Caller, c cronjob.Change) (cronjob.Job, error) {
	return t.on(ctx, by, func(d *jobDesk) (cron.Job, error) {
		change := changeOf(c)
		if d.by.Origin == nil {
			change.Deliver = withoutOrigin(change.Deliver)
		}
		return d.Create(ctx, change, nil)
	})
}

// withoutOrigin takes the chat of origin out of the targets of a job that is made where there is none: by a run of a job
// that no chat has made. It would mean a home channel, which nobody has asked for (spec A7.9).
func withoutOrigin(deliver *string) *string {
	if deliver == nil {
		return nil
	}
	parts := strings.Split(*deliver, ",")
	parts = slices.DeleteFunc(parts, func(p string) bool { return strings.EqualFold(strings.TrimSpace(p), cron.DeliverOrigin) })
	kept := cron.JoinDeliver(parts)
	return &kept
}

// Update implements cronjob.Jobs.
func (t cronTool) Update(ctx context.Context, by tools.Caller, id string, c cronjob.Change) (cronjob.Job, error) {
	return t.on(ctx, by, func(d *jobDesk) (cron.Job, error) { return d.Update(ctx, cron.JobID(id), changeOf(c)) })
}

// Pause implements cronjob.Jobs.
func (t cronTool) Pause(ctx context.Context, by tools.Caller, id, why string) (cronjob.Job, error) {
	return t.on(ctx, by, func(d *jobDesk) (cron.Job, error) { return d.Pause(ctx, cron.JobID(id), why) })
}

// Resume implements cronjob.Jobs.
func (t cronTool) Resume(ctx context.Context, by tools.Caller, id string) (cronjob.Job, error) {
	return t.on(ctx, by, func(d *jobDesk) (cron.Job, error) { return d.Resume(ctx, cron.JobID(id)) })
}

// Remove implements cronjob.Jobs.
func (t cronTool) Remove(ctx context.Context, by tools.Caller, id string) (cronjob.Job, error) {
	return t.on(ctx, by, func(d *jobDesk) (cron.Job, error) { return d.Remove(ctx, cron.JobID(id)) })
}

// Run implements cronjob.Jobs.
func (t cronTool) Run(ctx context.Context, by tools.Caller, id, note string) error {
	d, err := t.desk(ctx, by)
	if err != nil {
		return err
	}
	return d.Run(ctx, cron.JobID(id), note)
}

// changeOf is a change as the model asks for it; what is not in it only the operator sets.
func changeOf(c cronjob.Change) cron.Change {
	return cron.Change{Name: c.Name, Schedule: c.Schedule, Repeat: c.Repeat, Prompt: c.Prompt, Skills: c.Skills, Script: c.Script, NoAgent: c.NoAgent, Monitor: c.Monitor,
		ContextFrom: c.ContextFrom, Continuity: c.Continuity, Deliver: c.Deliver, FailureDeliver: c.FailureDeliver, Attach: c.Attach, Toolsets: c.Toolsets,
		Workdir: c.Workdir, Paused: c.Paused, PausedReason: c.PausedReason}
}

// shown are jobs as the model sees them.
func (t cronTool) shown(ctx context.Context, list ...cron.Job) ([]cronjob.Job, error) {
	told, err := lines(ctx, t.views, t.printer, list...)
	out := make([]cronjob.Job, len(told))
	for i, l := range told {
		out[i] = t.one(l)
	}
	return out, err
}

// toolStates are what the tool calls the states of a job (spec A2.11).
var toolStates = map[jobs.State]string{jobs.StateScheduled: "scheduled", jobs.StateRunning: "running", jobs.StatePaused: "paused", jobs.StateDone: "completed",
	jobs.StateBroken: "error", jobs.StateBlocked: "error"}

// toolEnds are what it calls the ends of a run (spec A2.12).
var toolEnds = map[sessions.RunState]string{sessions.RunRan: "ok", sessions.RunFailed: "error", sessions.RunMissed: "missed", sessions.RunSkipped: "skipped"}

func (t cronTool) one(l JobLine) cronjob.Job {
	zone := t.views.Zone()
	out := cronjob.Job{ID: string(l.ID), Name: l.Name, Prompt: l.Task.Prompt, Skills: l.Task.Skills, Script: l.Task.Script, NoAgent: l.Task.NoAgent, Monitor: l.Task.Monitor(),
		Schedule: l.Schedule, InWords: l.InWords, Repeat: l.Repeat, Deliver: l.Task.Deliver, FailDeliver: l.Task.FailureDeliver, Attach: l.Task.Attach,
		ContextFrom: l.Task.ContextFrom, Toolsets: l.Task.Toolsets, Workdir: l.Task.Workdir, State: toolStates[l.State],
		NextInWords: command.NextWords(t.printer, l.Next, zone), LocalOnly: localOnly(l.Task), Ended: l.State == jobs.StateDone}
	if len(out.Skills) > 0 {
		out.Skill = out.Skills[0]
	}
	switch l.State {
	case jobs.StatePaused:
		out.PausedReason = l.Why
	case jobs.StateBroken, jobs.StateBlocked:
		out.LastError = l.Why
	}
	if l.Managed {
		out.Managed = l.Source
	}
	for _, at := range l.Next {
		out.NextRuns = append(out.NextRuns, at.Format(time.RFC3339))
	}
	if len(out.NextRuns) > 0 {
		out.NextRunAt = out.NextRuns[0]
	}
	if last := l.Last; last != nil {
		out.LastRunAt, out.LastStatus = last.Until.In(zone).Format(time.RFC3339), toolEnds[last.State]
		if out.LastStatus == "ok" && l.Undelivered != "" {
			out.LastStatus, out.LastError = "delivery_failed", l.Undelivered
		}
		if last.State == sessions.RunFailed {
			out.LastError = last.Reason
		}
	}
	return out
}
