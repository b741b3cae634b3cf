package delivery

import (
	"errors"
	"time"

	"herald/platforms"
	"herald/sessions"
)

// commit stores the row, with more in the same transaction, and keeps trying while the store is in
// trouble: an outcome that is not written down would be asked for again after a restart. It reports
// whether the row was stored.
func (l *lane) commit(row *sessions.OutboxRow, more func(sessions.Tx) error) bool {
	return l.commitIn(row, "", more)
}

// commitIn is commit for a row that may have opened a thread.
func (l *lane) commitIn(row *sessions.OutboxRow, thread platforms.ThreadID, more func(sessions.Tx) error) bool {
	w := l.w
	wait := 50 * time.Millisecond
	for {
		var follow []*sessions.OutboxRow
		err := w.opt.Store.Update(w.ctx, sessions.EdgeReceipt, func(tx sessions.Tx) (err error) {
			if err = tx.SetOutbox(*row); err != nil {
				return err
			}
			if follow, err = w.settled(tx, *row, thread); err != nil || more == nil {
				return err
			}
			return more(tx)
		})
		if err == nil {
			w.enqueueAll(follow)
			return true
		}
		if w.ctx.Err() != nil || errors.Is(err, sessions.ErrClosed) {
			return false
		}
		w.opt.Log.Error().Err(err).Int64("outbox", int64(row.ID)).Msg("the outcome of a send can't be written down; trying again")
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-w.ctx.Done():
		}
		timer.Stop()
		wait = min(2*wait, 5*time.Second)
	}
}

// settled lets Options.Settled act on a brief that has ended. Its error costs only what it wrote; what it returns is the
// store's trouble.
func (w *Worker) settled(tx sessions.Tx, row sessions.OutboxRow, thread platforms.ThreadID) (follow []*sessions.OutboxRow, err error) {
	if w.opt.Settled == nil || row.Kind != sessions.OutBrief {
		return nil, nil
	}
	switch row.State {
	case sessions.OutSent, sessions.OutFailed, sessions.OutUnknown:
	default:
		return nil, nil
	}
	err = tx.Savepoint(func() (err error) {
		follow, err = w.opt.Settled(tx, row, thread)
		return err
	})
	switch {
	case err == nil:
		return follow, nil
	case sessions.Unwritable(err):
		return nil, err // try again with it
	}
	w.opt.Log.Error().Err(err).Int64("outbox", int64(row.ID)).Str("lane", row.Lane).Str("state", string(row.State)).
		Msg("what follows from the delivery of a job's output failed; the delivery counts all the same")
	return nil, nil
}

// storeTrouble puts a row back that could not be marked as attempted: nothing was sent.
func (l *lane) storeTrouble(row *sessions.OutboxRow, err error) {
	w := l.w
	if w.ctx.Err() != nil || errors.Is(err, sessions.ErrClosed) {
		return
	}
	w.opt.Log.Error().Err(err).Int64("outbox", int64(row.ID)).Msg("a message can't be sent because the attempt can't be written down; trying again")
	row.NotBefore = w.opt.Now().Add(backoff(row.Attempts + 1))
	l.back(row)
}
