package gatewaytest

import (
	"strings"
	"sync"
)

// Log keeps the daemon's log. Build shows it when a test fails.
type Log struct {
	mu sync.Mutex
	b  strings.Builder
}

// Write adds lines of the daemon.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
