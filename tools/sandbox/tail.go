package sandbox

import (
	"errors"
	"strings"
	"sync"
)

// tail keeps the last bytes of a stream of diagnoses, and all of a short report.
type tail struct {
	mu sync.Mutex
	b  []byte
}

// maxReport bounds what is kept of the output of a script of ours.
const maxReport = 16 << 20

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.b)+len(p) > maxReport {
		return 0, errors.New("the report is too long")
	}
	t.b = append(t.b, p...)
	return len(p), nil
}

// text is all of it, as valid UTF-8.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.b), "\ufffd"))
}

// line is the last line that says something.
func (t *tail) line() string {
	text := t.text()
	return text[strings.LastIndexByte(text, '\n')+1:]
}
