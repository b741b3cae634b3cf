package sqlite

import (
	"database/sql/driver"
	"fmt"

	"herald/platforms"
	"herald/sessions"
)

const sqlInbox = "SELECT i.id, i.key, i.event, i.state, i.turn, i.reason, i.at FROM inbox i "

func (v *view) inbox(where string, args ...driver.Value) (list []sessions.InboxItem, err error) {
	err = v.c.query(v.ctx, sqlInbox+where, func(r row) error {
		it := sessions.InboxItem{ID: sessions.InboxID(r.int(0)), Key: sessions.Key(r.text(1)), State: sessions.InboxState(r.text(3)),
			Turn: sessions.TurnID(r.int(4)), Reason: r.text(5), At: r.time(6)}
		if err := decode(r.text(2), "inbox.event", &it.Event); err != nil {
			return fmt.Errorf("inbox row %d: %w", it.ID, err)
		}
		list = append(list, it)
		return nil
	}, args...)
	return list, err
}

// InboxItem returns one row.
func (v *view) InboxItem(id sessions.InboxID) (sessions.InboxItem, error) {
	list, err := v.inbox("WHERE i.id = ?", int64(id))
	if err == nil && len(list) == 0 {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return sessions.InboxItem{}, fmt.Errorf("inbox row %d: %w", id, err)
	}
	return list[0], nil
}

// InboxOpen returns the rows that are work to do.
func (v *view) InboxOpen() ([]sessions.InboxItem, error) {
	list, err := v.inbox(`WHERE i.state IN ('new', 'claimed') AND (i.state = 'new' OR EXISTS
		(SELECT 1 FROM turns t WHERE t.id = i.turn AND t.state = 'running')) ORDER BY i.id`)
	if err != nil {
		return nil, fmt.Errorf("open inbox rows: %w", err)
	}
	return list, nil
}

// InboxOf returns the rows of a turn.
func (v *view) InboxOf(turn sessions.TurnID) ([]sessions.InboxItem, error) {
	if turn == 0 {
		return nil, nil
	}
	list, err := v.inbox("WHERE i.turn = ? AND i.turn <> 0 ORDER BY i.id", int64(turn))
	if err != nil {
		return nil, fmt.Errorf("inbox rows of turn %d: %w", turn, err)
	}
	return list, nil
}

// PutInbox keeps an event once.
func (t *tx) PutInbox(item sessions.InboxItem) (sessions.InboxID, bool, error) {
	e := item.Event
	fail := func(err error) (sessions.InboxID, bool, error) {
		return 0, false, fmt.Errorf("inbox: event %q of %s: %w", e.ID, e.Address.AccountOf(), err)
	}
	if item.State == "" {
		item.State = sessions.InboxNew
	}
	if item.At.IsZero() {
		item.At = t.store.opts.Clock()
	}
	if item.State == sessions.InboxDropped {
		e = bare(e)
	}
	event, err := encode(e)
	if err != nil {
		return fail(err)
	}
	platform, account, eventID := string(e.Address.Platform), string(e.Address.Account), string(e.ID)
	id, added, err := t.c.exec(`INSERT INTO inbox (platform, account, event_id, key, event, state, turn, reason, at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (platform, account, event_id) DO NOTHING`,
		platform, account, eventID, string(item.Key), event, string(item.State), int64(item.Turn), item.Reason, stamp(item.At))
	if err != nil {
		return fail(err)
	}
	if added == 1 {
		return sessions.InboxID(id), false, nil
	}
	first, err := t.c.int("SELECT id FROM inbox WHERE platform = ? AND account = ? AND event_id = ?", platform, account, eventID)
	if err != nil {
		return fail(err)
	}
	return sessions.InboxID(first), true, nil
}

// SetInbox moves rows on. A row that becomes dropped loses its content. ErrNotFound when one is missing;
// then none has moved.
func (t *tx) SetInbox(state sessions.InboxState, turn sessions.TurnID, reason string, ids ...sessions.InboxID) error {
	for _, id := range ids {
		_, changed, err := t.c.exec("UPDATE inbox SET state = ?, turn = ?, reason = ? WHERE id = ?", string(state), int64(turn), reason, int64(id))
		if err := found(err, changed, "inbox row", id); err != nil {
			return err
		}
		if state != sessions.InboxDropped {
			continue
		}
		it, err := t.InboxItem(id)
		if err != nil {
			return err
		}
		event, err := encode(bare(it.Event))
		if err != nil {
			return fmt.Errorf("inbox row %d: %w", id, err)
		}
		if _, _, err := t.c.exec("UPDATE inbox SET event = ? WHERE id = ?", event, int64(id)); err != nil {
			return fmt.Errorf("inbox row %d: %w", id, err)
		}
	}
	return nil
}

// bare returns the ids of an event without anything that a person wrote or is called.
func bare(e platforms.Event) platforms.Event {
	return platforms.Event{
		ID: e.ID, Address: e.Address, ChatType: e.ChatType, Scope: e.Scope, ParentChat: e.ParentChat, At: e.At,
		Sender: platforms.User{ID: e.Sender.ID, Alt: e.Sender.Alt},
	}
}
