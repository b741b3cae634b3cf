package view

import (
	"context"
	"fmt"
	"slices"

	"herald/cron"
	"herald/locales"
)

// Line is a job as the command line and the model see it. Times are in the zone of the jobs' clocks.
type Line struct {
	Job
	InWords string `json:"schedule_in_words"` // in English
	Repeat  string `json:"repeat"`            // "forever", or how often and how often it ran
}

// Lines returns the lines of some jobs, in their order.
func (v Reader) Lines(ctx context.Context, p *locales.Printer, list ...cron.Job) ([]Line, error) {
	views, err := v.Of(ctx, list)
	if err != nil {
		return nil, err
	}
	zone := v.Zone()
	out := make([]Line, len(views))
	for i, view := range views {
		view.Next = slices.Clone(view.Next)
		for k := range view.Next {
			view.Next[k] = view.Next[k].In(zone)
		}
		out[i] = Line{Job: view, InWords: ScheduleWords(p, view.Plan, zone), Repeat: repeatOf(view)}
	}
	return out, nil
}

// repeatOf says how often a job runs, and how often it did where that is bounded.
func repeatOf(v Job) string {
	switch v.Times {
	case 0:
		return "forever"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times, %d done", v.Times, v.Started)
}
