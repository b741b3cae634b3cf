package files

import (
	"fmt"
	"regexp"
	"strings"
)

// compileGlob turns a shell pattern into a regular expression for slash-separated paths: * and ? stay within
// one name, ** crosses names, [a-z], [!a] and {a,b} work as usual.
func compileGlob(pattern string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(`\A(?s:` + globBody(pattern) + `)\z`)
	if err != nil {
		return nil, fmt.Errorf("%q is not a valid pattern", pattern)
	}
	return re, nil
}

func globBody(p string) string {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(p); i++ {
		switch c := p[i]; c {
		case '*':
			i = star(&b, p, i)
		case '?':
			b.WriteString(`[^/]`)
		case '[':
			i = class(&b, p, i)
		case '{':
			if strings.IndexByte(p[i:], '}') < 0 {
				b.WriteString(`\{`)
				break
			}
			depth++
			b.WriteString(`(?:`)
		case '}':
			if depth == 0 {
				b.WriteString(`\}`)
				break
			}
			depth--
			b.WriteByte(')')
		case ',':
			if depth > 0 {
				c = '|'
			}
			b.WriteByte(c)
		case '\\':
			if i+1 < len(p) {
				i++
			}
			b.WriteString(regexp.QuoteMeta(p[i : i+1]))
		default:
			if c < 0x80 {
				b.WriteString(regexp.QuoteMeta(p[i : i+1]))
			} else {
				b.WriteByte(c)
			}
		}
	}
	b.WriteString(strings.Repeat(")", depth))
	return b.String()
}

// star writes what a run of stars means and returns the index of its last character.
func star(b *strings.Builder, p string, i int) int {
	j := i
	for j+1 < len(p) && p[j+1] == '*' {
		j++
	}
	alone := j > i && (i == 0 || p[i-1] == '/')
	switch {
	case alone && j+1 < len(p) && p[j+1] == '/':
		b.WriteString(`(?:.*/)?`)
		return j + 1
	case alone && j+1 == len(p):
		b.WriteString(`.*`)
	default:
		b.WriteString(`[^/]*`)
	}
	return j
}

// class writes a bracket expression and returns the index of its end; a bracket that is not closed stands
// for itself.
func class(b *strings.Builder, p string, i int) int {
	j := i + 1
	if j < len(p) && (p[j] == '!' || p[j] == '^') {
		j++
	}
	if j < len(p) && p[j] == ']' {
		j++
	}
	for j < len(p) && p[j] != ']' {
		if p[j] == '\\' {
			j++
		}
		j++
	}
	if j >= len(p) {
		b.WriteString(`\[`)
		return i
	}
	inner := p[i+1 : j]
	b.WriteByte('[')
	if inner[0] == '!' || inner[0] == '^' {
		b.WriteString(`^/`)
		inner = inner[1:]
	}
	for k := 0; k < len(inner); k++ {
		c := inner[k]
		switch {
		case c == '\\' && k+1 < len(inner):
			k++
			b.WriteString(regexp.QuoteMeta(inner[k : k+1]))
		case c == '-':
			b.WriteByte('-')
		case c < 0x80 && c != ' ':
			b.WriteString(regexp.QuoteMeta(inner[k : k+1]))
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte(']')
	return j
}
