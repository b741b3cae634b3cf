package format

import (
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"herald/platforms"
)

// markdown is the one parser. It is built at first use and never changes; parsing is safe for concurrent use.
var markdown = sync.OnceValue(func() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
})

// tableless is the parser for messages whose tables would be larger than anyone can read: a row of a table
// has as many cells as its header, so that a small input can ask for a huge tree.
var tableless = sync.OnceValue(func() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.Strikethrough, extension.Linkify, extension.TaskList)).Parser()
})

// maxCells is how many table cells a message may ask for.
const maxCells = 1 << 18

// parserFor returns the parser that is safe for a message.
func parserFor(source string) parser.Parser {
	columns, lines := 0, 0
	for text := range strings.Lines(source) {
		lines++
		if bars := strings.Count(text, "|"); bars > columns && strings.Trim(text, "|-: \t\n>*+.)0123456789") == "" {
			columns = bars
		}
	}
	if (columns+1)*lines > maxCells && columns > 0 {
		return tableless()
	}
	return markdown()
}

// maxDepth is how many quotes and list items a line can be inside of. What is deeper is shown at this depth.
const maxDepth = 10

// builder makes a document from goldmark's tree.
type builder struct {
	*document
	src    []byte
	depth  int // containers a line can be inside of, 1 to maxDepth
	budget int // the largest chunk, 0 for no limit
	unit   platforms.Unit
	chunky bool // markup counts
	links  bool // the notation has links
	path   []*container
	lists  []listState
	blank  bool // a blank line stood before the next leaf
}

type listState struct {
	ordered bool
	next    int
}

// parse takes a normalised message apart for a dialect. budget is the most that one chunk can hold.
func parse(source string, t platforms.TextTraits, budget int) *document {
	source = bounded(source)
	b := &builder{
		document: &document{dialect: t.Dialect},
		src:      []byte(source),
		depth:    maxDepth,
		budget:   budget,
		unit:     t.Unit,
		chunky:   t.CountMarkup,
		links:    t.Dialect != platforms.Plain && t.Dialect != platforms.SignalStyles,
	}
	if budget > 0 {
		b.depth = min(max(budget/64, 1), maxDepth)
	}
	b.blocks(parserFor(source).Parse(text.NewReader(b.src)))
	return b.document
}

// blocks walks the blocks below root in order, without recursion: input can nest as deep as it is long.
func (b *builder) blocks(root ast.Node) {
	for n := root; ; {
		if b.enter(n) && n.FirstChild() != nil {
			n = n.FirstChild()
			continue
		}
		for {
			b.leave(n)
			if n == root {
				return
			}
			if next := n.NextSibling(); next != nil {
				n = next
				break
			}
			n = n.Parent()
		}
	}
}

// enter begins a block and tells whether its children are blocks to walk.
func (b *builder) enter(n ast.Node) bool {
	if n.Type() == ast.TypeBlock && n.HasBlankPreviousLines() {
		b.blank = true
	}
	switch n := n.(type) {
	case *ast.Document:
		return true
	case *ast.Blockquote:
		b.push(&container{quote: true, first: -1})
		return true
	case *ast.List:
		b.lists = append(b.lists, listState{ordered: n.IsOrdered(), next: n.Start})
		return true
	case *ast.ListItem:
		b.push(b.item(n))
		return true
	case *ast.Paragraph, *ast.TextBlock:
		b.inline(n, &leaf{kind: paragraph})
	case *ast.Heading:
		b.inline(n, &leaf{kind: heading, level: n.Level})
	case *ast.ThematicBreak:
		text := "———"
		if markdownish(b.dialect) {
			text = "---"
		}
		b.leaf(&leaf{kind: rule}, []line{{spans: []span{{text: text}}}})
	case *ast.CodeBlock:
		b.code(n, "")
	case *ast.FencedCodeBlock:
		b.code(n, language(string(n.Language(b.src))))
	case *ast.HTMLBlock:
		var raw strings.Builder
		writeLines(&raw, n, b.src)
		if n.HasClosure() {
			raw.Write(n.ClosureLine.Value(b.src))
		}
		b.text(strings.TrimRight(raw.String(), "\n"))
	case *extast.Table:
		b.blank = true // goldmark makes tables of paragraphs and forgets the line before
		b.table(n)
	}
	return false
}

func (b *builder) leave(n ast.Node) {
	switch n.(type) {
	case *ast.Blockquote:
		b.path = b.path[:len(b.path)-1]
	case *ast.ListItem:
		if item := b.path[len(b.path)-1]; item.first < 0 {
			b.leaf(&leaf{kind: paragraph}, []line{{}})
		}
		b.path = b.path[:len(b.path)-1]
	case *ast.List:
		b.lists = b.lists[:len(b.lists)-1]
	}
}

func (b *builder) push(c *container) {
	var chain []*container
	if len(b.path) > 0 {
		chain = b.path[len(b.path)-1].chain
	}
	if len(chain) >= b.depth {
		for _, hidden := range chain[b.depth-1:] { // its marker goes before this one
			if !c.quote && !hidden.quote && hidden.first < 0 && Length(hidden.marker+c.marker, b.unit) <= b.budget/2 {
				c.marker, c.source = hidden.marker+c.marker, hidden.source+c.source
			}
		}
		chain = chain[:b.depth-1]
	}
	c.chain = append(append(make([]*container, 0, len(chain)+1), chain...), c)
	b.path = append(b.path, c)
}

// item makes the container of a list item with its marker.
func (b *builder) item(n *ast.ListItem) *container {
	c := &container{first: -1, source: "- "}
	list := &b.lists[len(b.lists)-1]
	if list.ordered {
		c.source = strconv.Itoa(list.next) + ". "
		list.next++
	}
	c.marker = c.source
	bullet := b.bullet()
	if !list.ordered {
		c.marker = bullet
	}
	if box := checkBox(n); box != nil {
		sign, source := "☐ ", "[ ] "
		if box.IsChecked {
			sign, source = "☑ ", "[x] "
		}
		switch {
		case b.dialect == platforms.Markdown:
			c.marker = c.source + source
		case markdownish(b.dialect) || list.ordered:
			c.marker += sign
		default:
			c.marker = sign
		}
		c.source += source
	}
	return c
}

// bullet returns the marker of a list item at the current depth. It differs by depth because platforms trim
// white space at the start of a message.
func (b *builder) bullet() string {
	if markdownish(b.dialect) {
		return "- "
	}
	switch len(b.lists) {
	case 0, 1:
		return "• "
	case 2:
		return "◦ "
	}
	return "▪ "
}

func checkBox(item *ast.ListItem) *extast.TaskCheckBox {
	first := item.FirstChild()
	if first == nil || first.Kind() == ast.KindHeading {
		return nil
	}
	box, _ := first.FirstChild().(*extast.TaskCheckBox)
	return box
}

// leaf adds a block. Lines without any span are kept: they are blank lines of code and empty items.
func (b *builder) leaf(l *leaf, lines []line) {
	if len(b.path) > 0 {
		l.path = b.path[len(b.path)-1].chain
	}
	index := len(b.lines)
	for _, c := range b.path {
		if !c.quote && c.first < 0 {
			c.first = index
		}
	}
	for i := range lines {
		lines[i].leaf = l
		lines[i].gap = 1
	}
	if index > 0 {
		before := b.lines[index-1].leaf
		if b.blank || before.kind == l.kind && l.kind == paragraph && samePath(before, l) {
			lines[0].gap = 2
		}
	}
	b.blank = false
	b.lines = append(b.lines, lines...)
}

func samePath(a, b *leaf) bool {
	if len(a.path) != len(b.path) {
		return false
	}
	for i := range a.path {
		if a.path[i] != b.path[i] {
			return false
		}
	}
	return true
}

func writeLines(w *strings.Builder, n ast.Node, src []byte) {
	lines := n.Lines()
	for i := range lines.Len() {
		segment := lines.At(i)
		w.Write(segment.Value(src))
	}
}

// code adds a code block.
func (b *builder) code(n ast.Node, lang string) {
	var raw strings.Builder
	writeLines(&raw, n, b.src)
	content := strings.TrimSuffix(raw.String(), "\n")
	l := &leaf{kind: code, lang: lang, fence: fenceFor(content)}
	var lines []line
	for text := range strings.SplitSeq(content, "\n") {
		if text == "" {
			lines = append(lines, line{})
			continue
		}
		lines = append(lines, line{spans: []span{{text: text}}})
	}
	b.leaf(l, lines)
}

// fenceFor returns a fence that content does not hold: backticks, or tildes where the backticks would be many.
func fenceFor(content string) string {
	run := longestRun(content, '`')
	switch {
	case run < 3:
		return "```"
	case run < 12:
		return strings.Repeat("`", run+1)
	case longestRun(content, '~') < 3:
		return "~~~"
	}
	return "```" // the pen breaks the runs
}

// text adds a paragraph that shows s as it is.
func (b *builder) text(s string) {
	var lines []line
	for text := range strings.SplitSeq(s, "\n") {
		if text = strings.TrimRight(text, " \t"); text != "" {
			lines = append(lines, line{spans: b.atoms([]span{{text: text}})})
		}
	}
	if lines != nil {
		b.leaf(&leaf{kind: paragraph}, lines)
	}
}

// inline adds a block of running text.
func (b *builder) inline(n ast.Node, l *leaf) {
	if lines := b.runs(n); lines != nil {
		if l.kind == heading { // a title is one line
			for _, ln := range lines[1:] {
				lines[0].spans = append(append(lines[0].spans, span{text: " "}), ln.spans...)
			}
			lines = lines[:1]
		}
		b.leaf(l, lines)
	} else if _, box := n.FirstChild().(*extast.TaskCheckBox); box {
		b.leaf(l, []line{{}}) // a task without text keeps its line
	} else if l.kind == heading {
		b.blank = true
	}
}

func markdownish(d platforms.Dialect) bool {
	return d == platforms.Markdown || d == platforms.DiscordMD || d == platforms.TeamsMD
}
