package platformtest

import (
	"context"
	"sync"

	"herald/platforms"
)

// Sink records what an adapter hands on. Like the core it keeps an event once, by its id, and commits a
// batch as a whole. It can fail and block. The zero value is ready.
type Sink struct {
	mu      sync.Mutex
	kept    []platforms.Event
	seen    map[key]bool
	offered []platforms.Event
	batches int
	fail    error
	gate    chan struct{} // closed to let Accept go on; nil lets everything through
	changed chan struct{}
	invalid []error
}

type key struct {
	account platforms.Account
	id      platforms.EventID
}

// Accept keeps the batch, or fails or blocks as told.
func (s *Sink) Accept(ctx context.Context, events ...platforms.Event) error {
	s.mu.Lock()
	s.batches++
	s.offered = append(s.offered, events...)
	s.signal()
	gate := s.gate
	s.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	for _, e := range events {
		if err := e.Validate(); err != nil {
			s.invalid = append(s.invalid, err)
			continue
		}
		k := key{e.Address.AccountOf(), e.ID}
		if s.seen[k] {
			continue
		}
		if s.seen == nil {
			s.seen = map[key]bool{}
		}
		s.seen[k] = true
		s.kept = append(s.kept, e)
	}
	s.signal()
	return nil
}

func (s *Sink) signal() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Changed returns a channel that closes when something new was offered or kept.
func (s *Sink) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// Fail makes Accept return err from now on; nil makes it work again.
func (s *Sink) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// Block makes Accept wait until the returned function is called.
func (s *Sink) Block() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.gate = gate
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.gate = nil
		close(gate)
	})
}

// Events returns what was kept, each event once, in the order of its first arrival.
func (s *Sink) Events() []platforms.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]platforms.Event(nil), s.kept...)
}

// Offered returns everything that Accept was called with, repetitions and refused batches too.
func (s *Sink) Offered() []platforms.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]platforms.Event(nil), s.offered...)
}

// Invalid returns what Event.Validate had against events: an adapter's bugs.
func (s *Sink) Invalid() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]error(nil), s.invalid...)
}
