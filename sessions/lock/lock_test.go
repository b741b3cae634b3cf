package lock_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"herald/sessions/lock"
)

const childPath = "HERALD_LOCK_TEST_PATH"

// TestMain doubles as the other process: it takes the lock, says so, and holds it until its input ends.
func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		if _, err := lock.Acquire(path, lock.Info{Home: "/home/other", Profile: "work", What: "the thing"}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestLock_Acquire_SecondOneFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "a.lock")
	l, err := lock.Acquire(path, lock.Info{Home: "/h", What: "the store"})
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	_, err = lock.Acquire(path, lock.Info{})
	var held *lock.HeldError
	require.ErrorAs(t, err, &held)
	require.True(t, held.Holder.Own(), "a process recognises its own lock")
	require.Equal(t, "/h", held.Holder.Home)
	require.ErrorContains(t, err, "already in use by this process")

	require.NoError(t, l.Release())
	require.NoError(t, l.Release())
	require.FileExists(t, path, "the file stays")
	again, err := lock.Acquire(path, lock.Info{})
	require.NoError(t, err)
	require.NoError(t, again.Release())
}

func TestLock_Acquire_OtherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childPath+"="+path)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held\n", line)

	_, err = lock.Acquire(path, lock.Info{})
	var held *lock.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, cmd.Process.Pid, held.Holder.PID)
	require.Equal(t, "/home/other", held.Holder.Home)
	require.Equal(t, "work", held.Holder.Profile)
	require.True(t, held.Holder.Alive())
	require.False(t, held.Holder.Own())
	require.ErrorContains(t, err, fmt.Sprintf("the thing is in use by process %d of /home/other", cmd.Process.Pid))

	// A kill leaves the record behind; it counts for nothing.
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	_ = in.Close()
	left, err := lock.Read(path)
	require.NoError(t, err)
	require.Equal(t, cmd.Process.Pid, left.PID)
	require.False(t, left.Alive())
	l, err := lock.Acquire(path, lock.Info{})
	require.NoError(t, err)
	require.NoError(t, l.Release())
}

func TestInfo_Alive_RecycledPid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	l, err := lock.Acquire(path, lock.Info{})
	require.NoError(t, err)
	info, err := lock.Read(path)
	require.NoError(t, err)
	require.True(t, info.Alive())
	require.NotZero(t, info.Start)
	info.Start -= 3_600_000 // an hour earlier the pid was another process
	require.False(t, info.Alive())
	require.False(t, lock.Info{}.Alive())
	require.NoError(t, l.Release())
}

func TestLock_Acquire_Unusable(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	_, err := lock.Acquire(filepath.Join(dir, "file", "a.lock"), lock.Info{})
	require.Error(t, err)
	var held *lock.HeldError
	require.False(t, errors.As(err, &held))
	require.ErrorContains(t, err, filepath.Join(dir, "file"))
}
