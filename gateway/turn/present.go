package turn

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"herald/gateway/agent"
	"herald/gateway/model"
	"herald/gateway/turn/show"
	"herald/locales"
	"herald/platforms/format"
	"herald/sessions"
	"herald/tools/memory"
)

// footer is the line below an answer, empty when it is off.
func (run *Run) footer() string {
	run.mu.Lock()
	used := run.used
	run.mu.Unlock()
	var parts []string
	for _, field := range run.set.Footer {
		switch field {
		case "model":
			parts = append(parts, run.model.Info().String())
		case "context_pct":
			if used.LastContext > 0 {
				parts = append(parts, fmt.Sprintf("%.0f %%", 100*float64(used.LastPrompt)/float64(used.LastContext)))
			}
		case "latency":
			took := run.r.s.Now().Sub(run.turn.Began)
			parts = append(parts, fmt.Sprintf("%.1f s", math.Round(took.Seconds()*10)/10))
		case "cwd":
			parts = append(parts, run.r.s.Dir(run.session))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "_" + format.EscapeMarkdown(strings.Join(parts, " · ")) + "_"
}

// answer is what people see of an outcome.
func (run *Run) answer(outcome agent.Outcome, row *sessions.Message) string {
	return run.view.Answer(show.Answer{Text: row.Content, Reasoning: row.Reasoning, Exhausted: outcome.Exhausted, Steps: outcome.Steps,
		Looped: outcome.Looped, Narrated: run.set.ShowNarration, Footer: run.footer()})
}

// say speaks the language of the chat that the turn answers.
func (run *Run) say() *locales.Printer { return run.r.s.Printer(run.address()) }

// failed names for people what went wrong: the kind of a model error, or "" for an error of our own.
func failed(p *locales.Printer, kind model.Kind, retryAfter time.Duration) string {
	text := ""
	switch kind {
	case model.Auth:
		text = p.T("error.auth")
	case model.Policy:
		text = p.T("error.policy")
	case model.RateLimit:
		if text = p.T("error.rate_limit"); retryAfter > 0 {
			text = p.T("error.rate_limit_wait", locales.Dur("time", retryAfter))
		}
	case model.Down, model.Overloaded:
		text = p.T("error.down")
	case model.ContextLength:
		text = p.T("error.context_length")
	case model.Invalid:
		text = p.T("error.garbage")
	case model.NotFound:
		text = p.T("error.not_found")
	default:
		text = p.T("error.generic")
	}
	return "⚠️ " + text
}

// fileNotice says with the text of a key that a file did not get through.
func fileNotice(p *locales.Printer, key, name, reason string) string {
	return "⚠️ " + p.T(key, locales.Str("name", format.EscapeMarkdown(name)), locales.Str("reason", format.EscapeMarkdown(reason)))
}

// working says that long work goes on: with the tool that runs, or "".
func working(p *locales.Printer, since time.Duration, tool string, step int) string {
	if tool == "" {
		return "⏳ " + p.T("turn.working", locales.Dur("time", since))
	}
	return "⏳ " + p.T("turn.working_detail", locales.Dur("time", since), locales.Int("step", step), locales.Str("tool", format.Code(tool)))
}

// Compacting implements agent.Notifier.
func (run *Run) Compacting() {
	if run.set.CompactNotices {
		run.notice("🗜 " + run.say().T("turn.compacting"))
	}
}

// notice says a line in the chat, beside the answer.
func (run *Run) notice(text string) {
	row := run.row(sessions.OutNotice, text)
	if err := run.update(sessions.EdgeQueue, func(tx sessions.Tx) error { return tx.PutOutbox(row) }); err != nil {
		run.r.s.Log.Warn().Err(err).Int64("turn", int64(run.turn.ID)).Msg("a notice could not be queued")
		return
	}
	run.r.s.Outbox.Take(row)
}

// cooldown is the session's. Call keepCooldown when the loop has ended: only failures are remembered.
func (run *Run) cooldown() *agent.Cooldown {
	if c, ok := run.r.cooling.Load(run.session.ID); ok {
		return c.(*agent.Cooldown)
	}
	return &agent.Cooldown{}
}

func (run *Run) keepCooldown(c *agent.Cooldown) {
	if c.Failing() {
		run.r.cooling.Store(run.session.ID, c)
		return
	}
	run.r.cooling.Delete(run.session.ID)
}

// nudge is the reminder to remember things, when it is due: every NudgeEvery messages of people since the last time
// that the session has remembered something.
func (run *Run) nudge(rows []sessions.Message) string {
	if run.set.NudgeEvery <= 0 || !slices.Contains(run.session.Tools, memory.Name) {
		return ""
	}
	n := 0
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].Role == sessions.User && rows[i].Kind == sessions.KindPlain {
			n++
		}
		for _, c := range rows[i].ToolCalls {
			if c.Name == memory.Name {
				return due(n, run.set.NudgeEvery)
			}
		}
	}
	return due(n, run.set.NudgeEvery)
}

func due(n, every int) string {
	if n == 0 || n%every != 0 {
		return ""
	}
	return "Nothing has been saved with memory for a while. If the person has told you something lasting about themselves or the work, save it now; else ignore this."
}

// newest returns the last rows, at most n, beginning with a message of a person or a summary, so that no result loses
// its call. n 0 is all of them.
func newest(rows []sessions.Message, n int) []sessions.Message {
	if n <= 0 || len(rows) <= n {
		return rows
	}
	for i := len(rows) - n; i < len(rows); i++ {
		if rows[i].Role == sessions.User && rows[i].Kind != sessions.KindSteer {
			return rows[i:]
		}
	}
	return rows[len(rows)-n:]
}

// spread makes the chunks of an answer appear one after the other, with pauses.
func (run *Run) spread(rows []*sessions.OutboxRow) {
	if run.set.Pause == nil {
		return
	}
	at := run.r.s.Now()
	for i, row := range rows {
		if i == 0 {
			continue
		}
		if at = at.Add(run.set.Pause(len([]rune(row.Message.Text.Body)))); at.After(run.r.s.Now()) {
			row.NotBefore = at
		}
	}
}
