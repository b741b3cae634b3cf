package telegramtest

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"unicode/utf16"
)

// Entity marks a range of a text in UTF-16 units.
type Entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
	URL    string `json:"url,omitempty"`
	User   *User  `json:"user,omitempty"`
}

// htmlTags are the tags that parse_mode HTML knows and what they mean
// (https://core.telegram.org/bots/api#html-style).
var htmlTags = map[string]string{
	"b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline",
	"s": "strikethrough", "strike": "strikethrough", "del": "strikethrough", "span": "spoiler", "tg-spoiler": "spoiler",
	"a": "text_link", "code": "code", "pre": "pre", "blockquote": "blockquote", "tg-emoji": "custom_emoji",
}

// htmlParser reads parse_mode HTML as the Bot API does, error texts included.
type htmlParser struct {
	in       string
	pos      int
	out      strings.Builder
	units    int
	open     []htmlOpen
	entities []Entity
}

type htmlOpen struct {
	tag, url string
	at       int // in units
	begin    int // in bytes of the input
}

func parseHTML(in string) (string, []Entity, error) {
	p := &htmlParser{in: in}
	for p.pos < len(in) {
		var err error
		switch c := in[p.pos]; {
		case c == '&':
			p.reference()
		case c == '<' && strings.HasPrefix(in[p.pos:], "</"):
			err = p.end()
		case c == '<':
			err = p.start()
		default:
			n := strings.IndexAny(in[p.pos:], "&<")
			if n < 0 {
				n = len(in) - p.pos
			}
			p.write(in[p.pos : p.pos+n])
			p.pos += n
		}
		if err != nil {
			return "", nil, err
		}
	}
	if n := len(p.open); n > 0 {
		return "", nil, cantParse("Can't find end tag corresponding to start tag %q", p.open[n-1].tag)
	}
	return p.out.String(), p.entities, nil
}

func cantParse(format string, args ...any) error {
	return refuse(400, "can't parse entities: %s", fmt.Sprintf(format, args...))
}

func (p *htmlParser) write(s string) {
	p.out.WriteString(s)
	p.units += utf16Len(s)
}

// reference decodes one character reference. Unknown names stay as they are.
func (p *htmlParser) reference() {
	rest := p.in[p.pos:]
	end := strings.IndexByte(rest, ';')
	if end > 0 && end < 12 {
		name := rest[1:end]
		_, numeric := strings.CutPrefix(name, "#")
		if numeric || slices.Contains([]string{"lt", "gt", "amp", "quot"}, name) {
			if decoded := html.UnescapeString(rest[:end+1]); decoded != rest[:end+1] {
				p.write(decoded)
				p.pos += end + 1
				return
			}
		}
	}
	p.write("&")
	p.pos++
}

func (p *htmlParser) start() error {
	begin := p.pos
	close := strings.IndexByte(p.in[begin:], '>')
	if close < 0 {
		return cantParse("Unclosed start tag at byte offset %d", begin)
	}
	inner := p.in[begin+1 : begin+close]
	name, attributes, _ := strings.Cut(inner, " ")
	name = strings.ToLower(strings.TrimSpace(name))
	if htmlTags[name] == "" {
		return cantParse("Unsupported start tag %q at byte offset %d", name, begin)
	}
	values, err := htmlAttributes(attributes, name, begin)
	if err != nil {
		return err
	}
	if name == "span" && values["class"] != "tg-spoiler" {
		return cantParse("Tag \"span\" must have class \"tg-spoiler\" at byte offset %d", begin)
	}
	p.open = append(p.open, htmlOpen{tag: name, url: values["href"], at: p.units, begin: begin})
	p.pos = begin + close + 1
	return nil
}

func htmlAttributes(s, tag string, at int) (map[string]string, error) {
	values := map[string]string{}
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		name, rest, ok := strings.Cut(s, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "" {
			return nil, cantParse("Empty attribute name in the tag %q at byte offset %d", tag, at)
		}
		if !ok || strings.Contains(name, " ") {
			if tag == "blockquote" && strings.HasPrefix(name, "expandable") {
				return values, nil
			}
			return nil, cantParse("Expected equal sign in declaration of an attribute of the tag %q at byte offset %d", tag, at)
		}
		rest = strings.TrimSpace(rest)
		if rest == "" || rest[0] != '"' && rest[0] != '\'' {
			value, after, _ := strings.Cut(rest, " ")
			values[name], s = html.UnescapeString(value), after
			continue
		}
		end := strings.IndexByte(rest[1:], rest[0])
		if end < 0 {
			return nil, cantParse("Unclosed start tag at byte offset %d", at)
		}
		values[name], s = html.UnescapeString(rest[1:1+end]), rest[end+2:]
	}
	return values, nil
}

func (p *htmlParser) end() error {
	begin := p.pos
	close := strings.IndexByte(p.in[begin:], '>')
	if close < 0 {
		return cantParse("Unclosed end tag at byte offset %d", begin)
	}
	name := strings.ToLower(strings.TrimSpace(p.in[begin+2 : begin+close]))
	if len(p.open) == 0 {
		return cantParse("Unexpected end tag at byte offset %d", begin)
	}
	top := p.open[len(p.open)-1]
	if name != "" && name != top.tag {
		return cantParse("Unmatched end tag at byte offset %d, expected \"</%s>\", found \"</%s>\"", begin, top.tag, name)
	}
	p.open = p.open[:len(p.open)-1]
	p.pos = begin + close + 1
	if p.units > top.at {
		e := Entity{Type: htmlTags[top.tag], Offset: top.at, Length: p.units - top.at, URL: top.url}
		if e.Type == "text_link" && e.URL == "" {
			return nil // a link without a target is plain text
		}
		p.entities = append(p.entities, e)
	}
	return nil
}

func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += max(1, utf16.RuneLen(r))
	}
	return n
}

// findEntities finds what Telegram marks by itself in a text a person wrote: mentions and commands.
func findEntities(text string) []Entity {
	var out []Entity
	offset := 0
	for _, word := range strings.SplitAfter(text, " ") {
		for _, line := range strings.SplitAfter(word, "\n") {
			bare := strings.TrimRight(line, " \n,.:;!?")
			switch {
			case len(bare) > 1 && bare[0] == '@' && isName(bare[1:]):
				out = append(out, Entity{Type: "mention", Offset: offset, Length: utf16Len(bare)})
			case len(bare) > 1 && bare[0] == '/' && isName(strings.Replace(bare[1:], "@", "", 1)):
				out = append(out, Entity{Type: "bot_command", Offset: offset, Length: utf16Len(bare)})
			}
			offset += utf16Len(line)
		}
	}
	return out
}

func isName(s string) bool {
	for _, r := range s {
		if r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return s != ""
}
