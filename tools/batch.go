package tools

import (
	"context"
	"sync"
)

// Batch runs the calls of one model answer as Plan cuts them, at most Options.Width at once, and returns
// the results in the order of the calls. each, when not nil, hears of every result as it ends, one at a
// time, so not always in order. When ctx ends, calls that have not begun end as "not run: interrupted"; they
// are journalled and announced like all others.
func (b *Bus) Batch(ctx context.Context, calls []Call, each func(i int, r Result)) []Result {
	results := make([]Result, len(calls))
	var mu sync.Mutex
	one := func(i int) {
		results[i] = b.Dispatch(ctx, calls[i])
		if each == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if err := safely(func() error { each(i, results[i]); return nil }); err != nil {
			b.o.Log.Error().Err(err).Str("stack", stackOf(err)).Str("tool", calls[i].Name).Msg("reader of batch results failed")
		}
	}
	for _, s := range Plan(calls, b.o.Registry.Spec) {
		if s.Parallel {
			b.parallel(s, one)
			continue
		}
		for i := s.Start; i < s.End; i++ {
			one(i)
		}
	}
	return results
}

// parallel runs the calls of a segment and waits for all of them.
func (b *Bus) parallel(s Segment, one func(i int)) {
	slots := make(chan struct{}, b.o.Width)
	var wg sync.WaitGroup
	for i := s.Start; i < s.End; i++ {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			one(i)
		})
	}
	wg.Wait()
}
