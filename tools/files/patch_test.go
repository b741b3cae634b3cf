package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"herald/tools"
	"herald/tools/needtest"
	"herald/tools/sandbox"
)

func TestReplace_Strategies(t *testing.T) {
	for _, tc := range []struct{ name, content, old, new, want, how string }{
		{"exact", "a b c", "b", "X", "a X c", "exact"},
		{"exact inside a line wins", "foo(1)\n  foo(2)\n", "foo(1)", "bar(1)", "bar(1)\n  foo(2)\n", "exact"},
		{"empty deletes", "a\nb\nc\n", "b\n", "", "a\nc\n", "exact"},
		{"trailing space", "one  \ntwo\t\nthree\n", "one\ntwo", "ONE\nTWO", "ONE\nTWO\nthree\n", "trailing_space"},
		{"indentation", "func f() {\n\t\tif x {\n\t\t\ty()\n\t\t}\n}\n", "if x {\n\ty()\n}", "if x {\n\tz()\n}", "func f() {\n\t\tif x {\n\t\t\tz()\n\t\t}\n}\n", "indentation"},
		{"indentation away", "if x:\n    y()\n    z()\n", "        y()\n        z()", "        y(1)\n        z(2)", "if x:\n    y(1)\n    z(2)\n", "indentation"},
		{"line trimmed", "a:\n  b:\n      c: 1\n", "b:\n  c: 1", "b:\n  c: 2", "a:\n  b:\n    c: 2\n", "line_trimmed"},
		{"white space runs", "x   =  1\ny = 2\n", "x = 1\ny = 2\n", "x = 3\ny = 4\n", "x = 3\ny = 4\n", "whitespace"},
		{"white space inside a line", "call( a,   b ) // note\n", "a, b", "c, d", "call( c, d ) // note\n", "whitespace"},
		{"escapes", "print(\"a\")\nnext\n", `print(\"a\")\nnext`, `print(\"b\")\nnext`, "print(\"b\")\nnext\n", "escapes"},
		{"typography", "say \u201chello\u201d \u2013 now\n", `say "hello" - now`, `say "bye"`, "say \"bye\"\n", "unicode"},
		{"blank lines around", "start\n\tone\n\ttwo\nend\n", "\n\n\tone\n\ttwo\n\n", "\n\n\tuno\n\tdos\n\n", "start\n\tuno\n\tdos\nend\n", "boundary"},
		{"anchors", "begin()\n  value := compute(alpha, beta)\nfinish()\n", "begin()\n  value := compute(alpha, betta)\nfinish()", "begin()\nfinish()", "begin()\nfinish()\n", "anchors"},
		{"end of file without line end", "a\nb", "b", "c", "a\nc", "exact"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, how, n, err := Replace(tc.content, tc.old, tc.new, false)
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.how, how)
			require.Equal(t, 1, n)
		})
	}
	require.Len(t, strategies, 9)
}

func TestReplace_Refusals(t *testing.T) {
	for _, tc := range []struct {
		name, content, old, new string
		err                     error
		text                    string
	}{
		{"nowhere", "abc", "x", "y", ErrNoMatch, ""},
		{"twice", "x\ny\nx\n", "x", "z", ErrAmbiguous, "2 places (lines 1, 3)"},
		{"twice, fuzzily", "  x y\n\tx y\n", "x  y", "z", ErrAmbiguous, "2 places"},
		{"empty", "abc", "", "y", nil, "old_string is empty"},
		{"same", "abc", "a", "a", nil, "are the same"},
		{"middle too different", "begin\naaaaaaaaaa\nend\n", "begin\nbbbbbbbbbb\nend", "x", ErrNoMatch, ""},
		{"blank text is no text", "a\n  \nb\n", "\t\n\t", "x", ErrNoMatch, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, _, err := Replace(tc.content, tc.old, tc.new, false)
			require.Error(t, err)
			if tc.err != nil {
				require.ErrorIs(t, err, tc.err)
			}
			require.ErrorContains(t, err, tc.text)
		})
	}
	got, _, n, err := Replace("x\ny\n x\n", "x", "z", true)
	require.NoError(t, err)
	require.Equal(t, "z\ny\n z\n", got)
	require.Equal(t, 2, n)
}

func checkReplace(t require.TestingT, content, old, new string, all bool) {
	got, how, n, err := Replace(content, old, new, all)
	if old == "" || old == new {
		require.Error(t, err)
		return
	}
	switch count := strings.Count(content, old); {
	case count == 1, count > 1 && all:
		require.NoError(t, err)
		require.Equal(t, strings.ReplaceAll(content, old, new), got)
		require.Equal(t, "exact", how)
		require.Equal(t, count, n)
	case count > 1:
		require.ErrorIs(t, err, ErrAmbiguous)
	}
	if err != nil {
		require.Empty(t, got)
	}
}

func FuzzReplace(f *testing.F) {
	for _, s := range [][3]string{{"a b c", "b", "x"}, {"a\n\tb\n", "b", ""}, {"x  y\n", "x y", "z"}, {"\u201ca\u201d", `"a"`, "b"}, {"a\r\nb", "a\nb", "c"}, {`a\n`, "a\n", ""}, {"l1\nl2\nl3", "l1\nlx\nl3", "q"}} {
		f.Add(s[0], s[1], s[2], false)
		f.Add(s[0], s[1], s[2], true)
	}
	f.Fuzz(func(t *testing.T, content, old, new string, all bool) { checkReplace(t, content, old, new, all) })
}

// Whatever strategy finds a unique block, the lines around it stay as they are.
func TestReplace_KeepsTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringMatching(`[ \t]{0,3}[a-c"']{0,4}[ \t]{0,2}`)
		lines := rapid.SliceOfN(line, 1, 12).Draw(t, "lines")
		from := rapid.IntRange(0, len(lines)-1).Draw(t, "from")
		to := rapid.IntRange(from+1, len(lines)).Draw(t, "to")
		old := strings.Join(lines[from:to], "\n")
		if rapid.Bool().Draw(t, "mangle") {
			old = strings.ReplaceAll(strings.ReplaceAll(old, "\t", "  "), "'", "\u2019")
		}
		content := strings.Join(lines, "\n") + "\n"
		got, _, _, err := Replace(content, old, "NEW", false)
		if err != nil {
			return
		}
		i := strings.Index(got, "NEW")
		require.GreaterOrEqual(t, i, 0)
		before, after := strings.TrimRight(got[:i], " \t"), got[i+3:]
		require.True(t, strings.HasPrefix(content, before), "%q before %q", got, content)
		require.True(t, strings.HasSuffix(content, after), "%q after %q", got, content)
	})
}

func TestPatch_Replace(t *testing.T) {
	b := newBench(t, nil)
	path := b.put("a.go", "package a\n\nfunc f() int {\n\treturn 1\n}\n")
	a := b.do("patch", obj{"mode": "replace", "path": "a.go", "old_string": "return 1", "new_string": "return 2"})
	require.Equal(t, []string{path}, a.FilesModified)
	require.Equal(t, 1, a.Replacements)
	require.Equal(t, "--- a/a.go\n+++ b/a.go\n@@ -1,5 +1,5 @@\n package a\n \n func f() int {\n-\treturn 1\n+\treturn 2\n }\n", a.Diff)
	require.Nil(t, a.Lint)
	a = b.do("patch", obj{"mode": "replace", "path": "a.go", "old_string": "}\n", "new_string": ""})
	require.Contains(t, string(a.Lint), "a.go")
	b.refuse("old_string is missing", "patch", obj{"mode": "replace", "path": "a.go", "new_string": ""})
	b.refuse("new_string is missing; give an empty string", "patch", obj{"mode": "replace", "path": "a.go", "old_string": "x"})
	b.refuse("does not exist", "patch", obj{"mode": "replace", "path": "b.go", "old_string": "x", "new_string": "y"})
	b.refuse(`mode: "x" is not known; allowed are replace and patch`, "patch", obj{"mode": "x"})
}

func TestPatch_FailuresEscalate(t *testing.T) {
	b := newBench(t, nil)
	b.put("a.txt", "one\n")
	args := obj{"mode": "replace", "path": "a.txt", "old_string": "two", "new_string": "x"}
	b.refuse("Read the file and copy the text", "patch", args)
	b.refuse("second try", "patch", args)
	b.refuse("3 tries failed on this file: stop guessing", "patch", args)
	b.do("read_file", obj{"path": "a.txt"})
	b.refuse("Read the file and copy the text", "patch", args)
}

func TestPatch_KeepsLineEnds(t *testing.T) {
	b := newBench(t, nil)
	b.put("dos.txt", "one\r\ntwo\r\nthree\r\n")
	b.do("patch", obj{"mode": "replace", "path": "dos.txt", "old_string": "one\ntwo", "new_string": "1\n2"})
	require.Equal(t, "1\r\n2\r\nthree\r\n", b.get("dos.txt"))
	b.do("patch", obj{"mode": "patch", "patch": "*** Update File: dos.txt\n 2\n+2.5\n three"})
	require.Equal(t, "1\r\n2\r\n2.5\r\nthree\r\n", b.get("dos.txt"))
	b.put("raw.txt", "caf\xe9 one\n")
	b.do("patch", obj{"mode": "replace", "path": "raw.txt", "old_string": "one", "new_string": "two"})
	require.Equal(t, "caf\xe9 two\n", b.get("raw.txt"), "bytes that are no UTF-8 are kept")
}

const manyFiles = `*** Begin Patch
*** Update File: a.txt
@@ two
 three
-four
+FOUR
+four and a half
 five
*** Add File: sub/new.txt
+hello
+
+world
***Delete File: old.txt
*** Move File: m.sh -> moved/m.sh
*** Update File: u.txt
*** Move to: v.txt
-x
+y
*** End Patch
`

func manyFilesBench(t *testing.T) *bench {
	b := newBench(t, nil)
	b.put("a.txt", "one\ntwo\nthree\nfour\nfive\nsix\n")
	b.put("old.txt", "old\n")
	require.NoError(t, os.Chmod(b.put("m.sh", "#!/bin/sh\n"), 0o755))
	b.put("u.txt", "x\n")
	return b
}

func TestPatch_V4A(t *testing.T) {
	b := manyFilesBench(t)
	a := b.do("patch", obj{"mode": "patch", "patch": manyFiles})
	require.Equal(t, "one\ntwo\nthree\nFOUR\nfour and a half\nfive\nsix\n", b.get("a.txt"))
	require.Equal(t, "hello\n\nworld\n", b.get("sub/new.txt"))
	require.NoFileExists(t, filepath.Join(b.work, "old.txt"))
	require.NoFileExists(t, filepath.Join(b.work, "m.sh"))
	st, err := os.Stat(filepath.Join(b.work, "moved/m.sh"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o755), st.Mode())
	require.Equal(t, "y\n", b.get("v.txt"))
	require.Len(t, a.FilesModified, 7)
	require.Len(t, a.FilesCreated, 3)
	require.Len(t, a.FilesDeleted, 3)
	for _, want := range []string{"--- a/a.txt\n+++ b/a.txt\n", "--- /dev/null\n+++ b/sub/new.txt\n@@ -0,0 +1,3 @@\n", "--- a/old.txt\n+++ /dev/null\n", "--- a/m.sh\n+++ b/moved/m.sh\n", "--- a/u.txt\n+++ b/v.txt\n"} {
		require.Contains(t, a.Diff, want)
	}
}

// tree is the content of all files below a directory.
func tree(t *testing.T, dir string) map[string]string {
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		out[path] = string(b)
		return err
	}))
	return out
}

func TestPatch_V4A_AllOrNothing(t *testing.T) {
	for name, patch := range map[string]string{
		"text not found":       strings.Replace(manyFiles, "-x\n", "-nope\n", 1),
		"missing file":         strings.Replace(manyFiles, "old.txt", "nowhere.txt", 1),
		"target exists":        strings.Replace(manyFiles, "moved/m.sh", "a.txt", 1),
		"added file exists":    strings.Replace(manyFiles, "sub/new.txt", "u.txt", 1),
		"denied":               strings.Replace(manyFiles, "sub/new.txt", "~/.ssh/x", 1),
		"not a patch line":     strings.Replace(manyFiles, "-x", "x", 1),
		"no operation":         "*** Begin Patch\n*** End Patch",
		"no text":              "",
		"move without a path":  "*** Move File: a.txt -> ",
		"unknown header":       "*** Rename File: a.txt",
		"text after the end":   manyFiles + "more",
		"text before a header": "hello\n" + manyFiles,
		"empty update":         "*** Update File: a.txt\n*** End Patch",
		"no file name":         "*** Add File:\n+x",
	} {
		t.Run(name, func(t *testing.T) {
			b := manyFilesBench(t)
			before := tree(t, b.work)
			require.NotEmpty(t, b.try("patch", obj{"mode": "patch", "patch": patch}).Error)
			require.Equal(t, before, tree(t, b.work))
		})
	}
}

// failing breaks the n-th change on disk.
type failing struct {
	sandbox.Environment
	left int
}

var errDisk = errors.New("disk full")

func (f *failing) fails() bool { f.left--; return f.left == -1 }

func (f *failing) WriteFile(ctx context.Context, path string, data []byte, mode fs.FileMode) error {
	if f.fails() {
		return errDisk
	}
	return f.Environment.WriteFile(ctx, path, data, mode)
}

func (f *failing) Remove(ctx context.Context, path string) error {
	if f.fails() {
		return errDisk
	}
	return f.Environment.Remove(ctx, path)
}

// A change that fails on disk takes back those before it, at whichever step it happens.
func TestPatch_V4A_UndoneWhenTheDiskFails(t *testing.T) {
	for n := range 7 {
		b := manyFilesBench(t)
		before := tree(t, b.work)
		b.fam.deps.Environment = func(tools.Caller) (sandbox.Environment, error) { return &failing{b.env, n}, nil }
		a := b.try("patch", obj{"mode": "patch", "patch": manyFiles})
		require.Contains(t, a.Error, "nothing was changed", "step %d", n)
		require.Equal(t, before, tree(t, b.work), "step %d", n)
		if st, err := os.Stat(filepath.Join(b.work, "m.sh")); n >= 0 {
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o755), st.Mode())
		}
	}
}

func TestApplyHunks(t *testing.T) {
	for _, tc := range []struct{ name, content, patch, want, err string }{
		{"context keeps the file's own text", "a  \nb\nc\n", " a\n-b\n+B\n c", "a  \nB\nc\n", ""},
		{"insert after a hint", "x\ny\nz\n", "@@ y\n+new", "x\ny\nnew\nz\n", ""},
		{"append", "x\n", "+y", "x\ny\n", ""},
		{"hint chooses", "f\n a\ng\n a\n", "@@ g\n- a\n+ b", "f\n a\ng\n b\n", ""},
		{"ambiguous", "a\nb\na\n", "-a\n+x", "", "2 places"},
		{"end of file chooses", "a\nb\na\n", "-a\n+x\n*** End of File", "a\nb\nx\n", ""},
		{"in order", "a\nb\na\n", " a\n-b\n+B\n@@\n-a\n+A", "a\nB\nA\n", ""},
		{"blank context line", "a\n\nb\n", " a\n\n-b\n+c", "a\n\nc\n", ""},
		{"indentation follows the file", "\tif x {\n\t\ty()\n\t}\n", " if x {\n-    y()\n+    z()\n }", "\tif x {\n\t    z()\n\t}\n", ""},
		{"no line end at the end", "a\nb", "-b\n+c", "a\nc", ""},
		{"remove all", "a\n", "-a", "", ""},
		{"no hint line", "a\n", "@@ nope\n-a\n+b", "", `no line "nope"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ops, err := parseV4A("*** Begin Patch\n*** Update File: f\n" + tc.patch + "\n*** End Patch")
			require.NoError(t, err)
			got, err := applyHunks(tc.content, ops[0].hunks)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}

func FuzzV4A(f *testing.F) {
	f.Add(manyFiles, "one\ntwo\nthree\nfour\nfive\nsix\n")
	f.Add("*** Update File: a\n@@ x\n-a\n+b\n*** End of File", "x\na\n")
	f.Add("***Move File: a -> b", "")
	f.Add("*** Add File: a\n+\n\n+x", "\r\n")
	f.Add("***Update File:0\n@@\n+", "x") // an added empty line was lost, found by fuzzing
	f.Fuzz(func(t *testing.T, patch, content string) {
		ops, err := parseV4A(patch)
		if err != nil {
			return
		}
		reserved := map[string]bool{}
		for _, p := range headerPaths(patch) {
			reserved[p] = true
		}
		for _, op := range ops {
			if !reserved[op.path] || op.to != "" && !reserved[op.to] {
				t.Fatalf("%q and %q are not reserved by the headers of %q", op.path, op.to, patch)
			}
			if op.kind != opUpdate {
				continue
			}
			got, err := applyHunks(content, op.hunks)
			if err != nil {
				continue
			}
			removed, added := 0, 0
			for _, h := range op.hunks {
				for _, l := range h.lines {
					switch l.kind {
					case '-':
						removed++
					case '+':
						added++
					}
				}
			}
			if have, want := lineCount(got), lineCount(content)-removed+added; have != want && got != "" {
				t.Fatalf("%d lines, want %d: %q to %q by %q", have, want, content, got, patch)
			}
		}
	})
}

// lineCount is how many lines a file of this content has; the empty line of "\n" counts.
func lineCount(s string) int {
	if s == "" {
		return 0
	}
	return strings.Count(strings.TrimSuffix(s, "\n"), "\n") + 1
}

// What the diff says, patch(1) does.
func TestUnifiedDiff_AppliesWithPatch(t *testing.T) {
	program, err := exec.LookPath("git")
	if err != nil {
		needtest.Lacking(t, "git is not installed")
	}
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			s := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "", "long line"}), 1, 25).Draw(t, "lines"), "\n")
			if rapid.Bool().Draw(t, "ended") {
				s += "\n"
			}
			return s
		})
		old, new := text.Draw(t, "old"), text.Draw(t, "new")
		if old == new || old == "" || new == "" {
			return
		}
		file := filepath.Join(dir, "f")
		require.NoError(t, os.WriteFile(file, []byte(old), 0o644))
		cmd := exec.Command(program, "apply", "--unidiff-zero", "--whitespace=nowarn", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(unifiedDiff("a/f", "b/f", old, new))
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_GLOBAL=/dev/null")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, new, string(got))
	})
}
