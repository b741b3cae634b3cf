package desk

import (
	"context"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"herald/cron"
	"herald/gateway/jobs"
	"herald/gateway/jobs/view"
	"herald/locales"
	"herald/sessions"
)

// Offline is a home that no daemon serves, as the command line works on it.
type Offline struct {
	Store sessions.Store
	// Home is the profile's home, SkillsDir the one of its skills.
	Home, SkillsDir string
	// Zone is that of the jobs' clocks.
	Zone *time.Location
	// Failing is after how many failures in a row a job is an issue; 0 takes the default.
	Failing int
}

// Clerk returns the clerk of the home's jobs. It can run none: ErrNoScheduler.
func (o Offline) Clerk() (Clerk, error) {
	catalogs, err := locales.New(locales.Options{})
	if err != nil {
		return Clerk{}, err
	}
	zone := func() *time.Location { return o.Zone }
	scripts := jobs.NewScripts(jobs.ScriptOptions{Dir: filepath.Join(o.Home, jobs.ScriptsDir)}) // to look for them, not to run them
	sources := &jobs.Sources{Store: o.Store, Home: o.Home, SkillsDir: o.SkillsDir, Scripts: scripts, Log: zerolog.Nop()}
	views := view.Reader{Store: o.Store, Zone: zone, Now: time.Now}
	book := cron.NewBook(cron.BookOptions{Store: o.Store, Zone: zone, Check: sources.Check})
	d := New(Options{Store: o.Store, Book: book, Views: views, Printer: catalogs.Printer("en")})
	return d.Clerk(noDaemon{views: views, check: sources.Check, failing: o.Failing}), nil
}

// noDaemon is the Scheduler of a home that no daemon serves.
type noDaemon struct {
	views   view.Reader
	check   func(ctx context.Context, t cron.Task) error
	failing int
}

// Status implements Scheduler.
func (n noDaemon) Status(ctx context.Context) (view.Status, error) { return n.views.Status(ctx) }

// Doctor implements Scheduler: first of all, no daemon runs.
func (n noDaemon) Doctor(ctx context.Context) ([]view.Issue, error) {
	issues, err := n.views.Doctor(ctx, view.Diagnosis{Check: n.check, Failing: n.failing})
	idle := view.Issue{Kind: view.IssueScheduler, Text: "no daemon is running, so no job runs", Do: "start one: herald run"}
	return append([]view.Issue{idle}, issues...), err
}

// Tick implements Scheduler.
func (noDaemon) Tick(context.Context) error { return ErrNoScheduler }
