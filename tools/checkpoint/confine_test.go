package checkpoint

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// contained is a project in the mount of a container, and files of the host beside it.
func contained(t *testing.T) (b *bench, mount, host string) {
	base := t.TempDir()
	mount, host = filepath.Join(base, "mount"), filepath.Join(base, "host")
	for _, dir := range []string{mount + "/project", host} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	require.NoError(t, os.WriteFile(host+"/passwd", []byte("the host's"), 0o644))
	b = newBench(t, Options{Confine: func(path string) string {
		if within(path, mount) {
			return mount
		}
		return ""
	}})
	b.dir = mount + "/project"
	b.write("main.py", "print('hello')\n")
	b.write("etc/passwd", "the container's")
	return b, mount, host
}

func (b *bench) call(do func()) {
	b.t.Helper()
	w, err := b.store.Watch(b.t.Context(), b.dir)
	require.NoError(b.t, err)
	do()
	_, err = w.End(b.t.Context())
	require.NoError(b.t, err)
}

// A project that the container replaces by a link is none: what the link names on the host is never looked at.
func TestConfine_AProjectThatIsALink(t *testing.T) {
	t.Parallel()
	b, mount, host := contained(t)
	require.NoError(t, os.Symlink(host, mount+"/evil"))
	require.NoError(t, os.Symlink("../host", mount+"/up"))
	require.NoError(t, os.Symlink("/", mount+"/root"))
	for _, dir := range []string{mount + "/evil", mount + "/up", mount + "/root/etc", mount + "/project/../evil"} {
		_, err := b.store.Dir(dir)
		require.ErrorIs(t, err, ErrRefused, dir)
		_, err = b.store.Take(t.Context(), dir, "t", "x")
		require.ErrorIs(t, err, ErrRefused, dir)
	}
	require.NoError(t, os.Symlink("project", mount+"/inside"))
	dir, err := b.store.Dir(mount + "/inside")
	require.NoError(t, err)
	require.Equal(t, b.dir, dir)
}

// A rollback writes and removes below the mount alone, whatever the container has put in the place of a directory.
func TestConfine_RestoreFollowsNoLink(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(t *testing.T, b *bench, mount, host string){
		"a directory": func(t *testing.T, b *bench, mount, host string) {
			require.NoError(t, os.RemoveAll(b.path("etc")))
			require.NoError(t, os.Symlink(host, b.path("etc")))
		},
		"a directory, relative": func(t *testing.T, b *bench, mount, host string) {
			require.NoError(t, os.RemoveAll(b.path("etc")))
			require.NoError(t, os.Symlink("../../host", b.path("etc")))
		},
		"the file": func(t *testing.T, b *bench, mount, host string) {
			require.NoError(t, os.Remove(b.path("etc/passwd")))
			require.NoError(t, os.Symlink(host+"/passwd", b.path("etc/passwd")))
		},
		"a hard link": func(t *testing.T, b *bench, mount, host string) {
			require.NoError(t, os.Remove(b.path("etc/passwd")))
			require.NoError(t, os.Link(host+"/passwd", b.path("etc/passwd")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, mount, host := contained(t)
			b.take()
			b.call(func() {
				plant(t, b, mount, host)
				b.write("main.py", "broken")
			})
			list, err := b.store.List(t.Context(), b.dir)
			require.NoError(t, err)
			for _, all := range []bool{false, true} {
				b.back(Target{Ref: list[0].Hash, All: all})
				data, err := os.ReadFile(host + "/passwd")
				require.NoError(t, err)
				require.Equal(t, "the host's", string(data))
			}
			require.Equal(t, "the container's", b.read("etc/passwd"))
			require.Equal(t, "print('hello')\n", b.read("main.py"))
			_, err = b.store.Undo(t.Context(), b.dir, "")
			require.NoError(t, err)
			data, err := os.ReadFile(host + "/passwd")
			require.NoError(t, err)
			require.Equal(t, "the host's", string(data))
		})
	}
}

// Links that come and go while pictures are taken and rollbacks run: nothing outside the mount changes, and no byte of it
// gets into the store.
func TestConfine_LinksThatAreSwapped(t *testing.T) {
	t.Parallel()
	b, mount, host := contained(t)
	secret := "secret-of-the-host " + strings.Repeat("s", 100)
	require.NoError(t, os.MkdirAll(host+"/project/etc", 0o755))
	for _, name := range []string{"/passwd", "/project/etc/passwd", "/project/main.py"} {
		require.NoError(t, os.WriteFile(host+name, []byte(secret), 0o644))
	}
	b.take()
	ctx, stop := context.WithTimeout(t.Context(), 4*time.Second)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { // the container: the project's directory, one in it, and a file
		for ctx.Err() == nil {
			swap(b.path("etc"), host)
			swap(b.dir, host+"/project")
			swap(b.path("main.py"), host+"/passwd")
		}
	})
	for i := 0; ctx.Err() == nil; i++ {
		_, _ = b.store.Take(ctx, mount+"/project", fmt.Sprint("turn", i), "x")
		if w, _ := b.store.Watch(ctx, mount+"/project"); w != nil {
			_, _ = w.End(ctx)
		}
		_, _ = b.store.Rollback(ctx, mount+"/project", Target{Ref: "1", All: i%2 == 0})
		_, _ = b.store.Diff(ctx, mount+"/project", "1")
	}
	wg.Wait()
	for _, name := range []string{"/passwd", "/project/etc/passwd", "/project/main.py"} {
		data, err := os.ReadFile(host + name)
		require.NoError(t, err)
		require.Equal(t, secret, string(data), name)
	}
	entries, err := os.ReadDir(host + "/project")
	require.NoError(t, err)
	require.Len(t, entries, 2, "nothing was made there")
	out, err := b.store.run(t.Context(), call{args: []string{"cat-file", "--batch-check", "--batch-all-objects"}})
	require.NoError(t, err)
	require.NotContains(t, string(out), blobOf([]byte(secret)), "the host's content is in the store")
}

// swap puts a link in the place of a path, and the path back.
func swap(path, target string) {
	if os.Rename(path, path+".away") != nil {
		return
	}
	_ = os.Symlink(target, path)
	_ = os.Remove(path)
	_ = os.Rename(path+".away", path)
}

// What a container writes for git to find is not obeyed: hooks, filters, attributes, monitors, other repositories.
func TestConfine_HostileGit(t *testing.T) {
	t.Parallel()
	b, _, host := contained(t)
	trap := host + "/trapped"
	run := "touch " + trap
	config := fmt.Sprintf("[core]\n\tfsmonitor = %q\n\thooksPath = %s\n\tsshCommand = %q\n\tpager = %q\n[filter \"x\"]\n\tclean = %q\n\tsmudge = %q\n\trequired = true\n[diff \"x\"]\n\tcommand = %q\n\ttextconv = %q\n[extensions]\n\tworktreeConfig = true\n",
		run, b.dir, run, run, run, run, run, run)
	for _, git := range []string{".git", "sub/.git"} {
		b.write(git+"/config", config)
		b.write(git+"/config.worktree", config)
		b.write(git+"/HEAD", "ref: refs/heads/main\n")
		b.write(git+"/refs/heads/main", strings.Repeat("1", 40)+"\n")
		require.NoError(t, os.MkdirAll(b.path(git+"/objects"), 0o755))
	}
	b.write("sub/file.txt", "of another repository")
	b.write("mod/.git", "gitdir: "+host+"\n")
	b.write(".gitattributes", "* filter=x diff=x ident working-tree-encoding=UTF-16\n")
	b.write(".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ext::sh -c "+run+"\n\tupdate = !"+run+"\n")
	for _, hook := range []string{"post-checkout", "pre-commit", "post-index-change", "reference-transaction"} {
		b.write(hook, "#!/bin/sh\n"+run+"\n")
		require.NoError(t, os.Chmod(b.path(hook), 0o755))
	}
	b.write(".GIT/x", "a name that other systems take for git's")
	require.NoError(t, os.Symlink("main.py", b.path("etc/.gitmodules")))
	require.NoError(t, os.Symlink(host+"/passwd", b.path("etc/.gitignore")))
	b.take()
	b.call(func() { b.write("main.py", "$Id$ broken\r\n") })
	b.take()
	_, err := b.store.Diff(t.Context(), b.dir, "1")
	require.NoError(t, err)
	res := b.back(Target{Ref: "2"})
	require.Equal(t, []string{"main.py"}, res.Restored)
	require.Equal(t, "print('hello')\n", b.read("main.py"))
	_, err = b.store.Undo(t.Context(), b.dir, "")
	require.NoError(t, err)
	require.Equal(t, "$Id$ broken\r\n", b.read("main.py"))
	require.NoError(t, b.store.Verify(t.Context()))
	require.NoFileExists(t, trap)
}

// A pipe in the place of a file that git reads would hold every call up.
func TestConfine_APipeForGit(t *testing.T) {
	t.Parallel()
	b, _, _ := contained(t)
	require.NoError(t, syscall.Mkfifo(b.path(".gitignore"), 0o600))
	_, err := b.store.Take(t.Context(), b.dir, "t", "x")
	require.ErrorIs(t, err, ErrRefused)
	require.NoError(t, os.Remove(b.path(".gitignore")))
	b.take()
}

// Files come back with the permissions and the owner that they had, also where Herald is root and the container is not.
func TestRollback_KeepsModesAndOwners(t *testing.T) {
	t.Parallel()
	b, _, _ := contained(t)
	if os.Geteuid() != 0 {
		t.Log("not root: owners can't be given away, modes can")
	}
	own := func(name string, mode os.FileMode, id int) {
		require.NoError(t, os.Chmod(b.path(name), mode))
		if os.Geteuid() == 0 {
			require.NoError(t, os.Chown(b.path(name), id, id))
		}
	}
	look := func(name string) string {
		info, err := os.Lstat(b.path(name))
		require.NoError(t, err)
		st := info.Sys().(*syscall.Stat_t)
		return fmt.Sprintf("%v %d:%d", info.Mode(), st.Uid, st.Gid)
	}
	names := []string{"changed", "removed", "replaced", "new/deep/removed", "script"}
	for i, name := range names {
		b.write(name, name)
		own(name, []os.FileMode{0o600, 0o640, 0o604, 0o600, 0o750}[i], 1000+i)
	}
	before := map[string]string{}
	for _, name := range names {
		before[name] = look(name)
	}
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(b.dir, 1005, 1006))
	}
	b.take()
	b.call(func() {
		require.NoError(t, os.WriteFile(b.path("changed"), []byte("x"), 0o600))
		require.NoError(t, os.Remove(b.path("removed")))
		require.NoError(t, os.Remove(b.path("replaced")))
		b.write("replaced", "by another")
		require.NoError(t, os.RemoveAll(b.path("new")))
		require.NoError(t, os.Chmod(b.path("script"), 0o644))
	})
	b.call(func() { require.NoError(t, os.Remove(b.path("replaced"))) })
	res := b.back(Target{Ref: "1"})
	require.ElementsMatch(t, names, res.Restored)
	for _, name := range names {
		require.Equal(t, before[name], look(name), name)
	}
	if os.Geteuid() == 0 {
		info, err := os.Stat(b.path("new"))
		require.NoError(t, err)
		require.Equal(t, uint32(1005), info.Sys().(*syscall.Stat_t).Uid, "a directory that was made again belongs to whom the one above it does")
	}
}

// Close waits for git and leaves none behind; what comes later is refused.
func TestClose_LeavesNoGit(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{})
	for i := range 300 {
		b.write(fmt.Sprintf("d%d/f%d", i%10, i), strings.Repeat(fmt.Sprint(i), 500))
	}
	b.take()
	var wg sync.WaitGroup
	began := make(chan struct{}, 8)
	for i := range 4 {
		wg.Go(func() {
			began <- struct{}{}
			for n := 0; ; n++ {
				if _, err := b.store.Diff(context.Background(), b.dir, "1"); err == ErrClosed {
					return
				}
				if _, err := b.store.Take(context.Background(), b.dir, fmt.Sprint(i, "/", n), "x"); err == ErrClosed {
					return
				}
			}
		})
	}
	for range 4 {
		<-began
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, b.store.Close(ctx))
	require.Empty(t, gits(t, b.base), "a git process outlived the store")
	wg.Wait()
	_, err := b.store.List(t.Context(), b.dir)
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, b.store.Close(ctx), "once more is nothing")
	again := Open(b.store.o)
	require.NoError(t, again.Verify(t.Context()))
}

// gits lists the processes that work on a store below a directory, where the system can be asked.
func gits(t *testing.T, base string) (found []string) {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && strings.Contains(string(data), "GIT_DIR="+base) {
			found = append(found, file)
		}
	}
	return found
}
