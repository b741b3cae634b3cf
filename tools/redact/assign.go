package redact

import (
	"slices"
	"strings"
)

// secretNames are the words at the end of a name that promise a secret, in lower case and without
// separators.
var secretNames = []string{
	"apikey", "apitoken", "token", "secret", "password", "passwd", "passphrase", "credential", "credentials",
	"privatekey", "secretkey", "accesskey", "accesskeyid", "authkey", "authorization", "secretkeybase", "pwd",
}

// passwordNames are those whose value is a secret however plain it looks.
var passwordNames = []string{"password", "passwd", "passphrase", "pwd"}

// queryNames count in the query of a URL only.
var queryNames = []string{"sig", "signature", "jwt", "xamzsignature", "xamzsecuritytoken", "xgoogsignature", "key", "code"}

// plainValues are words that name a secret, its type or its absence.
var plainValues = []string{
	"", "string", "str", "int", "integer", "number", "bool", "boolean", "bytes", "any", "object", "none", "null", "nil",
	"undefined", "true", "false", "yes", "no", "optional", "required", "self", "this", "secret", "token", "password", "passwd",
	"changeme", "redacted", "example", "placeholder", "default", "empty", "bearer", "basic", "hidden", "masked", "...",
}

const (
	// maxName is how far back a name is looked for, in bytes.
	maxName = 64
	// maxLook is how much of a value is looked at to judge it, in bytes.
	maxLook = 256
)

// assignment hides the value behind a "=" or ":" at i when the name before it promises a secret. It returns
// i when there is nothing to hide.
func (sc *scanner) assignment(i int) int {
	s := sc.s
	if i+1 >= len(s) || s[i+1] == '=' || s[i+1] == s[i] || i > 0 && strings.IndexByte("=!<>+", s[i-1]) >= 0 {
		return i // a comparison, a scope operator
	}
	name, quotedName, start := nameBefore(s, i)
	if name == "" {
		return i
	}
	inQuery := s[i] == '=' && start > 0 && (s[start-1] == '?' || s[start-1] == '&')
	kind := secretKind(name, inQuery)
	if kind == notSecret {
		return i
	}
	from, quote := valueStart(s, i+1)
	if from >= len(s) {
		return i
	}
	if kind == isHeader {
		from = behindScheme(s, from)
	}
	to := valueEnd(s, from)
	if quote != 0 {
		to = quoteEnd(s, from, quote)
	}
	v := s[from:min(to, from+maxLook)]
	called := quote == 0 && to < len(s) && strings.IndexByte("([{", s[to]) >= 0
	if called || isMasked(v) || isReference(v) || slices.Contains(plainValues, strings.ToLower(v)) {
		return i
	}
	if !convincing(v, name, kind, quote != 0, quotedName, inQuery) {
		return i
	}
	return sc.maskRange(from, to)
}

// kinds of name.
type nameKind int

const (
	notSecret nameKind = iota
	isSecret
	isPassword
	isHeader
	isKey // an environment variable that ends in _KEY
)

// secretKind judges a name.
func secretKind(name string, inQuery bool) nameKind {
	flat := flatten(name)
	flat = strings.TrimRight(flat, "0123456789")
	if inQuery && slices.Contains(queryNames, flat) {
		return isKey
	}
	for _, w := range secretNames {
		if !strings.HasSuffix(flat, w) || !wholeWord(name, w) {
			continue
		}
		switch {
		case w == "authorization":
			return isHeader
		case slices.Contains(passwordNames, w):
			return isPassword
		}
		return isSecret
	}
	if upper := name == strings.ToUpper(name); upper && strings.HasSuffix(name, "_KEY") &&
		!strings.HasSuffix(name, "PUBLIC_KEY") && !strings.HasSuffix(name, "PRIMARY_KEY") && !strings.HasSuffix(name, "FOREIGN_KEY") {
		return isKey
	}
	return notSecret
}

// flatten drops separators and case.
func flatten(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '_' || r == '-' || r == '.':
			return -1
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return r
	}, name)
}

// wholeWord reports whether the secret word at the end of a name begins a word of it: api_token, apiToken,
// TOKEN, but not "mytoken" glued to other letters of the same case, except after "api", "auth" and the like,
// which secretNames spells out.
func wholeWord(name, word string) bool {
	name = strings.TrimRight(name, "0123456789_-.")
	// Walk back over the letters of the word.
	i := len(name)
	for n := len(word); n > 0 && i > 0; {
		i--
		if c := name[i]; c != '_' && c != '-' && c != '.' {
			n--
		}
	}
	if i == 0 {
		return true
	}
	before, first := name[i-1], name[i]
	lower := 'a' <= before && before <= 'z' || '0' <= before && before <= '9'
	return !isAlnum(before) || lower && 'A' <= first && first <= 'Z' ||
		strings.EqualFold(name[:i], "auth") || strings.EqualFold(name[:i], "access")
}

// convincing decides whether a value is a secret rather than code or prose.
func convincing(v, name string, kind nameKind, quoted, quotedName, inQuery bool) bool {
	upper := name == strings.ToUpper(name)
	switch {
	case strings.ContainsAny(v, " \t\n"):
		return kind == isPassword && quoted && quotedName && len(v) <= 64 // "password": "correct horse"
	case kind == isHeader:
		return len(v) >= 8 && looksRandom(v)
	case kind == isKey:
		return len(v) >= 16 && looksRandom(v)
	case inQuery:
		return true
	case quotedName && quoted:
		return kind == isPassword || len(v) >= 6
	case upper:
		return quoted || !isPath(v)
	case kind == isPassword:
		return len(v) >= 6 && hasDigit(v) && (quoted || !strings.ContainsAny(v, "."))
	}
	return len(v) >= 8 && hasDigit(v) && (quoted || !isPath(v)) &&
		!strings.Contains(flatten(v), "token") && !strings.Contains(flatten(v), "secret")
}

// isReference reports whether a value only points to a secret: a variable, a template, a call, a placeholder.
func isReference(v string) bool {
	lower := strings.ToLower(v)
	return strings.HasPrefix(v, "$") || strings.HasPrefix(v, "<") || strings.HasPrefix(v, "{") || strings.HasPrefix(v, "%") ||
		strings.HasPrefix(v, "[") || strings.HasPrefix(v, "*") || strings.HasPrefix(v, "(") || strings.HasPrefix(v, "@") ||
		strings.HasPrefix(v, "/") || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "~/") || // a file that holds it
		strings.HasPrefix(lower, "your") || strings.HasPrefix(lower, "my-") || strings.HasPrefix(lower, "my_") ||
		strings.HasPrefix(lower, "xxx") || strings.HasPrefix(lower, "...") || strings.HasPrefix(lower, "…") ||
		strings.HasPrefix(lower, "os.") || strings.HasPrefix(lower, "process.env") || strings.HasPrefix(lower, "env.") ||
		strings.HasPrefix(lower, "vault:") || strings.HasPrefix(lower, "op://")
}

// isPath reports whether a value is a name in a program: parts of letters joined by dots.
func isPath(v string) bool {
	if !strings.Contains(v, ".") {
		return false
	}
	for part := range strings.SplitSeq(v, ".") {
		if part == "" || '0' <= part[0] && part[0] <= '9' {
			return false
		}
		for j := range len(part) {
			if c := part[j]; !isAlnum(c) && c != '_' {
				return false
			}
		}
	}
	return true
}

func hasDigit(v string) bool { return strings.ContainsAny(v, "0123456789") }

// looksRandom reports whether a value has digits, or both cases inside one word.
func looksRandom(v string) bool {
	if hasDigit(v) {
		return true
	}
	lower, upper := 0, 0
	for i := range len(v) {
		switch c := v[i]; {
		case 'a' <= c && c <= 'z':
			lower++
		case 'A' <= c && c <= 'Z':
			upper++
		}
	}
	return lower > 0 && upper > 2
}

// nameBefore returns the name before the "=" or ":" at i, whether it is in quotes, and where it begins.
// Quotes may be escaped, as in JSON inside JSON.
func nameBefore(s string, i int) (name string, quoted bool, start int) {
	end := i
	if end > 0 && s[end-1] == ':' { // name := value
		end--
	}
	for end > 0 && i-end < 4 && (s[end-1] == ' ' || s[end-1] == '\t') {
		end--
	}
	if end > 0 && strings.IndexByte("\"'`", s[end-1]) >= 0 {
		quoted = true
		end--
		for end > 0 && s[end-1] == '\\' {
			end--
		}
	}
	start = end
	for start > 0 && end-start <= maxName && (isWord(s[start-1]) || s[start-1] == '.') {
		start--
	}
	if end-start > maxName {
		return "", quoted, start
	}
	// A letter behind an escape ("\nTOKEN=") belongs to the escape.
	if start > 0 && s[start-1] == '\\' && start < end {
		start++
	}
	name = strings.TrimLeft(s[start:end], "-.0123456789")
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	return name, quoted, start
}

// valueStart skips blanks and an opening quote, which may be escaped. quote is 0 without one.
func valueStart(s string, i int) (from int, quote byte) {
	for n := 0; i < len(s) && n < 4 && (s[i] == ' ' || s[i] == '\t'); n++ {
		i++
	}
	j := i
	for j < len(s) && j-i < 4 && s[j] == '\\' {
		j++
	}
	if j < len(s) && strings.IndexByte("\"'`", s[j]) >= 0 {
		return j + 1, s[j]
	}
	return i, 0
}

// behindScheme skips the scheme of an Authorization header.
func behindScheme(s string, from int) int {
	const longest = 10
	word, _, ok := strings.Cut(s[from:min(len(s), from+longest)], " ")
	if ok && slices.Contains([]string{"bearer", "basic", "token", "bot", "apikey", "digest"}, strings.ToLower(word)) {
		return from + len(word) + 1
	}
	return from
}

// valueEnd returns where an unquoted value ends.
func valueEnd(s string, from int) int {
	n := strings.IndexAny(s[from:min(len(s), from+maxLook)], " \t\r\n\"'`\\,;&<>()[]{}|#")
	if n >= 0 {
		return from + n
	}
	end := min(len(s), from+maxLook)
	for end < len(s) && strings.IndexByte(" \t\r\n\"'`\\,;&<>()[]{}|#", s[end]) < 0 {
		end++
	}
	return end
}

// quoteEnd returns where a quoted value ends: at its quote, at the backslash that escapes it, or at the end
// of the line.
func quoteEnd(s string, from int, quote byte) int {
	for i := from; i < len(s); i++ {
		if s[i] == quote || s[i] == '\n' {
			for i > from && s[i-1] == '\\' {
				i--
			}
			return i
		}
	}
	return len(s)
}
