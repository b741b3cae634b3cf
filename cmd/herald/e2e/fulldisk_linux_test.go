package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/tools/needtest"
)

// smallDisk mounts a file system of some megabytes for the test.
func smallDisk(t *testing.T, options string) string {
	if os.Geteuid() != 0 {
		needtest.Lacking(t, "only root can mount a small file system")
	}
	disk := filepath.Join(t.TempDir(), "disk")
	require.NoError(t, os.Mkdir(disk, 0o755))
	if err := syscall.Mount("none", disk, "tmpfs", 0, options); err != nil {
		needtest.Lacking(t, "this machine lets nobody mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	return disk
}

func TestBad_ReadOnlyHome(t *testing.T) {
	p := newPlace(t)
	disk := smallDisk(t, "size=1m,mode=0755")
	p.home = filepath.Join(disk, "home")
	p.env = append(p.env, "HERALD_HOME="+p.home)
	require.NoError(t, os.Mkdir(p.home, 0o700))
	require.NoError(t, syscall.Mount("none", disk, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	r := p.herald("run")
	require.Equal(t, configExit, r.code)
	require.Contains(t, r.err, "read-only file system")
	require.Contains(t, r.err, "HERALD_HOME")
}

// P1, P7, P12: on a full disk what comes in is refused to the platform, which keeps it; health and log say
// so; and when there is room again it is answered, once.
func TestBad_FullDisk(t *testing.T) {
	p := newPlace(t)
	disk := smallDisk(t, "size=6m,mode=0755")
	p.home = filepath.Join(disk, "home")
	p.env = append(p.env, "HERALD_HOME="+p.home)
	tg := p.telegram()
	d := p.run()
	tg.Say(7, "echo before")
	d.until("the first message is answered", func() bool { return bot(tg, 7, "before") == 1 })

	ballast := filepath.Join(disk, "ballast")
	f, err := os.Create(ballast)
	require.NoError(t, err)
	for block := make([]byte, 64<<10); ; {
		if _, err := f.Write(block); err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
			break
		}
	}
	for one := []byte{0}; ; { // the last block, too
		if _, err := f.Write(one); err != nil {
			break
		}
	}
	require.NoError(t, f.Close())
	// The log of the database may have room of its own for a while: go on until it has not.
	sent := 0
	say := func() {
		sent++
		tg.Say(7, fmt.Sprintf("echo number %04d %s", sent, strings.Repeat("moth ", 700)))
	}
	say()
	d.until("inbound is refused", func() bool {
		status, r := d.ready()
		if status == http.StatusServiceUnavailable && len(r.Problems) > 0 && strings.Contains(d.log(), "inbound is refused") {
			require.Contains(t, strings.Join(r.Problems, " "), "full")
			return true
		}
		if bot(tg, 7, fmt.Sprintf("number %04d", sent)) > 0 {
			say()
		}
		return false
	})
	sent++
	tg.Say(7, fmt.Sprintf("echo number %04d, the last", sent))
	r := p.herald("status")
	require.NotZero(t, r.code)
	require.Contains(t, r.out, "NOT READY")

	require.NoError(t, os.Remove(ballast))
	d.until("the last one is answered", func() bool { return bot(tg, 7, fmt.Sprintf("number %04d, the last", sent)) > 0 })
	d.until("it is ready again", func() bool { status, _ := d.ready(); return status == http.StatusOK })
	for i := 1; i <= sent; i++ {
		require.Equal(t, 1, bot(tg, 7, fmt.Sprintf("number %04d", i)), "message %d is answered once", i)
	}
	d.stop()
	require.Contains(t, p.good("doctor", "db"), "no problem found")
}
