package format

import (
	"cmp"
	"slices"
	"strings"

	"herald/platforms"
)

// notation is how one dialect spells a document. Its methods are pure but for what they write to the pen.
type notation interface {
	// marks returns the markup that a span of a leaf gets.
	marks(l *leaf, s *span) nest
	// mark returns what opens and closes a mark of s. after is the byte written last, 0 at a line's start.
	mark(m mark, s *span, after byte) (open, close string)
	// text writes what a reader sees of s.
	text(p *pen, l *leaf, s *span, text string)
	// shows tells whether the span is written at all.
	shows(l *leaf, s *span) bool
	// prefix writes what stands before line i: quote signs, the marker of an item, its indentation. inside is
	// true when the text of the line began earlier, so that no marker stands here.
	prefix(p *pen, i int, inside bool)
	// leaf returns what opens and closes a block, and whether they stand on lines of their own.
	leaf(l *leaf) (open, close string, own bool)
	// quote returns what opens and closes a quote; both empty where every line is marked instead.
	quote() (open, close string)
}

// openMark is a mark that waits for its end.
type openMark struct {
	kind  mark
	link  *link
	close string
	start int // UTF-16 offset, for styles
}

// penState is all of a pen that a step can change, so that the step can be taken back.
type penState struct {
	written int // len(buf)
	styled  int // len(styles)
	size    int // units that count, without what is still to be closed
	units   int // UTF-16 units of buf, for styles
	line    int // the line written last, -1 at the start
	leaf    *leaf
	close   string // of leaf
	quoted  *container
	unquote string // of quoted
	marks   [len(nest{})]openMark
	nmarks  int
	open    [maxDepth]*container // list items whose marker is in this chunk
	nopen   int
	// fresh is true at the start of a line's text, closed right behind the end of a mark.
	fresh, closed bool
	content       bool // something other than white space was written
}

// pen writes a range of a document in a notation and counts what it writes.
type pen struct {
	is     notation
	doc    *document
	unit   platforms.Unit
	markup bool // markup counts
	bare   bool // no markup: what doesn't fit otherwise
	ranges bool // styles are wanted
	silent bool // nothing is counted
	buf    []byte
	styles []platforms.Style
	penState
	work int // bytes handled, the measure of the splitter's work
}

func (p *pen) reset() {
	p.buf, p.styles = p.buf[:0], p.styles[:0]
	p.penState = penState{line: -1}
}

func (p *pen) save() penState {
	s := p.penState
	s.written, s.styled = len(p.buf), len(p.styles)
	return s
}

func (p *pen) restore(s penState) {
	p.penState = s
	p.buf, p.styles = p.buf[:s.written], p.styles[:s.styled]
}

// sign writes markup.
func (p *pen) sign(s string) {
	if s == "" {
		return
	}
	p.work += len(s)
	p.buf = append(p.buf, s...)
	p.tally(s, p.markup)
}

// show writes text that a reader sees and that needs no escape.
func (p *pen) show(s string) {
	p.work += len(s)
	p.buf = append(p.buf, s...)
	p.tally(s, true)
}

func (p *pen) tally(s string, counts bool) {
	if counts && !p.silent {
		p.size += Length(s, p.unit)
	}
	if p.ranges {
		p.units += Length(s, platforms.UTF16)
	}
}

// escaped counts text that was appended to buf from offset on.
func (p *pen) escaped(from int, text string) {
	p.work += len(p.buf) - from
	switch {
	case p.silent:
	case p.markup:
		p.size += lengthBytes(p.buf[from:], p.unit)
	default:
		p.size += Length(text, p.unit)
	}
	if p.ranges {
		p.units += lengthBytes(p.buf[from:], platforms.UTF16)
	}
}

// total returns the size of the chunk if it ended here.
func (p *pen) total() int {
	n := p.size
	if !p.markup || p.bare {
		return n
	}
	for _, m := range p.marks[:p.nmarks] {
		n += Length(m.close, p.unit)
	}
	return n + Length(p.close, p.unit) + Length(p.unquote, p.unit)
}

// startLine begins line i; see notation.prefix for inside.
func (p *pen) startLine(i int, inside bool) {
	ln := &p.doc.lines[i]
	same := p.line >= 0 && p.leaf == ln.leaf
	if !same || !p.ranges || !ln.leaf.fenced() || len(ln.leaf.path) > 0 { // else one range holds the block
		p.closeMarks(nest{}, nil)
	}
	if !same {
		p.closeLeaf()
	}
	outer := outerQuote(ln.leaf)
	if p.quoted != nil && p.quoted != outer {
		p.closeQuote()
	}
	if p.line >= 0 {
		if !same && (ln.gap > 1 || p.apart(ln)) {
			p.blank(p.doc.lines[p.line].leaf, ln.leaf)
		}
		p.newline(same && ln.hard)
	}
	if open, end := p.is.quote(); outer != nil && p.quoted == nil && open != "" && !p.bare {
		p.sign(open)
		p.quoted, p.unquote = outer, end
	}
	p.is.prefix(p, i, inside)
	for _, c := range ln.leaf.path {
		p.content = p.content || !c.quote && c.first == i && !inside
	}
	if !same {
		p.openLeaf(i)
	}
	p.line, p.fresh, p.closed = i, true, false
}

// apart tells whether the notation needs a blank line before a line, because the text before it would take it in.
func (p *pen) apart(ln *line) bool {
	if _, ok := p.is.(markdownNotation); !ok {
		return false
	}
	if kind := p.doc.lines[p.line].leaf.kind; ln.leaf.kind == rule && kind == paragraph {
		return true // else it would underline a title
	}
	if p.nopen > 0 {
		return false
	}
	for _, c := range ln.leaf.path {
		if !c.quote {
			kind := p.doc.lines[p.line].leaf.kind
			return kind == paragraph || kind == table
		}
	}
	return false
}

func outerQuote(l *leaf) *container {
	for _, c := range l.path {
		if c.quote {
			return c
		}
	}
	return nil
}

func (p *pen) newline(hard bool) {
	if b, ok := p.is.(breaker); ok && hard && !p.bare {
		p.sign(b.hardBreak())
	}
	p.show("\n")
}

// breaker is a notation that marks a hard line break before the line feed.
type breaker interface{ hardBreak() string }

// blank writes a blank line between two blocks, quoted when both are in the same quotes.
func (p *pen) blank(a, b *leaf) {
	p.show("\n")
	if open, _ := p.is.quote(); open != "" {
		return
	}
	common, quoted := 0, false
	for common < len(a.path) && common < len(b.path) && a.path[common] == b.path[common] {
		quoted = quoted || a.path[common].quote
		common++
	}
	if q, ok := p.is.(quoter); ok && quoted && !p.bare {
		q.blank(p, a.path[:common])
	}
}

// quoter is a notation that marks every line of a quote: blank writes a blank line inside of containers.
type quoter interface {
	blank(p *pen, inside []*container)
}

func (p *pen) openLeaf(i int) {
	l := p.doc.lines[i].leaf
	p.leaf, p.close = l, ""
	if p.bare {
		return
	}
	open, end, own := p.is.leaf(l)
	p.sign(open)
	if !own {
		p.close = end
		return
	}
	p.sign("\n")
	from := len(p.buf)
	p.is.prefix(p, i, true)
	p.close = "\n" + string(p.buf[from:]) + end
}

func (p *pen) closeLeaf() {
	p.sign(p.close)
	p.leaf, p.close = nil, ""
}

func (p *pen) closeQuote() {
	p.sign(p.unquote)
	p.quoted, p.unquote = nil, ""
}

// closeMarks closes marks until those left are the first of want and lead to the same link.
func (p *pen) closeMarks(want nest, l *link) int {
	keep := 0
	for keep < p.nmarks && keep < len(want) && p.marks[keep].kind == want[keep] {
		if want[keep] == linked && p.marks[keep].link != l {
			break
		}
		keep++
	}
	for p.nmarks > keep {
		p.nmarks--
		m := p.marks[p.nmarks]
		p.sign(m.close)
		p.closed = true
		if p.ranges {
			p.style(m)
		}
	}
	return keep
}

// style ends a style range.
func (p *pen) style(m openMark) {
	kind := styleKind(m.kind)
	if kind == "" || p.units <= m.start {
		return
	}
	p.styles = append(p.styles, platforms.Style{Start: m.start, Length: p.units - m.start, Kind: kind})
}

// ordered sorts ranges by start, the longer one first, and joins those of one kind that touch.
func ordered(styles []platforms.Style) []platforms.Style {
	slices.SortFunc(styles, func(a, b platforms.Style) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.Length, a.Length), strings.Compare(a.Kind, b.Kind))
	})
	var out []platforms.Style
	last := map[string]int{}
	for _, s := range styles {
		if i, ok := last[s.Kind]; ok && s.Start <= out[i].Start+out[i].Length {
			out[i].Length = max(out[i].Length, s.Start+s.Length-out[i].Start)
			continue
		}
		last[s.Kind] = len(out)
		out = append(out, s)
	}
	return out
}

func styleKind(m mark) string {
	switch m {
	case bold:
		return "BOLD"
	case italic:
		return "ITALIC"
	case strike:
		return "STRIKETHROUGH"
	case mono:
		return "MONOSPACE"
	}
	return ""
}

// write writes part of a span of the current line.
func (p *pen) write(l *leaf, s *span, text string) {
	if text == "" || !p.is.shows(l, s) {
		return
	}
	var want nest
	if !p.bare {
		want = p.is.marks(l, s)
	}
	for i := p.closeMarks(want, s.link); i < len(want) && want[i] != 0; i++ {
		var after byte
		if len(p.buf) > 0 && !p.fresh {
			after = p.buf[len(p.buf)-1]
		}
		open, end := p.is.mark(want[i], s, after)
		p.sign(open)
		p.marks[p.nmarks] = openMark{kind: want[i], link: s.link, close: end, start: p.units}
		p.nmarks++
		p.closed = false
	}
	if !p.content && strings.TrimSpace(text) != "" {
		p.content = true
	}
	p.is.text(p, l, s, text)
	p.fresh, p.closed = false, false
}

// span writes everything from one place to another.
func (p *pen) span(from, to pos, head bool) {
	p.begin(from, head)
	rows, _ := p.is.(rowWriter)
	whole := func(ln *line) bool { return rows != nil && ln.row != nil && rows.wholeRows() }
	for at := from; at != to && at.line < len(p.doc.lines); at = (pos{line: at.line + 1}) {
		ln := &p.doc.lines[at.line]
		if at.line > from.line {
			if at.line == to.line && to.span == 0 && to.off == 0 {
				return
			}
			if whole(ln) && ln.row.first != at.line {
				if at.line == to.line {
					return
				}
				continue
			}
			p.startLine(at.line, false)
		}
		if whole(ln) {
			p.show(ln.row.markdown)
			if at.line == to.line {
				return
			}
			continue
		}
		for i := at.span; i < len(ln.spans); i++ {
			text := ln.spans[i].text
			if at.line == to.line && i == to.span {
				if to.off > 0 {
					text = text[:to.off]
				} else {
					text = ""
				}
			}
			if i == at.span {
				text = text[at.off:]
			}
			p.write(ln.leaf, &ln.spans[i], text)
			if at.line == to.line && i == to.span {
				return
			}
		}
	}
}

// rowWriter is a notation that can write a row of a table in one line.
type rowWriter interface{ wholeRows() bool }

// begin starts a chunk at a place; head repeats the header of the table that the place is in.
func (p *pen) begin(from pos, head bool) {
	p.reset()
	if from.line >= len(p.doc.lines) {
		return
	}
	if ln := &p.doc.lines[from.line]; head {
		r, ok := p.is.(rowWriter)
		for i := ln.leaf.head; i < ln.leaf.head+2; i++ {
			p.startLine(i, true)
			if ok && r.wholeRows() {
				p.show(p.doc.lines[i].row.markdown)
				continue
			}
			for j := range p.doc.lines[i].spans {
				s := &p.doc.lines[i].spans[j]
				p.write(ln.leaf, s, s.text)
			}
		}
	}
	p.startLine(from.line, from.span > 0 || from.off > 0)
}

// finish closes everything and returns the chunk.
func (p *pen) finish() string {
	p.closeMarks(nest{}, nil)
	p.closeLeaf()
	p.closeQuote()
	return string(p.buf)
}
