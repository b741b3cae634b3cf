package slack

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Bounds of what is read of one message's blocks. Slack's own limit is 50 blocks.
const (
	maxBlocks     = 100
	maxElements   = 5000
	maxDepth      = 8
	maxOtherJSON  = 6000 // characters of blocks that are no text, as trimmed JSON
	maxAttachText = 20000
)

// element is any part of a rich_text block.
type element struct {
	Type     string          `json:"type"`
	Elements []element       `json:"elements"`
	Text     json.RawMessage `json:"text"` // a string, or an object in elements that are no rich text
	URL      string          `json:"url"`
	User     string          `json:"user_id"`
	Channel  string          `json:"channel_id"`
	Group    string          `json:"usergroup_id"`
	Range    string          `json:"range"`
	Name     string          `json:"name"`
	Unicode  string          `json:"unicode"`
	Value    string          `json:"value"`
	Fallback string          `json:"fallback"`
	Style    json.RawMessage `json:"style"` // "ordered"/"bullet" of a list, an object of a text
	Indent   int             `json:"indent"`
	Offset   int             `json:"offset"`
	Border   int             `json:"border"`
}

// resolver turns ids into what people read.
type resolver interface {
	userName(id string) string // "@Pat"
	channelName(id string) string
}

// richText reads blocks: the text of their rich_text blocks, and the others as trimmed JSON. What can't be read is
// left out.
func richText(blocks json.RawMessage, names resolver) (text, others string) {
	var raw []json.RawMessage
	if len(blocks) == 0 || json.Unmarshal(blocks, &raw) != nil {
		return "", ""
	}
	r := &richReader{names: names}
	var rest []json.RawMessage
	for i, b := range raw {
		if i == maxBlocks {
			break
		}
		var e element
		if json.Unmarshal(b, &e) == nil && e.Type == "rich_text" {
			for _, part := range e.Elements {
				r.part(part, 0)
			}
			continue
		}
		if compact := trimJSON(b); compact != nil {
			rest = append(rest, compact)
		}
	}
	if len(rest) > 0 {
		joined, _ := json.Marshal(rest)
		others = cut(string(joined), maxOtherJSON)
	}
	return strings.Trim(r.out.String(), "\n"), others
}

// trimJSON takes what says nothing to a reader out of a block.
func trimJSON(block json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(block, &fields) != nil {
		return nil
	}
	for _, name := range []string{"block_id", "dispatch_action", "verbatim", "emoji"} {
		delete(fields, name)
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	return out
}

// richReader writes the parts of rich text as people see them.
type richReader struct {
	names resolver
	out   strings.Builder
	count int
}

// part is a section, list, quote or preformatted block.
func (r *richReader) part(e element, depth int) {
	if r.count++; depth > maxDepth || r.count > maxElements {
		return
	}
	switch e.Type {
	case "rich_text_section":
		r.line(r.inline(e.Elements, true))
	case "rich_text_preformatted":
		r.line("```\n" + strings.TrimRight(r.inline(e.Elements, false), "\n") + "\n```")
	case "rich_text_quote":
		r.line(quote(r.inline(e.Elements, true)))
	case "rich_text_list":
		r.list(e, depth)
	}
}

// line writes a block on lines of its own.
func (r *richReader) line(text string) {
	if r.out.Len() > 0 && !strings.HasSuffix(r.out.String(), "\n") {
		r.out.WriteByte('\n')
	}
	r.out.WriteString(text)
}

func (r *richReader) list(e element, depth int) {
	number := min(max(e.Offset, 0), 1<<30)
	indent := strings.Repeat("  ", min(max(e.Indent, 0), maxDepth))
	for _, item := range e.Elements {
		if r.count++; r.count > maxElements {
			return
		}
		if item.Type == "rich_text_list" {
			if depth < maxDepth {
				r.list(item, depth+1)
			}
			continue
		}
		number++
		marker := "- "
		if styleName(e.Style) == "ordered" {
			marker = strconv.Itoa(number) + ". "
		}
		text := strings.ReplaceAll(r.inline(item.Elements, true), "\n", "\n"+indent+strings.Repeat(" ", len(marker)))
		if e.Border > 0 {
			marker = "> " + marker
		}
		r.line(indent + marker + text)
	}
}

func styleName(raw json.RawMessage) string {
	var name string
	_ = json.Unmarshal(raw, &name)
	return name
}

func quote(text string) string {
	return "> " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n> ")
}

// inline writes the elements of a section.
func (r *richReader) inline(elements []element, styled bool) string {
	var b strings.Builder
	for _, e := range elements {
		if r.count++; r.count > maxElements {
			break
		}
		text := r.atom(e)
		if styled {
			text = style(text, e.Style)
		}
		b.WriteString(text)
	}
	return b.String()
}

func (r *richReader) atom(e element) string {
	text := ""
	_ = json.Unmarshal(e.Text, &text)
	text = clearText(text)
	switch e.Type {
	case "text":
		return text
	case "link":
		url := clearText(e.URL)
		if text == "" || text == url {
			return url
		}
		return text + " (" + url + ")"
	case "user":
		return r.names.userName(clearText(e.User))
	case "channel":
		return r.names.channelName(clearText(e.Channel))
	case "usergroup":
		return "@" + clearText(e.Group)
	case "broadcast":
		return "@" + clearText(e.Range)
	case "emoji":
		return emojiText(e)
	case "color":
		return clearText(e.Value)
	case "date":
		return firstOf(clearText(e.Fallback), text)
	}
	return text
}

// emojiText returns the character of an emoji, which Slack gives as code points in hex, or its name.
func emojiText(e element) string {
	var b strings.Builder
	for point := range strings.SplitSeq(e.Unicode, "-") {
		n, err := strconv.ParseInt(point, 16, 32)
		if err != nil || n <= 0 {
			return ":" + clearText(e.Name) + ":"
		}
		b.WriteRune(rune(n))
	}
	return b.String()
}

// style puts mrkdwn marks around text, inside of its white space.
func style(text string, raw json.RawMessage) string {
	var s struct{ Bold, Italic, Strike, Code bool }
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return text
	}
	core := strings.TrimSpace(text)
	if core == "" {
		return text
	}
	before, after, _ := strings.Cut(text, core)
	for _, mark := range []struct {
		on   bool
		sign string
	}{{s.Code, "`"}, {s.Strike, "~"}, {s.Italic, "_"}, {s.Bold, "*"}} {
		if mark.on {
			core = mark.sign + core + mark.sign
		}
	}
	return before + core + after
}

// clearText drops the character that marks the bot's own mention.
func clearText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

// mrkdwn reads a flat text: references by name, links with their addresses, escapes undone.
func mrkdwn(text string, names resolver) string {
	text = clearText(text)
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "<")
		b.WriteString(unescape(before))
		if !found {
			return b.String()
		}
		inner, after, closed := strings.Cut(rest, ">")
		if !closed {
			b.WriteString("<" + unescape(rest))
			return b.String()
		}
		b.WriteString(reference(inner, names))
		text = after
	}
}

// reference reads what stands between "<" and ">".
func reference(inner string, names resolver) string {
	target, label, labelled := strings.Cut(inner, "|")
	label = unescape(label)
	switch {
	case strings.HasPrefix(target, "@"):
		return names.userName(target[1:])
	case strings.HasPrefix(target, "#"):
		if label != "" {
			return "#" + strings.TrimPrefix(label, "#")
		}
		return names.channelName(target[1:])
	case strings.HasPrefix(target, "!date"):
		return label
	case strings.HasPrefix(target, "!"):
		if label != "" {
			return "@" + strings.TrimPrefix(label, "@")
		}
		name, _, _ := strings.Cut(target[1:], "^")
		return "@" + name
	}
	url := unescape(target)
	if !labelled || label == "" || label == url || "mailto:"+label == url || strings.TrimPrefix(strings.TrimPrefix(url, "https://"), "http://") == label {
		return strings.TrimPrefix(url, "mailto:")
	}
	return label + " (" + url + ")"
}

var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace

// plainText reads a flat text without asking for names.
func plainText(text string) string { return mrkdwn(text, noNames{}) }

type noNames struct{}

func (noNames) userName(id string) string    { return "@" + id }
func (noNames) channelName(id string) string { return "#" + id }

// otherBlocks words blocks that hold no text for the agent.
func otherBlocks(raw string) string {
	if raw == "" {
		return ""
	}
	return fmt.Sprintf("[blocks of this message: %s]", raw)
}
