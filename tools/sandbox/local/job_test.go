package local

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/tools/sandbox"
	"herald/tools/sandbox/proc"
	"herald/tools/sandbox/sandboxtest"
)

// keeping makes an environment whose background commands are kept in dir and outlive it.
func keeping(t *testing.T, dir string) *Environment {
	return newLocal(t, func(o *Options) { o.JobDir, o.KeepJobs = dir, true })
}

func TestJob_OutputAndExitCode(t *testing.T) {
	l := newLocal(t, nil)
	var out sandboxtest.Record
	p, err := l.Start(t.Context(), sandbox.Command{Line: "echo one; echo two >&2; read x || echo no-input; exit 7", Output: &out, ID: "proc_a1"})
	require.NoError(t, err)
	require.Equal(t, 7, sandboxtest.Ends(t, p))
	require.Equal(t, "one\ntwo\nno-input\n", out.String())
	require.Equal(t, "proc_a1", p.ID())
	require.EqualValues(t, len(out.String()), p.Ref().Offset)
	_, err = p.Write([]byte("x"))
	require.Error(t, err)
	_, err = l.Start(t.Context(), sandbox.Command{Line: "true", ID: "proc_a1"})
	require.ErrorIs(t, err, os.ErrExist)
	_, err = l.Start(t.Context(), sandbox.Command{Line: "true", ID: "../x"})
	require.Error(t, err)
	st, err := os.Stat(p.Ref().Dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), st.Mode().Perm())
}

func TestJob_Input(t *testing.T) {
	l := newLocal(t, nil)
	var out sandboxtest.Record
	p, err := l.Start(t.Context(), sandbox.Command{Line: `while IFS= read -r x; do echo "got $x"; done; echo eof`, Output: &out, Input: true})
	require.NoError(t, err)
	long := strings.Repeat("ab", 3000)
	for _, line := range []string{"first", long} {
		n, err := p.Write([]byte(line + "\n"))
		require.NoError(t, err)
		require.Equal(t, len(line)+1, n)
	}
	out.Shows(t, "got "+long+"\n")
	require.NoError(t, p.CloseInput())
	require.NoError(t, p.CloseInput())
	_, err = p.Write([]byte("late"))
	require.ErrorIs(t, err, sandbox.ErrGone)
	require.Zero(t, sandboxtest.Ends(t, p))
	require.True(t, strings.HasSuffix(out.String(), "eof\n"))

	var all sandboxtest.Record
	p, err = l.Start(t.Context(), sandbox.Command{Line: "wc -c", Output: &all, Stdin: strings.NewReader(strings.Repeat("x", 300_000))})
	require.NoError(t, err)
	require.Zero(t, sandboxtest.Ends(t, p))
	require.Equal(t, "300000", strings.TrimSpace(all.String()))
}

func TestJob_Terminal(t *testing.T) {
	l := newLocal(t, nil)
	var out sandboxtest.Record
	p, err := l.Start(t.Context(), sandbox.Command{Line: `test -t 0 && test -t 1 && stty size; IFS= read -r x; echo "hello $x"; cat >/dev/null; echo eof`, Output: &out, TTY: &sandbox.TTY{Rows: 30, Cols: 99}})
	require.NoError(t, err)
	out.Shows(t, "30 99")
	_, err = p.Write([]byte("you\n"))
	require.NoError(t, err)
	out.Shows(t, "hello you")
	require.NoError(t, p.CloseInput())
	require.Zero(t, sandboxtest.Ends(t, p))
	require.Contains(t, out.String(), "eof")
}

// A child that holds the output does not keep the command from ending.
func TestJob_EndIsSeenThroughAHeldPipe(t *testing.T) {
	l := newLocal(t, nil)
	var out sandboxtest.Record
	p, err := l.Start(t.Context(), sandbox.Command{Line: "sleep 300 & echo $!; exit 4", Output: &out})
	require.NoError(t, err)
	require.Equal(t, 4, sandboxtest.Ends(t, p))
	pid, err := json.Number(strings.TrimSpace(out.String())).Int64()
	require.NoError(t, err)
	_ = syscall.Kill(int(pid), syscall.SIGKILL)
}

// A process that was started in a session of its own dies with its command.
func TestJob_KillReachesASetsidChild(t *testing.T) {
	l := newLocal(t, nil)
	var out sandboxtest.Record
	p, err := l.Start(t.Context(), sandbox.Command{Line: "setsid sleep 300 & echo $!; sleep 300", Output: &out})
	require.NoError(t, err)
	out.Shows(t, "\n")
	require.NoError(t, l.Kill(t.Context(), p))
	sandboxtest.Gone(t, p.PID())
	pid, err := json.Number(strings.TrimSpace(out.String())).Int64()
	require.NoError(t, err)
	sandboxtest.Gone(t, int(pid))
	require.Equal(t, 143, p.ExitCode())
}

// A daemon that went away finds its processes again: output from where it was, input, terminal, exit code.
func TestJob_ResumeRunning(t *testing.T) {
	for name, tty := range map[string]*sandbox.TTY{"pipe": nil, "terminal": {}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := keeping(t, dir)
			var before sandboxtest.Record
			p, err := first.Start(t.Context(), sandbox.Command{Line: `stty -echo 2>/dev/null; echo "héllo"; IFS= read -r x; echo "got $x"; IFS= read -r y; echo "and $y"; exit 5`, Output: &before, Input: true, TTY: tty, ID: "proc_r"})
			require.NoError(t, err)
			before.Shows(t, "héllo")
			ref := p.Ref()
			require.NoError(t, first.Close())
			require.True(t, sandboxtest.Alive(p.PID()))

			second := keeping(t, dir)
			var replay, after sandboxtest.Record
			q, err := second.Resume(t.Context(), ref, sandbox.Command{Output: &after, Replay: &replay})
			require.NoError(t, err)
			require.Equal(t, p.PID(), q.PID())
			for i, word := range []string{"one", "two"} {
				_, err = q.Write([]byte(word + "\n"))
				require.NoError(t, err)
				after.Shows(t, []string{"got one", "and two"}[i])
			}
			require.Equal(t, 5, sandboxtest.Ends(t, q))
			require.Equal(t, before.String(), replay.String())
			require.NotContains(t, after.String(), "héllo")

			third := keeping(t, dir)
			var all sandboxtest.Record
			r, err := third.Resume(t.Context(), sandbox.Ref{ID: "proc_r"}, sandbox.Command{Output: &all})
			require.NoError(t, err)
			require.Equal(t, 5, sandboxtest.Ends(t, r))
			require.Equal(t, before.String()+after.String(), all.String())
		})
	}
}

func TestJob_ResumeUnknown(t *testing.T) {
	l := keeping(t, t.TempDir())
	for _, id := range []string{"proc_none", "", "../x"} {
		_, err := l.Resume(t.Context(), sandbox.Ref{ID: id}, sandbox.Command{})
		require.ErrorIs(t, err, sandbox.ErrGone, id)
	}
}

// A number that belongs to another process by now is never signalled, and never waited for.
func TestJob_ResumeNeverSignalsAStranger(t *testing.T) {
	stranger := exec.Command("sleep", "300")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, stranger.Start())
	died := make(chan struct{})
	go func() { _ = stranger.Wait(); close(died) }()
	defer func() { _ = stranger.Process.Kill(); <-died }()
	row, err := proc.Read(stranger.Process.Pid)
	require.NoError(t, err)

	dir := t.TempDir()
	l := keeping(t, dir)
	for name, who := range map[string]jobIdentity{
		"other start": {PID: row.PID, Start: row.Start - 1, Boot: bootID(), Mark: "nobody"},
		"no start":    {PID: row.PID, Boot: bootID(), Mark: "nobody"},
		"other boot":  {PID: row.PID, Start: row.Start, Boot: "before", Mark: "nobody"},
	} {
		id := strings.ReplaceAll(name, " ", "_")
		require.NoError(t, os.Mkdir(filepath.Join(dir, id), 0o700))
		require.NoError(t, makePipes(filepath.Join(dir, id)))
		b, err := json.Marshal(who)
		require.NoError(t, err)
		require.NoError(t, writeWhole(filepath.Join(dir, id), jobState, b))

		// A kill before anybody noticed that the process is gone.
		j := newJob(id, filepath.Join(dir, id), who)
		j.kill(l.killer)
		p, err := l.Resume(t.Context(), sandbox.Ref{ID: id}, sandbox.Command{})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		require.NoError(t, l.Kill(ctx, p))
		cancel()
		require.Equal(t, sandbox.ExitUnknown, sandboxtest.Ends(t, p), name)
	}
	select {
	case <-died:
		t.Fatal("a stranger was killed")
	default:
	}
}

// Without its supervisor a command is watched until it ends, and can be killed.
func TestJob_LostSupervisor(t *testing.T) {
	dir := t.TempDir()
	first := keeping(t, dir)
	p, err := first.Start(t.Context(), sandbox.Command{Line: "sleep 300", ID: "proc_l"})
	require.NoError(t, err)
	row, err := proc.Read(p.PID())
	require.NoError(t, err)
	require.NoError(t, first.Close())
	require.NoError(t, syscall.Kill(row.Parent, syscall.SIGKILL))

	second := keeping(t, dir)
	q, err := second.Resume(t.Context(), p.Ref(), sandbox.Command{})
	require.NoError(t, err)
	require.NoError(t, second.Kill(t.Context(), q))
	require.Equal(t, sandbox.ExitUnknown, sandboxtest.Ends(t, q))
	sandboxtest.Gone(t, p.PID())
}

// A command that prints without end does not fill the disk; the end of its output is kept, and the gap is reported.
func TestJob_LogIsBounded(t *testing.T) {
	const limit = 64 << 10
	dir := t.TempDir()
	l := newLocal(t, func(o *Options) { o.JobDir, o.JobLog = dir, limit })
	p, err := l.Start(t.Context(), sandbox.Command{Line: "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo the end", ID: "proc_big"})
	require.NoError(t, err)
	require.Zero(t, sandboxtest.Ends(t, p))
	var size int64
	entries, err := os.ReadDir(p.Ref().Dir)
	require.NoError(t, err)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		if strings.HasPrefix(e.Name(), segmentPrefix) {
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
			size += info.Size()
		}
	}
	require.LessOrEqual(t, size, int64(limit))
	var all sandboxtest.Record
	q, err := l.Resume(t.Context(), sandbox.Ref{ID: "proc_big"}, sandbox.Command{Output: &all})
	require.NoError(t, err)
	require.Zero(t, sandboxtest.Ends(t, q))
	require.Contains(t, all.String(), "bytes of output were dropped here]")
	require.True(t, strings.HasSuffix(all.String(), "x\nthe end\n"))
	require.LessOrEqual(t, len(all.String()), limit+100)
}

func TestJobLog_ReaderSeesEveryByteOnce(t *testing.T) {
	dir := t.TempDir()
	w := jobLog{dir: dir, half: 10}
	r := logReader{dir: dir}
	defer w.close()
	defer r.close()
	var got []byte
	buf := make([]byte, 7)
	for i := range 40 {
		_, _ = w.Write([]byte{byte('a' + i%26)})
		for {
			n, missed, err := r.read(buf)
			require.NoError(t, err)
			require.Zero(t, missed)
			if n == 0 {
				break
			}
			got = append(got, buf[:n]...)
		}
	}
	require.Equal(t, "abcdefghijklmnopqrstuvwxyzabcdefghijklmn", string(got))
	late := logReader{dir: dir}
	defer late.close()
	n, missed, err := late.read(buf)
	require.NoError(t, err)
	require.EqualValues(t, 20, missed)
	require.Equal(t, "uvwxyza", string(buf[:n]))
}

// Start returns with the context, and nothing is left behind.
func TestJob_StartIsCancelled(t *testing.T) {
	dir := t.TempDir()
	l := newLocal(t, func(o *Options) {
		o.JobDir, o.Supervisor = dir, []string{"/bin/sleep", "300"}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := l.Start(ctx, sandbox.Command{Line: "echo never"})
	require.ErrorIs(t, err, ctx.Err())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}
