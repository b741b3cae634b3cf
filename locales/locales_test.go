package locales

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/text/language"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func catalogs(t testing.TB, o Options) *Catalogs {
	t.Helper()
	c, err := New(o)
	require.NoError(t, err)
	return c
}

var forms = []string{"zero", "one", "two", "few", "many", "other"}

// base takes a plural form off a key. A key is plural when the catalog has its .other form.
func base(texts map[string]string, key string) (string, string) {
	i := strings.LastIndexByte(key, '.')
	if i > 0 && slices.Contains(forms, key[i+1:]) {
		if _, ok := texts[key[:i]+".other"]; ok {
			return key[:i], key[i+1:]
		}
	}
	return key, ""
}

var placeholder = regexp.MustCompile(`\{([^{}]*)\}`)

func placeholders(text string) []string {
	out := placeholder.FindAllString(strings.ReplaceAll(strings.ReplaceAll(text, "{{", ""), "}}", ""), -1)
	slices.Sort(out)
	return slices.Compact(out)
}

// formsOf are the plural forms that a language really uses for whole numbers.
func formsOf(p *Printer) []string {
	seen := map[string]bool{}
	for n := range 1000 {
		seen[p.form(n)] = true
	}
	seen[p.form(1_000_000)] = true
	return slices.Sorted(maps.Keys(seen))
}

// Every catalog has the keys of English, with the plural forms of its own language, and the same placeholders.
func TestCatalogs_Parity(t *testing.T) {
	c := catalogs(t, Options{})
	require.Contains(t, c.Languages(), "en")
	require.Contains(t, c.Languages(), "de")
	en, err := readBundled("en")
	require.NoError(t, err)
	for _, lang := range c.Languages() {
		t.Run(lang, func(t *testing.T) {
			texts, err := readBundled(lang)
			require.NoError(t, err)
			want := formsOf(c.Printer(lang))
			have := map[string][]string{}
			for key := range texts {
				b, form := base(texts, key)
				have[b] = append(have[b], form)
			}
			for key, text := range en {
				b, form := base(en, key)
				got, ok := have[b]
				if !ok {
					t.Errorf("%s lacks %s", lang, b)
					continue
				}
				if form != "" {
					slices.Sort(got)
					require.Equal(t, want, got, "plural forms of %s", b)
				}
				for _, f := range got {
					k := b
					if f != "" {
						k += "." + f
					}
					ph, src := placeholders(texts[k]), placeholders(text)
					if f != "" { // a form may do without the number itself: "one message"
						ph, src = without(ph), without(src)
					}
					require.Equal(t, src, ph, "placeholders of %s", k)
				}
			}
			enBases := map[string]bool{}
			for key := range en {
				b, _ := base(en, key)
				enBases[b] = true
			}
			for b := range have {
				require.True(t, enBases[b], "%s has %s, English does not", lang, b)
			}
			for k, v := range texts {
				require.NotEmpty(t, strings.TrimSpace(v), k)
				require.Regexp(t, `^[a-z_]+(\.[a-z_]+)+$`, k)
			}
		})
	}
}

func without(ph []string) []string {
	out := []string{}
	for _, s := range ph {
		if s != "{n}" && s != "{n:,}" {
			out = append(out, s)
		}
	}
	return out
}

// The quick reader of bundled catalogs and the YAML library agree.
func TestCatalogs_AreYAML(t *testing.T) {
	for _, lang := range catalogs(t, Options{}).Languages() {
		quick, err := readBundled(lang)
		require.NoError(t, err)
		data, err := bundled.ReadFile("catalogs/" + lang + ".yaml")
		require.NoError(t, err)
		slow, err := parse(data)
		require.NoError(t, err)
		require.Equal(t, slow, quick)
	}
	for _, bad := range []string{"a", "a: b", "a: 'b'", "a: \"b\"\na: \"c\"", "a: \"b", "a:"} {
		_, err := parseLines(bad)
		require.Error(t, err, bad)
	}
}

// Every text can be filled in with its own placeholders: none is malformed.
func TestCatalogs_EveryTextFills(t *testing.T) {
	c := catalogs(t, Options{})
	for _, lang := range c.Languages() {
		p := c.Printer(lang)
		texts, err := readBundled(lang)
		require.NoError(t, err)
		for key, text := range texts {
			var args []Arg
			for _, ph := range placeholders(text) {
				name, format, _ := strings.Cut(strings.Trim(ph, "{}"), ":")
				if format == "," || name == "n" {
					args = append(args, Int(name, 12345))
				} else {
					args = append(args, Str(name, "x"))
				}
			}
			_, ok := p.fill(text, args)
			require.True(t, ok, "%s: %s: %q", lang, key, text)
		}
	}
}

// use is one place in the code that asks for a text.
type use struct {
	key    string
	plural bool
	args   []string // names of the arguments; nil when they can't be told from the source
	where  string
}

// uses finds what the project's code asks for, in packages that import this one: calls of askers with a key as a literal followed by
// arguments, and any other literal that looks like a key. A literal that ends in "." is the beginning of several.
func uses(t *testing.T, groups map[string]bool) (out []use, prefixes []string) {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	// Packages have short methods of their own in front of T and N.
	askers := map[string]bool{"T": false, "t": false, "say": false, "N": true, "n": true} // true: with plural forms
	importers := importers(t, root)
	isKey := regexp.MustCompile(`^[a-z_]+(\.[a-z_]+)*\.?$`)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		if !importers[filepath.Dir(path)] {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return nil // another test's business
		}
		key := func(e ast.Expr, any bool) string {
			lit, ok := e.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return ""
			}
			s, err := strconv.Unquote(lit.Value)
			group, _, dotted := strings.Cut(s, ".")
			if err != nil || !dotted || !groups[group] && !any || !isKey.MatchString(s) {
				return ""
			}
			return s
		}
		called := map[ast.Expr]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				plural, asks := askers[sel.Sel.Name]
				for i, arg := range n.Args {
					k := key(arg, true)
					if k == "" || strings.HasSuffix(k, ".") || !asks {
						continue
					}
					called[arg] = true
					rest := n.Args[i+1:]
					if plural && len(rest) > 0 {
						rest = rest[1:] // the count
					}
					out = append(out, use{key: k, plural: plural, args: argNames(rest), where: files.Position(n.Pos()).String()})
				}
			case *ast.BasicLit:
				if k := key(n, false); strings.HasSuffix(k, ".") {
					prefixes = append(prefixes, k)
				} else if k != "" && !called[n] {
					out = append(out, use{key: k, where: files.Position(n.Pos()).String()})
				}
			}
			return true
		})
		return nil
	})
	require.NoError(t, err)
	return out, prefixes
}

// importers are the directories of packages that import this one, and this one itself.
func importers(t *testing.T, root string) map[string]bool {
	t.Helper()
	out := map[string]bool{filepath.Join(root, "locales"): true}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), `"herald/locales"`) {
			out[filepath.Dir(path)] = true
		}
		return err
	})
	require.NoError(t, err)
	return out
}

// argNames returns the names given to Str, Int, Float and Dur; nil when an argument is something else.
func argNames(args []ast.Expr) []string {
	names := []string{}
	for _, a := range args {
		call, ok := a.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return nil
		}
		var made string
		switch f := call.Fun.(type) {
		case *ast.SelectorExpr:
			made = f.Sel.Name
		case *ast.Ident:
			made = f.Name
		}
		lit, ok := call.Args[0].(*ast.BasicLit)
		if !ok || !slices.Contains([]string{"Str", "Int", "Float", "Dur"}, made) {
			return nil
		}
		name, _ := strconv.Unquote(lit.Value)
		names = append(names, name)
	}
	return names
}

// Every text that the code asks for exists, and gets the arguments that it has placeholders for; and every text is
// asked for.
func TestCatalogs_EveryUsedKeyExists(t *testing.T) {
	en, err := readBundled("en")
	require.NoError(t, err)
	groups, bases := map[string]bool{}, map[string]bool{}
	for key := range en {
		group, _, _ := strings.Cut(key, ".")
		groups[group] = true
		b, _ := base(en, key)
		bases[b] = true
	}
	all, prefixes := uses(t, groups)
	used := map[string]bool{}
	for _, u := range all {
		used[u.key] = true
		key := u.key
		if u.plural {
			key += ".other"
		}
		if en[key] == "" && (u.plural || !bases[key]) {
			t.Errorf("%s: there is no text %s", u.where, key)
			continue
		}
		for _, ph := range placeholders(en[key]) {
			name, _, _ := strings.Cut(strings.Trim(ph, "{}"), ":")
			if u.args != nil && !slices.Contains(u.args, name) && !(u.plural && name == "n") {
				t.Errorf("%s: %s wants {%s}, and gets %v", u.where, key, name, u.args)
			}
		}
	}
	for b := range bases {
		if !used[b] && !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(b, p) }) {
			t.Errorf("no code uses %s: take it out of all catalogs, or say it", b)
		}
	}
}

func TestPrinter_T(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "en.yaml"), []byte(`
x.plain: "hello {name}"
x.number: "{n:,} and {n}"
x.float: "{f} {f:,}"
x.time: "{t}"
x.braces: "{{not {name}}}"
x.open: "oops {name"
x.close: "oops } {name}"
x.format: "{n:x}"
x.text_format: "{name:,}"
x.empty: "{}"
command.stop.done: "Halt."
`), 0o600))
	c := catalogs(t, Options{Overlay: dir, Problem: func(err error) { t.Error(err) }})
	p := c.Printer("en")
	args := []Arg{Str("name", "Anna {n}"), Int("n", 1234567), Float("f", 1234.5), Dur("t", 125*time.Second)}
	for key, want := range map[string]string{
		"x.plain":           "hello Anna {n}", // an argument is never a template
		"x.number":          "1,234,567 and 1234567",
		"x.float":           "1234.5 1,234.5",
		"x.time":            "2 minutes 5 seconds",
		"x.braces":          "{not Anna {n}}",
		"x.open":            "oops {name",
		"x.close":           "oops } {name}",
		"x.format":          "{n:x}",
		"x.text_format":     "{name:,}",
		"x.empty":           "{}",
		"x.none":            "x.none",
		"command.stop.done": "Halt.",
	} {
		require.Equal(t, want, p.T(key, args...), key)
	}
	require.Equal(t, "hello {name}", p.T("x.plain"), "an argument is missing: the raw text")
	require.False(t, p.Has("x.none"))
	require.True(t, p.Has("x.plain"))
}

func TestPrinter_Plurals(t *testing.T) {
	c := catalogs(t, Options{})
	en, de := c.Printer("en"), c.Printer("de")
	require.Equal(t, "1 minute", en.N("unit.minutes", 1))
	require.Equal(t, "0 minutes", en.N("unit.minutes", 0))
	require.Equal(t, "21 minutes", en.N("unit.minutes", 21))
	require.Equal(t, "1 Minute", de.N("unit.minutes", 1))
	require.Equal(t, "2 Minuten", de.N("unit.minutes", 2))
	require.Equal(t, "12.345 Nachrichten", de.N("session.messages", 12345))
	require.Equal(t, "no.such", en.N("no.such", 3))
	require.NotPanics(t, func() { en.N("unit.minutes", math.MinInt); en.N("unit.minutes", math.MaxInt) })

	// A language with more forms takes each; one that it lacks falls to "other".
	p := &Printer{all: c, own: &catalog{lang: "pl", tag: languageTag("pl"), texts: map[string]string{
		"m.one": "{n} wiadomość", "m.few": "{n} wiadomości", "m.many": "{n} wiadomości (many)", "m.other": "{n} inne", "o.other": "{n} o"}}}
	for n, want := range map[int]string{1: "1 wiadomość", 2: "2 wiadomości", 5: "5 wiadomości (many)", 22: "22 wiadomości"} {
		require.Equal(t, want, p.N("m", n))
	}
	require.Equal(t, "5 o", p.N("o", 5))
	require.Equal(t, "5 minutes", p.N("unit.minutes", 5), "a text the language lacks is English, with English forms")
	require.Equal(t, "1 minute", p.N("unit.minutes", 1))
}

func TestPrinter_FallsBackToEnglish(t *testing.T) {
	c := catalogs(t, Options{})
	p := c.Printer("de")
	delete(p.own.texts, "command.stop.done")
	require.Equal(t, "Stopped.", p.T("command.stop.done"))
	require.Equal(t, "Es läuft nichts.", p.T("command.stop.nothing"))
}

func TestPrinter_Duration(t *testing.T) {
	p := catalogs(t, Options{}).Printer("en")
	for d, want := range map[time.Duration]string{
		0: "0 seconds", 999 * time.Millisecond: "0 seconds", time.Second: "1 second", 59 * time.Second: "59 seconds",
		time.Minute: "1 minute", 61 * time.Second: "1 minute 1 second", 3600 * time.Second: "1 hour", 3601 * time.Second: "1 hour",
		125 * time.Minute: "2 hours 5 minutes", 49 * time.Hour: "2 days 1 hour", -2 * time.Second: "2 seconds",
	} {
		require.Equal(t, want, p.Duration(d), d)
	}
}

// A brace never makes a text fail in another way than to come back raw, and what is filled in is never read again.
func TestPrinter_FillIsTotal(t *testing.T) {
	p := catalogs(t, Options{}).Printer("en")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-z{}:, ]|\{a\}|\{n:,\}){0,20}`).Draw(t, "text")
		arg := rapid.String().Draw(t, "arg")
		out, ok := p.fill(text, []Arg{Str("a", arg), Int("n", 5)})
		if ok && !strings.Contains(text, "{a}") && strings.Contains(out, arg) && len(arg) > 8 {
			t.Fatalf("%q appeared from nowhere in %q", arg, out)
		}
		if want := strings.ReplaceAll(text, "{a}", arg); !strings.ContainsAny(strings.ReplaceAll(text, "{a}", ""), "{}") && (!ok || out != want) {
			t.Fatalf("%q filled to %q, %v; want %q", text, out, ok, want)
		}
	})
}

func TestResolve(t *testing.T) {
	for in, want := range map[string]string{
		"": "en", "en": "en", "EN-us": "en", "english": "en", "de": "de", "de-AT": "de", "de_CH.UTF-8": "de", "Deutsch": "de", " German ": "de",
		"zh-cn": "zh", "zh-SG": "zh", "zh-TW": "zh-hant", "zh_HK": "zh-hant", "zh-mo": "zh-hant", "zh-Hant-TW": "zh-hant", "jp": "ja", "日本語": "ja", "ua": "uk",
		"pt-br": "pt", "es-mx": "es", "fr-ca": "fr", "Français": "fr", "klingon": "en", "xx-yy": "en", "-": "en", "de@euro": "de",
	} {
		require.Equal(t, want, Resolve(in), in)
	}
}

func TestCatalogs_Choose(t *testing.T) {
	c := catalogs(t, Options{})
	require.Equal(t, "de", c.Choose("", "de", "en").Lang())
	require.Equal(t, "en", c.Choose("en", "de").Lang())
	require.Equal(t, "en", c.Choose().Lang())
	require.Equal(t, "en", c.Printer("ga").Lang(), "known, but no catalog yet")
}

func TestCatalogs_ReadOnlyWhatIsUsed(t *testing.T) {
	c := catalogs(t, Options{})
	require.Empty(t, c.Loaded())
	p := c.Printer("de")
	require.Equal(t, "Angehalten.", p.T("command.stop.done"))
	require.Equal(t, []string{"de"}, c.Loaded(), "a complete catalog does not need English")
}

func TestCatalogs_Overlay(t *testing.T) {
	dir := t.TempDir()
	var problems []error
	c := catalogs(t, Options{Overlay: dir, Problem: func(err error) { problems = append(problems, err) }})
	require.Equal(t, "Stopped.", c.Printer("en").T("command.stop.done"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "en.yaml"), []byte("command.stop.done: [not, a, text]"), 0o600))
	c.Reload()
	require.Equal(t, "Stopped.", c.Printer("en").T("command.stop.done"), "a broken overlay changes nothing")
	require.Len(t, problems, 1)
	require.ErrorContains(t, problems[0], filepath.Join(dir, "en.yaml"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "en.yaml"), []byte("command.stop.done: Halt."), 0o600))
	c.Reload()
	require.Equal(t, "Halt.", c.Printer("en").T("command.stop.done"))
	require.Equal(t, "Nothing is running.", c.Printer("en").T("command.stop.nothing"))
	require.Equal(t, "Angehalten.", c.Printer("de").T("command.stop.done"))
}

func FuzzOverlay(f *testing.F) {
	f.Add([]byte("a.b: c"))
	f.Add([]byte("a: &x [*x]"))
	f.Add([]byte("{unclosed"))
	c := catalogs(f, Options{})
	f.Fuzz(func(t *testing.T, data []byte) {
		texts, err := parse(data)
		if err != nil {
			return
		}
		p := &Printer{all: c, own: &catalog{lang: "en", tag: languageTag("en"), texts: texts}}
		for k := range texts {
			p.T(k, Str("a", "b"), Int("n", 3))
			p.N(k, 3)
		}
	})
}

func BenchmarkFirstText(b *testing.B) {
	for b.Loop() {
		c, _ := New(Options{})
		c.Printer("en").T("command.stop.done")
	}
}

func BenchmarkT(b *testing.B) {
	c, _ := New(Options{})
	p := c.Printer("de")
	b.ReportAllocs()
	for b.Loop() {
		p.T("command.compress.done", Int("before", 123456), Int("after", 2345))
	}
}

func languageTag(s string) language.Tag { return language.Make(s) }

// Every command that a text names is found, so that it can be written as it is typed elsewhere, and nothing else is.
func TestPrinter_Commands(t *testing.T) {
	c := catalogs(t, Options{})
	slash := regexp.MustCompile(`/[a-z{]`)
	found := 0
	for _, lang := range c.Languages() {
		p := c.Printer(lang).Commands("!")
		for key, text := range c.get(lang).texts {
			typed := p.typed(text)
			require.NotRegexp(t, slash, strings.ReplaceAll(typed, "://", ""), "%s %s", lang, key)
			found += strings.Count(typed, "!") - strings.Count(text, "!")
		}
	}
	require.Greater(t, found, 40)
	p := c.Printer("en").Commands("!")
	require.Equal(t, "I don't know !a/b /stop. !help lists the commands.", p.T("command.unknown", Str("name", "a/b /stop")), "arguments stay as they are")
	require.Equal(t, "!stop", p.Command("stop"))
	require.Equal(t, p, p.Commands("!"))
	require.Contains(t, p.N("restart.parked", 2), "!retry")
	require.Contains(t, p.Commands("").T("command.unknown", Str("name", "x")), "/help")
	require.Equal(t, "/stop", c.Printer("de").Command("stop"))
}
