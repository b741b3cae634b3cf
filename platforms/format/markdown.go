package format

import (
	"strings"
	"unicode/utf8"

	"herald/platforms"
)

// markdownNotation writes Markdown: all of it for the web page, or the part that Discord or Teams knows.
type markdownNotation struct{ dialect platforms.Dialect }

func (n markdownNotation) marks(l *leaf, s *span) nest {
	if l.fenced() || l.kind == rule {
		return nest{}
	}
	marks := s.marks
	if l.kind == heading && n.boldHeading(l) {
		marks = marks.around(bold)
	}
	if marks.has(mono) { // nothing is inside of code
		marks = marks.without(mono).with(mono)
	}
	return marks
}

// boldHeading tells whether a heading is shown as bold text: Discord knows three levels, Teams shows none on
// phones.
func (n markdownNotation) boldHeading(l *leaf) bool {
	return n.dialect == platforms.TeamsMD || n.dialect == platforms.DiscordMD && l.level > 3
}

func (n markdownNotation) mark(m mark, s *span, after byte) (string, string) {
	switch m {
	case bold:
		return "**", "**"
	case italic:
		if after == '*' {
			return "_", "_"
		}
		return "*", "*"
	case strike:
		return "~~", "~~"
	case mono:
		fence := strings.Repeat("`", longestRun(s.text, '`')+1)
		if fence != "`" || padded(s.text) {
			return fence + " ", " " + fence
		}
		return fence, fence
	}
	if s.kind == atomSpan {
		return "", ""
	}
	open := "["
	if s.link.image && n.dialect == platforms.Markdown {
		open = "!["
	}
	return open, "](" + destination(s.link.url) + ")"
}

// destination returns an address that no parenthesis of its own can end.
func destination(url string) string {
	depth := 0
	for i := 0; i < len(url); i++ {
		switch url[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth < 0 || depth > 1 {
			return parens.Replace(url)
		}
	}
	if depth != 0 {
		return parens.Replace(url)
	}
	return url
}

var parens = strings.NewReplacer("(", "%28", ")", "%29")

func (n markdownNotation) text(p *pen, l *leaf, s *span, text string) {
	switch {
	case l.kind == rule && text == "———":
		from := len(p.buf)
		p.buf = append(p.buf, "---"...)
		p.escaped(from, text)
	case l.kind == rule, s.kind == atomSpan && (s.marks.has(linked) || l.kind == table || n.dialect != platforms.Markdown):
		p.show(text)
	case l.fenced() && !p.bare:
		if l.fence == "```" || n.dialect == platforms.DiscordMD {
			p.fencedText(text, false)
		} else {
			p.show(text)
		}
	case s.marks.has(mono) && !p.bare:
		p.show(text)
	default:
		if p.silent && p.fresh { // indented it would be code
			text = strings.TrimLeft(text, " \t")
		}
		from := len(p.buf)
		p.buf = n.escape(p.buf, text, p.fresh && l.kind != heading || p.fresh && n.boldHeading(l))
		p.escaped(from, text)
	}
}

// escape appends text so that it reads as itself inside a line, at whose start it stands when fresh.
func (n markdownNotation) escape(buf []byte, text string, fresh bool) []byte {
	for i := 0; i < len(text); i++ {
		c := text[i]
		escape := false
		switch c {
		case '\\', '*', '`', '[', ']':
			escape = true
		case '_':
			escape = i == 0 || i == len(text)-1 || !isWordByte(text[i-1]) || !isWordByte(text[i+1])
		case '~':
			if n.dialect != platforms.DiscordMD && (i == 0 || i == len(text)-1) {
				buf = append(buf, "&#126;"...) // next to the signs of struck text no backslash helps
				continue
			}
			escape = true
		case '|':
			escape = n.dialect != platforms.TeamsMD
		case '<':
			if n.dialect == platforms.TeamsMD {
				buf = append(buf, "&lt;"...)
				continue
			}
			escape = true
		case '&':
			if n.dialect != platforms.DiscordMD {
				if _, size := reference([]byte(text[i:min(len(text), i+40)])); size > 0 {
					buf = append(buf, "&amp;"...)
					continue
				}
			}
		case '#', '>', '+', '=', '-', ':':
			escape = fresh && i == 0
		case '.', ')':
			escape = fresh && i > 0 && only(text[:i], "0123456789")
		case '!':
			escape = i+1 < len(text) && text[i+1] == '['
		}
		if escape {
			buf = append(buf, '\\')
		}
		buf = append(buf, c)
	}
	return buf
}

func isWordByte(c byte) bool { return c >= utf8.RuneSelf || c != '_' && isWord(rune(c)) }

func (n markdownNotation) shows(_ *leaf, s *span) bool { return s.kind != addressSpan }

// prefix opens the items around a line. At the start of a chunk the text of an item that began earlier stands
// at the border; the next item inside of it gets the markers of those around it again, so that it nests as
// before.
func (n markdownNotation) prefix(p *pen, i int, inside bool) {
	l := p.doc.lines[i].leaf
	starts := false
	for _, c := range l.path {
		starts = starts || !c.quote && c.first == i && !inside
	}
	var open [maxDepth]*container
	nopen := 0
	for _, c := range l.path {
		switch {
		case c.quote && p.bare:
		case c.quote:
			p.sign("> ")
		case c.first == i && !inside, starts && !p.isOpen(c):
			marker := c.source
			if n.dialect != platforms.Markdown {
				marker = c.marker
			}
			p.show(marker)
			open[nopen] = c
			nopen++
		case p.isOpen(c):
			if !p.bare && !(l.fenced() && n.dialect == platforms.DiscordMD) {
				p.show(step(c))
			}
			open[nopen] = c
			nopen++
		}
	}
	p.open, p.nopen = open, nopen
}

func (p *pen) isOpen(c *container) bool {
	for _, o := range p.open[:p.nopen] {
		if o == c {
			return true
		}
	}
	return false
}

func (n markdownNotation) leaf(l *leaf) (string, string, bool) {
	switch {
	case l.kind == table && n.dialect == platforms.Markdown:
	case l.fenced() && n.dialect == platforms.DiscordMD:
		return "```" + l.lang, "```", true
	case l.fenced():
		return l.fence + l.lang, l.fence, true
	case l.kind == heading && !n.boldHeading(l):
		return strings.Repeat("#", l.level) + " ", "", false
	}
	return "", "", false
}

func (markdownNotation) quote() (string, string) { return "", "" }

func (markdownNotation) blank(p *pen, inside []*container) {
	var s strings.Builder
	for _, c := range inside {
		if c.quote {
			s.WriteString("> ")
		} else if p.isOpen(c) {
			s.WriteString(step(c))
		}
	}
	p.sign(strings.TrimRight(s.String(), " "))
}

// step returns the indentation of what stands inside of an item.
func step(item *container) string { return indent(item.source[:strings.IndexByte(item.source, ' ')+1]) }

func (n markdownNotation) hardBreak() string {
	switch n.dialect {
	case platforms.Markdown:
		return "\\"
	case platforms.TeamsMD:
		return "  "
	}
	return ""
}

func (n markdownNotation) wholeRows() bool { return n.dialect == platforms.Markdown }
