package brief

import (
	"herald/cron"
	"herald/locales"
	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
)

// words is what people read, with its frame, and what a conversation keeps of it.
func (w *Writer) words(e Ended, d Draft) (framed, bare string) {
	cfg, at := w.o.Config(), d.first.Address
	switch {
	case e.State == sessions.RunMissed:
		notice := w.missedText(at, e)
		return notice, notice
	case e.Blocked != "":
		notice := w.blockedText(at, e)
		return notice, notice
	case e.State != sessions.RunRan:
		notice := w.failedText(at, e, cfg.Nudge)
		return notice, notice
	case !cfg.Wrap:
		return e.Text, e.Text
	}
	return cron.Wrap(w.frame(at, e.Job, d.Mirror || d.InChannel), e.Text), e.Text
}

// frame is what stands above a brief and below it; answered says that a reply to it is understood.
func (w *Writer) frame(at platforms.Address, job cron.Job, answered bool) cron.Frame {
	footer := "cron.footer"
	if !answered {
		footer = "cron.footer_unread"
	}
	p := w.o.Printer(at)
	return cron.Frame{Name: w.o.Redact(job.Name), ID: job.ID, Title: p.T("cron.title"),
		Footer: p.T(footer, locales.Str("id", string(job.ID)))}
}

// failedText says that a run has failed, and why; a job that fails again and again is worth a look.
func (w *Writer) failedText(at platforms.Address, e Ended, nudgeAfter int) string {
	p, streak := w.o.Printer(at), e.Job.Streak+1
	reason := format.EscapeMarkdown(w.o.Redact(cron.FailureLine(e.Reason)))
	text := "⚠️ " + p.T("cron.failed", w.name(e.Job), locales.Str("reason", reason))
	if cron.Nudge(streak, nudgeAfter, e.Job.Plan.Schedule.Kind != cron.Once) {
		text += "\n" + p.N("cron.nudge", streak, locales.Str("id", string(e.Job.ID)))
	}
	return text
}

// blockedText says that a job can't run before something is put right.
func (w *Writer) blockedText(at platforms.Address, e Ended) string {
	return "⛔ " + w.o.Printer(at).T("cron.blocked", w.name(e.Job), locales.Str("reason", format.EscapeMarkdown(e.Blocked)))
}

// missedText says that the time of a one-shot job has passed without it.
func (w *Writer) missedText(at platforms.Address, e Ended) string {
	slot := e.Run.Slot.In(w.o.Zone()).Format("2006-01-02 15:04 MST")
	return "⏰ " + w.o.Printer(at).T("cron.missed", w.name(e.Job), locales.Str("time", slot))
}

// refusedText names a file that was not sent, and why.
func (w *Writer) refusedText(at platforms.Address, name, reason string) string {
	return "⚠️ " + w.o.Printer(at).T("attachment.upload_failed", locales.Str("name", format.EscapeMarkdown(name)),
		locales.Str("reason", format.EscapeMarkdown(reason)))
}

func (w *Writer) name(job cron.Job) locales.Arg {
	return locales.Str("name", format.EscapeMarkdown(cron.Plain(w.o.Redact(job.Name), maxThreadName)))
}
