package format

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"herald/platforms"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var dialects = []platforms.Dialect{
	platforms.Plain, platforms.Markdown, platforms.TelegramHTML, platforms.SlackMrkdwn,
	platforms.DiscordMD, platforms.TeamsMD, platforms.SignalStyles,
}

// real are the traits that the platforms have.
var real = map[platforms.Dialect]platforms.TextTraits{
	platforms.Plain:        {Dialect: platforms.Plain, Limit: 4000, Unit: platforms.CodePoints},
	platforms.Markdown:     {Dialect: platforms.Markdown},
	platforms.TelegramHTML: {Dialect: platforms.TelegramHTML, Limit: 4096, Unit: platforms.UTF16, Number: true},
	platforms.SlackMrkdwn:  {Dialect: platforms.SlackMrkdwn, Limit: 39000, Unit: platforms.CodePoints, CountMarkup: true},
	platforms.DiscordMD:    {Dialect: platforms.DiscordMD, Limit: 2000, Unit: platforms.CodePoints, CountMarkup: true},
	platforms.TeamsMD:      {Dialect: platforms.TeamsMD, Limit: 28000, Unit: platforms.Bytes, CountMarkup: true},
	platforms.SignalStyles: {Dialect: platforms.SignalStyles, Limit: 8000, Unit: platforms.UTF16, Number: true},
}

// squeezed is s without white space and without the characters that only notations add.
func squeezed(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '\u200b' {
			return -1
		}
		return r
	}, s)
}

// htmlText checks that s is HTML that Telegram takes, well nested and with known tags only, and returns its text.
func htmlText(s string) (string, error) {
	var out strings.Builder
	var open []string
	unescape := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&amp;", "&")
	for s != "" {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			i = len(s)
		}
		text := s[:i]
		for j := 0; j < len(text); j++ {
			if text[j] == '>' {
				return "", fmt.Errorf("bare > in %q", text)
			}
			if text[j] == '&' && !strings.HasPrefix(text[j:], "&lt;") && !strings.HasPrefix(text[j:], "&gt;") &&
				!strings.HasPrefix(text[j:], "&amp;") && !strings.HasPrefix(text[j:], "&quot;") {
				return "", fmt.Errorf("bare & in %q", text)
			}
		}
		out.WriteString(unescape.Replace(text))
		if s = s[i:]; s == "" {
			break
		}
		end := strings.IndexByte(s, '>')
		if end < 0 {
			return "", fmt.Errorf("open tag %q", s)
		}
		tag := s[1:end]
		s = s[end+1:]
		if name, closing := strings.CutPrefix(tag, "/"); closing {
			if len(open) == 0 || open[len(open)-1] != name {
				return "", fmt.Errorf("</%s> closes %v", name, open)
			}
			open = open[:len(open)-1]
			continue
		}
		name, attr, _ := strings.Cut(tag, " ")
		switch {
		case attr == "" && (name == "b" || name == "i" || name == "s" || name == "code" || name == "pre" || name == "blockquote"):
		case name == "a" && strings.HasPrefix(attr, `href="`) && strings.Count(attr, `"`) == 2 && strings.HasSuffix(attr, `"`):
		case name == "code" && strings.HasPrefix(attr, `class="language-`) && len(open) > 0 && open[len(open)-1] == "pre":
		default:
			return "", fmt.Errorf("tag <%s> is not allowed", tag)
		}
		for _, o := range open {
			inCode := (o == "code" || o == "pre") && !(o == "pre" && name == "code")
			if inCode || o == name || name == "blockquote" {
				return "", fmt.Errorf("<%s> inside of %v", name, open)
			}
		}
		open = append(open, name)
	}
	if len(open) > 0 {
		return "", fmt.Errorf("left open: %v", open)
	}
	return out.String(), nil
}

// checkStyles checks that ranges lie inside of body, on borders of characters, without forbidden overlaps.
func checkStyles(body string, styles []platforms.Style) error {
	units := utf16.Encode([]rune(body))
	for i, s := range styles {
		end := s.Start + s.Length
		if s.Start < 0 || s.Length <= 0 || end > len(units) {
			return fmt.Errorf("range %+v is not inside of %d units", s, len(units))
		}
		for _, at := range []int{s.Start, end} {
			if at < len(units) && utf16.IsSurrogate(rune(units[at])) && units[at] >= 0xDC00 {
				return fmt.Errorf("range %+v cuts a surrogate pair", s)
			}
		}
		switch s.Kind {
		case "BOLD", "ITALIC", "STRIKETHROUGH", "MONOSPACE":
		default:
			return fmt.Errorf("unknown kind %+v", s)
		}
		for _, o := range styles[:i] {
			if s.Start < o.Start+o.Length && o.Start < end && (s.Kind == o.Kind || s.Kind == "MONOSPACE" || o.Kind == "MONOSPACE") {
				return fmt.Errorf("ranges %+v and %+v overlap", o, s)
			}
		}
	}
	return nil
}

// checkChunks checks what Render promises of each chunk.
func checkChunks(texts []platforms.Text, t platforms.TextTraits) error {
	limit := limitOf(t)
	counted := t.CountMarkup || t.Dialect == platforms.Plain || t.Dialect == platforms.SignalStyles
	for i, c := range texts {
		for _, s := range []string{c.Body, c.Plain, c.Markdown} {
			if !utf8.ValidString(s) {
				return fmt.Errorf("chunk %d: invalid UTF-8 in %q", i, s)
			}
			if strings.TrimSpace(s) == "" {
				return fmt.Errorf("chunk %d is empty: %+v", i, c)
			}
		}
		if limit > 0 && counted && Length(c.Body, t.Unit) > limit {
			return fmt.Errorf("chunk %d: body of %d is over %d: %q", i, Length(c.Body, t.Unit), limit, c.Body)
		}
		if limit > 0 && Length(c.Plain, t.Unit) > limit {
			return fmt.Errorf("chunk %d: plain of %d is over %d: %q", i, Length(c.Plain, t.Unit), limit, c.Plain)
		}
		if t.Dialect == platforms.TelegramHTML {
			text, err := htmlText(c.Body)
			if err != nil {
				return fmt.Errorf("chunk %d: %w: %q", i, err, c.Body)
			}
			if limit > 0 && Length(text, t.Unit) > limit {
				return fmt.Errorf("chunk %d: text of %d is over %d: %q", i, Length(text, t.Unit), limit, text)
			}
		}
		if err := checkStyles(c.Body, c.Styles); err != nil {
			return fmt.Errorf("chunk %d: %w: %q", i, err, c.Body)
		}
		if t.Dialect != platforms.SignalStyles && c.Styles != nil {
			return fmt.Errorf("chunk %d: styles in %s", i, t.Dialect)
		}
	}
	return nil
}

// shown writes part of a document in short plain text, without repeated table headers.
func shown(d *document, from, to pos) string {
	p := &pen{is: plainNotation{short: true}, doc: d}
	p.span(from, to, false)
	return p.finish()
}

// checkLossless splits a message and checks that what its chunks show, without repeated headers, is what the
// whole shows, and that no border lies inside of a grapheme that fits.
func checkLossless(markdown string, t platforms.TextTraits) error {
	source := tidy(markdown)
	if source == "" || t.Limit <= 0 {
		return nil
	}
	r := newRenderer(source, t)
	whole := shown(r.doc, pos{}, r.doc.end())
	chunks := r.split(0)
	var all strings.Builder
	at := pos{}
	for i, c := range chunks {
		part := shown(r.doc, c.from, c.to)
		all.WriteString(part)
		if t.Dialect == platforms.TelegramHTML {
			text, err := htmlText(c.body)
			if err != nil {
				return err
			}
			p := &pen{is: plainNotation{short: true}, doc: r.doc}
			p.span(c.from, c.to, c.head)
			if want := strings.ReplaceAll(squeezed(p.finish()), ">", ""); squeezed(strings.ReplaceAll(text, ">", "")) != want {
				return fmt.Errorf("chunk %d shows %q, want %q", i, text, want)
			}
		}
		if c.from.line < at.line {
			return fmt.Errorf("chunk %d goes back", i)
		}
		at = c.from
	}
	if squeezed(all.String()) != squeezed(whole) {
		return fmt.Errorf("the chunks show\n%q\nthe whole shows\n%q", squeezed(all.String()), squeezed(whole))
	}
	for i, c := range chunks {
		if c.from.off == 0 {
			continue
		}
		text := r.doc.lines[c.from.line].spans[c.from.span].text
		if err := checkBorder(text, c.from.off, r.budget/8); err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	return nil
}

// checkBorder checks that at is a border of graphemes of text, or lies in one of more than most bytes.
func checkBorder(text string, at, most int) error {
	pos, state := 0, -1
	for rest := text; rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if pos == at {
			return nil
		}
		if pos < at && at < pos+len(cluster) {
			if len(cluster) > most {
				return nil
			}
			return fmt.Errorf("%q is cut at %d", cluster, at-pos)
		}
		pos += len(cluster)
	}
	return nil
}

func renderChecked(t testing.TB, markdown string, traits platforms.TextTraits) []platforms.Text {
	t.Helper()
	texts := Render(markdown, traits)
	require.NoError(t, checkChunks(texts, traits), "%+v", traits)
	return texts
}
