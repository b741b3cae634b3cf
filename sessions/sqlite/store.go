package sqlite

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"herald/platforms"
	"herald/sessions"
	"herald/sessions/lock"
)

// The defaults of Options.
const (
	// DefaultReaders is how many Views run at once; more wait. Measured: two cores gain nothing from more.
	DefaultReaders = 4
	// DefaultMaxBatch is how many Updates share one commit at most.
	DefaultMaxBatch = 256
)

// Options say which store to open and how.
type Options struct {
	// Path is the database file. Missing folders are made with mode 0700, the file with 0600. Required.
	Path string
	// Log takes what no caller can be told: failed housekeeping, a damaged file found later. The zero
	// logger is silent.
	Log zerolog.Logger
	// Clock is the time of rows that come without one, and of retention. nil: time.Now.
	Clock func() time.Time
	// Home and Profile go into the lock's record, for the people of a second process.
	Home    string
	Profile string
	// Readers bounds the Views at once. 0: DefaultReaders.
	Readers int
	// MaxBatch bounds the Updates of one commit. 0: DefaultMaxBatch.
	MaxBatch int
	// MaxBytes bounds the database file; beyond it writes fail with sessions.ErrFull. 0: the disk is the bound.
	MaxBytes int64
	// Observe, when set, is called for each committed Update: its edge, the time from the call to the commit,
	// and how many Updates shared the commit. It runs on the writer: it must be quick and never call the store.
	Observe func(edge sessions.Edge, latency time.Duration, batch int)
}

// Store is one profile's database, open. All methods are safe for concurrent use.
type Store struct {
	opts    Options
	lock    *lock.Lock
	writer  *writer
	readers *readers
	keeper  *keeper
	closing sync.Once
	closed  error

	commits, updates, failed, views, largest atomic.Int64
	latency                                  atomic.Int64 // sum, nanoseconds
	appended, indexed                        atomic.Int64 // newest transcript row, newest one in the search index
	damaged                                  atomic.Bool
}

var (
	_ sessions.Store = (*Store)(nil)
	_ platforms.Log  = chatLog{}
)

// Update runs fn in a transaction; see sessions.Store. Errors: what fn returned; *PanicError when it
// panicked; sessions.ErrFull, ErrReadOnly and ErrCorrupt when the commit failed; ErrClosed; the context's.
func (s *Store) Update(ctx context.Context, edge sessions.Edge, fn func(sessions.Tx) error) error {
	return s.writer.submit(ctx, &request{edge: edge, fn: fn, done: make(chan struct{}, 1)})
}

// Later queues fn for a commit that comes anyway; see sessions.Store. done gets the errors of Update.
func (s *Store) Later(edge sessions.Edge, fn func(sessions.Tx) error, done func(error)) {
	s.writer.postpone(&request{edge: edge, fn: fn, told: done, later: true})
}

// alone runs fn on the writer's connection between transactions.
func (s *Store) alone(ctx context.Context, fn func(*conn) error) error {
	return s.writer.submit(ctx, &request{edge: sessions.EdgeKeep, alone: fn, done: make(chan struct{}, 1)})
}

// Path returns the database file's absolute path.
func (s *Store) Path() string { return s.opts.Path }

// Close refuses new calls, finishes those that wait, moves the log into the database and gives the lock
// up. On a full disk the log stays beside the file, which loses nothing. A second Close returns what the
// first one did.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.keeper.stop()
		s.writer.stop()
		errs := []error{s.readers.close()}
		s.writer.c.broken = nil
		if _, err := s.writer.c.int("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			s.opts.Log.Warn().Err(err).Str("path", s.opts.Path).Msg("store: the log could not be moved into the database; the next start does it")
		}
		errs = append(errs, s.writer.c.close(), s.lock.Release())
		s.closed = mapError(errors.Join(errs...))
	})
	return s.closed
}

// Metrics are counts since Open.
type Metrics struct {
	// Commits is how many transactions were committed, Updates how many Updates they carried, failed ones
	// included; Failed is how many Updates returned an error.
	Commits, Updates, Failed int64
	// LargestBatch is the most Updates that shared one commit.
	LargestBatch int64
	// Latency is the sum over Updates of the time from call to commit.
	Latency time.Duration
	// Queue is how many Updates wait now.
	Queue int
	Views int64
	// Unindexed is how many row ids the search index is behind; the next Search closes the gap first.
	Unindexed int64
	// Damaged is true once a check of the file has found damage.
	Damaged bool
}

// Metrics returns the counts. It does no I/O.
func (s *Store) Metrics() Metrics {
	return Metrics{
		Commits:      s.commits.Load(),
		Updates:      s.updates.Load(),
		Failed:       s.failed.Load(),
		LargestBatch: s.largest.Load(),
		Latency:      time.Duration(s.latency.Load()),
		Queue:        s.writer.depth(),
		Views:        s.views.Load(),
		Unindexed:    max(0, s.appended.Load()-s.indexed.Load()),
		Damaged:      s.damaged.Load(),
	}
}
