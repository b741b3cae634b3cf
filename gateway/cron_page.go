package gateway

import (
	"cmp"
	"context"

	"herald/cron"
	"herald/gateway/command"
	"herald/gateway/jobs/page"
	"herald/platforms/web"
	"herald/sessions"
)

// jobActs are what a person may do to a job on its page.
type jobActs struct {
	*cron.Book
	g *Gateway
}

// Trigger implements page.Acts.
func (a jobActs) Trigger(ctx context.Context, id cron.JobID, note string) (sessions.Run, error) {
	return a.g.jobs.Trigger(ctx, id, note)
}

// mountJobs serves the scheduled jobs behind the door of the browser chat: who is let in there is the owner, who sees
// every job.
func (g *Gateway) mountJobs() {
	for _, name := range g.accounts.names() {
		adapter, _ := g.accounts.Adapter(name)
		door, ok := adapter.(*web.Adapter)
		if !ok {
			continue
		}
		english := g.texts.catalogs.Printer("en")
		pages := page.New(page.Options{
			Viewer: g.jobs.Viewer(), Acts: jobActs{g.jobs.Book(), g}, Status: g.jobs.Status,
			Words:    func(s cron.Schedule) string { return command.ScheduleWords(english, s, g.zone()) },
			Markdown: web.RenderMarkdown, Redact: g.opt.Redactor.String, Home: g.opt.Paths.Home, Static: door.Static(),
			Title: cmp.Or(g.cfg().Platforms.Web.Title, web.DefaultName), Log: g.log,
		})
		for pattern, handler := range pages.Routes() {
			g.mux.Handle(pattern, door.Behind(handler))
		}
	}
}
