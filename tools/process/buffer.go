package process

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// MaxBuffer is how many characters of a process's output are at hand, the newest.
const MaxBuffer = 200_000

// buffer keeps the end of a text. It is not safe for concurrent use.
type buffer struct {
	b     []byte
	chars int
	total int64 // characters ever written
}

// add takes valid UTF-8.
func (b *buffer) add(p []byte) {
	n := utf8.RuneCount(p)
	b.b, b.chars, b.total = append(b.b, p...), b.chars+n, b.total+int64(n)
	if b.chars > MaxBuffer*5/4 { // not at each piece: it copies
		b.trim()
	}
}

func (b *buffer) trim() {
	at := 0
	for ; b.chars > MaxBuffer; b.chars-- {
		_, size := utf8.DecodeRune(b.b[at:])
		at += size
	}
	b.b = append(b.b[:0], b.b[at:]...)
}

// text returns what is kept.
func (b *buffer) text() string {
	if b.chars > MaxBuffer {
		b.trim()
	}
	return string(b.b)
}

// tail returns the last n characters of s.
func tail(s string, n int) string {
	at := len(s)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return s[at:]
}

// controls are what programs write to a terminal beside text: colours, cursor moves, titles.
var controls = regexp.MustCompile("\x1b\\[[0-9;:?<=>]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|\x1b[ -/]*[0-~]|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")

// plain takes terminal controls out of a text, and a line that was written over shows what is left of it.
func plain(s string) string {
	if !strings.ContainsAny(s, "\x1b\r\b\x07") {
		return s
	}
	s = strings.ReplaceAll(controls.ReplaceAllString(s, ""), "\r\n", "\n")
	if !strings.Contains(s, "\r") {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		lines[i] = line[strings.LastIndexByte(line, '\r')+1:]
	}
	return strings.Join(lines, "\n")
}
