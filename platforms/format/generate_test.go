package format

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"herald/platforms"
)

var words = []string{
	"milk", "and", "a", "longer-word", "snake_case_name", "2*3", "x<y", "AT&T", "&amp;", "héllo", "日本語のテキストです。",
	"שלום", "مرحبا", "👩‍👩‍👧‍👦", "🇩🇪🇫🇷", "👍🏽", "e\u0301e\u0301", "end.", "What?", "#tag", "1.", "-", "+", "C:\\path", "a|b",
	"[x]", "(y)", "!", "~", "100%", "https://example.com/a_b?c=d&e=f", "me@example.org", "<@U123>", "<!here>", "<b>",
	"supercalifragilisticexpialidocious", "=", ">", "```", "`", "don't", "\"quoted\"", "$x_1$",
}

func genWord(t *rapid.T) string { return rapid.SampledFrom(words).Draw(t, "word") }

// genPhrase draws inline Markdown on one line.
func genPhrase(t *rapid.T, most int) string {
	n := rapid.IntRange(1, most).Draw(t, "n")
	parts := make([]string, n)
	for i := range parts {
		w := EscapeMarkdown(genWord(t))
		switch rapid.IntRange(0, 14).Draw(t, "markup") {
		case 0:
			w = "**" + w + " " + EscapeMarkdown(genWord(t)) + "**"
		case 1:
			w = "*" + w + "*"
		case 2:
			w = "~~" + w + " gone~~"
		case 3:
			w = Code(genWord(t) + " " + genWord(t))
		case 4:
			w = "[" + w + "](https://example.org/p_(q)?a=1&b=2)"
		case 5:
			w = "**bold *both " + w + "***"
		case 6:
			w = genWord(t) // unescaped, whatever it means
		case 7:
			w = "[**" + w + "** tail](<https://example.org/a b>)"
		case 8:
			w = "![" + w + "](http://example.org/i.png)"
		}
		parts[i] = w
	}
	return strings.Join(parts, " ")
}

// genDocument draws Markdown with all kinds of blocks.
func genDocument(t *rapid.T) string { return genBlocks(t, rapid.IntRange(1, 8).Draw(t, "blocks"), 0) }

func genBlocks(t *rapid.T, n, depth int) string {
	var blocks []string
	for range n {
		blocks = append(blocks, genBlock(t, depth))
	}
	return strings.Join(blocks, "\n\n")
}

func genBlock(t *rapid.T, depth int) string {
	kinds := 8
	if depth > 2 {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds).Draw(t, "block") {
	case 0:
		return strings.Repeat("#", rapid.IntRange(1, 6).Draw(t, "level")) + " " + genPhrase(t, 5)
	case 1:
		var lines []string
		for range rapid.IntRange(1, 12).Draw(t, "lines") {
			lines = append(lines, rapid.SampledFrom([]string{"", "  ", "\t"}).Draw(t,
				"in")+strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 12).Draw(t, "code"), " "))
		}
		return strings.TrimSuffix(Fence(rapid.SampledFrom([]string{"", "go", "c++"}).Draw(t, "lang"), strings.Join(lines, "\n")), "\n")
	case 2:
		return "---"
	case 3:
		var rows []string
		cols := rapid.IntRange(1, 5).Draw(t, "cols")
		row := func() {
			s := "|"
			for range cols {
				s += " " + strings.ReplaceAll(genPhrase(t, 3), "|", "\\|") + " |"
			}
			rows = append(rows, s)
		}
		row()
		rows = append(rows, "|"+strings.Repeat(" :-: |", cols))
		for range rapid.IntRange(1, 12).Draw(t, "rows") {
			row()
		}
		return strings.Join(rows, "\n")
	case 5:
		return prefixed("> ", "> ", genBlocks(t, rapid.IntRange(1, 3).Draw(t, "quoted"), depth+1))
	case 6, 7:
		var items []string
		ordered := rapid.Bool().Draw(t, "ordered")
		for i := range rapid.IntRange(1, 4).Draw(t, "items") {
			marker := "- "
			if ordered {
				marker = fmt.Sprintf("%d. ", i+7)
			}
			items = append(items, prefixed(marker, strings.Repeat(" ", len(marker)), genBlocks(t, rapid.IntRange(1, 2).Draw(t, "inner"), depth+1)))
		}
		return strings.Join(items, rapid.SampledFrom([]string{"\n", "\n\n"}).Draw(t, "loose"))
	}
	var lines []string
	for range rapid.IntRange(1, 3).Draw(t, "lines") {
		lines = append(lines, genPhrase(t, 25))
	}
	return strings.Join(lines, rapid.SampledFrom([]string{"\n", "  \n", "\\\n"}).Draw(t, "break"))
}

func prefixed(first, rest, s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		if i == 0 {
			lines[i] = first + lines[i]
		} else {
			lines[i] = strings.TrimRight(rest+lines[i], " ")
		}
	}
	return strings.Join(lines, "\n")
}

func genTraits(t *rapid.T) platforms.TextTraits {
	return platforms.TextTraits{
		Dialect:     rapid.SampledFrom(dialects).Draw(t, "dialect"),
		Limit:       rapid.SampledFrom([]int{1, 16, 20, 32, 48, 64, 100, 150, 300, 500, 1000}).Draw(t, "limit"),
		Unit:        rapid.SampledFrom([]platforms.Unit{platforms.CodePoints, platforms.UTF16, platforms.Bytes}).Draw(t, "unit"),
		CountMarkup: rapid.Bool().Draw(t, "markup"),
		Number:      rapid.Bool().Draw(t, "number"),
	}
}
