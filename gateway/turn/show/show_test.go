package show

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"herald/platforms"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestThinking_TakesReasoningBlocksOut(t *testing.T) {
	for _, c := range []struct{ name, in, text, thought string }{
		{"plain", "just text", "just text", ""},
		{"leading block", "<think>hmm</think>\nanswer", "answer", "hmm"},
		{"other tag and case", "<Reasoning>a\nb</REASONING> x", "x", "a\nb"},
		{"block at a line's start", "one\n<thinking>two</thinking>three", "one\nthree", "two"},
		{"prose that mentions a tag", "write <think> before it", "write <think> before it", ""},
		{"unclosed", "<think>forever", "", "forever"},
		{"almost a tag", "<thin air", "<thin air", ""},
		{"tag in code", "use `<think>` here", "use `<think>` here", ""},
		{"scratchpad", "<REASONING_SCRATCHPAD>s</REASONING_SCRATCHPAD>ok", "ok", "s"},
		{"white space kept", "  indented\n\n  text", "  indented\n\n  text", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, thought := StripThinking(c.in)
			require.Equal(t, c.text, text)
			require.Equal(t, c.thought, thought)
		})
	}
}

// However a text is cut into pieces, what comes out is the same.
func TestThinking_CutsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{"<think>", "</think>", "<", "think", ">", "a", " ", "\n", "<thought>", "</thought>", "é"})).Draw(t, "parts")
		whole := strings.Join(parts, "")
		want, thought := StripThinking(whole)
		var th Thinking
		var got strings.Builder
		for rest := whole; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			got.WriteString(th.Write(rest[:n]))
			rest = rest[n:]
		}
		got.WriteString(th.Rest())
		if got.String() != want || th.thought.String() != thought {
			t.Fatalf("%q: got %q, want %q", whole, got.String(), want)
		}
	})
}

func FuzzThinking(f *testing.F) {
	f.Add("<think>a</think>b", 3)
	f.Add("<think>/\xb3a</think>", 0) // found by fuzzing: a byte that is no UTF-8
	f.Fuzz(func(t *testing.T, s string, n int) {
		var th Thinking
		n = min(max(n, 0), len(s))
		out := th.Write(s[:n]) + th.Write(s[n:]) + th.Rest()
		if len(out) > len(s) {
			t.Fatalf("%q grew to %q", s, out)
		}
		if want, _ := StripThinking(s); want != out {
			t.Fatalf("%q cut at %d: %q, want %q", s, n, out, want)
		}
	})
}

func TestIsSilent(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "  \n": true, "[SILENT]": true, "silent": true, "NO_REPLY": true, "no reply": true, "(silent)": true, "*silence*": true,
		".": true, "🔇": true, "…": true, "[silence]": true,
		"silence is golden": false, "Silent night": false, "No reply came from the server.": false, "ok": false, "silence": false,
		strings.Repeat(".", 65): false,
	} {
		require.Equal(t, want, IsSilent(text), "%q", text)
	}
}

func TestClean(t *testing.T) {
	require.Equal(t, "a\nb\tc", Clean("a\r\nb\tc\x00\x1b"))
	require.Equal(t, "x�y", Clean("x\xff\xfey"))
	require.Equal(t, "evil.txt", Clean("evil\u202e.txt"), "no text may turn the reading direction")
}

func TestTakeMedia(t *testing.T) {
	text, files := takeMedia("Here it is:\nMEDIA:/tmp/a.png\nand `MEDIA:/tmp/b c.txt` and MEDIA:\"/tmp/d e.pdf\".\n[[as_document]]")
	require.NotContains(t, text, "MEDIA")
	require.NotContains(t, text, "/tmp")
	require.NotContains(t, text, "[[")
	var paths []string
	for _, f := range files {
		paths = append(paths, f.path)
		require.True(t, f.document)
	}
	require.Contains(t, paths, "/tmp/a.png")
	require.Contains(t, paths, "/tmp/d e.pdf")
	text, files = takeMedia("nothing here")
	require.Equal(t, "nothing here", text)
	require.Empty(t, files)
}

func TestStripMedia_NeverShowsAPathOfAGrowingText(t *testing.T) {
	whole := "Done.\nMEDIA:/home/secret/report.pdf\nBye."
	for n := range whole {
		require.NotContains(t, stripMedia(whole[:n]), "/home", "after %d bytes", n)
	}
}

func TestMediaPolicy(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.png")
	require.NoError(t, os.WriteFile(file, []byte("png"), 0o600))
	secret := filepath.Join(dir, "key")
	require.NoError(t, os.WriteFile(secret, []byte("k"), 0o600))
	link := filepath.Join(dir, "innocent.txt")
	require.NoError(t, os.Symlink(secret, link))
	now := time.Now()
	p := MediaPolicy{Denied: func(path string) bool { return filepath.Base(path) == "key" }, MaxBytes: 10}
	a, err := p.Allow(media{path: file}, now)
	require.NoError(t, err)
	require.Equal(t, platforms.Image, a.Kind)
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "no such file", secret: "protected", link: "protected", dir: "not a regular file", "a.png": "not absolute",
	} {
		_, err := p.Allow(media{path: path}, now)
		require.ErrorContains(t, err, want, path)
	}
	require.NoError(t, os.WriteFile(file, []byte("more than ten bytes"), 0o600))
	_, err = p.Allow(media{path: file}, now)
	require.ErrorContains(t, err, "the limit is 10")
	strict := MediaPolicy{Strict: true, Recent: time.Minute}
	_, err = strict.Allow(media{path: file}, now.Add(time.Hour))
	require.ErrorContains(t, err, "gateway.strict")
	_, err = strict.Allow(media{path: file}, now)
	require.NoError(t, err, "made just now")
	strict.AllowDirs = []string{dir}
	_, err = strict.Allow(media{path: file}, now.Add(time.Hour))
	require.NoError(t, err, "in an allowed directory")
}

func FuzzMedia(f *testing.F) {
	f.Add("MEDIA:/a/b.png and [[as_document]]")
	f.Add("MEDIA:.") // found by fuzzing
	f.Fuzz(func(t *testing.T, s string) {
		text, files := takeMedia(s)
		if len(files) == 0 && !strings.Contains(s, "[[") && strings.TrimSpace(text) != strings.TrimSpace(s) && !strings.Contains(s, "MEDIA:") {
			t.Fatalf("%q became %q", s, text)
		}
		for _, file := range files {
			if file.path == "" {
				t.Fatal("a file without a path")
			}
		}
	})
}

func TestFinishedWords(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "word": "word", "two words": "two words", "the token is ghp_0123": "the token is ", "a sentence.": "a ", "done: 12345678 ": "done: 12345678 ", "abcdefgh": "",
		"一段没有空格的文字也会继续": "一段没有空格的文字也会继续", "x\nAKIA0123456789": "x\n", "ünïcödé-words-too": "ünïcödé-words-too"[:len("ünïcödé")],
	} {
		require.Equal(t, want, finishedWords(in), in)
	}
	long := strings.Repeat("a", wordLong+1)
	require.Equal(t, long, finishedWords(long))
}
