package format

import "strings"

// telegramNotation writes the HTML of the Bot API's parse_mode, https://core.telegram.org/bots/api#html-style.
// Quotes don't nest there, code holds no other markup, and a link that is code stays a link.
type telegramNotation struct{}

func (telegramNotation) marks(l *leaf, s *span) nest {
	if l.fenced() {
		return nest{}
	}
	marks := s.marks
	if marks.has(mono) {
		if marks.has(linked) {
			return nest{linked}
		}
		return nest{mono}
	}
	if l.kind == heading {
		marks = marks.around(bold)
	}
	return marks
}

func (telegramNotation) mark(m mark, s *span, _ byte) (string, string) {
	switch m {
	case bold:
		return "<b>", "</b>"
	case italic:
		return "<i>", "</i>"
	case strike:
		return "<s>", "</s>"
	case mono:
		return "<code>", "</code>"
	}
	return `<a href="` + attribute.Replace(s.link.url) + `">`, "</a>"
}

var attribute = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

func (telegramNotation) text(p *pen, _ *leaf, _ *span, text string) { p.htmlText(text) }

// htmlText writes text with the three characters escaped that Telegram and Slack give a meaning.
func (p *pen) htmlText(text string) {
	from := len(p.buf)
	p.buf = appendHTML(p.buf, text)
	p.escaped(from, text)
}

func appendHTML(buf []byte, text string) []byte {
	start := 0
	for i := 0; i < len(text); i++ {
		var entity string
		switch text[i] {
		case '&':
			entity = "&amp;"
		case '<':
			entity = "&lt;"
		case '>':
			entity = "&gt;"
		default:
			continue
		}
		buf = append(buf, text[start:i]...)
		buf = append(buf, entity...)
		start = i + 1
	}
	return append(buf, text[start:]...)
}

func (telegramNotation) shows(_ *leaf, s *span) bool { return s.kind != addressSpan }

func (telegramNotation) prefix(p *pen, i int, inside bool) {
	l := p.doc.lines[i].leaf
	quotes := 0
	for _, c := range l.path {
		if c.quote {
			if quotes++; quotes > 1 && !l.fenced() && !p.bare {
				p.htmlText("> ")
			}
			continue
		}
		if c.first == i && !inside {
			p.htmlText(c.marker)
		} else if !l.fenced() && !p.bare {
			p.show(indent(c.marker))
		}
	}
}

func (telegramNotation) leaf(l *leaf) (string, string, bool) {
	switch {
	case l.fenced() && l.lang != "":
		return `<pre><code class="language-` + l.lang + `">`, "</code></pre>", false
	case l.fenced():
		return "<pre>", "</pre>", false
	}
	return "", "", false
}

func (telegramNotation) quote() (string, string) { return "<blockquote>", "</blockquote>" }
