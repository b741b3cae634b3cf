package format

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// How far a construct may stay open before it is taken for text: longer labels and addresses are rare, and a
// reader should not wait for them.
const (
	longestLabel   = 500
	longestAddress = 2000
	longestTag     = 256
)

// Prefix returns what of a growing message can be shown now, as Markdown that is complete: an open fence, inline
// code and emphasis are closed, and what could still become something else is held back: half a link, the marker
// of an item without text, a table row that is not finished. For a message that grows, what one frame shows is
// the start of what the next one shows; the exceptions are markup that is never closed and so turns out to be
// text, link definitions that come late, and the columns of a table, which widen.
func Prefix(markdown string) string {
	s := normalise(markdown)
	for {
		f := openFence(s)
		if f.char == 0 {
			break
		}
		if closed, ok := f.closeIn(s); ok {
			return closed
		}
		s = trimEnd(s[:f.start])
	}
	for {
		start := blockStart(s)
		held, isTable := holdTable(s, start)
		if isTable && held > start {
			return trimEnd(s[:held])
		}
		if !isTable {
			held = holdLine(s, start)
		}
		if held < len(s) {
			s = trimEnd(s[:held])
			continue
		}
		p := inlineScan{text: s[start:]}
		p.run()
		cut := start + p.end
		if trimmed := trimEnd(s[:cut]); len(trimmed) < len(s) {
			// What is left may end in half a marker now.
			if holdLine(trimmed, blockStart(trimmed)) < len(trimmed) || len(trimmed) <= start {
				s = trimmed
				continue
			}
			return trimmed + p.closers()
		}
		return s + p.closers()
	}
}

// Settled returns what of a growing message will not change any more, as Markdown, for surfaces that can only append:
// Prefix without what it would have to close. An open code block, an unfinished table and open emphasis are held
// back until they are complete.
func Settled(markdown string) string {
	s := normalise(markdown)
	for {
		if f := openFence(s); f.char != 0 {
			s = trimEnd(s[:f.start])
			continue
		}
		start := blockStart(s)
		if _, isTable := holdTable(s, start); isTable {
			s = trimEnd(s[:start])
			continue
		}
		cut := holdLine(s, start)
		p := inlineScan{text: s[start:], codeAt: -1}
		p.run()
		cut = min(cut, start+p.end)
		if p.codeAt >= 0 {
			cut = min(cut, start+p.codeAt)
		}
		if len(p.open) > 0 {
			cut = min(cut, start+p.open[0].at)
		}
		trimmed := trimEnd(s[:cut])
		if len(trimmed) == len(s) {
			return s
		}
		s = trimmed
	}
}

func trimEnd(s string) string { return strings.TrimRight(s, " \t\n") }

// fence is a code fence that is not closed.
type fence struct {
	char   byte
	size   int
	start  int    // of its line
	body   int    // behind its line, -1 while that has no end
	prefix string // what stands before it, list markers as spaces
}

// openFence returns the fence that is open at the end of s; char is 0 when there is none.
func openFence(s string) fence {
	var f fence
	for at := 0; at < len(s); {
		end, next := len(s), -1
		if i := strings.IndexByte(s[at:], '\n'); i >= 0 {
			end, next = at+i, at+i+1
		}
		text := s[at:end]
		if f.char == 0 {
			prefix, rest := containers(text)
			if char, size := fenceRun(rest); size >= 3 && (char == '~' || strings.IndexByte(rest[size:], '`') < 0) {
				f = fence{char: char, size: size, start: at, body: next, prefix: prefix}
			}
		} else if rest := strings.TrimLeft(text, " \t>"); next >= 0 {
			if char, size := fenceRun(rest); char == f.char && size >= f.size && strings.TrimSpace(rest[size:]) == "" {
				f = fence{}
			}
		} else if char, size := fenceRun(rest); char == f.char && size == len(strings.TrimRight(rest, " ")) && size >= f.size {
			f = fence{}
		}
		if next < 0 {
			break
		}
		at = next
	}
	return f
}

func fenceRun(s string) (byte, int) {
	if s == "" || s[0] != '`' && s[0] != '~' {
		return 0, 0
	}
	n := 1
	for n < len(s) && s[n] == s[0] {
		n++
	}
	return s[0], n
}

// containers splits the quote signs and list markers off a line.
func containers(text string) (prefix, rest string) {
	var b strings.Builder
	for {
		trimmed := strings.TrimLeft(text, " \t")
		b.WriteString(text[:len(text)-len(trimmed)])
		text = trimmed
		n := markerLength(text)
		switch {
		case strings.HasPrefix(text, ">"):
			b.WriteByte('>')
			text = text[1:]
		case n > 0 && n < len(text) && isSpace(text[n]):
			b.WriteString(strings.Repeat(" ", n))
			text = text[n:]
		default:
			return b.String(), text
		}
	}
}

// markerLength returns the length of the list marker at the start of text, without the space behind it.
func markerLength(text string) int {
	if text == "" {
		return 0
	}
	if text[0] == '-' || text[0] == '*' || text[0] == '+' {
		return 1
	}
	n := 0
	for n < len(text) && n < 9 && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	if n > 0 && n < len(text) && (text[n] == '.' || text[n] == ')') {
		return n + 1
	}
	return 0
}

// closeIn returns s with the fence closed, false when there is nothing in it to show yet.
func (f fence) closeIn(s string) (string, bool) {
	if f.body < 0 {
		return "", false
	}
	body := s[f.body:]
	last := body[strings.LastIndexByte(body, '\n')+1:]
	if rest := strings.TrimLeft(last, " \t>"); rest == "" || strings.Trim(rest, string(f.char)) == "" && len(rest) < f.size {
		body = strings.TrimSuffix(body[:len(body)-len(last)], "\n") // may become the closing fence
	}
	if strings.Trim(body, " \t\n>") == "" {
		return "", false
	}
	return s[:f.body] + body + "\n" + f.prefix + strings.Repeat(string(f.char), f.size), true
}

// blockStart returns where the last block of s begins, as far as inline markup is concerned.
func blockStart(s string) int {
	at := len(s)
	for at > 0 {
		start := strings.LastIndexByte(s[:at], '\n') + 1
		text := s[start:at]
		prefix, rest := containers(text)
		switch {
		case strings.Trim(rest, " \t") == "" && at < len(s):
			return min(at+1, len(s))
		case strings.Trim(prefix, " \t") != "" && !strings.HasSuffix(strings.TrimRight(prefix, " "), ">"),
			len(prefix) > 0 && markerLength(strings.TrimLeft(text, " \t>")) > 0,
			strings.HasPrefix(rest, "#"):
			return start
		}
		if char, size := fenceRun(rest); char != 0 && size >= 3 {
			return min(at+1, len(s))
		}
		at = start - 1
	}
	return 0
}

// holdTable tells whether the block is a table, and where to cut so that none of its unfinished rows shows. A
// line that begins with a bar is one until the line below it says otherwise.
func holdTable(s string, start int) (int, bool) {
	block := s[start:]
	head, below, found := strings.Cut(block, "\n")
	_, first := containers(head)
	second, _, ended := strings.Cut(below, "\n")
	_, second = containers(second)
	switch {
	case !strings.Contains(head, "|"):
		return len(s), false
	case !found || below == "":
		return start, strings.HasPrefix(first, "|")
	case !delimiterRow(second) && (ended || strings.Trim(second, "|-: \t") != ""):
		return len(s), false
	}
	last := strings.LastIndexByte(block, '\n') + 1
	if strings.Count(block[:last], "\n") < 3 {
		return start, true // no row yet
	}
	return start + last, true
}

func delimiterRow(s string) bool {
	return strings.Contains(s, "-") && strings.Trim(s, "|-: \t>") == ""
}

// holdLine returns where to cut so that no marker shows before the text that it belongs to, len(s) for nowhere.
func holdLine(s string, start int) int {
	end := len(trimEnd(s))
	from := max(strings.LastIndexByte(s[:end], '\n')+1, start)
	if from >= end {
		return len(s)
	}
	text := s[from:end]
	_, rest := containers(text)
	rest = strings.TrimLeft(rest, " \t")
	if n := markerLength(rest); n == len(rest) && n > 0 || rest == "" && text != "" {
		return from
	}
	if strings.Trim(rest, "0123456789") == "" && len(rest) <= 9 && rest != "" && rest == strings.TrimLeft(text, " \t>") {
		return from
	}
	if strings.Trim(rest, "#") == "" && len(rest) <= 6 && rest != "" {
		return from
	}
	if strings.HasPrefix(rest, "#") { // the signs that may close a heading
		open := strings.TrimRight(rest, "#")
		if len(open) < len(rest) && strings.TrimLeft(open, "#") != open && strings.HasSuffix(open, " ") {
			return end - (len(rest) - len(open))
		}
		return len(s)
	}
	for _, set := range []string{"=", "- ", "* ", "_ ", "[ xX]", "`", "~"} {
		if rest != "" && len(rest) <= 80 && strings.Trim(rest, set) == "" && !(set == "[ xX]" && rest[0] != '[') {
			return from
		}
	}
	return len(s)
}

// delimiter is a run of emphasis signs that waits for its end.
type delimiter struct {
	char  byte
	count int
	at    int
	size  int // in the text
}

// inlineScan reads one block and finds where what can be shown ends, and what is open there.
type inlineScan struct {
	text string
	open []delimiter
	code string // the run that closes inline code
	// codeAt is where the code that is open begins; kept as it was when none is.
	codeAt int
	end    int
}

func (p *inlineScan) run() {
	p.end = len(p.text)
	for i := 0; i < p.end; {
		i = p.step(i)
	}
	p.trim()
}

// step reads what stands at i and returns where to go on.
func (p *inlineScan) step(i int) int {
	t := p.text
	switch c := t[i]; c {
	case '\\':
		if i+1 >= len(t) {
			p.end = i
		}
		return i + 2
	case '`':
		return p.backticks(i)
	case '*', '_', '~':
		return p.emphasis(i)
	case '!':
		if i+1 == len(t) && (i == 0 || unicode.IsSpace(rune(t[i-1]))) {
			p.end = i
		}
		return i + 1
	case '[':
		return p.bracket(i)
	case '<':
		return p.angle(i)
	case '&':
		if rest := t[i+1:]; len(rest) < 32 && strings.IndexFunc(rest, func(r rune) bool {
			return r != '#' && (r >= utf8.RuneSelf || !isWord(r))
		}) < 0 {
			p.end = i
		}
	}
	return i + 1
}

func (p *inlineScan) backticks(i int) int {
	t := p.text
	n := 1
	for i+n < len(t) && t[i+n] == '`' {
		n++
	}
	for j := i + n; j < len(t); {
		k := strings.IndexByte(t[j:], '`')
		if k < 0 {
			break
		}
		j += k
		m := 1
		for j+m < len(t) && t[j+m] == '`' {
			m++
		}
		if m == n {
			return j + m
		}
		j += m
	}
	content := strings.TrimRight(t[i+n:], "` \t\n")
	if strings.TrimLeft(content, " ") == "" {
		p.end = i
		return len(t)
	}
	p.end = i + n + len(content)
	p.code, p.codeAt = t[i:i+n], i
	if strings.HasPrefix(content, " ") && strings.HasPrefix(strings.TrimLeft(content, " "), "`") {
		p.code = " " + p.code
	}
	return len(t)
}

func (p *inlineScan) emphasis(i int) int {
	t := p.text
	c := t[i]
	n := 1
	for i+n < len(t) && t[i+n] == c {
		n++
	}
	before, _ := utf8.DecodeLastRuneInString(t[:i])
	after, _ := utf8.DecodeRuneInString(t[i+n:])
	if i == 0 {
		before = ' '
	}
	last := i+n == len(t)
	if last {
		after = ' '
	}
	spaceB, spaceA := unicode.IsSpace(before), unicode.IsSpace(after)
	punctB, punctA := isPunct(before), isPunct(after)
	left := !spaceA && (!punctA || spaceB || punctB)
	right := !spaceB && (!punctB || spaceA || punctA)
	opens, closes := left, right
	if c == '_' {
		opens, closes = left && (!right || punctB), right && (!left || punctA)
	}
	if c == '~' && n > 2 {
		return i + n
	}
	rest := n
	if closes {
		for k := len(p.open) - 1; k >= 0 && rest > 0; k-- {
			o := &p.open[k]
			if o.char != c || c == '~' && o.count != rest {
				continue
			}
			used := min(o.count, rest)
			if last && rest < o.count {
				break // the closing run is not all there yet
			}
			o.count -= used
			rest -= used
			p.open = p.open[:k+1]
			if o.count == 0 {
				p.open = p.open[:k]
			}
		}
	}
	if rest > 0 && last {
		p.end = i + n - rest
		return len(t)
	}
	if rest > 0 && opens {
		p.open = append(p.open, delimiter{char: c, count: rest, at: i + n - rest, size: rest})
	}
	return i + n
}

func isPunct(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }

// bracket reads a link. It holds back one that is not complete.
func (p *inlineScan) bracket(i int) int {
	t := p.text
	from := i
	if i > 0 && t[i-1] == '!' {
		from--
	}
	label := matching(t, i, '[', ']', longestLabel)
	if label < 0 {
		if len(t)-i <= longestLabel {
			p.end = from
			return len(t)
		}
		return i + 1
	}
	if label+1 == len(t) {
		p.end = from
		return len(t)
	}
	if t[label+1] != '(' {
		return i + 1
	}
	address := matching(t, label+1, '(', ')', longestAddress)
	if address < 0 {
		if rest := t[label+1:]; len(rest) <= longestAddress && !strings.Contains(rest, "\n\n") {
			p.end = from
			return len(t)
		}
		return i + 1
	}
	return address + 1
}

// matching returns where the bracket at i is closed, -1 when that is not within limit bytes.
func matching(t string, i int, open, end byte, limit int) int {
	depth := 0
	for j := i; j < len(t) && j-i <= limit; j++ {
		switch t[j] {
		case '\\':
			j++
		case open:
			depth++
		case end:
			if depth--; depth == 0 {
				return j
			}
		}
	}
	return -1
}

// angle reads what may be a tag, an address or a mention. It holds back one that is not complete.
func (p *inlineScan) angle(i int) int {
	t := p.text
	rest := t[i+1:]
	if rest == "" {
		p.end = i
		return len(t)
	}
	if c := rest[0]; !isWord(rune(c)) && strings.IndexByte("/!@#:?", c) < 0 {
		return i + 1
	}
	stop := strings.IndexAny(rest[:min(len(rest), longestTag)], "> \t\n<")
	switch {
	case stop < 0 && len(rest) < longestTag:
		p.end = i
		return len(t)
	case stop >= 0 && rest[stop] == '>':
		return i + 1 + stop + 1
	}
	return i + 1
}

// trim takes white space and openers without content off the end.
func (p *inlineScan) trim() {
	if p.code != "" {
		return
	}
	for {
		p.end = len(trimEnd(p.text[:p.end]))
		for len(p.open) > 0 && p.open[len(p.open)-1].at >= p.end {
			p.open = p.open[:len(p.open)-1]
		}
		if len(p.open) == 0 {
			return
		}
		o := p.open[len(p.open)-1]
		if o.at+o.size < p.end {
			return
		}
		p.end = o.at
	}
}

// closers returns what closes the code and the emphasis that are open.
func (p *inlineScan) closers() string {
	var b strings.Builder
	b.WriteString(p.code)
	for i := len(p.open) - 1; i >= 0; i-- {
		o := p.open[i]
		b.WriteString(strings.Repeat(string(o.char), o.count))
	}
	return b.String()
}
