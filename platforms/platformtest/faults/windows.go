package faults

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Windows are the times in which a service has asked to be left alone, each for one key: a chat, a method, a bucket. They
// also keep the requests that came all the same. The zero value is ready; all methods are safe for concurrent use.
type Windows[K comparable] struct {
	mu         sync.Mutex
	until      map[K]time.Time
	violations []string
}

// Open makes requests of a key violations until d from now. A window that is open already is replaced.
func (w *Windows[K]) Open(k K, d time.Duration) { w.OpenUntil(k, time.Now().Add(d)) }

// OpenUntil is Open with the time at which the window ends.
func (w *Windows[K]) OpenUntil(k K, end time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.until == nil {
		w.until = map[K]time.Time{}
	}
	w.until[k] = end
}

// Left returns how long the window of a key is still open, 0 or less when it is not.
func (w *Windows[K]) Left(k K) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Until(w.until[k])
}

// Enter returns how long the window of a key is still open, and keeps the request as a violation while it is. request says
// in words what was asked.
func (w *Windows[K]) Enter(k K, request string) (left time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if left = time.Until(w.until[k]); left > 0 {
		w.violations = append(w.violations, fmt.Sprintf("%s came %s too early", request, left.Round(time.Millisecond)))
	}
	return left
}

// Clear closes all windows; violations are kept.
func (w *Windows[K]) Clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.until)
}

// Violations returns the requests that came inside a window, in words, oldest first.
func (w *Windows[K]) Violations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.violations)
}
