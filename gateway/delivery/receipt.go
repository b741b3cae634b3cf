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

// beside tells whether nobody waits for the receipt of a row that was sent: no brief, whose delivery begins something, no
// prompt, whose message is looked up, and nothing that has to be said about it.
func beside(row *sessions.OutboxRow, receipt platforms.Receipt) bool {
	switch row.Kind {
	case sessions.OutFinal, sessions.OutSend, sessions.OutControl, sessions.OutNotice:
		return len(receipt.Notes) == 0 && receipt.Thread == "" && row.Message.Thread == ""
	}
	return false
}

// receive writes down that a row was sent, beside the path: the lane goes on, and the receipt shares a commit with what
// comes next. A crash before that leaves the row as being sent, so that the next process treats its outcome as unknown.
func (l *lane) receive(row *sessions.OutboxRow) {
	w := l.w
	w.mu.Lock()
	w.receipts[row.ID] = struct{}{}
	w.mu.Unlock()
	keep := func(tx sessions.Tx) error { return w.revive(tx, row.Message.Address) }
	w.opt.Store.Later(sessions.EdgeReceipt, func(tx sessions.Tx) error {
		if err := tx.SetOutbox(*row); err != nil {
			return err
		}
		return keep(tx)
	}, func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil || w.closed || errors.Is(err, sessions.ErrClosed) {
			w.receivedLocked(row.ID)
			return
		}
		w.wg.Add(1)
		go func() {
			defer w.wg.Done()
			l.commit(row, keep)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.receivedLocked(row.ID)
		}()
	})
}

// receivedLocked forgets a receipt that is written down. w.mu is held.
func (w *Worker) receivedLocked(id sessions.OutboxID) {
	delete(w.receipts, id)
	w.movedLocked()
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
