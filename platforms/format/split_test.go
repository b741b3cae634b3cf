package format

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"herald/platforms"
)

func TestRender_Property_EveryChunkKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc, traits := genDocument(t), genTraits(t)
		if err := checkChunks(Render(doc, traits), traits); err != nil {
			t.Fatalf("%+v\n%s\n%v", traits, doc, err)
		}
	})
}

func TestSplit_Property_Lossless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc, traits := genDocument(t), genTraits(t)
		if err := checkLossless(doc, traits); err != nil {
			t.Fatalf("%+v\n%s\n%v", traits, doc, err)
		}
	})
}

// Outside of lists, quotes and tables the chunks and the white space between them are the whole, to the byte.
func TestSplit_Property_ChunksAndBordersAreTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var blocks []string
		for range rapid.IntRange(1, 6).Draw(t, "blocks") {
			if rapid.Bool().Draw(t, "code") {
				lines := rapid.SliceOfN(rapid.SampledFrom([]string{"", "x := 1", "\tindented  twice", strings.Repeat("long ", 20)}), 1, 9).Draw(t, "lines")
				blocks = append(blocks, Fence("go", strings.Join(lines, "\n")+"\nend"))
				continue
			}
			blocks = append(blocks, genPhrase(t, 40)+".")
		}
		traits := genTraits(t)
		r := newRenderer(tidy(strings.Join(blocks, "\n\n")), traits)
		for _, ln := range r.doc.lines {
			if len(ln.leaf.path) > 0 {
				t.Skip("a list by chance")
			}
		}
		if r.budget == 0 {
			return
		}
		short := traits.Dialect != platforms.Plain && traits.Dialect != platforms.SignalStyles
		part := func(from, to pos) string {
			p := &pen{is: plainNotation{short: short}, doc: r.doc}
			p.span(from, to, false)
			return p.finish()
		}
		var all string
		for _, c := range r.split(0) {
			all += c.sep + part(c.from, c.to)
		}
		if whole := part(pos{}, r.doc.end()); strings.TrimSpace(all) != strings.TrimSpace(whole) {
			t.Fatalf("%+v\ngot  %q\nwant %q", traits, all, whole)
		}
	})
}

func TestSplit_Property_NeverInsideAGrapheme(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		soup := rapid.SliceOfN(rapid.SampledFrom([]string{
			"👩‍👩‍👧‍👦", "🇩🇪", "🇫", "e\u0301", "**", "\u0301", " ", " ", "x", "👍🏽", "\u200d", "日", "각", "\u1100", "\u1161", "`", "नि", "<",
		}), 1, 120).Draw(t, "soup")
		traits := genTraits(t)
		source := tidy("a" + strings.Join(soup, ""))
		r := newRenderer(source, traits)
		whole := shown(r.doc, pos{}, r.doc.end())
		all := ""
		for _, c := range r.split(0) {
			all += c.sep
			if err := checkBorder(whole, len(all), r.budget/2); err != nil {
				t.Fatalf("%+v %q: %v", traits, source, err)
			}
			all += shown(r.doc, c.from, c.to)
		}
		if all != whole {
			t.Fatalf("%+v\ngot  %q\nwant %q", traits, all, whole)
		}
	})
}

// The Markdown of a chunk shows what the chunk shows: read again, it has the same words.
func TestRender_Property_MarkdownOfAChunkShowsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc, traits := genDocument(t), genTraits(t)
		// Tables are shown in too many forms to be compared; TestSplit_TablesRepeatTheirHeader has them.
		doc = strings.ReplaceAll(doc, ":-:", "x")
		traits.Limit = max(traits.Limit, 300) // less would flatten the lists
		traits.Number = false
		r := newRenderer(tidy(doc), traits)
		for _, c := range r.split(0) {
			p := &pen{is: plainNotation{short: true}, doc: r.doc}
			p.span(c.from, c.to, c.head)
			want := letters(p.finish())
			if want == "" { // nothing but a part of an address
				continue
			}
			again := newRenderer(r.text(c, "").Markdown, platforms.TextTraits{Dialect: traits.Dialect})
			if got := letters(shown(again.doc, pos{}, again.doc.end())); got != want {
				t.Fatalf("%+v\nsource:\n%s\nchunk:\n%s\ngot  %q\nwant %q", traits, doc, r.text(c, "").Markdown, got, want)
			}
		}
	})
}

// letters is what s says, without white space, the markers of items (those around an item that began earlier
// are Markdown again) and the lines of tables, sorted, because wrapped cells are side by side.
func letters(s string) string {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune("•◦▪☐☑-|—:.0123456789", r) {
			return -1
		}
		return r
	}, strings.NewReplacer("[ ]", "", "[x]", "").Replace(squeezed(s)))
	runes := []rune(s)
	slices.Sort(runes)
	return string(runes)
}

// The work of splitting grows like the input: counted in bytes that were scanned or written, not in time.
func TestSplit_WorkIsLinear(t *testing.T) {
	inputs := map[string]func(n int) string{
		"words":     func(n int) string { return strings.Repeat("some words in a row ", n/20) },
		"one word":  func(n int) string { return strings.Repeat("x", n) },
		"cjk":       func(n int) string { return strings.Repeat("日本語のテキスト", n/24) },
		"lines":     func(n int) string { return strings.Repeat("a line of text\n", n/15) },
		"bold":      func(n int) string { return strings.Repeat("**b** *i* ", n/10) },
		"list":      func(n int) string { return strings.Repeat("- item\n  - inner\n", n/17) },
		"code":      func(n int) string { return "```go\n" + strings.Repeat("if x { y() }\n", n/13) + "```" },
		"code line": func(n int) string { return "```\n" + strings.Repeat("0123456789", n/10) + "\n```" },
		"blank":     func(n int) string { return "```\n" + strings.Repeat("\n", n) + "x\n```" },
		"table":     func(n int) string { return "| a | b |\n|---|---|\n" + strings.Repeat("| cell | cell |\n", n/16) },
		"quotes":    func(n int) string { return strings.Repeat("> quoted text\n>\n", n/17) },
		"combining": func(n int) string { return "a" + strings.Repeat("\u0301", n/2) },
		"links":     func(n int) string { return strings.Repeat("[a](https://example.org/b) ", n/27) },
		"entities":  func(n int) string { return strings.Repeat("&amp;<", n/6) },
	}
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			for _, traits := range real {
				traits.Limit = 500
				work := func(n int) int {
					r := newRenderer(tidy(input(n)), traits)
					chunks := r.split(0)
					require.NotEmpty(t, chunks)
					return r.work
				}
				const n = 1 << 13
				small, large := work(n), work(2*n)
				require.Lessf(t, float64(large), 2.3*float64(small)+float64(traits.Limit), "%s: work went from %d to %d", traits.Dialect, small, large)
				require.Lessf(t, large, 60*2*n, "%s: %d steps for %d bytes", traits.Dialect, large, 2*n)
			}
		})
	}
}

func TestSplit_PrefersBlocksThenLinesThenSentencesThenWords(t *testing.T) {
	long := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n/5)) }
	cases := []struct {
		name, source string
		limit        int
		want         []string
	}{
		{"all of it", "12345678901234567890", 20, []string{"12345678901234567890"}},
		{"blocks", long(60) + "\n\n" + long(60), 100, []string{long(60), long(60)}},
		{"lines", long(60) + "\n" + long(60), 100, []string{long(60), long(60)}},
		{"sentences", "This is the first sentence here. This is more", 40, []string{"This is the first sentence here.", "This is more"}},
		{"words", "aaaa bbbb cccc dddd eeee", 16, []string{"aaaa bbbb cccc", "dddd eeee"}},
		{"inside of a word", strings.Repeat("x", 40), 16, []string{strings.Repeat("x", 16), strings.Repeat("x", 16), strings.Repeat("x", 8)}},
		{"a title stays with its text", long(50) + "\n\n# Title\n\n" + long(40), 64, []string{long(50), "Title\n\n" + long(40)}},
		{"flags", strings.Repeat("🇩🇪", 10), 17, []string{strings.Repeat("🇩🇪", 8), strings.Repeat("🇩🇪", 2)}},
		{"flags with markup inside", strings.Repeat("🇩**🇪**", 10), 17, []string{strings.Repeat("🇩🇪", 8), strings.Repeat("🇩🇪", 2)}},
		{"accent on a space", "aaaaaaaa bbbbbb \u0301cccc", 16, []string{"aaaaaaaa", "bbbbbb \u0301cccc"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			texts := renderChecked(t, c.source, platforms.TextTraits{Dialect: platforms.Plain, Limit: c.limit})
			var got []string
			for _, text := range texts {
				got = append(got, text.Body)
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestSplit_LimitIsInclusiveInEachUnit(t *testing.T) {
	for _, unit := range []platforms.Unit{platforms.CodePoints, platforms.UTF16, platforms.Bytes} {
		text := strings.Repeat("é👍x", 20)
		n := Length(text, unit)
		traits := platforms.TextTraits{Dialect: platforms.Plain, Limit: n, Unit: unit, Number: true}
		require.Len(t, renderChecked(t, text, traits), 1)
		traits.Limit--
		require.Greater(t, len(renderChecked(t, text, traits)), 1)
	}
}

func TestSplit_FencesCloseAndReopenWithTheirLanguage(t *testing.T) {
	source := "Intro\n\n```go\n" + strings.Repeat("fmt.Println(\"hello\")\n", 30) + "```\n\nEnd"
	for _, d := range []platforms.Dialect{platforms.Markdown, platforms.DiscordMD, platforms.TeamsMD} {
		texts := renderChecked(t, source, platforms.TextTraits{Dialect: d, Limit: 200, CountMarkup: true, Number: true})
		require.Greater(t, len(texts), 3)
		for i, text := range texts[1 : len(texts)-1] {
			require.True(t, strings.HasPrefix(text.Body, "```go\nfmt."), "%d: %q", i, text.Body)
			require.True(t, strings.HasSuffix(text.Body, fmt.Sprintf("\n```\n(%d/%d)", i+2, len(texts))), "%d: %q", i, text.Body)
		}
	}
	texts := renderChecked(t, source, platforms.TextTraits{Dialect: platforms.TelegramHTML, Limit: 200})
	for _, text := range texts[1 : len(texts)-1] {
		require.True(t, strings.HasPrefix(text.Body, `<pre><code class="language-go">fmt.`), text.Body)
		require.True(t, strings.HasSuffix(text.Body, "</code></pre>"), text.Body)
	}
}

func TestSplit_TablesRepeatTheirHeader(t *testing.T) {
	source := "| Name | Number |\n|---|--:|\n"
	for i := range 60 {
		source += fmt.Sprintf("| name %d | %d |\n", i, i*i)
	}
	texts := renderChecked(t, source, platforms.TextTraits{Dialect: platforms.SlackMrkdwn, Limit: 300, CountMarkup: true})
	require.Greater(t, len(texts), 3)
	for _, text := range texts {
		require.True(t, strings.HasPrefix(text.Body, "```\nName    | Number\n--------|-------\nname "), text.Body)
		require.True(t, strings.HasPrefix(text.Markdown, "| Name | Number |\n| --- | ---: |\n| name "), text.Markdown)
	}
}

func TestSplit_ListsKeepTheirNesting(t *testing.T) {
	source := "- outer\n" + strings.Repeat("  - inner item with text\n", 12) + "- next"
	telegram := renderChecked(t, source, platforms.TextTraits{Dialect: platforms.TelegramHTML, Limit: 150})
	require.True(t, strings.HasPrefix(telegram[1].Body, "  ◦ inner"), telegram[1].Body)
	discord := renderChecked(t, source, platforms.TextTraits{Dialect: platforms.DiscordMD, Limit: 150, CountMarkup: true})
	require.True(t, strings.HasPrefix(discord[1].Body, "- - inner item with text\n  - inner"), discord[1].Body)
}

func TestSplit_NumbersStayInsideTheirReserve(t *testing.T) {
	texts := renderChecked(t, strings.Repeat("word ", 10000), platforms.TextTraits{Dialect: platforms.Plain, Limit: 40, Number: true})
	require.Greater(t, len(texts), 999)
	require.True(t, strings.HasSuffix(texts[0].Body, " (1)"), texts[0].Body)
	texts = renderChecked(t, strings.Repeat("word ", 100), platforms.TextTraits{Dialect: platforms.Plain, Limit: 40, Number: true})
	require.True(t, strings.HasSuffix(texts[0].Body, fmt.Sprintf(" (1/%d)", len(texts))), texts[0].Body)
	texts = renderChecked(t, strings.Repeat("word ", 100), platforms.TextTraits{Dialect: platforms.Plain, Limit: 20, Number: true})
	require.Equal(t, "word word word word", texts[0].Body)
}

func TestSplit_AGraphemeOverTheLimitIsCutBetweenCodePoints(t *testing.T) {
	texts := renderChecked(t, "a"+strings.Repeat("\u0301", 50)+" b", platforms.TextTraits{Dialect: platforms.Plain, Limit: 16})
	require.Equal(t, 4, len(texts))
	var all string
	for _, text := range texts {
		all += text.Body
	}
	require.Equal(t, "a"+strings.Repeat("\u0301", 50)+"b", squeezed(all))
}

// The message of the charter: 27,000 characters with emoji, bold over borders and code make four Signal
// messages that hold everything.
func TestSplit_Signal27000CharactersInFourMessages(t *testing.T) {
	var b strings.Builder
	for i := 0; b.Len() < 12500; i++ {
		fmt.Fprintf(&b, "Line %d has an emoji 👩‍👩‍👧 and **bold words that go on** for a while with `code %d`.\n", i, i)
	}
	b.WriteString("\n**")
	for i := 0; b.Len() < 21000; i++ {
		fmt.Fprintf(&b, "bold%d 🎉 ", i)
	}
	source := strings.TrimRight(b.String(), " ") + "**\n\n```go\n"
	for i := 0; len(source) < 33500; i++ {
		source += fmt.Sprintf("fmt.Println(%d, \"🚀\")\n", i)
	}
	source += "```\n"
	require.InDelta(t, 27000, Length(source, platforms.UTF16), 4000)

	traits := real[platforms.SignalStyles]
	texts := renderChecked(t, source, traits)
	require.Len(t, texts, 4)
	require.NoError(t, checkLossless(source, traits))

	whole := Render(source, platforms.TextTraits{Dialect: platforms.SignalStyles, Unit: platforms.UTF16})
	require.Len(t, whole, 1)
	var all string
	styled := 0
	for i, text := range texts {
		require.LessOrEqual(t, Length(text.Body, platforms.UTF16), 8000)
		suffix := fmt.Sprintf(" (%d/4)", i+1)
		require.True(t, strings.HasSuffix(text.Body, suffix))
		all += strings.TrimSuffix(text.Body, suffix)
		for _, s := range text.Styles {
			styled += s.Length
		}
	}
	require.Equal(t, squeezed(whole[0].Body), squeezed(all))
	want := 0
	for _, s := range whole[0].Styles {
		want += s.Length
	}
	require.InDelta(t, want, styled, 4, "only the white space at a border may lose its style")
}

func TestRender_IsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc, traits := genDocument(t), genTraits(t)
		first := fmt.Sprint(Render(doc, traits))
		if again := fmt.Sprint(Render(doc, traits)); again != first {
			t.Fatal("two runs differ")
		}
	})
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		unit  platforms.Unit
		want  string
	}{
		{"abc", 3, platforms.Bytes, "abc"}, {"abc", 2, platforms.CodePoints, "ab"}, {"abc", 0, platforms.UTF16, ""}, {"", 0, platforms.Bytes, ""},
		{"aé", 2, platforms.Bytes, "a"}, {"aé", 3, platforms.Bytes, "aé"}, {"é😀", 2, platforms.CodePoints, "é😀"},
		{"é😀x", 2, platforms.UTF16, "é"}, {"é😀x", 3, platforms.UTF16, "é😀"}, {"\xffa", 1, platforms.Bytes, "\xff"},
	} {
		require.Equal(t, c.want, Cut(c.text, c.limit, c.unit), "%q %d", c.text, c.limit)
		require.LessOrEqual(t, Length(c.want, c.unit), c.limit)
	}
}
