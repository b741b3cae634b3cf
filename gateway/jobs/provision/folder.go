package provision

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// maxFiles is how many files of the folder are read, the first by name.
const maxFiles = 500

// folderWatch asks the system for changes in the folder. Without its help looking now and then is all there is.
type folderWatch struct {
	dir    string
	w      *fsnotify.Watcher
	events <-chan fsnotify.Event
	done   chan struct{}
}

func newFolderWatch(home string) *folderWatch {
	f := &folderWatch{dir: filepath.Join(home, Dir), done: make(chan struct{})}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		close(f.done)
		return f
	}
	f.w, f.events = w, w.Events
	go func() { // errors (a full queue) are made good by looking
		defer close(f.done)
		for range w.Errors {
		}
	}()
	return f
}

// arm watches the folder when it is there; doing it again takes up one that is new.
func (f *folderWatch) arm() {
	if f.w != nil {
		_ = f.w.Add(f.dir)
	}
}

func (f *folderWatch) stop() {
	if f.w != nil {
		_ = f.w.Close()
	}
	<-f.done
}

// listFolder returns the files of a home's folder with a stamp that changes when their content may have. Without a folder there are
// no files.
func listFolder(home string) (stamps map[string]string, root *os.Root, why error) {
	root, err := os.OpenRoot(home)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: the home can't be opened: %w", Dir, unwrap(err))
	}
	info, err := root.Stat(Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, root, nil
	}
	if err == nil && !info.IsDir() {
		err = errors.New("it is no folder")
	}
	if err != nil {
		return nil, root, fmt.Errorf("%s: it can't be read: %w", Dir, unwrap(err))
	}
	if err := trusted(Dir, info); err != nil {
		return nil, root, err
	}
	dir, err := root.Open(Dir)
	if err != nil {
		return nil, root, fmt.Errorf("%s: it can't be read: %w", Dir, unwrap(err))
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, root, fmt.Errorf("%s: it can't be read: %w", Dir, unwrap(err))
	}
	slices.Sort(names)
	stamps = map[string]string{}
	for _, base := range names {
		if ext := path.Ext(base); strings.HasPrefix(base, ".") || ext != ".yaml" && ext != ".yml" {
			continue // editors' own files, and notes
		}
		if len(stamps) == maxFiles {
			return nil, root, fmt.Errorf("%s: there are more than %d files; put more jobs into each", Dir, maxFiles)
		}
		name := path.Join(Dir, base)
		stamps[name] = "unreadable"
		if info, err := root.Stat(name); err == nil {
			stamps[name] = stampOf(info)
		} else if errors.Is(err, fs.ErrNotExist) && !isLink(root, name) {
			delete(stamps, name) // removed since it was listed
		}
	}
	return stamps, root, nil
}

// isLink reports whether a name is a symbolic link, which may lead nowhere.
func isLink(root *os.Root, name string) bool {
	info, err := root.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// read returns a file that only its owner can have written. A link that leads out of the home is refused.
func read(root *os.Root, name string) (data []byte, stamp string, why error) {
	if path.Ext(name) != ".yaml" {
		return nil, "", fmt.Errorf("%s: it is not read; let its name end in .yaml", name)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if isLink(root, name) {
			return nil, "", fmt.Errorf("%s: it is a link that leads out of the home or nowhere (%w); put the file itself there", name,
				unwrap(err))
		}
		return nil, "", fmt.Errorf("%s: it can't be read: %w", name, unwrap(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, "", fmt.Errorf("%s: it can't be read: %w", name, unwrap(err))
	}
	if !info.Mode().IsRegular() {
		return nil, "", fmt.Errorf("%s: it is no file", name)
	}
	if err := trusted(name, info); err != nil {
		return nil, "", err
	}
	data, err = io.ReadAll(io.LimitReader(f, MaxBytes+1))
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("%s: it can't be read: %w", name, unwrap(err))
	case len(data) > MaxBytes:
		return nil, "", fmt.Errorf("%s: it is larger than %d bytes; split it", name, MaxBytes)
	}
	return data, stampOf(info), nil
}

// trusted refuses what others may have written: whoever writes a job says what the agent does.
func trusted(name string, info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("%s: others may change it (mode %04o); run: chmod go-w %s", name, mode, name)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() && st.Uid != 0 {
		return fmt.Errorf("%s: it belongs to user %d, and Herald runs as user %d; run: chown %d %s", name, st.Uid, os.Geteuid(),
			os.Geteuid(), name)
	}
	return nil
}

// stampOf is another one when a file was written, replaced, or given to somebody else.
func stampOf(info fs.FileInfo) string {
	owner, inode := uint32(0), uint64(0)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		owner, inode = st.Uid, st.Ino
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano(), info.Mode(), owner, inode)
}

// unwrap takes the path off an error whose message names it anyway.
func unwrap(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
