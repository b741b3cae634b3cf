package format

import (
	"strings"

	"github.com/rivo/uniseg"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"

	"herald/platforms"
)

// Sources of the numbers: a phone in portrait shows about 40 monospaced columns in Signal; Telegram shows about
// 60 on a desktop; Slack, Discord and Teams wrap near 100.
const (
	signalWidth   = 40
	telegramWidth = 60
	plainWidth    = 72
	chatWidth     = 100
	// A Telegram table of at most so many columns and rows becomes a list, which reads better on a phone.
	smallColumns = 3
	smallRows    = 8
	// leastColumn is how narrow wrapping can make a column.
	leastColumn = 4
)

// cell is one cell of a table.
type cell struct {
	spans []span
	plain string // what monospaced text shows
}

type grid struct {
	rows  [][]cell // the first is the header
	align []extast.Alignment
}

// table adds a table in the form that the dialect reads best.
func (b *builder) table(n *extast.Table) {
	g := b.grid(n)
	if len(g.rows) == 0 || len(g.align) == 0 {
		return
	}
	switch {
	case b.dialect == platforms.Markdown:
		if b.rowsFit(g, func(cells []cell) []string { return []string{g.markdown(cells)} }) {
			b.sourceTable(g)
			return
		}
	case b.dialect == platforms.TelegramHTML && len(g.align) <= smallColumns && len(g.rows)-1 <= smallRows:
	default:
		if widths := g.fit(b.width()); widths != nil {
			aligned := func(cells []cell) []string { return g.aligned(cells, widths) }
			if b.rowsFit(g, aligned) {
				b.alignedTable(g, widths)
				return
			}
		}
	}
	b.listTable(g)
}

func (b *builder) width() int {
	switch b.dialect {
	case platforms.SignalStyles:
		return signalWidth
	case platforms.TelegramHTML:
		return telegramWidth
	case platforms.Plain:
		return plainWidth
	}
	return chatWidth
}

func (b *builder) grid(n *extast.Table) *grid {
	g := &grid{align: n.Alignments}
	for r := n.FirstChild(); r != nil; r = r.NextSibling() {
		cells := make([]cell, 0, len(g.align))
		for c := r.FirstChild(); c != nil && len(cells) < len(g.align); c = c.NextSibling() {
			cells = append(cells, b.cell(c))
		}
		for len(cells) < len(g.align) {
			cells = append(cells, cell{})
		}
		g.rows = append(g.rows, cells)
	}
	return g
}

func (b *builder) cell(n ast.Node) cell {
	var c cell
	for i, ln := range b.runs(n) {
		if i > 0 {
			c.spans = append(c.spans, span{text: " "})
		}
		c.spans = append(c.spans, ln.spans...)
	}
	var s strings.Builder
	for _, sp := range c.spans {
		s.WriteString(strings.ReplaceAll(sp.text, "\t", " "))
	}
	c.plain = s.String()
	return c
}

// rowsFit tells whether a chunk can hold the header and any one row.
func (b *builder) rowsFit(g *grid, lines func([]cell) []string) bool {
	if b.budget == 0 {
		return true
	}
	longest := 0
	for i, cells := range g.rows {
		n := 0
		for _, text := range lines(cells) {
			// Escaping can make five units of one.
			n += Length(text, b.unit) + 1
			if b.chunky && b.dialect != platforms.Markdown {
				n += 4 * (strings.Count(text, "&") + strings.Count(text, "<") + strings.Count(text, ">"))
			}
		}
		if i == 0 {
			n *= 2 // header and rule
			if len(lines(cells)) > 1 {
				return false
			}
			longest = n
			continue
		}
		if longest+n > b.budget/2 {
			return false
		}
	}
	return longest <= b.budget/2
}

// sourceTable adds the table as Markdown.
func (b *builder) sourceTable(g *grid) {
	lines := make([]line, 0, len(g.rows)+1)
	at := len(b.lines)
	add := func(text string) {
		lines = append(lines, line{
			spans: []span{{text: text, kind: atomSpan}},
			row:   &row{first: at + len(lines), markdown: text},
		})
	}
	for i, cells := range g.rows {
		add(g.markdown(cells))
		if i == 0 {
			add(g.delimiters())
		}
	}
	b.leaf(&leaf{kind: table, head: at}, lines)
}

// alignedTable adds the table as monospaced text.
func (b *builder) alignedTable(g *grid, widths []int) {
	at := len(b.lines)
	l := &leaf{kind: table, head: at, fence: "```"}
	var lines []line
	add := func(texts []string, source string) {
		r := &row{first: at + len(lines), markdown: source}
		for _, text := range texts {
			ln := line{row: r}
			if text != "" {
				ln.spans = []span{{text: text}}
			}
			l.fence = longer(l.fence, fenceFor(text))
			lines = append(lines, ln)
		}
	}
	for i, cells := range g.rows {
		add(g.aligned(cells, widths), g.markdown(cells))
		if i == 0 {
			add([]string{ruleOf(widths)}, g.delimiters())
		}
	}
	b.leaf(l, lines)
}

func longer(a, b string) string {
	if len(b) > len(a) || b[0] == '~' {
		return b
	}
	return a
}

// listTable adds the table as a list: one item for a row, one item inside it for each further cell.
func (b *builder) listTable(g *grid) {
	header := g.rows[0]
	if len(g.rows) == 1 {
		for _, c := range header {
			b.listCell(cell{}, c)
		}
		return
	}
	for _, cells := range g.rows[1:] {
		b.lists = append(b.lists, listState{})
		b.push(&container{first: -1, marker: b.bullet(), source: "- "})
		first := cells[0]
		first.spans = emphasised(first.spans)
		b.listCell(header[0], first)
		b.lists = append(b.lists, listState{})
		for i := 1; i < len(cells); i++ {
			if len(cells[i].spans) == 0 {
				continue
			}
			b.push(&container{first: -1, marker: b.bullet(), source: "- "})
			b.listCell(header[i], cells[i])
			b.path = b.path[:len(b.path)-1]
		}
		b.lists = b.lists[:len(b.lists)-2]
		b.path = b.path[:len(b.path)-1]
	}
}

func (b *builder) listCell(name, value cell) {
	var spans []span
	spans = append(spans, name.spans...)
	switch {
	case len(name.spans) > 0 && len(value.spans) > 0:
		spans = append(spans, span{text: ": "})
	case len(name.spans) > 0:
		spans = append(spans, span{text: ":"})
	}
	spans = append(spans, value.spans...)
	b.leaf(&leaf{kind: paragraph}, []line{{spans: spans}})
}

func emphasised(spans []span) []span {
	out := make([]span, len(spans))
	for i, s := range spans {
		s.marks = s.marks.around(bold)
		out[i] = s
	}
	return out
}

// markdown returns a row as Markdown.
func (g *grid) markdown(cells []cell) string {
	var s strings.Builder
	for _, c := range cells {
		s.WriteString("| ")
		s.WriteString(cellSource(c.spans))
		s.WriteByte(' ')
	}
	s.WriteByte('|')
	return s.String()
}

func (g *grid) delimiters() string {
	var s strings.Builder
	for _, a := range g.align {
		switch a {
		case extast.AlignLeft:
			s.WriteString("| :--- ")
		case extast.AlignRight:
			s.WriteString("| ---: ")
		case extast.AlignCenter:
			s.WriteString("| :---: ")
		default:
			s.WriteString("| --- ")
		}
	}
	s.WriteByte('|')
	return s.String()
}

const separator = " | "

// fit returns how wide each column can be so that the table is at most limit wide, nil when it can't be.
func (g *grid) fit(limit int) []int {
	widths := make([]int, len(g.align))
	for _, cells := range g.rows {
		for i, c := range cells {
			widths[i] = max(widths[i], uniseg.StringWidth(c.plain), 1)
		}
	}
	room := limit - len(separator)*(len(widths)-1)
	total := 0
	for _, w := range widths {
		total += w
	}
	// The header repeats as one line, so its cells don't wrap.
	least := make([]int, len(widths))
	floor := 0
	for i, c := range g.rows[0] {
		least[i] = min(widths[i], max(leastColumn, uniseg.StringWidth(c.plain)))
		floor += least[i]
	}
	if floor > room {
		return nil
	}
	for total > room {
		widest := -1
		for i, w := range widths {
			if w > least[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		// Take the widest down to the next one, or as far as is needed.
		second := least[widest]
		for i, w := range widths {
			if i != widest && w > second && w < widths[widest] {
				second = w
			}
		}
		cut := min(max(widths[widest]-second, 1), total-room)
		widths[widest] -= cut
		total -= cut
	}
	return widths
}

// aligned returns a row as lines of monospaced text.
func (g *grid) aligned(cells []cell, widths []int) []string {
	columns := make([][]string, len(cells))
	height := 1
	for i, c := range cells {
		columns[i] = wrap(c.plain, widths[i])
		height = max(height, len(columns[i]))
	}
	lines := make([]string, height)
	for y := range lines {
		var s strings.Builder
		for i := range columns {
			if i > 0 {
				s.WriteString(separator)
			}
			text := ""
			if y < len(columns[i]) {
				text = columns[i][y]
			}
			room := max(widths[i]-uniseg.StringWidth(text), 0)
			left := 0
			switch g.align[i] {
			case extast.AlignRight:
				left = room
			case extast.AlignCenter:
				left = room / 2
			}
			s.WriteString(strings.Repeat(" ", left))
			s.WriteString(text)
			s.WriteString(strings.Repeat(" ", room-left))
		}
		lines[y] = strings.TrimRight(s.String(), " ")
	}
	return lines
}

func ruleOf(widths []int) string {
	var s strings.Builder
	for i, w := range widths {
		if i > 0 {
			s.WriteString("-|-")
		}
		s.WriteString(strings.Repeat("-", w))
	}
	return s.String()
}

// wrap breaks text into lines at most width columns wide, between words where it can.
func wrap(text string, width int) []string {
	if uniseg.StringWidth(text) <= width {
		return []string{text}
	}
	var lines []string
	line, used := "", 0
	flush := func() {
		if line = strings.TrimRight(line, " "); line != "" {
			lines = append(lines, line)
		}
		line, used = "", 0
	}
	for word := range strings.FieldsSeq(text) {
		w := uniseg.StringWidth(word)
		if used > 0 && used+1+w > width {
			flush()
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		if w <= width {
			line, used = line+word, used+w
			continue
		}
		for state := -1; word != ""; {
			var cluster string
			var cw int
			cluster, word, cw, state = uniseg.FirstGraphemeClusterInString(word, state)
			if used > 0 && used+cw > width {
				flush()
			}
			line, used = line+cluster, used+cw
		}
	}
	flush()
	return lines
}

// cellSource returns the content of a cell as Markdown.
func cellSource(spans []span) string {
	if len(spans) == 0 {
		return ""
	}
	p := &pen{is: markdownNotation{dialect: platforms.Markdown}, silent: true}
	p.reset()
	p.fresh = true
	l := &leaf{kind: paragraph}
	for i := range spans {
		p.write(l, &spans[i], spans[i].text)
	}
	return cellBars(p.finish())
}

// cellBars escapes the bars that are not escaped yet: inside of code, in addresses.
func cellBars(source string) string {
	var s strings.Builder
	backslashes := 0
	for i := 0; i < len(source); i++ {
		if source[i] == '|' && backslashes%2 == 0 {
			s.WriteByte('\\')
		}
		if source[i] == '\\' {
			backslashes++
		} else {
			backslashes = 0
		}
		s.WriteByte(source[i])
	}
	return s.String()
}
