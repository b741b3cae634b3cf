package sqlite

import (
	"strings"
	"unicode"
)

// The marks around matches, and how much text a snippet shows around the first of them.
const (
	matchOpen, matchClose = "«", "»"
	snippetBefore         = 40  // characters
	snippetLength         = 160 // characters
	snippetWords          = 24  // words, where SQLite cuts
)

// cutSnippet returns the part of content around the first match of any term, with the matches marked. Case
// is ignored. Without a match it returns the beginning.
func cutSnippet(content string, terms []term) string {
	text := []rune(content)
	folded := make([]rune, len(text))
	for i, r := range text {
		folded[i] = unicode.ToLower(r)
	}
	marks := make([]int, len(text)) // at a match's start: its length
	first := -1
	for _, t := range terms {
		want := []rune(t.text)
		for i, r := range want {
			want[i] = unicode.ToLower(r)
		}
		for i := 0; len(want) > 0 && i+len(want) <= len(folded); i++ {
			if !hasPrefix(folded[i:], want) {
				continue
			}
			marks[i] = max(marks[i], len(want))
			if first < 0 || i < first {
				first = i
			}
		}
	}
	start := max(0, first-snippetBefore)
	end := min(len(text), start+snippetLength)
	var b strings.Builder
	if start > 0 {
		b.WriteString("…")
	}
	for i := start; i < end; {
		n := marks[i]
		if n == 0 || i+n > end {
			b.WriteRune(text[i])
			i++
			continue
		}
		b.WriteString(matchOpen + string(text[i:i+n]) + matchClose)
		i += n
	}
	if end < len(text) {
		b.WriteString("…")
	}
	return b.String()
}

func hasPrefix(text, want []rune) bool {
	for i, r := range want {
		if text[i] != r {
			return false
		}
	}
	return true
}
