package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"herald/gateway/agent"
	"herald/gateway/model"
	"herald/gateway/turn/show"
	"herald/locales"
	"herald/platforms"
	"herald/sessions"
	"herald/tools"
)

// Delta implements agent.Turn.
func (run *Run) Delta(d model.Delta) {
	run.mu.Lock()
	run.alive = run.r.s.Now()
	run.mu.Unlock()
	run.view.Delta(d)
}

// Restart implements agent.Turn.
func (run *Run) Restart() { run.view.Restart() }

// observe notes a sign of life from a tool, and shows it.
func (run *Run) observe(e tools.Event) {
	run.mu.Lock()
	run.alive = e.At
	if e.Phase == tools.PhaseStarted && !e.Spec.Hidden && !run.closed {
		run.doing = e.Call.Name
	}
	run.mu.Unlock()
	run.view.Observe(e)
}

// Generating implements agent.Turn.
func (run *Run) Generating(cancel context.CancelCauseFunc) {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.cancelCall = cancel
	run.alive = run.r.s.Now()
	if cancel != nil {
		run.phase, run.doing = PhaseGenerating, ""
	}
}

// Answer implements agent.Turn: an answer with tool calls enters the transcript, and what the model said
// before them goes out, completing the preview if one is visible.
func (run *Run) Answer(ctx context.Context, r model.Response) (sessions.Message, error) {
	row := run.assistantRow(r)
	visible := run.view.EndStream()
	var out []*sessions.OutboxRow
	var undelivered *sessions.Message
	if text := strings.TrimSpace(row.Content); text != "" && (run.display.Interim || visible) {
		out, undelivered = run.finalRows(mediaWait, text)
		run.view.EndBubble() // the next calls are shown below these words
	}
	err := run.update(sessions.EdgeTurnAnswer, func(tx sessions.Tx) error {
		if len(out) > 0 {
			if err := tx.PutOutbox(out...); err != nil {
				return err
			}
		}
		if err := run.appendRows(tx, []*sessions.Message{row}); err != nil {
			return err
		}
		return appendOne(tx, undelivered)
	})
	if err != nil {
		return sessions.Message{}, fmt.Errorf("write the answer down: %w", err)
	}
	run.r.s.Outbox.Take(out...)
	run.setPhase(PhaseTool, r.ToolCalls[0].Name)
	return *row, nil
}

func (run *Run) assistantRow(r model.Response) *sessions.Message {
	text, thought := show.StripThinking(r.Text)
	row := &sessions.Message{Session: run.session.ID, Turn: run.turn.ID, Role: sessions.Assistant, Content: text,
		Reasoning: strings.TrimSpace(r.Reasoning + thought), Replay: r.Replay, At: run.r.s.Now(), Tokens: r.Usage.Output, Active: true}
	for _, c := range r.ToolCalls {
		row.ToolCalls = append(row.ToolCalls, sessions.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	return row
}

// Results implements agent.Turn.
func (run *Run) Results(answer sessions.Message) []sessions.Message {
	run.mu.Lock()
	defer run.mu.Unlock()
	rows := make([]sessions.Message, 0, len(answer.ToolCalls))
	for _, c := range answer.ToolCalls {
		if row, ok := run.results[c.ID]; ok {
			rows = append(rows, row)
			delete(run.results, c.ID)
		}
	}
	return rows
}

// Absorb implements agent.Turn: what people said meanwhile becomes part of this turn. Partial text that is
// visible already is kept before a correction.
func (run *Run) Absorb(ctx context.Context) ([]sessions.Message, error) {
	run.mu.Lock()
	notes := run.notes
	run.notes, run.noticed = nil, nil
	run.mu.Unlock()
	if len(notes) == 0 {
		return nil, nil
	}
	partial := ""
	if slices.ContainsFunc(notes, func(n note) bool { return n.mode == Interrupt }) {
		partial = run.view.Partial()
	}
	var rows []*sessions.Message
	var out []*sessions.OutboxRow
	var undelivered *sessions.Message
	if strings.TrimSpace(partial) != "" {
		rows = append(rows, &sessions.Message{Role: sessions.Assistant, Kind: sessions.KindPartial, Content: partial, Active: true,
			At: run.r.s.Now()})
		out, undelivered = run.finalRows(mediaWait, partial+" …")
	}
	items := make([]sessions.InboxItem, len(notes))
	for i, n := range notes {
		items[i] = n.item
		kind := sessions.KindPlain
		if n.mode == Steer {
			kind = sessions.KindSteer
		}
		rows = append(rows, run.userRow(n.item, kind))
	}
	newest := items[len(items)-1].Event
	err := run.update(sessions.EdgeTurnAbsorb, func(tx sessions.Tx) error {
		if err := tx.SetInbox(sessions.InboxClaimed, run.turn.ID, "", idsOf(items)...); err != nil {
			return err
		}
		if err := tx.RouteTurn(run.turn.ID, newest.Address, messageID(newest)); err != nil {
			return err
		}
		if len(out) > 0 {
			if err := tx.PutOutbox(out...); err != nil {
				return err
			}
		}
		if err := run.appendRows(tx, rows); err != nil {
			return err
		}
		return appendOne(tx, undelivered)
	})
	if err != nil {
		run.mu.Lock()
		run.notes = append(notes, run.notes...)
		run.mu.Unlock()
		return nil, fmt.Errorf("take in what was said meanwhile: %w", err)
	}
	run.claimed = append(run.claimed, idsOf(items)...)
	run.r.s.Outbox.Take(out...)
	run.view.EndStream()
	run.mu.Lock()
	run.turn.Address, run.turn.ReplyTo = newest.Address, messageID(newest)
	run.mu.Unlock()
	run.view.Route(newest.Address, messageID(newest))
	result := make([]sessions.Message, len(rows))
	for i, row := range rows {
		result[i] = *row
	}
	return result, nil
}

// Compact implements agent.Turn.
func (run *Run) Compact(ctx context.Context, upTo sessions.RowID, keep []sessions.RowID, summary string) ([]sessions.Message, error) {
	if run.r.s.Reminder != nil {
		summary = strings.TrimSpace(summary + "\n\n" + run.r.s.Reminder(ctx, run.session.ID))
	}
	row := &sessions.Message{Session: run.session.ID, Turn: run.turn.ID, Role: sessions.User, Kind: sessions.KindSummary,
		Content: summary, Active: true, At: run.r.s.Now()}
	var rows []sessions.Message
	before := 0
	err := run.update(sessions.EdgeTurnCompact, func(tx sessions.Tx) (err error) {
		if rows, err = tx.Transcript(run.session.ID, false, 0, 0); err != nil {
			return err
		}
		before = agent.Estimate(rows)
		if err = tx.Compact(run.session.ID, upTo, keep, row); err != nil {
			return err
		}
		rows, err = tx.Transcript(run.session.ID, false, 0, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("compact the conversation: %w", err)
	}
	run.session.Messages++
	if run.r.s.Compacted != nil {
		run.r.s.Compacted(run.session.ID)
	}
	run.r.s.Log.Info().Str("session", string(run.session.ID)).Int("rows", len(rows)).Msg("the conversation was compacted")
	if run.set.CompactNotices {
		run.notice("🗜 " + run.say().T("turn.compacted", locales.Int("before", before), locales.Int("after", agent.Estimate(rows))))
	}
	return rows, nil
}

// Used implements agent.Turn.
func (run *Run) Used(u model.Usage, window int) {
	run.mu.Lock()
	run.used.Calls++
	run.used.Input += u.Input
	run.used.Output += u.Output
	run.used.CacheRead += u.CacheRead
	run.used.CacheWrite += u.CacheWrite
	run.used.Reasoning += u.Reasoning
	run.used.LastPrompt, run.used.LastContext = u.Input, int64(window)
	run.mu.Unlock()
	if run.r.s.Metrics != nil {
		run.r.s.Metrics.ModelUsed(run.model.Info(), u)
	}
}

// Journal writes tool calls down for the turns they belong to. It is the bus's journal: calls outside a
// turn (commands, the control socket) are not journalled.
type Journal struct{ runs *Runs }

// NewJournal returns the journal of the turns that run.
func NewJournal(runs *Runs) *Journal { return &Journal{runs: runs} }

// Started commits that a call is about to run.
func (j *Journal) Started(ctx context.Context, call tools.Call, spec tools.Spec) error {
	run, ok := j.runs.Get(sessions.TurnID(call.Caller.Turn))
	if call.Caller.Turn == 0 {
		return nil
	}
	if !ok {
		return errAbandoned
	}
	run.setPhase(PhaseTool, call.Name)
	run.mu.Lock()
	run.begun[string(call.ID)] = !spec.ReadOnly && !spec.Resumable
	run.mu.Unlock()
	again := run.resumed && (spec.ReadOnly || spec.Resumable)
	return run.update(sessions.EdgeToolStart, func(tx sessions.Tx) error {
		if again {
			rows, err := tx.Calls(run.turn.ID)
			if err != nil {
				return err
			}
			for _, row := range rows {
				if row.Call == string(call.ID) {
					return nil // it had begun before the crash and may simply run again
				}
			}
		}
		return tx.StartCall(run.turn.ID, string(call.ID), call.Name, run.r.s.Now())
	})
}

// Finished commits a call's result as a transcript row. A call that never started has a row only.
func (j *Journal) Finished(ctx context.Context, call tools.Call, result tools.Result) error {
	if call.Caller.Turn == 0 {
		return nil
	}
	run, ok := j.runs.Get(sessions.TurnID(call.Caller.Turn))
	if !ok {
		return errAbandoned
	}
	if run.r.closed.Load() && (result.Exit == tools.ExitCancelled || result.Exit == "") {
		run.mu.Lock()
		effect := run.begun[string(call.ID)]
		run.mu.Unlock()
		if !effect {
			return nil // the daemon stops, and the next process may simply run the call
		}
	}
	now := run.r.s.Now()
	row := &sessions.Message{Role: sessions.Tool, ToolCallID: string(call.ID), ToolName: call.Name, Content: result.Content,
		Active: true, At: now}
	for _, m := range result.Media {
		row.Attachments = append(row.Attachments, platforms.Attachment{Kind: platforms.Image, MIME: m.MIME, Path: m.Path})
	}
	err := run.update(sessions.EdgeToolFinish, func(tx sessions.Tx) error {
		if err := tx.FinishCall(run.turn.ID, string(call.ID), now); err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return err
		}
		row.Session, row.Turn = run.session.ID, run.turn.ID
		return tx.Append(row)
	})
	if err != nil {
		return err
	}
	run.mu.Lock()
	defer run.mu.Unlock()
	run.session.Messages++
	run.used.ToolCalls++
	run.results[string(call.ID)] = *row
	run.alive = now
	return nil
}
