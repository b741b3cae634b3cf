package files

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The errors of Replace.
var (
	// ErrNoMatch: no strategy found the text.
	ErrNoMatch = errors.New("the text to replace was not found")
	// ErrAmbiguous: it occurs in more than one place and only one was asked for.
	ErrAmbiguous = errors.New("the text to replace is not unique")
)

// span is a part of the content, in bytes.
type span struct{ from, to int }

// strategy is one way to find a text. Each is tried only when all before it found nothing, from the most
// literal to the most lenient.
type strategy struct {
	name string
	find func(content, old string) []span
	// rewrite fits the replacement to what was found; nil takes it as it is.
	rewrite func(found, old, new string) string
}

// strategies are the nine ways in order.
var strategies = []strategy{
	{"exact", findExact, nil},
	{"trailing_space", byLine(trimRight), nil},
	{"indentation", findDedented, reindent},
	{"line_trimmed", byLine(strings.TrimSpace), reindent},
	{"whitespace", findSpaced, reindent},
	{"escapes", findUnescaped, func(_, _, new string) string { return unescape(new) }},
	{"unicode", byLine(func(s string) string { return strings.TrimSpace(ascii.Replace(s)) }), reindent},
	{"boundary", findBounded, reindentBounded},
	{"anchors", findAnchored, reindent},
}

// Replace replaces old by new. old must occur exactly once, unless all is set: then each
// place is replaced. It returns the new content, the strategy that found the text and how many places were
// replaced. Whenever content has old literally, the result is that of strings.Replace.
func Replace(content, old, new string, all bool) (result, how string, count int, err error) {
	if old == "" {
		return "", "", 0, errors.New("old_string is empty; give the text to replace, or use write_file for a new file")
	}
	if old == new {
		return "", "", 0, errors.New("old_string and new_string are the same; there is nothing to change")
	}
	for _, s := range strategies {
		spans := s.find(content, old)
		if len(spans) == 0 {
			continue
		}
		if len(spans) > 1 && !all {
			return "", s.name, len(spans), fmt.Errorf("%w: it occurs in %d places (lines %s); add lines around it until it is unique, or set replace_all", ErrAmbiguous, len(spans), lineNumbers(content, spans))
		}
		return splice(content, old, new, spans, s.rewrite), s.name, len(spans), nil
	}
	return "", "", 0, ErrNoMatch
}

func splice(content, old, new string, spans []span, rewrite func(found, old, new string) string) string {
	var b strings.Builder
	at := 0
	for _, s := range spans {
		b.WriteString(content[at:s.from])
		text := new
		if rewrite != nil {
			text = rewrite(content[s.from:s.to], old, new)
		}
		b.WriteString(text)
		at = s.to
	}
	b.WriteString(content[at:])
	return b.String()
}

func lineNumbers(content string, spans []span) string {
	var out []string
	for i, s := range spans {
		if i == 10 {
			return strings.Join(out, ", ") + ", …"
		}
		out = append(out, strconv.Itoa(strings.Count(content[:s.from], "\n")+1))
	}
	return strings.Join(out, ", ")
}

func findExact(content, old string) []span {
	var out []span
	for at := 0; ; {
		i := strings.Index(content[at:], old)
		if i < 0 {
			return out
		}
		out = append(out, span{at + i, at + i + len(old)})
		at += i + len(old)
	}
}

// textLine is one line of a content without its end.
type textLine struct {
	from, to int
	text     string
}

func splitLines(content string) []textLine {
	var out []textLine
	for at := 0; at <= len(content); {
		i := strings.IndexByte(content[at:], '\n')
		if i < 0 {
			if at < len(content) || at == 0 {
				out = append(out, textLine{at, len(content), content[at:]})
			}
			break
		}
		out = append(out, textLine{at, at + i, content[at : at+i]})
		at += i + 1
	}
	return out
}

// oldLines splits what is looked for; whole is true when it ends with a line end, which then belongs to
// what is replaced.
func oldLines(old string) (want []string, whole bool) {
	trimmed, whole := strings.CutSuffix(old, "\n")
	return strings.Split(trimmed, "\n"), whole
}

// block is the span of lines i to i+n-1.
func block(content string, ls []textLine, i, n int, whole bool) span {
	s := span{ls[i].from, ls[i+n-1].to}
	if whole && s.to < len(content) {
		s.to++
	}
	return s
}

// byLine finds runs of lines that are equal after norm. Text of blank lines alone is too little to go by.
func byLine(norm func(string) string) func(content, old string) []span {
	return func(content, old string) []span {
		want, whole := oldLines(old)
		return findLines(content, normalized(want, norm), whole, norm)
	}
}

func normalized(lines []string, norm func(string) string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = norm(l)
	}
	return out
}

func findLines(content string, want []string, whole bool, norm func(string) string) []span {
	if blank(want) {
		return nil
	}
	ls := splitLines(content)
	have := make([]string, len(ls))
	for i, l := range ls {
		have[i] = norm(l.text)
	}
	var out []span
	for i := 0; i+len(want) <= len(ls); i++ {
		if equalAt(have, want, i) {
			out = append(out, block(content, ls, i, len(want), whole))
			i += len(want) - 1
		}
	}
	return out
}

func equalAt(have, want []string, i int) bool {
	for j, w := range want {
		if have[i+j] != w {
			return false
		}
	}
	return true
}

func blank(lines []string) bool {
	for _, l := range lines {
		if strings.TrimSpace(l) != "" {
			return false
		}
	}
	return true
}

func trimRight(s string) string { return strings.TrimRight(s, " \t\r") }

// findDedented compares runs of lines without the indentation that all of their lines share.
func findDedented(content, old string) []span {
	want, whole := oldLines(old)
	if blank(want) {
		return nil
	}
	want = dedent(want)
	ls := splitLines(content)
	var out []span
	for i := 0; i+len(want) <= len(ls); i++ {
		if strings.TrimSpace(ls[i].text) != strings.TrimSpace(want[0]) {
			continue
		}
		window := make([]string, len(want))
		for j := range want {
			window[j] = ls[i+j].text
		}
		if equalAt(dedent(window), want, 0) {
			out = append(out, block(content, ls, i, len(want), whole))
			i += len(want) - 1
		}
	}
	return out
}

func dedent(lines []string) []string {
	shared, first := "", true
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		in := indent(l)
		if first {
			shared, first = in, false
		}
		for !strings.HasPrefix(in, shared) {
			shared = shared[:len(shared)-1]
		}
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = trimRight(strings.TrimPrefix(l, shared))
	}
	return out
}

func indent(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

var spaces = regexp.MustCompile(`[ \t]+`)

// findSpaced takes runs of blanks for one: line by line, or inside a line when old is a part of one.
func findSpaced(content, old string) []span {
	want, whole := oldLines(old)
	norm := func(s string) string { return strings.TrimSpace(spaces.ReplaceAllString(s, " ")) }
	if out := findLines(content, normalized(want, norm), whole, norm); len(out) > 0 {
		return out
	}
	fields := strings.Fields(old)
	if len(want) != 1 || whole || len(fields) < 2 {
		return nil
	}
	for i, f := range fields {
		fields[i] = regexp.QuoteMeta(f)
	}
	re, err := regexp.Compile(strings.Join(fields, `[ \t]+`))
	if err != nil {
		return nil
	}
	var out []span
	for _, m := range re.FindAllStringIndex(content, -1) {
		out = append(out, span{m[0], m[1]})
	}
	return out
}

// escapes are the sequences that a model writes when it quotes once too often.
var escapes = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\"`, `"`, `\'`, `'`)

func unescape(s string) string { return escapes.Replace(s) }

func findUnescaped(content, old string) []span {
	plain := unescape(old)
	if plain == old || strings.TrimSpace(plain) == "" {
		return nil
	}
	return findExact(content, plain)
}

// ascii replaces typographic characters by what a keyboard has.
var ascii = strings.NewReplacer(
	"\u2018", "'", "\u2019", "'", "\u201A", "'", "\u201B", "'", "\u201C", `"`, "\u201D", `"`, "\u201E", `"`, "\u00AB", `"`, "\u00BB", `"`,
	"\u2010", "-", "\u2011", "-", "\u2012", "-", "\u2013", "-", "\u2014", "-", "\u2212", "-", "\u2026", "...",
	"\u00A0", " ", "\u2007", " ", "\u202F", " ", "\u2009", " ", "\u200B", "", "\uFEFF", "",
)

// findBounded leaves out blank lines at the beginning and end of old.
func findBounded(content, old string) []span {
	inner := bounded(old)
	if inner == old || inner == "" {
		return nil
	}
	if strings.Contains(inner, "\n") {
		want, whole := oldLines(inner)
		return findLines(content, normalized(want, strings.TrimSpace), whole, strings.TrimSpace)
	}
	return findExact(content, strings.TrimSpace(inner))
}

// bounded returns s without blank lines around it and without the line end of its last line.
func bounded(s string) string {
	lines := strings.Split(s, "\n")
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return strings.Join(lines, "\n")
}

// reindentBounded fits a replacement whose own blank lines around it have no counterpart in what was found.
func reindentBounded(found, old, new string) string {
	inner := bounded(old)
	if !strings.Contains(inner, "\n") {
		return strings.TrimSpace(bounded(new))
	}
	return reindent(found, inner, bounded(new))
}

// findAnchored goes by the first and last line of a block of three or more, with the lines between alike in
// most characters. It answers only when one place fits.
func findAnchored(content, old string) []span {
	want, whole := oldLines(old)
	n := len(want)
	if n < 3 || n > 500 || strings.TrimSpace(want[0]) == "" || strings.TrimSpace(want[n-1]) == "" {
		return nil
	}
	first, last := strings.TrimSpace(want[0]), strings.TrimSpace(want[n-1])
	ls := splitLines(content)
	var out []span
	for i := 0; i+n <= len(ls); i++ {
		if strings.TrimSpace(ls[i].text) != first || strings.TrimSpace(ls[i+n-1].text) != last {
			continue
		}
		if alike(ls[i+1:i+n-1], want[1:n-1]) {
			out = append(out, block(content, ls, i, n, whole))
		}
	}
	if len(out) != 1 {
		return nil
	}
	return out
}

// alikeEnough is the share of characters that must be the same between two anchors.
const alikeEnough = 0.8

func alike(have []textLine, want []string) bool {
	total, far := 0, 0
	for i, w := range want {
		a, b := strings.TrimSpace(have[i].text), strings.TrimSpace(w)
		size := max(len(a), len(b))
		total += size
		if len(a) > 1000 || len(b) > 1000 {
			if a != b {
				far += size
			}
			continue
		}
		far += min(size, distance(a, b))
	}
	return total == 0 || float64(total-far)/float64(total) >= alikeEnough
}

// reindent moves the lines of new by what the found text is indented more, or less, than old.
func reindent(found, old, new string) string {
	had, wanted := firstIndent(found), firstIndent(old)
	if had == wanted {
		return new
	}
	lines := strings.Split(new, "\n")
	for i, l := range lines {
		switch {
		case strings.TrimSpace(l) == "":
		case strings.HasPrefix(l, wanted):
			lines[i] = had + l[len(wanted):]
		case strings.HasPrefix(wanted, indent(l)):
			lines[i] = had[:min(len(had), len(indent(l)))] + strings.TrimLeft(l, " \t")
		}
	}
	return strings.Join(lines, "\n")
}

func firstIndent(s string) string {
	for l := range strings.SplitSeq(s, "\n") {
		if strings.TrimSpace(l) != "" {
			return indent(l)
		}
	}
	return ""
}
