package gateway

import (
	"context"
	"fmt"
	"slices"

	"herald/cron"
	"herald/gateway/command"
	"herald/gateway/jobs"
	"herald/locales"
)

// JobLine is a job as the command line and the model are told of it. Times are in the zone of the jobs' clocks.
type JobLine struct {
	jobs.JobView
	InWords string `json:"schedule_in_words"` // in English
	Repeat  string `json:"repeat"`            // "forever", or how often and how often it ran
}

// lines are jobs as they are told of, in their order.
func lines(ctx context.Context, v jobs.Viewer, p *locales.Printer, list ...cron.Job) ([]JobLine, error) {
	views, err := v.Of(ctx, list)
	if err != nil {
		return nil, err
	}
	zone := v.Zone()
	out := make([]JobLine, len(views))
	for i, view := range views {
		view.Next = slices.Clone(view.Next)
		for k := range view.Next {
			view.Next[k] = view.Next[k].In(zone)
		}
		out[i] = JobLine{JobView: view, InWords: command.ScheduleWords(p, view.Plan, zone), Repeat: repeatOf(view)}
	}
	return out, nil
}

// repeatOf says how often a job runs, and how often it did where that is bounded.
func repeatOf(v jobs.JobView) string {
	switch v.Times {
	case 0:
		return "forever"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times, %d done", v.Times, v.Started)
}

// localOnly reports whether what a job makes is sent to nobody.
func localOnly(t cron.Task) bool {
	tokens, err := cron.ParseDeliver(t.Deliver)
	return err == nil && !slices.ContainsFunc(tokens, func(token cron.Token) bool { return token.Word != cron.DeliverLocal })
}
