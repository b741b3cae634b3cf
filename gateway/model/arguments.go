package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxNesting bounds how deep malformed arguments are followed.
const maxNesting = 200

// ParseArguments returns the arguments of a tool call as one JSON object. What models get wrong in harmless
// ways is repaired: no arguments at all, code fences, text around the object, JSON inside a JSON string,
// single or typographic quotes, bare keys, trailing and missing commas, comments, Python's None, True and
// False, raw line breaks in strings, bad escapes, and the same object written twice.
//
// What can't be repaired without guessing is an error whose text is meant for the model: a truncated object
// (running half of a command is worse than asking again), two different objects, or no object.
func ParseArguments(raw string) (json.RawMessage, error) {
	s := strings.TrimSpace(strings.TrimPrefix(raw, "\ufeff"))
	if s == "" || s == "null" || s == "None" {
		return json.RawMessage("{}"), nil
	}
	if s[0] == '{' && json.Valid([]byte(s)) {
		return json.RawMessage(s), nil
	}
	s = stripFence(s)
	// A JSON string that holds the object.
	if s != "" && s[0] == '"' {
		var inner string
		if json.Unmarshal([]byte(s), &inner) == nil {
			if t := strings.TrimSpace(inner); t == "" || strings.HasPrefix(t, "{") || strings.HasPrefix(t, "```") {
				return ParseArguments(inner)
			}
		}
	}
	if json.Valid([]byte(s)) && s[0] != '{' {
		return nil, fmt.Errorf("the arguments must be one JSON object, not %s; call the tool again with an object", describe(s))
	}
	start := strings.IndexByte(s, '{')
	if start < 0 {
		return nil, errors.New("the arguments are not a JSON object; call the tool again with one, such as {\"key\": \"value\"}")
	}
	r := repairer{in: s, pos: start}
	var first []byte
	for n := 0; ; n++ {
		r.out.Reset()
		if err := r.value(0); err != nil {
			return nil, fmt.Errorf("the arguments are not valid JSON: %w; call the tool again with one complete JSON object", err)
		}
		object := bytes.Clone(r.out.Bytes())
		if !json.Valid(object) {
			return nil, errors.New("the arguments are not valid JSON; call the tool again with one complete JSON object")
		}
		switch {
		case n == 0:
			first = object
		case !sameJSON(first, object):
			return nil, errors.New("the arguments hold two different JSON objects; call the tool once for each")
		}
		rest := strings.IndexByte(s[r.pos:], '{')
		if rest < 0 {
			return first, nil
		}
		r.pos += rest
		if n >= 16 {
			return nil, errors.New("the arguments hold many JSON objects; call the tool again with one")
		}
	}
}

func stripFence(s string) string {
	if !strings.HasPrefix(s, "```") {
		return s
	}
	if nl := strings.IndexByte(s, '\n'); nl >= 0 {
		s = s[nl+1:]
	} else {
		s = strings.TrimLeft(s, "`")
	}
	s = strings.TrimSpace(s)
	return strings.TrimSpace(strings.TrimSuffix(s, "```"))
}

func describe(s string) string {
	switch s[0] {
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	}
	return "a number"
}

func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return bytes.Equal(p, q)
}

// repairer reads one lenient value at pos and writes strict JSON.
type repairer struct {
	in  string
	pos int
	out bytes.Buffer
}

var errCut = errors.New("they end in the middle, probably cut off")

func (r *repairer) skip() {
	for r.pos < len(r.in) {
		c, n := utf8.DecodeRuneInString(r.in[r.pos:])
		switch {
		case unicode.IsSpace(c) || c == '\ufeff':
			r.pos += n
		case strings.HasPrefix(r.in[r.pos:], "//"):
			if nl := strings.IndexByte(r.in[r.pos:], '\n'); nl >= 0 {
				r.pos += nl
			} else {
				r.pos = len(r.in)
			}
		case strings.HasPrefix(r.in[r.pos:], "/*"):
			if end := strings.Index(r.in[r.pos+2:], "*/"); end >= 0 {
				r.pos += end + 4
			} else {
				r.pos = len(r.in)
			}
		default:
			return
		}
	}
}

func (r *repairer) peek() byte {
	if r.pos < len(r.in) {
		return r.in[r.pos]
	}
	return 0
}

func (r *repairer) value(depth int) error {
	if depth > maxNesting {
		return errors.New("they are nested too deep")
	}
	r.skip()
	if r.pos >= len(r.in) {
		return errCut
	}
	switch r.peek() {
	case '{':
		return r.members('}', depth)
	case '[':
		return r.members(']', depth)
	}
	if closing, n := quoteAt(r.in[r.pos:]); n > 0 {
		return r.text(closing, n)
	}
	return r.word(false)
}

// members reads an object or an array up to its closing byte.
func (r *repairer) members(closing byte, depth int) error {
	r.out.WriteByte(r.peek())
	r.pos++
	for n := 0; ; n++ {
		r.skip()
		for r.peek() == ',' { // leading, double and trailing commas
			r.pos++
			r.skip()
		}
		if r.pos >= len(r.in) {
			return errCut
		}
		if r.peek() == closing {
			r.pos++
			r.out.WriteByte(closing)
			return nil
		}
		if c := r.peek(); c == '}' || c == ']' {
			return fmt.Errorf("a %q closes what %q was to close", c, closing)
		}
		if n > 0 {
			r.out.WriteByte(',')
		}
		if closing == '}' {
			if err := r.key(); err != nil {
				return err
			}
		}
		if err := r.value(depth + 1); err != nil {
			return err
		}
	}
}

func (r *repairer) key() error {
	var err error
	if closing, n := quoteAt(r.in[r.pos:]); n > 0 {
		err = r.text(closing, n)
	} else {
		err = r.word(true)
	}
	if err != nil {
		return err
	}
	r.skip()
	if r.pos >= len(r.in) {
		return errCut
	}
	if c := r.peek(); c != ':' && c != '=' {
		return fmt.Errorf("after a key comes %q instead of a colon", c)
	}
	r.pos++
	if r.peek() == '>' { // Ruby's =>
		r.pos++
	}
	r.out.WriteByte(':')
	return nil
}

// quoteAt returns which quote closes the one that s begins with, and the opening quote's bytes; n is 0
// when s begins with none.
func quoteAt(s string) (closing string, n int) {
	switch {
	case strings.HasPrefix(s, `"`):
		return `"`, 1
	case strings.HasPrefix(s, `'`):
		return `'`, 1
	case strings.HasPrefix(s, "\u201c"):
		return "\u201d", len("\u201c")
	case strings.HasPrefix(s, "\u2018"):
		return "\u2019", len("\u2018")
	case strings.HasPrefix(s, "`"):
		return "`", 1
	}
	return "", 0
}

// text copies a quoted string and escapes what JSON wants escaped.
func (r *repairer) text(closing string, n int) error {
	r.pos += n
	r.out.WriteByte('"')
	for r.pos < len(r.in) {
		rest := r.in[r.pos:]
		if strings.HasPrefix(rest, closing) && (closing != "'" || r.closesSingle(rest[1:])) {
			r.pos += len(closing)
			r.out.WriteByte('"')
			return nil
		}
		c, size := utf8.DecodeRuneInString(rest)
		r.pos += size
		switch {
		case c == '\\':
			r.escape()
		case c == '"':
			r.out.WriteString(`\"`)
		case c == '\n':
			r.out.WriteString(`\n`)
		case c == '\r':
			r.out.WriteString(`\r`)
		case c == '\t':
			r.out.WriteString(`\t`)
		case c < 0x20:
			fmt.Fprintf(&r.out, `\u%04x`, c)
		default:
			r.out.WriteRune(c)
		}
	}
	return errCut
}

// closesSingle tells an apostrophe inside a single-quoted string from its end: the end is followed by what
// may follow a string.
func (r *repairer) closesSingle(rest string) bool {
	rest = strings.TrimLeft(rest, " \t\r\n")
	return rest == "" || strings.ContainsRune(",:}]", rune(rest[0]))
}

func (r *repairer) escape() {
	if r.pos >= len(r.in) {
		return // the string is cut: text reports it
	}
	c := r.in[r.pos]
	switch {
	case strings.IndexByte(`"\/bfnrt`, c) >= 0:
		r.pos++
		r.out.WriteByte('\\')
		r.out.WriteByte(c)
	case c == 'u' && hex4(r.in[r.pos+1:]):
		r.out.WriteByte('\\')
		r.out.WriteString(r.in[r.pos : r.pos+5])
		r.pos += 5
	case c == '\'' || c == '`':
		r.pos++
		r.out.WriteByte(c)
	case c == '\n':
		r.pos++ // a continued line
	default:
		r.out.WriteString(`\\`) // a backslash meant as itself, as in \d or C:\x
	}
}

func hex4(s string) bool {
	if len(s) < 4 {
		return false
	}
	for i := range 4 {
		if !strings.ContainsRune("0123456789abcdefABCDEF", rune(s[i])) {
			return false
		}
	}
	return true
}

// word copies a bare key, a number or a literal. Other bare text is refused as a value: where it ends is a
// guess.
func (r *repairer) word(key bool) error {
	start := r.pos
	for r.pos < len(r.in) {
		c, n := utf8.DecodeRuneInString(r.in[r.pos:])
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_-.+$", c) {
			break
		}
		r.pos += n
	}
	w := r.in[start:r.pos]
	if w == "" {
		c, _ := utf8.DecodeRuneInString(r.in[r.pos:])
		return fmt.Errorf("%q does not belong there", c)
	}
	if r.pos >= len(r.in) {
		return errCut
	}
	if key {
		b, err := json.Marshal(w)
		if err != nil {
			return err
		}
		r.out.Write(b)
		return nil
	}
	switch w {
	case "true", "false", "null":
	case "True", "TRUE":
		w = "true"
	case "False", "FALSE":
		w = "false"
	case "None", "nil", "undefined", "NaN":
		w = "null"
	default:
		if !json.Valid([]byte(w)) {
			return fmt.Errorf("%q stands without quotes", w)
		}
	}
	r.out.WriteString(w)
	return nil
}
