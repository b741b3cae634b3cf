package sqlite

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The bounds of a search text: more than a person types, little enough that no query is slow to build.
const (
	maxQueryRunes = 2000
	maxTerms      = 32
)

// term is one word or phrase of a search.
type term struct {
	text   string
	prefix bool
}

// clause is one alternative of a search: all of must, none of not.
type clause struct {
	must, not []term
}

// parseQuery reads the search language: words that must all match, "phrases", OR, NOT, -word and prefix*.
// Whatever is no such thing is text. A NOT needs something beside it to take from; an alternative of
// exclusions alone finds nothing.
func parseQuery(text string) []clause {
	var clauses []clause
	var now clause
	flush := func() {
		if len(now.must) > 0 {
			clauses = append(clauses, now)
		}
		now = clause{}
	}
	terms, negate := 0, false
	for _, tok := range lex(text) {
		switch {
		case tok.operator == "OR":
			flush()
			negate = false
			continue
		case tok.operator == "NOT":
			negate = true
			continue
		case tok.operator == "AND":
			continue
		case terms == maxTerms:
			continue
		}
		terms++
		if negate || tok.minus {
			now.not = append(now.not, tok.term)
		} else {
			now.must = append(now.must, tok.term)
		}
		negate = false
	}
	flush()
	return clauses
}

// token is one piece of a search text: an operator or a term.
type token struct {
	operator string
	minus    bool
	term     term
}

// lex cuts a search text into tokens. Empty terms are left out.
func lex(text string) []token {
	var tokens []token
	rest := clean(text)
	for {
		rest = strings.TrimLeft(rest, " ")
		if rest == "" {
			return tokens
		}
		var tok token
		if len(rest) > 1 && rest[0] == '-' && rest[1] != ' ' && rest[1] != '-' {
			tok.minus, rest = true, rest[1:]
		}
		if body, ok := strings.CutPrefix(rest, `"`); ok {
			tok.term.text, rest, _ = strings.Cut(body, `"`) // an open quote runs to the end
			if after, ok := strings.CutPrefix(rest, "*"); ok {
				tok.term.prefix, rest = true, after
			}
		} else {
			end := strings.IndexAny(rest, ` "`)
			if end < 0 {
				end = len(rest)
			}
			word := rest[:end]
			rest = rest[end:]
			if word == "OR" || word == "NOT" || word == "AND" {
				tokens = append(tokens, token{operator: word})
				continue
			}
			word = strings.Trim(word, "()")
			bare := strings.TrimRight(word, "*")
			tok.term = term{text: bare, prefix: bare != word}
		}
		if tok.term.text = strings.TrimSpace(tok.term.text); tok.term.text != "" {
			tokens = append(tokens, tok)
		}
	}
}

// clean bounds a text and makes every control character and kind of space a plain space.
func clean(text string) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n++; n > maxQueryRunes {
			break
		}
		if unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String()
}

// wordQuery returns the FTS5 expression over words, "" when the search has no words.
func wordQuery(clauses []clause) string {
	var alternatives []string
	for _, c := range clauses {
		must := quoteAll(c.must, hasWord, true)
		if len(must) == 0 {
			continue
		}
		expr := "(" + strings.Join(must, " AND ") + ")"
		if not := quoteAll(c.not, hasWord, true); len(not) > 0 {
			expr = "(" + expr + " NOT (" + strings.Join(not, " OR ") + "))"
		}
		alternatives = append(alternatives, expr)
	}
	return strings.Join(alternatives, " OR ")
}

// gramQuery returns the FTS5 expression over trigrams for the terms that are long enough, "" for none. The
// others are left to LIKE.
func gramQuery(c clause) string {
	return strings.Join(quoteAll(c.must, longEnough, false), " AND ")
}

// quoteAll returns the FTS5 strings of the terms that pass.
func quoteAll(terms []term, pass func(term) bool, prefixes bool) []string {
	var out []string
	for _, t := range terms {
		if !pass(t) {
			continue
		}
		q := `"` + strings.ReplaceAll(t.text, `"`, `""`) + `"`
		if t.prefix && prefixes {
			q += "*"
		}
		out = append(out, q)
	}
	return out
}

// hasWord reports whether unicode61 finds a token in a term: letters, numbers, private use.
func hasWord(t term) bool {
	return strings.ContainsFunc(t.text, func(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.Co) })
}

// longEnough reports whether a term has the three characters that a trigram takes.
func longEnough(t term) bool { return utf8.RuneCountInString(t.text) >= 3 }

// unspaced reports whether the search has text of a script that is written without spaces, in which
// unicode61 sees whole sentences as one word.
func unspaced(clauses []clause) bool {
	for _, c := range clauses {
		for _, t := range c.must {
			if strings.ContainsFunc(t.text, func(r rune) bool {
				return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo,
					unicode.Yi, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
			}) {
				return true
			}
		}
	}
	return false
}

// likePattern returns the LIKE pattern, with "\" as escape, for text that contains the term.
func likePattern(t term) string { return "%" + likeEscape.Replace(t.text) + "%" }

var likeEscape = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)
