package desk

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"herald/cron"
	"herald/gateway/jobs/view"
	"herald/locales"
	"herald/sessions"
	"herald/tools"
	"herald/tools/cronjob"
)

// Tool returns the tool by which the model makes and changes the jobs of the conversation that it is in.
func (d *Desk) Tool() tools.Tool {
	return cronjob.New[cron.Change](client{d.OfCaller, d.o.Views, d.o.Printer})
}

// client is the desk as the tool uses it.
type client struct {
	// jobs returns the jobs as the conversation of a call may see and change them.
	jobs    func(ctx context.Context, by tools.Caller) (*Jobs, error)
	views   view.Reader
	printer *locales.Printer // of what the model reads
}

// on runs fn with the jobs of a call's conversation and returns the job that it gives, as the model sees it.
func (t client) on(ctx context.Context, by tools.Caller, fn func(d *Jobs) (cron.Job, error)) (cronjob.Job, error) {
	d, err := t.jobs(ctx, by)
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
func (t client) told(ctx context.Context, err error) error {
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
func (t client) Find(ctx context.Context, by tools.Caller, ref string) (cronjob.Job, error) {
	return t.on(ctx, by, func(mine *Jobs) (cron.Job, error) { return mine.Find(ctx, ref) })
}

// List implements cronjob.Jobs.
func (t client) List(ctx context.Context, by tools.Caller) ([]cronjob.Job, error) {
	d, err := t.jobs(ctx, by)
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
func (t client) Create(ctx context.Context, by tools.Caller, c cron.Change) (cronjob.Job, error) {
	return t.on(ctx, by, func(mine *Jobs) (cron.Job, error) {
		if mine.by.Origin == nil {
			c.Deliver = withoutOrigin(c.Deliver)
		}
		return mine.Create(ctx, c, nil)
	})
}

// withoutOrigin takes the chat of origin out of the targets of a job that is made outside of a chat: by a run of a job
// that no chat has made. It would mean a home channel, which nobody has asked for.
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
func (t client) Update(ctx context.Context, by tools.Caller, id string, c cron.Change) (cronjob.Job, error) {
	return t.on(ctx, by, func(mine *Jobs) (cron.Job, error) { return mine.Update(ctx, cron.JobID(id), c) })
}

// Pause implements cronjob.Jobs.
func (t client) Pause(ctx context.Context, by tools.Caller, id, why string) (cronjob.Job, error) {
	return t.on(ctx, by, func(mine *Jobs) (cron.Job, error) { return mine.Pause(ctx, cron.JobID(id), why) })
}

// Resume implements cronjob.Jobs.
func (t client) Resume(ctx context.Context, by tools.Caller, id string) (cronjob.Job, error) {
	return t.on(ctx, by, func(mine *Jobs) (cron.Job, error) { return mine.Resume(ctx, cron.JobID(id)) })
}

// Remove implements cronjob.Jobs.
func (t client) Remove(ctx context.Context, by tools.Caller, id string) (cronjob.Job, error) {
	return t.on(ctx, by, func(mine *Jobs) (cron.Job, error) { return mine.Remove(ctx, cron.JobID(id)) })
}

// Run implements cronjob.Jobs.
func (t client) Run(ctx context.Context, by tools.Caller, id, note string) (began bool, err error) {
	mine, err := t.jobs(ctx, by)
	if err != nil {
		return false, err
	}
	err = mine.Run(ctx, cron.JobID(id), note)
	if errors.Is(err, cron.ErrRunning) {
		return false, nil
	}
	return err == nil, err
}

// shown are jobs as the model sees them.
func (t client) shown(ctx context.Context, list ...cron.Job) ([]cronjob.Job, error) {
	lines, err := t.views.Lines(ctx, t.printer, list...)
	out := make([]cronjob.Job, len(lines))
	for i, l := range lines {
		out[i] = t.one(l)
	}
	return out, err
}

// toolStates are what the tool calls the states of a job.
var toolStates = map[view.State]string{view.StateScheduled: "scheduled", view.StateRunning: "running", view.StatePaused: "paused",
	view.StateDone: "completed", view.StateBroken: "error", view.StateBlocked: "error"}

// toolEnds are what it calls the ends of a run.
var toolEnds = map[sessions.RunState]string{sessions.RunRan: "ok", sessions.RunFailed: "error", sessions.RunMissed: "missed",
	sessions.RunSkipped: "skipped"}

func (t client) one(l view.Line) cronjob.Job {
	zone := t.views.Zone()
	out := cronjob.Job{ID: string(l.ID), Name: l.Name, Prompt: l.Task.Prompt, Skills: l.Task.Skills, Script: l.Task.Script,
		NoAgent: l.Task.NoAgent, Monitor: l.Task.Monitor(),
		Schedule: l.Schedule, InWords: l.InWords, Repeat: l.Repeat, Deliver: l.Task.Deliver, FailDeliver: l.Task.FailureDeliver,
		Attach:      l.Task.Attach,
		ContextFrom: l.Task.ContextFrom, Toolsets: l.Task.Toolsets, Workdir: l.Task.Workdir, State: toolStates[l.State],
		NextInWords: view.NextWords(t.printer, l.Next, zone), LocalOnly: localOnly(l.Task), Ended: l.State == view.StateDone}
	if len(out.Skills) > 0 {
		out.Skill = out.Skills[0]
	}
	switch l.State {
	case view.StatePaused:
		out.PausedReason = l.Why
	case view.StateBroken, view.StateBlocked:
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

// localOnly reports whether what a job makes is sent to nobody.
func localOnly(t cron.Task) bool {
	tokens, err := cron.ParseDeliver(t.Deliver)
	return err == nil && !slices.ContainsFunc(tokens, func(token cron.Token) bool { return token.Word != cron.DeliverLocal })
}
