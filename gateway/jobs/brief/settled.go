package brief

import (
	"encoding/json"
	"errors"
	"strings"

	"herald/cron"
	"herald/gateway/delivery"
	"herald/platforms"
	"herald/sessions"
)

// Settled follows up on a message of a brief that the platform has answered for, in the transaction of the receipt. It
// notes with the run what became of it and queues the further messages; a first message that has arrived becomes part of
// conversations. thread is the one that was opened for it. The rows it returns are queued by the caller.
func (w *Writer) Settled(tx sessions.Tx, row sessions.OutboxRow, thread platforms.ThreadID) ([]*sessions.OutboxRow, error) {
	value, err := tx.Value(sessions.SpaceBrief, delivery.BriefName(row.ID))
	if errors.Is(err, sessions.ErrNotFound) {
		return nil, nil // settled before
	}
	if err != nil {
		return nil, err
	}
	var b Brief
	if err := json.Unmarshal(value.Data, &b); err != nil {
		return nil, err
	}
	var rows []*sessions.OutboxRow
	var kinds []string
	if b.First {
		if rows, err = w.further(tx, row, b, thread); err != nil {
			return nil, err
		}
		if row.State == sessions.OutSent {
			if kinds, err = w.continues(tx, row, b, thread); err != nil {
				return nil, err
			}
		}
	}
	if err := w.noteDelivery(tx, row, b, rows, kinds); err != nil {
		return nil, err
	}
	if row.State == sessions.OutUnknown { // a person may send it again: then it is settled once more, without what is queued now
		b.More = nil
		data, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		return rows, tx.SetValue(sessions.SpaceBrief, delivery.BriefName(row.ID), data, w.o.Now())
	}
	return rows, tx.SetValue(sessions.SpaceBrief, delivery.BriefName(row.ID), nil, w.o.Now())
}

// continues makes the brief part of conversations. If it can't be, that is logged and has no other effect: the brief has
// arrived.
func (w *Writer) continues(tx sessions.Tx, row sessions.OutboxRow, b Brief, thread platforms.ThreadID) (how []string, err error) {
	err = tx.Savepoint(func() (err error) {
		if err = w.keepTopic(tx, row, b, thread); err == nil {
			how, err = w.mirror(tx, row, b, thread)
		}
		return err
	})
	switch {
	case err == nil:
		return how, nil
	case sessions.Unwritable(err):
		return nil, err // the receipt can't be written either: it is tried again
	}
	w.o.Log.Warn().Err(err).Str("job", string(b.Job)).Int64("outbox", int64(row.ID)).
		Msg("cron: a brief that has arrived could not become part of its conversation; a reply to it is not understood")
	return nil, nil
}

// further queues the messages after the first one, into its thread where one was opened. When the first could not be sent
// they are not tried: nobody could make sense of them.
func (w *Writer) further(tx sessions.Tx, row sessions.OutboxRow, b Brief, thread platforms.ThreadID) ([]*sessions.OutboxRow, error) {
	if row.State == sessions.OutFailed {
		return nil, nil
	}
	at := row.Message.Address
	if row.Message.Thread != "" && thread != "" {
		at.Thread = thread
	}
	var rows []*sessions.OutboxRow
	for _, m := range b.More {
		m.Address = at
		next := &sessions.OutboxRow{Kind: sessions.OutBrief, Message: m}
		if err := w.put(tx, next, Brief{Job: b.Job, Name: b.Name, Run: b.Run, Target: b.Target}); err != nil {
			return nil, err
		}
		rows = append(rows, next)
	}
	return rows, nil
}

// noteDelivery writes what became of a message into its run and its job. A run that was trimmed since is skipped.
func (w *Writer) noteDelivery(tx sessions.Tx, row sessions.OutboxRow, b Brief, more []*sessions.OutboxRow, mirrored []string) error {
	run, err := tx.Run(b.Run)
	if errors.Is(err, sessions.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	result := ReadResult(run)
	if b.Target < 0 || b.Target >= len(result.Deliveries) {
		return nil
	}
	d := &result.Deliveries[b.Target]
	for _, next := range more {
		d.Rows = append(d.Rows, next.ID)
	}
	d.Mirrored = append(d.Mirrored, mirrored...)
	if worse(row.State, d.State) || b.First && len(more) == 0 {
		d.State = row.State
		d.Error = ""
		if row.State != sessions.OutSent {
			d.Error = w.o.Redact(row.Error)
		}
	}
	if !b.First && len(d.Rows) > 0 && row.ID == d.Rows[len(d.Rows)-1] && d.State == sessions.OutPending {
		d.State = row.State // the last of them, and none before went wrong
	}
	data, err := json.Marshal(result)
	if err != nil {
		return err
	}
	if err := tx.SetRunResult(run.ID, data); err != nil {
		return err
	}
	if w.o.Metrics != nil {
		w.o.Metrics.Delivered(row.Message.Address.Platform, row.State)
		for _, kind := range mirrored {
			w.o.Metrics.Mirrored(kind)
		}
	}
	if row.State == sessions.OutSent {
		return nil
	}
	return w.undelivered(tx, b.Job, platforms.TargetOf(row.Message.Address,
		false)+": "+string(row.State)+": "+oneLine(w.o.Redact(row.Error)))
}

// worse reports whether a state is a worse end than another.
func worse(a, b sessions.OutboxState) bool {
	rank := map[sessions.OutboxState]int{sessions.OutUnknown: 1, sessions.OutFailed: 2}
	return rank[a] > rank[b]
}

// undelivered notes with a job that its newest output did not arrive.
func (w *Writer) undelivered(tx sessions.Tx, id cron.JobID, why string) error {
	err := cron.Amend(tx, id, func(job *cron.Job) bool {
		job.Undelivered = why
		return true
	})
	if errors.Is(err, sessions.ErrNotFound) {
		return nil // removed meanwhile
	}
	return err
}

// oneLine is a text in one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
