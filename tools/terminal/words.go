package terminal

import (
	"strconv"
	"strings"
)

// literal stands before a character that the shell takes as it is because it was quoted: a tilde in
// quotes is a file name, not a home directory.
const literal = '\x00'

// simple is one command of a shell script without its control structure.
type simple struct {
	words    []string // quotes resolved, quoted special characters marked with literal
	nested   []string // scripts inside its words: $(...), `...`, <(...)
	writes   []string // targets of > and >>
	reads    []string // sources of <
	input    []string // texts of here documents and here strings
	pipeline int      // commands with the same number are joined by pipes
}

// script is a shell text cut into simple commands. It is not a shell grammar: control words are taken as
// prefixes of the command after them. Text that no shell accepts gives whatever could be read.
type script struct {
	commands []simple
	// bare is the text without what is quoted and without white space.
	bare string
}

// split cuts a text.
func split(text string) script {
	l := lexer{src: text}
	l.run()
	return script{commands: l.commands, bare: l.bare.String()}
}

type lexer struct {
	src      string
	at       int
	commands []simple
	cur      simple
	word     strings.Builder
	inWord   bool
	redirect byte     // '>' or '<' when the next word is a target, 'h' here document, 's' here string
	heredocs []string // delimiters whose bodies begin after this line
	pipeline int
	bare     strings.Builder
}

func (l *lexer) peek(n int) byte {
	if l.at+n < len(l.src) {
		return l.src[l.at+n]
	}
	return 0
}

func (l *lexer) run() {
	for l.at < len(l.src) {
		c := l.src[l.at]
		if c != ' ' && c != '\t' && c != '\n' && c != '\'' && c != '"' && c != '\\' {
			l.bare.WriteByte(c)
		}
		switch c {
		case '\\':
			l.escape()
		case '\'':
			l.single()
		case '"':
			l.double()
		case '`':
			l.at++
			l.nest(l.until('`'))
		case '$':
			l.dollar()
		case ' ', '\t', '\r':
			l.endWord()
			l.at++
		case '#':
			if l.inWord {
				l.add(c)
				break
			}
			for l.at < len(l.src) && l.src[l.at] != '\n' {
				l.at++
			}
		case '\n':
			l.endCommand(false)
			l.at++
			l.bodies()
		case ';', '(', ')':
			l.endCommand(false)
			l.at++
		case '&':
			l.ampersand()
		case '|':
			l.pipe()
		case '>', '<':
			l.angle(c)
		default:
			l.add(c)
		}
	}
	l.endCommand(false)
}

func (l *lexer) add(c byte) {
	l.word.WriteByte(c)
	l.inWord = true
	l.at++
}

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
		l.inWord = true
	}
	l.at++
}

func (l *lexer) single() {
	l.at++
	l.inWord = true
	for l.at < len(l.src) && l.src[l.at] != '\'' {
		l.quoted(l.src[l.at])
		l.at++
	}
	l.at++
}

func (l *lexer) double() {
	l.at++
	l.inWord = true
	for l.at < len(l.src) && l.src[l.at] != '"' {
		switch c := l.src[l.at]; {
		case c == '\\' && strings.IndexByte("$`\"\\\n", l.peek(1)) >= 0 && l.peek(1) != 0:
			l.escape()
		case c == '`':
			l.at++
			l.nest(l.until('`'))
		case c == '$':
			l.dollar()
		case strings.IndexByte("~*?[{", c) >= 0:
			l.quoted(c)
			l.at++
		default:
			l.add(c)
		}
	}
	l.at++
}

// dollar reads $(...), $'...', ${...} and plain variables; the last two stay as they are written.
func (l *lexer) dollar() {
	switch l.peek(1) {
	case '(':
		l.at += 2
		l.nest(l.parenthesis())
	case '\'':
		l.at += 2
		l.ansi()
	case '{':
		for l.at < len(l.src) && l.src[l.at] != '}' {
			l.add(l.src[l.at])
		}
		if l.at < len(l.src) {
			l.add('}')
		}
	default:
		l.add('$')
	}
}

// ansi reads the rest of $'...'.
func (l *lexer) ansi() {
	l.inWord = true
	for l.at < len(l.src) && l.src[l.at] != '\'' {
		if l.src[l.at] != '\\' {
			l.quoted(l.src[l.at])
			l.at++
			continue
		}
		switch c := l.peek(1); {
		case c == 'x':
			l.code(2, 16, 2)
		case c >= '0' && c <= '7':
			l.code(1, 8, 3)
		default:
			l.at++
			if l.at < len(l.src) {
				l.quoted(l.src[l.at])
				l.at++
			}
		}
	}
	l.at++
}

// code reads up to n digits that begin skip bytes ahead.
func (l *lexer) code(skip, base, n int) {
	l.at += skip
	for d := min(n, len(l.src)-l.at); d > 0; d-- {
		if v, err := strconv.ParseUint(l.src[l.at:l.at+d], base, 8); err == nil {
			l.quoted(byte(v))
			l.at += d
			return
		}
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
	end := min(l.at, len(l.src))
	l.at = end + 1
	return l.src[begin:end]
}

// parenthesis reads to the closing one of the current level, minding quotes.
func (l *lexer) parenthesis() string {
	begin, depth := l.at, 1
	for l.at < len(l.src) {
		switch l.src[l.at] {
		case '\\':
			l.at++
		case '\'':
			l.at++
			l.until('\'')
			continue
		case '"':
			l.at++
			l.until('"')
			continue
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				l.at++
				return l.src[begin : l.at-1]
			}
		}
		l.at++
	}
	return l.src[begin:min(l.at, len(l.src))]
}

func (l *lexer) ampersand() {
	switch {
	case l.peek(1) == '>':
		l.endWord()
		l.at++ // the > follows
	case l.redirect != 0 && !l.inWord:
		l.add('&') // a file descriptor: 2>&1
	default:
		l.endCommand(false)
		l.at++
	}
}

func (l *lexer) pipe() {
	joined := l.peek(1) != '|'
	l.endCommand(joined)
	l.at++
	if l.at < len(l.src) && (l.src[l.at] == '|' || l.src[l.at] == '&') {
		l.bare.WriteByte(l.src[l.at])
		l.at++
	}
}

func (l *lexer) angle(c byte) {
	if l.inWord && strings.Trim(l.word.String(), "0123456789") == "" {
		l.word.Reset() // the number of a file descriptor
		l.inWord = false
	}
	l.endWord()
	switch {
	case l.peek(1) == '(':
		l.at += 2
		l.nest(l.parenthesis())
	case c == '<' && l.peek(1) == '<' && l.peek(2) == '<':
		l.redirect = 's'
		l.at += 3
	case c == '<' && l.peek(1) == '<':
		l.redirect = 'h'
		l.at += 2
		if l.peek(0) == '-' {
			l.at++
		}
	default:
		l.redirect = c
		l.at++
		for l.at < len(l.src) && (l.src[l.at] == '>' || l.src[l.at] == '|') {
			l.at++
		}
	}
}

func (l *lexer) endWord() {
	if !l.inWord {
		return
	}
	w := l.word.String()
	l.word.Reset()
	l.inWord = false
	switch l.redirect {
	case '>':
		l.cur.writes = append(l.cur.writes, w)
	case 'h':
		l.heredocs = append(l.heredocs, plain(w))
	case 's':
		l.cur.input = append(l.cur.input, plain(w))
	case '<':
		l.cur.reads = append(l.cur.reads, w)
	default:
		l.cur.words = append(l.cur.words, w)
	}
	l.redirect = 0
}

func (l *lexer) endCommand(joined bool) {
	l.endWord()
	l.redirect = 0
	l.cur.pipeline = l.pipeline
	if len(l.cur.words) > 0 || len(l.cur.nested) > 0 || len(l.cur.writes) > 0 || len(l.cur.reads) > 0 {
		l.commands = append(l.commands, l.cur)
	}
	l.cur = simple{}
	if !joined {
		l.pipeline++
	}
}

// bodies reads the here documents that were announced on the line before.
func (l *lexer) bodies() {
	for _, stop := range l.heredocs {
		var body strings.Builder
		for l.at < len(l.src) {
			line, _, found := strings.Cut(l.src[l.at:], "\n")
			l.at += len(line)
			if found {
				l.at++
			}
			if strings.TrimLeft(line, "\t") == stop {
				break
			}
			body.WriteString(line + "\n")
		}
		if n := len(l.commands); n > 0 {
			// The command that takes it stands on the line before; its last one is close enough.
			l.commands[n-1].input = append(l.commands[n-1].input, body.String())
		}
	}
	l.heredocs = nil
}

// plain removes the marks of quoted characters.
func plain(w string) string { return strings.ReplaceAll(w, string(literal), "") }
