package checkpoint

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// errChanged says that a file changed while it was read; the next attempt may find it at rest.
var errChanged = errors.New("changed while it was read")

// keepContents puts the contents of paths into the store and returns what a tree holds of each. A path that is gone by
// now, or that is no file and no link, is left out. It reads the files itself and below the directory alone: git would
// open them by name, and whoever writes there could let a name lead elsewhere in that moment.
func (s *Store) keepContents(ctx context.Context, p *project, paths []string) (kept map[string]object, err error) {
	root, err := s.open(p.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	kept = map[string]object{}
	if len(paths) == 0 {
		return kept, nil
	}
	err = s.feed(ctx, "fast-import", []string{"--quiet"}, func(git io.Writer) error {
		for _, path := range paths {
			o, err := keepContent(root, path, git)
			switch {
			case errors.Is(err, fs.ErrNotExist) || isNotDir(err) || errors.Is(err, errNoContent):
			case err != nil:
				return fmt.Errorf("%s: %w", path, err)
			default:
				kept[path] = o
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		return nil
	})
	return kept, err
}

// keepContent writes one content as a command of git fast-import.
func keepContent(root *os.Root, path string, git io.Writer) (object, error) {
	info, err := root.Lstat(path)
	if err != nil {
		return object{}, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := root.Readlink(path)
		if err != nil {
			return object{}, err
		}
		hash, err := blob(git, strings.NewReader(target), int64(len(target)))
		return object{"120000", hash}, err
	}
	if !info.Mode().IsRegular() {
		return object{}, errNoContent
	}
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return object{}, err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return object{}, err
	}
	if !os.SameFile(info, now) {
		return object{}, errChanged
	}
	mode := "100644"
	if now.Mode()&0o100 != 0 {
		mode = "100755"
	}
	hash, err := blob(git, f, now.Size())
	return object{mode, hash}, err
}

// blob writes a content of so many bytes, and returns git's name for it.
func blob(git io.Writer, content io.Reader, size int64) (string, error) {
	h := sha1.New() // git's own name of the content; nothing is secured by it
	fmt.Fprintf(h, "blob %d\x00", size)
	if _, err := fmt.Fprintf(git, "blob\ndata %d\n", size); err != nil {
		return "", err
	}
	n, err := io.Copy(io.MultiWriter(git, h), io.LimitReader(content, size))
	switch {
	case err != nil:
		return "", err
	case n < size:
		return "", errChanged
	}
	_, err = git.Write([]byte{'\n'})
	return hex.EncodeToString(h.Sum(nil)), err
}

// feed runs a git process that reads what write writes. When write fails, git is ended before it has seen the end of its
// input, and keeps nothing.
func (s *Store) feed(ctx context.Context, verb string, args []string, write func(io.Writer) error) error {
	s.o.Moment()
	defer s.o.Moment()
	ctx, cancel := context.WithTimeout(ctx, 2*s.o.Timeout)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := s.command(ctx, append([]string{verb}, args...)...)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, &said, &said
	wrote := make(chan error, 1)
	go func() {
		b := bufio.NewWriterSize(w, 64<<10)
		err := write(b)
		if err == nil {
			err = b.Flush()
		}
		if err != nil {
			stop(err)
			<-ctx.Done()
		}
		wrote <- errors.Join(err, w.Close())
	}()
	err = runBound(cmd)
	_ = r.Close() // a write that git did not take ends now
	if ctx.Err() != nil {
		endGroup(cmd)
	}
	werr := <-wrote
	switch {
	case werr != nil && !errors.Is(werr, syscall.EPIPE):
		return werr
	case err != nil:
		return fmt.Errorf("%w: %w", &gitError{verb, cmd.ProcessState.ExitCode(), said.String()}, err)
	}
	return nil
}

// holdable reports whether a tree can have a path: git refuses some names, which would keep it from taking the rest.
func holdable(path string, link bool) bool {
	parts := strings.Split(path, "/")
	for _, part := range parts {
		if strings.EqualFold(part, ".git") {
			return false
		}
	}
	return !link || !strings.EqualFold(parts[len(parts)-1], ".gitmodules")
}
