package gateway

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"herald/cron"
	"herald/gateway/config"
	"herald/gateway/jobs"
	"herald/gateway/router"
	"herald/gateway/turn"
	"herald/gateway/workspace"
	"herald/locales"
	"herald/platforms"
	"herald/platforms/fetch"
	"herald/platforms/format"
	"herald/sessions"
)

// newJobs makes the scheduled jobs of the profile.
func (g *Gateway) newJobs() *jobs.Jobs {
	p := g.opt.Paths
	scripts := jobs.NewScripts(jobs.ScriptOptions{Dir: filepath.Join(p.Home, jobs.ScriptsDir), Timeout: func() time.Duration { return g.cfg().Cron.ScriptTimeout },
		Deny: workspace.SecretNames(os.Environ()), Passthrough: g.cfg().Terminal.EnvPassthrough, Redact: g.opt.Redactor.String})
	return jobs.New(jobs.Options{
		Scripts: scripts, Watcher: &jobs.Watcher{Fetch: func() fetch.Options { return g.downloads("") }, Scripts: scripts, Redact: g.opt.Redactor.String},
		Store: g.store, Router: waker{g}, Account: platforms.AccountID(cmp.Or(g.opt.Profile, config.DefaultProfile)),
		Key: g.runKey, KeyOptions: g.keyOptions, Describe: g.describe,
		Places: jobPlaces{g}, Config: g.jobsConfig, Zone: g.zone, Texts: jobTexts{g.texts},
		Render: func(at platforms.Address, markdown string) []platforms.Text {
			return format.Render(markdown, g.traits(at).Text)
		},
		Attach: g.attach, Strip: turn.StripMedia, Take: g.worker.Take, Ready: g.ready, Check: g.checkTask, Redact: g.opt.Redactor.String,
		Home: p.Home, SkillsDir: p.Skills, Metrics: g.metrics, Log: g.log, Now: g.now,
	})
}

// waker gives news to the router, which is made after the jobs.
type waker struct{ g *Gateway }

func (w waker) Wake(ctx context.Context, n router.Wake, with func(tx sessions.Tx) error) error {
	return w.g.router.Wake(ctx, n, with)
}

func (g *Gateway) runJobs(ctx context.Context) {
	defer g.wg.Done()
	if err := g.jobs.Run(ctx); err != nil {
		g.log.Error().Err(err).Msg("cron: the scheduler has ended; no job runs until the next start")
	}
}

// settled follows up on a brief that the platform has answered for.
func (g *Gateway) settled(tx sessions.Tx, row sessions.OutboxRow, thread platforms.ThreadID) ([]*sessions.OutboxRow, error) {
	return g.jobs.Settled(tx, row, thread)
}

// runKey is the session key of a run's address.
func (g *Gateway) runKey(at platforms.Address) sessions.Key {
	return sessions.KeyFor(sessions.KeySource{Profile: g.opt.Profile, Platform: at.Platform, ChatType: platforms.DM, Chat: at.Chat, Thread: at.Thread}, g.keyOptions())
}

// zone is whose clock schedules are read on.
func (g *Gateway) zone() *time.Location { return ZoneOf(g.cfg()) }

// ZoneOf is the zone in which a configuration has schedules read.
func ZoneOf(cfg *config.Config) *time.Location {
	if cfg.Timezone != "" {
		if zone, err := time.LoadLocation(cfg.Timezone); err == nil {
			return zone
		}
	}
	return time.Local
}

func (g *Gateway) jobsConfig() jobs.Config {
	c := g.cfg().Cron
	return jobs.Config{Mirror: c.Mirror, Wrap: c.Wrap, Preflight: c.Preflight, CatchUp: c.CatchUp, Retry: c.Retry, Quiet: !c.Delivery.Notify,
		MaxParallel: c.MaxParallel, Nudge: c.Nudge, Keep: c.Keep,
		InChannel: func(name platforms.Name) bool { return g.platform(name).CronSurface == "in_channel" }}
}

// describe asks a platform what events from a place carry.
func (g *Gateway) describe(ctx context.Context, at platforms.Address) (platforms.Room, error) {
	adapter, ok := g.accounts.Adapter(at.AccountOf())
	if !ok {
		return platforms.Room{}, fmt.Errorf("no adapter serves %s", at.AccountOf())
	}
	describer, ok := adapter.(platforms.Describer)
	if !ok {
		return platforms.Room{}, fmt.Errorf("%s describes no places", at.Platform)
	}
	return describer.Describe(ctx, at)
}

// traits are those of the adapter of a place; plain text where there is none.
func (g *Gateway) traits(at platforms.Address) platforms.Traits {
	if adapter, ok := g.accounts.Adapter(at.AccountOf()); ok {
		return adapter.Traits()
	}
	return platforms.Traits{Text: platforms.TextTraits{Dialect: platforms.Plain}}
}

// attach takes the files out of what a run has written for a place.
func (g *Gateway) attach(ctx context.Context, of sessions.Key, text string, at platforms.Address) (rest string, files []platforms.Attachment, refused map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	rest, files, list := g.chatSettings().Media.Attach(ctx, of, turn.Clean(text), at.Platform, g.traits(at), g.now())
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
	return g.jobs.Check(ctx, t)
}

// checkTask reports what a job names that is not there.
func (g *Gateway) checkTask(ctx context.Context, t cron.Task) error {
	if t.Model != "" {
		if err := g.models.Usable(t.Model); err != nil {
			return &cron.TaskError{Field: "model", Value: t.Model, Reason: err.Error()}
		}
	}
	known := g.catalog.registry.Toolsets()
	for _, name := range t.Toolsets {
		if !slices.Contains(known, name) {
			return &cron.TaskError{Field: "enabled_toolsets", Value: name, Reason: fmt.Sprintf("there is no such toolset; known: %v", known)}
		}
	}
	return g.jobs.Check(ctx, t)
}

// task returns what the job of a run's address does; ok is false elsewhere.
func (g *Gateway) task(at platforms.Address) (t cron.Task, ok bool) {
	id, ok := jobs.JobOf(at)
	if !ok {
		return t, false
	}
	job, err := g.jobs.Book().Get(context.Background(), id)
	if err != nil {
		return t, true // removed meanwhile: the run goes on with what everyone has
	}
	if t, err = job.Plan.ReadTask(); err != nil {
		g.log.Error().Err(err).Str("job", string(id)).Msg("cron: what a job does can't be read")
	}
	return t, true
}

// jobPlaces finds the targets of jobs.
type jobPlaces struct{ g *Gateway }

// Platforms implements cron.Places.
func (p jobPlaces) Platforms() []platforms.Name {
	var out []platforms.Name
	for _, a := range p.g.accounts.names() {
		if !slices.Contains(out, a.Platform) {
			out = append(out, a.Platform)
		}
	}
	return out
}

// Home implements cron.Places.
func (p jobPlaces) Home(ctx context.Context, name platforms.Name) (platforms.Address, bool, error) {
	if _, ok, err := p.g.home(ctx, name); err != nil || !ok {
		return platforms.Address{}, false, err
	}
	at, err := p.g.target(ctx, string(name))
	return at, true, err
}

// Find implements cron.Places.
func (p jobPlaces) Find(ctx context.Context, target string) (platforms.Address, error) {
	return p.g.target(ctx, target)
}

// jobTexts says what jobs tell people.
type jobTexts struct{ t *texts }

// Frame implements jobs.Texts.
func (j jobTexts) Frame(at platforms.Address, job cron.Job, answered bool) (title, footer string) {
	key := "cron.footer"
	if !answered {
		key = "cron.footer_unread"
	}
	return j.t.say(at, "cron.title"), j.t.say(at, key, locales.Str("id", string(job.ID)))
}

func (j jobTexts) name(job cron.Job) locales.Arg {
	return locales.Str("name", format.EscapeMarkdown(cron.Plain(j.t.g.opt.Redactor.String(job.Name), 80)))
}

// Failed implements jobs.Texts.
func (j jobTexts) Failed(at platforms.Address, job cron.Job, reason string, streak int, nudge bool) string {
	text := "⚠️ " + j.t.say(at, "cron.failed", j.name(job), locales.Str("reason", format.EscapeMarkdown(j.t.g.opt.Redactor.String(reason))))
	if nudge {
		text += "\n" + j.t.printer(at).N("cron.nudge", streak, locales.Str("id", string(job.ID)))
	}
	return text
}

// Blocked implements jobs.Texts.
func (j jobTexts) Blocked(at platforms.Address, job cron.Job, reason string) string {
	return "⛔ " + j.t.say(at, "cron.blocked", j.name(job), locales.Str("reason", format.EscapeMarkdown(reason)))
}

// Missed implements jobs.Texts.
func (j jobTexts) Missed(at platforms.Address, job cron.Job, slot time.Time) string {
	return "⏰ " + j.t.say(at, "cron.missed", j.name(job), locales.Str("time", slot.In(j.t.g.zone()).Format("2006-01-02 15:04 MST")))
}

// Refused implements jobs.Texts.
func (j jobTexts) Refused(at platforms.Address, name, reason string) string {
	return j.t.MediaRefused(at, name, reason)
}

// Jobs returns the scheduled jobs of the profile.
func (g *Gateway) Jobs() *jobs.Jobs { return g.jobs }

// countFor is how long a count of the jobs is used again: a scrape asks for several at once.
const countFor = 5 * time.Second

// countJobs adds the metrics that are read at each scrape.
func (g *Gateway) countJobs() {
	var mu sync.Mutex
	var at time.Time
	var counts jobs.Counts
	count := func() (jobs.Counts, error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(at) < countFor {
			return counts, nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		c, err := g.jobs.Viewer().Counts(ctx)
		if err == nil {
			counts, at = c, time.Now()
		}
		return c, err
	}
	g.metrics.Gauges("cron_jobs", "Scheduled jobs, by what they are doing.", "state", func() map[string]float64 {
		c, err := count()
		if err != nil {
			return nil
		}
		out := map[string]float64{}
		for _, state := range jobs.States {
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
