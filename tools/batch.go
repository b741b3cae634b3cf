package tools

import (
	"context"
	"sync"
)

// Batch runs the calls of one model answer as Plan cuts them, at most Options.Width at once, and returns
// the results in the order of the calls. each, when not nil, is called with every result as it ends, one at a
// time, so not always in order. When ctx ends, calls that have not begun end as "not run: interrupted"; they
// are journalled and announced like all others. Options.BatchTimeout and BatchMax apply.
func (b *Bus) Batch(ctx context.Context, calls []Call, each func(i int, r Result)) []Result {
	results := make([]Result, len(calls))
	if b.o.BatchMax > 0 {
		ctx = context.WithValue(ctx, budgetKey{}, &budget{left: b.o.BatchMax})
	}
	var mu sync.Mutex
	one := func(ctx context.Context, i int) {
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
			b.parallel(ctx, s, one)
			continue
		}
		for i := s.Start; i < s.End; i++ {
			one(ctx, i)
		}
	}
	return results
}

// parallel runs the calls of a segment and waits for all of them.
func (b *Bus) parallel(ctx context.Context, s Segment, one func(ctx context.Context, i int)) {
	if b.o.BatchTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, b.o.BatchTimeout, errBatchLimit)
		defer cancel()
	}
	slots := make(chan struct{}, b.o.Width)
	var wg sync.WaitGroup
	for i := s.Start; i < s.End; i++ {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			one(ctx, i)
		})
	}
	wg.Wait()
}

// budget is how many more characters the results of a batch may have. The calls of a batch share it.
type budget struct {
	mu   sync.Mutex
	left int
}

// budgetKey carries the budget of the batch that a call belongs to.
type budgetKey struct{}

// spend takes n characters of the batch's budget and reports whether that much was left. A call outside a batch has no
// budget.
func spend(ctx context.Context, n int) bool {
	l, ok := ctx.Value(budgetKey{}).(*budget)
	if !ok {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > l.left {
		return false
	}
	l.left -= n
	return true
}
