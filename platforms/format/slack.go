package format

import (
	"strings"
	"unicode/utf8"
)

// slackNotation writes Slack's mrkdwn, https://docs.slack.dev/messaging/formatting-message-text. There is no
// escape in it but for & < >, markup never spans lines, and a fence can't be quoted or indented.
type slackNotation struct{}

// zeroWidth lets mrkdwn see a word border inside a word, and breaks what would close a fence.
const zeroWidth = "\u200b"

func (slackNotation) marks(l *leaf, s *span) nest {
	if l.fenced() {
		return nest{}
	}
	marks := s.marks
	if marks.has(mono) && strings.Contains(s.text, "`") {
		marks = marks.without(mono)
	}
	if l.kind == heading {
		marks = marks.around(bold)
	}
	// A link's label takes no markup, so the link is inside of it.
	if marks.has(linked) {
		marks = marks.without(linked).with(linked)
	}
	return marks
}

func (slackNotation) mark(m mark, s *span, after byte) (string, string) {
	border := ""
	if m != linked && (after >= utf8.RuneSelf || after != 0 && isWord(rune(after)) && after != '_') {
		border = zeroWidth
	}
	switch m {
	case bold:
		return border + "*", "*"
	case italic:
		return border + "_", "_"
	case strike:
		return border + "~", "~"
	case mono:
		return border + "`", "`"
	}
	return "<" + string(appendHTML(nil, s.link.url)) + "|", ">"
}

func (slackNotation) text(p *pen, l *leaf, s *span, text string) {
	if s.kind == atomSpan && !s.marks.has(linked) && !l.fenced() && !p.bare {
		p.show(text)
		return
	}
	if l.fenced() {
		p.fencedText(text, true)
		return
	}
	if r, _ := utf8.DecodeRuneInString(text); p.closed && isWord(r) && !p.bare {
		p.sign(zeroWidth)
	}
	p.htmlText(text)
}

// fencedText writes a line of code; where a fence can't be made longer, a run that would end it is broken.
func (p *pen) fencedText(text string, html bool) {
	from := len(p.buf)
	body := strings.ReplaceAll(text, "```", "``"+zeroWidth+"`")
	if html {
		p.buf = appendHTML(p.buf, body)
	} else {
		p.buf = append(p.buf, body...)
	}
	p.escaped(from, text)
}

func (slackNotation) shows(_ *leaf, s *span) bool { return s.kind != addressSpan }

func (slackNotation) prefix(p *pen, i int, inside bool) {
	l := p.doc.lines[i].leaf
	quotes := 0
	for _, c := range l.path {
		if c.quote && !l.fenced() && !p.bare {
			if quotes++; quotes == 1 {
				p.sign("> ")
			} else {
				p.htmlText("> ")
			}
		}
	}
	for _, c := range l.path {
		switch {
		case c.quote:
		case c.first == i && !inside:
			p.htmlText(c.marker)
		case !l.fenced() && !p.bare:
			p.show(indent(c.marker))
		}
	}
}

func (slackNotation) leaf(l *leaf) (string, string, bool) {
	if l.fenced() {
		return "```\n", "\n```", false
	}
	return "", "", false
}

func (slackNotation) quote() (string, string) { return "", "" }

func (slackNotation) blank(p *pen, _ []*container) { p.sign(">") }
