package format

import "strings"

const (
	// maxNesting is how many quotes and list items may begin on one line. The parser's time grows with the
	// square of it, and nobody reads deeper.
	maxNesting = 32
	// maxOpenLinks is how many addresses may be open at once in a paragraph, each inside the one before:
	// CommonMark lets parsers stop at 32.
	maxOpenLinks = 32
)

// bounded returns a message in which what nests too deep for the parser is escaped, so that it shows as text. Nearly
// every message is returned as it is.
func bounded(source string) string {
	var out []byte
	from := 0
	escape := func(at int) {
		out = append(append(out, source[from:at]...), '\\')
		from = at
	}
	links := 0
	for at := 0; at < len(source); {
		end := len(source)
		if i := strings.IndexByte(source[at:], '\n'); i >= 0 {
			end = at + i
		}
		if deep := nesting(source[at:end]); deep >= 0 {
			escape(at + deep)
		}
		if strings.TrimSpace(source[at:end]) == "" {
			links = 0
		}
		for i := at; i < end; i++ {
			switch source[i] {
			case ')':
				links = max(links-1, 0)
			case '(':
				if i == at || source[i-1] != ']' {
					continue
				}
				if links++; links > maxOpenLinks {
					escape(i)
				}
			}
		}
		at = end + 1
	}
	if from == 0 {
		return source
	}
	return string(append(out, source[from:]...))
}

// nesting returns where on a line the first marker stands that nests too deep, -1 when there is none.
func nesting(text string) int {
	at, depth := 0, 0
	for {
		at += spaces(text[at:])
		n := markerLength(text[at:])
		switch {
		case strings.HasPrefix(text[at:], ">"):
			n = 1
		case n > 0 && at+n < len(text) && isSpace(text[at+n]):
		default:
			return -1
		}
		if depth++; depth > maxNesting {
			return at + n - 1 // "1." is escaped before its dot
		}
		at += n
	}
}
