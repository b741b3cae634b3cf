package local

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"herald/tools/sandbox"
	"herald/tools/sandbox/output"
	"herald/tools/sandbox/proc"
	"herald/tools/sandbox/sandboxtest"
)

// newLocal makes an environment with a home of its own.
func newLocal(t *testing.T, change func(*Options)) *Environment {
	t.Helper()
	home := t.TempDir()
	supervisor, err := SelfSupervisor()
	require.NoError(t, err)
	o := Options{
		Supervisor: supervisor,
		Dir:        t.TempDir(), Home: home, SpillDir: filepath.Join(home, "cache", "terminal-output"),
		Environ: func() []string { return []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"} },
	}
	if change != nil {
		change(&o)
	}
	l, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

func run(t *testing.T, l *Environment, c sandbox.Command) sandbox.Result {
	t.Helper()
	r, err := l.Exec(t.Context(), c)
	require.NoError(t, err)
	return r
}

func TestLocal_Exec_ExitCodes(t *testing.T) {
	l := newLocal(t, nil)
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
		{"read x; echo got:$?", "got:1\n", 0}, // interactive reads meet the end of input
		{"set -e; false; echo never", "", 1},
		{"printf '%s\\n' \"it's $((1+1))\" | cat", "it's 2\n", 0},
		{"cat <<'E'\na 'b' \"c\"\nE", "a 'b' \"c\"\n", 0},
	} {
		r := run(t, l, sandbox.Command{Line: tc.line})
		require.Equal(t, tc.out, r.Output, tc.line)
		require.Equal(t, tc.code, r.ExitCode, tc.line)
	}
	r := run(t, l, sandbox.Command{Line: "nosuchcommand-x"})
	require.Equal(t, 127, r.ExitCode)
	r = run(t, l, sandbox.Command{Line: "echo 'open"})
	require.NotZero(t, r.ExitCode, "a syntax error of bash is a failed command, not an error of ours")
	require.Contains(t, r.Output, "unexpected EOF")
}

func TestLocal_Exec_RefusesBadLines(t *testing.T) {
	l := newLocal(t, nil)
	for line, want := range map[string]string{
		"": "empty", " \n": "empty", "a\x00b": "NUL", strings.Repeat("x", sandbox.MaxCommand+1): "100001 bytes",
	} {
		_, err := l.Exec(t.Context(), sandbox.Command{Line: line})
		require.ErrorContains(t, err, want)
	}
	_, err := l.Exec(t.Context(), sandbox.Command{Line: "pwd", Dir: "relative"})
	require.ErrorContains(t, err, "not an absolute path")
	_, err = l.Exec(t.Context(), sandbox.Command{Line: "pwd", Dir: "/nowhere/at/all"})
	require.ErrorIs(t, err, fs.ErrNotExist)
	r := run(t, l, sandbox.Command{Line: ": " + strings.Repeat("'", sandbox.MaxCommand/2-2) + "; echo ok"})
	require.NotContains(t, r.Output, "too long")
}

func TestLocal_Exec_DirPersistsPerSession(t *testing.T) {
	l := newLocal(t, nil)
	start, known := l.Dir("a")
	require.False(t, known)
	require.NoError(t, os.MkdirAll(filepath.Join(start, "one", "two"), 0o755))

	r := run(t, l, sandbox.Command{Line: "cd one", Session: "a"})
	require.True(t, r.Observed)
	require.Equal(t, filepath.Join(start, "one"), r.Dir)
	require.Equal(t, filepath.Join(start, "one")+"\n", run(t, l, sandbox.Command{Line: "pwd", Session: "a"}).Output)
	require.Equal(t, start+"\n", run(t, l, sandbox.Command{Line: "pwd", Session: "b"}).Output)

	r = run(t, l, sandbox.Command{Line: "cd two; exit 5", Session: "a"})
	require.Equal(t, 5, r.ExitCode)
	require.Equal(t, filepath.Join(start, "one", "two"), r.Dir, "a command that exits reports its directory too")

	r = run(t, l, sandbox.Command{Line: "cd /; pwd", Session: "a", Dir: start})
	require.Equal(t, "/\n", r.Output)
	require.Equal(t, filepath.Join(start, "one", "two"), r.Dir, "a directory for one command changes nothing for the next")

	r = run(t, l, sandbox.Command{Line: "pwd", Session: "fresh", Start: filepath.Join(start, "one")})
	require.Equal(t, filepath.Join(start, "one")+"\n", r.Output)
	l.Forget("a")
	_, known = l.Dir("a")
	require.False(t, known)
}

func TestLocal_Exec_ParallelSessionsKeepTheirOwn(t *testing.T) {
	l := newLocal(t, nil)
	start, _ := l.Dir("")
	var wg sync.WaitGroup
	for i := range 12 {
		name := "s" + strconv.Itoa(i)
		require.NoError(t, os.Mkdir(filepath.Join(start, name), 0o755))
		wg.Go(func() {
			_, err := l.Exec(t.Context(), sandbox.Command{Line: "cd " + name, Session: name})
			if err != nil {
				t.Error(err)
				return
			}
			r, err := l.Exec(t.Context(), sandbox.Command{Line: "pwd; echo " + name, Session: name})
			if err != nil || r.Output != filepath.Join(start, name)+"\n"+name+"\n" {
				t.Errorf("%s: %q %v", name, r.Output, err)
			}
		})
	}
	wg.Wait()
}

func TestLocal_Exec_ForgedMarkerIsOutput(t *testing.T) {
	l := newLocal(t, nil)
	r := run(t, l, sandbox.Command{Session: "a", Line: `printf '\001HERALD-DIR:` + l.id + `-999:/etc:` + l.id + `-999\001'`})
	require.NotEqual(t, "/etc", r.Dir)
	require.Contains(t, r.Output, "/etc")
}

func TestLocal_Exec_DeletedDir(t *testing.T) {
	l := newLocal(t, nil)
	start, _ := l.Dir("")
	run(t, l, sandbox.Command{Line: "mkdir gone && cd gone", Session: "a"})
	require.NoError(t, os.Remove(filepath.Join(start, "gone")))
	r := run(t, l, sandbox.Command{Line: "pwd", Session: "a"})
	require.Equal(t, start+"\n", r.Output)
	require.Contains(t, r.Note, "gone")

	run(t, l, sandbox.Command{Line: "cd " + t.TempDir(), Session: "b"})
	dir, _ := l.Dir("b")
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.RemoveAll(start))
	require.Equal(t, l.Home()+"\n", run(t, l, sandbox.Command{Line: "pwd", Session: "b"}).Output, "configured is gone too: home")
}

func TestLocal_Exec_ClosedDir(t *testing.T) {
	l := newLocal(t, nil)
	start, _ := l.Dir("")
	run(t, l, sandbox.Command{Line: "mkdir shut && cd shut", Session: "a"})
	l.usable = func(dir string) error {
		if strings.HasSuffix(dir, "shut") {
			return &os.PathError{Op: "enter", Path: dir, Err: syscall.EACCES}
		}
		return usableDir(dir)
	}
	require.Equal(t, start+"\n", run(t, l, sandbox.Command{Line: "pwd", Session: "a"}).Output)

	l.usable = func(dir string) error { return &os.PathError{Op: "enter", Path: dir, Err: syscall.ENOTDIR} }
	_, err := l.Exec(t.Context(), sandbox.Command{Line: "pwd", Session: "a"})
	require.ErrorIs(t, err, syscall.ENOTDIR, "other errors are not papered over")
}

func TestSafeDir(t *testing.T) {
	failing := func(err error) func() (string, error) {
		return func() (string, error) { return "", &os.SyscallError{Syscall: "getwd", Err: err} }
	}
	for _, tc := range []struct {
		name             string
		getwd            func() (string, error)
		configured, want string
		err              error
	}{
		{"happy", func() (string, error) { return "/here", nil }, "/conf", "/here", nil},
		{"deleted, configured wins", failing(syscall.ENOENT), "/conf", "/conf", nil},
		{"deleted, home", failing(syscall.ENOENT), "", "/home/u", nil},
		{"denied, configured wins", failing(syscall.EPERM), "/conf", "/conf", nil},
		{"denied, home", failing(syscall.EACCES), "", "/home/u", nil},
		{"other errors come out", failing(syscall.ENOTDIR), "/conf", "", syscall.ENOTDIR},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := SafeDir(tc.getwd, tc.configured, "/home/u")
			require.ErrorIs(t, err, tc.err)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestLocal_Exec_TimeoutKeepsPartialOutput(t *testing.T) {
	l := newLocal(t, nil)
	run(t, l, sandbox.Command{Line: "true"})
	began := time.Now()
	r := run(t, l, sandbox.Command{Line: "echo before; sleep 60; echo after", Timeout: 200 * time.Millisecond})
	require.Equal(t, sandbox.ExitTimeout, r.ExitCode)
	require.True(t, r.TimedOut)
	require.True(t, strings.HasPrefix(r.Output, "before\n"), r.Output)
	require.Contains(t, r.Output, "\n[the command was stopped after")
	require.Less(t, time.Since(began), 3*time.Second)

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	r, err := l.Exec(ctx, sandbox.Command{Line: "sleep 60"})
	require.NoError(t, err)
	require.Equal(t, sandbox.ExitTimeout, r.ExitCode, "a deadline of the caller is a timeout")
}

func TestLocal_Exec_InterruptKeepsPartialOutput(t *testing.T) {
	l := newLocal(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := l.Exec(ctx, sandbox.Command{Line: "echo before; sleep 60", Output: sandboxtest.Writer(func([]byte) { cancel() })})
	require.NoError(t, err)
	require.Equal(t, sandbox.ExitInterrupted, r.ExitCode)
	require.True(t, r.Interrupted)
	require.True(t, strings.HasPrefix(r.Output, "before\n"), r.Output) // bash may add that its child was terminated
	require.True(t, strings.HasSuffix(r.Output, "\n[the command was interrupted]"), r.Output)
	r, err = l.Exec(ctx, sandbox.Command{Line: "echo never > ran"})
	require.NoError(t, err)
	require.Equal(t, sandbox.ExitInterrupted, r.ExitCode)
	dir, _ := l.Dir("")
	require.NoFileExists(t, filepath.Join(dir, "ran"))
}

func TestLocal_Exec_TermIgnoredIsKilled(t *testing.T) {
	l := newLocal(t, nil)
	run(t, l, sandbox.Command{Line: "true"})
	r := run(t, l, sandbox.Command{Line: "trap '' TERM; echo $$; while :; do sleep 0.2; done", Timeout: 300 * time.Millisecond})
	require.Equal(t, sandbox.ExitTimeout, r.ExitCode)
	require.False(t, r.Detached)
	sandboxtest.Gone(t, sandboxtest.FirstPID(t, r.Output))
}

// A grandchild in a session of its own is found by the snapshot that was made before the first signal. The
// sweep by mark is off, so that this test goes red without the snapshot.
func TestLocal_Kill_SetsidGrandchildDies(t *testing.T) {
	sandboxtest.NeedSetsid(t)
	l := newLocal(t, nil)
	l.killer.carrying = func([]proc.Process, string) []proc.Process { return nil }
	run(t, l, sandbox.Command{Line: "true"})
	r := run(t, l, sandbox.Command{Line: "setsid sleep 300 & echo $!; wait; sleep 300", Timeout: 300 * time.Millisecond})
	require.Equal(t, sandbox.ExitTimeout, r.ExitCode)
	sandboxtest.Gone(t, sandboxtest.FirstPID(t, r.Output))
}

// One that left the tree before anybody looked is found by the mark in its environment.
func TestLocal_Kill_DoubleForkDies(t *testing.T) {
	sandboxtest.NeedSetsid(t)
	l := newLocal(t, nil)
	run(t, l, sandbox.Command{Line: "true"})
	r := run(t, l, sandbox.Command{Line: "(setsid sh -c 'echo $$; exec sleep 300' &) ; sleep 300", Timeout: 400 * time.Millisecond})
	require.Equal(t, sandbox.ExitTimeout, r.ExitCode)
	sandboxtest.Gone(t, sandboxtest.FirstPID(t, r.Output))
}

func TestLocal_Kill_BrokenListingDoesNotBreakIt(t *testing.T) {
	for name, list := range map[string]func() ([]proc.Process, error){
		"error": func() ([]proc.Process, error) { return nil, errors.New("no process table") },
		"panic": func() ([]proc.Process, error) { panic("no process table") },
		"empty": func() ([]proc.Process, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLocal(t, nil)
			l.killer.list = list
			run(t, l, sandbox.Command{Line: "true"})
			r := run(t, l, sandbox.Command{Line: "echo $$; sleep 300", Timeout: 200 * time.Millisecond})
			require.Equal(t, sandbox.ExitTimeout, r.ExitCode)
			sandboxtest.Gone(t, sandboxtest.FirstPID(t, r.Output))
		})
	}
}

func TestKiller_SparesStrangers(t *testing.T) {
	var sent []int
	k := killer{
		signal:   func(pid int, _ syscall.Signal) error { sent = append(sent, pid); return syscall.ESRCH },
		ownGroup: func() int { return 77 },
		carrying: func([]proc.Process, string) []proc.Process { return nil },
	}
	for name, tc := range map[string]struct {
		t     tree
		table []proc.Process
		want  []int
	}{
		"our own group":            {tree{leader: 77}, nil, nil},
		"init":                     {tree{leader: 1}, nil, nil},
		"a stranger has the pid":   {tree{leader: 500, start: 9}, []proc.Process{{PID: 500, Start: 10}}, nil},
		"a stranger's child":       {tree{leader: 500, start: 9}, []proc.Process{{PID: 500, Start: 10}, {PID: 601, Parent: 500, Group: 601}}, nil},
		"nobody's children":        {tree{}, []proc.Process{{PID: 1}, {PID: 600, Group: 600}, {PID: 601, Parent: 600, Group: 601}}, nil},
		"the leader itself":        {tree{leader: 500, start: 9}, []proc.Process{{PID: 500, Start: 9}}, []int{-500, -500}},
		"leader gone, group lives": {tree{leader: 500, start: 9}, []proc.Process{{PID: 501, Group: 500}}, []int{-500, -500}},
	} {
		t.Run(name, func(t *testing.T) {
			sent = nil
			k.list = func() ([]proc.Process, error) { return tc.table, nil }
			k.kill(tc.t)
			require.Equal(t, tc.want, sent)
		})
	}
}

// A known process whose number went to another one meanwhile is left alone.
func TestKiller_RecycledPIDIsSpared(t *testing.T) {
	var sent []int
	calls := 0
	k := killer{
		signal:   func(pid int, _ syscall.Signal) error { sent = append(sent, pid); return syscall.ESRCH },
		ownGroup: func() int { return 77 },
		list: func() ([]proc.Process, error) {
			calls++
			if calls == 1 {
				return []proc.Process{{PID: 500, Start: 1, Group: 500}, {PID: 501, Parent: 500, Start: 5, Group: 501},
					{PID: 502, Parent: 500, Start: 6, Group: 502}}, nil
			}
			return []proc.Process{{PID: 501, Parent: 1, Start: 99, Group: 501}, {PID: 502, Parent: 1, Start: 6, Group: 502}}, nil
		},
		carrying: func([]proc.Process, string) []proc.Process { return nil },
	}
	k.kill(tree{leader: 500, start: 1})
	require.Contains(t, sent, 502)
	require.NotContains(t, sent, 501)
}

func TestLocal_Exec_BackgroundChildDoesNotDelay(t *testing.T) {
	l := newLocal(t, nil)
	run(t, l, sandbox.Command{Line: "true"})
	began := time.Now()
	r := run(t, l, sandbox.Command{Line: "sleep 30 & echo $!"})
	require.Less(t, time.Since(began), 2*time.Second)
	pid := sandboxtest.FirstPID(t, r.Output)
	require.True(t, sandboxtest.Alive(pid), "a background child outlives a command that ended by itself")
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

func TestLocal_Exec_ErrorsApart(t *testing.T) {
	l := newLocal(t, nil)
	var errs, out bytes.Buffer
	r := run(t, l, sandbox.Command{Line: `echo one; printf 'ä\377\001HERALD-DIR::' >&2; echo two; cd /; exit 3`, Session: "s", Errors: &errs, Output: &out})
	require.Equal(t, "one\ntwo\n", r.Output)
	require.Equal(t, "one\ntwo\n", out.String())
	require.Equal(t, "ä\uFFFD\001HERALD-DIR::", errs.String())
	require.Equal(t, 3, r.ExitCode)
	require.Equal(t, "/", r.Dir)

	for limit := 500 * time.Millisecond; limit < time.Minute; limit *= 2 { // a machine under load may not get as far
		errs.Reset()
		r = run(t, l, sandbox.Command{Line: `(sleep 600 >/dev/null)& echo half >&2; sleep 600`, Errors: &errs, Timeout: limit})
		require.True(t, r.TimedOut)
		require.False(t, r.Detached, "it ends with the command, whoever held the pipe")
		if errs.Len() > 0 {
			break
		}
	}
	require.Equal(t, "half\n", errs.String())

	_, err := l.Start(t.Context(), sandbox.Command{Line: "true", Errors: &errs})
	require.ErrorContains(t, err, "can't be told from its output")
}

func TestLocal_Exec_Stdin(t *testing.T) {
	l := newLocal(t, nil)
	big := strings.Repeat("0123456789", 100_000)
	require.Equal(t, "1000000\n", run(t, l, sandbox.Command{Line: "wc -c", Stdin: strings.NewReader(big)}).Output)
	require.Equal(t, "done\n", run(t, l, sandbox.Command{Line: "echo done", Stdin: strings.NewReader(big)}).Output, "unread input holds nothing up")
}

func TestLocal_Exec_BinaryAndBrokenUTF8(t *testing.T) {
	l := newLocal(t, nil)
	r := run(t, l, sandbox.Command{Line: `printf 'a\000b\377c\303'; printf '\251d'; printf '\342\202'`})
	require.Equal(t, "a\x00b\ufffdcéd\ufffd", r.Output)
	r = run(t, l, sandbox.Command{Line: "head -c 200000 /dev/urandom"})
	require.True(t, utf8.ValidString(r.Output))
}

// 50 MB of output: bounded text, both ends shown, the spill file capped and private.
func TestLocal_Exec_HugeOutputIsBounded(t *testing.T) {
	l := newLocal(t, nil)
	r := run(t, l, sandbox.Command{Line: "echo FIRST; yes 0123456789abcde | head -c 50000000; echo; echo LAST"})
	require.Zero(t, r.ExitCode)
	require.True(t, r.Truncated)
	require.EqualValues(t, 50_000_000+12, r.TotalChars)
	require.Less(t, len(r.Output), output.DefaultWindow+400)
	require.True(t, strings.HasPrefix(r.Output, "FIRST\n"))
	require.True(t, strings.HasSuffix(r.Output, "LAST\n"))
	require.Contains(t, r.Output, "characters left out here")
	st, err := os.Lstat(r.FullPath)
	require.NoError(t, err)
	require.EqualValues(t, output.MaxSpill, st.Size())
	require.Equal(t, fs.FileMode(0o600), st.Mode())
	dir, err := os.Lstat(filepath.Dir(r.FullPath))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), dir.Mode().Perm())
}

func TestLocal_Exec_MarkerNearTheEdgeOfTheWindow(t *testing.T) {
	l := newLocal(t, func(o *Options) { o.Window = 100 })
	for n := 80; n < 120; n++ {
		r := run(t, l, sandbox.Command{Line: "printf '%" + strconv.Itoa(n) + "s' x; cd /", Session: "s"})
		require.Equal(t, "/", r.Dir)
		require.EqualValues(t, n, r.TotalChars)
		require.NotContains(t, r.Output, "HERALD-DIR")
	}
}

func TestLocal_SpillPruning(t *testing.T) {
	now := time.Now()
	l := newLocal(t, func(o *Options) { o.Now = func() time.Time { return now } })
	dir := l.opts.SpillDir
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for name, age := range map[string]time.Duration{
		"out-1-1-old.log": 8 * 24 * time.Hour, "out-1-1-new.log": 6 * 24 * time.Hour, "other.log": 30 * 24 * time.Hour,
	} {
		p := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(p, nil, 0o600))
		require.NoError(t, os.Chtimes(p, now.Add(-age), now.Add(-age)))
	}
	run(t, l, sandbox.Command{Line: "head -c 60000 /dev/zero"})
	require.NoFileExists(t, filepath.Join(dir, "out-1-1-old.log"))
	require.FileExists(t, filepath.Join(dir, "out-1-1-new.log"))
	require.FileExists(t, filepath.Join(dir, "other.log"))
}

func TestLocal_SpillDirThatIsALinkIsRefused(t *testing.T) {
	l := newLocal(t, nil)
	elsewhere := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Dir(l.opts.SpillDir), 0o755))
	require.NoError(t, os.Symlink(elsewhere, l.opts.SpillDir))
	r := run(t, l, sandbox.Command{Line: "head -c 60000 /dev/zero"})
	require.True(t, r.Truncated)
	require.Empty(t, r.FullPath)
	left, err := os.ReadDir(elsewhere)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestLocal_LoginSnapshot(t *testing.T) {
	l := newLocal(t, nil)
	require.NoError(t, os.WriteFile(filepath.Join(l.home, ".bash_profile"), []byte(`
export GREETING="two
lines" MY_API_KEY=sk-hidden
greet() { echo "hello $1"; }
alias hi='echo hi'
echo noise of the start file
`), 0o600))
	r := run(t, l, sandbox.Command{Line: "greet you; hi; echo \"$GREETING\"; echo key=[$MY_API_KEY]"})
	require.Equal(t, "hello you\nhi\ntwo\nlines\nkey=[]\n", r.Output)
}

func TestLocal_LoginSnapshot_FailureFallsBack(t *testing.T) {
	l := newLocal(t, nil)
	profile := filepath.Join(l.home, ".bash_profile")
	require.NoError(t, os.WriteFile(profile, []byte("env() { return 1; }\nexport FROM_LOGIN=yes\n"), 0o600))
	require.Equal(t, "yes\n", run(t, l, sandbox.Command{Line: "echo $FROM_LOGIN"}).Output)
	require.Equal(t, "-l", l.shell.Argv[1])

	l = newLocal(t, nil)
	require.NoError(t, os.WriteFile(filepath.Join(l.home, ".bash_profile"), []byte("exit 7\n"), 0o600))
	require.Equal(t, "ok\n", run(t, l, sandbox.Command{Line: "echo ok"}).Output)
	require.Equal(t, "-c", l.shell.Argv[1])
}

func TestLocal_WithoutBash(t *testing.T) {
	look := func(missing ...string) func(string) (string, error) {
		return func(name string) (string, error) {
			for _, m := range missing {
				if m == name {
					return "", exec.ErrNotFound
				}
			}
			return exec.LookPath(name)
		}
	}
	l := newLocal(t, func(o *Options) { o.LookPath = look("bash") })
	r := run(t, l, sandbox.Command{Line: "cd /tmp; echo ok", Session: "a"})
	require.Equal(t, "ok\n", r.Output)
	require.Equal(t, "/tmp", r.Dir)
	require.Equal(t, 4, run(t, l, sandbox.Command{Line: "exit 4"}).ExitCode)

	l = newLocal(t, func(o *Options) { o.LookPath = look("bash", "sh") })
	_, err := l.Exec(t.Context(), sandbox.Command{Line: "echo ok"})
	require.ErrorIs(t, err, sandbox.ErrUnavailable)
}

func TestLocal_Exec_ScrubsTheEnvironment(t *testing.T) {
	l := newLocal(t, func(o *Options) {
		o.Environ = func() []string {
			return []string{"PATH=" + os.Getenv("PATH"), "HERALD_HOME=/x", "OPENAI_API_KEY=sk-1", "GH_TOKEN=t", "EDITOR=vi", "NPM_TOKEN=n", "PLAIN=p"}
		}
		o.Passthrough = []string{"NPM_TOKEN", "OPENAI_API_KEY"}
		o.Deny = []string{"PLAIN"}
	})
	r := run(t, l, sandbox.Command{Line: "env", Env: map[string]string{"EXTRA": "1"}})
	for _, secret := range []string{"HERALD_HOME", "sk-1", "GH_TOKEN", "PLAIN"} {
		require.NotContains(t, r.Output, secret)
	}
	for _, want := range []string{"EDITOR=vi\n", "NPM_TOKEN=n\n", "EXTRA=1\n", "HOME=" + l.home + "\n"} {
		require.Contains(t, r.Output, want)
	}
}

func TestLocal_StartAndKill(t *testing.T) {
	l := newLocal(t, nil)
	var mu sync.Mutex
	var out bytes.Buffer
	p, err := l.Start(t.Context(), sandbox.Command{Line: "echo up; sleep 300",
		Output: sandboxtest.Writer(func(b []byte) { mu.Lock(); out.Write(b); mu.Unlock() })})
	require.NoError(t, err)
	sandboxtest.Eventually(t, "output arrives", func() bool { mu.Lock(); defer mu.Unlock(); return out.String() == "up\n" })
	require.True(t, sandboxtest.Alive(p.PID()))
	require.NoError(t, l.Kill(t.Context(), p))
	require.Equal(t, 143, p.ExitCode())
	require.NoError(t, l.Kill(t.Context(), p))
	sandboxtest.Gone(t, p.PID())
}

func TestLocal_CloseEndsEverything(t *testing.T) {
	l := newLocal(t, nil)
	p, err := l.Start(t.Context(), sandbox.Command{Line: "sleep 300"})
	require.NoError(t, err)
	private := l.private
	require.DirExists(t, private)
	require.NoError(t, l.Close())
	sandboxtest.Gone(t, p.PID())
	require.NoDirExists(t, private)
	_, err = l.Exec(t.Context(), sandbox.Command{Line: "true"})
	require.ErrorIs(t, err, sandbox.ErrUnavailable)
}

func BenchmarkLocal_Exec(b *testing.B) {
	l, err := New(Options{Dir: b.TempDir(), Home: b.TempDir()})
	require.NoError(b, err)
	defer l.Close()
	for b.Loop() {
		if _, err := l.Exec(b.Context(), sandbox.Command{Line: "true", Session: "s"}); err != nil {
			b.Fatal(err)
		}
	}
}

// A passed-through variable has the value of now, and none when it was taken away, whatever the login
// snapshot holds.
func TestLocal_PassthroughFollowsItsSource(t *testing.T) {
	value := "GH_TOKEN=first"
	l := newLocal(t, func(o *Options) {
		o.Environ = func() []string { return []string{"PATH=" + os.Getenv("PATH"), value} }
		o.Passthrough = []string{"gh_token"}
	})
	show := func() string { return run(t, l, sandbox.Command{Line: "echo ${GH_TOKEN-unset}"}).Output }
	require.Equal(t, "first\n", show())
	value = "GH_TOKEN=second"
	require.Equal(t, "second\n", show())
	value = "OTHER=x"
	require.Equal(t, "unset\n", show())
}

// What a killed daemon left behind is removed; what belongs to a running one is not.
func TestNewLocal_RemovesSnapshotsOfTheDead(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	old := time.Now().Add(-2 * time.Hour)
	dirs := map[string]bool{"herald-shell-999999999-a": false, "herald-shell-" + strconv.Itoa(os.Getppid()) + "-b": true, "herald-shell-x": true, "other": true}
	for name := range dirs {
		require.NoError(t, os.MkdirAll(filepath.Join(tmp, name, "in"), 0o700))
		require.NoError(t, os.Chtimes(filepath.Join(tmp, name), old, old))
	}
	require.NoError(t, os.Mkdir(filepath.Join(tmp, "herald-shell-999999998-young"), 0o700))
	newLocal(t, nil)
	for name, stays := range dirs {
		_, err := os.Stat(filepath.Join(tmp, name))
		require.Equal(t, stays, err == nil, name)
	}
	require.DirExists(t, filepath.Join(tmp, "herald-shell-999999998-young"))
}

func TestSuite_Local(t *testing.T) {
	sandboxtest.NeedSetsid(t)
	jobs := t.TempDir()
	sandboxtest.Suite(t, func(t *testing.T) sandbox.Environment { return keeping(t, jobs) })
}
