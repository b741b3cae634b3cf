package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"herald/gateway"
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
	return t.Format("Mon 2006-01-02 15:04") + " (" + relative(t.Sub(now)) + ")"
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

// printJobs lists jobs, three lines each at most.
func printJobs(w io.Writer, r gateway.CronReply, now time.Time) {
	if len(r.Jobs) == 0 {
		fmt.Fprintln(w, "no jobs; make one: herald cron add \"every weekday at 9\" \"send me the news\" --deliver telegram")
	} else {
		fmt.Fprintf(w, "%-12s  %-9s  %-28s  %s\n", "ID", "STATE", "NEXT ("+cut(r.Zone, 20)+")", "NAME")
	}
	for _, j := range r.Jobs {
		next := "-"
		if !j.Next.IsZero() {
			next = j.Next.Format("2006-01-02 15:04") + " " + relative(j.Next.Sub(now))
		}
		row(w, fmt.Sprintf("%-12s  %-9s  %-28s  %s", j.ID, j.State, next, clean(j.Name)))
		row(w, "              "+clean(j.InWords+"; "+j.Repeat+"; to "+j.Task.Deliver+source(j)))
		if said := lately(j, now); said != "" {
			row(w, "              "+said)
		}
	}
	if r.Ended > 0 {
		fmt.Fprintf(w, "%d more ended; --all shows them\n", r.Ended)
	}
}

// row prints one line, no wider than a terminal.
func row(w io.Writer, s string) { fmt.Fprintln(w, strings.TrimRight(cut(s, lineWidth), " ")) }

// source tells who keeps a job that was not made in a chat.
func source(j gateway.JobLine) string {
	switch j.Source {
	case "chat", "":
		return ""
	case "cli":
		return "; made on the command line"
	}
	return "; from " + j.Source
}

// lately says why a job does not run and how its last run ended.
func lately(j gateway.JobLine, now time.Time) string {
	var parts []string
	if j.Why != "" {
		parts = append(parts, j.State+": "+clean(j.Why))
	}
	if j.LastStatus != "" {
		said := "last " + j.LastStatus
		if !j.LastSlot.IsZero() {
			said += " " + j.LastSlot.Format("2006-01-02 15:04") + " (" + relative(j.LastSlot.Sub(now)) + ")"
		}
		if j.LastReason != "" && j.LastStatus != "ok" {
			said += ": " + clean(j.LastReason)
		}
		parts = append(parts, said)
	}
	return strings.Join(parts, "; ")
}

// printChanged says what was done to a job, and its next times.
func printChanged(w io.Writer, r gateway.CronReply, what string, now time.Time) {
	for _, j := range r.Jobs {
		fmt.Fprintf(w, "%s: %s %s\n  %s; %s; to %s\n", what, j.ID, clean(j.Name), clean(j.InWords), j.Repeat, clean(j.Task.Deliver))
		if j.Why != "" {
			fmt.Fprintf(w, "  %s: %s\n", j.State, clean(j.Why))
		}
		for _, at := range j.Upcoming {
			fmt.Fprintf(w, "  next %s\n", instant(at, now))
		}
	}
}

// printRuns lists runs, newest first.
func printRuns(w io.Writer, r gateway.CronReply, now time.Time) {
	if len(r.Runs) == 0 {
		fmt.Fprintln(w, "nothing has run yet")
		return
	}
	fmt.Fprintf(w, "%-16s  %-10s  %-7s  %-8s  %-12s  %s\n", "TIME ("+cut(r.Zone, 9)+")", "", "END", "KIND", "JOB", "NAME")
	for _, run := range r.Runs {
		state := string(run.State)
		if run.State == sessions.RunClaimed {
			state = "running"
		}
		row(w, fmt.Sprintf("%-16s  %-10s  %-7s  %-8s  %-12s  %s", run.Slot.Format("2006-01-02 15:04"), relative(run.Slot.Sub(now)), state, run.Kind, run.Job, clean(run.Name)))
		if run.Slots > 1 {
			row(w, fmt.Sprintf("                  %d times until %s", run.Slots, run.Until.Format("2006-01-02 15:04")))
		}
		if run.Reason != "" && run.State != sessions.RunRan {
			row(w, "                  "+clean(run.Reason))
		}
	}
}
