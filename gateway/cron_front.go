package gateway

import (
	"context"
	"encoding/json"
	"errors"

	"herald/cron"
	"herald/gateway/command"
	"herald/gateway/jobs"
	"herald/platforms"
	"herald/sessions"
	"herald/tools"
	"herald/tools/cronjob"
)

// deskOf is the profile's jobs as a viewer may see and change them.
func (g *Gateway) deskOf(who viewer, by cron.By) *jobDesk {
	return &jobDesk{book: g.jobs.Book(), zone: g.zone(), who: who, by: by, run: func(ctx context.Context, id cron.JobID, note string) error {
		_, err := g.jobs.Trigger(ctx, id, note)
		if errors.Is(err, jobs.ErrRunning) {
			return cronjob.ErrRunning
		}
		return err
	}}
}

// jobsOf is the jobs of a conversation: /cron and the tool see the same ones. A new job is made there.
func (g *Gateway) jobsOf(o sessions.Origin) *jobDesk {
	return g.deskOf(viewer{all: g.seesAllJobs(o), at: o}, cron.By{Source: cron.FromChat, Origin: &o})
}

// seesAllJobs reports whether a conversation may show every job: it is one with an admin by name alone, so that what
// other people have asked for is not told to a room.
func (g *Gateway) seesAllJobs(o sessions.Origin) bool {
	return o.ChatType == platforms.DM && g.decide(platforms.Event{Address: o.Address, ChatType: o.ChatType, Scope: o.Scope, ParentChat: o.ParentChat,
		Sender: platforms.User{ID: o.User, Alt: o.UserAlt, Name: o.UserName}, Message: &platforms.Message{}}).Named
}

// jobsOfEvent are the jobs of the sender of a command.
func (g *Gateway) jobsOfEvent(e platforms.Event) command.Jobs { return g.jobsOf(g.origin(e)) }

// jobsOfCaller are the jobs of the conversation that a tool call comes from. In a run of a job that is the conversation
// which has made the job, if any: what a run makes belongs there, and a run sees no more than that (spec A7.9).
func (g *Gateway) jobsOfCaller(ctx context.Context, by tools.Caller) (*jobDesk, error) {
	o, err := g.originOf(ctx, by)
	if err != nil {
		return nil, err
	}
	t, scheduled := g.task(o.Address)
	switch {
	case !scheduled:
		return g.jobsOf(o), nil
	case t.Origin == nil:
		return g.deskOf(viewer{}, cron.By{Source: cron.FromChat}), nil
	}
	return g.deskOf(viewer{at: *t.Origin}, cron.By{Source: cron.FromChat, Origin: t.Origin}), nil
}

// originOf is where the conversation of a call comes from.
func (g *Gateway) originOf(ctx context.Context, by tools.Caller) (o sessions.Origin, err error) {
	if run, ok := g.runner.Running(sessions.TurnID(by.Turn)); ok {
		return run.Origin(), nil
	}
	err = g.store.View(ctx, func(v sessions.View) error {
		s, err := v.Session(sessions.ID(by.Session))
		o = s.Origin
		return err
	})
	return o, err
}

// cronTool is the tool of the profile's jobs. It is registered before they are opened.
func (g *Gateway) cronTool() tools.Tool {
	return cronjob.New(cronTool{desk: g.jobsOfCaller, views: g.jobViews(), printer: g.texts.catalogs.Printer("en")})
}

// jobViews reads what people see of the jobs; it can be asked before there is a scheduler.
func (g *Gateway) jobViews() jobs.Viewer {
	return jobs.Viewer{Store: g.store, Zone: g.zone, Now: g.now}
}

// cronVerb does what the command line asks of jobs; it may see and change all of them.
func (g *Gateway) cronVerb(ctx context.Context, raw json.RawMessage) (any, error) {
	var a CronArgs
	if err := decodeArgs(raw, &a); err != nil {
		return nil, err
	}
	return cronClerk{desk: g.deskOf(viewer{all: true}, cron.By{Source: cron.FromCLI}), views: g.jobViews(), printer: g.texts.catalogs.Printer("en"), look: g.jobs.Tick, status: g.jobs.Status, doctor: g.jobs.Doctor}.do(ctx, a)
}
