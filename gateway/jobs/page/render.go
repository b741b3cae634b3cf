package page

import (
	"fmt"
	"html"
	"path"
	"strconv"
	"strings"
	"time"

	"herald/cron"
	"herald/gateway/jobs/view"
	"herald/sessions"
)

// document is a page that is being written.
type document struct {
	b     strings.Builder
	title string
	pages *Pages
}

// f writes HTML in which every argument is a text: it is escaped.
func (d *document) f(format string, args ...any) {
	for i, a := range args {
		switch v := a.(type) {
		case string:
			args[i] = html.EscapeString(v)
		case int:
		default:
			args[i] = html.EscapeString(fmt.Sprint(v))
		}
	}
	fmt.Fprintf(&d.b, format, args...)
}

// String is the whole page.
func (d *document) String() string {
	o := d.pages.o
	head := &document{pages: d.pages}
	head.f(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="robots" content="noindex"><title>%s</title>
<link rel="icon" href="%s/icon.svg" type="image/svg+xml"><script src="%s/js/theme.js"></script><link rel="stylesheet" href="%s/css/base.css">
<style>`, d.title+" · "+o.Title, o.Static, o.Static, o.Static)
	head.b.WriteString(style)
	head.f(`</style></head><body class="jobs"><header><a href="/">%s</a><span aria-hidden="true">/</span><a href="%s">Scheduled jobs</a></header><main>`, o.Title, Path)
	return head.b.String() + d.b.String() + "</main></body></html>\n"
}

func (p *Pages) document(title string) *document { return &document{title: title, pages: p} }

func (p *Pages) problem(title, text string) *document {
	d := p.document(title)
	d.f(`<h1>%s</h1><p class="bad" role="alert">%s</p><p><a href="%s">All jobs</a></p>`, title, text, Path)
	return d
}

// at writes an instant on the jobs' clock, with how far away it is.
func (d *document) at(t time.Time) {
	if t.IsZero() {
		d.f("never")
		return
	}
	local := d.pages.zoned(t)
	d.f(`<time datetime="%s">%s</time> <span class="dim">(%s)</span>`, t.UTC().Format(time.RFC3339),
		local.Format("Mon 2 Jan 2006, 15:04 MST"), away(t.Sub(d.pages.o.Views.Now())))
}

// away says how far off something is.
func away(by time.Duration) string {
	text, size := "", by.Abs()
	switch {
	case size < time.Minute:
		return "now"
	case size < time.Hour:
		text = fmt.Sprintf("%d min", size/time.Minute)
	case size < 48*time.Hour:
		text = fmt.Sprintf("%d h %d min", size/time.Hour, size%time.Hour/time.Minute)
	default:
		text = fmt.Sprintf("%d days", size/(24*time.Hour))
	}
	if by < 0 {
		return text + " ago"
	}
	return "in " + text
}

// took writes a length of time for people.
func took(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// stateClass is the colour of a state.
func stateClass(s view.State) string {
	switch s {
	case view.StateBroken, view.StateBlocked:
		return "badge bad"
	case view.StateRunning:
		return "badge good"
	}
	return "badge"
}

func endClass(s sessions.RunState) string {
	switch s {
	case sessions.RunRan:
		return "badge good"
	case sessions.RunFailed, sessions.RunMissed:
		return "badge bad"
	}
	return "badge"
}

// endWord is what people call a state of a run.
func endWord(s sessions.RunState) string {
	if s == sessions.RunClaimed {
		return "running"
	}
	return string(s)
}

// renderList is the list of all jobs.
func (p *Pages) renderList(list []view.Job, skip, total int, st view.Status) *document {
	d := p.document("Scheduled jobs")
	d.f("<h1>Scheduled jobs</h1>")
	d.status(st)
	if total == 0 {
		d.f(`<p>There are none yet. In a chat, say what should happen and when: “every weekday at 9, send me the news”.</p>`)
		return d
	}
	if skip == 0 {
		d.troubles(list)
	}
	d.f(`<div class="wide"><table><thead><tr><th>Job</th><th>State</th><th>When</th><th>Next run</th><th>Last run</th><th>Where it went</th></tr></thead><tbody>`)
	for _, j := range list {
		d.row(j)
	}
	d.f("</tbody></table></div>")
	d.turn(skip, total)
	return d
}

// turn links to the jobs before and behind.
func (d *document) turn(skip, total int) {
	if total <= perPage {
		return
	}
	d.f(`<nav class="turn" aria-label="Pages">%d to %d of %d`, skip+1, min(skip+perPage, total), total)
	if skip > 0 {
		d.f(` <a href="%s?skip=%d">before</a>`, Path, max(0, skip-perPage))
	}
	if skip+perPage < total {
		d.f(` <a href="%s?skip=%d">more</a>`, Path, skip+perPage)
	}
	d.f("</nav>")
}

// status says how the scheduler is.
func (d *document) status(st view.Status) {
	if !st.Alive {
		d.f(`<p class="bad" role="alert">Due jobs are not being looked for. The last time was: `)
		d.at(st.LastLook)
		d.f("</p>")
	}
	d.f(`<p class="dim">Last 24 hours: %d ran, %d failed, %d missed. Running now: %d. Overdue: %d.</p>`, st.Ran, st.Failed, st.Missed,
		len(st.Running), st.Overdue)
	for _, f := range st.Files {
		for _, problem := range f.Problems {
			d.f(`<p class="bad" role="alert">%s</p>`, problem)
		}
	}
}

// troubles are the jobs that somebody should look at, each with what is wrong.
func (d *document) troubles(list []view.Job) {
	open := false
	for _, j := range list {
		if !j.Troubled() {
			continue
		}
		if !open {
			open = true
			d.f(`<section class="trouble" aria-labelledby="trouble"><h2 id="trouble">Needs a look</h2><ul>`)
		}
		d.f(`<li><a href="%s/%s">%s</a>: %s</li>`, Path, string(j.ID), d.clean(j.Name), d.clean(strings.Join(wrong(j), "; ")))
	}
	if open {
		d.f("</ul></section>")
	}
}

// wrong is what is wrong with a job, in plain words.
func wrong(j view.Job) (out []string) {
	switch {
	case j.State == view.StateBroken:
		out = append(out, "it can't be used: "+j.Why)
	case j.State == view.StateBlocked:
		out = append(out, "it can't run: "+j.Why)
	case j.Streak > 0 && j.Last != nil && j.Last.State == sessions.RunFailed:
		out = append(out, fmt.Sprintf("it has failed %s in a row: %s", times(j.Streak), cron.FailureLine(j.Last.Reason)))
	case j.Failed > 0:
		out = append(out, fmt.Sprintf("it failed %s in the last 24 hours", times(j.Failed)))
	}
	if j.Missed > 0 {
		out = append(out, fmt.Sprintf("it was missed %s in the last 24 hours", times(j.Missed)))
	}
	if j.Overdue {
		out = append(out, "its run is overdue")
	}
	if j.Undelivered != "" {
		out = append(out, "its output did not arrive: "+j.Undelivered)
	}
	return out
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

func (d *document) clean(text string) string { return d.pages.o.Redact(text) }

// row is a job in the list.
func (d *document) row(j view.Job) {
	d.f(`<tr><td><a href="%s/%s">%s</a>`, Path, string(j.ID), d.clean(j.Name))
	if j.Managed {
		d.f(`<br><span class="dim">%s</span>`, j.Source)
	}
	d.f(`</td><td><span class="%s">%s</span></td><td>%s</td><td>`, stateClass(j.State), j.State, d.pages.o.Words(j.Plan))
	if len(j.Next) > 0 {
		d.at(j.Next[0])
	} else {
		d.f("none")
	}
	d.f("</td><td>")
	if j.Last == nil {
		d.f("none yet</td><td>")
	} else {
		d.f(`<span class="%s">%s</span> `, endClass(j.Last.State), endWord(j.Last.State))
		d.at(j.Last.Until)
		d.f("</td><td>")
		d.places(*j.Last)
	}
	d.f("</td></tr>")
}

// places says where the output of a run went, and why not.
func (d *document) places(r view.Run) {
	if len(r.Places) == 0 && len(r.Trouble) == 0 {
		d.f(`<span class="dim">%s</span>`, nowhere(r))
		return
	}
	d.f(`<ul class="places">`)
	for _, place := range r.Places {
		d.f(`<li><code>%s</code>: %s`, place.Place, placeWord(place.State))
		if place.Why != "" {
			d.f(` <span class="why">%s</span>`, d.clean(place.Why))
		}
		if len(place.Mirrored) > 0 {
			d.f(` <span class="dim">replies continue it there</span>`)
		}
		d.f("</li>")
	}
	for _, trouble := range r.Trouble {
		d.f(`<li class="why">%s</li>`, d.clean(trouble))
	}
	d.f("</ul>")
}

func placeWord(s sessions.OutboxState) string {
	switch s {
	case sessions.OutSent:
		return "arrived"
	case sessions.OutFailed:
		return "refused"
	case sessions.OutUnknown:
		return "may have arrived"
	}
	return "waiting"
}

// nowhere says why the output of a run went to no place.
func nowhere(r view.Run) string {
	switch {
	case !r.Retry.IsZero():
		return "it is tried again"
	case r.Silent == "silent":
		return "nothing new to say"
	case r.Silent != "":
		return "nothing had changed"
	case r.State == sessions.RunClaimed:
		return "not yet"
	case r.Output != "":
		return "kept in its file"
	}
	return "nowhere"
}

// renderJob is the page of one job.
func (p *Pages) renderJob(j view.Job, runs []view.Run) *document {
	d := p.document(p.o.Redact(j.Name))
	d.f(`<h1>%s <span class="%s">%s</span></h1>`, d.clean(j.Name), stateClass(j.State), j.State)
	if all := wrong(j); len(all) > 0 {
		d.f(`<div class="trouble" role="alert"><ul>`)
		for _, text := range all {
			d.f("<li>%s</li>", d.clean(text))
		}
		d.f("</ul></div>")
	} else if j.Why != "" {
		d.f(`<p class="dim">%s</p>`, d.clean(j.Why))
	}
	d.acts(j)
	d.facts(j)
	d.f("<h2>Runs</h2>")
	if len(runs) == 0 {
		d.f("<p>None yet.</p>")
		return d
	}
	d.f(`<div class="wide"><table><thead><tr><th>Due</th><th>End</th><th>Why</th><th>Began late by</th><th>Took</th><th>Where it went</th><th>Output</th></tr></thead><tbody>`)
	for _, r := range runs {
		d.run(j, r)
	}
	d.f("</tbody></table></div>")
	if len(runs) == shownRuns {
		d.f(`<p class="dim">The newest %d runs. All that are kept: <code>herald cron history %s</code></p>`, shownRuns, string(j.ID))
	}
	return d
}

// acts are the buttons.
func (d *document) acts(j view.Job) {
	d.f(`<div class="acts">`)
	button := func(act, label string) {
		d.f(`<form method="post" action="%s/%s/%s"><button>%s</button></form>`, Path, string(j.ID), act, label)
	}
	if j.State != view.StateBroken && j.State != view.StateRunning {
		button("run", "Run now")
	}
	switch {
	case j.State == view.StatePaused:
		button("resume", "Resume")
	case len(j.Next) > 0:
		button("pause", "Pause")
	}
	if j.Managed {
		d.f(`<span class="dim">Change or remove it in %s.</span>`, j.Source)
	} else {
		d.f(`<details><summary>Remove…</summary><p>The job and its history are gone then; its output files stay.</p>`)
		button("remove", "Remove it for good")
		d.f("</details>")
	}
	d.f("</div>")
}

// facts are what the job is.
func (d *document) facts(j view.Job) {
	d.f("<dl>")
	fact := func(name, value string) {
		if value != "" {
			d.f("<dt>%s</dt><dd>%s</dd>", name, d.clean(value))
		}
	}
	when := d.pages.o.Words(j.Plan)
	if when != j.Schedule {
		when += " (" + j.Schedule + ")"
	}
	fact("When", when)
	if len(j.Next) > 0 {
		d.f("<dt>Next runs</dt><dd><ul>")
		for _, at := range j.Next {
			d.f("<li>")
			d.at(at)
			d.f("</li>")
		}
		d.f("</ul></dd>")
	}
	if j.Times > 0 {
		fact("Number of runs", fmt.Sprintf("%d of %d", j.Started, j.Times))
	}
	t := j.Task
	if t.Prompt != "" {
		d.f(`<dt>What it asks</dt><dd><pre>%s</pre></dd>`, d.clean(t.Prompt))
	}
	fact("Skills", strings.Join(t.Skills, ", "))
	fact("Script", t.Script)
	fact("Watches", t.Monitor())
	fact("Reads the output of", strings.Join(t.ContextFrom, ", "))
	fact("Output goes to", t.Deliver)
	fact("Failures go to", t.FailureDeliver)
	fact("Toolsets", strings.Join(t.Toolsets, ", "))
	fact("Works in", t.Workdir)
	fact("Model", t.Model)
	fact("Made by", j.Source)
	fact("Id", string(j.ID))
	d.f("</dl>")
}

// run is a run in the history of a job.
func (d *document) run(j view.Job, r view.Run) {
	d.f("<tr><td>")
	d.at(r.Slot)
	if r.Slots > 1 {
		d.f(`<br><span class="dim">and %d more until %s</span>`, r.Slots-1, d.pages.zoned(r.Until).Format("Mon 2 Jan 15:04"))
	}
	d.f(`</td><td><span class="%s">%s</span>`, endClass(r.State), endWord(r.State))
	switch r.Kind {
	case sessions.RunManual:
		d.f(` <span class="dim">asked for by hand</span>`)
	case sessions.RunCatchUp:
		d.f(` <span class="dim">caught up</span>`)
	case sessions.RunRetry:
		d.f(` <span class="dim">tried again</span>`)
	}
	d.f(`</td><td class="why">%s`, d.clean(r.Reason))
	if !r.Retry.IsZero() {
		d.f(` It is tried again: `)
		d.at(r.Retry)
	}
	if r.State == sessions.RunMissed || r.State == sessions.RunSkipped {
		d.f("</td><td></td><td></td><td>")
	} else {
		d.f("</td><td>%s</td><td>%s</td><td>", took(r.Late()), took(r.Took()))
	}
	d.places(r)
	d.f("</td><td>")
	if r.Output != "" {
		d.f(`<a href="%s/%s/output/%s">read</a>`, Path, string(j.ID), path.Base(r.Output))
	}
	d.f("</td></tr>")
}

// renderOutput is an output file.
func (p *Pages) renderOutput(id cron.JobID, file, text string, cut bool) *document {
	d := p.document("Output")
	d.f(`<p><a href="%s/%s">Back to the job</a></p><article class="output">`, Path, string(id))
	if p.o.Markdown != nil {
		d.b.WriteString(p.o.Markdown(p.o.Redact(text))) // safe by contract
	} else {
		d.f("<pre>%s</pre>", p.o.Redact(text))
	}
	d.f("</article>")
	if cut {
		d.f(`<p class="dim">The rest is left out; the whole file is <code>cron/output/%s/%s</code> in the home.</p>`, string(id), file)
	}
	return d
}
