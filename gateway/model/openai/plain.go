package openai

import (
	"bytes"
	"unicode/utf8"
)

// plainText reads the one kind of event that nearly all of a stream consists of: one choice whose delta has
// a role and a piece of text and nothing else. ok is false for everything else, broken
// JSON included: read it with encoding/json then. What it accepts, encoding/json reads in the same way
// (FuzzPlainText), in ten times the time.
func plainText(data []byte) (content string, ok bool) {
	s := scan{data}
	if !s.token('{') {
		return "", false
	}
	seen := false
	for more := true; more; more = s.token(',') {
		name, ok := s.key()
		if !ok {
			return "", false
		}
		switch string(name) {
		case "id", "object", "model", "system_fingerprint", "service_tier", "obfuscation", "provider":
			_, ok = s.text()
		case "created":
			ok = s.number()
		case "usage":
			ok = s.null()
		case "choices":
			content, ok = s.choices()
			ok = ok && !seen
			seen = true
		default:
			return "", false
		}
		if !ok {
			return "", false
		}
	}
	return content, s.token('}') && len(s.rest) == 0 && seen
}

// scan is the JSON that is left to read. Each method skips the white space behind what it takes, and reports
// whether it was there.
type scan struct{ rest []byte }

func (s *scan) skip(n int) {
	s.rest = s.rest[n:]
	for len(s.rest) > 0 && (s.rest[0] == ' ' || s.rest[0] == '\n' || s.rest[0] == '\t' || s.rest[0] == '\r') {
		s.rest = s.rest[1:]
	}
}

func (s *scan) token(c byte) bool {
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.skip(1)
	return true
}

var nothing = []byte("null")

func (s *scan) null() bool {
	if !bytes.HasPrefix(s.rest, nothing) {
		return false
	}
	s.skip(len(nothing))
	return true
}

// number takes a short whole number without sign.
func (s *scan) number() bool {
	n := 0
	for n < len(s.rest) && s.rest[n] >= '0' && s.rest[n] <= '9' {
		n++
	}
	if n == 0 || n > 15 || n > 1 && s.rest[0] == '0' {
		return false
	}
	s.skip(n)
	return true
}

// text takes a string without escapes. It points into the data.
func (s *scan) text() ([]byte, bool) {
	if len(s.rest) == 0 || s.rest[0] != '"' {
		return nil, false
	}
	for i, c := range s.rest[1:] {
		switch {
		case c == '"':
			t := s.rest[1 : 1+i]
			s.skip(i + 2)
			return t, true
		case c == '\\' || c < ' ':
			return nil, false
		}
	}
	return nil, false
}

func (s *scan) key() ([]byte, bool) {
	name, ok := s.text()
	return name, ok && s.token(':')
}

func (s *scan) choices() (content string, ok bool) {
	if !s.token('[') || !s.token('{') {
		return "", false
	}
	seen := false
	for more := true; more; more = s.token(',') {
		name, ok := s.key()
		if !ok {
			return "", false
		}
		switch string(name) {
		case "index":
			ok = s.number()
		case "finish_reason", "native_finish_reason", "logprobs":
			ok = s.null()
		case "delta":
			content, ok = s.delta()
			ok = ok && !seen
			seen = true
		default:
			return "", false
		}
		if !ok {
			return "", false
		}
	}
	return content, s.token('}') && s.token(']') && seen
}

func (s *scan) delta() (content string, ok bool) {
	if !s.token('{') {
		return "", false
	}
	seen := false
	for more := true; more; more = s.token(',') {
		name, ok := s.key()
		if !ok {
			return "", false
		}
		switch string(name) {
		case "role":
			_, ok = s.text()
		case "content":
			var b []byte
			b, ok = s.text()
			ok = ok && !seen && utf8.Valid(b)
			content, seen = string(b), true
		case "refusal":
			ok = s.null()
		default:
			return "", false
		}
		if !ok {
			return "", false
		}
	}
	return content, s.token('}')
}
