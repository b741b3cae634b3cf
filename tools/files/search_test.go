package files

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"herald/tools/needtest"
	"herald/tools/sandbox"
	"herald/tools/sandbox/local"
)

func TestSearch_Content(t *testing.T) {
	b := newBench(t, nil)
	b.put("a.go", "package a\n\nfunc Alpha() {}\r\nfunc beta() {}\n")
	b.put("sub/b.txt", "alpha\nfunc Gamma")
	b.put("bin", "func \x00")
	a := b.do("search_files", obj{"pattern": `func \w+`})
	require.Equal(t, []hit{{Path: "a.go", Line: 3, Content: "func Alpha() {}"}, {Path: "a.go", Line: 4, Content: "func beta() {}"}, {Path: "sub/b.txt", Line: 2, Content: "func Gamma"}}, a.Matches)
	a = b.do("search_files", obj{"pattern": `^func [A-Z]`, "file_glob": "*.{go,py}", "context": 1})
	require.Equal(t, []hit{{Path: "a.go", Line: 3, Content: "func Alpha() {}", Before: []string{""}, After: []string{"func beta() {}"}}}, a.Matches)
	require.Equal(t, []string{"a.go", "sub/b.txt"}, b.do("search_files", obj{"pattern": "func", "output_mode": "files_only"}).Files)
	require.Equal(t, []count{{"a.go", 2}, {"sub/b.txt", 1}}, b.do("search_files", obj{"pattern": "func", "output_mode": "count"}).Counts)
	require.Len(t, b.do("search_files", obj{"pattern": "func", "path": "sub"}).Matches, 1)
	require.Len(t, b.do("search_files", obj{"pattern": "func", "path": "a.go", "target": "grep"}).Matches, 2)
	require.Len(t, b.do("search_files", obj{"pattern": "(?i)ALPHA"}).Matches, 2)
	require.Len(t, b.do("search_files", obj{"pattern": "x", "file_glob": "sub/*"}).Matches, 0)
	b.refuse("is not a valid regular expression", "search_files", obj{"pattern": "func("})
	b.refuse("does not exist", "search_files", obj{"pattern": "x", "path": "nope"})
	b.refuse("target: \"web\" is not known", "search_files", obj{"pattern": "x", "target": "web"})
}

func TestSearch_Pages(t *testing.T) {
	b := newBench(t, nil)
	b.put("n.txt", strings.Repeat("n\n", 7))
	args := obj{"pattern": "n", "limit": 3}
	var lines []int
	for offset := 0; ; {
		args["offset"] = offset
		a := b.do("search_files", args)
		for _, m := range a.Matches {
			lines = append(lines, m.Line)
		}
		if !a.Truncated {
			require.Empty(t, a.Hint)
			break
		}
		require.Contains(t, a.Hint, fmt.Sprintf("offset=%d", a.NextOffset))
		offset = a.NextOffset
	}
	require.Equal(t, []int{1, 2, 3, 4, 5, 6, 7}, lines)
}

func TestSearch_Files(t *testing.T) {
	b := newBench(t, nil)
	now := time.Now()
	for i, name := range []string{"old_test.go", "sub/new_test.go", "x.txt", ".github/ci.yml"} {
		at := now.Add(time.Duration(i) * time.Minute)
		require.NoError(t, os.Chtimes(b.put(name, "x"), at, at))
	}
	b.put(".git/config", "x")
	files := func(args obj) []string { args["target"] = "files"; return b.do("search_files", args).Files }
	require.Equal(t, []string{"sub/new_test.go", "old_test.go"}, files(obj{"pattern": "*_test.go"}), "newest first")
	require.Equal(t, []string{"sub/new_test.go", "old_test.go"}, files(obj{"pattern": "test"}))
	require.Equal(t, []string{"sub/new_test.go"}, files(obj{"pattern": "sub/*.go"}))
	require.Equal(t, []string{"sub/new_test.go", "old_test.go"}, files(obj{"pattern": "**/*.go"}))
	require.Equal(t, []string{".github/ci.yml"}, files(obj{"pattern": "*.yml"}), "hidden files are files")
	require.Empty(t, files(obj{"pattern": "config"}), "but version control's data is not")
	require.NotNil(t, files(obj{"pattern": "nothing*"}))
}

func TestSearch_RepeatsWarnThenBlock(t *testing.T) {
	b := newBench(t, nil)
	b.put("a.txt", "x")
	args := obj{"pattern": "x"}
	require.Empty(t, b.do("search_files", args).Warning)
	require.Empty(t, b.do("search_files", args).Warning)
	require.Contains(t, b.do("search_files", args).Warning, "third time")
	b.refuse("BLOCKED", "search_files", args)
	b.do("search_files", obj{"pattern": "y"})
	require.Empty(t, b.do("search_files", args).Warning, "another search ends the run")
}

func TestSearch_DeniedFilesAreCountedNotShown(t *testing.T) {
	b := newBench(t, nil)
	b.put(".env", "token=1")
	b.put("sub/.env.local", "token=2")
	b.put("a.txt", "token")
	a := b.do("search_files", obj{"pattern": "token"})
	require.Len(t, a.Matches, 1)
	require.Equal(t, 2, a.Omitted)
	require.NoError(t, os.WriteFile(filepath.Join(b.root, "profiles", "other", "memories", "m.md"), []byte("token"), 0o644))
	a = b.do("search_files", obj{"pattern": "token", "path": b.user})
	require.Empty(t, a.Matches, "P6: another profile is not searched")
	require.Positive(t, a.Omitted)
	require.NoError(t, os.Symlink(filepath.Join(b.work, ".env"), filepath.Join(b.work, "link")))
	require.Len(t, b.do("search_files", obj{"pattern": "token="}).Matches, 0, "links are not followed")
}

func TestSearch_HugeFileIsCounted(t *testing.T) {
	b := newBench(t, nil)
	f, err := os.Create(filepath.Join(b.work, "huge"))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(maxScanned+1))
	require.NoError(t, f.Close())
	require.Equal(t, 1, b.do("search_files", obj{"pattern": "x"}).TooLarge)
}

// The search skips what git calls ignored, for the same files.
func TestSearch_IgnoresLikeGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		needtest.Lacking(t, "git is not installed")
	}
	b := newBench(t, nil)
	for name, content := range map[string]string{
		".gitignore":          "*.log\n/build\nnode_modules/\n!keep.log\ndocs/*.tmp\n# comment\n\\#hash\nspace\\ \na/**/z\n**/cache\nx[0-9].txt\nfoo/\n",
		"sub/.gitignore":      "!sub.log\nlocal\n/top\n",
		"sub/deep/.gitignore": "*\n!.gitignore\n!ok\n",
	} {
		b.put(name, content)
	}
	for _, name := range []string{
		"a.log", "keep.log", "build/x", "sub/build/x", "node_modules/m/i.js", "sub/node_modules/y", "docs/a.tmp", "docs/d/a.tmp", "#hash", "space ", "a/z", "a/b/z", "a/b/c/z",
		"cache/x", "sub/cache/x", "x1.txt", "xx.txt", "foo", "sub/foo/x", "sub/sub.log", "sub/other.log", "sub/local", "local", "sub/top", "sub/deep/top", "sub/deep/ok", "plain",
	} {
		b.put(name, "needle")
	}
	run := func(args ...string) string {
		cmd := exec.Command(git, args...)
		cmd.Dir, cmd.Env = b.work, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	run("init", "-q")
	b.put(".git/info/exclude", "plain\n")
	want := strings.Split(strings.Trim(run("ls-files", "-z", "--others", "--exclude-standard"), "\x00"), "\x00")
	want = slices.DeleteFunc(want, func(n string) bool { return strings.HasSuffix(n, ".gitignore") })
	slices.Sort(want)
	got := b.do("search_files", obj{"pattern": "needle", "output_mode": "files_only"}).Files
	slices.Sort(got)
	require.Equal(t, want, got)

	got = b.do("search_files", obj{"pattern": "needle", "output_mode": "files_only", "path": "sub"}).Files
	slices.Sort(got)
	want = slices.DeleteFunc(want, func(n string) bool { return !strings.HasPrefix(n, "sub/") })
	require.Equal(t, want, got, "rules above the start of the search hold too")
}

func TestGlob(t *testing.T) {
	for _, tc := range []struct {
		pattern, yes, no string
	}{
		{"*.go", "a.go .go", "a.gox b/a.go"},
		{"**/*.go", "a.go b/a.go b/c/a.go", "a.txt"},
		{"src/**", "src/a src/a/b", "srcs/a"},
		{"a/**/b", "a/b a/x/b a/x/y/b", "ab"},
		{"?.txt", "a.txt", "ab.txt /.txt"},
		{"[!a-c].x", "d.x", "a.x b.x"},
		{"*.{ts,tsx}", "a.ts a.tsx", "a.tsy"},
		{"[", "[", "a"},
		{"{a", "{a", "a"},
		{`\*`, "*", "a"},
		{"a.b", "a.b", "aXb"},
	} {
		re, err := compileGlob(tc.pattern)
		require.NoError(t, err, tc.pattern)
		for s := range strings.FieldsSeq(tc.yes) {
			require.True(t, re.MatchString(s), "%s matches %s", tc.pattern, s)
		}
		for s := range strings.FieldsSeq(tc.no) {
			require.False(t, re.MatchString(s), "%s does not match %s", tc.pattern, s)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.StringMatching(`[a-c*?\[\]{},\\!/^-]{0,12}`).Draw(t, "pattern")
		if re, err := compileGlob(p); err == nil {
			re.MatchString("a/b/c")
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	dir := b.TempDir()
	line := strings.Repeat("some words of a source file, here and there\n", 100)
	for i := range 1000 {
		sub := filepath.Join(dir, fmt.Sprint(i%20))
		_ = os.MkdirAll(sub, 0o755)
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprint(i)), []byte(line), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	env, err := local.New(local.Options{Dir: dir, Home: dir})
	require.NoError(b, err)
	defer env.Close()
	q, err := searchArgs{Pattern: "needle"}.check()
	require.NoError(b, err)
	p := place{env, dir}
	for b.Loop() {
		s := &searcher{q: q, p: p, g: &guard{}, root: target{real: dir}, want: 51}
		if err := s.run(b.Context(), sandbox.FileInfo{Mode: os.ModeDir}); err != nil {
			b.Fatal(err)
		}
	}
}
