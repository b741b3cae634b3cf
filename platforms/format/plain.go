package format

import (
	"strings"

	"herald/platforms"
)

// plainNotation writes no markup. The full form shows quote signs and where links lead; the short one is never
// longer than the same chunk in the platform's dialect.
type plainNotation struct {
	short  bool
	styled bool // Signal: marks become ranges
}

func (n plainNotation) marks(l *leaf, s *span) nest {
	if !n.styled {
		return nest{}
	}
	if l.fenced() || s.marks.has(mono) {
		return nest{mono}
	}
	marks := s.marks.without(linked)
	if l.kind == heading {
		marks = marks.around(bold)
	}
	return marks
}

func (plainNotation) mark(mark, *span, byte) (string, string) { return "", "" }

func (plainNotation) text(p *pen, _ *leaf, _ *span, text string) { p.show(text) }

func (n plainNotation) shows(_ *leaf, s *span) bool { return !n.short || s.kind != addressSpan }

func (n plainNotation) prefix(p *pen, i int, inside bool) {
	for _, c := range p.doc.lines[i].leaf.path {
		if c.quote {
			if !n.short {
				p.show("> ")
			}
			continue
		}
		if c.first == i && !inside {
			p.show(c.marker)
		} else if !n.short {
			p.show(indent(c.marker))
		}
	}
}

func (plainNotation) leaf(*leaf) (string, string, bool) { return "", "", false }

func (plainNotation) quote() (string, string) { return "", "" }

func (n plainNotation) blank(p *pen, inside []*container) {
	if n.short {
		return
	}
	var s strings.Builder
	for _, c := range inside {
		if c.quote {
			s.WriteString("> ")
		} else {
			s.WriteString(indent(c.marker))
		}
	}
	p.show(strings.TrimRight(s.String(), " "))
}

// indent returns as many spaces as a marker is wide.
func indent(marker string) string {
	const spaces = "                "
	return spaces[:min(Length(marker, platforms.CodePoints), len(spaces))]
}
