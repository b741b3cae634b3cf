package sqlite

import (
	"crypto/rand"
	"database/sql/driver"
	"encoding/hex"
	"fmt"

	"herald/platforms"
	"herald/sessions"
)

const sqlOutbox = `SELECT id, lane, kind, state, turn, session, message, sent, attempts, not_before, error, created, updated FROM outbox `

func (v *view) outbox(where string, args ...driver.Value) (list []sessions.OutboxRow, err error) {
	err = v.c.query(v.ctx, sqlOutbox+where, func(r row) error {
		o := sessions.OutboxRow{ID: sessions.OutboxID(r.int(0)), Lane: r.text(1), Kind: sessions.OutboxKind(r.text(2)),
			State: sessions.OutboxState(r.text(3)), Turn: sessions.TurnID(r.int(4)), Session: sessions.ID(r.text(5)),
			Sent: platforms.MessageID(r.text(7)), Attempts: int(r.int(8)), NotBefore: r.time(9), Error: r.text(10),
			Created: r.time(11), Updated: r.time(12)}
		if err := decode(r.text(6), "outbox.message", &o.Message); err != nil {
			return fmt.Errorf("outbox row %d: %w", o.ID, err)
		}
		list = append(list, o)
		return nil
	}, args...)
	return list, err
}

// OutboxOpen returns the rows that are work to do, in id order.
func (v *view) OutboxOpen() ([]sessions.OutboxRow, error) {
	list, err := v.outbox("WHERE state IN ('pending', 'attempting') ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("open outbox rows: %w", err)
	}
	return list, nil
}

// OutboxOf returns the rows of a turn in id order.
func (v *view) OutboxOf(turn sessions.TurnID) ([]sessions.OutboxRow, error) {
	if turn == 0 {
		return nil, nil
	}
	list, err := v.outbox("WHERE turn = ? AND turn <> 0 ORDER BY id", int64(turn))
	if err != nil {
		return nil, fmt.Errorf("outbox rows of turn %d: %w", turn, err)
	}
	return list, nil
}

// OutboxRow returns one row.
func (v *view) OutboxRow(id sessions.OutboxID) (sessions.OutboxRow, error) {
	list, err := v.outbox("WHERE id = ?", int64(id))
	if err == nil && len(list) == 0 {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return sessions.OutboxRow{}, fmt.Errorf("outbox row %d: %w", id, err)
	}
	return list[0], nil
}

// PutOutbox adds rows and fills in ID, Created, Updated and what is empty of Lane, State and Nonce.
func (t *tx) PutOutbox(rows ...*sessions.OutboxRow) error {
	now := t.store.opts.Clock().UTC()
	for _, o := range rows {
		if o.Lane == "" {
			o.Lane = o.Message.Address.String()
		}
		if o.State == "" {
			o.State = sessions.OutPending
		}
		if o.Message.Nonce == "" {
			o.Message.Nonce = newNonce()
		}
		if o.Created.IsZero() {
			o.Created = now
		}
		o.Updated = now
		message, err := encode(o.Message)
		if err != nil {
			return fmt.Errorf("outbox row for %s: %w", o.Lane, err)
		}
		id, _, err := t.c.exec(`INSERT INTO outbox (lane, kind, state, turn, session, message, sent, attempts, not_before, error, created, updated)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			o.Lane, string(o.Kind), string(o.State), int64(o.Turn), string(o.Session), message, string(o.Sent), int64(o.Attempts),
			stamp(o.NotBefore), o.Error, stamp(o.Created), stamp(o.Updated))
		if err != nil {
			return fmt.Errorf("outbox row for %s: %w", o.Lane, err)
		}
		o.ID = sessions.OutboxID(id)
	}
	return nil
}

// SetOutbox stores what can change of a row; Updated becomes the store's time.
func (t *tx) SetOutbox(o sessions.OutboxRow) error {
	message, err := encode(o.Message)
	if err != nil {
		return fmt.Errorf("outbox row %d: %w", o.ID, err)
	}
	_, changed, err := t.c.exec(`UPDATE outbox SET state = ?, sent = ?, attempts = ?, not_before = ?, error = ?, message = ?, updated = ? WHERE id = ?`,
		string(o.State), string(o.Sent), int64(o.Attempts), stamp(o.NotBefore), o.Error, message, stamp(t.store.opts.Clock()), int64(o.ID))
	return found(err, changed, "outbox row", o.ID)
}

// newNonce returns 32 random hex digits.
func newNonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}
