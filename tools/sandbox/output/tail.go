package output

import (
	"errors"
	"strings"
	"sync"
)

// Tail keeps the last bytes of a stream of diagnoses, and all of a short report.
type Tail struct {
	mu sync.Mutex
	b  []byte
}

// maxReport bounds what is kept of the output of a script of ours.
const maxReport = 16 << 20

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.b)+len(p) > maxReport {
		return 0, errors.New("the report is too long")
	}
	t.b = append(t.b, p...)
	return len(p), nil
}

// Bytes is all of it.
func (t *Tail) Bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b
}

// Text is all of it, as valid UTF-8.
func (t *Tail) Text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.b), "\ufffd"))
}

// Line is the last line that says something.
func (t *Tail) Line() string {
	text := t.Text()
	return text[strings.LastIndexByte(text, '\n')+1:]
}
