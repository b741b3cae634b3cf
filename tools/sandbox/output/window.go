// Package output keeps the output of commands within bounds: the window of a result, the files that hold longer ones, and
// the decoder that makes valid text of any bytes. It doesn't know where the bytes come from.
package output

import (
	"fmt"
	"sync"
	"unicode/utf8"
)

// Limits of the output of one command.
const (
	// DefaultWindow is how many bytes of output a Result carries: 40 % from its beginning and 60 % from its
	// end when there is more.
	DefaultWindow = 50_000
	// MaxSpill is how many characters of a longer output are stored.
	MaxSpill = 5_000_000
)

// Window keeps the beginning and the end of a text of any length, and from the moment it is too long hands
// all of it to a spill file. It is safe for concurrent use.
type Window struct {
	mu       sync.Mutex
	max      int
	open     func() (File, error)
	buf      []byte // all of the text while it fits
	head     []byte // after that: its beginning,
	tail     []byte // and its end (at most twice the part that is shown)
	over     bool
	chars    int64
	spill    File
	left     int64 // characters that may still be spilled
	path     string
	complete bool // the spill file holds everything so far
}

// File is where an overflowing output goes.
type File interface {
	Write(p []byte) (int, error)
	Close() error
	Name() string
}

// NewWindow makes a window of max bytes. open makes the file for a longer output, when it is needed; its error means that
// nothing is stored.
func NewWindow(max int, open func() (File, error)) *Window {
	return &Window{max: max, open: open, left: MaxSpill}
}

// Write takes valid UTF-8. It never fails: a spill file that can't be written is given up.
func (w *Window) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.chars += int64(utf8.RuneCount(p))
	if !w.over {
		w.buf = append(w.buf, p...)
		if len(w.buf) <= w.max {
			return len(p), nil
		}
		w.overflow()
		return len(p), nil
	}
	w.store(p)
	w.tail = append(w.tail, p...)
	w.trim()
	return len(p), nil
}

// overflow changes from keeping everything to keeping both ends.
func (w *Window) overflow() {
	w.over, w.complete = true, true
	if f, err := w.open(); err == nil {
		w.spill, w.path = f, f.Name()
	}
	w.store(w.buf)
	head := runeEnd(w.buf, w.max*2/5)
	w.head = append([]byte(nil), w.buf[:head]...)
	w.tail = append([]byte(nil), w.buf[head:]...)
	w.buf = nil
	w.trim()
}

// trim bounds the tail; it is cut exactly when it is shown.
func (w *Window) trim() {
	keep := w.max - w.max*2/5
	if len(w.tail) > 2*keep {
		w.tail = append(w.tail[:0], w.tail[len(w.tail)-keep:]...)
	}
}

func (w *Window) store(p []byte) {
	if w.spill == nil {
		return
	}
	if n := int64(utf8.RuneCount(p)); n > w.left {
		p = firstRunes(p, int(w.left))
		w.complete = false
	}
	w.left -= int64(utf8.RuneCount(p))
	if len(p) == 0 {
		return
	}
	if _, err := w.spill.Write(p); err != nil {
		_ = w.spill.Close()
		w.spill, w.path = nil, ""
	}
}

// View is what a window shows of its text.
type View struct {
	Text      string
	Truncated bool
	Path      string
	Chars     int64
}

// View may be taken at any time.
func (w *Window) View() View {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		return View{Text: string(w.buf), Chars: w.chars}
	}
	tail := w.tail
	tail = tail[runeStart(tail, max(0, len(tail)-(w.max-w.max*2/5))):]
	omitted := w.chars - int64(utf8.RuneCount(w.head)) - int64(utf8.RuneCount(tail))
	if omitted <= 0 {
		return View{Text: string(w.head) + string(tail), Chars: w.chars}
	}
	where := ""
	switch {
	case w.path != "" && w.complete:
		where = "; all of it is in " + w.path
	case w.path != "":
		where = fmt.Sprintf("; the first %d are in %s", MaxSpill, w.path)
	}
	note := fmt.Sprintf("\n\n[... %d of %d characters left out here%s ...]\n\n", omitted, w.chars, where)
	return View{Text: string(w.head) + note + string(tail), Truncated: true, Path: w.path, Chars: w.chars}
}

// Close ends the spill file.
func (w *Window) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.spill != nil {
		_ = w.spill.Close()
		w.spill = nil
	}
}

// Dropped is what the output of a background command has in place of n bytes that are no longer kept.
func Dropped(n int64) string { return fmt.Sprintf("\n[%d bytes of output were dropped here]\n", n) }

// runeEnd returns the largest boundary of a rune in b that is not past n.
func runeEnd(b []byte, n int) int {
	for n > 0 && n < len(b) && !utf8.RuneStart(b[n]) {
		n--
	}
	return min(n, len(b))
}

// runeStart returns the smallest boundary of a rune in b that is not before n.
func runeStart(b []byte, n int) int {
	for n < len(b) && !utf8.RuneStart(b[n]) {
		n++
	}
	return n
}

// firstRunes returns the first n runes of b.
func firstRunes(b []byte, n int) []byte {
	i := 0
	for ; n > 0 && i < len(b); n-- {
		_, size := utf8.DecodeRune(b[i:])
		i += size
	}
	return b[:i]
}
