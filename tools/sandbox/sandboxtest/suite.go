package sandboxtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"herald/tools/sandbox"
	"herald/tools/sandbox/output"
	"herald/tools/sandbox/shell"
)

// Subject is an environment under test with an empty directory of its own in it, in its real spelling.
type Subject struct {
	sandbox.Environment
	Base string
	// Again makes the same environment once more, as the next daemon would.
	Again func(t *testing.T) sandbox.Environment
}

// Suite is what every environment passes. Background commands outlive the environments that it makes.
func Suite(t *testing.T, again func(t *testing.T) sandbox.Environment) {
	env := again(t)
	base, err := env.RealPath(t.Context(), env.Home())
	require.NoError(t, err)
	for _, tc := range []struct {
		name string
		test func(*testing.T, Subject)
	}{
		{"ExitCodes", suiteExitCodes}, {"Dir", suiteDir}, {"SafeDir", suiteSafeDir}, {"Stdin", suiteStdin}, {"Env", suiteEnv},
		{"Text", suiteText}, {"Spill", suiteSpill}, {"LongLine", suiteLongLine}, {"Timeout", suiteTimeout}, {"Interrupt", suiteInterrupt},
		{"TermIgnored", suiteTermIgnored}, {"SetsidGrandchild", suiteSetsid}, {"UnmarkedGrandchild", suiteUnmarked}, {"DoubleFork", suiteDoubleFork}, {"Drain", suiteDrain},
		{"Parallel", suiteParallel}, {"Files", suiteFiles}, {"NastyNames", suiteNames}, {"Write", suiteWrite}, {"RealPath", suiteRealPath},
		{"Background", suiteBackground}, {"Input", suiteInput}, {"BackgroundKill", suiteBackgroundKill}, {"Resume", suiteResume}, {"BackgroundLog", suiteBackgroundLog},
	} {
		dir := path.Join(base, "suite-"+sandbox.NewID())
		t.Run(tc.name, func(t *testing.T) {
			require.NoError(t, env.MkdirAll(t.Context(), dir, 0o755))
			tc.test(t, Subject{env, dir, again})
		})
	}
}

// Run runs a command in the subject's directory.
func (s Subject) Run(t *testing.T, c sandbox.Command) sandbox.Result {
	t.Helper()
	if c.Start == "" {
		c.Start = s.Base
	}
	r, err := s.Exec(t.Context(), c)
	require.NoError(t, err)
	return r
}

// Gone waits until a process of the environment has ended.
func (s Subject) Gone(t *testing.T, pid int) {
	t.Helper()
	check := fmt.Sprintf(`s=$(cat /proc/%d/stat 2>/dev/null) && case ${s##*) } in Z*) ;; *) echo alive ;; esac`, pid)
	for deadline := time.Now().Add(30 * time.Second); s.Run(t, sandbox.Command{Line: check}).Output != ""; {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", pid)
		}
	}
}

func suiteExitCodes(t *testing.T, s Subject) {
	for _, tc := range []struct {
		line, out string
		code      int
	}{
		{"echo hi; echo err >&2", "hi\nerr\n", 0},
		{"exit 3", "", 3},
		{"false", "", 1},
		{"kill -9 $$", "", 137},
		{"kill -TERM $$", "", 143},
		{"printf no-newline", "no-newline", 0},
		{"read x; echo got:$?", "got:1\n", 0},
		{"set -e; false; echo never", "", 1},
		{"exec sh -c 'exit 9'", "", 9},
		{"trap 'echo bye' EXIT; exit 4", "bye\n", 4},
		{"printf '%s\\n' \"it's $((1+1))\" | cat", "it's 2\n", 0},
		{"cat <<'E'\na 'b' \"c\"\nE", "a 'b' \"c\"\n", 0},
	} {
		r := s.Run(t, sandbox.Command{Line: tc.line})
		require.Equal(t, tc.out, r.Output, tc.line)
		require.Equal(t, tc.code, r.ExitCode, tc.line)
	}
	require.Equal(t, 127, s.Run(t, sandbox.Command{Line: "nosuchcommand-x"}).ExitCode)
	require.NotZero(t, s.Run(t, sandbox.Command{Line: "echo 'open"}).ExitCode)
	for line, want := range map[string]string{"": "empty", "a\x00b": "NUL", strings.Repeat("x", sandbox.MaxCommand+1): "100001 bytes"} {
		_, err := s.Exec(t.Context(), sandbox.Command{Line: line})
		require.ErrorContains(t, err, want)
	}
}

func suiteDir(t *testing.T, s Subject) {
	a, b := sandbox.NewID(), sandbox.NewID()
	r := s.Run(t, sandbox.Command{Line: "mkdir -p one/two && cd one", Session: a})
	require.True(t, r.Observed)
	require.Equal(t, s.Base+"/one", r.Dir)
	require.Equal(t, s.Base+"/one\n", s.Run(t, sandbox.Command{Line: "pwd", Session: a}).Output)
	require.Equal(t, s.Base+"\n", s.Run(t, sandbox.Command{Line: "pwd", Session: b}).Output)

	r = s.Run(t, sandbox.Command{Line: "cd two; exit 5", Session: a})
	require.Equal(t, 5, r.ExitCode)
	require.Equal(t, s.Base+"/one/two", r.Dir, "a command that exits reports its directory too")

	r = s.Run(t, sandbox.Command{Line: "cd /; pwd", Session: a, Dir: s.Base})
	require.Equal(t, "/\n", r.Output)
	require.Equal(t, s.Base+"/one/two", r.Dir, "a directory for one command changes nothing for the next")

	nasty := "it's \"a\"\n$(b):c"
	r = s.Run(t, sandbox.Command{Line: `mkdir "$N" && cd "$N"`, Session: b, Env: map[string]string{"N": nasty}})
	require.Equal(t, s.Base+"/"+nasty, r.Dir)
	require.Equal(t, s.Base+"/"+nasty+"\n", s.Run(t, sandbox.Command{Line: "pwd", Session: b}).Output)

	dir, known := s.Dir(a)
	require.True(t, known)
	require.Equal(t, s.Base+"/one/two", dir)
	s.Forget(a)
	_, known = s.Dir(a)
	require.False(t, known)
	r = s.Run(t, sandbox.Command{Line: `printf '\001HERALD-DIR:x-1:/etc:x-1\001'`, Session: a})
	require.Equal(t, s.Base, r.Dir, "a report of nobody is output")
	require.Contains(t, r.Output, "/etc")
}

func suiteSafeDir(t *testing.T, s Subject) {
	a := sandbox.NewID()
	fallback, _ := s.Dir("")
	fallback, err := s.RealPath(t.Context(), fallback)
	require.NoError(t, err)
	s.Run(t, sandbox.Command{Line: "mkdir gone && cd gone", Session: a})
	s.Run(t, sandbox.Command{Line: "rmdir gone"})
	r := s.Run(t, sandbox.Command{Line: "pwd -P", Session: a})
	require.Equal(t, fallback+"\n", r.Output)
	require.Contains(t, r.Note, "gone")

	_, err = s.Exec(t.Context(), sandbox.Command{Line: "pwd", Dir: s.Base + "/nowhere"})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = s.Exec(t.Context(), sandbox.Command{Line: "pwd", Dir: "relative"})
	require.ErrorContains(t, err, "not an absolute path")

	b := sandbox.NewID()
	s.Run(t, sandbox.Command{Line: "mkdir was && cd was", Session: b})
	s.Run(t, sandbox.Command{Line: "rmdir was && touch was"})
	_, err = s.Exec(t.Context(), sandbox.Command{Line: "pwd", Session: b})
	require.ErrorContains(t, err, "not a directory", "other errors are not papered over")
}

func suiteStdin(t *testing.T, s Subject) {
	big := strings.Repeat("0123456789", 100_000)
	require.Equal(t, "1000000\n", s.Run(t, sandbox.Command{Line: "wc -c", Stdin: strings.NewReader(big)}).Output)
	require.Equal(t, "done\n", s.Run(t, sandbox.Command{Line: "echo done", Stdin: strings.NewReader(big)}).Output, "unread input holds nothing up")
	require.Equal(t, "a\nb\n", s.Run(t, sandbox.Command{Line: "read x; echo a; cat", Stdin: strings.NewReader("1\nb\n")}).Output)
}

// ArgumentsWithValue names the processes of the environment that have the value of VALUE in their arguments.
const ArgumentsWithValue = `for f in /proc/[0-9]*/cmdline; do l=$(tr '\0' ' ' <$f); case $l in *"$VALUE"*) echo "$f: $l" ;; esac; done 2>/dev/null; echo looked`

func suiteEnv(t *testing.T, s Subject) {
	value := "two\nlines 'and' $quotes\\"
	r := s.Run(t, sandbox.Command{Line: `printf %s "$VALUE"`, Env: map[string]string{"VALUE": value}})
	require.Equal(t, value, r.Output)
	r = s.Run(t, sandbox.Command{Line: "echo ${VALUE-unset}; export LATER=1"})
	require.Equal(t, "unset\n", r.Output)
	require.Equal(t, "unset\n", s.Run(t, sandbox.Command{Line: "echo ${LATER-unset}"}).Output, "a shell of its own for each command")
	secret := "s3cr3t-" + sandbox.NewID()
	r = s.Run(t, sandbox.Command{Line: ArgumentsWithValue, Env: map[string]string{"VALUE": secret}})
	require.Equal(t, "looked\n", r.Output, "no value in an argument list")
}

func suiteText(t *testing.T, s Subject) {
	r := s.Run(t, sandbox.Command{Line: `printf 'a\000b\377c\303'; printf '\251d'; printf '\342\202'`})
	require.Equal(t, "a\x00b\ufffdcéd\ufffd", r.Output)
	r = s.Run(t, sandbox.Command{Line: "head -c 200000 /dev/urandom"})
	require.True(t, utf8.ValidString(r.Output))
	r = s.Run(t, sandbox.Command{Line: `printf '\001HERALD-'`})
	require.Equal(t, "\x01HERALD-", r.Output)
}

func suiteSpill(t *testing.T, s Subject) {
	r := s.Run(t, sandbox.Command{Line: "echo FIRST; yes 0123456789abcde | head -c 2000000; echo; echo LAST"})
	require.Zero(t, r.ExitCode)
	require.True(t, r.Truncated)
	require.EqualValues(t, 2_000_000+12, r.TotalChars)
	require.Less(t, len(r.Output), output.DefaultWindow+400)
	require.True(t, strings.HasPrefix(r.Output, "FIRST\n"))
	require.True(t, strings.HasSuffix(r.Output, "LAST\n"))
	st, err := os.Lstat(r.FullPath)
	require.NoError(t, err)
	require.EqualValues(t, 2_000_012, st.Size())
	require.Equal(t, fs.FileMode(0o600), st.Mode())
}

func suiteLongLine(t *testing.T, s Subject) {
	line := ": '" + strings.Repeat("x y\n", sandbox.MaxCommand/4-8) + "'; echo ok"
	require.Equal(t, "ok\n", s.Run(t, sandbox.Command{Line: line}).Output)
	line = ": " + strings.Repeat("'", (sandbox.MaxCommand-20)/2*2) + "; echo ok"
	require.Equal(t, "ok\n", s.Run(t, sandbox.Command{Line: line}).Output)
}

func suiteTimeout(t *testing.T, s Subject) {
	r := s.Run(t, sandbox.Command{Line: "echo before; sleep 60; echo after", Timeout: 2 * time.Second})
	require.Equal(t, sandbox.ExitTimeout, r.ExitCode)
	require.True(t, r.TimedOut)
	require.True(t, strings.HasPrefix(r.Output, "before\n"), r.Output)
	require.Contains(t, r.Output, "\n[the command was stopped after")
	require.NotContains(t, r.Output, "HERALD")
}

func suiteInterrupt(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := s.Exec(ctx, sandbox.Command{Line: "echo before; echo $$; sleep 60", Start: s.Base, Output: Writer(func([]byte) { cancel() })})
	require.NoError(t, err)
	require.Equal(t, sandbox.ExitInterrupted, r.ExitCode)
	require.True(t, r.Interrupted)
	require.True(t, strings.HasPrefix(r.Output, "before\n"), r.Output)
	require.True(t, strings.HasSuffix(r.Output, "\n[the command was interrupted]"), r.Output)
	r, err = s.Exec(ctx, sandbox.Command{Line: "echo never > ran", Start: s.Base})
	require.NoError(t, err)
	require.Equal(t, sandbox.ExitInterrupted, r.ExitCode)
	_, err = s.Stat(t.Context(), s.Base+"/ran")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Interrupted runs a command, interrupts it when it printed a line, and returns that line as a process id.
func (s Subject) Interrupted(t *testing.T, line string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	r, err := s.Exec(ctx, sandbox.Command{Line: line, Start: s.Base, Output: Writer(func([]byte) { cancel() })})
	require.NoError(t, err)
	require.Equal(t, sandbox.ExitInterrupted, r.ExitCode)
	pid, err := strconv.Atoi(strings.SplitN(r.Output, "\n", 2)[0])
	require.NoError(t, err, r.Output)
	return pid
}

func suiteTermIgnored(t *testing.T, s Subject) {
	s.Gone(t, s.Interrupted(t, "trap '' TERM; echo $$; while :; do sleep 0.2; done"))
}

func suiteSetsid(t *testing.T, s Subject) {
	s.Gone(t, s.Interrupted(t, "setsid sh -c 'echo $$; exec sleep 300' & wait; sleep 300"))
}

// One that threw away its mark is found by the snapshot that was made before the first signal.
func suiteUnmarked(t *testing.T, s Subject) {
	s.Gone(t, s.Interrupted(t, "env -i PATH=\"$PATH\" setsid sh -c 'echo $$; exec sleep 300' & wait; sleep 300"))
}

// One that left the tree before anybody looked is found by the mark in its environment.
func suiteDoubleFork(t *testing.T, s Subject) {
	s.Gone(t, s.Interrupted(t, "(setsid sh -c 'sleep 0.3; echo $$; exec sleep 300' &) ; sleep 300"))
}

func suiteDrain(t *testing.T, s Subject) {
	began := time.Now()
	r := s.Run(t, sandbox.Command{Line: "sleep 120 & echo $!"})
	require.Less(t, time.Since(began), 60*time.Second)
	pid := strings.TrimSpace(r.Output)
	require.Equal(t, "alive\n", s.Run(t, sandbox.Command{Line: "kill -0 " + pid + " && echo alive; kill -9 " + pid}).Output,
		"a background child outlives a command that ended by itself")
}

func suiteParallel(t *testing.T, s Subject) {
	var wg sync.WaitGroup
	for i := range 50 {
		name, session := "s"+strconv.Itoa(i), sandbox.NewID()
		wg.Go(func() {
			if _, err := s.Exec(t.Context(), sandbox.Command{Line: "mkdir " + name + " && cd " + name, Session: session, Start: s.Base}); err != nil {
				t.Error(err)
				return
			}
			r, err := s.Exec(t.Context(), sandbox.Command{Line: "pwd; echo " + name, Session: session, Start: s.Base})
			if err != nil || r.Output != s.Base+"/"+name+"\n"+name+"\n" {
				t.Errorf("%s: %q %v", name, r.Output, err)
			}
		})
	}
	wg.Wait()
}

func suiteFiles(t *testing.T, s Subject) {
	ctx, a, b := t.Context(), s.Base+"/a", s.Base+"/b"
	require.NoError(t, s.WriteFile(ctx, a, []byte("12345"), 0o640))
	st, err := s.Stat(ctx, a)
	require.NoError(t, err)
	require.Equal(t, "a", st.Name)
	require.EqualValues(t, 5, st.Size)
	require.True(t, st.IsRegular())
	require.WithinDuration(t, time.Now(), st.ModTime, time.Hour)
	require.NoError(t, s.Chmod(ctx, a, 0o604))

	_, err = s.ReadFile(ctx, a, 4)
	require.ErrorIs(t, err, sandbox.ErrTooLarge)
	got, err := s.ReadFile(ctx, a, 5)
	require.NoError(t, err)
	require.Equal(t, "12345", string(got))
	_, err = s.ReadFile(ctx, "/proc/version", 100_000)
	require.NoError(t, err, "a file that says that it is empty")
	f, err := s.Open(ctx, a)
	require.NoError(t, err)
	got, err = io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, "12345", string(got))

	s.Run(t, sandbox.Command{Line: "mkfifo pipe; ln -s a link; ln -s none dangling; mkdir -p sub/deep; : > sub/.hidden"})
	for _, name := range []string{"pipe", "link", "sub", "dangling"} {
		_, err = s.Open(ctx, s.Base+"/"+name)
		require.ErrorIs(t, err, sandbox.ErrNotRegular, name)
	}
	for _, name := range []string{"none", "none/at/all"} {
		_, err = s.Open(ctx, s.Base+"/"+name)
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = s.Stat(ctx, s.Base+"/"+name)
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = s.List(ctx, s.Base+"/"+name)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	_, err = s.Stat(ctx, "relative")
	require.ErrorContains(t, err, "not absolute")

	link, err := s.Lstat(ctx, s.Base+"/link")
	require.NoError(t, err)
	require.Equal(t, fs.ModeSymlink, link.Mode.Type())
	st, err = s.Stat(ctx, s.Base+"/link")
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o604), st.Mode)

	list, err := s.List(ctx, s.Base+"/sub")
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, ".hidden", list[0].Name)
	require.True(t, list[1].IsDir())
	_, err = s.List(ctx, a)
	require.Error(t, err)
	empty, err := s.List(ctx, s.Base+"/sub/deep")
	require.NoError(t, err)
	require.Empty(t, empty)

	require.NoError(t, s.WriteFile(ctx, b, []byte("b"), 0o644))
	require.ErrorIs(t, s.Rename(ctx, a, b), fs.ErrExist)
	require.ErrorIs(t, s.Rename(ctx, a, s.Base+"/sub"), fs.ErrExist, "a directory is not moved into")
	require.ErrorIs(t, s.Rename(ctx, s.Base+"/none", s.Base+"/new"), fs.ErrNotExist)
	require.NoError(t, s.Remove(ctx, b))
	require.NoError(t, s.Rename(ctx, a, b))
	require.ErrorIs(t, s.Remove(ctx, a), fs.ErrNotExist)
	require.Error(t, s.Remove(ctx, s.Base+"/sub"), "a directory with files")
	require.NoError(t, s.Remove(ctx, s.Base+"/sub/deep"))
	require.NoError(t, s.Remove(ctx, s.Base+"/link"))
	_, err = s.Stat(ctx, b)
	require.NoError(t, err, "removing a link leaves its target")

	require.NoError(t, s.MkdirAll(ctx, s.Base+"/x/y/z", 0o700))
	require.NoError(t, s.MkdirAll(ctx, s.Base+"/x/y/z", 0o755))
	st, err = s.Stat(ctx, s.Base+"/x/y/z")
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), st.Mode.Perm())
}

func suiteNames(t *testing.T, s Subject) {
	names := []string{"-rf", "two\nlines", "'quote'", `"double" $(touch pwned) ` + "`touch pwned`", "\nbegins", "ends\n", "back\\slash", "*", "é\xff", " ", "..x", "~", "a;b&c|d>e"}
	dir := s.Base + "/-d 'x'\n$HOME"
	ctx := t.Context()
	require.NoError(t, s.MkdirAll(ctx, dir, 0o755))
	for i, name := range names {
		p := dir + "/" + name
		require.NoError(t, s.WriteFile(ctx, p, []byte(name), 0o644), "%q", name)
		got, err := s.ReadFile(ctx, p, 1000)
		require.NoError(t, err)
		require.Equal(t, name, string(got))
		if i >= 4 {
			continue
		}
		st, err := s.Lstat(ctx, p)
		require.NoError(t, err)
		require.Equal(t, name, st.Name)
		real, err := s.RealPath(ctx, p)
		require.NoError(t, err)
		require.Equal(t, p, real)
		require.NoError(t, s.Rename(ctx, p, p+"-2"))
		require.NoError(t, s.Rename(ctx, p+"-2", p))
		require.NoError(t, s.Chmod(ctx, p, 0o600))
	}
	odd := "not\xff\\utf-8 \\0101%s"
	session := sandbox.NewID()
	require.Equal(t, dir+"/"+odd, s.Run(t, sandbox.Command{Line: `mkdir -- "$(printf 'not\377%s' '\utf-8 \0101%s')" && cd not*`, Session: session, Start: dir}).Dir)
	require.NotEmpty(t, s.Run(t, sandbox.Command{Line: "pwd", Session: session}).Output)
	require.Equal(t, dir+"/"+odd, s.Run(t, sandbox.Command{Line: "true", Session: session}).Dir)
	require.NoError(t, s.Remove(ctx, dir+"/"+odd))
	list, err := s.List(ctx, dir)
	require.NoError(t, err)
	var found []string
	for _, i := range list {
		found = append(found, i.Name)
		require.EqualValues(t, len(i.Name), i.Size)
		require.NoError(t, s.Remove(ctx, dir+"/"+i.Name))
	}
	require.ElementsMatch(t, names, found)
	require.NoError(t, s.Remove(ctx, dir))
}

func suiteWrite(t *testing.T, s Subject) {
	ctx, p := t.Context(), s.Base+"/file"
	require.NoError(t, s.WriteFile(ctx, p, []byte("one"), 0o640))
	st, err := s.Stat(ctx, p)
	require.NoError(t, err)
	require.Zero(t, st.Mode.Perm()&^0o640)
	require.NoError(t, s.Chmod(ctx, p, 0o604))

	// Whoever has the old file open still reads the old bytes: the name was pointed to another file.
	s.Run(t, sandbox.Command{Line: "ln file other"})
	require.NoError(t, s.WriteFile(ctx, p, []byte("two"), 0o666))
	got, err := s.ReadFile(ctx, s.Base+"/other", 100)
	require.NoError(t, err)
	require.Equal(t, "one", string(got), "the old file is not written to")
	got, err = s.ReadFile(ctx, p, 100)
	require.NoError(t, err)
	require.Equal(t, "two", string(got))
	st, err = s.Stat(ctx, p)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o604), st.Mode, "an existing file keeps its mode")

	s.Run(t, sandbox.Command{Line: "ln -s file link"})
	require.ErrorIs(t, s.WriteFile(ctx, s.Base+"/link", []byte("x"), 0o644), sandbox.ErrNotRegular)
	require.ErrorIs(t, s.WriteFile(ctx, s.Base+"/no/dir", nil, 0o644), fs.ErrNotExist)
	require.ErrorIs(t, s.WriteFile(ctx, s.Base, nil, 0o644), sandbox.ErrNotRegular)
	short, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, s.WriteFile(short, p, []byte("x"), 0o644), context.Canceled)
	big := strings.Repeat("0123456789\x00\xff\n", 100_000)
	require.NoError(t, s.WriteFile(ctx, p, []byte(big), 0o644))
	got, err = s.ReadFile(ctx, p, int64(len(big)))
	require.NoError(t, err)
	require.True(t, big == string(got))
	require.NoError(t, s.WriteFile(ctx, p, nil, 0o644))
	left, err := s.List(ctx, s.Base)
	require.NoError(t, err)
	require.Len(t, left, 3, "no temporary file is left")
}

func suiteRealPath(t *testing.T, s Subject) {
	in := func(p string) string { return s.Base + "/" + p }
	s.Run(t, sandbox.Command{Line: `mkdir -p real/sub; ln -s real link; ln -s nowhere/x dangling; ln -s dangling two; ln -s ../real/new real/up
		ln -s "$PWD/real/sub" abs; ln -s loop loop; : > plain; ln -s 'real
' newline`})
	for p, want := range map[string]string{
		"real/sub": "real/sub", "link/sub": "real/sub", "link/new/file": "real/new/file", "dangling": "nowhere/x", "two": "nowhere/x",
		"link/up": "real/new", "abs/x": "real/sub/x", "nothing": "nothing", "link/../x": "x", "newline/x": "real\n/x",
	} {
		got, err := s.RealPath(t.Context(), in(p))
		require.NoError(t, err, p)
		require.Equal(t, in(want), got, p)
	}
	for _, p := range []string{"loop", "plain/x"} {
		_, err := s.RealPath(t.Context(), in(p))
		require.Error(t, err, p)
	}
	_, err := s.RealPath(t.Context(), "relative")
	require.ErrorContains(t, err, "not absolute")
	root, err := s.RealPath(t.Context(), "/")
	require.NoError(t, err)
	require.Equal(t, "/", root)
}

func suiteBackground(t *testing.T, s Subject) {
	var out Record
	id := "job_" + sandbox.NewID()
	p, err := s.Start(t.Context(), sandbox.Command{Line: "pwd; echo two >&2; read x || echo no-input; echo $V; exit 7", Start: s.Base, Output: &out, ID: id, Env: map[string]string{"V": "it's"}})
	require.NoError(t, err)
	require.Equal(t, 7, Ends(t, p))
	require.Equal(t, s.Base+"\ntwo\nno-input\nit's\n", out.String())
	require.Equal(t, id, p.ID())
	require.EqualValues(t, len(out.String()), p.Ref().Offset)
	_, err = p.Write([]byte("x"))
	require.Error(t, err)
	_, err = s.Start(t.Context(), sandbox.Command{Line: "true", ID: id})
	require.ErrorIs(t, err, os.ErrExist)
	for _, c := range []sandbox.Command{{Line: "true", ID: "../x"}, {Line: " "}, {Line: "true", Dir: "/nowhere/at/all"}} {
		_, err = s.Start(t.Context(), c)
		require.Error(t, err)
	}
	require.NoError(t, s.Kill(t.Context(), p), "killing one that has ended does nothing")

	// A child that holds the output does not keep the command from ending.
	var held Record
	p, err = s.Start(t.Context(), sandbox.Command{Line: "sleep 300 & echo $!; exit 4", Output: &held})
	require.NoError(t, err)
	require.Equal(t, 4, Ends(t, p))
	s.Run(t, sandbox.Command{Line: "kill -9 " + strings.TrimSpace(held.String())})
}

func suiteInput(t *testing.T, s Subject) {
	var out Record
	p, err := s.Start(t.Context(), sandbox.Command{Line: `while IFS= read -r x; do echo "got $x"; done; echo eof`, Output: &out, Input: true, Stdin: strings.NewReader("zero\n")})
	require.NoError(t, err)
	long := strings.Repeat("ab", 1000)
	for _, line := range []string{"first", `q'"\0101%s\n é`, long} {
		n, err := p.Write([]byte(line + "\n"))
		require.NoError(t, err)
		require.Equal(t, len(line)+1, n)
	}
	out.Shows(t, "got "+long+"\n")
	require.Contains(t, out.String(), "got zero\ngot first\n"+`got q'"\0101%s\n é`+"\n")
	require.NoError(t, p.CloseInput())
	require.NoError(t, p.CloseInput())
	_, err = p.Write([]byte("late"))
	require.ErrorIs(t, err, sandbox.ErrGone)
	require.Zero(t, Ends(t, p))
	require.True(t, strings.HasSuffix(out.String(), "eof\n"))

	var all Record
	p, err = s.Start(t.Context(), sandbox.Command{Line: "wc -c", Output: &all, Stdin: strings.NewReader(strings.Repeat("x", 300_000))})
	require.NoError(t, err)
	require.Zero(t, Ends(t, p))
	require.Equal(t, "300000", strings.TrimSpace(all.String()))

	// A command that does not read is not waited for, and what was not taken is not delivered later.
	var slow Record
	p, err = s.Start(t.Context(), sandbox.Command{Line: "until [ -e go ]; do sleep 0.1; done; wc -c", Input: true, Start: s.Base, Output: &slow})
	require.NoError(t, err)
	n, err := p.Write(bytes.Repeat([]byte("line of input\n"), 60_000))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	s.Run(t, sandbox.Command{Line: ": >go"})
	require.Eventually(t, func() bool { return p.CloseInput() == nil }, 30*time.Second, 10*time.Millisecond)
	require.Zero(t, Ends(t, p))
	require.Equal(t, strconv.Itoa(n), strings.TrimSpace(slow.String()))

	p, err = s.Start(t.Context(), sandbox.Command{Line: "exit 3", Input: true})
	require.NoError(t, err)
	require.Equal(t, 3, Ends(t, p))
	carrying := sandbox.Command{Line: `for f in /proc/[0-9]*/environ; do tr '\0' '\n' <$f | grep -qxF "` + shell.MarkName + `=$MARK" && echo $f; done 2>/dev/null`, Env: map[string]string{"MARK": p.Ref().Mark}}
	for deadline := time.Now().Add(30 * time.Second); s.Run(t, carrying).Output != ""; {
		require.True(t, time.Now().Before(deadline), "an input that nobody closes keeps something alive")
	}
	_, err = p.Write([]byte("x"))
	require.ErrorIs(t, err, sandbox.ErrGone)
}

func suiteBackgroundKill(t *testing.T, s Subject) {
	var out Record
	p, err := s.Start(t.Context(), sandbox.Command{Line: "setsid sh -c 'echo $$; exec sleep 300' & wait; sleep 300", Output: &out})
	require.NoError(t, err)
	out.Shows(t, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(out.String()))
	require.NoError(t, err)
	require.NoError(t, s.Kill(t.Context(), p))
	s.Gone(t, p.PID())
	s.Gone(t, pid)
	require.Equal(t, 143, p.ExitCode())
	require.NoError(t, s.Kill(t.Context(), p))

	var stubborn Record
	p, err = s.Start(t.Context(), sandbox.Command{Line: "trap '' TERM; echo up; while :; do sleep 0.2; done", Output: &stubborn})
	require.NoError(t, err)
	stubborn.Shows(t, "up")
	require.NoError(t, s.Kill(t.Context(), p))
	require.Equal(t, 137, p.ExitCode())
}

// A daemon that went away finds its processes again: output from where it was, input, exit code.
func suiteResume(t *testing.T, s Subject) {
	first := s.Again(t)
	var before Record
	p, err := first.Start(t.Context(), sandbox.Command{Line: `echo "héllo"; IFS= read -r x; echo "got $x"; IFS= read -r y; echo "and $y"; exit 5`, Output: &before, Input: true})
	require.NoError(t, err)
	before.Shows(t, "héllo\n")
	ref := p.Ref()
	require.NoError(t, first.Close())

	second := s.Again(t)
	var replay, after Record
	q, err := second.Resume(t.Context(), ref, sandbox.Command{Output: &after, Replay: &replay})
	require.NoError(t, err)
	require.Equal(t, p.PID(), q.PID())
	for i, word := range []string{"one", "two"} {
		_, err = q.Write([]byte(word + "\n"))
		require.NoError(t, err)
		after.Shows(t, []string{"got one", "and two"}[i])
	}
	require.Equal(t, 5, Ends(t, q))
	require.Equal(t, "héllo\n", replay.String())
	require.Equal(t, "got one\nand two\n", after.String())

	var all Record
	r, err := s.Resume(t.Context(), sandbox.Ref{ID: ref.ID}, sandbox.Command{Output: &all})
	require.NoError(t, err)
	require.Equal(t, 5, Ends(t, r))
	require.Equal(t, "héllo\ngot one\nand two\n", all.String())

	for _, id := range []string{"proc_none", "", "../x"} {
		_, err := s.Resume(t.Context(), sandbox.Ref{ID: id}, sandbox.Command{})
		require.ErrorIs(t, err, sandbox.ErrGone, id)
	}
	other := ref
	other.Mark = "somebody"
	_, err = s.Resume(t.Context(), other, sandbox.Command{})
	require.ErrorIs(t, err, sandbox.ErrGone)
}

// A command that prints without end does not fill the disk; the end of its output is kept, and the gap is reported.
func suiteBackgroundLog(t *testing.T, s Subject) {
	p, err := s.Start(t.Context(), sandbox.Command{Line: "head -c 13000000 /dev/zero | tr '\\0' x; echo; echo the end"})
	require.NoError(t, err)
	require.Zero(t, Ends(t, p))
	size := s.Run(t, sandbox.Command{Line: `cat "$D"/log.* | wc -c`, Env: map[string]string{"D": p.Ref().Dir}}).Output
	n, err := strconv.Atoi(strings.TrimSpace(size))
	require.NoError(t, err)
	require.LessOrEqual(t, n, sandbox.DefaultJobLog)
	require.Greater(t, n, sandbox.DefaultJobLog/4)
	var all Record
	q, err := s.Resume(t.Context(), sandbox.Ref{ID: p.ID()}, sandbox.Command{Output: &all})
	require.NoError(t, err)
	require.Zero(t, Ends(t, q))
	require.Contains(t, all.String(), "bytes of output were dropped here]")
	require.True(t, strings.HasSuffix(all.String(), "x\nthe end\n"))
}
