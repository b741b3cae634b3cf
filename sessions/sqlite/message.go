package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"herald/platforms"
	"herald/sessions"
)

const messageColumns = `m.id, m.session, m.turn, m.role, m.kind, m.content, m.attachments, m.tool_calls, m.tool_call_id, m.tool_name,
	m.reasoning, m.replay, m.sender, m.platform_id, m.at, m.tokens, m.active, m.compacted`

const sqlMessage = "SELECT " + messageColumns + " FROM messages m "

func scanMessage(r row) (sessions.Message, error) {
	m := sessions.Message{
		ID: sessions.RowID(r.int(0)), Session: sessions.ID(r.text(1)), Turn: sessions.TurnID(r.int(2)),
		Role: sessions.Role(r.text(3)), Kind: sessions.Kind(r.text(4)), Content: r.text(5),
		ToolCallID: r.text(8), ToolName: r.text(9), Reasoning: r.text(10), Sender: r.text(12),
		Platform: platforms.MessageID(r.text(13)), At: r.time(14), Tokens: r.int(15), Active: r.bool(16), Compacted: r.bool(17),
	}
	if replay := r.text(11); replay != "" {
		m.Replay = json.RawMessage(replay)
	}
	err := errors.Join(decode(r.text(6), "messages.attachments", &m.Attachments), decode(r.text(7), "messages.tool_calls", &m.ToolCalls))
	if err != nil {
		return m, fmt.Errorf("row %d: %w", m.ID, err)
	}
	return m, nil
}

func (v *view) messages(where string, args ...driver.Value) (list []sessions.Message, err error) {
	err = v.c.query(v.ctx, sqlMessage+where, func(r row) error {
		m, err := scanMessage(r)
		list = append(list, m)
		return err
	}, args...)
	return list, err
}

// Transcript returns a session's rows in the order of the conversation, in which a summary stands where
// the rows it replaces end. after names a row of that order.
func (v *view) Transcript(id sessions.ID, all bool, after sessions.RowID, limit int) ([]sessions.Message, error) {
	if limit <= 0 {
		limit = -1
	}
	where := "WHERE m.session = ?1 AND m.active = 1"
	if all {
		where = "WHERE m.session = ?1"
	}
	args := []driver.Value{string(id), int64(limit)}
	if after > 0 {
		pos, err := v.position(id, after)
		if err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return nil, fmt.Errorf("transcript of %s: %w", id, err)
		}
		if err != nil {
			pos = int64(after)
		}
		where += " AND (m.pos > ?3 OR m.pos = ?3 AND m.id > ?4)"
		args = append(args, pos, int64(after))
	}
	list, err := v.messages(where+" ORDER BY m.pos, m.id LIMIT ?2", args...)
	if err != nil {
		return nil, fmt.Errorf("transcript of %s: %w", id, err)
	}
	return list, nil
}

// position returns the place of a row in its session.
func (v *view) position(id sessions.ID, rowID sessions.RowID) (int64, error) {
	pos, err := v.c.int("SELECT pos FROM messages WHERE id = ? AND session = ?", int64(rowID), string(id))
	if err == nil && pos == 0 {
		err = sessions.ErrNotFound
	}
	return pos, err
}

// Around returns a row with its neighbours. Around a row that compaction took out, it returns the
// conversation as it was before; undone rows never appear. ErrNotFound when the session has no such row.
func (v *view) Around(id sessions.ID, rowID sessions.RowID, before, after int) ([]sessions.Message, error) {
	fail := func(err error) ([]sessions.Message, error) {
		return nil, fmt.Errorf("row %d of session %s: %w", rowID, id, err)
	}
	pos, err := v.position(id, rowID)
	if err != nil {
		return fail(err)
	}
	compacted, err := v.c.int("SELECT compacted FROM messages WHERE id = ?", int64(rowID))
	if err != nil {
		return fail(err)
	}
	kept := "m.active = 1"
	if compacted != 0 {
		kept = "(m.active = 1 OR m.compacted = 1) AND m.kind <> 'summary'"
	}
	earlier, err := v.messages("WHERE m.session = ? AND "+kept+" AND (m.pos < ? OR m.pos = ? AND m.id < ?) ORDER BY m.pos DESC, m.id DESC LIMIT ?",
		string(id), pos, pos, int64(rowID), int64(max(0, before)))
	if err != nil {
		return fail(err)
	}
	slices.Reverse(earlier)
	rest, err := v.messages("WHERE m.session = ? AND "+kept+" AND (m.pos > ? OR m.pos = ? AND m.id >= ?) ORDER BY m.pos, m.id LIMIT ?",
		string(id), pos, pos, int64(rowID), int64(max(0, after)+1))
	if err != nil {
		return fail(err)
	}
	if len(rest) > 0 && rest[0].ID != rowID { // the row itself was undone
		rest = rest[:min(len(rest), max(0, after))]
	}
	return append(earlier, rest...), nil
}

// Append adds rows, active, and touches their sessions.
func (t *tx) Append(rows ...*sessions.Message) error {
	for _, m := range rows {
		if err := t.append(m, 0); err != nil {
			return fmt.Errorf("append to session %s: %w", m.Session, err)
		}
	}
	return nil
}

// append adds one row at a position, 0 for the end.
func (t *tx) append(m *sessions.Message, pos int64) error {
	attachments, err := encodeList(m.Attachments)
	if err != nil {
		return err
	}
	calls, err := encodeList(m.ToolCalls)
	if err != nil {
		return err
	}
	if m.At.IsZero() {
		m.At = t.store.opts.Clock().UTC()
	}
	_, changed, err := t.c.exec("UPDATE sessions SET messages = messages + 1, updated = max(updated, ?) WHERE id = ?", stamp(m.At), string(m.Session))
	if err != nil {
		return err
	}
	if changed == 0 {
		return sessions.ErrNotFound
	}
	id := t.w.nextMessage
	t.w.nextMessage++
	if pos == 0 {
		pos = id
	}
	if _, _, err := t.c.exec(`INSERT INTO messages (id, session, pos, turn, role, kind, content, attachments, tool_calls, tool_call_id, tool_name,
		reasoning, replay, sender, platform_id, at, tokens) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		id, string(m.Session), pos, int64(m.Turn), string(m.Role), string(m.Kind), m.Content, attachments, calls, m.ToolCallID, m.ToolName,
		m.Reasoning, string(m.Replay), m.Sender, string(m.Platform), stamp(m.At), m.Tokens); err != nil {
		return err
	}
	m.ID, m.Active, m.Compacted = sessions.RowID(id), true, false
	return nil
}

// Undo marks the newest n user turns inactive. A turn begins with the first plain row in the user role
// that it wrote; corrections and steers within it belong to it, what a job has brought meanwhile does not. Undo stops at a
// compaction's summary, which stands for turns that are no longer there.
func (t *tx) Undo(id sessions.ID, n int) ([]sessions.Message, error) {
	rows, err := t.Transcript(id, false, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("undo: %w", err)
	}
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].Kind == sessions.KindSummary {
			rows = rows[i+1:]
			break
		}
	}
	var starts []int
	turns := map[sessions.TurnID]bool{}
	for i, m := range rows {
		if m.Role != sessions.User || m.Kind != sessions.KindPlain || m.Turn != 0 && turns[m.Turn] {
			continue
		}
		turns[m.Turn] = true
		starts = append(starts, i)
	}
	if n <= 0 || len(starts) == 0 {
		return nil, nil
	}
	rows = slices.DeleteFunc(rows[starts[max(0, len(starts)-n)]:], func(m sessions.Message) bool {
		return m.Role == sessions.User && m.Kind == sessions.KindMirror
	})
	ids := make([]sessions.RowID, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
		rows[i].Active = false
	}
	list, err := idList(ids)
	if err != nil {
		return nil, fmt.Errorf("undo in session %s: %w", id, err)
	}
	if _, _, err := t.c.exec("UPDATE messages SET active = 0 WHERE id IN (SELECT value FROM json_each(?))", list); err != nil {
		return nil, fmt.Errorf("undo in session %s: %w", id, err)
	}
	return rows, nil
}

// Compact marks rows and puts the summary where they end. A nil summary only marks. Its Session, and Role
// and Kind where they are empty, are filled in. ErrNotFound when the session has no row upTo.
func (t *tx) Compact(id sessions.ID, upTo sessions.RowID, keep []sessions.RowID, summary *sessions.Message) error {
	fail := func(err error) error { return fmt.Errorf("compact session %s up to row %d: %w", id, upTo, err) }
	pos, err := t.position(id, upTo)
	if err != nil {
		return fail(err)
	}
	kept, err := idList(keep)
	if err != nil {
		return fail(err)
	}
	if _, _, err := t.c.exec(`UPDATE messages SET active = 0, compacted = 1 WHERE session = ? AND active = 1
		AND (pos < ? OR pos = ? AND id <= ?) AND id NOT IN (SELECT value FROM json_each(?))`,
		string(id), pos, pos, int64(upTo), kept); err != nil {
		return fail(err)
	}
	if summary == nil {
		return nil
	}
	summary.Session = id
	if summary.Role == "" {
		summary.Role = sessions.User
	}
	if summary.Kind == sessions.KindPlain {
		summary.Kind = sessions.KindSummary
	}
	if err := t.append(summary, pos); err != nil {
		return fail(err)
	}
	return nil
}
