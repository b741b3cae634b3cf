package demo

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

const (
	// maxRequest is how much of a request is looked at, in bytes.
	maxRequest = 64 << 10
	// maxSteps bounds what one request may ask for.
	maxSteps = 20
)

// rule turns a request of one shape into a step. build gets the submatches and returns nil when the request
// is not of its kind after all.
type rule struct {
	pattern *regexp.Regexp
	build   func(e *env, m []string) *step
}

// compile returns all shapes as rules, in the order in which they are tried.
func compile() []rule {
	var all []rule
	for _, family := range []func() []shape{
		directShapes, planningShapes, codeShapes, webShapes, fileShapes, memoryShapes, messageShapes, otherShapes, talkShapes,
	} {
		for _, s := range family() {
			all = append(all, rule{regexp.MustCompile(`(?is)^(?:` + s.pattern + `)$`), s.build})
		}
	}
	return all
}

// shape is a rule before its pattern is compiled.
type shape struct {
	pattern string
	build   func(e *env, m []string) *step
}

// plan returns the steps of a request, at least one.
func (e *env) plan(request string) []step {
	text := strings.TrimSpace(strings.ToValidUTF8(request, ""))
	if len(text) > maxRequest {
		return []step{*say("That message has " + strconv.Itoa(len([]rune(request))) + " characters. " +
			"I read every one of them and understood none: as a demo I only know short, plain requests. " + e.examples())}
	}
	text, files := takeAttached(text)
	if len(files) > 0 {
		e.file = files[len(files)-1].path
	}
	if text == "" {
		if len(files) > 0 && e.images == 0 {
			return []step{*say(received(files))}
		}
		if e.images > 0 {
			return []step{*say("I got " + plural(e.images, "picture", "pictures") + ", but the demo model can't see.")}
		}
		return []step{*say("Your message was empty. " + e.examples())}
	}
	text = bareText(text)
	if steps := e.paragraphs(text); steps != nil {
		return steps
	}
	if steps := e.sequence(text, maxSteps); steps != nil {
		return steps
	}
	return []step{*e.unknown(text)}
}

// bareText takes off what the gateway put around what the person wrote: bracketed notes before it.
func bareText(text string) string {
	for strings.HasPrefix(text, "[") {
		if rest, ok := strings.CutPrefix(text, noteMark); ok {
			text = strings.TrimSpace(strings.Replace(rest, "]", "", 1))
			continue
		}
		end := strings.IndexByte(text, ']')
		if end < 0 || end > 2000 || strings.TrimSpace(text[end+1:]) == "" {
			return text
		}
		if strings.HasPrefix(text, "[Heard in the room") {
			_, rest, ok := strings.Cut(text, "\n\n")
			if !ok {
				return text
			}
			text = strings.TrimSpace(rest)
			continue
		}
		text = strings.TrimSpace(text[end+1:])
	}
	return text
}

// paragraphs reads several messages that reached the model as one, when each of them is understood. A slow
// answer that something else follows was interrupted: it is not begun again. Nil when the text is not like
// that.
func (e *env) paragraphs(text string) []step {
	parts := strings.Split(text, "\n\n")
	if len(parts) < 2 || strings.Contains(text, "```") || len(parts) > maxSteps {
		return nil
	}
	var steps []step
	for i, p := range parts {
		p = bareText(strings.TrimSpace(p))
		if p == "" {
			continue
		}
		mine := e.sequence(p, maxSteps)
		if mine == nil || (len(mine) == 1 && mine[0].whole && i < len(parts)-1 && !mine[0].slow) {
			return nil
		}
		if i < len(parts)-1 {
			kept := mine[:0]
			for _, s := range mine {
				if !s.slow {
					kept = append(kept, s)
				}
			}
			mine = kept
		}
		steps = append(steps, mine...)
	}
	return steps
}

// sequence reads a request as one step or as several joined by "then", "and" and the like. Nil when it is
// not understood.
func (e *env) sequence(text string, most int) []step {
	text = polite(text)
	one := e.match(text)
	if one != nil && one.whole || most <= 1 {
		return list(one)
	}
	for _, joint := range joints(text) {
		file := e.file
		left := e.match(polite(text[:joint[0]]))
		if left == nil || left.whole || left.tool == "" {
			continue
		}
		if left.file != "" {
			e.file = left.file
		}
		rest := e.sequence(text[joint[1]:], most-1)
		if rest == nil || rest[0].tool == "" && !rest[0].joins && !joined(text[joint[0]:joint[1]]) {
			e.file = file
			continue
		}
		return append([]step{*left}, rest...)
	}
	if one != nil && one.file != "" {
		e.file = one.file
	}
	return list(one)
}

func list(s *step) []step {
	if s == nil {
		return nil
	}
	return []step{*s}
}

// joined reports whether a joint says by itself that a second request follows.
func joined(joint string) bool { return strings.Contains(joint, "then") }

// joints returns where one request may end and the next begin, from the left, outside quotes and fences.
func joints(text string) [][2]int {
	var out [][2]int
	var quote byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		if strings.HasPrefix(text[i:], "```") {
			end := strings.Index(text[i+3:], "```")
			if end < 0 {
				break
			}
			i += end + 5
			continue
		}
		if quote != 0 {
			if c == quote {
				quote = 0
			}
			continue
		}
		if (c == '"' || c == '`') || c == '\'' && (i == 0 || text[i-1] == ' ') && strings.IndexByte(text[i+1:], '\'') >= 0 {
			if strings.IndexByte(text[i+1:], c) >= 0 {
				quote = c
				continue
			}
		}
		for _, j := range [...]string{", and then ", " and then ", ", then ", "; then ", ". then ", ". Then ", " then ", ", and ", " and ", "; ", ". ", "\n"} {
			if strings.HasPrefix(text[i:], j) {
				out = append(out, [2]int{i, i + len(j)})
				break
			}
		}
		if len(out) > 200 {
			break
		}
	}
	return out
}

var politePrefixes = [...]string{
	"please ", "pls ", "hey ", "hi, ", "hello, ", "ok ", "ok, ", "okay, ", "okay ", "now ", "now, ", "so ", "also ", "and ", "then ",
	"herald, ", "herald: ", "@herald ", "@herald, ", "can you ", "could you ", "would you ", "will you ", "i want you to ",
	"i'd like you to ", "i would like you to ", "just ", "first ", "first, ", "let's ", "no, ", "actually, ", "actually ",
}

// polite takes off words that change nothing.
func polite(s string) string {
	s = strings.TrimSpace(s)
	for again := true; again; {
		again = false
		for _, p := range politePrefixes {
			if len(s) > len(p) && strings.EqualFold(s[:len(p)], p) {
				s = strings.TrimSpace(s[len(p):])
				again = true
			}
		}
	}
	for _, end := range []string{" please", ", please", " for me", " now", ", thanks", " thanks"} {
		t := strings.TrimRight(s, ".!? ")
		if len(t) > len(end) && strings.EqualFold(t[len(t)-len(end):], end) {
			s = t[:len(t)-len(end)]
		}
	}
	return strings.TrimSpace(s)
}

// match finds the rule for a text. In a group it begins with the name of the sender.
func (e *env) match(text string) *step {
	if text == "" {
		return nil
	}
	for _, candidate := range [...]string{text, strings.TrimRight(text, " .!?"), withoutSender(text)} {
		if candidate == "" {
			continue
		}
		for _, r := range e.rules() {
			if m := r.pattern.FindStringSubmatch(candidate); m != nil {
				if s := r.build(e, m); s != nil {
					return s
				}
			}
		}
	}
	return nil
}

func withoutSender(s string) string {
	name, rest, ok := strings.Cut(s, ": ")
	if !ok || name == "" || len(name) > 60 || strings.ContainsAny(name, "\n\"'`/=") {
		return ""
	}
	return polite(strings.TrimRight(rest, " .!?"))
}

// unquote takes quotes off that surround the whole text.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	for _, q := range [...][2]string{{"```", "```"}, {`"`, `"`}, {"'", "'"}, {"`", "`"}, {"“", "”"}, {"‘", "’"}, {"«", "»"}} {
		if len(s) >= len(q[0])+len(q[1]) && strings.HasPrefix(s, q[0]) && strings.HasSuffix(s, q[1]) {
			inner := s[len(q[0]) : len(s)-len(q[1])]
			if q[0] == "```" {
				return fenced(s)
			}
			if !strings.Contains(inner, q[1]) {
				return inner
			}
		}
	}
	return s
}

// fenced returns what a code fence holds, without its language; s itself when it is not a fence.
func fenced(s string) string {
	rest, ok := strings.CutPrefix(strings.TrimSpace(s), "```")
	if !ok {
		return s
	}
	rest = strings.TrimSuffix(strings.TrimRight(rest, " \n"), "```")
	if nl := strings.IndexByte(rest, '\n'); nl >= 0 && !strings.ContainsAny(rest[:nl], " \t({=") {
		rest = rest[nl+1:]
	}
	return strings.TrimRight(rest, "\n")
}

// path reads a file name: quotes and the full stop of a sentence are taken off, "it" is the last file.
func (e *env) path(s string) string {
	s = strings.TrimSpace(s)
	switch strings.ToLower(strings.TrimRight(s, ".!?")) {
	case "it", "that", "this", "the file", "that file", "this file", "the same file":
		return e.file
	}
	q := unquote(s)
	if q == s {
		q = strings.TrimRight(q, ",;:!?")
		if t := strings.TrimRight(q, "."); t != "" {
			q = t
		}
	}
	return q
}

// slug makes an id of a text: its first letters and digits, joined by "-".
func slug(s string) string {
	var b strings.Builder
	dash := false
	for _, r := range strings.ToLower(s) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			if dash && b.Len() > 0 {
				b.WriteByte('-')
			}
			dash = false
			b.WriteRune(r)
		} else {
			dash = true
		}
		if b.Len() >= 32 {
			break
		}
	}
	if b.Len() == 0 {
		return "item"
	}
	return b.String()
}

// enumerate splits "a, b and c".
func enumerate(s string, words ...string) []string {
	for _, w := range words {
		s = strings.ReplaceAll(s, ", "+w+" ", ", ")
		s = strings.ReplaceAll(s, " "+w+" ", ", ")
	}
	var out []string
	for _, p := range strings.Split(s, ",") {
		if p = unquote(strings.TrimSpace(p)); p != "" {
			out = append(out, p)
		}
	}
	return out
}

// clip cuts a text at about n bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
