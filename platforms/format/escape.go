package format

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// EscapeMarkdown returns Markdown that shows s as it is: for names, commands and other foreign text inside a
// message. Line breaks stay line breaks; a blank line still ends a paragraph. Links are not made of it.
func EscapeMarkdown(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 8)
	start := true // only digits, or nothing, since the line began
	digits := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\n':
			b.WriteByte(c)
			start, digits = true, 0
			continue
		case (c == ' ' || c == '\t') && (start && digits == 0 || endsLine(s[i+1:])):
			// White space at a line's border means nothing in Markdown, or means code.
			if c == ' ' {
				b.WriteString("&#32;")
			} else {
				b.WriteString("&#9;")
			}
			continue
		case strings.IndexByte("\\`*_[]<>&|~!#", c) >= 0,
			c == ':' && strings.HasPrefix(s[i:], "://"),
			c == '.' && i >= 3 && strings.EqualFold(s[i-3:i], "www"),
			c == '@',
			start && digits == 0 && (c == '-' || c == '+' || c == '=' || c == ':'),
			start && digits > 0 && (c == '.' || c == ')'):
			b.WriteByte('\\')
		}
		b.WriteByte(c)
		if start && c >= '0' && c <= '9' {
			digits++
		} else {
			start = false
		}
	}
	return b.String()
}

func endsLine(s string) bool {
	s = strings.TrimLeft(s, " \t")
	return s == "" || s[0] == '\n'
}

// Code returns s as inline code in Markdown, whatever backticks it holds. Line breaks become spaces, as
// inline code has none. Empty s gives "".
func Code(s string) string {
	if s == "" {
		return ""
	}
	s = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(s)
	fence := strings.Repeat("`", longestRun(s, '`')+1)
	if padded(s) {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

// padded tells whether inline code needs a space on both sides, which Markdown takes away again.
func padded(s string) bool {
	if strings.Trim(s, " ") == "" {
		return false
	}
	first, last := s[0], s[len(s)-1]
	return first == '`' || last == '`' || first == ' ' || last == ' '
}

// Fence returns s as a fenced code block in Markdown, whatever backticks it holds, with a line break at its
// end. Of lang only the characters of a language name are kept.
func Fence(lang, s string) string {
	s = strings.TrimSuffix(s, "\n")
	fence := strings.Repeat("`", max(3, longestRun(s, '`')+1))
	return fence + language(lang) + "\n" + s + "\n" + fence + "\n"
}

// language returns the first word of an info string, reduced to the characters of a language name.
func language(info string) string {
	info = strings.TrimSpace(info)
	for i := 0; i < len(info); i++ {
		c := info[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("+#._-", c) >= 0:
		default:
			info = info[:i]
		}
	}
	if len(info) > 24 {
		return ""
	}
	return info
}

func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := 0; i < len(s); i++ {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// normalise returns s as valid UTF-8 with line feeds, without control characters but tab and line feed. A
// message that is so already is returned without a copy.
func normalise(s string) string {
	clean := true
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			clean = false
			break
		}
	}
	if clean && utf8.ValidString(s) {
		return s
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case r == '\n' || r == '\t':
			return r
		case r < ' ' || r == 0x7f:
			return -1
		}
		return r
	}, s)
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
