package gateway

import (
	"fmt"
	"slices"
	"time"

	"herald/cron"
	"herald/gateway/command"
	"herald/locales"
	"herald/sessions"
)

// The states of a job, as commands, pages and the model are told them.
const (
	jobScheduled = "scheduled"
	jobRunning   = "running"
	jobPaused    = "paused"
	jobCompleted = "completed"
	jobError     = "error" // it can't be read
)

// JobLine is a job as lists show it.
type JobLine struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// State is scheduled, running, paused, completed or error; Why is the reason of the last three.
	State string `json:"state"`
	Why   string `json:"why,omitempty"`
	// Schedule is as it was written, InWords what it means in English.
	Schedule string `json:"schedule"`
	InWords  string `json:"schedule_in_words"`
	Repeat   string `json:"repeat"`
	// Source is chat, cli, or the file that provides the job.
	Source string    `json:"source"`
	Next   time.Time `json:"next_run_at,omitzero"`
	// Upcoming are the next three times, the first is Next.
	Upcoming   []time.Time `json:"next_runs,omitempty"`
	LastSlot   time.Time   `json:"last_run_at,omitzero"`
	LastStatus string      `json:"last_status,omitempty"`
	LastReason string      `json:"last_reason,omitempty"`
	Streak     int         `json:"failure_streak,omitempty"`
	Task       cron.Task   `json:"task"`
}

// nextTimes is how many times to come are told of a job.
const nextTimes = 3

// lineOf is a job for lists. running says that a run of it goes on.
func lineOf(p *locales.Printer, j cron.Job, running bool, now time.Time, zone *time.Location) JobLine {
	l := JobLine{ID: string(j.ID), Name: j.Name, Schedule: j.Plan.Schedule.Display, InWords: command.ScheduleWords(p, j.Plan.Schedule, zone), Repeat: repeatOf(j), Source: j.Source,
		LastStatus: statusOf(j.LastEnd), LastReason: j.LastReason, Streak: j.Streak}
	t, err := j.Plan.ReadTask()
	l.Task = t
	if err != nil && j.Broken == "" {
		j.Broken = err.Error()
	}
	l.State, l.Why = stateOf(j, running)
	if !j.LastSlot.IsZero() {
		l.LastSlot = j.LastSlot.In(zone)
	}
	for _, at := range j.Upcoming(nextTimes, now, zone) {
		l.Upcoming = append(l.Upcoming, at.In(zone))
	}
	if len(l.Upcoming) > 0 {
		l.Next = l.Upcoming[0]
	}
	return l
}

func stateOf(j cron.Job, running bool) (state, why string) {
	switch {
	case running:
		return jobRunning, ""
	case j.Broken != "":
		return jobError, j.Broken
	case j.Done != "":
		return jobCompleted, j.Done
	case j.Plan.Paused:
		return jobPaused, j.Plan.PausedWhy
	}
	return jobScheduled, ""
}

// repeatOf says how often a job runs, and how often it did where that is bounded.
func repeatOf(j cron.Job) string {
	switch n := j.Plan.Times; {
	case n == 0:
		return "forever"
	case n == 1:
		return "once"
	default:
		return fmt.Sprintf("%d times, %d done", n, j.Started)
	}
}

// statusOf says how the newest run of a job ended (spec A2.12).
func statusOf(end sessions.RunState) string {
	switch end {
	case sessions.RunRan:
		return "ok"
	case sessions.RunFailed:
		return "error"
	}
	return string(end)
}

// localOnly reports whether what a job makes is sent to nobody.
func localOnly(t cron.Task) bool {
	tokens, err := cron.ParseDeliver(t.Deliver)
	return err == nil && !slices.ContainsFunc(tokens, func(token cron.Token) bool { return token.Word != cron.DeliverLocal })
}

// monitorOf is what a job watches, as its author wrote it.
func monitorOf(t cron.Task) string {
	if t.MonitorURL != "" {
		return t.MonitorURL
	}
	return t.MonitorScript
}
