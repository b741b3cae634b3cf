// Package redact takes secrets out of text before it reaches a log, a model or a chat: tokens of known
// services, values assigned to names that promise a secret, authorization headers, credentials in URLs,
// private key blocks, and the literal secrets it was given.
//
// It promises linear time, that redacting twice changes nothing more, and to leave ordinary prose and code
// alone. It is a net below other care, not a proof: a secret that looks like a word passes. It knows
// nothing of tools, sessions or platforms.
package redact

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// minLiteral is the shortest literal secret that is looked for, in bytes: a shorter one would hit
	// ordinary words.
	minLiteral = 6
	// minPartial is the shortest secret of which a part is shown, in characters.
	minPartial = 18
	// keepHead and keepTail are how many characters of a long secret stay, so that people can tell which
	// one it was.
	keepHead, keepTail = 6, 4
	// masked replaces a secret of which nothing is shown, ellipsis the middle of the others.
	masked   = "***"
	ellipsis = "..."
	// keyBlock replaces a private key.
	keyBlock = "[private key redacted]"
)

// Redactor takes secrets out of text. Safe for concurrent use; it never changes.
type Redactor struct {
	literals *strings.Replacer // nil: none
}

// New returns a Redactor that also knows literal secrets, such as the profile's own keys. Literals shorter than
// 6 bytes are ignored; each is also found in the forms it takes inside JSON and URLs.
func New(literals ...string) *Redactor {
	forms := map[string]string{}
	for _, l := range literals {
		l = strings.TrimSpace(l)
		if len(l) < minLiteral {
			continue
		}
		m := mask(l)
		forms[l] = m
		forms[url.QueryEscape(l)] = m
		forms[url.PathEscape(l)] = m
		if text, err := json.Marshal(l); err == nil {
			forms[string(text[1:len(text)-1])] = m
		}
	}
	if len(forms) == 0 {
		return &Redactor{}
	}
	list := make([]string, 0, len(forms))
	for l := range forms {
		list = append(list, l)
	}
	// The longest first: a secret that contains another is replaced as a whole.
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, l := range list {
		pairs = append(pairs, l, forms[l])
	}
	return &Redactor{literals: strings.NewReplacer(pairs...)}
}

// Known returns a redactor of the literal secrets alone, which leaves what merely looks like a secret.
func (r *Redactor) Known() Literals { return Literals{r} }

// Literals takes out the secrets that a Redactor was given, and nothing else.
type Literals struct{ r *Redactor }

// String returns s without the literal secrets.
func (l Literals) String(s string) string {
	if l.r == nil || l.r.literals == nil {
		return s
	}
	return l.r.literals.Replace(s)
}

// String returns s without the secrets it finds. A text without any comes back as it is. A nil Redactor
// knows no literals.
func (r *Redactor) String(s string) string {
	if r != nil && r.literals != nil {
		s = r.literals.Replace(s)
	}
	// What remains around a mask can look like another secret; hiding it too is safer, and then a second pass
	// changes nothing.
	for range maxPasses {
		sc := scanner{s: s}
		hidden := sc.run()
		if hidden == s {
			break
		}
		s = hidden
	}
	return s
}

// maxPasses bounds how often a text is read. The last pass finds nothing; only fuzzing has found texts that need a third.
const maxPasses = 5

// mask hides a secret.
func mask(secret string) string {
	if utf8.RuneCountInString(secret) < minPartial {
		return masked
	}
	return head(secret, keepHead) + ellipsis + tail(secret, keepTail)
}

// isMasked reports whether a value is what mask returns.
func isMasked(v string) bool {
	if v == masked {
		return true
	}
	i := strings.Index(v, ellipsis)
	return i >= 0 && utf8.RuneCountInString(v) == keepHead+len(ellipsis)+keepTail
}

func head(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func tail(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}

// scanner goes through a text once, from left to right. Every look ahead or back is bounded, or its
// result is kept, or what it has seen is consumed; that makes it linear.
type scanner struct {
	s    string
	out  strings.Builder
	done int // s[:done] is in out
	// runEnd is the end of the run of base64url characters that was measured last, valid before it.
	runStart, runEnd int
	keyless          bool // no END line of a private key is ahead
	scheme           int  // where the last "scheme://" ended
}

func (sc *scanner) run() string {
	for i := 0; i < len(sc.s); {
		next := sc.at(i)
		if next <= i {
			next = i + 1
		}
		i = next
	}
	if sc.done == 0 {
		return sc.s
	}
	sc.out.WriteString(sc.s[sc.done:])
	return sc.out.String()
}

// at looks for a secret at i and returns where to go on.
func (sc *scanner) at(i int) int {
	switch c := sc.s[i]; c {
	case '=', ':':
		if next := sc.assignment(i); next > i {
			return next
		}
		if c == ':' {
			if next := sc.botToken(i); next > i {
				return next
			}
			return sc.userinfo(i)
		}
	case '-':
		return sc.privateKey(i)
	default:
		if !starts[c] || i > 0 && isAlnum(sc.s[i-1]) {
			return i
		}
		if c == 'B' || c == 'b' {
			if next := sc.bearer(i); next > i {
				return next
			}
		}
		return sc.token(i)
	}
	return i
}

// replace writes text in place of s[from:to].
func (sc *scanner) replace(from, to int, text string) int {
	sc.out.WriteString(sc.s[sc.done:from])
	sc.out.WriteString(text)
	sc.done = to
	return to
}

// maskRange hides s[from:to].
func (sc *scanner) maskRange(from, to int) int {
	return sc.replace(from, to, mask(sc.s[from:to]))
}

// privateKey hides a PEM block of a private key. Without its END line, as in a cut text, all lines that
// look like base64 go.
func (sc *scanner) privateKey(i int) int {
	const begin, dashes, maxLabel = "-----BEGIN ", "-----", 60
	if !strings.HasPrefix(sc.s[i:], begin) {
		return i
	}
	rest := sc.s[i+len(begin):]
	label, _, ok := strings.Cut(rest[:min(len(rest), maxLabel)], dashes)
	if !ok || !strings.HasSuffix(label, "PRIVATE KEY") && !strings.HasSuffix(label, "PRIVATE KEY BLOCK") {
		return i
	}
	body := i + len(begin) + len(label) + len(dashes)
	if !sc.keyless {
		end := "-----END " + label + dashes
		if at := strings.Index(sc.s[body:], end); at >= 0 {
			return sc.replace(i, body+at+len(end), keyBlock)
		}
		sc.keyless = true
	}
	end := body
	for end < len(sc.s) && (isBase64(sc.s[end]) || strings.IndexByte("\r\n\\ ", sc.s[end]) >= 0) {
		end++
	}
	return sc.replace(i, end, keyBlock)
}

// userinfo hides the password of scheme://user:password@host. i is at the colon behind the user.
func (sc *scanner) userinfo(i int) int {
	const window = 256
	if strings.HasPrefix(sc.s[i:], "://") && i > 0 && isAlnum(sc.s[i-1]) {
		sc.scheme = i + 3
		return i
	}
	if sc.scheme == 0 || i-sc.scheme > window || strings.ContainsAny(sc.s[sc.scheme:i], "/?#@ \t\n\"'<>\\") {
		return i
	}
	after := sc.s[i+1 : min(len(sc.s), i+1+window)]
	at := strings.IndexAny(after, "@/?# \t\n\"'<>\\")
	if at <= 0 || after[at] != '@' {
		return i
	}
	password := after[:at]
	if isMasked(password) || isReference(password) {
		return i
	}
	return sc.maskRange(i+1, i+1+at)
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func isWord(c byte) bool { return isAlnum(c) || c == '_' || c == '-' }

func isBase64(c byte) bool { return isAlnum(c) || c == '+' || c == '/' || c == '=' }
