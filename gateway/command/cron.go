package command

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"herald/cron"
	"herald/gateway/jobs/brief"
	"herald/gateway/jobs/view"
	"herald/gateway/router"
	"herald/locales"
	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
)

// Jobs are the scheduled jobs as one person may see and change them: a job of somebody else is one that is not there.
// What can't be done is told by the errors of cron.Book.
type Jobs interface {
	// Zone is that of the jobs' clocks.
	Zone() *time.Location
	// List returns the jobs, the oldest first.
	List(ctx context.Context) ([]cron.Job, error)
	// Create makes a job; with, where not nil, is done in its transaction.
	Create(ctx context.Context, c cron.Change, with func(tx sessions.Tx, j cron.Job) error) (cron.Job, error)
	Update(ctx context.Context, id cron.JobID, c cron.Change) (cron.Job, error)
	Pause(ctx context.Context, id cron.JobID, why string) (cron.Job, error)
	Resume(ctx context.Context, id cron.JobID) (cron.Job, error)
	Remove(ctx context.Context, id cron.JobID) (cron.Job, error)
	// Run begins a run beside the plan, and fails while one goes on.
	Run(ctx context.Context, id cron.JobID, note string) error
	// Runs returns the newest runs of a job, or of all of them with an empty id.
	Runs(ctx context.Context, id cron.JobID, limit int) ([]sessions.Run, error)
}

// cronCommands are about jobs that run by themselves.
func cronCommands() []Spec {
	return []Spec{{Name: "cron", Aliases: []string{"jobs"}, Args: "[add <when> <what> | edit | pause | resume | run | remove | history]", Busy: router.Dispatch, run: runCron,
		Summary: "what runs by itself, and when; make, change and end such jobs"}}
}

const (
	// shownJobs is how many jobs /cron list shows.
	shownJobs = 50
	// shownRuns is how many runs /cron history shows.
	shownRuns = 10
	// maxNameWords bounds how many words are tried as a job's name.
	maxNameWords = 60
	// nextShown is how many times to come are said of a job.
	nextShown = 3
)

func runCron(ctx context.Context, q *Request) error {
	if q.Jobs == nil {
		return q.reply(ctx, q.t("command.cron.off"))
	}
	c := &cronRequest{Request: q, jobs: q.Jobs(q.Item.Event)}
	action, rest := cutWord(q.Args)
	switch strings.ToLower(action) {
	case "", "list":
		return c.list(ctx, strings.EqualFold(rest, "all"))
	case "add", "create", "new":
		return c.add(ctx, rest)
	case "edit", "update":
		return c.onJob(ctx, rest, c.edit)
	case "pause", "stop":
		return c.onJob(ctx, rest, c.pause)
	case "resume":
		return c.onJob(ctx, rest, c.resume)
	case "run", "trigger":
		return c.onJob(ctx, rest, c.runNow)
	case "remove", "delete", "rm":
		return c.onJob(ctx, rest, c.remove)
	case "history", "runs":
		return c.history(ctx, rest)
	}
	return q.reply(ctx, q.badValue(action))
}

// cronRequest is one /cron.
type cronRequest struct {
	*Request
	jobs Jobs
}

// cutWord parts the first word from the rest.
func cutWord(text string) (first, rest string) {
	words := cron.Words(text)
	if len(words) == 0 {
		return "", ""
	}
	return words[0].Text, strings.TrimSpace(text[words[0].To:])
}

// onJob finds the job that the arguments begin with: the longest beginning that is an id or a name. act gets the rest.
func (c *cronRequest) onJob(ctx context.Context, args string, act func(ctx context.Context, j cron.Job, rest string) error) error {
	list, err := c.jobs.List(ctx)
	if err != nil {
		return err
	}
	words := cron.Words(args)
	if len(words) == 0 {
		return c.reply(ctx, c.usage())
	}
	var missing *cron.MissingError
	for n := min(len(words), maxNameWords); n > 0; n-- {
		j, err := cron.Pick(list, args[:words[n-1].To])
		switch {
		case err == nil:
			return act(ctx, j, strings.TrimSpace(args[words[n-1].To:]))
		case !errors.As(err, &missing):
			return c.refuse(ctx, err)
		}
	}
	return c.refuse(ctx, &cron.MissingError{Ref: words[0].Text})
}

// refuse answers what can't be done; an error that is no refusal is returned.
func (c *cronRequest) refuse(ctx context.Context, err error) error {
	c.ended = confirmRefused
	var missing *cron.MissingError
	var several *cron.AmbiguousError
	var managed *cron.ManagedError
	var schedule *cron.Error
	var task *cron.TaskError
	switch {
	case errors.As(err, &missing):
		return c.reply(ctx, c.t("command.cron.missing", locales.Str("name", format.Code(clip(missing.Ref, 80)))))
	case errors.As(err, &several):
		var ids []string
		for _, j := range several.Jobs {
			ids = append(ids, format.Code(string(j.ID)))
		}
		return c.reply(ctx, c.t("command.cron.ambiguous", locales.Str("name", format.Code(clip(several.Ref, 80))), locales.Str("ids", strings.Join(ids, ", "))))
	case errors.As(err, &managed):
		return c.reply(ctx, c.t("command.cron.managed", locales.Str("name", bold(managed.Job.Name)), locales.Str("file", format.Code(managed.Job.Source))))
	case errors.As(err, &schedule), errors.As(err, &task), errors.Is(err, cron.ErrNothing):
		return c.reply(ctx, c.t("command.cron.refused", locales.Str("reason", format.EscapeMarkdown(err.Error()))))
	}
	return err
}

func bold(text string) string { return "**" + format.EscapeMarkdown(clip(text, 80)) + "**" }

// words says when a job runs.
func (c *cronRequest) words(s cron.Schedule) string {
	return format.EscapeMarkdown(view.ScheduleWords(c.Printer, s, c.jobs.Zone()))
}

// next says a job's next times, on a line of its own; "" for one that has none.
func (c *cronRequest) next(j cron.Job, n int) string {
	said := view.NextWords(c.Printer, j.Upcoming(n, c.Now(), c.jobs.Zone()), c.jobs.Zone())
	if said == "" {
		return ""
	}
	return "\n" + format.EscapeMarkdown(said)
}

// about says what became of a job: the text of a key with its name, its schedule and its next times.
func (c *cronRequest) about(key string, j cron.Job) string {
	args := []locales.Arg{locales.Str("name", bold(j.Name)), locales.Str("id", format.Code(string(j.ID))), locales.Str("schedule", c.words(j.Plan.Schedule))}
	return "⏰ " + c.t("command.cron."+key, args...) + c.next(j, nextShown)
}

// list shows the jobs: when each runs next and how its last run ended.
func (c *cronRequest) list(ctx context.Context, all bool) error {
	list, err := c.jobs.List(ctx)
	if err != nil {
		return err
	}
	total := len(list)
	if !all {
		list = slices.DeleteFunc(list, func(j cron.Job) bool { return j.Done != "" })
	}
	example := locales.Str("example", format.Code(c.Printer.Command("cron")+" add every weekday at 9 send me the news"))
	if len(list) == 0 {
		return c.reply(ctx, c.t("command.cron.none", example))
	}
	lines := []string{c.Printer.N("command.cron.title", len(list))}
	for _, j := range list[:min(len(list), shownJobs)] {
		lines = append(lines, c.line(j))
	}
	if more := len(list) - shownJobs; more > 0 {
		lines = append(lines, c.Printer.N("command.cron.more", more))
	}
	if ended := total - len(list); ended > 0 {
		lines = append(lines, c.Printer.N("command.cron.ended", ended, locales.Str("command", format.Code(c.Printer.Command("cron")+" list all"))))
	}
	return c.reply(ctx, strings.Join(lines, "\n"))
}

// line is one job of the list.
func (c *cronRequest) line(j cron.Job) string {
	line := "• " + c.t("command.cron.line", locales.Str("name", bold(j.Name)), locales.Str("id", format.Code(string(j.ID))), locales.Str("schedule", c.words(j.Plan.Schedule)))
	switch {
	case j.Broken != "":
		line += "; ⚠️ " + c.t("command.cron.state.broken", locales.Str("reason", format.EscapeMarkdown(clip(j.Broken, 120))))
	case j.Done != "":
		line += "; " + c.t("command.cron.state.ended")
	case j.Plan.Paused:
		line += "; ⏸ " + c.t("command.cron.state.paused")
	case !j.Next.IsZero():
		line += "; " + c.t("command.cron.state.next", locales.Str("time", view.When(c.Printer, j.Next, c.jobs.Zone())))
	}
	if j.LastEnd != "" {
		line += "; " + c.end(j.LastEnd, j.LastReason)
	}
	return line
}

// end says how a run ended, and why where that needs a reason.
func (c *cronRequest) end(state sessions.RunState, reason string) string {
	text := c.t("command.cron.end." + string(state))
	if state == sessions.RunFailed {
		text = "⚠️ " + text
	}
	if reason != "" && state != sessions.RunRan {
		text += " (" + format.EscapeMarkdown(clip(reason, 120)) + ")"
	}
	return text
}

// add makes a job of a phrase, after the person has seen what it would be.
func (c *cronRequest) add(ctx context.Context, text string) error {
	text, sure := meant(text, c.confirmed)
	zone := c.jobs.Zone()
	p, ok, err := cron.FindSentence(text, c.Now(), zone)
	if err != nil {
		return c.refuse(ctx, err)
	}
	command := c.Printer.Command("cron") + " add "
	if !ok {
		return c.reply(ctx, c.t("command.cron.no_time", locales.Str("example", format.Code(command+"every weekday at 9 send me the news")),
			locales.Str("bar", format.Code(command+"0 9 * * 1-5 | send me the news"))))
	}
	s, err := cron.Parse(p.Schedule, c.Now(), zone)
	if err != nil {
		return c.refuse(ctx, err)
	}
	if p.Prompt == "" {
		return c.reply(ctx, c.t("command.cron.no_prompt", locales.Str("schedule", c.words(s))))
	}
	if !sure && c.asksFirst(ctx) {
		return c.askAdd(ctx, s, p)
	}
	return c.make(ctx, p)
}

// meant takes --yes or -y from the end of a text; it says that nothing need be asked.
func meant(text string, confirmed bool) (rest string, sure bool) {
	words := cron.Words(text)
	if n := len(words); n > 0 && slices.Contains([]string{"--yes", "-y"}, strings.ToLower(words[n-1].Text)) {
		return strings.TrimSpace(text[:words[n-1].From]), true
	}
	return text, confirmed
}

// askAdd shows what the job would be. What is confirmed is what was shown: of "in 20 minutes" the time that it meant.
func (c *cronRequest) askAdd(ctx context.Context, s cron.Schedule, p cron.Sentence) error {
	if err := (cron.Task{Prompt: p.Prompt}).Validate(); err != nil {
		return c.refuse(ctx, err)
	}
	draft := cron.Job{Plan: cron.Plan{Schedule: s}}
	if err := draft.Replan(c.Now(), c.jobs.Zone()); err != nil {
		return c.refuse(ctx, err)
	}
	schedule := p.Schedule
	if s.Kind == cron.Once {
		schedule = s.At.Format(time.RFC3339)
	}
	text := c.t("command.cron.ask", locales.Str("schedule", c.words(s)), locales.Str("prompt", format.EscapeMarkdown(clip(p.Prompt, 300)))) + c.next(draft, nextShown)
	return c.askFirst(ctx, question{text: text, yes: "--yes", args: "add " + schedule + " | " + p.Prompt, harmless: true})
}

// make makes the job, in one transaction with its answer.
func (c *cronRequest) make(ctx context.Context, p cron.Sentence) error {
	var rows []*sessions.OutboxRow
	_, err := c.jobs.Create(ctx, cron.Change{Schedule: &p.Schedule, Prompt: &p.Prompt}, func(tx sessions.Tx, j cron.Job) (err error) {
		rows, err = c.finish(tx, func(sessions.Tx) (string, error) {
			stop := c.Printer.Command("cron") + " remove " + string(j.ID)
			return c.about("made", j) + "\n" + c.t("command.cron.stop", locales.Str("command", format.Code(stop))), nil
		})
		return err
	})
	if err != nil {
		return c.refuse(ctx, err)
	}
	c.Take(rows...)
	return nil
}

func (c *cronRequest) pause(ctx context.Context, j cron.Job, why string) error {
	j, err := c.jobs.Pause(ctx, j.ID, why)
	if err != nil {
		return c.refuse(ctx, err)
	}
	resume := c.Printer.Command("cron") + " resume " + string(j.ID)
	return c.reply(ctx, c.about("paused", j)+"\n"+c.t("command.cron.again", locales.Str("command", format.Code(resume))))
}

func (c *cronRequest) resume(ctx context.Context, j cron.Job, _ string) error {
	j, err := c.jobs.Resume(ctx, j.ID)
	if err != nil {
		return c.refuse(ctx, err)
	}
	return c.reply(ctx, c.about("resumed", j))
}

func (c *cronRequest) remove(ctx context.Context, j cron.Job, _ string) error {
	j, err := c.jobs.Remove(ctx, j.ID)
	if err != nil {
		return c.refuse(ctx, err)
	}
	j.Next = time.Time{}
	return c.reply(ctx, c.about("removed", j))
}

// runNow begins a run. The answer is committed first: after a crash between the two the job has not run, which can be
// seen and asked for again, while a run that is begun twice can't be taken back.
func (c *cronRequest) runNow(ctx context.Context, j cron.Job, note string) error {
	runs, err := c.jobs.Runs(ctx, j.ID, 1)
	if err != nil {
		return err
	}
	if len(runs) > 0 && !runs[0].State.Ended() {
		return c.reply(ctx, c.t("command.cron.busy", locales.Str("name", bold(j.Name))))
	}
	if err := c.reply(ctx, "⏰ "+c.t("command.cron.runs", locales.Str("name", bold(j.Name)))); err != nil {
		return err
	}
	if err := c.jobs.Run(ctx, j.ID, note); err != nil {
		return c.tell(ctx, "⚠️ "+c.t("command.cron.not_started", locales.Str("name", bold(j.Name)), locales.Str("reason", format.EscapeMarkdown(err.Error()))))
	}
	return nil
}

// tell says something more after the command has been answered.
func (c *cronRequest) tell(ctx context.Context, text string) error {
	rows := c.Render(c.Item.Event.Address, text)
	err := c.Store.Update(ctx, sessions.EdgeQueue, func(tx sessions.Tx) error { return tx.PutOutbox(rows...) })
	if err == nil {
		c.Take(rows...)
	}
	return err
}

// history shows the newest runs of a job, or of all.
func (c *cronRequest) history(ctx context.Context, args string) error {
	if args != "" {
		return c.onJob(ctx, args, func(ctx context.Context, j cron.Job, _ string) error {
			return c.showRuns(ctx, []cron.Job{j}, j.ID)
		})
	}
	list, err := c.jobs.List(ctx)
	if err != nil {
		return err
	}
	return c.showRuns(ctx, list, "")
}

// went says where the output of a run went; "" when there was none.
func (c *cronRequest) went(r brief.Result) string {
	said := ""
	if r.Silent != "" {
		said = "; " + c.t("command.cron.silent")
	}
	for _, d := range r.Deliveries {
		place := locales.Str("place", format.Code(platforms.TargetOf(d.Address, false)))
		switch d.State {
		case sessions.OutSent:
			said += "; " + c.t("command.cron.sent", place)
		case sessions.OutFailed, sessions.OutUnknown:
			said += "; ⚠️ " + c.t("command.cron.unsent", place, locales.Str("reason", format.EscapeMarkdown(clip(d.Error, 120))))
		default:
			said += "; " + c.t("command.cron.sending", place)
		}
	}
	for _, p := range r.Problems {
		said += "; ⚠️ " + format.EscapeMarkdown(clip(p, 120))
	}
	return said
}

func (c *cronRequest) showRuns(ctx context.Context, list []cron.Job, id cron.JobID) error {
	runs, err := c.jobs.Runs(ctx, id, shownRuns)
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		return c.reply(ctx, c.t("command.cron.no_runs"))
	}
	lines := []string{c.t("command.cron.history")}
	for _, run := range runs {
		name := string(run.Job)
		if i := slices.IndexFunc(list, func(j cron.Job) bool { return j.ID == run.Job }); i >= 0 {
			name = list[i].Name
		}
		lines = append(lines, "• "+c.t("command.cron.run_line", locales.Str("time", view.When(c.Printer, run.Slot, c.jobs.Zone())),
			locales.Str("name", bold(name)), locales.Str("end", c.end(run.State, run.Reason)))+c.went(brief.ReadResult(run)))
	}
	return c.reply(ctx, strings.Join(lines, "\n"))
}
