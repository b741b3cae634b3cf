package sandbox

import (
	"context"
	"sync"
)

// attempt is work that many callers may wait for, each with a context of its own.
type attempt struct {
	done chan struct{}
	err  error // valid after done

	mu     sync.Mutex
	listen map[int]func(line string)
	next   int
}

// newAttempt begins one; end must be called once.
func newAttempt() *attempt {
	return &attempt{done: make(chan struct{}), listen: map[int]func(string){}}
}

// tell passes a line about the progress to all who wait.
func (a *attempt) tell(line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.listen {
		f(line)
	}
}

// end lets all waiters go with err.
func (a *attempt) end(err error) {
	a.err = err
	close(a.done)
}

// wait returns the error of the attempt, or that of ctx when it ends first; the attempt goes on then. progress, which may
// be nil, receives lines meanwhile.
func (a *attempt) wait(ctx context.Context, progress func(line string)) error {
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
func (a *attempt) follow(f func(string)) (stop func()) {
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
