package turn

import (
	"path/filepath"
	"strings"
	"unicode/utf8"

	"herald/platforms"
	"herald/tools"
)

// narrationLength bounds what the sign of life says, in characters: platforms show one short line.
const narrationLength = 50

// told is the newest tool call that runs.
type told struct {
	call tools.CallID
	tool string
	what string // its argument, for people
}

// tell notes what the sign of life says from its next refresh on. run.mu is held.
func (run *Run) tell(e tools.Event) {
	switch {
	case e.Spec.Hidden:
	case e.Phase == tools.PhaseStarted:
		run.told = told{call: e.Call.ID, tool: e.Call.Name, what: whatOf(e)}
	case e.Phase == tools.PhaseFinished && e.Call.ID == run.told.call:
		run.told = told{}
	}
}

// whatOf is the argument that says best what a call is about; of a path its last part.
func whatOf(e tools.Event) string {
	if e.Spec.Preview == "" {
		return ""
	}
	what := strings.Join(strings.Fields(argument(e.Call.Args, e.Spec.Preview)), " ")
	if what != "" && e.Spec.Preview == "path" {
		what = filepath.Base(what)
	}
	return what
}

// narration is what the sign of life says now; "" is the platform's own sign.
func (run *Run) narration(at platforms.Address) string {
	run.mu.Lock()
	now := run.told
	run.mu.Unlock()
	if run.display.Live == "off" || now.tool == "" {
		return run.display.LiveText
	}
	if run.display.Live == "verb" {
		now.what = ""
	}
	s := run.r.s
	return clip(s.Redact(s.Texts.Doing(at, now.tool, s.Redact(now.what))), narrationLength)
}

// clip cuts s to n characters, the mark at its end included.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:n-1])) + "…"
}
