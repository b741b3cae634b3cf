package desk

import (
	"context"
	"errors"
	"time"

	"herald/cron"
	"herald/gateway/jobs"
	"herald/gateway/jobs/view"
	"herald/locales"
	"herald/platforms"
	"herald/sessions"
	"herald/tools"
)

// ErrNoScheduler refuses what only a running daemon can do.
var ErrNoScheduler = errors.New("only a running daemon can run a job: start one with herald run")

// Runner begins runs of jobs; *cron.Requests is one.
type Runner interface {
	// Run begins a run beside the plan and returns when it has begun; cron.ErrRunning while one goes on.
	Run(ctx context.Context, id cron.JobID, note string) (sessions.Run, error)
}

// Options are what a Desk works with. Those without a remark must be set.
type Options struct {
	Store  sessions.Store
	Book   *cron.Book
	Runner Runner // nil: no scheduler works, and nothing can be run
	Views  view.Reader
	// Printer speaks English: it writes what the model and the command line read.
	Printer *locales.Printer
	// KeyOptions say how the rooms of several people are split into conversations. nil on the command line.
	KeyOptions func() sessions.KeyOptions
	// Named reports whether the person of a conversation is an admin by name. nil: nobody is.
	Named func(o sessions.Origin) bool
}

// Desk gives out the jobs of a profile, to each viewer their own. It is safe for concurrent use.
type Desk struct{ o Options }

// New returns a Desk.
func New(o Options) *Desk { return &Desk{o} }

// Of returns the jobs of a conversation: /cron and the tool see the same ones. A new job is made there. An admin by name,
// alone in a direct chat, sees all jobs; in a room that would show it what other people have asked for.
func (d *Desk) Of(o sessions.Origin) *Jobs {
	all := d.o.Named != nil && o.ChatType == platforms.DM && d.o.Named(o)
	return d.jobs(viewer{all: all, at: o}, cron.By{Source: cron.FromChat, Origin: &o})
}

// OfEvent returns the jobs of the sender of a command.
func (d *Desk) OfEvent(e platforms.Event) *Jobs {
	return d.Of(sessions.OriginOf(e, d.o.KeyOptions()))
}

// All returns every job, for the command line and the pages of the owner.
func (d *Desk) All() *Jobs {
	return d.jobs(viewer{all: true}, cron.By{Source: cron.FromCLI})
}

// OfCaller returns the jobs of the conversation that a tool call comes from. In a run of a job that is the conversation
// which has made the job, if any: what a run makes belongs there, and a run sees no more than that.
func (d *Desk) OfCaller(ctx context.Context, by tools.Caller) (*Jobs, error) {
	o, err := d.origin(ctx, by)
	if err != nil {
		return nil, err
	}
	t, scheduled, err := jobs.TaskAt(ctx, d.o.Store, o.Address)
	switch {
	case err != nil:
		return nil, err
	case !scheduled:
		return d.Of(o), nil
	case t.Origin == nil:
		return d.jobs(viewer{}, cron.By{Source: cron.FromChat}), nil
	}
	return d.jobs(viewer{at: *t.Origin}, cron.By{Source: cron.FromChat, Origin: t.Origin}), nil
}

// origin is where the newest message comes from that a call's turn answers; outside of a turn, its session.
func (d *Desk) origin(ctx context.Context, by tools.Caller) (o sessions.Origin, err error) {
	err = d.o.Store.View(ctx, func(v sessions.View) error {
		if by.Turn != 0 {
			items, err := v.InboxOf(sessions.TurnID(by.Turn))
			if err != nil {
				return err
			}
			if n := len(items); n > 0 {
				o = sessions.OriginOf(items[n-1].Event, d.o.KeyOptions())
				return nil
			}
		}
		s, err := v.Session(sessions.ID(by.Session))
		o = s.Origin
		return err
	})
	return o, err
}

func (d *Desk) jobs(who viewer, by cron.By) *Jobs {
	return &Jobs{book: d.o.Book, zone: d.o.Views.Zone, who: who, by: by, runner: d.o.Runner}
}

// Zone is that of the jobs' clocks.
func (d *Desk) Zone() *time.Location { return d.o.Views.Zone() }
