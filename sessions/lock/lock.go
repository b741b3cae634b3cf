// Package lock makes sure that one process at a time owns a thing: a store, a bot token, a home.
//
// It promises that a lock dies with its process, that nobody is shut out by what a dead process left
// behind, and that a refused caller learns who holds the lock. The file is never deleted: a deleted lock
// file lets two processes hold "the same" lock. It must not know what is being locked.
package lock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/shirou/gopsutil/v4/process"
)

// Info is the record a holder leaves in the lock file for others to read.
type Info struct {
	// PID is the holder's process id. Acquire fills it in.
	PID int `json:"pid"`
	// Start is when that process began, in milliseconds since 1970, so that a recycled pid is not taken for
	// the holder. Acquire fills it in; 0 when the system does not tell.
	Start int64 `json:"start"`
	// Home and Profile say for whom the holder works; either may be empty.
	Home    string `json:"home,omitempty"`
	Profile string `json:"profile,omitempty"`
	// What names the thing for people, such as "the store" or "a telegram bot token". Never the token.
	What string `json:"what,omitempty"`
}

// startTolerance is how far two readings of one process's start may differ: the system derives it from a
// boot time that moves when the clock is set.
const startTolerance = 2 * time.Second

// Alive reports whether the recorded process still runs, and is the same one: a process with that pid that
// began at another time is a stranger.
func (i Info) Alive() bool {
	if i.PID <= 0 {
		return false
	}
	start, err := startOf(i.PID)
	if err != nil {
		return false
	}
	if i.Start == 0 || start == 0 {
		return true
	}
	return (time.Duration(start-i.Start) * time.Millisecond).Abs() <= startTolerance
}

// Own reports whether the record is of this very process.
func (i Info) Own() bool { return i.PID == os.Getpid() && i.Alive() }

// HeldError says that somebody else, or this process itself, holds the lock.
type HeldError struct {
	Path string
	// Holder is the record of the holder; its zero value means that the record could not be read.
	Holder Info
}

// Error names the file, the holder and its home.
func (e *HeldError) Error() string {
	what := e.Holder.What
	if what == "" {
		what = e.Path
	}
	switch {
	case e.Holder.PID == 0:
		return fmt.Sprintf("%s is in use by another process (lock file %s)", what, e.Path)
	case e.Holder.Own():
		return fmt.Sprintf("%s is already in use by this process (lock file %s)", what, e.Path)
	case e.Holder.Home != "":
		return fmt.Sprintf("%s is in use by process %d of %s (lock file %s)", what, e.Holder.PID, e.Holder.Home, e.Path)
	}
	return fmt.Sprintf("%s is in use by process %d (lock file %s)", what, e.Holder.PID, e.Path)
}

// Lock is a held lock. It is safe for concurrent use.
type Lock struct {
	path string
	file *flock.Flock
}

// orphanGrace is how long a lock is waited for that is held and has no living holder on record. A process
// that is killed while it starts a command leaves its locks to the half-started child until that has become
// the command, and whoever starts the daemon again at once meets them.
const orphanGrace = 2 * time.Second

// Acquire takes the lock at path without waiting for a living holder and writes info into the file. Missing folders are made
// with mode 0700, the file with 0600. Errors: *HeldError when it is held, by this process too; otherwise
// what the file system said. A full disk is no error.
func Acquire(path string, info Info) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	file := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW), flock.SetPermissions(0o600))
	for deadline := time.Now().Add(orphanGrace); ; {
		held, err := file.TryLock()
		if err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if held {
			break
		}
		if holder := holderOf(path); holder.PID != 0 || time.Now().After(deadline) {
			_ = file.Close()
			return nil, &HeldError{Path: path, Holder: holder}
		}
	}
	info.PID = os.Getpid()
	info.Start, _ = startOf(info.PID) // 0 where the system does not tell
	// On a full disk the record can't be written. The lock holds all the same, and being able to start
	// there matters more than being named.
	_ = writeRecord(path, info)
	return &Lock{path: path, file: file}, nil
}

// Path returns the lock file's path.
func (l *Lock) Path() string { return l.path }

// Release gives the lock up. The file stays, with the record emptied. Releasing twice is no error.
func (l *Lock) Release() error {
	if !l.file.Locked() {
		return nil
	}
	// The record goes before the lock: after it, the file belongs to the next holder.
	errRecord := os.Truncate(l.path, 0)
	if errors.Is(errRecord, fs.ErrNotExist) {
		errRecord = nil
	}
	if err := errors.Join(errRecord, l.file.Close()); err != nil {
		return fmt.Errorf("release lock %s: %w", l.path, err)
	}
	return nil
}

// Read returns the record in a lock file, whether its holder lives or not. It takes no lock.
func Read(path string) (Info, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Info{}, fmt.Errorf("lock record %s: %w", path, err)
	}
	var info Info
	if err := json.Unmarshal(raw, &info); err != nil {
		return Info{}, fmt.Errorf("lock record %s: %w", path, err)
	}
	return info, nil
}

// holderOf reads the record of a lock that is held. A holder writes it right after it has got the lock, so
// an empty or stale record is read again for a moment.
func holderOf(path string) Info {
	for range 20 {
		if info, err := Read(path); err == nil && info.Alive() {
			return info
		}
		time.Sleep(5 * time.Millisecond)
	}
	return Info{}
}

// writeRecord replaces the content in place: a rename would leave the lock on the old file.
func writeRecord(path string, info Info) error {
	raw, err := json.Marshal(info)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	return errors.Join(err, f.Close())
}

// startOf returns when a process began, in milliseconds since 1970.
func startOf(pid int) (int64, error) {
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return 0, err
	}
	return p.CreateTime()
}
