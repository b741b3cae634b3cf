package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"herald/platforms"
	"herald/sessions"
)

// chatLog is the platforms.Log of a store.
type chatLog struct{ store *Store }

// ChatLog returns the log of visible messages for platforms whose server is Herald itself.
func (s *Store) ChatLog() platforms.Log { return chatLog{s} }

// Append adds an entry once for each nonce of a chat.
func (l chatLog) Append(ctx context.Context, chat platforms.ChatID, nonce string, payload []byte) (seq int64, err error) {
	err = l.update(ctx, func(c *conn) error {
		id, added, err := c.exec("INSERT INTO log (chat, nonce, payload) VALUES (?, ?, ?) ON CONFLICT (chat, nonce) WHERE nonce <> '' DO NOTHING",
			string(chat), nonce, blob(payload))
		if err != nil || added == 1 {
			seq = id
			return err
		}
		seq, err = c.int("SELECT seq FROM log WHERE chat = ? AND nonce = ? AND nonce <> ''", string(chat), nonce)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("log of chat %s: %w", chat, err)
	}
	return seq, nil
}

// Update replaces an entry's payload.
func (l chatLog) Update(ctx context.Context, chat platforms.ChatID, seq int64, payload []byte) error {
	err := l.update(ctx, func(c *conn) error {
		_, changed, err := c.exec("UPDATE log SET payload = ? WHERE seq = ? AND chat = ?", blob(payload), seq, string(chat))
		if err == nil && changed == 0 {
			return platforms.ErrNoEntry
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("entry %d of chat %s: %w", seq, chat, err)
	}
	return nil
}

// Remove deletes an entry.
func (l chatLog) Remove(ctx context.Context, chat platforms.ChatID, seq int64) error {
	err := l.update(ctx, func(c *conn) error {
		_, _, err := c.exec("DELETE FROM log WHERE seq = ? AND chat = ?", seq, string(chat))
		return err
	})
	if err != nil {
		return fmt.Errorf("entry %d of chat %s: %w", seq, chat, err)
	}
	return nil
}

// List returns the newest entries below a number, oldest first; limit 0 or less returns none.
func (l chatLog) List(ctx context.Context, chat platforms.ChatID, before int64, limit int) ([]platforms.LogEntry, error) {
	const sql = "SELECT chat, seq, payload FROM log WHERE chat = ? AND (? <= 0 OR seq < ?) ORDER BY seq DESC LIMIT ?"
	list, err := l.entries(ctx, sql, string(chat), before, before, int64(max(0, limit)))
	if err != nil {
		return nil, fmt.Errorf("log of chat %s: %w", chat, err)
	}
	slices.Reverse(list)
	return list, nil
}

// Chats returns each chat's newest entry, newest first; limit 0 or less returns none.
func (l chatLog) Chats(ctx context.Context, limit int) ([]platforms.LogEntry, error) {
	const sql = `SELECT l.chat, l.seq, l.payload FROM (SELECT max(seq) AS newest FROM log GROUP BY chat) JOIN log l ON l.seq = newest
		ORDER BY l.seq DESC LIMIT ?`
	list, err := l.entries(ctx, sql, int64(max(0, limit)))
	if err != nil {
		return nil, fmt.Errorf("chats of the log: %w", err)
	}
	return list, nil
}

func (l chatLog) update(ctx context.Context, fn func(*conn) error) error {
	return l.store.Update(ctx, sessions.EdgeLog, func(t sessions.Tx) error { return fn(t.(*tx).c) })
}

func (l chatLog) entries(ctx context.Context, sql string, args ...driver.Value) (list []platforms.LogEntry, err error) {
	err = l.store.View(ctx, func(v sessions.View) error {
		return v.(*view).c.query(ctx, sql, func(r row) error {
			list = append(list, platforms.LogEntry{Chat: platforms.ChatID(r.text(0)), Seq: r.int(1), Payload: r.bytes(2)})
			return nil
		}, args...)
	})
	return list, err
}

// blob makes nil bytes an empty value: nil would be NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
