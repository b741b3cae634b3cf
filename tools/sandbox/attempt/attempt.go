// Package attempt is for work that is done once while many wait for it, each as long as its own context allows.
package attempt

import (
	"context"
	"sync"
)

// Attempt is work that many callers may wait for, each with a context of its own.
type Attempt struct {
	done chan struct{}
	err  error // valid after done

	mu     sync.Mutex
	listen map[int]func(line string)
	next   int
}

// New begins one; end must be called once.
func New() *Attempt {
	return &Attempt{done: make(chan struct{}), listen: map[int]func(string){}}
}

// Tell passes a line about the progress to all who wait.
func (a *Attempt) Tell(line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.listen {
		f(line)
	}
}

// End lets all waiters go with err.
func (a *Attempt) End(err error) {
	a.err = err
	close(a.done)
}

// Wait returns the error of the attempt, or that of ctx when it ends first; the attempt goes on then. progress, which may
// be nil, receives lines meanwhile.
func (a *Attempt) Wait(ctx context.Context, progress func(line string)) error {
	if progress != nil {
		defer a.follow(progress)()
	}
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// follow calls f with each line until stop.
func (a *Attempt) follow(f func(string)) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.next
	a.next++
	a.listen[n] = f
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.listen, n)
	}
}
