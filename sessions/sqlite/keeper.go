package sqlite

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"
)

// The keeper's pace.
const (
	// idleAfter is how long without a commit counts as quiet.
	idleAfter = 250 * time.Millisecond
	// maxUnindexed and maxIndexDelay are when rows are indexed although it is not quiet.
	maxUnindexed  = 5000
	maxIndexDelay = 30 * time.Second
	// commitsPerCheckpoint is after how many commits the log is moved into the database although it is not
	// quiet, quietCheckpoint after how many when it is: the first commit after a move pays for a second sync, which one
	// message a minute should not do each time.
	commitsPerCheckpoint = 256
	quietCheckpoint      = 64
	// logRoom is the size to which the log is filled with zeros in a quiet moment, in steps of logStep bytes: a sync of
	// bytes that are written over takes half the time of one that makes the file longer (0.21 against 0.42 ms, ext4). A
	// log is begun from its start again after each move, so what is filled once serves for good.
	logRoom = 8 << 20
	logStep = 1 << 20
)

// keeper does what nobody waits for, beside the work: it indexes new rows for the search and moves the log
// into the database. It sleeps while nothing is committed.
type keeper struct {
	store  *Store
	wake   chan struct{}
	cancel context.CancelFunc
	ctx    context.Context
	ended  chan struct{}
	commit atomic.Int64
	// checkpoint is its own connection: a checkpoint on the writer's would hold the writer.
	c *conn
	// moved is the count of commits at the last checkpoint.
	moved int64
	// narrow is true when the log could not be filled: it grows as it is written then.
	narrow bool
}

func newKeeper(s *Store) *keeper {
	ctx, cancel := context.WithCancel(context.Background())
	return &keeper{store: s, wake: make(chan struct{}, 1), ctx: ctx, cancel: cancel, ended: make(chan struct{})}
}

// touch tells of a commit.
func (k *keeper) touch() {
	k.commit.Add(1)
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// stop ends the keeper and waits for it.
func (k *keeper) stop() {
	k.cancel()
	<-k.ended
}

// run works until stop. check asks for a check of the whole file first, for a large one that was not
// closed.
func (k *keeper) run(check bool) {
	defer close(k.ended)
	defer func() {
		if k.c != nil {
			if err := k.c.close(); err != nil {
				k.store.opts.Log.Error().Err(err).Msg("store: closing the checkpoint connection failed")
			}
		}
	}()
	if check {
		k.checkFile()
	}
	if k.store.appended.Load() > k.store.indexed.Load() {
		k.touch()
	}
	timer := time.NewTimer(idleAfter)
	defer timer.Stop()
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-k.wake:
		}
		if !k.tend(timer) {
			return
		}
	}
}

// tend works off what commits have left, until it is quiet and nothing is left. It returns false when the
// keeper is to stop.
func (k *keeper) tend(timer *time.Timer) bool {
	began, last := time.Now(), k.commit.Load()
	for {
		timer.Reset(idleAfter)
		select {
		case <-k.ctx.Done():
			return false
		case <-timer.C:
		}
		now := k.commit.Load()
		quiet := now == last
		behind := k.store.appended.Load() - k.store.indexed.Load()
		if behind > 0 && (quiet || behind > maxUnindexed || time.Since(began) > maxIndexDelay) {
			if !k.index(quiet) {
				return k.ctx.Err() == nil // for example a full disk; the next commit tries again
			}
			began = time.Now()
		}
		if now-k.moved >= commitsPerCheckpoint || quiet && now-k.moved >= quietCheckpoint {
			k.checkpoint(now)
		}
		if quiet {
			k.fillLog()
			return true
		}
		last = now
	}
}

// index runs small steps until the index is complete, or for a moment while others work.
func (k *keeper) index(quiet bool) bool {
	until := time.Now().Add(idleAfter)
	for k.store.indexed.Load() < k.store.appended.Load() && (quiet || time.Now().Before(until)) {
		if err := k.store.indexStep(k.ctx, idleRows); err != nil {
			if k.ctx.Err() == nil {
				k.store.opts.Log.Warn().Err(err).Msg("store: indexing for search failed; it is tried again")
			}
			return false
		}
	}
	return true
}

// checkpoint moves the log into the database as far as no reader needs it.
func (k *keeper) checkpoint(commits int64) {
	var err error
	if k.c == nil {
		k.c, err = openConn(writerDSN(k.store.opts.Path))
	}
	if err == nil {
		_, err = k.c.int("PRAGMA wal_checkpoint(PASSIVE)")
	}
	if err != nil {
		k.store.opts.Log.Warn().Err(mapError(err)).Msg("store: moving the log into the database failed; it is tried again")
		return
	}
	k.moved = commits
}

// fillLog makes the log as long as it will get, between transactions.
func (k *keeper) fillLog() {
	for more := !k.narrow; more; {
		err := k.store.alone(k.ctx, func(*conn) (err error) {
			more, err = lengthen(k.store.opts.Path+"-wal", logRoom, logStep)
			return err
		})
		if err != nil {
			if k.ctx.Err() == nil {
				k.narrow = true
				k.store.opts.Log.Info().Err(err).Msg("store: the log gets no room in advance; it works, a little slower")
			}
			return
		}
	}
}

// lengthen writes step zeros behind the end of a log that is shorter than room, and tells whether it may need more. SQLite
// reads no further than the last whole transaction, so what stands behind it means nothing. Nobody may write to the file
// meanwhile. Where it fails the file is as it was.
func lengthen(path string, room, step int64) (more bool, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 || info.Size() >= room {
		return false, err
	}
	zeros := make([]byte, min(step, 32<<10))
	for at, end := info.Size(), info.Size()+step; at < end && err == nil; at += int64(len(zeros)) {
		_, err = f.WriteAt(zeros[:min(int64(len(zeros)), end-at)], at)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return false, errors.Join(err, f.Truncate(info.Size()))
	}
	return true, nil
}

// checkFile looks for damage in the whole file and reports it.
func (k *keeper) checkFile() {
	s := k.store
	err := s.readers.search.with(k.ctx, func(c *conn) error {
		return c.query(k.ctx, "PRAGMA quick_check(1)", func(r row) error {
			if finding := r.text(0); finding != "ok" {
				return errCheck{finding}
			}
			return nil
		})
	})
	if err == nil || k.ctx.Err() != nil {
		return
	}
	s.damaged.Store(true)
	s.opts.Log.Error().Err(err).Str("path", s.opts.Path).
		Msg("store: the database is damaged; stop Herald and run `herald doctor db`, or put a backup in its place")
}
