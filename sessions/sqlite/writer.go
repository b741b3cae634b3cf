package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"herald/sessions"
	"herald/sessions/failpoint"
)

// request is one Update on its way through the writer.
type request struct {
	edge sessions.Edge
	fn   func(sessions.Tx) error
	// alone, instead of fn, runs outside of any transaction (VACUUM, checkpoints).
	alone func(*conn) error
	since time.Time
	err   error
	state atomic.Int32
	done  chan struct{} // capacity 1: the answer never waits for the caller
	// told, instead of done, is called with the outcome of a request that nobody waits for; may be nil.
	told func(error)
	// later tells that the request may wait for the commit of another one.
	later bool
}

// answer hands the outcome over.
func (r *request) answer() {
	switch {
	case r.done != nil:
		r.done <- struct{}{}
	case r.told != nil:
		r.told(r.err)
	}
}

const (
	waiting int32 = iota
	begun
	abandoned
)

// maxHold bounds how long a batch goes on taking requests that arrived while it ran: the first one of the
// batch waits for the last.
const maxHold = 5 * time.Millisecond

// writer owns the one writing connection. Everything reaches it as requests, which its goroutine runs. A caller that finds
// it free runs its own request: a commit without company costs no change of goroutine then.
type writer struct {
	store *Store
	// own is held by who runs requests. It guards all down to began.
	own sync.Mutex
	c   *conn
	tx  tx
	// nextMessage is the id of the next transcript row.
	nextMessage int64
	// indexed is the search index's mark in the transaction that runs, running the requests it answers.
	indexed int64
	running []*request
	began   time.Time // the transaction that runs

	mu    sync.Mutex
	queue []*request
	// urgent counts the requests of the queue that somebody waits for; due is when the others get a commit of their own,
	// zero while none waits.
	urgent int
	due    time.Time
	spare  []*request
	closed bool
	wake   chan struct{}
	ended  chan struct{}
}

// submit queues a request and waits for its end, or for ctx while it has not begun.
func (w *writer) submit(ctx context.Context, r *request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.since = time.Now()
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return sessions.ErrClosed
	}
	if w.urgent == 0 && len(w.queue) < w.store.opts.MaxBatch && w.own.TryLock() {
		batch := append(append(w.spare[:0], w.queue...), r)
		clear(w.queue)
		w.queue, w.due = w.queue[:0], time.Time{}
		w.mu.Unlock()
		w.serve(batch)
		<-r.done
		return r.err
	}
	w.queue = append(w.queue, r)
	w.urgent++
	w.mu.Unlock()
	w.rouse()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, abandoned) {
			return ctx.Err()
		}
		<-r.done
		return r.err
	}
}

// postpone queues a request that nobody waits for. It joins the next commit; the first one sees to it that there is one.
func (w *writer) postpone(r *request) {
	r.since = time.Now()
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		r.err = sessions.ErrClosed
		r.answer()
		return
	}
	w.queue = append(w.queue, r)
	first := w.due.IsZero()
	if first {
		w.due = r.since.Add(sessions.LaterDelay)
	}
	w.mu.Unlock()
	if first {
		w.rouse()
	}
}

// rouse wakes the writer's goroutine.
func (w *writer) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// depth returns how many requests wait.
func (w *writer) depth() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue)
}

// stop refuses further requests and returns when those that wait have been answered.
func (w *writer) stop() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.rouse()
	<-w.ended
}

// take moves at most limit waiting requests to batch.
func (w *writer) take(batch []*request, limit int) (_ []*request, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(limit, len(w.queue))
	batch = append(batch, w.queue[:n]...)
	rest := copy(w.queue, w.queue[n:])
	clear(w.queue[rest:])
	w.queue = w.queue[:rest]
	w.urgent, w.due = 0, time.Time{}
	for _, r := range w.queue {
		if !r.later {
			w.urgent++
		} else if w.due.IsZero() {
			w.due = r.since.Add(sessions.LaterDelay)
		}
	}
	return batch, w.closed
}

// hold returns how long the writer may leave the queue alone, 0 when there is work now, and whether that ends by itself.
func (w *writer) hold() (wait time.Duration, timed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed || w.urgent > 0:
		return 0, false
	case w.due.IsZero():
		return time.Hour, false
	}
	return max(0, time.Until(w.due)), true
}

// await returns when there is work, or stop was called.
func (w *writer) await() {
	for {
		wait, timed := w.hold()
		switch {
		case wait <= 0:
			return
		case !timed:
			<-w.wake
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-w.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// errExit is the error of the Updates of a transaction in which a function ended its goroutine.
var errExit = errors.New("a store function ended its goroutine (runtime.Goexit, a test's FailNow); nothing of its transaction was kept")

// run answers requests until stop was called and none wait. A function that ends this goroutine costs its
// transaction and not the store.
func (w *writer) run() {
	ended := false
	defer func() {
		if ended {
			close(w.ended)
			return
		}
		w.exited()
		go w.run()
	}()
	for {
		w.await()
		w.own.Lock()
		if some, closed := w.round(); !some && closed {
			ended = true
		}
		w.own.Unlock()
		if ended {
			return
		}
	}
}

// serve runs the request of a caller on its goroutine, behind those that nobody waits for. It holds own, and gives it up.
func (w *writer) serve(batch []*request) {
	done := false
	defer func() {
		if !done {
			w.exited()
			return
		}
		w.own.Unlock()
		if w.depth() > 0 {
			w.rouse()
		}
	}()
	for len(batch) > 0 {
		batch = w.commit(batch, false)
	}
	done = true
}

// round runs the requests that wait. own is held.
func (w *writer) round() (some, closed bool) {
	batch, closed := w.take(w.spare[:0], w.store.opts.MaxBatch)
	some = len(batch) > 0
	for len(batch) > 0 {
		batch = w.commit(batch, true)
	}
	return some, closed
}

// exited ends what a function left behind that ended its goroutine, and gives own up.
func (w *writer) exited() {
	w.rollback()
	w.answer(w.running, errExit)
	w.own.Unlock()
	w.rouse()
}

// commit runs requests of the batch in one transaction and answers them. It returns those it did not
// begin. grow tells whether it goes on with requests that have come meanwhile.
func (w *writer) commit(batch []*request, grow bool) (rest []*request) {
	w.running = batch
	if batch[0].alone != nil {
		w.runAlone(batch[0])
		return batch[1:]
	}
	if err := w.begin(); err != nil {
		w.answer(batch, err)
		return nil
	}
	w.began = time.Now()
	ran, lost := 0, error(nil)
	// The first request needs no savepoint: where it fails, there is nothing else to keep. Nor does the next one then.
	clean := true
	for ; ran < len(batch) && lost == nil; ran++ {
		if batch[ran].alone != nil {
			break
		}
		if clean {
			clean, lost = w.stepFirst(batch[ran])
		} else {
			lost = w.step(batch[ran])
		}
		if grow && ran == len(batch)-1 && time.Since(w.began) < maxHold {
			batch, _ = w.take(batch, w.store.opts.MaxBatch-len(batch))
			w.running = batch
		}
	}
	done := batch[:ran]
	if lost == nil {
		lost = w.finish(done)
	}
	if lost != nil {
		w.rollback()
		w.answer(done, lost)
	} else {
		w.committed(done)
	}
	clear(done)
	w.spare = batch
	return batch[ran:]
}

// begin opens a transaction.
func (w *writer) begin() error {
	w.c.broken = nil
	w.indexed = w.store.indexed.Load()
	if _, _, err := w.c.exec("BEGIN IMMEDIATE"); err != nil {
		w.rollback()
		return fmt.Errorf("begin: %w", err)
	}
	return nil
}

// stepFirst runs a request in a transaction that holds nothing yet, and tells whether it still holds nothing.
func (w *writer) stepFirst(r *request) (clean bool, lost error) {
	if !r.state.CompareAndSwap(waiting, begun) {
		return true, nil // its caller has gone
	}
	err := w.call(r.fn)
	if w.c.broken != nil {
		if w.c.raw.AutoCommit() {
			return false, w.c.broken
		}
		if !errors.Is(err, w.c.broken) {
			err = errors.Join(err, w.c.broken)
		}
	}
	if err == nil {
		return false, nil
	}
	r.err = err
	w.rollback()
	return true, w.begin()
}

// step runs one request in its savepoint. An error that it returns has cost the whole transaction.
func (w *writer) step(r *request) error {
	if !r.state.CompareAndSwap(waiting, begun) {
		return nil // its caller has gone
	}
	if _, _, err := w.c.exec("SAVEPOINT one"); err != nil {
		return err
	}
	mark := w.indexed
	err := w.call(r.fn)
	if w.c.broken != nil {
		// Full disk and the like: SQLite may have rolled everything back, and even where it has not, a
		// function that swallowed the error must not be committed.
		if w.c.raw.AutoCommit() {
			return w.c.broken
		}
		if !errors.Is(err, w.c.broken) {
			err = errors.Join(err, w.c.broken)
		}
		w.c.broken = nil
	}
	if err != nil {
		r.err = err
		w.indexed = mark
		if _, _, err := w.c.exec("ROLLBACK TO one"); err != nil {
			return err
		}
	}
	_, _, err = w.c.exec("RELEASE one")
	return err
}

// call runs a function and turns a panic into an error.
func (w *writer) call(fn func(sessions.Tx) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return fn(&w.tx)
}

// Savepoint runs fn in a savepoint of its own, inside that of its request; see sessions.Tx.
func (t *tx) Savepoint(fn func() error) error {
	if _, _, err := t.c.exec("SAVEPOINT inner"); err != nil {
		return err
	}
	mark := t.w.indexed
	err := t.w.call(func(sessions.Tx) error { return fn() })
	if t.c.broken != nil {
		return errors.Join(err, t.c.broken) // step undoes all of it
	}
	if err != nil {
		t.w.indexed = mark
		if _, _, undo := t.c.exec("ROLLBACK TO inner"); undo != nil {
			return errors.Join(err, undo)
		}
	}
	if _, _, release := t.c.exec("RELEASE inner"); release != nil {
		return errors.Join(err, release)
	}
	return err
}

// finish commits.
func (w *writer) finish(done []*request) error {
	if failpoint.Enabled {
		for _, r := range done {
			failpoint.Hit(string(r.edge) + ":before")
		}
	}
	if _, _, err := w.c.exec("COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if failpoint.Enabled {
		for _, r := range done {
			failpoint.Hit(string(r.edge) + ":after")
		}
	}
	return nil
}

// rollback ends a transaction that SQLite has not ended itself.
func (w *writer) rollback() {
	w.c.broken = nil
	if w.c.raw.AutoCommit() {
		return
	}
	if _, _, err := w.c.exec("ROLLBACK"); err != nil {
		w.store.opts.Log.Error().Err(err).Msg("store: rollback failed")
	}
}

// answer gives all of them the error.
func (w *writer) answer(batch []*request, err error) {
	w.store.failed.Add(int64(len(batch)))
	for _, r := range batch {
		// One that had an error of its own keeps it; the transaction's is added.
		r.err = errors.Join(r.err, err)
		r.state.Store(begun)
		r.answer()
	}
}

// committed answers after a commit and counts.
func (w *writer) committed(done []*request) {
	s := w.store
	s.commits.Add(1)
	s.appended.Store(w.nextMessage - 1)
	s.indexed.Store(w.indexed)
	now := time.Now()
	kept := 0
	for _, r := range done {
		if r.state.Load() != begun {
			continue
		}
		kept++
		if r.err != nil {
			s.failed.Add(1)
		}
	}
	s.updates.Add(int64(kept))
	s.largest.Store(max(s.largest.Load(), int64(kept)))
	for _, r := range done {
		if r.state.Load() != begun {
			continue
		}
		latency := now.Sub(r.since)
		if r.later { // its wait is nobody's
			latency = now.Sub(w.began)
		}
		s.latency.Add(int64(latency))
		if s.opts.Observe != nil {
			s.opts.Observe(r.edge, latency, kept)
		}
		r.answer()
	}
	s.keeper.touch()
}

// runAlone runs a request between transactions.
func (w *writer) runAlone(r *request) {
	if !r.state.CompareAndSwap(waiting, begun) {
		return
	}
	w.c.broken = nil
	r.err = r.alone(w.c)
	w.rollback()
	r.answer()
}
