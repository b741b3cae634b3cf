package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Whenever a tab reads, and however often it is cut off, it ends with the state that everyone else has.
func TestHub_EveryTabEndsWithTheSameState(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHub()
		truth := make(map[string]int)
		mine := make(map[string]int)
		var at int64
		read := func() {
			changes, now, _, ok := h.since(at)
			if !ok {
				rt.Fatal("a tab within the bounds was reset")
			}
			last := at
			for _, c := range changes {
				if c.n <= last {
					rt.Fatalf("change %d after %d", c.n, last)
				}
				last = c.n
				var v struct {
					Key   string
					Value int
				}
				if err := json.Unmarshal(c.data(), &v); err != nil {
					rt.Fatal(err)
				}
				mine[v.Key] = v.Value
			}
			at = now
		}
		for i, step := range rapid.SliceOf(rapid.IntRange(0, 9)).Draw(rt, "steps") {
			if step > 6 {
				read()
				continue
			}
			key := fmt.Sprint("k", step)
			truth[key] = i
			h.publish("message", key, func() any {
				return struct {
					Key   string
					Value int
				}{key, i}
			})
		}
		read()
		if d := cmp.Diff(truth, mine); d != "" {
			rt.Fatal(d)
		}
		if h.order.Len() > 7 {
			rt.Fatalf("%d changes are kept for 7 keys", h.order.Len())
		}
	})
}

func TestHub_MemoryIsBounded(t *testing.T) {
	h := newHub()
	for i := range 3 * hubEntries {
		h.publish("message", fmt.Sprint(i), func() any { return i })
	}
	require.Equal(t, hubEntries, h.order.Len())
	require.Len(t, h.byKey, hubEntries)
	_, _, _, ok := h.since(1)
	require.False(t, ok, "what is gone is not passed over in silence")
	_, now, _, ok := h.since(h.floor)
	require.True(t, ok)
	require.EqualValues(t, 3*hubEntries, now)
	for i := range 20 {
		h.publishSized("message", fmt.Sprint("big", i), hubBytes/4, func() any { return i })
	}
	require.LessOrEqual(t, h.bytes, hubBytes)
	require.Equal(t, 4, h.order.Len())
	h.publishSized("message", "huge", 2*hubBytes, func() any { return 0 })
	require.Equal(t, 1, h.order.Len(), "the newest one is always kept")
	for i := range 5000 {
		h.publish("clicked", "", func() any { return i }) // without a key none takes another's place
	}
	require.Equal(t, hubEntries, h.order.Len())
	require.Empty(t, h.byKey)
}

var update = flag.Bool("update", false, "rewrite the golden files")

func TestRenderMarkdown_Golden(t *testing.T) {
	sources, err := filepath.Glob("testdata/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	for _, src := range sources {
		t.Run(filepath.Base(src), func(t *testing.T) {
			in, err := os.ReadFile(src)
			require.NoError(t, err)
			got := RenderMarkdown(string(in))
			requireSafe(t, got)
			golden := strings.TrimSuffix(src, ".md") + ".html"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(string(want), got))
		})
	}
}

func TestRenderMarkdown_HugeTextIsShownAsItIs(t *testing.T) {
	start := time.Now()
	got := RenderMarkdown(strings.Repeat("> [x](y) **", 100_000))
	require.True(t, strings.HasPrefix(got, `<p class="plain">`))
	require.Less(t, time.Since(start), 10*time.Second)
	require.Contains(t, RenderMarkdown("a\xffb"), "a\uFFFDb")
}

func TestSafeLink(t *testing.T) {
	for link, want := range map[string]bool{
		"https://example.com/a?b#c": true, "http://x": true, "HTTPS://X.org": true, "mailto:a@b.c": true, "tel:+123": true,
		"javascript:alert(1)": false, "JaVaScRiPt:alert(1)": false, " javascript:alert(1)": false, "java\nscript:alert(1)": false,
		"data:text/html,x": false, "vbscript:x": false, "file:///etc/passwd": false, "/api/chat/logout": false, "//evil.example": false,
		"notes.txt": false, "": false, "http:": false, "https:///x": false, "blob:x": false, "about:blank": false,
	} {
		require.Equal(t, want, safeLink(link), "%q", link)
	}
}

// The tags and attributes that rendered Markdown may hold.
var (
	tag     = regexp.MustCompile(`<[^>]*>`)
	allowed = regexp.MustCompile(`^</?(p|br|h[1-6]|em|strong|del|ul|li|blockquote|hr|pre|table|thead|tbody|tr|a|span)( /)?>$` +
		`|^<p class="plain">$|^</?code>$|^<code class="language-[^"]*">$|^</?ol>$|^<ol start="\d+">$` +
		`|^</?t[hd]( align="(left|right|center)")?>$` +
		`|^<input (checked="" )?disabled="" type="checkbox"( /)?>$` +
		`|^<a href="(?i:https?:|mailto:|tel:)[^"]*" target="_blank" rel="noopener noreferrer nofollow">$` +
		`|^<span class="dead" title="[^"]*">$`)
)

func requireSafe(t testing.TB, html string) {
	t.Helper()
	for _, m := range tag.FindAllString(html, -1) {
		if !allowed.MatchString(m) {
			t.Fatalf("the rendering lets %q through:\n%s", m, html)
		}
	}
}

func FuzzRenderMarkdown(f *testing.F) {
	for _, s := range []string{
		"", "# h\n\n*a* **b** `c` ~~d~~", "<script>x</script>", "[a](javascript:x)", "![a](http://x/y.png \"t\")", "<http://x>", "<a@b.c>",
		"| a | b |\n|---|:-:|\n| <i> | [x](//y) |", "- [ ] a\n- [x] b", "```a\"b>c\nx\n```", "<!-- -->", "<b\nx>", "&lt;script&gt;",
		"[a]: javascript:x\n[a]", "www.example.com/\"><script>", "<div>\n\n<p onclick=x>", "a\x00b\xff", "1. x\n   > y\n   > - z",
		"<?php x ?>", "<![CDATA[x]]>", "[x](https://a\"onmouseover=\"b)", "<https://a\"onclick=b>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := RenderMarkdown(s)
		if !utf8.ValidString(got) {
			t.Fatalf("not UTF-8: %q", got)
		}
		requireSafe(t, got)
	})
}

// FuzzBodies feeds what a browser, or someone who plays one, may post.
func FuzzBodies(f *testing.F) {
	for _, s := range []string{
		`{"id":"client-1","text":"hello"}`, `{"id":"client-1","message":"5","data":"y"}`, `{}`, `[]`, `null`, `"x"`, `{"id":1}`,
		`{"id":"client-1","text":"\ud800"}`, `{"text":"` + strings.Repeat("x", 200) + `"}`, "{\"id\":\"\x00\xff\"}", `{"id":"client-1","text":"a","text":"b"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		const most = 100
		p, err := decodePost(bytes.NewReader(body), most)
		if err == nil && (!validID(p.ID) || len(p.Text) > most || !utf8.ValidString(p.Text)) {
			t.Fatalf("accepted %+v", p)
		}
		requireBodyError(t, err)
		r, rerr := http.NewRequest("POST", "/", bytes.NewReader(body))
		if rerr != nil {
			t.Fatal(rerr)
		}
		r.Header.Set("Content-Type", "application/json")
		c, err := decodeClick(r)
		if err == nil && !validID(c.ID) {
			t.Fatalf("accepted %+v", c)
		}
		requireBodyError(t, err)
		h := newHub()
		if n, ok := h.parse(string(body)); ok && n < 0 {
			t.Fatalf("cursor %q", body)
		}
	})
}

// requireBodyError demands that a refused body is answered with a sentence, and not as a fault of ours.
func requireBodyError(t *testing.T, err error) {
	t.Helper()
	var e *errBody
	if err != nil && (!errors.As(err, &e) || e.message == "" || e.status < 400 || e.status >= 500) {
		t.Fatalf("refused as %v", err)
	}
}

func TestShorten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.String().Draw(rt, "s")
		n := rapid.IntRange(2, 50).Draw(rt, "n")
		got := shorten(s, n)
		if utf8.RuneCountInString(got) > n || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\t") {
			rt.Fatalf("%q to %d: %q", s, n, got)
		}
	})
	require.Equal(t, "a b", shorten(" a\n b ", 10))
	require.Equal(t, "abc…", shorten("abcdefgh", 4))
	require.Equal(t, "Buy milk", titleFrom("\n\n## Buy milk\nand bread", nil))
	require.Equal(t, "cat.png", titleFrom(" ", []file{{Name: "cat.png"}}))
	require.Equal(t, "New chat", titleFrom("***", nil))
}

// The page asks no other server for anything: no file names one.
func TestPage_NamesNoOtherServer(t *testing.T) {
	foreign := regexp.MustCompile(`(https?:)?//[a-zA-Z0-9.-]+\.[a-z]{2,}`)
	require.NoError(t, fs.WalkDir(embedded, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		require.NotEmpty(t, types[filepath.Ext(name)]+map[bool]string{true: "html"}[filepath.Ext(name) == ".html"], name)
		rest := strings.ReplaceAll(string(b), "http://www.w3.org/2000/svg", "") // a name, not an address
		require.Empty(t, foreign.FindString(rest), name)
		if filepath.Ext(name) == ".html" {
			require.NotContains(t, rest, " style=", "the policy forbids styles in the markup")
			require.NotRegexp(t, `<script>|<style| on[a-z]+=`, rest)
		}
		return nil
	}))
}
