package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"herald/gateway/jobs/desk"
	"herald/gateway/jobs/view"
	"herald/sessions"
)

// lineWidth is how wide lists are, in columns.
const lineWidth = 80

// clean makes a text that others have written fit for a terminal: one line, without control characters.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// cut shortens a text to n characters.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:max(n-1, 0)]) + "…"
	}
	return s
}

// instant is a time as lists show it: absolute and relative to now.
func instant(t, now time.Time) string {
	return t.Format("2006-01-02 15:04") + " " + relative(t.Sub(now))
}

// relative says how far away something is, in its largest unit.
func relative(d time.Duration) string {
	amount := d.Abs()
	text := ""
	switch {
	case amount < time.Minute:
		return "now"
	case amount < time.Hour:
		text = fmt.Sprintf("%d min", amount/time.Minute)
	case amount < 48*time.Hour:
		text = fmt.Sprintf("%d h", amount/time.Hour)
	default:
		text = fmt.Sprintf("%d days", amount/(24*time.Hour))
	}
	if d < 0 {
		return text + " ago"
	}
	return "in " + text
}

// printJobs lists jobs, at most three lines each.
func printJobs(w io.Writer, r desk.Reply, now time.Time) {
	if len(r.Jobs) == 0 {
		fmt.Fprintln(w, "no jobs; make one: herald cron add \"every weekday at 9\" \"send me the news\" --deliver telegram")
	} else {
		fmt.Fprintf(w, "%-12s  %-9s  %-28s  %s\n", "ID", "STATE", "NEXT ("+cut(r.Zone, 20)+")", "NAME")
	}
	for _, j := range r.Jobs {
		next := "-"
		if len(j.Next) > 0 {
			next = instant(j.Next[0], now)
		}
		row(w, fmt.Sprintf("%-12s  %-9s  %-28s  %s", j.ID, j.State, next, clean(j.Name)))
		row(w, indent+clean(j.InWords+"; "+j.Repeat+"; to "+j.Task.Deliver+source(j)))
		if said := lately(j, now); said != "" {
			row(w, indent+said)
		}
	}
	if r.Ended > 0 {
		fmt.Fprintf(w, "%d more ended; --all shows them\n", r.Ended)
	}
}

// indent is what the further lines of a job begin with.
const indent = "              "

// row prints one line, no wider than a terminal.
func row(w io.Writer, s string) { fmt.Fprintln(w, strings.TrimRight(cut(s, lineWidth), " ")) }

// source tells who keeps a job that was not made in a chat.
func source(j view.Line) string {
	switch j.Source {
	case "chat", "":
		return ""
	case "cli":
		return "; made by herald cron"
	}
	return "; from " + j.Source
}

// lately says why a job does not run, how its last run ended, and where its output went.
func lately(j view.Line, now time.Time) string {
	var parts []string
	if j.Why != "" {
		parts = append(parts, clean(j.Why))
	}
	if j.Overdue {
		parts = append(parts, "overdue")
	}
	if j.Last != nil {
		parts = append(parts, "last "+string(j.Last.State)+" "+relative(j.Last.Until.Sub(now)))
		parts = append(parts, outcome(*j.Last)...)
	}
	if j.Streak > 1 {
		parts = append(parts, fmt.Sprintf("%d failures in a row", j.Streak))
	}
	return strings.Join(parts, "; ")
}

// outcome says why a run ended as it did, and where its output went.
func outcome(run view.Run) (parts []string) {
	if run.Reason != "" && run.State != sessions.RunRan {
		parts = append(parts, clean(run.Reason))
	}
	switch run.Silent {
	case "":
	case "no_change":
		parts = append(parts, "nothing sent: what it watches has not changed")
	default:
		parts = append(parts, "nothing sent: it had nothing to say")
	}
	for _, p := range run.Places {
		said := string(p.State) + " to " + clean(p.Place)
		if p.Why != "" && p.State != sessions.OutSent {
			said += " (" + clean(p.Why) + ")"
		}
		parts = append(parts, said)
	}
	for _, t := range run.Trouble {
		parts = append(parts, clean(t))
	}
	return parts
}

// printChanged says what was done to a job, and its next times.
func printChanged(w io.Writer, r desk.Reply, what string, now time.Time) {
	for _, j := range r.Jobs {
		fmt.Fprintf(w, "%s: %s %s\n  %s; %s; to %s\n", what, j.ID, clean(j.Name), clean(j.InWords), j.Repeat, clean(j.Task.Deliver))
		if j.Why != "" {
			fmt.Fprintf(w, "  %s: %s\n", j.State, clean(j.Why))
		}
		for _, at := range j.Next {
			fmt.Fprintf(w, "  next %s %s\n", at.Format("Mon"), instant(at, now))
		}
	}
}

// printRuns lists runs, newest first: when, how each ended, why, and where its output went.
func printRuns(w io.Writer, r desk.Reply, zone *time.Location, now time.Time) {
	if len(r.Runs) == 0 {
		fmt.Fprintln(w, "nothing has run yet")
		return
	}
	fmt.Fprintf(w, "%-28s  %-7s  %-8s  %-12s  %s\n", "TIME ("+cut(r.Zone, 20)+")", "END", "KIND", "JOB", "NAME")
	for _, run := range r.Runs {
		state := string(run.State)
		if run.State == sessions.RunClaimed {
			state = "running"
		}
		row(w, fmt.Sprintf("%-28s  %-7s  %-8s  %-12s  %s", instant(run.Slot.In(zone), now), state, run.Kind, run.Job, clean(run.Name)))
		if run.Slots > 1 {
			row(w, fmt.Sprintf("  %d times until %s", run.Slots, run.Until.In(zone).Format("2006-01-02 15:04")))
		}
		for _, said := range outcome(run.Run) {
			row(w, "  "+said)
		}
		if run.Output != "" {
			row(w, "  output in "+clean(run.Output))
		}
		if !run.Retry.IsZero() {
			row(w, "  tried again "+instant(run.Retry.In(zone), now))
		}
	}
}

// printCronStatus says how the scheduler is, and what goes on.
func printCronStatus(w io.Writer, r desk.Reply, daemon bool, zone *time.Location, now time.Time) {
	st := r.Status
	switch {
	case !daemon:
		fmt.Fprintln(w, "scheduler  no daemon is running, so no job runs; start one: herald run")
	case st.Alive:
		fmt.Fprintln(w, "scheduler  alive"+lookedAt(st.LastLook, now))
	default:
		fmt.Fprintln(w, "scheduler  STUCK"+lookedAt(st.LastLook, now)+"; see herald logs")
	}
	if !st.NextDue.IsZero() {
		fmt.Fprintln(w, "next       "+instant(st.NextDue.In(zone), now))
	}
	var counts []string
	for _, state := range view.States {
		if n := st.Jobs[state]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, state))
		}
	}
	fmt.Fprintln(w, "jobs       "+cmp.Or(strings.Join(counts, ", "), "none"))
	fmt.Fprintf(w, "last 24 h  %d ran, %d failed, %d missed, %d skipped\n", st.Ran, st.Failed, st.Missed, st.Skipped)
	if st.Overdue+st.Undelivered > 0 {
		fmt.Fprintf(w, "trouble    %d overdue, %d with output that did not arrive; see herald cron doctor\n", st.Overdue, st.Undelivered)
	}
	for _, j := range st.Running {
		row(w, "running    "+string(j.ID)+" "+clean(j.Name)+" since "+relative(j.Running.Began.Sub(now)))
	}
	for _, f := range st.Files {
		row(w, fmt.Sprintf("file       %s: %d jobs", clean(f.Name), f.Jobs))
		for _, problem := range f.Problems {
			fmt.Fprintln(w, "           "+clean(problem))
		}
	}
}

func lookedAt(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return ", looked for due jobs " + relative(at.Sub(now))
}

// printIncidents lists what fails.
func printIncidents(w io.Writer, r desk.Reply, now time.Time) {
	if len(r.Incidents) == 0 {
		fmt.Fprintln(w, "no incidents")
		return
	}
	for _, i := range r.Incidents {
		state := "open"
		switch {
		case i.Resolved:
			state = "resolved"
		case !i.Acked.IsZero():
			state = "acknowledged"
		}
		row(w, fmt.Sprintf("%-8s  %-12s  %d×, last %s  %s %s", i.ID, state, i.Count, relative(i.Last.Sub(now)), i.Job, clean(i.Name)))
		row(w, "          "+clean(i.Line))
	}
}

// printIssues lists what somebody should put right, with what to do.
func printIssues(w io.Writer, r desk.Reply) {
	for _, i := range r.Issues {
		who := strings.TrimSpace(string(i.Job) + " " + clean(i.Name))
		if who != "" {
			who += ": "
		}
		fmt.Fprintf(w, "%s%s\n  %s\n", who, clean(i.Text), clean(i.Do))
	}
}
