package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"herald/tools/sandbox"
)

// files is the Files of this machine.
type files struct{}

// check refuses relative paths and cancelled calls.
func check(ctx context.Context, path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("path %q is not absolute", path)
	}
	if strings.ContainsRune(path, 0) {
		return &fs.PathError{Op: "open", Path: path, Err: syscall.EINVAL}
	}
	return ctx.Err()
}

func info(st fs.FileInfo) sandbox.FileInfo {
	return sandbox.FileInfo{Name: st.Name(), Size: st.Size(), Mode: st.Mode(), ModTime: st.ModTime()}
}

// Stat implements Files.
func (files) Stat(ctx context.Context, path string) (sandbox.FileInfo, error) {
	if err := check(ctx, path); err != nil {
		return sandbox.FileInfo{}, err
	}
	st, err := os.Stat(path)
	if err != nil {
		return sandbox.FileInfo{}, err
	}
	return info(st), nil
}

// Lstat implements Files.
func (files) Lstat(ctx context.Context, path string) (sandbox.FileInfo, error) {
	if err := check(ctx, path); err != nil {
		return sandbox.FileInfo{}, err
	}
	st, err := os.Lstat(path)
	if err != nil {
		return sandbox.FileInfo{}, err
	}
	return info(st), nil
}

// RealPath implements Files.
func (files) RealPath(ctx context.Context, path string) (string, error) {
	if err := check(ctx, path); err != nil {
		return "", err
	}
	return realPath(filepath.Clean(path), 0)
}

// realPath resolves the existing part. A link that points to nothing is followed too: that is where a
// write would land.
func realPath(path string, links int) (string, error) {
	if links > 40 {
		return "", &fs.PathError{Op: "resolve", Path: path, Err: syscall.ELOOP}
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if st, lerr := os.Lstat(path); lerr == nil && st.Mode()&fs.ModeSymlink != 0 {
		to, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(to) {
			// The link's own directory may be reached through links.
			dir, err := realPath(filepath.Dir(path), links+1)
			if err != nil {
				return "", err
			}
			to = filepath.Join(dir, to)
		}
		return realPath(filepath.Clean(to), links+1)
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path, nil
	}
	dir, err := realPath(parent, links)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

// List implements Files.
func (files) List(ctx context.Context, dir string) ([]sandbox.FileInfo, error) {
	if err := check(ctx, dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := make([]sandbox.FileInfo, 0, len(entries))
	for _, e := range entries {
		st, err := e.Info()
		if err != nil {
			continue // it vanished meanwhile
		}
		out = append(out, info(st))
	}
	return out, nil
}

// Open implements Files.
func (files) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	f, _, err := openRegular(ctx, path)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// openRegular opens without waiting (a pipe without a writer would block) and looks at what it opened.
func openRegular(ctx context.Context, path string) (*os.File, fs.FileInfo, error) {
	if err := check(ctx, path); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		if errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.ELOOP) {
			err = &fs.PathError{Op: "open", Path: path, Err: sandbox.ErrNotRegular}
		}
		return nil, nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: sandbox.ErrNotRegular}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, st, nil
}

// ReadFile implements Files.
func (files) ReadFile(ctx context.Context, path string, max int64) ([]byte, error) {
	f, st, err := openRegular(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tooLarge := func(size int64) error {
		return fmt.Errorf("%s: %w: %d bytes, at most %d are read", path, sandbox.ErrTooLarge, size, max)
	}
	if st.Size() > max {
		return nil, tooLarge(st.Size())
	}
	// The size is a hint: files of /proc say 0, and others may grow meanwhile.
	buf := bytes.NewBuffer(make([]byte, 0, st.Size()+bytes.MinRead))
	if _, err := buf.ReadFrom(io.LimitReader(f, max+1)); err != nil {
		return nil, err
	}
	b := buf.Bytes()
	if int64(len(b)) > max {
		return nil, tooLarge(int64(len(b)))
	}
	return b, nil
}

// WriteFile implements Files. The new bytes are on disk before the name points to them.
func (files) WriteFile(ctx context.Context, path string, data []byte, mode fs.FileMode) error {
	if err := check(ctx, path); err != nil {
		return err
	}
	old, err := os.Lstat(path)
	switch {
	case err == nil && !old.Mode().IsRegular():
		return &fs.PathError{Op: "write", Path: path, Err: sandbox.ErrNotRegular}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	tmp := filepath.Join(filepath.Dir(path), ".herald-"+sandbox.NewID()+".tmp")
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, mode.Perm())
	if err != nil {
		return renamed(err, path)
	}
	err = fill(f, data, old)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return renamed(err, path)
	}
	return nil
}

// fill writes the data and takes over what the old file was.
func fill(f *os.File, data []byte, old fs.FileInfo) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	if old != nil {
		if st, ok := old.Sys().(*syscall.Stat_t); ok {
			_ = f.Chown(int(st.Uid), int(st.Gid)) // allowed to root and to owners with the group
		}
		if err := f.Chmod(old.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)); err != nil {
			return err
		}
	}
	return f.Sync()
}

// renamed makes an error about the temporary file one about the file that was asked for.
func renamed(err error, path string) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return &fs.PathError{Op: "write", Path: path, Err: pe.Err}
	case errors.As(err, &le):
		return &fs.PathError{Op: "write", Path: path, Err: le.Err}
	}
	return err
}

// MkdirAll implements Files.
func (files) MkdirAll(ctx context.Context, dir string, mode fs.FileMode) error {
	if err := check(ctx, dir); err != nil {
		return err
	}
	return os.MkdirAll(dir, mode)
}

// Chmod implements Files.
func (files) Chmod(ctx context.Context, path string, mode fs.FileMode) error {
	if err := check(ctx, path); err != nil {
		return err
	}
	return os.Chmod(path, mode.Perm()|mode&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
}

// Remove implements Files.
func (files) Remove(ctx context.Context, path string) error {
	if err := check(ctx, path); err != nil {
		return err
	}
	return os.Remove(path)
}

// Rename implements Files. The check and the move are two steps: two writers of the same new name at the
// same moment are not told apart.
func (files) Rename(ctx context.Context, from, to string) error {
	if err := errors.Join(check(ctx, from), check(ctx, to)); err != nil {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(from, to)
}
