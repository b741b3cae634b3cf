package format

import (
	"strings"
	"testing"

	"herald/platforms"
)

func bench(b *testing.B, source string, d platforms.Dialect) {
	traits := real[d]
	b.ReportAllocs()
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		if len(Render(source, traits)) == 0 {
			b.Fatal("nothing rendered")
		}
	}
}

func BenchmarkRender_ShortPlain(b *testing.B) {
	bench(b, "Done: the file is written, and the tests pass now. Shall I go on with the next one?", platforms.TelegramHTML)
}

func BenchmarkRender_ShortMarkdown(b *testing.B) {
	bench(b, "Done: **notes.txt** is written with `hello`, see [the docs](https://example.org).", platforms.TelegramHTML)
}

func BenchmarkRender_Answer4KB(b *testing.B) {
	bench(b, strings.Repeat(streamed, 5), platforms.TelegramHTML)
}

func BenchmarkRender_OneMegabyte(b *testing.B) {
	source := strings.Repeat(streamed, (1<<20)/len(streamed))
	for _, d := range dialects {
		b.Run(string(d), func(b *testing.B) { bench(b, source, d) })
	}
}

// The splitter alone, without the parser.
func BenchmarkSplit_OneMegabyte(b *testing.B) {
	inputs := map[string]string{
		"answers": strings.Repeat(streamed, (1<<20)/len(streamed)),
		"words":   strings.Repeat("some words in a row ", (1<<20)/20),
		"oneword": strings.Repeat("x", 1<<20),
		"cjk":     strings.Repeat("日本語のテキスト", (1<<20)/24),
	}
	for name, source := range inputs {
		b.Run(name, func(b *testing.B) {
			r := newRenderer(tidy(source), real[platforms.TelegramHTML])
			b.SetBytes(int64(len(source)))
			for b.Loop() {
				r.split(0)
			}
		})
	}
}

func BenchmarkPrefix_4KB(b *testing.B) {
	source := strings.Repeat(streamed, 5) + "and **half a"
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		Prefix(source)
	}
}
