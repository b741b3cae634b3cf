package locales

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/message"
	"golang.org/x/text/number"
)

// Arg fills a placeholder. Str, Int, Float and Dur make one.
type Arg struct {
	name string
	kind argKind
	text string
	n    int64
	f    float64
}

type argKind uint8

const (
	argText argKind = iota
	argInt
	argFloat
	argDuration
)

// Str is a text, put in as it is.
func Str(name, text string) Arg { return Arg{name: name, kind: argText, text: text} }

// Int is a whole number.
func Int[N ~int | ~int64 | ~int32](name string, n N) Arg {
	return Arg{name: name, kind: argInt, n: int64(n)}
}

// Float is a number; it is shown with at most two digits after the point.
func Float(name string, f float64) Arg { return Arg{name: name, kind: argFloat, f: f} }

// Dur is a length of time, shown in words: see Printer.Duration.
func Dur(name string, d time.Duration) Arg { return Arg{name: name, kind: argDuration, n: int64(d)} }

// Printer says texts in one language. It is safe for concurrent use.
type Printer struct {
	all    *Catalogs
	own    *catalog
	prefix string // of commands; empty is "/"

	once    sync.Once
	numbers *message.Printer
}

// Lang returns the catalog's name, such as "de".
func (p *Printer) Lang() string { return p.own.lang }

// Commands returns a printer whose texts write commands with another prefix than "/", as people must type them at a
// place: "!stop" in a Slack thread. Only the texts' own words change, never what fills their placeholders. An empty
// prefix is "/".
func (p *Printer) Commands(prefix string) *Printer {
	if prefix == "" {
		prefix = "/"
	}
	if prefix == p.Command("") {
		return p
	}
	return &Printer{all: p.all, own: p.own, prefix: prefix}
}

// Command returns how a command is written: the prefix and the name.
func (p *Printer) Command(name string) string {
	if p.prefix == "" {
		return "/" + name
	}
	return p.prefix + name
}

// commandWord is a command in a text: a slash at the beginning of a word.
var commandWord = regexp.MustCompile(`(^|[\s("“„«'])/([a-z{])`)

// typed writes the commands of a text with the printer's prefix.
func (p *Printer) typed(text string) string {
	if p.prefix == "" || p.prefix == "/" || !strings.Contains(text, "/") {
		return text
	}
	return commandWord.ReplaceAllString(text, "${1}"+strings.ReplaceAll(p.prefix, "$", "$$")+"${2}")
}

// T returns the text of a key with its placeholders filled in. A text whose placeholders don't fit the arguments is
// returned unfilled, and a key that no catalog has as it is.
func (p *Printer) T(key string, args ...Arg) string {
	text, ok := p.lookup(key)
	if !ok {
		return key
	}
	if out, ok := p.fill(text, args); ok {
		return out
	}
	return text
}

// N is T for a text with plural forms: it takes the form of key that the language has for n, which {n} shows.
func (p *Printer) N(key string, n int, args ...Arg) string {
	form := key + "." + p.form(n)
	if _, ok := p.own.texts[form]; !ok {
		if _, ok := p.own.texts[key+".other"]; ok {
			form = key + ".other"
		} else if p.own.lang != Source { // this language lacks the text: take another one's, and its forms
			return p.all.Printer(Source).Commands(p.prefix).N(key, n, args...)
		}
	}
	text, ok := p.lookup(form)
	if !ok {
		return key
	}
	all := append([]Arg{Int("n", n)}, args...)
	if out, ok := p.fill(text, all); ok {
		return out
	}
	return text
}

// Has reports whether the language, or English, has the key.
func (p *Printer) Has(key string) bool {
	_, ok := p.lookup(key)
	return ok
}

// Number returns n with the language's separators.
func (p *Printer) Number(n int64) string { return p.printer().Sprint(number.Decimal(n)) }

// Duration returns a length of time in words, its two largest units at most: "2 hours 5 minutes". Less than a second
// counts as none, and a negative one as its amount.
func (p *Printer) Duration(d time.Duration) string {
	s := int(d.Abs() / time.Second)
	units := [...]struct {
		key  string
		size int
	}{{"unit.days", 86400}, {"unit.hours", 3600}, {"unit.minutes", 60}, {"unit.seconds", 1}}
	for i, u := range units {
		if s < u.size && u.size > 1 {
			continue
		}
		first := p.N(u.key, s/u.size)
		if i+1 == len(units) {
			return first
		}
		next := units[i+1]
		rest := s % u.size / next.size
		if rest == 0 {
			return first
		}
		return p.T("unit.pair", Str("a", first), Str("b", p.N(next.key, rest)))
	}
	return ""
}

// form returns the CLDR plural form of n.
func (p *Printer) form(n int) string {
	if n = max(n, -n); n >= 20_000_000 || n < 0 {
		n = 10_000_000 + max(n, 0)%10_000_000 // as the rules allow; never 0 or 1 of a large number
	}
	switch plural.Cardinal.MatchPlural(p.own.tag, n, 0, 0, 0, 0) {
	case plural.Zero:
		return "zero"
	case plural.One:
		return "one"
	case plural.Two:
		return "two"
	case plural.Few:
		return "few"
	case plural.Many:
		return "many"
	}
	return "other"
}

// lookup finds a key's text: in the own language, then in English.
func (p *Printer) lookup(key string) (string, bool) {
	if text, ok := p.own.texts[key]; ok {
		return p.typed(text), true
	}
	if p.own.lang == Source {
		return "", false
	}
	text, ok := p.all.get(Source).texts[key]
	return p.typed(text), ok
}

func (p *Printer) printer() *message.Printer {
	p.once.Do(func() { p.numbers = message.NewPrinter(p.own.tag) })
	return p.numbers
}

// fill replaces the placeholders; ok is false when one is malformed or has no fitting argument.
func (p *Printer) fill(text string, args []Arg) (out string, ok bool) {
	if !strings.ContainsAny(text, "{}") {
		return text, true
	}
	var b strings.Builder
	for {
		i := strings.IndexAny(text, "{}")
		if i < 0 {
			b.WriteString(text)
			return b.String(), true
		}
		b.WriteString(text[:i])
		brace := text[i]
		text = text[i+1:]
		if text != "" && text[0] == brace { // {{ or }}
			b.WriteByte(brace)
			text = text[1:]
			continue
		}
		end := strings.IndexAny(text, "{}")
		if brace == '}' || end < 0 || text[end] == '{' {
			return "", false
		}
		name, format, _ := strings.Cut(text[:end], ":")
		value, ok := p.value(name, format, args)
		if !ok {
			return "", false
		}
		b.WriteString(value)
		text = text[end+1:]
	}
}

// value shows one argument.
func (p *Printer) value(name, format string, args []Arg) (string, bool) {
	for _, a := range args {
		if a.name != name {
			continue
		}
		switch {
		case format != "" && format != ",":
			return "", false
		case a.kind == argText:
			return a.text, format == ""
		case a.kind == argDuration:
			return p.Duration(time.Duration(a.n)), format == ""
		case a.kind == argFloat && format == ",":
			return p.printer().Sprint(number.Decimal(a.f, number.MaxFractionDigits(2))), true
		case a.kind == argFloat:
			return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(a.f, 'f', 2, 64), "0"), "."), true
		case format == ",":
			return p.Number(a.n), true
		}
		return strconv.FormatInt(a.n, 10), true
	}
	return "", false
}
