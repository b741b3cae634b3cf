package show

import "strings"

// thinkTags are the names under which models write their reasoning into the text.
var thinkTags = []string{"think", "thinking", "reasoning", "thought", "reasoning_scratchpad"}

// Thinking takes reasoning blocks out of a streamed text. It reacts only at the start of a block (the
// beginning of the text or of a line), tolerates tags that are split across pieces, and leaves prose that
// mentions a tag alone. The zero value is ready.
type Thinking struct {
	hold    string // text that may be the beginning of a tag
	inside  string // the tag that is open
	midline bool   // the last character given out was not a line break
	wrote   bool   // something was given out
	trim    bool   // white space behind a closed block is left out
	thought strings.Builder
}

// Write takes a piece and returns what of the text so far is known to be visible.
func (t *Thinking) Write(piece string) string {
	t.hold += piece
	var out strings.Builder
	defer func() { t.wrote = t.wrote || out.Len() > 0 }()
	for t.hold != "" {
		if t.trim {
			t.hold = strings.TrimLeft(t.hold, " \n")
			t.trim = t.hold == ""
			continue
		}
		if t.inside != "" {
			if !t.skip() {
				break
			}
			continue
		}
		if t.midline {
			i := strings.IndexByte(t.hold, '\n')
			if i < 0 {
				out.WriteString(t.hold)
				t.hold = ""
				break
			}
			out.WriteString(t.hold[:i+1])
			t.hold, t.midline = t.hold[i+1:], false
			continue
		}
		body := strings.TrimLeft(t.hold, " \t\r\n")
		if body == "" {
			break // white space at a line's start: a tag may follow
		}
		tag, partial := openTag(body)
		switch {
		case tag != "":
			lead := t.hold[:len(t.hold)-len(body)]
			if strings.Contains(lead, "\n") && (t.wrote || out.Len() > 0) {
				out.WriteString(lead)
			}
			t.inside, t.hold = tag, body[len(tag)+2:]
		case partial:
			return out.String()
		default:
			out.WriteString(t.hold[:len(t.hold)-len(body)])
			t.hold, t.midline = body, true
		}
	}
	return out.String()
}

// skip drops text of an open block. It returns false when more text is needed.
func (t *Thinking) skip() bool {
	closing := "</" + t.inside + ">"
	lower := lowerASCII(t.hold)
	if i := strings.Index(lower, closing); i >= 0 {
		t.thought.WriteString(t.hold[:i])
		t.hold, t.inside, t.midline, t.trim = t.hold[i+len(closing):], "", false, true
		return true
	}
	keep := 0
	for n := min(len(closing)-1, len(lower)); n > 0; n-- {
		if strings.HasSuffix(lower, closing[:n]) {
			keep = n
			break
		}
	}
	t.thought.WriteString(t.hold[:len(t.hold)-keep])
	t.hold = t.hold[len(t.hold)-keep:]
	return false
}

// Rest returns what was held back and is visible after all, because the text has ended.
func (t *Thinking) Rest() string {
	rest := t.hold
	t.hold = ""
	if t.inside != "" {
		t.thought.WriteString(rest)
		return ""
	}
	return rest
}

// openTag reports the reasoning tag that s begins with, or that s may be the beginning of one.
func openTag(s string) (tag string, partial bool) {
	lower := lowerASCII(s)
	for _, name := range thinkTags {
		open := "<" + name + ">"
		if strings.HasPrefix(lower, open) {
			return name, false
		}
		if strings.HasPrefix(open, lower) {
			partial = true
		}
	}
	return "", partial
}

// StripThinking takes the reasoning blocks out of a complete text.
func StripThinking(s string) (text, thought string) {
	var t Thinking
	text = t.Write(s) + t.Rest()
	return text, t.thought.String()
}

// lowerASCII lowers the letters of tags and keeps every other byte, so that positions stay the same.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
