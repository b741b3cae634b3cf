package turn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"herald/gateway/agent"
	"herald/gateway/model"
	"herald/gateway/turn/show"
	"herald/locales"
	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
)

// finish commits the answer: transcript row, outbox rows, the turn's end and its inbox rows, together.
func (run *Run) finish(outcome agent.Outcome) {
	row := run.assistantRow(outcome.Response)
	run.view.EndStream()
	run.view.EndBubble()
	rows := []*sessions.Message{row}
	var out []*sessions.OutboxRow
	over := run.handOver(End{State: sessions.TurnDone, Text: row.Content, Exhausted: outcome.Exhausted || outcome.Looped != ""})
	if over == nil {
		var undelivered *sessions.Message
		out, undelivered = run.finalRows(mediaWait, run.answer(outcome, row))
		if undelivered != nil {
			rows = append(rows, undelivered)
		}
		if len(out) == 0 {
			out = append(out, run.row(sessions.OutFinal, run.say().T("turn.silent")))
		}
	}
	err := run.conclude(sessions.TurnDone, "", rows, out, over)
	if err != nil {
		run.fail(err)
		return
	}
	if over != nil {
		return // nobody talks on in its session
	}
	kept := outcome.Rows
	for _, row := range rows {
		kept = append(kept, *row)
	}
	run.r.cache.put(&cached{id: run.session.ID, rows: kept, total: run.session.Messages,
		lastPrompt: outcome.LastPrompt, lastRows: outcome.LastRows})
	if run.display.Cleanup {
		run.view.Clean(run.ctx)
	}
}

// conclude is the last transaction of a turn. over, if set, is what Background does in it.
func (run *Run) conclude(state sessions.TurnState, reason string, rows []*sessions.Message, out []*sessions.OutboxRow,
	over func(tx sessions.Tx) ([]*sessions.OutboxRow, error)) error {
	s := run.r.s
	run.mu.Lock()
	used := run.used
	run.mu.Unlock()
	ended := false
	var edits []*sessions.OutboxRow
	s.Outbox.Claim(out)
	err := run.update(sessions.EdgeTurnFinish, func(tx sessions.Tx) error {
		if err := run.appendRows(tx, rows); err != nil {
			return err
		}
		if len(out) > 0 {
			if err := tx.PutOutbox(out...); err != nil {
				return err
			}
		}
		ended = true
		var err error
		if edits, err = run.close(tx, state, reason, used, run.claimed); err != nil || over == nil {
			return err
		}
		more, err := over(tx)
		edits = append(edits, more...)
		return err
	})
	if err != nil {
		if ended {
			run.over.Store(false)
		}
		s.Outbox.Release(out)
		return fmt.Errorf("write the end of the turn down: %w", err)
	}
	run.state = state
	s.Outbox.Take(append(edits, out...)...)
	run.r.ended(run, state)
	return nil
}

// close ends the turn's rows inside a transaction. It returns rows to queue after the commit.
func (run *Run) close(tx sessions.Tx, state sessions.TurnState, reason string, used sessions.Usage,
	claimed []sessions.InboxID) ([]*sessions.OutboxRow, error) {
	run.over.Store(true)
	if err := tx.SetInbox(sessions.InboxDone, run.turn.ID, string(state), claimed...); err != nil {
		return nil, err
	}
	if err := run.asks.DropQuestions(tx); err != nil {
		return nil, err
	}
	edits, err := run.asks.VoidApprovals(tx)
	if err != nil {
		return nil, err
	}
	if used != (sessions.Usage{}) {
		if err := tx.AddUsage(run.session.ID, used); err != nil {
			return nil, err
		}
	}
	return edits, tx.SetTurn(run.turn.ID, state, reason, run.r.s.Now())
}

// fail ends the turn after an error, visibly. Closing and stopping are not failures.
func (run *Run) fail(err error) {
	s := run.r.s
	run.view.EndStream()
	run.view.EndBubble()
	switch {
	case errors.Is(err, errClosing), run.r.closed.Load():
		run.state = sessions.TurnRunning // the next process goes on
		return
	case errors.Is(err, errStopped), errors.Is(err, errAbandoned):
		run.state = sessions.TurnStopped // Stop has written everything down
		return
	}
	text, reason := "", err.Error()
	var me *model.Error
	switch {
	case errors.Is(err, errIdle):
		text = "⚠️ " + run.say().T("turn.timeout", locales.Dur("time", run.set.IdleLimit))
	case errors.As(err, &me):
		text = failed(run.say(), me.Kind, me.RetryAfter)
	default:
		text = failed(run.say(), "", 0)
	}
	s.Log.Error().Int64("turn", int64(run.turn.ID)).Str("session", string(run.session.ID)).Err(err).Msg("a turn failed")
	out := []*sessions.OutboxRow{run.row(sessions.OutFinal, text)}
	over := run.handOver(run.failure(err, s.Redact(reason)))
	if over != nil {
		out = nil
	}
	wait := 100 * time.Millisecond
	for {
		cerr := run.conclude(sessions.TurnFailed, s.Redact(reason), nil, out, over)
		if cerr == nil {
			return
		}
		if errors.Is(cerr, errAbandoned) || errors.Is(cerr, sessions.ErrClosed) || run.r.closed.Load() {
			run.state = sessions.TurnStopped
			return
		}
		// The store is in trouble: nothing is lost, the turn is still running on disk. Keep trying, so
		// that the person hears of it as soon as there is room.
		s.Log.Error().Int64("turn", int64(run.turn.ID)).Err(cerr).Msg("the end of a turn can't be written down; trying again")
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-run.ctx.Done():
			timer.Stop()
			if errors.Is(context.Cause(run.ctx), errIdle) {
				run.ctx, run.cancel = context.WithCancelCause(context.Background())
				continue
			}
			run.state = sessions.TurnRunning
			return
		}
		wait = min(2*wait, 5*time.Second)
	}
}

// Stop ends the turn because a person asked for it, inside the transaction of their command, and returns the
// rows to queue after the commit. What is visible of the answer stays, without its cursor; corrections that
// were not taken in yet go with the turn. stopped is false when it had ended already. Call Abandon after the
// commit, or Revive when that failed.
func (run *Run) Stop(tx sessions.Tx, state sessions.TurnState, reason string) (rows []*sessions.OutboxRow, stopped bool, err error) {
	if run.over.Load() {
		return nil, false, nil
	}
	items, err := tx.InboxOf(run.turn.ID)
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if err != nil {
			run.Revive()
		}
	}()
	partial := run.view.Partial()
	run.view.Close()
	run.mu.Lock()
	used := run.used
	run.closed = true
	notes := run.notes
	run.notes, run.held = nil, notes
	run.mu.Unlock()
	for _, n := range notes {
		if err := tx.SetInbox(sessions.InboxDropped, 0, reason, n.item.ID); err != nil {
			return nil, false, err
		}
	}
	over := run.handOver(End{State: state, Reason: reason})
	if over == nil && strings.TrimSpace(partial) != "" {
		row := &sessions.Message{Session: run.session.ID, Turn: run.turn.ID, Role: sessions.Assistant, Kind: sessions.KindPartial,
			Content: partial, Active: true, At: run.r.s.Now()}
		if err := tx.Append(row); err != nil {
			return nil, false, err
		}
		var undelivered *sessions.Message
		rows, undelivered = run.finalRows(mediaWaitInside, partial+"\n\n_"+run.say().T("turn.stopped")+"_")
		if err := appendOne(tx, undelivered); err != nil {
			return nil, false, err
		}
		if err := tx.PutOutbox(rows...); err != nil {
			return nil, false, err
		}
	}
	edits, err := run.close(tx, state, reason, used, idsOf(items))
	if err != nil || over == nil {
		return append(edits, rows...), true, err
	}
	rows, err = over(tx)
	return append(edits, rows...), true, err
}

// Revive undoes what Stop has done in memory, because its transaction failed.
func (run *Run) Revive() {
	run.over.Store(false)
	run.mu.Lock()
	defer run.mu.Unlock()
	run.closed = false
	run.view.Open()
	run.notes, run.held = append(run.held, run.notes...), nil
}

// Abandon cancels what still runs of a turn that Stop has ended. It never waits.
func (run *Run) Abandon() {
	run.view.EndStream()
	run.view.EndBubble()
	run.cancel(errStopped)
	run.r.cache.drop(run.session.ID)
	run.r.ended(run, sessions.TurnStopped)
}

// How long the files of an answer may take to be fetched from a sandbox that is not on this machine: at the end of a
// turn, and inside a transaction, where others wait.
const (
	mediaWait       = time.Minute
	mediaWaitInside = 3 * time.Second
)

// finalRows makes the outbox rows of an answer: a row per chunk, then its files, then a line for each file that may
// not be sent. undelivered tells the model of these, nil for none; append it behind the answer.
// wait bounds how long files are fetched from elsewhere.
func (run *Run) finalRows(wait time.Duration, text string) (out []*sessions.OutboxRow, undelivered *sessions.Message) {
	s := run.r.s
	at := run.address()
	traits := platforms.Traits{Text: platforms.TextTraits{Dialect: platforms.Plain}, Attachments: true}
	if adapter, ok := s.Adapters.Adapter(at.AccountOf()); ok {
		traits = adapter.Traits()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(run.ctx), wait)
	defer cancel()
	text, files, refused := run.set.Media.Attach(ctx, run.session.Key, show.Clean(text), at.Platform, traits, s.Now())
	for i, chunk := range format.Render(s.Redact(text), traits.Text) {
		row := &sessions.OutboxRow{Kind: sessions.OutFinal, Turn: run.turn.ID, Session: run.session.ID,
			Message: platforms.Outgoing{Address: at, Text: chunk, ReplyTo: run.view.ReplyTo(i)}}
		out = append(out, row)
	}
	run.spread(out)
	for _, a := range files {
		out = append(out, &sessions.OutboxRow{Kind: sessions.OutSend, Turn: run.turn.ID, Session: run.session.ID,
			Message: platforms.Outgoing{Address: at, Attachments: []platforms.Attachment{a}}})
	}
	for _, r := range refused {
		out = append(out, run.row(sessions.OutNotice, fileNotice(run.say(), "attachment.upload_failed", r.Name, r.Reason)))
	}
	if len(refused) > 0 {
		undelivered = &sessions.Message{Session: run.session.ID, Turn: run.turn.ID, Role: sessions.User, Kind: sessions.KindDelivery,
			Content: s.Redact(show.Undelivered(refused)), Active: true, At: s.Now()}
	}
	return out, undelivered
}

// appendOne adds a row that may be nil and is not in the rows of the running turn: the next turn reads it.
func appendOne(tx sessions.Tx, row *sessions.Message) error {
	if row == nil {
		return nil
	}
	return tx.Append(row)
}

// row makes an outbox row with a line of Herald's own.
func (run *Run) row(kind sessions.OutboxKind, text string) *sessions.OutboxRow {
	at := run.address()
	traits := platforms.TextTraits{Dialect: platforms.Plain}
	if adapter, ok := run.r.s.Adapters.Adapter(at.AccountOf()); ok {
		traits = adapter.Traits().Text
	}
	row := &sessions.OutboxRow{Kind: kind, Turn: run.turn.ID, Session: run.session.ID, Message: platforms.Outgoing{Address: at}}
	if chunks := format.Render(text, traits); len(chunks) > 0 {
		row.Message.Text = chunks[0]
	}
	return row
}

func (run *Run) address() platforms.Address {
	run.mu.Lock()
	defer run.mu.Unlock()
	return run.turn.Address
}
