package show

import (
	"cmp"
	"strings"

	"herald/locales"
	"herald/platforms/format"
	"herald/tools"
	"herald/tools/memory"
)

// maxThought bounds shown reasoning, in bytes: its end, where the conclusion is, is left out last.
const maxThought = 3000

// Answer is what a turn ends with.
type Answer struct {
	Text, Reasoning string
	// Exhausted says that the turn has used up its steps, which are Steps; Looped is the tool that a turn was ended for
	// because it was called again and again without effect, or "".
	Exhausted bool
	Steps     int
	Looped    string
	// Narrated keeps answers such as "(silent)" as they are, in place of the notice that there is no answer.
	Narrated bool
	// Footer is the line below the answer, or "".
	Footer string
}

// Answer is what people see of an answer, as Markdown: the answer, or a sentence about its absence, with what the chat
// wants around it.
func (v *View) Answer(a Answer) string {
	v.mu.Lock()
	p := v.s.o.Printer(v.at)
	v.mu.Unlock()
	text := a.Text
	if isSilenceToken(text) || (!a.Narrated && IsSilent(text)) {
		text = ""
		if !a.Exhausted && a.Looped == "" {
			text = p.T("turn.silent")
		}
	}
	if v.t.Display.Reasoning {
		text = Paragraphs(thought(p.T("progress.thinking"), a.Reasoning, v.t.Display.ReasoningForm), text)
	}
	if a.Exhausted {
		text = Paragraphs(text, "⚠️ "+p.N("turn.max_steps", a.Steps))
	}
	if a.Looped != "" {
		text = Paragraphs(text, "⚠️ "+p.T("turn.loop", locales.Str("tool", format.Code(a.Looped))))
	}
	return Paragraphs(Paragraphs(text, v.remembered(p)), a.Footer)
}

// Paragraphs joins two texts, either of which may be empty.
func Paragraphs(a, b string) string { return strings.TrimSpace(a + "\n\n" + b) }

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

// remember notes what the memory tool has kept, for a line below the answer. v.mu is held.
func (v *View) remember(e tools.Event) {
	if e.Result.IsError || argument(e.Call.Args, "action") == memory.Remove || strings.HasPrefix(e.Result.Summary, "nothing changed") {
		return
	}
	text := cmp.Or(argument(e.Call.Args, "content"), e.Result.Summary)
	if text = strings.Join(strings.Fields(text), " "); text != "" {
		v.kept = append(v.kept, shorten(text, 200))
	}
}

// remembered says what the turn has kept, a line for each.
func (v *View) remembered(p *locales.Printer) string {
	v.mu.Lock()
	kept := v.kept
	v.mu.Unlock()
	lines := make([]string, len(kept))
	for i, text := range kept {
		lines[i] = "💾 " + p.T("progress.memory", locales.Str("text", format.EscapeMarkdown(text)))
	}
	return strings.Join(lines, "  \n")
}
