package format

import (
	"strconv"
	"strings"

	"herald/platforms"
)

const (
	// MinLimit is the smallest limit that is kept. A lower one is taken as this: below it not even one escaped
	// character would fit behind the marker of a list item.
	MinLimit = 16
	// NumberReserve is how many units the number of a chunk may take (" (999/999)").
	NumberReserve = 10
	// minNumbered is the smallest limit at which chunks are numbered.
	minNumbered = 2 * MinLimit
)

// Render returns a message as chunks for a platform, in order. A message that shows nothing has none.
//
// Each chunk is at most t.Limit long in t.Unit, inclusive: Body where t.CountMarkup is set, and otherwise what is
// left of Body without its markup. Plain is at most as long. A limit of 0 is no limit, one below MinLimit is
// MinLimit. The chunks of a split message end in " (i/n)" where t.Number is set; numbers are left out below a
// limit of 32, and n is left out above 999.
//
// Markdown of a message that was not split is the message; of a chunk it is Markdown that shows the same.
// White space at a border belongs to no chunk. An unknown dialect is plain.
func Render(markdown string, t platforms.TextTraits) []platforms.Text {
	source := tidy(markdown)
	if source == "" {
		return nil
	}
	limit := limitOf(t)
	if simple(source) && (limit == 0 || len(source) <= limit || Length(source, t.Unit) <= limit) {
		return []platforms.Text{{Body: source, Plain: source, Markdown: source}}
	}
	r := newRenderer(source, t)
	if text, ok := r.whole(source); ok {
		if text.Plain == "" {
			return nil
		}
		return []platforms.Text{text}
	}
	chunks := r.split(0)
	texts := make([]platforms.Text, 0, len(chunks))
	for i, c := range chunks {
		number := ""
		if len(chunks) > 1 && r.reserve > 0 {
			number = numberOf(i+1, len(chunks))
		}
		texts = append(texts, r.text(c, number))
	}
	return texts
}

// Preview returns what of a growing message can be shown in one message now: the first chunk of Prefix(markdown),
// without a number. It is at most t.Limit long. Once the message has outgrown that chunk, it stays as it is
// while the message grows, but for columns of a table that become wider. A message that shows nothing yet gives
// a zero Text.
func Preview(markdown string, t platforms.TextTraits) platforms.Text {
	source := tidy(Prefix(markdown))
	if source == "" {
		return platforms.Text{}
	}
	r := newRenderer(source, t)
	if r.budget == 0 {
		text, _ := r.whole(source)
		return text
	}
	chunks := r.split(1)
	if len(chunks) == 0 {
		return platforms.Text{}
	}
	text := r.text(chunks[0], "")
	if chunks[0].to.line >= len(r.doc.lines) {
		r.passThrough(source, &text)
	}
	return text
}

// PlainText returns what a message says, without any markup, for notices and previews. The address of a link
// follows in parentheses.
func PlainText(markdown string) string {
	source := tidy(markdown)
	if source == "" || simple(source) {
		return source
	}
	text, _ := newRenderer(source, platforms.TextTraits{Dialect: platforms.Plain}).whole(source)
	return text.Plain
}

// tidy returns a message normalised and without blank lines around it.
func tidy(markdown string) string {
	s := strings.TrimRight(normalise(markdown), " \t\n")
	for {
		line, rest, found := strings.Cut(s, "\n")
		if !found || strings.Trim(line, " \t") != "" {
			return s
		}
		s = rest
	}
}

func limitOf(t platforms.TextTraits) int {
	if t.Limit <= 0 {
		return 0
	}
	return max(t.Limit, MinLimit)
}

// simple tells whether a tidy message is one that reads the same in every dialect and that Markdown has nothing
// to say about: then no parser is needed.
func simple(s string) bool {
	start := true
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\n':
			if start && i > 0 && s[i-1] == '\n' && i > 1 && s[i-2] == '\n' || i > 0 && isSpace(s[i-1]) {
				return false
			}
			start = true
			continue
		case start && (isSpace(c) || c >= '0' && c <= '9' || c == '-' || c == '+' || c == '=' || c == ':'):
			return false
		case marksUp(c):
			return false
		case c == ':' && strings.HasPrefix(s[i:], "://"), c == '.' && i >= 3 && strings.EqualFold(s[i-3:i], "www"):
			return false
		}
		start = false
	}
	return true
}

// marksUp tells whether a byte may begin markup inside a line. "!" does so only before "[".
func marksUp(c byte) bool {
	switch c {
	case '\\', '`', '*', '_', '[', ']', '<', '>', '&', '|', '~', '#', '@':
		return true
	}
	return c < ' '
}

// renderer holds one message on its way into one dialect.
type renderer struct {
	splitter
	traits  platforms.TextTraits
	limit   int
	reserve int
}

func newRenderer(source string, t platforms.TextTraits) *renderer {
	r := &renderer{traits: t, limit: limitOf(t)}
	if t.Number && r.limit >= minNumbered {
		r.reserve = NumberReserve
		if t.Dialect == platforms.Markdown {
			r.reserve += 2 // its number may need a blank line before it
		}
	}
	r.budget = max(r.limit-r.reserve, 0)
	r.pen = &pen{
		is:     notationOf(t.Dialect),
		doc:    parse(source, t, r.budget),
		unit:   t.Unit,
		markup: t.CountMarkup,
		ranges: t.Dialect == platforms.SignalStyles,
	}
	return r
}

func notationOf(d platforms.Dialect) notation {
	switch d {
	case platforms.TelegramHTML:
		return telegramNotation{}
	case platforms.SlackMrkdwn:
		return slackNotation{}
	case platforms.SignalStyles:
		return plainNotation{styled: true}
	case platforms.Markdown, platforms.DiscordMD, platforms.TeamsMD:
		return markdownNotation{dialect: d}
	}
	return plainNotation{}
}

// whole renders the message as one chunk if it fits.
func (r *renderer) whole(source string) (platforms.Text, bool) {
	if len(r.doc.lines) == 0 {
		return platforms.Text{}, true
	}
	budget := r.budget
	defer func() { r.budget = budget }()
	r.budget = r.limit
	end := r.run(pos{})
	if !end.ok || end.at.line < len(r.doc.lines) {
		return platforms.Text{}, false
	}
	c := chunk{to: end.end, body: r.finish(), styles: ordered(r.styles)}
	if !r.content {
		return platforms.Text{}, true
	}
	text := platforms.Text{Body: c.body, Styles: c.styles, Plain: r.plain(c), Markdown: source}
	r.passThrough(source, &text)
	return text, true
}

// passThrough gives a whole message to a platform that takes Markdown as it came, if it fits so.
func (r *renderer) passThrough(source string, text *platforms.Text) {
	text.Markdown = source
	if r.traits.Dialect == platforms.Markdown && (r.limit == 0 || !r.traits.CountMarkup || Length(source, r.traits.Unit) <= r.limit) {
		text.Body = source
	}
}

// text makes the message of a chunk with its number, "" for none.
func (r *renderer) text(c chunk, number string) platforms.Text {
	source := &pen{is: markdownNotation{dialect: platforms.Markdown}, doc: r.doc, silent: true}
	source.span(c.from, c.to, c.head)
	t := platforms.Text{Body: c.body, Styles: c.styles, Plain: r.plain(c)}
	sourceLeaf := source.leaf
	if t.Markdown = source.finish(); strings.TrimSpace(t.Markdown) == "" {
		t.Markdown = EscapeMarkdown(t.Plain) // the chunk holds nothing but the address of a link
	}
	if number == "" {
		return t
	}
	t.Body += border(r.traits.Dialect, c.last) + number
	t.Plain += " " + number
	t.Markdown += border(platforms.Markdown, sourceLeaf) + number
	return t
}

// border returns what stands between a chunk and its number: behind a fence the number needs a line of its own,
// behind a table a paragraph.
func border(d platforms.Dialect, last *leaf) string {
	switch {
	case last == nil:
	case last.kind == table && d == platforms.Markdown:
		return "\n\n"
	case last.kind == rule && markdownish(d), last.fenced() && (markdownish(d) || d == platforms.SlackMrkdwn),
		last.kind == heading && markdownish(d):
		return "\n"
	}
	return " "
}

// plain returns a chunk without markup: in full where that fits, else in short.
func (r *renderer) plain(c chunk) string {
	switch r.is.(type) {
	case plainNotation:
		return c.body
	}
	p := &pen{is: plainNotation{}, doc: r.doc, unit: r.traits.Unit, markup: true}
	p.span(c.from, c.to, c.head)
	if full := p.finish(); r.limit == 0 || p.size <= r.budget {
		return full
	}
	p.is = plainNotation{short: true}
	p.span(c.from, c.to, c.head)
	return p.finish()
}

// numberOf returns "(i/n)", or "(i)" where n has more than three digits.
func numberOf(i, n int) string {
	if n > 999 {
		return "(" + strconv.Itoa(i) + ")"
	}
	return "(" + strconv.Itoa(i) + "/" + strconv.Itoa(n) + ")"
}
