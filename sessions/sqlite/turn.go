package sqlite

import (
	"database/sql/driver"
	"fmt"
	"time"

	"herald/platforms"
	"herald/sessions"
)

const sqlTurn = "SELECT id, session, key, state, attempts, address, reply_to, reason, began, ended FROM turns "

func (v *view) turns(where string, args ...driver.Value) (list []sessions.Turn, err error) {
	err = v.c.query(v.ctx, sqlTurn+where, func(r row) error {
		t := sessions.Turn{ID: sessions.TurnID(r.int(0)), Session: sessions.ID(r.text(1)), Key: sessions.Key(r.text(2)),
			State: sessions.TurnState(r.text(3)), Attempts: int(r.int(4)), ReplyTo: platforms.MessageID(r.text(6)),
			Reason: r.text(7), Began: r.time(8), Ended: r.time(9)}
		if err := decode(r.text(5), "turns.address", &t.Address); err != nil {
			return fmt.Errorf("turn %d: %w", t.ID, err)
		}
		list = append(list, t)
		return nil
	}, args...)
	return list, err
}

// Turn returns one turn.
func (v *view) Turn(id sessions.TurnID) (sessions.Turn, error) {
	list, err := v.turns("WHERE id = ?", int64(id))
	if err == nil && len(list) == 0 {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return sessions.Turn{}, fmt.Errorf("turn %d: %w", id, err)
	}
	return list[0], nil
}

// TurnsRunning returns the running turns, oldest first.
func (v *view) TurnsRunning() ([]sessions.Turn, error) {
	list, err := v.turns("WHERE state = 'running' ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("running turns: %w", err)
	}
	return list, nil
}

// Calls returns a turn's tool calls in the order they started.
func (v *view) Calls(turn sessions.TurnID) (list []sessions.CallRow, err error) {
	err = v.c.query(v.ctx, "SELECT turn, call, name, state, started, ended FROM calls WHERE turn = ? ORDER BY id", func(r row) error {
		list = append(list, sessions.CallRow{Turn: sessions.TurnID(r.int(0)), Call: r.text(1), Name: r.text(2),
			State: sessions.CallState(r.text(3)), Started: r.time(4), Ended: r.time(5)})
		return nil
	}, int64(turn))
	if err != nil {
		return nil, fmt.Errorf("calls of turn %d: %w", turn, err)
	}
	return list, nil
}

// BeginTurn adds a running turn, and fills in ID, State, Attempts and, when zero, Began.
func (t *tx) BeginTurn(turn *sessions.Turn) error {
	address, err := encode(turn.Address)
	if err != nil {
		return fmt.Errorf("begin turn of %s: %w", turn.Key, err)
	}
	if turn.Began.IsZero() {
		turn.Began = t.store.opts.Clock().UTC()
	}
	id, _, err := t.c.exec(`INSERT INTO turns (session, key, state, attempts, address, reply_to, reason, began, ended)
		VALUES (?, ?, 'running', 1, ?, ?, ?, ?, 0)`,
		string(turn.Session), string(turn.Key), address, string(turn.ReplyTo), turn.Reason, stamp(turn.Began))
	if err != nil {
		return fmt.Errorf("begin turn of %s: %w", turn.Key, err)
	}
	turn.ID, turn.State, turn.Attempts, turn.Ended = sessions.TurnID(id), sessions.TurnRunning, 1, time.Time{}
	return nil
}

// SetTurn stores state and reason; now becomes the end of a turn whose state is final.
func (t *tx) SetTurn(id sessions.TurnID, state sessions.TurnState, reason string, now time.Time) error {
	var ended int64
	if state != sessions.TurnRunning {
		ended = stamp(now)
	}
	_, changed, err := t.c.exec("UPDATE turns SET state = ?, reason = ?, ended = ? WHERE id = ?", string(state), reason, ended, int64(id))
	return found(err, changed, "turn", id)
}

// RetryTurn adds one attempt.
func (t *tx) RetryTurn(id sessions.TurnID) (int, error) {
	_, changed, err := t.c.exec("UPDATE turns SET attempts = attempts + 1 WHERE id = ?", int64(id))
	if err := found(err, changed, "turn", id); err != nil {
		return 0, err
	}
	n, err := t.c.int("SELECT attempts FROM turns WHERE id = ?", int64(id))
	if err != nil {
		return 0, fmt.Errorf("turn %d: %w", id, err)
	}
	return int(n), nil
}

// RouteTurn replaces a turn's address and reply target.
func (t *tx) RouteTurn(id sessions.TurnID, at platforms.Address, replyTo platforms.MessageID) error {
	address, err := encode(at)
	if err != nil {
		return fmt.Errorf("turn %d: %w", id, err)
	}
	_, changed, err := t.c.exec("UPDATE turns SET address = ?, reply_to = ? WHERE id = ?", address, string(replyTo), int64(id))
	return found(err, changed, "turn", id)
}

// StartCall journals that a call is about to run. ErrNotFound when there is no such turn.
func (t *tx) StartCall(turn sessions.TurnID, call, name string, now time.Time) error {
	_, changed, err := t.c.exec(`INSERT INTO calls (turn, call, name, state, started, ended)
		SELECT id, ?, ?, 'started', ?, 0 FROM turns WHERE id = ?`, call, name, stamp(now), int64(turn))
	if unique(err) {
		return fmt.Errorf("call %q of turn %d: %w: it was started before", call, turn, sessions.ErrConflict)
	}
	return found(err, changed, "call "+call+" of turn", turn)
}

// FinishCall journals that a call's result is in the transcript. A call that is finished keeps its time.
func (t *tx) FinishCall(turn sessions.TurnID, call string, now time.Time) error {
	_, changed, err := t.c.exec(`UPDATE calls SET state = 'finished', ended = iif(state = 'finished', ended, ?) WHERE turn = ? AND call = ?`,
		stamp(now), int64(turn), call)
	return found(err, changed, "call "+call+" of turn", turn)
}
