package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Backup writes a copy of the store to dest while work goes on: one snapshot, checked, with mode 0600. The
// name dest appears only when the copy is complete and checked. Errors: fs.ErrExist when there is a file;
// sessions.ErrFull; the context's, after which nothing is left behind.
func (s *Store) Backup(ctx context.Context, dest string) (err error) {
	fail := func(err error) error { return fmt.Errorf("back up %s to %s: %w", s.opts.Path, dest, mapError(err)) }
	dest, err = filepath.Abs(dest)
	if err != nil {
		return fail(err)
	}
	if _, err := os.Lstat(dest); err == nil {
		return fail(fmt.Errorf("%w: name a file that is not there yet", fs.ErrExist))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fail(err)
	}
	// SQLite writes into the empty file that is there, so its mode holds from the first byte on.
	f, err := os.CreateTemp(filepath.Dir(dest), "."+filepath.Base(dest)+".*.partial")
	if err != nil {
		return fail(err)
	}
	partial := f.Name()
	defer os.Remove(partial)
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return fail(err)
	}
	if err := s.copyTo(ctx, partial); err != nil {
		return fail(err)
	}
	report, err := CheckFile(ctx, partial)
	if err != nil {
		return fail(err)
	}
	if !report.OK() {
		return fail(fmt.Errorf("the copy failed its check: %s", report.Problems()[0]))
	}
	if err := syncPath(partial); err != nil {
		return fail(err)
	}
	// A link, unlike a rename, never replaces a file that appeared in the meantime.
	if err := os.Link(partial, dest); err != nil {
		return fail(err)
	}
	if err := syncPath(filepath.Dir(dest)); err != nil {
		return fail(err)
	}
	return nil
}

// copyTo writes a snapshot into an empty file.
func (s *Store) copyTo(ctx context.Context, path string) error {
	c, err := openConn(backupDSN(s.opts.Path))
	if err != nil {
		return err
	}
	return errors.Join(c.execOn(ctx, "VACUUM INTO ?", path), c.close())
}

// syncPath puts a file or folder on disk.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
