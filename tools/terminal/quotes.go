package terminal

import (
	"strconv"
	"strings"
)

// quoted adds a character that has no meaning for the shell.
func (l *lexer) quoted(c byte) {
	if strings.IndexByte("~$*?[{", c) >= 0 {
		l.word.WriteByte(literal)
	}
	l.word.WriteByte(c)
}

func (l *lexer) escape() {
	l.at++
	if l.at >= len(l.src) {
		return
	}
	if l.src[l.at] != '\n' {
		l.quoted(l.src[l.at])
		l.inWord, l.quotes = true, true
	}
	l.at++
}

// end goes over the quote that ends a text; without one the text is unclosed.
func (l *lexer) end() {
	if l.at >= len(l.src) {
		l.unclosed = true
	}
	l.at++
}

func (l *lexer) single() {
	l.at++
	l.inWord, l.quotes = true, true
	for l.at < len(l.src) && l.src[l.at] != '\'' {
		l.quoted(l.src[l.at])
		l.at++
	}
	l.end()
}

func (l *lexer) double() {
	l.at++
	l.inWord, l.quotes = true, true
	for l.at < len(l.src) && l.src[l.at] != '"' {
		switch c := l.src[l.at]; {
		case c == '\\' && l.peek(1) != 0 && strings.IndexByte("$`\"\\\n", l.peek(1)) >= 0:
			l.escape()
		case c == '`':
			l.at++
			l.nest(l.until('`'))
		case c == '$':
			l.dollar(true)
		case strings.IndexByte("~*?[{", c) >= 0:
			l.quoted(c)
			l.at++
		default:
			l.add(c)
		}
	}
	l.end()
}

// dollar reads $(...), $((...)), $'...', ${...} and plain variables; the last two stay as they are written. inside
// says that it is within double quotes, where a quote behind it is a plain one.
func (l *lexer) dollar(inside bool) {
	switch c := l.peek(1); {
	case c == '(' && l.peek(2) == '(' && l.arithmetic(3):
		l.word.WriteByte(literal)
		l.inWord = true
	case c == '(':
		l.at += 2
		l.nest(l.parenthesis())
	case c == '\'' && !inside:
		l.at += 2
		l.ansi()
	case c == '"' && !inside:
		l.at++ // a translated text: the quote follows
	case c == '{':
		l.braces(inside)
	default:
		l.add('$')
	}
}

// braces reads ${...}, whose default value may hold quotes and substitutions.
func (l *lexer) braces(inside bool) {
	l.add('$')
	for l.at < len(l.src) && l.src[l.at] != '}' {
		switch c := l.src[l.at]; {
		case c == '\\':
			l.escape()
		case c == '\'' && !inside:
			l.single()
		case c == '"':
			l.double()
		case c == '`':
			l.at++
			l.nest(l.until('`'))
		case c == '$':
			l.dollar(inside)
		default:
			l.add(c)
		}
	}
	if l.at < len(l.src) {
		l.add('}')
		return
	}
	l.unclosed = true
}

// arithmetic goes over ((...)), whose parentheses begin right before skip, and notes the substitutions in it. It
// returns false when that is no arithmetic but a subshell in a subshell, as a shell tells it: the inner parenthesis
// is closed and the outer one is not closed right behind it.
func (l *lexer) arithmetic(skip int) bool {
	begin, depth := l.at+skip, 1
	for i := begin; i < len(l.src); i++ {
		if l.scanned++; l.scanned > maxScanned {
			l.unclosed = true
			return false
		}
		switch l.src[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth > 0 {
			continue
		}
		if i+1 >= len(l.src) || l.src[i+1] != ')' {
			return false
		}
		l.cur.nested = append(l.cur.nested, expansions(l.src[begin:i], l.level)...)
		l.at = i + 2
		return true
	}
	return false
}

// maxScanned bounds the search for the end of arithmetic in one text, in bytes.
const maxScanned = 1 << 20

// expansions returns the scripts inside a text in which only $ and ` have a meaning.
func expansions(text string, level int) []string {
	l := lexer{src: text, level: level}
	for l.at < len(l.src) {
		switch l.src[l.at] {
		case '\\':
			l.at += 2
		case '`':
			l.at++
			l.nest(l.until('`'))
		case '$':
			l.dollar(true)
		default:
			l.at++
		}
	}
	return l.cur.nested
}

// ansi reads the rest of $'...'.
func (l *lexer) ansi() {
	l.inWord, l.quotes = true, true
	for l.at < len(l.src) && l.src[l.at] != '\'' {
		if l.src[l.at] != '\\' {
			l.quoted(l.src[l.at])
			l.at++
			continue
		}
		switch c := l.peek(1); {
		case c == 'x':
			l.code(2, 16, 2)
		case c == 'u':
			l.code(2, 16, 4)
		case c == 'U':
			l.code(2, 16, 8)
		case c >= '0' && c <= '7':
			l.code(1, 8, 3)
		case c == 'n' || c == 't' || c == 'r':
			l.quoted(map[byte]byte{'n': '\n', 't': '\t', 'r': '\r'}[c])
			l.at += 2
		default:
			l.at++
			if l.at < len(l.src) {
				l.quoted(l.src[l.at])
				l.at++
			}
		}
	}
	l.end()
}

// code reads up to n digits that begin skip bytes ahead.
func (l *lexer) code(skip, base, n int) {
	l.at += skip
	for d := min(n, len(l.src)-l.at); d > 0; d-- {
		v, err := strconv.ParseUint(l.src[l.at:l.at+d], base, 32)
		if err != nil {
			continue
		}
		if v < 0x80 || base == 8 || n == 2 {
			l.quoted(byte(v))
		} else {
			l.word.WriteString(string(rune(v)))
		}
		l.at += d
		return
	}
}

// nest notes a script inside a word. Its output is unknown, so the word gets a character that no rule
// matches.
func (l *lexer) nest(text string) {
	l.cur.nested = append(l.cur.nested, text)
	l.word.WriteByte(literal)
	l.inWord = true
}

// until reads to the next unescaped stop.
func (l *lexer) until(stop byte) string {
	begin := l.at
	for l.at < len(l.src) && l.src[l.at] != stop {
		if l.src[l.at] == '\\' {
			l.at++
		}
		l.at++
	}
	text := l.src[begin:min(l.at, len(l.src))]
	l.end()
	return text
}

// parenthesis reads a script to the parenthesis that closes it, as the shell would: quotes, here documents, comments
// and case patterns in it hide parentheses.
func (l *lexer) parenthesis() string {
	begin := l.at
	if l.level >= maxLevel {
		l.unclosed, l.at = true, len(l.src)
		return l.src[begin:]
	}
	sub := lexer{src: l.src[begin:], inner: true, level: l.level + 1}
	sub.run()
	l.unclosed = l.unclosed || sub.unclosed || !sub.ended
	text := sub.src[:min(sub.at, len(sub.src))]
	l.at = min(begin+sub.at+1, len(l.src))
	return text
}
