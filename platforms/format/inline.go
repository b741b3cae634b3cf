package format

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"

	"herald/platforms"
)

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
