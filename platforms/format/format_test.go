package format

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"herald/platforms"
)

func TestLength(t *testing.T) {
	cases := []struct {
		s                     string
		points, utf16s, bytes int
	}{
		{"", 0, 0, 0}, {"abc", 3, 3, 3}, {"é", 1, 1, 2}, {"日本", 2, 2, 6}, {"👍", 1, 2, 4}, {"👍🏽", 2, 4, 8},
		{"🇩🇪", 2, 4, 8}, {"👩‍👧", 3, 5, 11}, {"\xff", 1, 1, 1},
	}
	for _, c := range cases {
		require.Equal(t, c.points, Length(c.s, platforms.CodePoints), c.s)
		require.Equal(t, c.utf16s, Length(c.s, platforms.UTF16), c.s)
		require.Equal(t, c.bytes, Length(c.s, platforms.Bytes), c.s)
		for _, u := range []platforms.Unit{platforms.CodePoints, platforms.UTF16, platforms.Bytes} {
			require.Equal(t, Length(c.s, u), lengthBytes([]byte(c.s), u))
		}
	}
}

func TestRender_OfNothingHasNoChunks(t *testing.T) {
	for _, d := range dialects {
		for _, s := range []string{"", " \n\t\n", "[a]: http://b.c", "\x00", "```\n```", "```\n\n\n```"} {
			for _, limit := range []int{0, 100} {
				require.Empty(t, Render(s, platforms.TextTraits{Dialect: d, Limit: limit}), "%s %q", d, s)
			}
		}
	}
}

func TestRender_SimpleTextTakesTheShortWay(t *testing.T) {
	for _, s := range []string{"Hello.", "Two\nlines", "Two\n\nparagraphs, (really) 50% $5 \"x\" it's / fine!", "日本語 👍 שלום"} {
		require.True(t, simple(s), s)
		for _, d := range dialects {
			require.Equal(t, []platforms.Text{{Body: s, Plain: s, Markdown: s}}, Render(s, real[d]))
		}
	}
	for _, s := range []string{"1. a", "- a", "a *b*", "a\n    b", "a  \nb", "http://x", "www.x.y", "a\n=", "a\n\n\nb", "x@y.z", "a\n+ b", "a&b", "#a", "a\tb"} {
		require.False(t, simple(s), s)
	}
}

// The short way and the long way agree.
func TestRender_Property_TheShortWayIsTheLongWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := tidy(rapid.StringMatching(`[a-z0-9 .,:;()'"/\n=+-]{1,40}`).Draw(t, "s"))
		if s == "" || !simple(s) {
			t.Skip("not simple")
		}
		for _, d := range dialects {
			text, ok := newRenderer(s, platforms.TextTraits{Dialect: d}).whole(s)
			if !ok || text.Body != s || text.Plain != s || text.Markdown != s {
				t.Fatalf("%s: %q became %+v", d, s, text)
			}
		}
	})
}

func TestEscapeMarkdown_Property_ShowsWhatItGot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching("[a-c0-2 \t*_~`\\[\\]()<>&;#+.!|\\\\:/@=-]{1,20}|www[.]a[.]b|http://a[.]b|a@b[.]c|&amp;|[ ]{5}x|1[.] x|- x|\\+ x").Draw(t, "s")
		for _, context := range []string{"%", "x % y", "**%**"} {
			before, after, _ := cutPercent(context)
			got := PlainText(before + EscapeMarkdown(s) + after)
			want := PlainText(before) + s + PlainText(after)
			if context == "%" && tidy(s) == "" {
				continue // nothing but white space shows nothing
			}
			if context == "x % y" {
				want = "x " + s + " y"
			}
			if context == "**%**" {
				if tidy(s) != s || s[0] == ' ' || s[0] == '\t' || !isWord(rune(s[0])) || !isWord(rune(s[len(s)-1])) {
					continue // markup needs something to hold on to
				}
				want = s
			}
			if squeezed(got) != squeezed(want) {
				t.Fatalf("%q in %q: %q shows %q", s, context, EscapeMarkdown(s), got)
			}
		}
	})
}

func cutPercent(s string) (string, string, bool) {
	for i := range s {
		if s[i] == '%' {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

func TestCode_Property_SurvivesBackticks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching("[a-c `*\\\\<&]{1,20}").Draw(t, "s")
		doc := parse("x "+Code(s)+" y", platforms.TextTraits{Dialect: platforms.Markdown}, 0)
		spans := doc.lines[0].spans
		if len(spans) != 3 || spans[1].text != s || !spans[1].marks.has(mono) {
			t.Fatalf("%q became %+v", Code(s), spans)
		}
	})
	require.Empty(t, Code(""))
	require.Equal(t, "`a b`", Code("a\nb"))
}

func TestFence_Property_SurvivesBackticks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching("[a-c `~\n]{0,30}[a-c`]").Draw(t, "s")
		doc := parse("x\n\n"+Fence("go", s)+"y", platforms.TextTraits{Dialect: platforms.Markdown}, 0)
		var got string
		for _, ln := range doc.lines[1 : len(doc.lines)-1] {
			if ln.leaf.kind != code || ln.leaf.lang != "go" {
				t.Fatalf("%q became %+v", Fence("go", s), ln)
			}
			for _, sp := range ln.spans {
				got += sp.text
			}
			got += "\n"
		}
		if got != s+"\n" {
			t.Fatalf("%q became %q", s, got)
		}
	})
	require.Equal(t, "```\nx\n```\n", Fence("", "x\n"))
	require.Equal(t, "```c++\nx\n```\n", Fence("c++ \"", "x"))
}

func TestPlainText(t *testing.T) {
	cases := map[string]string{
		"**a** `b` ~~c~~":              "a b c",
		"[x](http://a.b)":              "x (http://a.b)",
		"<http://a.b>":                 "http://a.b",
		"[http://a.b](http://a.b)":     "http://a.b",
		"![alt](http://a.b/i.png)":     "alt (http://a.b/i.png)",
		"[](http://a.b)":               "http://a.b",
		"# Title\n\ntext":              "Title\n\ntext",
		"&lt;b&gt; \\* &#x41;":         "<b> * A",
		"\\&amp;":                      "&amp;",
		"a<br>b":                       "a\nb",
		"<div>\nraw\n</div>":           "<div>\nraw\n</div>",
		"- [x] a\n- [ ] b\n  1. c":     "☑ a\n☐ b\n  1. c",
		"> a\n>\n> > b":                "> a\n>\n> > b",
		"a\r\nb\rc":                    "a\nb\nc",
		"bell\a and \x00nul":           "bell and nul",
		"bad \xff byte":                "bad \uFFFD byte",
		"Setext\ntitle\n===":           "Setext title",
		"a**\u0301**":                  "a\u0301",
		"javascript [x](javascript:y)": "javascript x (javascript:y)",
	}
	for in, want := range cases {
		require.Equal(t, want, PlainText(in), in)
	}
}

func TestRender_UnsafeLinksAreText(t *testing.T) {
	got := Render("[x](javascript:alert(1)) [y](/etc/passwd) [z](https://a.b/\"><script>)", real[platforms.TelegramHTML])
	require.Equal(t, `x (javascript:alert(1)) y (/etc/passwd) <a href="https://a.b/%22%3E%3Cscript%3E">z</a>`, got[0].Body)
}

func TestRender_Slack(t *testing.T) {
	cases := map[string]string{
		"**bold** *it* ***both*** ~~s~~":  "*bold* _it_ _*both*_ ~s~",
		"a**b**c":                         "a\u200b*b*\u200bc",
		"[t (x)](http://a.b/c_(d)?e=f&g)": "<http://a.b/c_(d)?e=f&amp;g|t (x)>",
		"[**b** c](http://a.b)":           "*<http://a.b|b>*<http://a.b| c>",
		"<@U12> <#C1|general> <!here> <!subteam^S1|x> <@bad one>": "<@U12> <#C1|general> <!here> <!subteam^S1|x> &lt;@bad one&gt;",
		"`<@U12> & *x*`":   "`&lt;@U12&gt; &amp; *x*`",
		"``a`b``":          "a`b",
		"# Title *x*":      "*Title _x_*",
		"> q\n> r":         "> q\n> r",
		"&amp; &lt; <b>":   "&amp; &lt; &lt;b&gt;",
		"```\na```b\n```":  "```\na``\u200b`b\n```",
		"1. a\n   - b":     "1. a\n   ◦ b",
		"<http://a.b|lbl>": "<http://a.b%7Clbl|http://a.b|lbl>",
	}
	for in, want := range cases {
		require.Equal(t, want, renderChecked(t, in, real[platforms.SlackMrkdwn])[0].Body, in)
	}
}

func TestRender_Discord(t *testing.T) {
	cases := map[string]string{
		"# a\n\n#### b": "# a\n\n**b**",
		"<@12> <@!3> <@&4> <#5> <:a_b:6> <a:x_y:7> <t:8:R> </go:9>": "<@12> <@!3> <@&4> <#5> <:a_b:6> <a:x_y:7> <t:8:R> </go:9>",
		"a \\*b\\* snake_case \\|\\|s\\|\\|":                        "a \\*b\\* snake_case \\|\\|s\\|\\|",
		"[x](http://a.b/(c(d)))":                                    "[x](http://a.b/%28c%28d%29%29)",
		"***x** y*":                                                 "***x** y*",
		"**a**_b_":                                                  "**a**_b_",
	}
	for in, want := range cases {
		require.Equal(t, want, renderChecked(t, in, real[platforms.DiscordMD])[0].Body, in)
	}
}

func TestRender_SignalRanges(t *testing.T) {
	got := Render("👍 **b _i_** `c`\n\n# T `x`\n\n```\nl1\n\nl2\n```", real[platforms.SignalStyles])
	require.Equal(t, "👍 b i c\n\nT x\n\nl1\n\nl2", got[0].Body)
	require.Equal(t, []platforms.Style{
		{Start: 3, Length: 3, Kind: "BOLD"}, {Start: 5, Length: 1, Kind: "ITALIC"}, {Start: 7, Length: 1, Kind: "MONOSPACE"},
		{Start: 10, Length: 2, Kind: "BOLD"}, {Start: 12, Length: 1, Kind: "MONOSPACE"}, {Start: 15, Length: 6, Kind: "MONOSPACE"},
	}, got[0].Styles)
}

func TestRender_HugeTablesAreText(t *testing.T) {
	const columns = 3000
	var doc string
	for range columns {
		doc += "a|"
	}
	doc += "\n"
	for range columns {
		doc += "-|"
	}
	for range 2000 {
		doc += "\n|"
	}
	require.NotEmpty(t, Render(doc, real[platforms.TelegramHTML]))
}

func TestRender_DeepNestingIsBounded(t *testing.T) {
	for _, unit := range []string{">", "- ", "1. ", "![](", "> - "} {
		doc := ""
		for range 3000 {
			doc += unit
		}
		require.NoError(t, checkChunks(Render(doc+"x", real[platforms.TelegramHTML]), real[platforms.TelegramHTML]))
	}
}
