package sqlite

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/mattn/go-sqlite3"

	"herald/sessions"
	"herald/sessions/lock"
)

// LockedError says that another process, or this one, has the store open.
type LockedError struct {
	// Path is the database, Holder who has it.
	Path   string
	Holder lock.Info
}

// Error names the holder and what to do.
func (e *LockedError) Error() string {
	if e.Holder.PID == 0 {
		return fmt.Sprintf("store %s is open in another process: use the running daemon, or stop it first", e.Path)
	}
	return fmt.Sprintf("store %s is open in process %d: use the running daemon, or stop it first (kill %d)",
		e.Path, e.Holder.PID, e.Holder.PID)
}

// CorruptError says that the database file is damaged. It wraps sessions.ErrCorrupt.
type CorruptError struct {
	// Path is the damaged file, untouched. Copy is a copy of it, with the -wal file beside it; empty when
	// none could be made.
	Path string
	Copy string
	// Err is what SQLite said.
	Err error
}

// Error says what is damaged, where the copy is, and what to do.
func (e *CorruptError) Error() string {
	copied := "no copy could be made"
	if e.Copy != "" {
		copied = "a copy is in " + e.Copy
	}
	return fmt.Sprintf("store %s is damaged (%v); the file was kept and %s. "+
		"Run `herald doctor db` to see what can be read, or put a file from `herald backup` in its place", e.Path, e.Err, copied)
}

// Unwrap lets errors.Is find sessions.ErrCorrupt and the cause.
func (e *CorruptError) Unwrap() []error { return []error{sessions.ErrCorrupt, e.Err} }

// PanicError is the error of an Update or View whose function panicked; nothing of it was kept.
type PanicError struct {
	Value any
	Stack []byte
}

// Error returns the panic's value.
func (e *PanicError) Error() string { return fmt.Sprintf("panic in a store function: %v", e.Value) }

// storeError gives an SQLite error one of the package sessions' errors as its kind.
type storeError struct {
	kind error
	err  error
}

func (e *storeError) Error() string   { return e.kind.Error() + ": " + e.err.Error() }
func (e *storeError) Unwrap() []error { return []error{e.kind, e.err} }

// errDiskIO is the text for I/O errors that are no shortage of space. It is an ErrFull too: for the caller
// the same holds, nothing was kept and it may be offered again.
type errDiskIO struct{}

func (errDiskIO) Error() string        { return "the disk refuses to write" }
func (errDiskIO) Is(target error) bool { return target == sessions.ErrFull }

// mapError gives errors of SQLite their kind. Other errors pass.
func mapError(err error) error {
	if err == nil {
		return nil
	}
	var known *storeError
	if errors.As(err, &known) {
		return err
	}
	var se sqlite3.Error
	if !errors.As(err, &se) {
		return err
	}
	switch se.Code {
	case sqlite3.ErrFull:
		return &storeError{sessions.ErrFull, err}
	case sqlite3.ErrIoErr:
		if se.SystemErrno == syscall.ENOSPC || se.SystemErrno == syscall.EDQUOT {
			return &storeError{sessions.ErrFull, err}
		}
		if se.SystemErrno == syscall.EROFS {
			return &storeError{sessions.ErrReadOnly, err}
		}
		return &storeError{errDiskIO{}, err}
	case sqlite3.ErrReadonly, sqlite3.ErrPerm, sqlite3.ErrCantOpen:
		return &storeError{sessions.ErrReadOnly, err}
	case sqlite3.ErrCorrupt, sqlite3.ErrNotADB:
		return &storeError{sessions.ErrCorrupt, err}
	}
	return err
}

// fatal tells errors after which SQLite may have rolled the whole transaction back, or after which it must
// not be committed.
func fatal(err error) bool {
	var se sqlite3.Error
	if !errors.As(err, &se) {
		return false
	}
	switch se.Code {
	case sqlite3.ErrFull, sqlite3.ErrIoErr, sqlite3.ErrNomem, sqlite3.ErrCorrupt, sqlite3.ErrNotADB,
		sqlite3.ErrInterrupt, sqlite3.ErrReadonly, sqlite3.ErrCantOpen:
		return true
	}
	return false
}

// damaged tells errors of a damaged file.
func damaged(err error) bool {
	var found errCheck
	if errors.As(err, &found) {
		return true
	}
	var se sqlite3.Error
	return errors.As(err, &se) && (se.Code == sqlite3.ErrCorrupt || se.Code == sqlite3.ErrNotADB)
}

// unique tells a broken UNIQUE or PRIMARY KEY constraint.
func unique(err error) bool {
	var se sqlite3.Error
	return errors.As(err, &se) && (se.ExtendedCode == sqlite3.ErrConstraintUnique || se.ExtendedCode == sqlite3.ErrConstraintPrimaryKey)
}
