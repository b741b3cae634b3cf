package format

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"herald/platforms"
)

// chunk is one piece of a split document.
type chunk struct {
	from, to pos
	head     bool // the header of a table stands at its top again
	bare     bool // written without markup: it did not fit otherwise
	body     string
	styles   []platforms.Style
	last     *leaf
	sep      string // the white space of the whole text between the chunk before and this one
	after    string // the white space behind it
}

// cut is a place where a chunk can end, and the pen as it was there.
type cut struct {
	ok    bool
	at    pos    // where the next chunk begins
	end   pos    // where this chunk's text ends; differs from at by white space
	sep   string // the white space between
	state penState
}

// splitter cuts a document into chunks. It fills one chunk after the other as far as it goes, then takes the
// best border behind the middle: between blocks, else between lines, sentences, words; inside of a word only
// when it alone is longer than half a chunk. As no chunk is less than about half full, each part of the document
// is written at most about twice.
type splitter struct {
	*pen
	budget                 int // units of a chunk, 0 for no limit
	block, row, stop, last cut
	over                   cut // where the text stopped to fit
	first                  pos // of the chunk
}

// split returns the chunks in order, at most limit of them when limit is positive. Chunks that hold nothing
// but white space are left out; what they held is in the sep of the next.
func (s *splitter) split(limit int) []chunk {
	var chunks []chunk
	sep := ""
	for at := (pos{}); at.line < len(s.doc.lines); {
		c, next := s.fill(at)
		c.sep = sep
		if s.content {
			chunks = append(chunks, c)
			sep = ""
		} else {
			p := &pen{is: plainNotation{short: true}, doc: s.doc, silent: true}
			p.span(c.from, c.to, false)
			sep += p.finish()
		}
		if limit > 0 && len(chunks) == limit {
			break
		}
		sep += c.after
		at = next
	}
	return chunks
}

// fill makes the chunk that begins at a place and returns where the next one begins.
func (s *splitter) fill(from pos) (chunk, pos) {
	s.bare = false
	end := s.run(from)
	if !end.ok {
		s.bare = true
		if end = s.run(from); !end.ok {
			end = s.force(from)
		}
	}
	if end.at.span == 0 && end.at.off == 0 && end.at.line < len(s.doc.lines) {
		end.sep = s.between(end.at.line)
	}
	s.restore(end.state)
	c := chunk{from: from, to: end.end, head: s.repeats(from), bare: s.bare, after: end.sep, last: s.leaf}
	c.body = s.finish()
	c.styles = ordered(s.styles)
	return c, end.at
}

// repeats tells whether a chunk that begins at a place shows the header of its table first.
func (s *splitter) repeats(from pos) bool {
	l := s.doc.lines[from.line].leaf
	return l.kind == table && from.line > l.head+1 && from.span == 0 && from.off == 0 && !s.bare
}

func (s *splitter) fits() bool { return s.budget == 0 || s.total() <= s.budget }

// full tells whether a chunk with that pen has at least the share num/den of its budget.
func (s *splitter) full(c cut, num, den int) bool {
	return c.ok && c.state.size*den >= s.budget*num
}

// run writes from a place until the text ends or stops to fit, and returns the best place to end, none when
// not even the smallest piece fits.
func (s *splitter) run(from pos) cut {
	s.block, s.row, s.stop, s.last, s.over = cut{}, cut{}, cut{}, cut{}, cut{}
	s.first = from
	s.begin(from, s.repeats(from))
	if !s.fits() {
		return cut{}
	}
	for at := from; at.line < len(s.doc.lines); at = (pos{line: at.line + 1}) {
		if at.line > from.line {
			before := s.save()
			s.startLine(at.line, false)
			if !s.fits() {
				s.restore(before)
				return s.choose()
			}
		}
		if !s.fillLine(at) {
			return s.choose()
		}
		s.lineEnd(at.line)
	}
	end := s.doc.end()
	return cut{ok: true, at: end, end: end, state: s.save()}
}

// between returns the white space before line i.
func (s *splitter) between(i int) string {
	if s.doc.lines[i-1].leaf != s.doc.lines[i].leaf && s.doc.lines[i].gap > 1 {
		return "\n\n"
	}
	return "\n"
}

// lineEnd notes the border behind a line.
func (s *splitter) lineEnd(i int) {
	next := i + 1
	if next >= len(s.doc.lines) {
		return
	}
	a, b := &s.doc.lines[i], &s.doc.lines[next]
	at := pos{line: next}
	c := cut{ok: true, at: at, end: at, state: s.save()}
	switch {
	case a.leaf == b.leaf && a.leaf.kind == table && i <= a.leaf.head+1 && !s.bare:
		return // a header without a row
	case a.row != nil && a.row == b.row, a.leaf.kind == heading:
		// inside of a row, or behind a title: only where nothing else is found
	case a.leaf != b.leaf && (b.gap > 1 || a.leaf.fenced() || b.leaf.fenced()):
		s.block = c
	default:
		s.row = c
	}
	s.last = c
}

// fillLine writes the current line from a place and tells whether all of it fit.
func (s *splitter) fillLine(at pos) bool {
	ln := &s.doc.lines[at.line]
	for at.span < len(ln.spans) {
		sp := &ln.spans[at.span]
		if !s.is.shows(ln.leaf, sp) {
			at.span, at.off = at.span+1, 0
			continue
		}
		for at.off < len(sp.text) {
			n := s.fillWord(ln.leaf, sp, at)
			if n == 0 {
				return false
			}
			at.off += n
		}
		at.span, at.off = at.span+1, 0
	}
	return true
}

// fillWord writes the next word, or the white space before it, and returns its length, 0 when it didn't fit. In
// code white space belongs to the word before it.
func (s *splitter) fillWord(l *leaf, sp *span, at pos) int {
	rest := sp.text[at.off:]
	before := s.save()
	refuse := func() int {
		s.restore(before)
		s.over = cut{ok: true, at: at, end: at, state: before}
		return 0
	}
	if n := gap(rest); n > 0 && !l.fenced() && sp.kind != atomSpan {
		if s.border(at, at.off, n, before) && sentenceEnds(sp.text[:at.off]) {
			s.stop = s.last
		}
		if s.write(l, sp, rest[:n]); !s.fits() {
			return refuse()
		}
		return n
	}
	word := s.word(sp, rest)
	if s.budget > 0 && word/4 > s.budget { // no unit makes less than one out of four bytes
		return refuse()
	}
	if s.write(l, sp, rest[:word]); !s.fits() {
		return refuse()
	}
	if n := gap(rest[word:]); n > 0 && l.fenced() {
		if s.write(l, sp, rest[word:word+n]); !s.fits() {
			return refuse()
		}
		s.border(at, at.off+word, n, s.save())
		word += n
	}
	return word
}

// gap returns the length of the white space at the start of text that a chunk can end at: not the part that a
// combining character behind it belongs to.
func gap(text string) int {
	n := min(spaces(text), 64)
	if n > 0 && touching(text[n-1:n], text[n:]) {
		n--
	}
	return n
}

// border notes the place between two words: white space of size bytes at offset from of the span at at. It tells
// whether a chunk can end there.
func (s *splitter) border(at pos, from, size int, state penState) bool {
	l := s.doc.lines[at.line].leaf
	switch {
	case s.budget == 0, at == s.first && from == at.off, l.kind == table && !s.bare:
		return false
	}
	c := cut{ok: true, state: state, sep: s.doc.lines[at.line].spans[at.span].text[from : from+size]}
	c.end = pos{line: at.line, span: at.span, off: from}
	c.at = s.doc.next(pos{line: at.line, span: at.span, off: from + size})
	if l.fenced() {
		c.end, c.sep = c.at, ""
	}
	if c.at.line != at.line { // the end of a line is noted by lineEnd
		return false
	}
	s.last = c
	return true
}

func spaces(text string) int {
	n := 0
	for n < len(text) && isSpace(text[n]) {
		n++
	}
	return n
}

// word returns the length of the first word of text, with white space before it. An atom is one word.
func (s *splitter) word(sp *span, text string) int {
	if sp.kind == atomSpan && !s.bare {
		return len(text)
	}
	end := len(text)
	if s.budget > 0 {
		end = min(end, 4*s.budget+4)
	}
	n := spaces(text[:end])
	for n < end && (!isSpace(text[n]) || gap(text[n:]) == 0) {
		n++
	}
	s.work += n
	if n == end && end < len(text) {
		return len(text) // too long in any unit
	}
	return n
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

// sentenceEnds tells whether a word ends a sentence.
func sentenceEnds(word string) bool {
	word = strings.TrimRight(word, `"')]*_`+"”’»")
	r, _ := utf8.DecodeLastRuneInString(word)
	switch r {
	case '.', '!', '?', '…', '。', '！', '？', '؟', '।':
		return true
	}
	return false
}

// choose returns the best place to end a chunk that is full.
func (s *splitter) choose() cut {
	switch {
	case s.full(s.block, 1, 2):
		return s.block
	case s.full(s.row, 1, 2):
		return s.row
	case s.full(s.stop, 2, 3):
		return s.stop
	case s.full(s.last, 1, 2):
		return s.last
	case s.over.ok && (s.bare || !s.last.ok || s.doc.lines[s.over.at.line].leaf.kind != table):
		if c := s.inside(); c.ok {
			return c
		}
		if s.over.at != s.first && !s.last.ok {
			return s.over
		}
	}
	return s.last
}

// inside cuts the word that didn't fit: where a line may break, else between graphemes.
func (s *splitter) inside() cut {
	s.restore(s.over.state)
	at := s.over.at
	ln := &s.doc.lines[at.line]
	sp := &ln.spans[at.span]
	if sp.kind == atomSpan && !s.bare {
		return cut{}
	}
	word := s.word(sp, sp.text[at.off:])
	room := s.budget - s.total()
	rest := runes(sp.text[at.off:at.off+word], room+1)
	var end cut
	put := func(n int) bool {
		before := s.save()
		s.write(ln.leaf, sp, rest[:n])
		if !s.fits() {
			s.restore(before)
			return false
		}
		rest = rest[n:]
		at.off += n
		next := s.doc.next(at)
		end = cut{ok: true, at: next, end: at, state: s.save()}
		return true
	}
	if !ln.leaf.fenced() {
		for state := -1; rest != ""; {
			segment, _, _, next := uniseg.FirstLineSegmentInString(rest, state)
			// The rules of line breaking know fewer emoji than those of graphemes do.
			if cluster := s.clusterEnd(rest, len(segment)); cluster != len(segment) {
				next = -1
				segment = rest[:cluster]
			}
			s.work += len(segment)
			if !put(len(segment)) {
				break
			}
			state = next
		}
		if s.full(end, 1, 2) {
			return end
		}
	}
	// As far as the room goes if nothing needs an escape, and then grapheme by grapheme.
	if n := s.clustersWithin(rest, s.budget-s.total()); n > 0 {
		put(n)
	}
	for state := -1; rest != ""; {
		cluster, _, _, next := uniseg.FirstGraphemeClusterInString(rest, state)
		s.work += len(cluster)
		if !put(len(cluster)) {
			break
		}
		state = next
	}
	return end
}

// runes returns the first n code points of text.
func runes(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

// clustersWithin returns the length of the graphemes at the start of text that take at most room units.
func (s *splitter) clustersWithin(text string, room int) int {
	n := 0
	for state := -1; n < len(text); {
		if n+1 < len(text) && text[n] < utf8.RuneSelf && text[n+1] < utf8.RuneSelf {
			if room--; room < 0 {
				return n
			}
			n, state = n+1, -1
			continue
		}
		cluster, _, _, next := uniseg.FirstGraphemeClusterInString(text[n:], state)
		if room -= Length(cluster, s.unit); room < 0 {
			return n
		}
		s.work += len(cluster)
		n, state = n+len(cluster), next
	}
	return n
}

// clusterEnd returns the first border of graphemes in text at or behind n.
func (s *splitter) clusterEnd(text string, n int) int {
	if n >= len(text) || text[n] < utf8.RuneSelf {
		return n
	}
	end := 0
	for state, rest := -1, text; end < n; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		end += len(cluster)
	}
	s.work += end
	return end
}

// force makes the smallest chunk there can be: what a single grapheme over the limit is cut into, code point by
// code point.
func (s *splitter) force(from pos) cut {
	ln := &s.doc.lines[from.line]
	s.begin(from, false)
	begun := s.save()
	if from.span < len(ln.spans) {
		text := ln.spans[from.span].text[from.off:]
		_, size := utf8.DecodeRuneInString(text)
		s.write(ln.leaf, &ln.spans[from.span], text[:size])
	}
	if fits := s.fits(); fits {
		s.restore(begun)
	} else { // not even behind its marker
		s.reset()
		s.line, s.fresh, s.leaf = from.line, true, ln.leaf
	}
	if from.span >= len(ln.spans) {
		next := pos{line: from.line + 1}
		return cut{ok: true, at: next, end: next, state: s.save()}
	}
	sp := &ln.spans[from.span]
	at := from
	for at.off < len(sp.text) {
		_, size := utf8.DecodeRuneInString(sp.text[at.off:])
		before := s.save()
		s.write(ln.leaf, sp, sp.text[at.off:at.off+size])
		if !s.fits() && at != from {
			s.restore(before)
			break
		}
		at.off += size
	}
	next := s.doc.next(at)
	return cut{ok: true, at: next, end: at, state: s.save()}
}
