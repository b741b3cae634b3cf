package sandbox

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

// window keeps the beginning and the end of a text of any length, and from the moment it is too long hands
// all of it to a spill file. It is safe for concurrent use.
type window struct {
	mu       sync.Mutex
	max      int
	open     func() (spillFile, error)
	buf      []byte // all of the text while it fits
	head     []byte // after that: its beginning,
	tail     []byte // and its end (at most twice the part that is shown)
	over     bool
	chars    int64
	spill    spillFile
	left     int64 // characters that may still be spilled
	path     string
	complete bool // the spill file holds everything so far
}

// spillFile is where an overflowing output goes.
type spillFile interface {
	Write(p []byte) (int, error)
	Close() error
	Name() string
}

func newWindow(max int, open func() (spillFile, error)) *window {
	return &window{max: max, open: open, left: MaxSpill}
}

// Write takes valid UTF-8. It never fails: a spill file that can't be written is given up.
func (w *window) Write(p []byte) (int, error) {
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
func (w *window) overflow() {
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
func (w *window) trim() {
	keep := w.max - w.max*2/5
	if len(w.tail) > 2*keep {
		w.tail = append(w.tail[:0], w.tail[len(w.tail)-keep:]...)
	}
}

func (w *window) store(p []byte) {
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

// view is what a window shows of its text.
type view struct {
	text      string
	truncated bool
	path      string
	chars     int64
}

// view may be taken at any time.
func (w *window) view() view {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		return view{text: string(w.buf), chars: w.chars}
	}
	tail := w.tail
	tail = tail[runeStart(tail, max(0, len(tail)-(w.max-w.max*2/5))):]
	omitted := w.chars - int64(utf8.RuneCount(w.head)) - int64(utf8.RuneCount(tail))
	if omitted <= 0 {
		return view{text: string(w.head) + string(tail), chars: w.chars}
	}
	where := ""
	switch {
	case w.path != "" && w.complete:
		where = "; all of it is in " + w.path
	case w.path != "":
		where = fmt.Sprintf("; the first %d are in %s", MaxSpill, w.path)
	}
	note := fmt.Sprintf("\n\n[... %d of %d characters left out here%s ...]\n\n", omitted, w.chars, where)
	return view{text: string(w.head) + note + string(tail), truncated: true, path: w.path, chars: w.chars}
}

// close ends the spill file.
func (w *window) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.spill != nil {
		_ = w.spill.Close()
		w.spill = nil
	}
}

// droppedNote is what the output of a background command has in place of n bytes that are no longer kept.
func droppedNote(n int64) string { return fmt.Sprintf("\n[%d bytes of output were dropped here]\n", n) }

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
