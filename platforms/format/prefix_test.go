package format

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"herald/platforms"
)

func TestPrefix(t *testing.T) {
	cases := []struct{ name, in, want string }{
		{"empty", "", ""},
		{"plain", "Hello wor", "Hello wor"},
		{"bold", "a **bold te", "a **bold te**"},
		{"bold and italic", "**a *b", "**a *b***"},
		{"bold with half an end", "**a*", "**a**"},
		{"bold done", "**a**", "**a**"},
		{"opener alone", "text **", "text"},
		{"opener and space", "2 * 3", "2 * 3"},
		{"strike", "~~gone", "~~gone~~"},
		{"underscore in a word", "snake_ca", "snake_ca"},
		{"code", "a `co", "a `co`"},
		{"code opener", "a `", "a"},
		{"code done", "a `*b` c", "a `*b` c"},
		{"code with backticks", "``a `b", "``a `b``"},
		{"bold around code", "**a `b", "**a `b`**"},
		{"link label", "see [the do", "see"},
		{"link address", "see [the docs](https://exa", "see"},
		{"link done", "see [x](https://a.b/c_(d))", "see [x](https://a.b/c_(d))"},
		{"link in bold", "**see [x", "**see**"},
		{"image", "see ![x", "see"},
		{"brackets that are no link", "a [x] b", "a [x] b"},
		{"tag", "a <https://exam", "a"},
		{"less than", "1 < 2", "1 < 2"},
		{"entity", "AT&am", "AT"},
		{"ampersand", "AT&T, a & b", "AT&T, a & b"},
		{"backslash", "a\\", "a"},
		{"list marker", "text\n\n-", "text"},
		{"list marker and task", "- a\n- [x", "- a"},
		{"number", "text\n1.", "text"},
		{"item with half bold", "- **it", "- **it**"},
		{"item with opener only", "- a\n- **", "- a"},
		{"heading signs", "text\n\n##", "text"},
		{"heading", "## Titl", "## Titl"},
		{"heading end", "## Title #", "## Title"},
		{"setext", "Title\n--", "Title"},
		{"fence line", "a\n\n```g", "a"},
		{"fence without code", "a\n\n```go\n", "a"},
		{"fence", "```go\nx := 1\ny", "```go\nx := 1\ny\n```"},
		{"fence with half an end", "```go\nx := 1\n``", "```go\nx := 1\n```"},
		{"fence closed", "```go\nx\n```", "```go\nx\n```"},
		{"fence in a list", "- a\n  ```\n  x", "- a\n  ```\n  x\n  ```"},
		{"fence in a quote", "> ```\n> x", "> ```\n> x\n> ```"},
		{"stars in code", "```\n**x", "```\n**x\n```"},
		{"table header", "a\n\n| x | y", "a"},
		{"table rule", "a\n\n| x | y |\n|---|", "a"},
		{"table row", "| x | y |\n|---|---|\n| 1 | 2 |\n| 3", "| x | y |\n|---|---|\n| 1 | 2 |"},
		{"earlier block", "a * b **c\n\nnext", "a * b **c\n\nnext"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := Prefix(c.in)
			require.Equal(t, c.want, strings.TrimRight(got, "\n"))
		})
	}
}

const streamed = `# Plan for *today*

Here is **bold text with ` + "`code`" + `** and a [link (nested)](https://example.org/a_(b)) then ~~old~~ *new* text.
It has snake_case, 2 * 3 = 6, AT&amp;T, <https://example.org>, and a bare https://example.org/x_y?z.

- first **item**
- second [item](http://a.b)
  1. nested *deep*
  2. more
- [x] done

> a quote with **bold**
> and more

` + "```go\nfunc main() {\n\tfmt.Println(\"**no markup**\")\n}\n```" + `

Last ` + "``a`b``" + ` words — 👩‍👩‍👧‍👦 done!
`

// Every frame of a streamed message shows the start of what the next frame shows.
func TestPrefix_EachFrameIsThePrefixOfTheNext(t *testing.T) {
	last := ""
	for i := range streamed {
		frame := Prefix(streamed[:i])
		shows := squeezed(PlainText(frame))
		if !strings.HasPrefix(shows, last) {
			t.Fatalf("after %q\nframe %q\nshows %q\nbefore %q", streamed[max(0, i-40):i], frame, shows, last)
		}
		last = shows
	}
	require.True(t, strings.HasPrefix(squeezed(PlainText(streamed)), last))
	require.Greater(t, len(last), len(squeezed(PlainText(streamed)))-20)
}

func TestPrefix_Property_ClosesWhatItOpens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := genDocument(t)
		cut := rapid.IntRange(0, len(doc)).Draw(t, "cut")
		frame := Prefix(doc[:cut])
		if f := openFence(frame); f.char != 0 {
			t.Fatalf("%q leaves a fence open: %q", doc[:cut], frame)
		}
	})
}

// P4: a streamed preview and the final message are the same message, so the preview must not move.
func TestPreview_StaysWhenTheMessageOutgrowsIt(t *testing.T) {
	for _, d := range dialects {
		traits := platforms.TextTraits{Dialect: d, Limit: 200, Unit: platforms.UTF16, CountMarkup: true, Number: true}
		var doc strings.Builder
		for range 40 {
			doc.WriteString("Some **bold** words and `code` here.\n\n- item one\n- item two\n\n")
		}
		var outgrown string
		for i := 40; i < doc.Len(); i += 61 {
			p := Preview(doc.String()[:i], traits)
			require.NoError(t, checkChunks([]platforms.Text{p}, traits))
			if i > 500 {
				if outgrown == "" {
					outgrown = p.Body
				}
				require.Equal(t, outgrown, p.Body, d)
			}
		}
		final := Render(doc.String(), traits)
		require.True(t, strings.HasPrefix(final[0].Body, strings.TrimSuffix(outgrown, "\n```")), "%s: %q", d, final[0].Body)
	}
}

func TestPreview_OfNothingIsZero(t *testing.T) {
	for _, s := range []string{"", "  \n", "**", "[a](http", "```go\n"} {
		require.Zero(t, Preview(s, real[platforms.TelegramHTML]), s)
	}
}

func FuzzPrefix(f *testing.F) {
	f.Add(streamed, 77)
	f.Add("> - ```\n> x **y [z", 30)
	f.Add("| a | b |\n|-|-|\n| c", 100)
	f.Fuzz(func(t *testing.T, s string, cut int) {
		if cut >= 0 && cut < len(s) {
			s = s[:cut]
		}
		frame := Prefix(s)
		if f := openFence(frame); f.char != 0 && f.body >= 0 {
			t.Fatalf("%q leaves a fence open: %q", s, frame)
		}
		traits := real[platforms.TelegramHTML]
		traits.Limit = 100
		if p := Preview(s, traits); p.Body != "" {
			if err := checkChunks([]platforms.Text{p}, traits); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestSettled(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "Hello wor": "Hello wor", "a **bold te": "a", "a **bold** te": "a **bold** te", "a `co": "a", "a `co` d": "a `co` d",
		"a\n\n```go\nx := 1\ny": "a", "a\n\n```go\nx\n```\nb": "a\n\n```go\nx\n```\nb", "see [the do": "see",
		"| x | y |\n|---|---|\n| 1 | 2 |": "", "| x | y |\n|---|---|\n| 1 | 2 |\n\nb": "| x | y |\n|---|---|\n| 1 | 2 |\n\nb",
		"one **two `three": "one", "text\n\n-": "text", "- a\n- **b": "- a", "a *b* *c": "a *b*",
	} {
		require.Equal(t, want, Settled(in), in)
	}
}

// Settled text only grows, and it is the beginning of the message.
func TestSettled_OnlyGrows(t *testing.T) {
	pieces := []string{"word ", "**", "*", "`", "\n", "\n\n", "- ", "```\n", "[a](b)", "| a | b |\n", "|---|---|\n", "1. ", "> ", "~~", "# ", "ü👍 "}
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		before := ""
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(pieces)-1), 1, 40).Draw(t, "pieces") {
			text += pieces[i]
			now := Settled(text)
			if !strings.HasPrefix(normalise(text), now) {
				t.Fatalf("%q is no beginning of %q", now, text)
			}
			if len(now) < len(before) && !strings.HasPrefix(before, now) {
				t.Fatalf("%q then %q", before, now)
			}
			before = now
		}
	})
}
