package format

import (
	"testing"

	"herald/platforms"
)

func seeds(f *testing.F) {
	for i, s := range []string{
		"", "plain", "**bold *both***", "```go\ncode\n```\ntail", "> quote\n> > inner\n\n- a\n  - b\n    1. c\n",
		"| a | b |\n|---|:-:|\n| `x\\|y` | **z** |\n", "[l (x)](http://a.b/c_(d)) <@U1> <!here> <b>raw</b> &amp; <http://x.y>",
		"👩‍👩‍👧‍👦🇩🇪👍🏽 שלום \u202e עברית \u0301", "a\u0301\u0301\u0301**\u0301**", "# t\n\ntext\\\nmore  \nend\n---\n\x00\xff",
		"~~~\n```\n~~~", "`` ` ``", "- [x] done\n- [ ] open", "![img](a \"t\") ![](b)", streamed,
		"99999999. x\n\n    code\n\n\n*   * * *\n", "&#1; &#xD800; &nbsp;|", "<br>a<br/>b\n<div>\nx\n</div>",
	} {
		f.Add(s, i%8, 16+i*9, i%3, i%2 == 0, i%3 == 0)
	}
}

func fuzzTraits(dialect, limit, unit int, markup, number bool) platforms.TextTraits {
	abs := func(n int) int { return max(n, -(n + 1)) }
	t := platforms.TextTraits{
		Limit:       abs(limit) % 5000,
		Unit:        platforms.Unit(abs(unit) % 3),
		CountMarkup: markup,
		Number:      number,
	}
	if d := abs(dialect) % (len(dialects) + 1); d < len(dialects) {
		t.Dialect = dialects[d]
	}
	return t
}

func FuzzRender(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, s string, dialect, limit, unit int, markup, number bool) {
		traits := fuzzTraits(dialect, limit, unit, markup, number)
		if traits.Dialect == "" {
			traits.Dialect = platforms.Plain
		}
		if err := checkChunks(Render(s, traits), traits); err != nil {
			t.Fatalf("%+v: %v", traits, err)
		}
	})
}

func FuzzSplitLossless(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, s string, dialect, limit, unit int, markup, number bool) {
		traits := fuzzTraits(dialect, limit, unit, markup, number)
		if err := checkLossless(s, traits); err != nil {
			t.Fatalf("%+v: %v", traits, err)
		}
	})
}
