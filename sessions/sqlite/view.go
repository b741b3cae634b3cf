package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"herald/sessions"
)

// view reads on one connection: a reader's snapshot, or the writer's transaction.
type view struct {
	store *Store
	c     *conn
	// ctx interrupts the calls that may take long.
	ctx context.Context
}

// tx is the view of an Update, which also writes.
type tx struct {
	view
	w *writer
}

var (
	_ sessions.View = (*view)(nil)
	_ sessions.Tx   = (*tx)(nil)
)

// View runs fn on a snapshot; see sessions.Store. It waits while Options.Readers Views run. Errors: what fn
// returned, *PanicError, sessions.ErrClosed, ErrCorrupt, the context's.
func (s *Store) View(ctx context.Context, fn func(sessions.View) error) error {
	s.views.Add(1)
	return s.readers.with(ctx, func(c *conn) error {
		if _, _, err := c.exec("BEGIN"); err != nil {
			return err
		}
		err := callView(fn, &view{store: s, c: c, ctx: ctx})
		if c.broken != nil {
			return err // the connection is closed for it
		}
		_, _, errEnd := c.exec("ROLLBACK") // nothing was written
		return errors.Join(err, errEnd)
	})
}

func callView(fn func(sessions.View) error, v *view) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return fn(v)
}

// readers is a pool of reading connections, opened when first needed.
type readers struct {
	path string
	slot chan struct{} // one token for each connection in use
	// search is a pool of one, for a Search inside of a View: a View that waited for a second connection
	// of its own pool could wait without end.
	search *readers

	mu     sync.Mutex
	idle   []*conn
	closed bool
}

func newReaders(path string, limit int) *readers {
	return &readers{path: path, slot: make(chan struct{}, limit), search: &readers{path: path, slot: make(chan struct{}, 1)}}
}

// with lends fn a connection. A connection that saw a fatal error is closed afterwards.
func (p *readers) with(ctx context.Context, fn func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case p.slot <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.slot }()
	c, err := p.get()
	if err != nil {
		return err
	}
	returned := false
	defer func() {
		if !returned { // fn ended its goroutine (a test's FailNow)
			_ = c.close()
		}
	}()
	err = fn(c)
	returned = true
	return errors.Join(err, p.put(c))
}

func (p *readers) get() (*conn, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, sessions.ErrClosed
	}
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	c, err := openConn(readerDSN(p.path))
	if err != nil {
		return nil, fmt.Errorf("open a reader of %s: %w", p.path, mapError(err))
	}
	return c, nil
}

func (p *readers) put(c *conn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || c.broken != nil {
		return c.close()
	}
	p.idle = append(p.idle, c)
	return nil
}

// close refuses new loans and waits for those that run.
func (p *readers) close() error {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	var errs []error
	for _, c := range idle {
		errs = append(errs, c.close())
	}
	for range cap(p.slot) {
		p.slot <- struct{}{}
	}
	for range cap(p.slot) {
		<-p.slot
	}
	if p.search != nil {
		errs = append(errs, p.search.close())
	}
	return errors.Join(errs...)
}

// encode returns v as JSON text.
func encode(v any) (string, error) {
	raw, err := json.Marshal(v)
	return string(raw), err
}

// encodeList is encode with "" for a list without entries.
func encodeList[T any](list []T) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	return encode(list)
}

// decode reads JSON text of a table's column; "" leaves v as it is.
func decode(text, column string, v any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return fmt.Errorf("%s: %w", column, err)
	}
	return nil
}

// idList returns ids as a JSON array for json_each.
func idList[T ~int64](ids []T) (string, error) {
	if len(ids) == 0 {
		return "[]", nil
	}
	return encode(ids)
}
