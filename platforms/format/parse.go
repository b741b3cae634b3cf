package format

import (
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

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

// runs returns the lines of the inline nodes below parent, or nil when they show nothing.
func (b *builder) runs(parent ast.Node) []line {
	w := &runWriter{b: b}
	type saved struct {
		marks nest
		link  *link
		from  int
	}
	var stack []saved
	n := parent.FirstChild()
	for n != nil {
		down := false
		switch n := n.(type) {
		case *ast.Text:
			value := n.Segment.Value(b.src)
			if n.IsRaw() {
				w.add(string(value), textSpan)
			} else {
				w.add(unescape(value), textSpan)
			}
			if n.HardLineBreak() || n.SoftLineBreak() {
				w.newline(n.HardLineBreak())
			}
		case *ast.String:
			w.add(string(n.Value), textSpan)
		case *ast.CodeSpan:
			marks := w.marks
			w.marks = marks.with(mono)
			w.add(codeText(n, b.src), textSpan)
			w.marks = marks
		case *ast.RawHTML:
			w.html(n)
		case *ast.AutoLink:
			w.autolink(n)
		case *extast.TaskCheckBox: // elsewhere it is part of the item's marker
			if parent.Kind() == ast.KindHeading && n.IsChecked {
				w.add("[x] ", textSpan)
			} else if parent.Kind() == ast.KindHeading {
				w.add("[ ] ", textSpan)
			}
		default:
			down = n.FirstChild() != nil
			stack = append(stack, saved{w.marks, w.link, w.shown})
			switch n := n.(type) {
			case *ast.Emphasis:
				if n.Level >= 2 {
					w.marks = w.marks.with(bold)
				} else {
					w.marks = w.marks.with(italic)
				}
			case *extast.Strikethrough:
				w.marks = w.marks.with(strike)
			case *ast.Link:
				w.open(n.Destination, false)
			case *ast.Image:
				w.open(n.Destination, true)
			}
		}
		if down {
			n = n.FirstChild()
			continue
		}
		for n != nil {
			if _, opened := stackable(n); opened {
				s := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				w.close(n, s.link, s.from)
				w.marks, w.link = s.marks, s.link
			}
			if next := n.NextSibling(); next != nil {
				n = next
				break
			}
			if n = n.Parent(); n == parent {
				n = nil
			}
		}
	}
	return w.finish()
}

// stackable tells whether runs put the node on its stack.
func stackable(n ast.Node) (ast.Node, bool) {
	switch n.(type) {
	case *ast.Text, *ast.String, *ast.CodeSpan, *ast.RawHTML, *ast.AutoLink, *extast.TaskCheckBox:
		return n, false
	}
	return n, true
}

func codeText(n *ast.CodeSpan, src []byte) string {
	var s strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			s.Write(c.Segment.Value(src))
		case *ast.String:
			s.Write(c.Value)
		}
	}
	return strings.ReplaceAll(s.String(), "\n", " ")
}

// runWriter collects spans into lines.
type runWriter struct {
	b     *builder
	lines []line
	cur   line
	text  []byte // of the last span of cur, which gets it in flush
	marks nest
	link  *link
	shown int // bytes of text so far
}

func (w *runWriter) add(text string, kind spanKind) {
	if text == "" {
		return
	}
	w.shown += len(text)
	if i := len(w.cur.spans) - 1; i < 0 || kind != textSpan || w.cur.spans[i].kind != textSpan ||
		w.cur.spans[i].marks != w.marks || w.cur.spans[i].link != w.link {
		w.flush()
		w.cur.spans = append(w.cur.spans, span{marks: w.marks, link: w.link, kind: kind})
	}
	w.text = append(w.text, text...)
}

func (w *runWriter) flush() {
	if i := len(w.cur.spans) - 1; i >= 0 && len(w.text) > 0 {
		w.cur.spans[i].text = string(w.text)
		w.text = w.text[:0]
	}
}

func (w *runWriter) newline(hard bool) {
	w.flush()
	w.lines = append(w.lines, w.cur)
	w.cur = line{hard: hard}
}

// html shows a tag as text. Only a line break is what it means.
func (w *runWriter) html(n *ast.RawHTML) {
	var s strings.Builder
	for i := range n.Segments.Len() {
		segment := n.Segments.At(i)
		s.Write(segment.Value(w.b.src))
	}
	if strings.EqualFold(strings.NewReplacer(" ", "", "/", "").Replace(s.String()), "<br>") {
		w.newline(true)
		return
	}
	for i, text := range strings.Split(s.String(), "\n") {
		if i > 0 {
			w.newline(false)
		}
		w.add(text, textSpan)
	}
}

// autolink adds an address that stands for itself.
func (w *runWriter) autolink(n *ast.AutoLink) {
	label := string(n.Label(w.b.src))
	url := cleanURL(string(n.URL(w.b.src)))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(url), "mailto:") {
		url = "mailto:" + url
	}
	if w.link != nil || !w.b.linkable(url) {
		w.add(label, textSpan)
		return
	}
	marks := w.marks
	w.marks, w.link = marks.with(linked), &link{url: url}
	w.add(label, atomSpan)
	w.marks, w.link = marks, nil
}

// open begins a link or an image, which is shown as a link.
func (w *runWriter) open(destination []byte, image bool) {
	if w.link != nil { // an image inside a link: the outer one counts
		return
	}
	w.link = &link{url: cleanURL(unescape(destination)), image: image}
	if w.b.linkable(w.link.url) {
		w.marks = w.marks.with(linked)
	}
}

// close ends an inline node; outer is the link around it and from what was shown before it.
func (w *runWriter) close(n ast.Node, outer *link, from int) {
	switch n.Kind() {
	case ast.KindLink, ast.KindImage:
	default:
		return
	}
	l := w.link
	if l == nil || outer != nil || l.url == "" {
		return
	}
	if w.shown == from { // nothing to press on
		w.add(l.url, textSpan)
		return
	}
	if label := w.tail(w.shown - from); label == l.url || "mailto:"+label == l.url {
		return
	}
	kind := addressSpan
	if !w.marks.has(linked) {
		kind = textSpan
	}
	marks := w.marks
	w.marks, w.link = marks.without(linked), nil
	w.add(" ("+l.url+")", kind)
	w.marks, w.link = marks, l
}

// tail returns the last n bytes of the current line, less when it is shorter.
func (w *runWriter) tail(n int) string {
	w.flush()
	var s string
	for i := len(w.cur.spans) - 1; i >= 0 && len(s) < n; i-- {
		s = w.cur.spans[i].text + s
	}
	return s[max(0, len(s)-n):]
}

// finish returns the lines that show something, their borders trimmed.
func (w *runWriter) finish() []line {
	w.flush()
	w.lines = append(w.lines, w.cur)
	kept := w.lines[:0]
	for _, ln := range w.lines {
		ln.spans = trim(ln.spans)
		if len(ln.spans) == 0 {
			continue
		}
		ln.spans = joinClusters(w.b.atoms(ln.spans))
		kept = append(kept, ln)
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// trim takes white space off both ends of a line.
func trim(spans []span) []span {
	for len(spans) > 0 {
		first := &spans[0]
		if first.text = strings.TrimLeft(first.text, " \t"); first.text != "" {
			break
		}
		spans = spans[1:]
	}
	for len(spans) > 0 {
		last := &spans[len(spans)-1]
		if last.text = strings.TrimRight(last.text, " \t"); last.text != "" {
			break
		}
		spans = spans[:len(spans)-1]
	}
	return spans
}

// linkable tells whether the notation can make url a link: its scheme is one that chats open, and with its
// markup it fits beside some text. Others are shown as text.
func (b *builder) linkable(url string) bool {
	if !b.links {
		return true // the address is written behind the label
	}
	if b.budget > 0 && b.chunky && Length(url, b.unit) > b.budget/4 {
		return false
	}
	scheme, _, ok := strings.Cut(url, ":")
	if !ok {
		return b.dialect == platforms.Markdown
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "mailto", "tel", "tg", "ftp":
		return true
	}
	return false
}

// cleanURL escapes what no notation can carry inside an address.
func cleanURL(url string) string {
	url = strings.TrimSpace(url)
	if !strings.ContainsAny(url, " \t\n<>\"`|\\") {
		return url
	}
	var s strings.Builder
	for i := 0; i < len(url); i++ {
		switch c := url[i]; c {
		case ' ', '\t', '\n', '<', '>', '"', '`', '|', '\\':
			s.WriteByte('%')
			s.WriteString(strings.ToUpper(strconv.FormatInt(int64(c)+0x100, 16)[1:]))
		default:
			s.WriteByte(c)
		}
	}
	return s.String()
}

// unescape resolves backslashes and character references of Markdown in one pass.
func unescape(raw []byte) string {
	special := false
	for _, c := range raw {
		if c == '\\' || c == '&' {
			special = true
			break
		}
	}
	if !special {
		return string(raw)
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '\\' && i+1 < len(raw) && util.IsPunct(raw[i+1]):
			i++
			out = append(out, raw[i])
		case c == '&':
			if r, size := reference(raw[i:]); size > 0 {
				out = append(out, r...)
				i += size - 1
				continue
			}
			out = append(out, c)
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// reference resolves the character reference at the start of s and returns its length, 0 when there is none.
func reference(s []byte) (string, int) {
	end := 0
	for i := 1; i < len(s) && i < 40; i++ {
		if s[i] == ';' {
			end = i
			break
		}
	}
	if end < 2 {
		return "", 0
	}
	name := string(s[1:end])
	if name[0] != '#' {
		if e, ok := util.LookUpHTML5EntityByName(name); ok {
			return string(e.Characters), end + 1
		}
		return "", 0
	}
	digits, base := name[1:], 10
	if digits != "" && (digits[0] == 'x' || digits[0] == 'X') {
		digits, base = digits[1:], 16
	}
	v, err := strconv.ParseUint(digits, base, 32)
	if err != nil || len(digits) > 7 {
		return "", 0
	}
	r := rune(v)
	if r == 0 || !utf8.ValidRune(r) {
		r = utf8.RuneError
	}
	if r < ' ' && r != '\t' || r == 0x7f {
		return " ", end + 1
	}
	return string(r), end + 1
}

// atoms cuts the mentions of the platform out of text spans and lets go of atoms that are too long.
func (b *builder) atoms(spans []span) []span {
	for i := range spans {
		s := &spans[i]
		if s.kind == atomSpan && b.budget > 0 && Length(s.text, b.unit) > b.budget/4 {
			s.kind = textSpan
			if b.chunky {
				s.marks = s.marks.without(linked)
			}
		}
	}
	if b.dialect != platforms.SlackMrkdwn && b.dialect != platforms.DiscordMD {
		return spans
	}
	var out []span
	for i, s := range spans {
		if s.kind != textSpan || s.marks.has(mono) || !strings.Contains(s.text, "<") {
			if out != nil {
				out = append(out, s)
			}
			continue
		}
		rest, from := s.text, 0
		for {
			at := strings.IndexByte(rest[from:], '<')
			if at < 0 {
				break
			}
			at += from
			size := mention(rest[at:], b.dialect)
			if size == 0 || b.budget > 0 && size > b.budget/4 {
				from = at + 1
				continue
			}
			if out == nil {
				out = append(make([]span, 0, len(spans)+2), spans[:i]...)
			}
			if at > 0 {
				part := s
				part.text = rest[:at]
				out = append(out, part)
			}
			part := s
			part.text, part.kind = rest[at:at+size], atomSpan
			out = append(out, part)
			rest, from = rest[at+size:], 0
		}
		if out != nil && rest != "" {
			s.text = rest
			out = append(out, s)
		}
	}
	if out == nil {
		return spans
	}
	return out
}

// mention returns the length of the platform's own token at the start of s, which begins with "<", or 0.
func mention(s string, dialect platforms.Dialect) int {
	end := strings.IndexByte(s[:min(len(s), 128)], '>')
	if end < 3 {
		return 0
	}
	body := s[1:end]
	if strings.ContainsAny(body, "<\n`") {
		return 0
	}
	ok := false
	if dialect == platforms.SlackMrkdwn {
		id, _, _ := strings.Cut(body[1:], "|")
		switch body[0] {
		case '@', '#':
			ok = only(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
		case '!':
			name, _, _ := strings.Cut(id, "^")
			ok = name == "here" || name == "channel" || name == "everyone" || name == "subteam" || name == "date"
		}
	} else {
		const digits = "0123456789"
		switch {
		case body[0] == '@' || body[0] == '#':
			ok = only(strings.TrimLeft(body[1:], "!&"), digits)
		case strings.HasPrefix(body, "t:"):
			ok = only(body[2:], digits+":tTdDfFR")
		case strings.HasPrefix(body, "id:"):
			ok = only(body[3:], "abcdefghijklmnopqrstuvwxyz")
		case body[0] == '/', body[0] == ':', strings.HasPrefix(body, "a:"):
			i := strings.LastIndexByte(body, ':')
			ok = i > 1 && only(body[i+1:], digits)
		}
	}
	if !ok {
		return 0
	}
	return end + 1
}

func only(s, set string) bool {
	return s != "" && strings.Trim(s, set) == ""
}

// joinClusters moves the borders of spans that lie inside a grapheme behind it, so that no cut between spans
// can take one apart.
func joinClusters(spans []span) []span {
	for i := 1; i < len(spans); i++ {
		prev, cur := &spans[i-1], &spans[i]
		if !touching(prev.text, cur.text) {
			continue
		}
		both := prev.text + cur.text
		at := len(prev.text)
		for from, state := 0, -1; from < at; {
			cluster, _, _, next := uniseg.FirstGraphemeClusterInString(both[from:], state)
			if from += len(cluster); from > at {
				prev.text, cur.text = both[:from], both[from:]
			}
			state = next
		}
	}
	kept := spans[:0]
	for _, s := range spans {
		if s.text != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

// touching tells whether one grapheme may reach from a to b.
func touching(a, b string) bool {
	if a == "" || b == "" || b[0] < utf8.RuneSelf {
		return false
	}
	last, size := utf8.DecodeLastRuneInString(a)
	if last == '\u200d' {
		return true
	}
	_, first := utf8.DecodeRuneInString(b)
	pair := a[len(a)-size:] + b[:first]
	cluster, _, _, _ := uniseg.FirstGraphemeClusterInString(pair, -1)
	return len(cluster) == len(pair)
}

func markdownish(d platforms.Dialect) bool {
	return d == platforms.Markdown || d == platforms.DiscordMD || d == platforms.TeamsMD
}
