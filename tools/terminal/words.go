package terminal

import (
	"slices"
	"strings"
)

// literal stands before a character that the shell takes as it is because it was quoted: a tilde in
// quotes is a file name, not a home directory. Alone it stands for text that only running the command tells.
const literal = '\x00'

// simple is one command of a shell script without its control structure.
type simple struct {
	words      []string // quotes resolved, quoted special characters marked with literal
	nested     []string // scripts inside its words: $(...), `...`, <(...)
	writes     []string // targets of > and >>
	reads      []string // sources of <
	input      []string // texts of here documents and here strings
	pipeline   int      // commands with the same number are joined by pipes
	background bool     // ended by &
	process    bool     // one of nested is a process substitution
}

// script is a shell text cut into simple commands. It is not a shell grammar: control words are taken as
// prefixes of the command after them. Text that no shell accepts gives whatever could be read.
type script struct {
	commands []simple
	// bare is the text without what is quoted and without white space.
	bare string
	// unclosed is true when a quote or a substitution has no end: no shell runs such a text as it reads.
	unclosed bool
}

// split cuts a text.
func split(text string) script {
	l := lexer{src: text}
	l.run()
	return script{commands: l.commands, bare: l.bare.String(), unclosed: l.unclosed}
}

// heredoc is a here document that was announced.
type heredoc struct {
	stop    string
	quoted  bool // nothing in it is expanded
	tabs    bool // tabs before the lines don't count (<<-)
	command int  // which command takes it
}

type lexer struct {
	src      string
	at       int
	commands []simple
	cur      simple
	word     strings.Builder
	inWord   bool
	quotes   bool      // the word had quotes
	redirect byte      // '>' or '<' when the next word is a target, 'h' here document, 's' here string
	tabs     bool      // of the here document that the next word names
	heredocs []heredoc // their bodies begin after this line
	pipeline int
	bare     strings.Builder
	unclosed bool

	inner bool // it reads $(...) and ends before the parenthesis that closes it
	level int  // how many substitutions it is inside
	open  int  // parentheses that wait for their end
	cases int  // case constructs: their patterns end with a parenthesis that nothing opened
	ended bool // the closing parenthesis was found
	// scanned counts the bytes that were looked at for the end of arithmetic.
	scanned int
}

// maxLevel bounds how deep substitutions are followed; what is deeper counts as unclosed.
const maxLevel = 32

func (l *lexer) peek(n int) byte {
	if l.at+n < len(l.src) {
		return l.src[l.at+n]
	}
	return 0
}

func (l *lexer) run() {
	for l.at < len(l.src) && !l.ended {
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
			l.dollar(false)
		case ' ', '\t', '\r':
			l.endWord()
			l.at++
		case '#':
			l.hash()
		case '\n':
			l.endCommand(false)
			l.at++
			l.bodies()
		case ';':
			l.endCommand(false)
			l.at++
		case '(':
			l.opening()
		case ')':
			l.closing()
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

// hash is a comment at the beginning of a word.
func (l *lexer) hash() {
	if l.inWord {
		l.add('#')
		return
	}
	for l.at < len(l.src) && l.src[l.at] != '\n' {
		l.at++
	}
}

func (l *lexer) opening() {
	if !l.inWord && l.peek(1) == '(' && l.arithmetic(2) {
		return
	}
	l.endCommand(false)
	l.open++
	l.at++
}

func (l *lexer) closing() {
	l.endCommand(false)
	switch {
	case l.open > 0:
		l.open--
	case l.inner && l.cases == 0:
		l.ended = true
		return
	}
	l.at++
}

func (l *lexer) add(c byte) {
	l.word.WriteByte(c)
	l.inWord = true
	l.at++
}

func (l *lexer) ampersand() {
	switch {
	case l.peek(1) == '>':
		l.endWord()
		l.at++ // the > follows
	case l.redirect != 0 && !l.inWord:
		l.add('&') // a file descriptor: 2>&1
	case l.peek(1) == '&':
		l.endCommand(false)
		l.at += 2
	default:
		l.cur.background = true
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
		l.cur.process = true
		l.nest(l.parenthesis())
	case c == '<' && l.peek(1) == '<' && l.peek(2) == '<':
		l.redirect = 's'
		l.at += 3
	case c == '<' && l.peek(1) == '<':
		l.redirect = 'h'
		l.at += 2
		if l.tabs = l.peek(0) == '-'; l.tabs {
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
	w, quotes := l.word.String(), l.quotes
	l.word.Reset()
	l.inWord, l.quotes = false, false
	switch l.redirect {
	case '>':
		l.cur.writes = append(l.cur.writes, w)
	case 'h':
		l.heredocs = append(l.heredocs, heredoc{stop: plain(w), quoted: quotes, tabs: l.tabs, command: len(l.commands)})
	case 's':
		l.cur.input = append(l.cur.input, plain(w))
	case '<':
		l.cur.reads = append(l.cur.reads, w)
	default:
		l.control(w)
		l.cur.words = append(l.cur.words, w)
	}
	l.redirect = 0
}

// control counts case constructs.
func (l *lexer) control(w string) {
	if len(l.cur.words) > 0 && !slices.Contains([]string{"then", "do", "else", "{", "!", "time"}, l.cur.words[len(l.cur.words)-1]) {
		return
	}
	switch {
	case w == "case":
		l.cases++
	case w == "esac" && l.cases > 0:
		l.cases--
	}
}

func (l *lexer) endCommand(joined bool) {
	l.endWord()
	l.redirect = 0
	l.cur.pipeline = l.pipeline
	announced := len(l.heredocs) > 0 && l.heredocs[len(l.heredocs)-1].command == len(l.commands)
	if announced || len(l.cur.words) > 0 || len(l.cur.nested) > 0 || len(l.cur.writes) > 0 || len(l.cur.reads) > 0 {
		l.commands = append(l.commands, l.cur)
	}
	l.cur = simple{}
	if !joined {
		l.pipeline++
	}
}

// bodies reads the here documents that were announced on the line before.
func (l *lexer) bodies() {
	for _, h := range l.heredocs {
		var body strings.Builder
		for l.at < len(l.src) {
			line, _, found := strings.Cut(l.src[l.at:], "\n")
			l.at += len(line)
			if found {
				l.at++
			}
			if h.tabs {
				line = strings.TrimLeft(line, "\t")
			}
			if strings.TrimSuffix(line, "\r") == h.stop {
				break
			}
			body.WriteString(line + "\n")
		}
		if h.command >= len(l.commands) {
			continue
		}
		c := &l.commands[h.command]
		c.input = append(c.input, body.String())
		if !h.quoted {
			c.nested = append(c.nested, expansions(body.String(), l.level)...)
		}
	}
	l.heredocs = nil
}

// plain removes the marks of quoted characters.
func plain(w string) string { return strings.ReplaceAll(w, string(literal), "") }
