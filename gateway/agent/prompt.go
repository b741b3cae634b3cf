package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"herald/gateway/model"
	"herald/platforms"
	"herald/sessions"
)

// PromptInput is what a session's system prompt is made of. The prompt is made once, at the session's first
// turn, and stays byte-stable.
type PromptInput struct {
	Session sessions.Session
	Tools   []string
	Model   model.Info
	Now     time.Time
	// Identity replaces the built-in one (SOUL.md in the home); Instructions are the operator's.
	Identity     string
	Instructions string
	// Memory and User are rendered blocks of the memory tool, empty when it is off.
	Memory, User string
	Dir          string
	// Scheduled says that nobody is there: the session is a run of a scheduled job.
	Scheduled bool
	// HidePeople leaves out names and ids (privacy.redact_pii).
	HidePeople bool
}

const identity = `You are Herald, an assistant that people talk to in their chats. You are helpful, honest and brief. You say what you did and what you did not do; you never claim a result that no tool gave you.`

// guidance says how to work. Each line stands only when its tools are there, so that the prompt never names a tool
// the session does not have.
var guidance = []struct {
	needs []string // all of them
	text  string
}{
	{[]string{}, "Finish what you were asked for. When something fails, say so, say why, and what would help."},
	{[]string{"read_file", "search_files"}, "Calls that do not depend on each other may be made together in one answer; reads and searches then run side by side."},
	{[]string{"read_file", "patch", "write_file"}, "Read a file before you change it. Prefer patch for changes and write_file for new files."},
	{[]string{"terminal"}, "Use terminal for commands. A command that needs longer than its time limit is ended."},
	{[]string{"todo"}, "For work of several steps keep a list with todo and update it as you go."},
	{[]string{"memory"}, "Save lasting facts about the person and the work with memory; do not save what is only of use now."},
	{[]string{"session_search"}, "When the person refers to an earlier conversation, look it up with session_search before you ask."},
	{[]string{"clarify"}, "Ask with clarify only when you can't go on without the answer."},
}

// Prompt builds the system prompt: what is stable first, what changes between sessions last.
func Prompt(in PromptInput) string {
	have := map[string]bool{}
	for _, name := range in.Tools {
		have[name] = true
	}
	var b strings.Builder
	if in.Identity != "" {
		b.WriteString(strings.TrimSpace(in.Identity))
	} else {
		b.WriteString(identity)
	}
	b.WriteString("\n")
	for _, g := range guidance {
		all := true
		for _, name := range g.needs {
			all = all && have[name]
		}
		if all {
			b.WriteString("\n- " + g.text)
		}
	}
	if len(in.Tools) > 0 {
		b.WriteString("\n- While you work, a note from the user may stand at the end of a tool result in square brackets. It is really from the user: take it into account.")
	}
	b.WriteString("\n- To send a file, write a line of its own: MEDIA:/absolute/path. The line is replaced by the file.")
	if in.Instructions != "" {
		b.WriteString("\n\n" + strings.TrimSpace(in.Instructions))
	}
	b.WriteString("\n\n" + place(in))
	for _, block := range []string{in.Memory, in.User} {
		if block != "" {
			b.WriteString("\n\n" + block)
		}
	}
	_, offset := in.Now.Zone()
	zone, _ := in.Now.Zone()
	fmt.Fprintf(&b, "\n\nConversation started: %s (%s, UTC%s)", in.Now.Format("Monday, January 02, 2006"), zone, offsetText(offset))
	fmt.Fprintf(&b, "\nModel: %s. Session: %s.", in.Model, in.Session.ID)
	return b.String()
}

// scheduled tells the model that it is alone.
const scheduled = "You run as a scheduled job (cron): nobody is there to talk to or to be asked. Do what the message says. Your last answer is delivered by itself to where the job's output goes: write only what its readers need, and do not send it yourself. When there is nothing new that is worth their attention, answer with [SILENT] and nothing else."

// place tells the model where it speaks.
func place(in PromptInput) string {
	if in.Scheduled {
		text := scheduled
		if !slices.Contains(in.Tools, "cronjob") {
			text += " Make no further jobs."
		}
		return text + " Write Markdown." + below(in)
	}
	o := in.Session.Origin
	var b strings.Builder
	fmt.Fprintf(&b, "You are talking on %s", o.Address.Platform)
	switch {
	case o.ChatType == platforms.DM && o.UserName != "" && !in.HidePeople:
		fmt.Fprintf(&b, " with %s in a direct chat.", o.UserName)
	case o.ChatType == platforms.DM:
		b.WriteString(" in a direct chat.")
	default:
		fmt.Fprintf(&b, " in a %s", o.ChatType)
		if o.ChatName != "" && !in.HidePeople {
			fmt.Fprintf(&b, " called %q", o.ChatName)
		}
		b.WriteString(".")
	}
	if o.Topic != "" {
		fmt.Fprintf(&b, " Its topic: %s.", o.Topic)
	}
	if o.Shared {
		b.WriteString(" Several people talk here; each message begins with the name of its sender.")
	}
	b.WriteString(" Write Markdown; it is shown in the platform's own form.")
	b.WriteString(below(in))
	return b.String()
}

// below tells where relative paths are.
func below(in PromptInput) string {
	if in.Dir == "" || len(in.Tools) == 0 {
		return ""
	}
	return fmt.Sprintf(" Relative paths are below %s.", in.Dir)
}

func offsetText(seconds int) string {
	sign := "+"
	if seconds < 0 {
		sign, seconds = "-", -seconds
	}
	return fmt.Sprintf("%s%02d:%02d", sign, seconds/3600, seconds%3600/60)
}
