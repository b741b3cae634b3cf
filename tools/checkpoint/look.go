package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// errTooMany says that a directory has more entries than are looked at.
var errTooMany = errors.New("the directory has too many files")

// skipped are directories that no checkpoint holds; see excluded.
var skipped = func() map[string]bool {
	m := map[string]bool{}
	for line := range strings.Lines(excluded) {
		if name, ok := strings.CutSuffix(strings.TrimSpace(line), "/"); ok {
			m[name] = true
		}
	}
	return m
}()

// looks is how the files and links of a directory look, by the directory that they are in: "" is the directory itself,
// others end in a slash. Directories without files are left out, and files are sorted by name.
type looks map[string][]seen

// seen is how one file or link looks.
type seen struct {
	name string
	at   stamp
}

// at returns how a path looks, the zero stamp for one that is not there.
func (l looks) at(path string) stamp {
	cut := strings.LastIndexByte(path, '/') + 1
	files := l[path[:cut]]
	i, ok := slices.BinarySearchFunc(files, path[cut:], func(f seen, name string) int { return strings.Compare(f.name, name) })
	if !ok {
		return stamp{}
	}
	return files[i].at
}

// equal reports whether two directories look the same.
func (l looks) equal(other looks) bool {
	if len(l) != len(other) {
		return false
	}
	for dir, files := range l {
		if !slices.Equal(files, other[dir]) {
			return false
		}
	}
	return true
}

// changed lists the paths that look different from before, those that are gone included.
func (l looks) changed(before looks) (paths []string) {
	for dir, files := range l {
		old := before[dir]
		if slices.Equal(files, old) {
			continue
		}
		for _, f := range files {
			if before.at(dir+f.name) != f.at {
				paths = append(paths, dir+f.name)
			}
		}
	}
	for dir, old := range before {
		if slices.Equal(l[dir], old) {
			continue
		}
		for _, f := range old {
			if l.at(dir+f.name) == (stamp{}) {
				paths = append(paths, dir+f.name)
			}
		}
	}
	return paths
}

// look looks at a directory. It opens each directory from the one above and follows no link, so that what it sees is below
// the directory whatever is exchanged meanwhile.
func (s *Store) look(dir string) (looks, error) {
	root, err := s.open(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	top, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	l := &looker{most: int64(s.o.MaxEntries), spare: make(chan struct{}, lookers-1), seen: looks{}}
	err = l.into(top, "")
	l.others.Wait()
	if err == nil {
		err = l.failed
	}
	return l.seen, err
}

// lookers is how many directories are looked at side by side, once manyFiles were seen: before that one is as quick and
// costs less.
const (
	lookers   = 4
	manyFiles = 2000
)

type looker struct {
	most   int64
	count  atomic.Int64
	spare  chan struct{}
	others sync.WaitGroup

	mu     sync.Mutex // guards the rest
	seen   looks
	failed error
}

// into looks at one directory, which it closes, and at those below it.
func (l *looker) into(dir *os.File, from string) error {
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		if from == "" {
			return err
		}
		return nil // a directory that is gone by now, or that can't be read: no picture holds it
	}
	if from != "" {
		for _, e := range entries {
			if e.Name() == ".git" {
				return nil // another repository: git takes no picture of its files
			}
		}
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	here := make([]seen, 0, len(entries))
	fd := int(dir.Fd())
	for _, e := range entries {
		name := e.Name()
		switch kind := e.Type(); {
		case kind.IsDir():
			if !skipped[name] {
				if err := l.below(fd, name, from+name+"/"); err != nil {
					return err
				}
			}
		case kind.IsRegular(), kind&os.ModeSymlink != 0:
			if st := stampAt(fd, name); st != (stamp{}) {
				here = append(here, seen{name, st})
			}
		case name == ".gitignore" || name == ".gitattributes":
			return fmt.Errorf("%w: %s%s is neither a file nor a link", ErrRefused, from, name) // git would wait for it
		}
	}
	if l.count.Add(int64(len(here))) > l.most {
		return errTooMany
	}
	if len(here) > 0 {
		l.mu.Lock()
		l.seen[from] = here
		l.mu.Unlock()
	}
	return nil
}

// below looks at a directory in another one, beside it where that is allowed.
func (l *looker) below(parent int, name, from string) error {
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // gone, exchanged, or closed to us
	}
	dir := os.NewFile(uintptr(fd), from)
	if l.count.Load() < manyFiles {
		return l.into(dir, from)
	}
	select {
	case l.spare <- struct{}{}:
		l.others.Go(func() {
			err := l.into(dir, from)
			<-l.spare
			if err != nil {
				l.mu.Lock()
				l.failed = err
				l.mu.Unlock()
			}
		})
		return nil
	default:
		return l.into(dir, from)
	}
}
