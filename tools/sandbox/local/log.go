package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The output of a job is a sequence of bytes that are numbered from 0. It is kept in segments: files that are named by the
// number of their first byte. The newest two stay, each of half the log's size, so that a command that prints without end
// never fills the disk and its latest output is always there.
const segmentPrefix = "log."

func segmentPath(dir string, base int64) string {
	return filepath.Join(dir, fmt.Sprintf("%s%015d", segmentPrefix, base))
}

// segments returns the first numbers of a log's segments in order.
func segments(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []int64
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), segmentPrefix)
		if !ok {
			continue
		}
		if base, err := strconv.ParseInt(digits, 10, 64); err == nil {
			out = append(out, base)
		}
	}
	slices.Sort(out)
	return out, nil
}

// jobLog writes a log. It belongs to one goroutine.
type jobLog struct {
	dir  string
	half int64 // bytes of a segment
	at   int64 // number of the next byte
	size int64 // bytes in the open segment
	file *os.File
	kept []int64
}

// Write never fails: what can't be stored (a full disk) is left out, and a reader sees by the numbers that it is.
func (l *jobLog) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		if l.file == nil || l.size >= l.half {
			if err := l.rotate(); err != nil {
				l.at += int64(len(p))
				return total, nil
			}
		}
		n, err := l.file.Write(p[:min(int64(len(p)), l.half-l.size)])
		l.size, l.at, p = l.size+int64(n), l.at+int64(n), p[n:]
		if err != nil {
			l.close()
			l.at += int64(len(p))
			return total, nil
		}
	}
	return total, nil
}

// rotate begins a segment and removes the ones that are too many.
func (l *jobLog) rotate() error {
	l.close()
	for len(l.kept) > 1 {
		_ = os.Remove(segmentPath(l.dir, l.kept[0]))
		l.kept = l.kept[1:]
	}
	f, err := os.OpenFile(segmentPath(l.dir, l.at), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	l.file, l.size, l.kept = f, 0, append(l.kept, l.at)
	return nil
}

func (l *jobLog) close() {
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}

// logReader reads a log while it is written. It belongs to one goroutine.
type logReader struct {
	dir  string
	at   int64 // number of the next byte
	base int64 // of the open segment
	file *os.File
}

// read returns the next bytes, and how many before them are no longer there. n is 0 at the end so far.
func (r *logReader) read(buf []byte) (n int, missed int64, err error) {
	for {
		if r.file == nil {
			skipped, err := r.open()
			if err != nil || r.file == nil {
				return 0, missed, err
			}
			missed += skipped
		}
		n, err := r.file.Read(buf)
		if n > 0 {
			r.at += int64(n)
			return n, missed, nil
		}
		if err != nil && err != io.EOF {
			return 0, missed, err
		}
		later, err := r.later()
		if err != nil || later == r.base {
			return 0, missed, err
		}
		// A later segment was begun, so this one is complete; but it may have grown since it was read.
		if n, _ := r.file.Read(buf); n > 0 {
			r.at += int64(n)
			return n, missed, nil
		}
		r.close()
		missed += max(0, later-r.at)
		r.at = max(r.at, later)
	}
}

// open opens the segment that holds the next byte, or the first one after it.
func (r *logReader) open() (missed int64, err error) {
	for try := 0; ; try++ {
		bases, err := segments(r.dir)
		if err != nil || len(bases) == 0 {
			return 0, err
		}
		i, found := slices.BinarySearch(bases, r.at)
		if !found && i > 0 {
			i--
		}
		f, err := os.Open(segmentPath(r.dir, bases[i]))
		if errors.Is(err, os.ErrNotExist) && try < 10 {
			continue // it was removed meanwhile
		}
		if err != nil {
			return 0, err
		}
		missed = max(0, bases[i]-r.at)
		r.at = max(r.at, bases[i])
		if _, err := f.Seek(r.at-bases[i], io.SeekStart); err != nil {
			f.Close()
			return 0, err
		}
		r.file, r.base = f, bases[i]
		return missed, nil
	}
}

// later returns the segment after the open one, or the open one when it is the last.
func (r *logReader) later() (int64, error) {
	bases, err := segments(r.dir)
	if err != nil {
		return 0, err
	}
	for _, b := range bases {
		if b > r.base {
			return b, nil
		}
	}
	return r.base, nil
}

func (r *logReader) close() {
	if r.file != nil {
		_ = r.file.Close()
		r.file = nil
	}
}
