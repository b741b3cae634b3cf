package admin

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// kept is how many old log files stay.
const kept = 3

// Rotating is a log file that is rotated when it has grown to max bytes; three old ones are kept as .1 to .3. Safe for
// concurrent use.
type Rotating struct {
	path string
	max  int64
	mu   sync.Mutex
	file *os.File
	size int64
}

// OpenRotating opens the file to append to it, and makes its directory. most is in bytes. The file is for the owner only.
func OpenRotating(path string, most int64) (*Rotating, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	r := &Rotating{path: path, max: most}
	return r, r.open()
}

func (r *Rotating) open() error {
	file, err := os.OpenFile(r.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return err
	}
	r.file, r.size = file, info.Size()
	return nil
}

// Write adds a line. A full disk costs log lines, never the daemon.
func (r *Rotating) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size+int64(len(p)) > r.max {
		if err := r.turn(); err != nil {
			return len(p), nil
		}
	}
	n, err := r.file.Write(p)
	r.size += int64(n)
	if err != nil {
		return len(p), nil
	}
	return n, nil
}

func (r *Rotating) turn() error {
	_ = r.file.Close()
	for i := kept; i > 1; i-- {
		_ = os.Rename(fmt.Sprintf("%s.%d", r.path, i-1), fmt.Sprintf("%s.%d", r.path, i))
	}
	_ = os.Rename(r.path, r.path+".1")
	return r.open()
}

// Close closes the file.
func (r *Rotating) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.file.Close()
}
