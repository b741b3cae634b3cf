package memory

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// rule is the line above and below a heading in the prompt.
var rule = strings.Repeat("═", 46)

// renderFloor is how much of a file is shown at least, in characters, however small its limit.
const renderFloor = 4000

// Snapshot returns both files as blocks for a system prompt, empty for a file that is off, missing or
// without entries. Take it when a session starts and keep it: what is written later shows in the next
// session, so that the prompt stays the same bytes. Entries that were edited by hand into commands are
// replaced by a notice. A file that can't be read gives a block that says so.
func (s *Store) Snapshot() (memory, user string) {
	return s.block(Memory, "MEMORY (your notes)"), s.block(User, "USER (what you know about the person)")
}

func (s *Store) block(t Target, title string) string {
	limit, on := s.limits[t]
	if !on {
		return ""
	}
	entries, err := s.Entries(t)
	if err != nil {
		return heading(title, "can't be read now")
	}
	if len(entries) == 0 {
		return ""
	}
	shown := make([]string, len(entries))
	for i, e := range entries {
		shown[i] = e
		if threat := Threat(e); threat != "" {
			shown[i] = "[BLOCKED: this entry " + threat + " and is not shown]"
		}
	}
	return heading(title, usage(entries, limit)) + "\n" + bounded(strings.Join(shown, delimiter), max(2*limit, renderFloor))
}

func heading(title, state string) string {
	return fmt.Sprintf("%s\n%s [%s]\n%s", rule, title, state, rule)
}

// bounded keeps 70 % of the limit from the head and 20 % from the tail of a text that is too long: a file
// that was filled by hand must not fill the prompt.
func bounded(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	runes := []rune(text)
	head, tail := limit*7/10, limit*2/10
	return fmt.Sprintf("%s\n[... %d characters left out: the file is far over its limit ...]\n%s",
		string(runes[:head]), len(runes)-head-tail, string(runes[len(runes)-tail:]))
}
