package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// record is a sink that can be looked at.
type record struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.String()
}

// shows waits for a text.
func (r *record) shows(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(r.String(), text); {
		if time.Now().After(deadline) {
			t.Fatalf("%q never came; there is %q", text, r.String())
		}
		<-time.After(5 * time.Millisecond)
	}
}

func ends(t *testing.T, p Process) int {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("it never ended")
	}
	return p.ExitCode()
}

// keeping makes an environment whose background commands are kept in dir and outlive it.
func keeping(t *testing.T, dir string) *Local {
	return newLocal(t, func(o *LocalOptions) { o.JobDir, o.KeepJobs = dir, true })
}

func TestJob_OutputAndExitCode(t *testing.T) {
	l := newLocal(t, nil)
	var out record
	p, err := l.Start(t.Context(), Command{Line: "echo one; echo two >&2; read x || echo no-input; exit 7", Output: &out, ID: "proc_a1"})
	require.NoError(t, err)
	require.Equal(t, 7, ends(t, p))
	require.Equal(t, "one\ntwo\nno-input\n", out.String())
	require.Equal(t, "proc_a1", p.ID())
	require.EqualValues(t, len(out.String()), p.Ref().Offset)
	_, err = p.Write([]byte("x"))
	require.Error(t, err)
	_, err = l.Start(t.Context(), Command{Line: "true", ID: "proc_a1"})
	require.ErrorIs(t, err, os.ErrExist)
	_, err = l.Start(t.Context(), Command{Line: "true", ID: "../x"})
	require.Error(t, err)
	st, err := os.Stat(p.Ref().Dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), st.Mode().Perm())
}

func TestJob_Input(t *testing.T) {
	l := newLocal(t, nil)
	var out record
	p, err := l.Start(t.Context(), Command{Line: `while IFS= read -r x; do echo "got $x"; done; echo eof`, Output: &out, Input: true})
	require.NoError(t, err)
	long := strings.Repeat("ab", 3000)
	for _, line := range []string{"first", long} {
		n, err := p.Write([]byte(line + "\n"))
		require.NoError(t, err)
		require.Equal(t, len(line)+1, n)
	}
	out.shows(t, "got "+long+"\n")
	require.NoError(t, p.CloseInput())
	require.NoError(t, p.CloseInput())
	_, err = p.Write([]byte("late"))
	require.ErrorIs(t, err, ErrGone)
	require.Zero(t, ends(t, p))
	require.True(t, strings.HasSuffix(out.String(), "eof\n"))

	var all record
	p, err = l.Start(t.Context(), Command{Line: "wc -c", Output: &all, Stdin: strings.NewReader(strings.Repeat("x", 300_000))})
	require.NoError(t, err)
	require.Zero(t, ends(t, p))
	require.Equal(t, "300000", strings.TrimSpace(all.String()))
}

func TestJob_Terminal(t *testing.T) {
	l := newLocal(t, nil)
	var out record
	p, err := l.Start(t.Context(), Command{Line: `test -t 0 && test -t 1 && stty size; IFS= read -r x; echo "hello $x"; cat >/dev/null; echo eof`, Output: &out, TTY: &TTY{Rows: 30, Cols: 99}})
	require.NoError(t, err)
	out.shows(t, "30 99")
	_, err = p.Write([]byte("you\n"))
	require.NoError(t, err)
	out.shows(t, "hello you")
	require.NoError(t, p.CloseInput())
	require.Zero(t, ends(t, p))
	require.Contains(t, out.String(), "eof")
}

// A child that holds the output does not keep the command from ending.
func TestJob_EndIsSeenThroughAHeldPipe(t *testing.T) {
	l := newLocal(t, nil)
	var out record
	p, err := l.Start(t.Context(), Command{Line: "sleep 300 & echo $!; exit 4", Output: &out})
	require.NoError(t, err)
	require.Equal(t, 4, ends(t, p))
	pid, err := json.Number(strings.TrimSpace(out.String())).Int64()
	require.NoError(t, err)
	_ = syscall.Kill(int(pid), syscall.SIGKILL)
}

// A process that was started in a session of its own dies with its command.
func TestJob_KillReachesASetsidChild(t *testing.T) {
	l := newLocal(t, nil)
	var out record
	p, err := l.Start(t.Context(), Command{Line: "setsid sleep 300 & echo $!; sleep 300", Output: &out})
	require.NoError(t, err)
	out.shows(t, "\n")
	require.NoError(t, l.Kill(t.Context(), p))
	gone(t, p.PID())
	pid, err := json.Number(strings.TrimSpace(out.String())).Int64()
	require.NoError(t, err)
	gone(t, int(pid))
	require.Equal(t, 143, p.ExitCode())
}

// A daemon that went away finds its processes again: output from where it was, input, terminal, exit code.
func TestJob_ResumeRunning(t *testing.T) {
	for name, tty := range map[string]*TTY{"pipe": nil, "terminal": {}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := keeping(t, dir)
			var before record
			p, err := first.Start(t.Context(), Command{Line: `stty -echo 2>/dev/null; echo "héllo"; IFS= read -r x; echo "got $x"; IFS= read -r y; echo "and $y"; exit 5`, Output: &before, Input: true, TTY: tty, ID: "proc_r"})
			require.NoError(t, err)
			before.shows(t, "héllo")
			ref := p.Ref()
			require.NoError(t, first.Close())
			require.True(t, alive(p.PID()))

			second := keeping(t, dir)
			var replay, after record
			q, err := second.Resume(t.Context(), ref, Command{Output: &after, Replay: &replay})
			require.NoError(t, err)
			require.Equal(t, p.PID(), q.PID())
			for i, word := range []string{"one", "two"} {
				_, err = q.Write([]byte(word + "\n"))
				require.NoError(t, err)
				after.shows(t, []string{"got one", "and two"}[i])
			}
			require.Equal(t, 5, ends(t, q))
			require.Equal(t, before.String(), replay.String())
			require.NotContains(t, after.String(), "héllo")

			third := keeping(t, dir)
			var all record
			r, err := third.Resume(t.Context(), Ref{ID: "proc_r"}, Command{Output: &all})
			require.NoError(t, err)
			require.Equal(t, 5, ends(t, r))
			require.Equal(t, before.String()+after.String(), all.String())
		})
	}
}

func TestJob_ResumeUnknown(t *testing.T) {
	l := keeping(t, t.TempDir())
	for _, id := range []string{"proc_none", "", "../x"} {
		_, err := l.Resume(t.Context(), Ref{ID: id}, Command{})
		require.ErrorIs(t, err, ErrGone, id)
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
	row, err := readProcess(stranger.Process.Pid)
	require.NoError(t, err)

	dir := t.TempDir()
	l := keeping(t, dir)
	for name, who := range map[string]jobIdentity{
		"other start": {PID: row.pid, Start: row.start - 1, Boot: bootID(), Mark: "nobody"},
		"no start":    {PID: row.pid, Boot: bootID(), Mark: "nobody"},
		"other boot":  {PID: row.pid, Start: row.start, Boot: "before", Mark: "nobody"},
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
		p, err := l.Resume(t.Context(), Ref{ID: id}, Command{})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		require.NoError(t, l.Kill(ctx, p))
		cancel()
		require.Equal(t, ExitUnknown, ends(t, p), name)
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
	p, err := first.Start(t.Context(), Command{Line: "sleep 300", ID: "proc_l"})
	require.NoError(t, err)
	row, err := readProcess(p.PID())
	require.NoError(t, err)
	require.NoError(t, first.Close())
	require.NoError(t, syscall.Kill(row.ppid, syscall.SIGKILL))

	second := keeping(t, dir)
	q, err := second.Resume(t.Context(), p.Ref(), Command{})
	require.NoError(t, err)
	require.NoError(t, second.Kill(t.Context(), q))
	require.Equal(t, ExitUnknown, ends(t, q))
	gone(t, p.PID())
}

// A command that prints for ever fills no disk; the end of its output is kept, and the gap is told.
func TestJob_LogIsBounded(t *testing.T) {
	const limit = 64 << 10
	dir := t.TempDir()
	l := newLocal(t, func(o *LocalOptions) { o.JobDir, o.JobLog = dir, limit })
	p, err := l.Start(t.Context(), Command{Line: "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo the end", ID: "proc_big"})
	require.NoError(t, err)
	require.Zero(t, ends(t, p))
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
	var all record
	q, err := l.Resume(t.Context(), Ref{ID: "proc_big"}, Command{Output: &all})
	require.NoError(t, err)
	require.Zero(t, ends(t, q))
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
	l := newLocal(t, func(o *LocalOptions) {
		o.JobDir, o.Supervisor = dir, []string{"/bin/sleep", "300"}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := l.Start(ctx, Command{Line: "echo never"})
	require.ErrorIs(t, err, ctx.Err())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}
