package gateway

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"herald/cron"
	"herald/gateway/accounts"
	"herald/gateway/config"
	"herald/gateway/jobs"
	"herald/gateway/jobs/brief"
	"herald/gateway/jobs/desk"
	"herald/gateway/jobs/page"
	"herald/gateway/jobs/provision"
	"herald/gateway/jobs/view"
	"herald/gateway/turn/show"
	"herald/gateway/workspace"
	"herald/platforms"
	"herald/platforms/fetch"
	"herald/platforms/format"
	"herald/sessions"
)

// scheduled are the parts of the scheduled jobs, in the order in which they are made: each knows only those above it.
type scheduled struct {
	scripts  *jobs.Scripts
	sources  *jobs.Sources
	requests *cron.Requests
	book     *cron.Book
	views    view.Reader
	desk     *desk.Desk
	briefs   *brief.Writer
	ends     *jobs.Ends
	jobs     *jobs.Jobs
}

// Scheduled are the parts of the scheduled jobs for a program that runs the daemon in its own process: Book makes, changes
// and lists jobs, Requests runs one now, Views says how they are, Jobs runs what is due.
type Scheduled struct {
	Book     *cron.Book
	Requests *cron.Requests
	Views    view.Reader
	Jobs     *jobs.Jobs
}

// Scheduled returns the parts of the scheduled jobs. They may be used from any goroutine until Run has returned.
func (g *Gateway) Scheduled() Scheduled {
	s := &g.scheduled
	return Scheduled{Book: s.book, Requests: s.requests, Views: s.views, Jobs: s.jobs}
}

// openJobs makes what reads and changes jobs, ends their runs and brings the output to its places. It needs the accounts and
// the models; the names of toolsets are asked for when a job is made.
func (g *Gateway) openJobs() {
	p, s := g.opt.Paths, &g.scheduled
	s.scripts = jobs.NewScripts(jobs.ScriptOptions{Dir: filepath.Join(p.Home, jobs.ScriptsDir),
		Timeout: func() time.Duration { return g.cfg().Cron.ScriptTimeout },
		Deny:    workspace.SecretNames(g.cfg(), os.Environ()), Passthrough: g.cfg().Terminal.EnvPassthrough, Redact: g.opt.Redactor.String})
	s.sources = &jobs.Sources{Store: g.store, Home: p.Home, SkillsDir: p.Skills, Scripts: s.scripts, Log: g.log}
	s.requests = cron.NewRequests()
	s.book = cron.NewBook(cron.BookOptions{Store: g.store, Zone: g.zone, Check: g.checkTask, Changed: s.requests.Poke, Now: g.now})
	s.views = view.Reader{Store: g.store, Zone: g.zone, Now: g.now}
	s.desk = desk.New(desk.Options{Store: g.store, Book: s.book, Runner: s.requests, Views: s.views,
		Printer: g.texts.Printer("en"), KeyOptions: g.terms.KeyOptions, Named: g.entrance.Named})
	account := platforms.AccountID(cmp.Or(g.opt.Profile, config.DefaultProfile))
	s.briefs = brief.New(brief.Options{
		Store: g.store, Account: account, KeyOptions: g.terms.KeyOptions, Describe: g.accounts.Describe, Places: g.directory, Rules: g.rules,
		Config: g.briefConfig, Zone: g.zone,
		Printer: g.printer, Metrics: g.metrics,
		Render: func(at platforms.Address, markdown string) []platforms.Text {
			return format.Render(markdown, g.accounts.Traits(at).Text)
		},
		Attach: g.attach, Strip: show.StripMedia, Redact: g.opt.Redactor.String, Log: g.log, Now: g.now,
	})
	s.ends = jobs.NewEnds(jobs.EndOptions{Store: g.store, Briefs: s.briefs, Account: account, Profile: g.opt.Profile,
		KeyOptions: g.terms.KeyOptions, Config: g.jobsConfig,
		Requests: s.requests, Metrics: g.metrics, Redact: g.opt.Redactor.String, Home: g.opt.Paths.Home, Log: g.log, Now: g.now})
}

// startJobs makes what begins runs: it needs the router and the outbox. Nothing runs before runJobs.
func (g *Gateway) startJobs() {
	s := &g.scheduled
	folder := provision.New(provision.Options{Home: g.opt.Paths.Home, Book: s.book, Platforms: g.directory.Platforms,
		Redact: g.opt.Redactor.String, Log: g.log, Now: g.now})
	s.jobs = jobs.New(jobs.Options{
		Ends: s.ends, Folder: folder, Router: g.router, Outbox: g.worker, Places: g.directory, Sources: s.sources, Scripts: s.scripts,
		Watcher: &jobs.Watcher{Fetch: func() fetch.Options { return accounts.Downloads(g.cfg(), "") }, Scripts: s.scripts, Redact: g.opt.Redactor.String},
		Zone:    g.zone, Ready: g.ready, Check: g.checkTask, Log: g.log,
	})
}

func (g *Gateway) runJobs(ctx context.Context) {
	defer g.wg.Done()
	if err := g.scheduled.jobs.Run(ctx); err != nil {
		g.log.Error().Err(err).Msg("cron: the scheduler has ended; no job runs until the next start")
	}
}

// zone is whose clock schedules are read on.
func (g *Gateway) zone() *time.Location { return g.cfg().Zone() }

func (g *Gateway) jobsConfig() jobs.Config {
	c := g.cfg().Cron
	return jobs.Config{Preflight: c.Preflight, CatchUp: c.CatchUp, Retry: c.Retry, MaxParallel: c.MaxParallel, Nudge: c.Nudge, Keep: c.Keep}
}

func (g *Gateway) briefConfig() brief.Config {
	c := g.cfg().Cron
	return brief.Config{Mirror: c.Mirror, Wrap: c.Wrap, Quiet: !c.Delivery.Notify, Nudge: c.Nudge,
		InChannel: func(name platforms.Name) bool { return g.cfg().Platforms.Shared(name).CronSurface == "in_channel" }}
}

// attach takes the files out of what a run has written for a place.
func (g *Gateway) attach(ctx context.Context, of sessions.Key, text string, at platforms.Address) (
	rest string, files []platforms.Attachment, refused map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	rest, files, list := g.terms.Chat().Media.Attach(ctx, of, show.Clean(text), at.Platform, g.accounts.Traits(at), g.now())
	for _, r := range list {
		if refused == nil {
			refused = map[string]string{}
		}
		refused[r.Name] = r.Reason
	}
	return rest, files, refused
}

// ready reports what keeps a job from running at all: its model can't be opened, or what it names is gone.
func (g *Gateway) ready(ctx context.Context, t cron.Task) error {
	if !t.NoAgent {
		if err := g.models.Usable(cmp.Or(t.Model, g.cfg().Cron.Model)); err != nil {
			return fmt.Errorf("its model: %w", err)
		}
	}
	return g.scheduled.sources.Check(ctx, t)
}

// checkTask reports what a job names that is not there.
func (g *Gateway) checkTask(ctx context.Context, t cron.Task) error {
	if t.Model != "" {
		if err := g.models.Usable(t.Model); err != nil {
			return &cron.TaskError{Field: "model", Value: t.Model, Reason: err.Error()}
		}
	}
	known := g.toolbox.Toolsets()
	for _, name := range t.Toolsets {
		if !slices.Contains(known, name) {
			return &cron.TaskError{Field: "enabled_toolsets", Value: name,
				Reason: fmt.Sprintf("there is no such toolset; known: %v", known)}
		}
	}
	return g.scheduled.sources.Check(ctx, t)
}

// mountJobs serves the scheduled jobs behind the door of the browser chat: who is let in there is the owner, who sees
// every job.
func (g *Gateway) mountJobs() {
	for _, door := range g.accounts.Doors() {
		english := g.texts.Printer("en")
		pages := page.New(page.Options{
			Views: g.scheduled.views, Acts: g.scheduled.desk.All(), Status: g.scheduled.jobs.Status,
			Words:    func(s cron.Schedule) string { return view.ScheduleWords(english, s, g.zone()) },
			Markdown: door.Markdown, Redact: g.opt.Redactor.String, Home: g.opt.Paths.Home, Static: door.Static(),
			Title: door.Title(), Log: g.log,
		})
		for pattern, handler := range pages.Routes() {
			g.mux.Handle(pattern, door.Behind(handler))
		}
	}
}

// countJobs adds the metrics that are read at each scrape.
func (g *Gateway) countJobs() {
	count := g.scheduled.views.Counter()
	g.metrics.Gauges("cron_jobs", "Scheduled jobs, by what they are doing.", "state", func() map[string]float64 {
		c, err := count()
		if err != nil {
			return nil
		}
		out := map[string]float64{}
		for _, state := range view.States {
			out[string(state)] = float64(c.Jobs[state])
		}
		return out
	})
	g.metrics.Gauge("cron_jobs_overdue", "Scheduled jobs whose run should have begun.", func() float64 {
		c, err := count()
		if err != nil {
			return math.NaN()
		}
		return float64(c.Overdue)
	})
}
