package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"herald/locales"
	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
	"herald/sessions/failpoint"
)

// lane sends to one address, one call at a time. It has a goroutine only while it has work.
type lane struct {
	w    *Worker
	name string
	at   platforms.Address
	wake chan struct{}

	// guarded by w.mu
	rows    []*sessions.OutboxRow
	lives   []*Live
	claimed *sessions.OutboxRow // is being committed as attempted; nothing else is sent before it
	sending sessions.OutboxID   // is on its way from rows to its outcome; 0: none
	running bool
	busy    bool // a row or a live message is being sent
}

// run works until nothing is left, then the lane is gone.
func (l *lane) run() {
	defer l.w.wg.Done()
	for {
		row, live, wait, ok := l.next()
		if !ok {
			return
		}
		switch {
		case row != nil:
			l.deliver(row)
		case live != nil:
			live.show()
		default:
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-l.wake:
			case <-l.w.ctx.Done():
			}
			timer.Stop()
		}
	}
}

// next picks the row that is due, else a live message that is due, else how long to wait. ok is false when
// the lane has nothing left or the worker closes; the lane has left the map then.
func (l *lane) next() (row *sessions.OutboxRow, live *Live, wait time.Duration, ok bool) {
	w := l.w
	now := w.opt.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	l.busy, l.sending = false, 0
	defer w.movedLocked()
	if w.closed || (len(l.rows) == 0 && len(l.lives) == 0) {
		l.running = false
		if l.claimed == nil {
			delete(w.lanes, l.name)
		}
		return nil, nil, 0, false
	}
	const idle = time.Minute
	wait = idle
	if l.claimed != nil && (len(l.rows) == 0 || l.rows[0] != l.claimed) {
		return nil, nil, wait, true
	}
	if len(l.rows) > 0 {
		at := w.readyAtLocked(l, l.rows[0])
		if !at.After(now) {
			row = l.rows[0]
			l.rows = l.rows[1:]
			l.busy, l.sending = true, row.ID
			return row, nil, 0, true
		}
		// Nothing grows before what waits: it would be seen first (P3).
		return nil, nil, max(min(wait, at.Sub(now)), time.Millisecond), true
	}
	for _, live := range l.lives {
		due, has := live.due()
		if !has {
			continue
		}
		if !due.After(now) {
			l.busy = true
			return nil, live, 0, true
		}
		wait = min(wait, due.Sub(now))
	}
	return nil, nil, max(wait, time.Millisecond), true
}

// back puts a row at the head of its lane again.
func (l *lane) back(row *sessions.OutboxRow) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	l.rows = append([]*sessions.OutboxRow{row}, l.rows...)
}

// deliver makes one attempt at a row.
func (l *lane) deliver(row *sessions.OutboxRow) {
	w := l.w
	w.mu.Lock()
	claimed := l.claimed == row
	if claimed {
		l.claimed = nil
	}
	w.mu.Unlock()
	if row.State == sessions.OutAttempting && !claimed {
		// An earlier process was sending it: what came of that is unknown.
		l.settle(row, platforms.Receipt{}, &platforms.SendError{Kind: platforms.Transient, Certainty: platforms.Unknown,
			Err: errors.New("the process ended while the message was being sent")}, 0)
		return
	}
	adapter, ok := w.opt.Adapters.Adapter(row.Message.Address.AccountOf())
	if !ok {
		l.settle(row, platforms.Receipt{}, &platforms.SendError{Kind: platforms.AuthFailed, Certainty: platforms.NotSent,
			Err: fmt.Errorf("no adapter serves %s", row.Message.Address.AccountOf())}, 0)
		return
	}
	if reason, dead := w.DeadTarget(row.Message.Address); dead && row.Kind != sessions.OutControl && row.Kind != sessions.OutFinal {
		l.finish(row, sessions.OutFailed, "the chat can't be reached: "+reason, platforms.Receipt{})
		return
	}
	if !claimed {
		if err := l.begin(row, adapter); err != nil {
			l.storeTrouble(row, err)
			return
		}
	}
	ctx, cancel := context.WithTimeout(w.ctx, w.opt.SendTimeout)
	failpoint.Hit("send.call:before")
	started := time.Now()
	receipt, err := adapter.Send(ctx, row.Message)
	failpoint.Hit("send.call:after")
	cancel()
	if err != nil && receipt.Thread != "" {
		row.Message.Address.Thread = receipt.Thread // it is open: the next attempt goes into it
	}
	l.settle(row, receipt, platforms.AsSendError(err), time.Since(started))
}

// begin writes the attempt down. The turn's preview, if one is visible, is what this row completes.
func (l *lane) begin(row *sessions.OutboxRow, adapter platforms.Adapter) error {
	w := l.w
	var used *preview
	if row.Kind == sessions.OutFinal && row.Message.Edit == "" && adapter.Traits().Edit {
		w.mu.Lock()
		if used = w.previews[row.Turn]; used != nil {
			delete(w.previews, row.Turn)
		}
		w.mu.Unlock()
	}
	next := *row
	next.State = sessions.OutAttempting
	next.Attempts++
	if used != nil && !l.removed(used, row, adapter) {
		next.Message.Edit = used.message
	}
	err := w.opt.Store.Update(w.ctx, sessions.EdgeSend, func(tx sessions.Tx) error {
		if used != nil {
			done, err := tx.OutboxRow(used.row)
			if err != nil {
				return err
			}
			done.State = sessions.OutCancelled
			done.Error = "completed by the final text"
			if err := tx.SetOutbox(done); err != nil {
				return err
			}
		}
		return tx.SetOutbox(next)
	})
	if err != nil {
		if used != nil {
			w.mu.Lock()
			w.previews[row.Turn] = used
			w.mu.Unlock()
		}
		return err
	}
	*row = next
	return nil
}

// removed takes an old preview off, so that the answer stands as a new message with its own time (Options.FreshFinal).
// A crash after it does no harm: a preview that is gone already counts as removed.
func (l *lane) removed(p *preview, row *sessions.OutboxRow, adapter platforms.Adapter) bool {
	w := l.w
	deleter, can := adapter.(platforms.Deleter)
	if w.opt.FreshFinal == nil || !can || p.at.IsZero() {
		return false
	}
	if limit := w.opt.FreshFinal(); limit <= 0 || w.opt.Now().Sub(p.at) < limit {
		return false
	}
	ctx, cancel := context.WithTimeout(w.ctx, w.opt.SendTimeout)
	defer cancel()
	return deleter.Delete(ctx, row.Message.Address, p.message) == nil
}

// settle writes the outcome of an attempt down and decides what follows.
func (l *lane) settle(row *sessions.OutboxRow, receipt platforms.Receipt, se *platforms.SendError, took time.Duration) {
	w := l.w
	if w.ctx.Err() != nil && se != nil {
		return // closing: the row stays as it is on disk, and the next process settles it
	}
	if se == nil {
		w.observe(row, "sent", took)
		row.Sent = receipt.Message
		if beside(row, receipt) {
			row.State, row.Error = sessions.OutSent, ""
			l.receive(row)
			return
		}
		l.finish(row, sessions.OutSent, "", receipt)
		if row.Kind == sessions.OutPreview && row.Sent != "" {
			w.setPreview(row.Turn, &preview{row: row.ID, message: row.Sent, at: row.Created})
		}
		return
	}
	w.observe(row, string(se.Kind)+"/"+se.Certainty.String(), took)
	w.opt.Log.Warn().Int64("outbox", int64(row.ID)).Str("lane", l.name).Str("kind", string(row.Kind)).Int("attempt", row.Attempts).
		Str("failure", string(se.Kind)).Str("certainty", se.Certainty.String()).Dur("retry_after", se.RetryAfter).Err(se.Err).
		Msg("a message was not confirmed")
	if se.Certainty == platforms.Unknown {
		l.settleUnknown(row, se)
		return
	}
	now := w.opt.Now()
	switch se.Kind {
	case platforms.RateLimited:
		until := now.Add(max(se.RetryAfter, time.Second))
		w.gated(row, until.Sub(now))
		l.retry(row, until, se, func(tx sessions.Tx) error { return w.closeGate(tx, row.Message.Address, se.AccountWide, until) })
	case platforms.Transient, platforms.AuthFailed:
		l.retry(row, now.Add(backoff(row.Attempts)), se, nil)
	case platforms.MessageGone:
		if row.Message.Edit == "" {
			l.finish(row, sessions.OutFailed, se.Error(), platforms.Receipt{})
			return
		}
		row.Message.Edit = "" // the preview was deleted: the answer needs a message of its own
		l.retry(row, now, se, nil)
	case platforms.ThreadGone:
		if row.Message.Thread == "" || row.Message.Address.Thread == "" {
			l.refuse(row, se)
			return
		}
		row.Message.Address.Thread = "" // the thread that was kept for it is gone: it gets a new one
		l.retry(row, now, se, nil)
	case platforms.Forbidden, platforms.NotFound:
		row.State, row.Error = sessions.OutFailed, se.Error()
		l.commit(row, func(tx sessions.Tx) error { return w.markDead(tx, row.Message.Address, se.Error()) })
	default:
		l.refuse(row, se)
	}
}

// settleUnknown handles a send that may have arrived.
func (l *lane) settleUnknown(row *sessions.OutboxRow, se *platforms.SendError) {
	w := l.w
	now := w.opt.Now()
	adapter, ok := w.opt.Adapters.Adapter(row.Message.Address.AccountOf())
	if ok && (row.Message.Edit != "" || adapter.Traits().Idempotent) {
		l.retry(row, now.Add(backoff(row.Attempts)), se, nil)
		return
	}
	if reconciler, can := adapter.(platforms.Reconciler); ok && can {
		ctx, cancel := context.WithTimeout(w.ctx, w.opt.SendTimeout)
		id, found, err := reconciler.Find(ctx, row.Message)
		receipt := platforms.Receipt{Message: id}
		if threader, can := adapter.(platforms.Threader); can && err == nil && found && row.Message.Thread != "" {
			receipt.Thread = threader.OpenThread(ctx, row.Message, id)
		}
		cancel()
		switch {
		case err == nil && found:
			row.Sent = id
			l.finish(row, sessions.OutSent, "", receipt)
			return
		case err == nil:
			l.retry(row, now.Add(backoff(row.Attempts)), se, nil)
			return
		case w.ctx.Err() != nil:
			return
		}
		w.opt.Log.Warn().Int64("outbox", int64(row.ID)).Err(err).Msg("could not find out whether a message arrived")
	}
	if row.Kind == sessions.OutNotice && row.Attempts < noticeAttempts {
		// It tells why something is missing: said twice it does no harm, not said it leaves people in the dark.
		l.retry(row, now.Add(backoff(row.Attempts)), se, nil)
		return
	}
	row.State, row.Error = sessions.OutUnknown, se.Error()
	var notice *sessions.OutboxRow
	switch row.Kind {
	case sessions.OutFinal, sessions.OutPrompt, sessions.OutSend, sessions.OutBrief, sessions.OutControl:
		p := w.opt.Printer(row.Message.Address)
		text := p.T("delivery.unknown", locales.Int("id", int64(row.ID)))
		notice = &sessions.OutboxRow{Lane: row.Lane, Kind: sessions.OutNotice, Turn: row.Turn, Session: row.Session,
			Message: platforms.Outgoing{Address: row.Message.Address, Text: w.text(row.Message.Address, text)}}
		if ok && adapter.Traits().Buttons {
			notice.Message.Buttons = [][]platforms.Button{{{Label: p.T("delivery.show_again"), Data: ResendData(row.ID)}}}
		}
	}
	l.commit(row, func(tx sessions.Tx) error {
		if notice == nil {
			return nil
		}
		return tx.PutOutbox(notice)
	})
	if notice != nil && notice.ID != 0 {
		w.enqueue(notice)
	}
}

// refuse gives a row up that the platform will never take, and says so where the person can see it.
func (l *lane) refuse(row *sessions.OutboxRow, se *platforms.SendError) {
	w := l.w
	row.State, row.Error = sessions.OutFailed, se.Error()
	var notices []*sessions.OutboxRow
	if row.Kind != sessions.OutNotice && row.Kind != sessions.OutPreview {
		notices = w.notices(row, w.opt.Printer(row.Message.Address).T("delivery.failed", locales.Str("reason", format.EscapeMarkdown(w.opt.Redact(se.Err.Error())))))
	}
	l.commit(row, func(tx sessions.Tx) error {
		if len(notices) == 0 {
			return nil
		}
		if err := w.tellModel(tx, row, []string{se.Err.Error()}); err != nil {
			return err
		}
		return tx.PutOutbox(notices...)
	})
	w.enqueueAll(notices)
}

// notices renders a word of Herald's own about a row, in as many messages as it needs.
func (w *Worker) notices(row *sessions.OutboxRow, markdown string) []*sessions.OutboxRow {
	chunks := []platforms.Text{{Body: markdown, Plain: markdown, Markdown: markdown}}
	if adapter, ok := w.opt.Adapters.Adapter(row.Message.Address.AccountOf()); ok {
		if rendered := format.Render(markdown, adapter.Traits().Text); len(rendered) > 0 {
			chunks = rendered
		}
	}
	out := make([]*sessions.OutboxRow, len(chunks))
	for i, c := range chunks {
		out[i] = &sessions.OutboxRow{Lane: row.Lane, Kind: sessions.OutNotice, Turn: row.Turn, Session: row.Session,
			Message: platforms.Outgoing{Address: row.Message.Address, Text: c}}
	}
	return out
}

// enqueueAll queues rows that were committed.
func (w *Worker) enqueueAll(rows []*sessions.OutboxRow) {
	for _, row := range rows {
		if row.ID != 0 {
			w.enqueue(row)
		}
	}
}

// retry puts the row back, to be tried not before at. A row that has grown too old is given up.
func (l *lane) retry(row *sessions.OutboxRow, at time.Time, se *platforms.SendError, more func(sessions.Tx) error) {
	w := l.w
	if !row.Created.IsZero() && w.opt.Now().Sub(row.Created) > w.opt.MaxAge {
		row.State, row.Error = sessions.OutFailed, "gave up after "+w.opt.MaxAge.String()+": "+se.Error()
		l.commit(row, more)
		return
	}
	row.State, row.Error, row.NotBefore = sessions.OutPending, se.Error(), at
	if l.commit(row, more) {
		l.back(row)
	}
}

// finish writes a final state down, with a line for what could not be sent.
func (l *lane) finish(row *sessions.OutboxRow, state sessions.OutboxState, reason string, receipt platforms.Receipt) {
	w := l.w
	notes, thread := receipt.Notes, receipt.Thread
	if row.Message.Thread != "" {
		thread = cmp.Or(thread, row.Message.Address.Thread) // an earlier attempt opened it
	}
	row.State, row.Error = state, reason
	var notices []*sessions.OutboxRow
	if len(notes) > 0 {
		row.Error = strings.Join(notes, "; ") // for who has asked for the message
		notices = w.notices(row, "⚠️ "+strings.Join(notes, "\n⚠️ "))
	}
	l.commitIn(row, thread, func(tx sessions.Tx) error {
		if state == sessions.OutSent {
			if err := w.revive(tx, row.Message.Address); err != nil {
				return err
			}
		}
		if len(notices) == 0 {
			return nil
		}
		if err := w.tellModel(tx, row, notes); err != nil {
			return err
		}
		return tx.PutOutbox(notices...)
	})
	w.enqueueAll(notices)
}

// tellModel keeps in the conversation what could not be sent of an answer, so that the model knows it from its next
// turn on.
func (w *Worker) tellModel(tx sessions.Tx, row *sessions.OutboxRow, notes []string) error {
	if row.Session == "" {
		return nil
	}
	if _, err := tx.Session(row.Session); err != nil {
		if errors.Is(err, sessions.ErrNotFound) {
			return nil // it was pruned meanwhile
		}
		return err
	}
	for _, a := range row.Message.Attachments {
		notes = append([]string{"file " + a.Name}, notes...)
	}
	return tx.Append(&sessions.Message{Session: row.Session, Turn: row.Turn, Role: sessions.User, Kind: sessions.KindDelivery, Active: true,
		At:      w.opt.Now(),
		Content: "[The platform did not take all of your message, and the people know it: " + strings.Join(notes, "; ") + "]"})
}

func (w *Worker) observe(row *sessions.OutboxRow, outcome string, took time.Duration) {
	if w.opt.Observer != nil {
		w.opt.Observer.Sent(row.Message.Address.Platform, row.Kind, outcome, took)
	}
}

func (w *Worker) gated(row *sessions.OutboxRow, wait time.Duration) {
	if w.opt.Observer != nil {
		w.opt.Observer.Gated(row.Message.Address.Platform, wait)
	}
}

// backoff returns the wait after the how-manieth attempt: 1, 2, 4 … 60 seconds.
func backoff(attempt int) time.Duration {
	d := backoffFirst
	for ; attempt > 1 && d < backoffMax; attempt-- {
		d *= 2
	}
	return min(d, backoffMax)
}

// text renders a short line of Herald's own for the platform of an address.
func (w *Worker) text(at platforms.Address, markdown string) platforms.Text {
	if adapter, ok := w.opt.Adapters.Adapter(at.AccountOf()); ok {
		if chunks := format.Render(markdown, adapter.Traits().Text); len(chunks) > 0 {
			return chunks[0]
		}
	}
	return platforms.Text{Body: markdown, Plain: markdown, Markdown: markdown}
}
