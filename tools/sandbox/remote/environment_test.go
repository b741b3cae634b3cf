package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/tools/sandbox"
	"herald/tools/sandbox/proc"
	"herald/tools/sandbox/sandboxtest"
	"herald/tools/sandbox/shell"
)

// hereCarrier runs programs on this machine, as a carrier does: in sessions of their own, and left alone when the
// connection is dropped.
type hereCarrier struct {
	env      []string
	fail     func(argv []string) error // before a run; nil is none
	routines sync.WaitGroup
}

func (*hereCarrier) Backend() string { return "here" }

func (h *hereCarrier) Run(ctx context.Context, argv []string, s Streams) (int, error) {
	if h.fail != nil {
		if err := h.fail(argv); err != nil {
			return -1, err
		}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = "/", append(append([]string{}, h.env...), sandbox.Environ(s.Env)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, inW, err := os.Pipe()
	if err != nil {
		return -1, err
	}
	out, outW, err := os.Pipe()
	if err != nil {
		return -1, err
	}
	errs, errsW, err := os.Pipe()
	if err != nil {
		return -1, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, outW, errsW
	err = cmd.Start()
	in.Close()
	outW.Close()
	errsW.Close()
	defer inW.Close()
	defer out.Close()
	defer errs.Close()
	if err != nil {
		return -1, fmt.Errorf("%w: %w", sandbox.ErrUnavailable, err)
	}
	h.routines.Go(func() {
		if s.In != nil {
			_, _ = io.Copy(inW, s.In)
		}
		inW.Close()
	})
	var reading sync.WaitGroup
	for from, to := range map[*os.File]io.Writer{out: s.Out, errs: s.Err} {
		if to == nil {
			to = io.Discard
		}
		reading.Go(func() { _, _ = io.Copy(to, from) })
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // it ends with the program, which may outlive the environment
	read := make(chan struct{})
	h.routines.Go(func() { reading.Wait(); close(read) })
	stop := context.AfterFunc(ctx, func() {
		for _, f := range []*os.File{out, errs} {
			_ = f.SetReadDeadline(time.Unix(1, 0))
		}
		_ = inW.SetWriteDeadline(time.Unix(1, 0))
	})
	defer stop()
	<-read
	if ctx.Err() != nil {
		return -1, ctx.Err()
	}
	select {
	case <-ended:
		return proc.ExitCode(cmd.ProcessState), nil
	case <-ctx.Done(): // a program that closed its output and runs on
		return -1, ctx.Err()
	}
}

func (h *hereCarrier) Close() error {
	h.routines.Wait()
	return nil
}

// here makes a remote environment whose place is this machine, with a home and a directory for files of its own.
func here(t *testing.T, change func(*hereCarrier, *Options)) (*Environment, string) {
	t.Helper()
	sandboxtest.NeedSetsid(t)
	home, tmp := t.TempDir(), t.TempDir()
	c := &hereCarrier{env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + tmp, "LANG=C.UTF-8"}}
	o := Options{SpillDir: filepath.Join(tmp, "spill")}
	if change != nil {
		change(c, &o)
	}
	r := New(c, o)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r, home
}

func TestSuite_Remote(t *testing.T) {
	home, tmp := t.TempDir(), t.TempDir()
	sandboxtest.Suite(t, func(t *testing.T) sandbox.Environment {
		r, _ := here(t, func(c *hereCarrier, o *Options) {
			c.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + tmp, "LANG=C.UTF-8"}
			o.KeepJobs = true
		})
		return r
	})
}

// The listing of the processes is a help and no condition: the group dies without it.
func TestRemote_Kill_BrokenListingDoesNotBreakIt(t *testing.T) {
	for name, table := range map[string]string{"error": "exit 3", "garbage": "echo 'a b' c:d; echo :; false", "empty": ":", "killed": "sh -c 'kill -9 $PPID'"} {
		t.Run(name, func(t *testing.T) {
			r, _ := here(t, nil)
			r.killer.table = table
			s := sandboxtest.Subject{Environment: r, Base: r.Home()}
			s.Gone(t, s.Interrupted(t, "echo $$; sleep 300"))
			s.Gone(t, s.Interrupted(t, "trap '' TERM; echo $$; while :; do sleep 0.2; done"))
		})
	}
}

// stranger is a process that no command started.
func stranger(t *testing.T) proc.Process {
	t.Helper()
	cmd := exec.Command("sleep", "300")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	died := make(chan struct{})
	go func() { _ = cmd.Wait(); close(died) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-died })
	row, err := proc.Read(cmd.Process.Pid)
	require.NoError(t, err)
	return row
}

// A process with the number of the leader, or of one that was written down, and another start time is spared.
func TestRemote_Kill_SparesStrangers(t *testing.T) {
	r, _ := here(t, nil)
	s := stranger(t)
	r.killer.kill(t.Context(), r.carrier, s.PID, s.Start-1, "nobody")
	require.True(t, sandboxtest.Alive(s.PID), "a stranger has the leader's number")

	listed := killer{table: fmt.Sprintf(`echo "$$:1:$$:1:S"; echo "$leader:1:$leader:$born:S"; echo "%d:$leader:%d:%d:S"`, s.PID, s.PID, s.Start-1)}
	dead := s.Start + 1<<40 // no process has this leader's identity
	listed.kill(t.Context(), r.carrier, 1<<22-3, dead, "nobody")
	require.True(t, sandboxtest.Alive(s.PID), "a stranger has the number of a descendant")

	listed.table = fmt.Sprintf(`echo "$$:1:$$:1:S"; echo "$leader:1:$leader:$born:S"; echo "%d:$leader:%d:%d:S"`, s.PID, s.PID, s.Start)
	listed.kill(t.Context(), r.carrier, 1<<22-3, dead, "nobody")
	sandboxtest.Gone(t, s.PID)
}

// A leader that leads no group of its own does not give its group away.
func TestRemote_Kill_SparesTheGroupOfAnother(t *testing.T) {
	r, _ := here(t, nil)
	s := stranger(t)
	cmd := exec.Command("sleep", "300")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: s.PID}
	require.NoError(t, cmd.Start())
	died := make(chan struct{})
	go func() { _ = cmd.Wait(); close(died) }()
	defer func() { _ = cmd.Process.Kill(); <-died }()
	row, err := proc.Read(cmd.Process.Pid)
	require.NoError(t, err)
	r.killer.kill(t.Context(), r.carrier, row.PID, row.Start, "nobody")
	require.True(t, sandboxtest.Alive(s.PID))
}

func TestRemote_LoginSnapshot(t *testing.T) {
	r, home := here(t, nil)
	require.NoError(t, os.WriteFile(filepath.Join(home, ".bash_profile"), []byte(`
export GREETING="two
lines" MY_API_KEY=sk-hidden
greet() { echo "hello $1"; }
alias hi='echo hi'
echo noise of the start file
`), 0o600))
	const line = "greet you; hi; echo \"$GREETING\"; echo key=[$MY_API_KEY]"
	require.Equal(t, "hello you\nhi\ntwo\nlines\nkey=[]\n", sandboxtest.MustExec(t, r, line).Output)
	private := r.known.private
	st, err := os.Lstat(private)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), st.Mode().Perm())

	// A snapshot that is gone is made again; the command that notices runs in a login shell.
	source := r.known.shell.Source
	require.NoError(t, os.Remove(source))
	require.Contains(t, sandboxtest.MustExec(t, r, "greet you").Output, "hello you\n")
	sandboxtest.Eventually(t, "a new snapshot", func() bool { sandboxtest.MustExec(t, r, "true"); _, err := os.Stat(source); return err == nil })
	require.Equal(t, "hello you\nhi\ntwo\nlines\nkey=[]\n", sandboxtest.MustExec(t, r, line).Output)
	require.NoError(t, r.Close())
	require.NoFileExists(t, source)
}

func TestRemote_LoginSnapshot_FailureFallsBack(t *testing.T) {
	r, home := here(t, nil)
	require.NoError(t, os.WriteFile(filepath.Join(home, ".bash_profile"), []byte("env() { return 1; }\nexport FROM_LOGIN=yes\n"), 0o600))
	require.Equal(t, "yes\n", sandboxtest.MustExec(t, r, "echo $FROM_LOGIN").Output)
	require.Equal(t, "-l", r.known.shell.Argv[1])

	r, home = here(t, nil)
	require.NoError(t, os.WriteFile(filepath.Join(home, ".bash_profile"), []byte("exit 7\n"), 0o600))
	require.Equal(t, "ok\n", sandboxtest.MustExec(t, r, "echo ok").Output)
	require.Equal(t, "-c", r.known.shell.Argv[1])
}

// What somebody else put in the place of the private directory is not taken.
func TestRemote_PrivateDirThatIsALinkIsRefused(t *testing.T) {
	elsewhere, tmp := t.TempDir(), t.TempDir()
	r, _ := here(t, func(c *hereCarrier, _ *Options) { c.env = append(c.env, "TMPDIR="+tmp) })
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(tmp, fmt.Sprintf(".herald-%d", os.Getuid()))))
	require.Equal(t, "ok\n", sandboxtest.MustExec(t, r, "echo ok").Output)
	require.NotContains(t, r.known.private, tmp)
	left, err := os.ReadDir(elsewhere)
	require.NoError(t, err)
	require.Empty(t, left)
}

// A connection that is lost under a command is reported, with the output so far, and the command is not run again; one
// that can't be made is another matter.
func TestRemote_LostConnection(t *testing.T) {
	lost := errors.New("lost")
	var carrier *hereCarrier
	r, home := here(t, func(c *hereCarrier, _ *Options) { carrier = c })
	require.Equal(t, "ok\n", sandboxtest.MustExec(t, r, "echo ok").Output)
	carrier.fail = func([]string) error { return fmt.Errorf("%w: %w", sandbox.ErrUnavailable, lost) }
	_, err := r.Exec(t.Context(), sandbox.Command{Line: "true"})
	require.ErrorIs(t, err, lost)
	require.NotErrorIs(t, err, ErrStarted)
	_, err = r.Start(t.Context(), sandbox.Command{Line: "true"})
	require.ErrorIs(t, err, lost)
	carrier.fail = nil

	// The wrapper dies without a report.
	res, err := r.Exec(t.Context(), sandbox.Command{Line: "echo x >> " + shell.Quote(filepath.Join(home, "ran")) + "; echo so far; kill -9 0"})
	require.NoError(t, err)
	require.Equal(t, 137, res.ExitCode)
	require.Equal(t, "so far\n", res.Output)
	b, err := os.ReadFile(filepath.Join(home, "ran"))
	require.NoError(t, err)
	require.Equal(t, "x\n", string(b))
}

// Close ends what runs and, unless they are to be kept, the background commands.
func TestRemote_Close(t *testing.T) {
	for _, keep := range []bool{false, true} {
		var env []string
		r, _ := here(t, func(c *hereCarrier, o *Options) { o.KeepJobs, env = keep, c.env })
		p, err := r.Start(t.Context(), sandbox.Command{Line: "sleep 300"})
		require.NoError(t, err)
		over := make(chan sandbox.Result, 1)
		up := make(chan struct{})
		var once sync.Once
		go func() {
			res, _ := r.Exec(context.Background(), sandbox.Command{Line: "echo $$; sleep 300",
				Output: sandboxtest.Writer(func([]byte) { once.Do(func() { close(up) }) })})
			over <- res
		}()
		<-up
		require.NoError(t, r.Close())
		sandboxtest.Gone(t, sandboxtest.FirstPID(t, (<-over).Output))
		require.Equal(t, keep, sandboxtest.Alive(p.PID()))
		if keep {
			next, _ := here(t, func(c *hereCarrier, _ *Options) { c.env = env })
			q, err := next.Resume(t.Context(), p.Ref(), sandbox.Command{})
			require.NoError(t, err)
			require.NoError(t, next.Kill(t.Context(), q))
		}
		sandboxtest.Gone(t, p.PID())
		_, err = r.Exec(t.Context(), sandbox.Command{Line: "true"})
		require.ErrorIs(t, err, sandbox.ErrUnavailable)
		_, err = r.Start(t.Context(), sandbox.Command{Line: "true"})
		require.ErrorIs(t, err, sandbox.ErrUnavailable)
	}
}

func TestScriptError(t *testing.T) {
	for line, want := range map[string]error{
		"stat: cannot statx '/x/Permission denied': No such file or directory": fs.ErrNotExist,
		"sh: 3: cannot create /x/y: Permission denied":                         fs.ErrPermission,
		"sh: can't create /x/y: nonexistent directory":                         fs.ErrNotExist,
		"mkdir: cannot create directory '/x': File exists":                     fs.ErrExist,
		"Not a regular file":                        sandbox.ErrNotRegular,
		"cat: write error: No space left on device": syscall.ENOSPC,
	} {
		require.ErrorIs(t, scriptError(line, 1), want, line)
	}
	require.ErrorContains(t, scriptError("", 7), "code 7")
	require.ErrorContains(t, scriptError("something else", 7), "something else")
}

func FuzzScriptArgs(f *testing.F) {
	f.Add("it's", "\xff\\0101%s\n", "-n")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		args := []string{a, b, c}
		if strings.ContainsRune(a+b+c, 0) {
			return
		}
		argv := scriptArgs(`printf '%s\0' "$@"`, args)
		out, err := exec.Command(argv[0], argv[1:]...).Output()
		if err != nil || string(out) != a+"\x00"+b+"\x00"+c+"\x00" {
			t.Fatalf("%q %v", out, err)
		}
	})
}
