package format

import "herald/platforms"

// mark is one kind of inline markup.
type mark uint8

const (
	bold mark = iota + 1
	italic
	strike
	linked
	mono
)

// nest is the inline markup around a span, outermost first; zero ends it. It holds a mark once.
type nest [5]mark

func (n nest) has(m mark) bool {
	for _, x := range n {
		if x == m {
			return true
		}
	}
	return false
}

// with returns n with m inside of all others, or n when m is there already.
func (n nest) with(m mark) nest {
	for i, x := range n {
		if x == m {
			return n
		}
		if x == 0 {
			n[i] = m
			return n
		}
	}
	return n
}

// without returns n with m taken out.
func (n nest) without(m mark) nest {
	var out nest
	i := 0
	for _, x := range n {
		if x != 0 && x != m {
			out[i] = x
			i++
		}
	}
	return out
}

// around returns n with m outside of all others.
func (n nest) around(m mark) nest {
	n = n.without(m)
	copy(n[1:], n[:4])
	n[0] = m
	return n
}

// link is where a linked span leads.
type link struct {
	url   string
	image bool
}

type spanKind uint8

const (
	textSpan spanKind = iota
	// atomSpan is text that is never cut: a mention, a bare link, a table row in Markdown.
	atomSpan
	// addressSpan is the " (url)" behind a link. Only notations without links write it.
	addressSpan
)

// span is a run of text of one line with the same markup. Text is what a reader sees.
type span struct {
	text  string
	marks nest
	link  *link
	kind  spanKind
}

type leafKind uint8

const (
	paragraph leafKind = iota
	heading
	code
	table
	rule
)

// leaf is a block that holds lines.
type leaf struct {
	kind  leafKind
	path  []*container // outermost first, at most document.depth
	level int          // heading
	lang  string       // code, only characters of a language name
	fence string       // code, table: a fence that no line of it contains
	head  int          // table: its first line; the first two repeat at the top of a chunk
}

// fenced tells whether the lines are shown as they are, in a monospaced block.
func (l *leaf) fenced() bool { return l.kind == code || l.kind == table }

// container is a quote or a list item.
type container struct {
	quote  bool
	marker string // list item: "• ", "3. "
	source string // list item: the marker in Markdown
	first  int    // list item: the line that the marker stands on, -1 while there is none
	chain  []*container
}

// line is one line of the document.
type line struct {
	leaf  *leaf
	spans []span
	gap   int  // newlines before it: 1, or 2 for a blank line
	hard  bool // the break before it inside a paragraph was a hard one
	row   *row // table
}

// row is one row of a table. It has one line or, when its cells wrap, several.
type row struct {
	first    int    // its first line
	markdown string // the row as Markdown
}

// document is a message taken apart: what the splitter cuts and the pens write.
type document struct {
	dialect platforms.Dialect
	lines   []line
}

// pos is a place in a document: before byte off of that span of that line. A place between lines is the start
// of the line behind it.
type pos struct{ line, span, off int }

func (d *document) end() pos { return pos{line: len(d.lines)} }

// next returns p moved over the ends of spans and lines that it stands at.
func (d *document) next(p pos) pos {
	for p.line < len(d.lines) {
		spans := d.lines[p.line].spans
		if p.span < len(spans) && p.off < len(spans[p.span].text) {
			return p
		}
		if p.span+1 < len(spans) {
			p.span, p.off = p.span+1, 0
			continue
		}
		return pos{line: p.line + 1}
	}
	return p
}
