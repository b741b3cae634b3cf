package turn

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"herald/gateway/agent"
	"herald/platforms/format"
	"herald/sessions"
	"herald/tools"
	"herald/tools/memory"
)

// maxThought bounds shown reasoning, in bytes: its end, where the conclusion is, is left out last.
const maxThought = 3000

// shown is what people see of an answer: the answer, or a word about its absence, with what the chat wants around it.
func (run *Run) shown(outcome agent.Outcome, row *sessions.Message) string {
	s, at := run.r.s, run.address()
	text := row.Content
	ended := outcome.Exhausted || outcome.Looped != ""
	if isSilenceToken(text) || (!run.set.ShowNarration && IsSilent(text)) {
		text = ""
		if !ended {
			text = s.Texts.Silent(at)
		}
	}
	if run.display.Reasoning {
		text = paragraphs(thought(s.Texts.Thought(at), row.Reasoning, run.display.ReasoningForm), text)
	}
	if outcome.Exhausted {
		text = paragraphs(text, s.Texts.Exhausted(at, outcome.Steps))
	}
	if outcome.Looped != "" {
		text = paragraphs(text, s.Texts.Looped(at, outcome.Looped))
	}
	return paragraphs(paragraphs(text, run.remembered()), run.footer())
}

func paragraphs(a, b string) string { return strings.TrimSpace(a + "\n\n" + b) }

// thought renders reasoning as Markdown, below a title. Files that it names are not sent.
func thought(title, text, form string) string {
	text, _ = takeMedia(strings.TrimSpace(text))
	if text == "" {
		return ""
	}
	if len(text) > maxThought {
		text = "…" + strings.ToValidUTF8(text[len(text)-maxThought:], "")
	}
	if form == "blockquote" {
		return "> 💭 **" + title + "**\n> \n> " + strings.ReplaceAll(text, "\n", "\n> ")
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return "💭 **" + title + "**\n" + fence + "\n" + text + "\n" + fence
}

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

// Compacting implements agent.Notifier.
func (run *Run) Compacting() {
	if run.set.CompactNotices {
		run.notice(run.r.s.Texts.Compacting(run.address()))
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

// remember notes what the memory tool has kept, for a line below the answer. run.mu is held.
func (run *Run) remember(e tools.Event) {
	if e.Result.IsError || argument(e.Call.Args, "action") == memory.Remove || strings.HasPrefix(e.Result.Summary, "nothing changed") {
		return
	}
	text := cmp.Or(argument(e.Call.Args, "content"), e.Result.Summary)
	if text = strings.Join(strings.Fields(text), " "); text != "" {
		run.kept = append(run.kept, shorten(text, 200))
	}
}

// remembered says what the turn has kept, a line for each.
func (run *Run) remembered() string {
	run.mu.Lock()
	kept := run.kept
	run.mu.Unlock()
	lines := make([]string, len(kept))
	for i, text := range kept {
		lines[i] = run.r.s.Texts.Remembered(run.address(), format.EscapeMarkdown(text))
	}
	return strings.Join(lines, "  \n")
}
