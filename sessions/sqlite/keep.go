package sqlite

import (
	"context"
	"fmt"
	"time"

	"herald/sessions"
)

// The defaults and bounds of Retention.
const (
	// DefaultFinished is how long finished inbox rows, turns and outbox rows are kept, and the least: an
	// event is known for seven days (P2).
	DefaultFinished = 7 * 24 * time.Hour
	// DefaultEnded is how long ended sessions are kept.
	DefaultEnded = 90 * 24 * time.Hour
	// keepUnknown is how long a message with an unknown outcome can still be sent again by hand.
	keepUnknown = 30 * 24 * time.Hour
	// pruneStep is how many rows one transaction deletes: it holds the writer for a few milliseconds.
	pruneStep = 200
)

// minVacuum is the share of free pages from which on Vacuum works.
const minVacuum = 0.25

// Retention says how long finished things are kept.
type Retention struct {
	// Finished is for inbox rows, turns with their calls, and outbox rows. Less than seven days, and 0,
	// count as seven days.
	Finished time.Duration
	// Ended is for ended sessions, from their last change on. 0 keeps them all.
	Ended time.Duration
}

// Pruned counts what Prune deleted.
type Pruned struct {
	Inbox, Turns, Calls, Outbox, Sessions, Messages int64
}

// Prune deletes what retention lets go: inbox rows that are done or dropped, turns that ended with their
// calls, outbox rows that were sent, failed or cancelled (unknown ones after 30 days at the earliest), and
// ended sessions. Sessions that continue each other go together or not at all: one that is current, or
// young, keeps its whole line. It works in small steps between which other work goes on; on an error what
// it deleted before stays deleted and is counted.
func (s *Store) Prune(ctx context.Context, r Retention) (p Pruned, err error) {
	now := s.opts.Clock()
	finished := stamp(now.Add(-max(r.Finished, DefaultFinished)))
	unknown := stamp(now.Add(-max(r.Finished, keepUnknown)))
	steps := []struct {
		count  *int64
		choose string
		args   []int64
		remove func(*tx, string) (int64, error)
	}{
		{&p.Outbox, `SELECT id FROM outbox WHERE state IN ('sent', 'failed', 'cancelled') AND updated < ? OR state = 'unknown' AND updated < ?`,
			[]int64{finished, unknown}, removeFrom("outbox")},
		{&p.Inbox, `SELECT id FROM inbox WHERE state IN ('done', 'dropped') AND at < ?`, []int64{finished}, removeFrom("inbox")},
		{&p.Turns, `SELECT id FROM turns WHERE state <> 'running' AND ended <> 0 AND ended < ?`, []int64{finished},
			func(t *tx, ids string) (int64, error) {
				_, calls, err := t.c.exec("DELETE FROM calls WHERE turn IN (SELECT value FROM json_each(?))", ids)
				if err != nil {
					return 0, err
				}
				n, err := removeFrom("turns")(t, ids)
				if err == nil {
					p.Calls += calls
				}
				return n, err
			}},
	}
	for _, step := range steps {
		ids, err := s.choose(ctx, step.choose, step.args...)
		if err != nil {
			return p, fmt.Errorf("prune: %w", err)
		}
		for len(ids) > 0 {
			some := ids[:min(pruneStep, len(ids))]
			ids = ids[len(some):]
			if err := s.removeStep(ctx, some, step.remove, step.count); err != nil {
				return p, fmt.Errorf("prune: %w", err)
			}
		}
	}
	if r.Ended > 0 {
		err = s.pruneSessions(ctx, stamp(now.Add(-r.Ended)), &p)
	}
	if err != nil {
		return p, fmt.Errorf("prune: %w", err)
	}
	return p, nil
}

// choose reads ids beside the work.
func (s *Store) choose(ctx context.Context, sql string, args ...int64) (ids []int64, err error) {
	err = s.View(ctx, func(v sessions.View) error {
		return v.(*view).c.query(ctx, sql, func(r row) error { ids = append(ids, r.int(0)); return nil }, intValues(args)...)
	})
	return ids, err
}

func (s *Store) removeStep(ctx context.Context, ids []int64, remove func(*tx, string) (int64, error), count *int64) error {
	list, err := idList(ids)
	if err != nil {
		return err
	}
	var n int64
	err = s.Update(ctx, sessions.EdgeKeep, func(t sessions.Tx) (err error) {
		n, err = remove(t.(*tx), list)
		return err
	})
	if err == nil {
		*count += n
	}
	return err
}

// removeFrom returns the deletion of rows by id, given as a JSON list. What was chosen can't have become
// work again in the meantime: final states are final.
func removeFrom(table string) func(*tx, string) (int64, error) {
	return func(t *tx, ids string) (int64, error) {
		_, n, err := t.c.exec("DELETE FROM "+table+" WHERE id IN (SELECT value FROM json_each(?))", ids)
		return n, err
	}
}

// sqlLine is the ids of all sessions that continue each other with one of them.
const sqlLine = `WITH RECURSIVE line (id) AS (
	SELECT ?1
	UNION SELECT s.id FROM line JOIN sessions s ON s.parent = line.id
	UNION SELECT s.parent FROM line JOIN sessions s ON s.id = line.id WHERE s.parent IS NOT NULL) `

// pruneSessions deletes lines of sessions that all ended before the cutoff.
func (s *Store) pruneSessions(ctx context.Context, cutoff int64, p *Pruned) error {
	var ended []string
	err := s.View(ctx, func(v sessions.View) error {
		return v.(*view).c.query(ctx, "SELECT id FROM sessions WHERE ended <> 0 AND updated < ? ORDER BY id", func(r row) error {
			ended = append(ended, r.text(0))
			return nil
		}, cutoff)
	})
	if err != nil {
		return err
	}
	for _, id := range ended {
		if err := s.pruneLine(ctx, id, cutoff, p); err != nil {
			return err
		}
	}
	return nil
}

// pruneLine deletes one session's line when all of it is old. The rows go in steps; the sessions go with
// the last one, so that a stop in between leaves sessions with fewer rows, never rows without a session.
func (s *Store) pruneLine(ctx context.Context, id string, cutoff int64, p *Pruned) error {
	for {
		more := false
		var done Pruned
		err := s.Update(ctx, sessions.EdgeKeep, func(st sessions.Tx) (err error) {
			more, done, err = st.(*tx).removeLine(id, cutoff)
			return err
		})
		if err != nil {
			return err
		}
		p.Sessions += done.Sessions
		p.Messages += done.Messages
		if !more {
			return nil
		}
	}
}

// removeLine deletes up to pruneStep rows of a line, and the line with the last of them. more is false
// when nothing is left to do. It decides again each time: somebody may have resumed the session.
func (t *tx) removeLine(id string, cutoff int64) (more bool, done Pruned, err error) {
	kept, err := t.c.int(sqlLine+`SELECT count(*) FROM line JOIN sessions s ON s.id = line.id
		WHERE s.ended = 0 OR s.updated >= ?2 OR EXISTS (SELECT 1 FROM routes r WHERE r.session = s.id)
		OR EXISTS (SELECT 1 FROM turns t WHERE t.session = s.id AND t.state = 'running')`, id, cutoff)
	if err != nil || kept > 0 {
		return false, done, err
	}
	var rows []int64
	err = t.c.query(t.ctx, sqlLine+"SELECT m.id FROM line JOIN messages m ON m.session = line.id LIMIT ?2", func(r row) error {
		rows = append(rows, r.int(0))
		return nil
	}, id, int64(pruneStep))
	if err != nil {
		return false, done, err
	}
	if len(rows) > 0 {
		done.Messages, err = t.removeMessages(rows)
		return true, done, err
	}
	var line []string
	err = t.c.query(t.ctx, sqlLine+"SELECT s.id FROM line JOIN sessions s ON s.id = line.id", func(r row) error {
		line = append(line, r.text(0))
		return nil
	}, id)
	if err != nil || len(line) == 0 {
		return false, done, err
	}
	ids, err := encode(line)
	if err != nil {
		return false, done, err
	}
	for _, sql := range []string{
		"DELETE FROM prompts WHERE session IN (SELECT value FROM json_each(?))",
		"UPDATE sessions SET parent = NULL WHERE id IN (SELECT value FROM json_each(?))",
		"DELETE FROM sessions WHERE id IN (SELECT value FROM json_each(?))",
	} {
		if _, done.Sessions, err = t.c.exec(sql, ids); err != nil {
			return false, done, err
		}
	}
	return false, done, nil
}

// removeMessages deletes transcript rows, first from the search index, which needs their text.
func (t *tx) removeMessages(rows []int64) (int64, error) {
	ids, err := idList(rows)
	if err != nil {
		return 0, err
	}
	mark, err := t.c.int(sqlIndexed)
	if err != nil {
		return 0, err
	}
	for _, sql := range []string{
		`INSERT INTO messages_fts (messages_fts, rowid, content, tools) SELECT 'delete', id, content, tools FROM messages_words
			WHERE id IN (SELECT value FROM json_each(?)) AND id <= ?`,
		`INSERT INTO messages_tri (messages_tri, rowid, content) SELECT 'delete', id, content FROM messages_grams
			WHERE id IN (SELECT value FROM json_each(?)) AND id <= ?`,
	} {
		if _, _, err := t.c.exec(sql, ids, mark); err != nil {
			return 0, err
		}
	}
	return removeFrom("messages")(t, ids)
}

// Vacuum gives free pages back to the file system when at least a quarter of the file is free, and returns
// how many bytes the file shrank. It holds the writer for its whole length, and needs the file's size in
// free space.
func (s *Store) Vacuum(ctx context.Context) (freed int64, err error) {
	err = s.alone(ctx, func(c *conn) error {
		pages, err := c.int("PRAGMA page_count")
		if err != nil {
			return err
		}
		free, err := c.int("PRAGMA freelist_count")
		if err != nil || pages == 0 || float64(free) < minVacuum*float64(pages) {
			return err
		}
		size, err := c.int("PRAGMA page_size")
		if err != nil {
			return err
		}
		if _, _, err := c.exec("VACUUM"); err != nil {
			return err
		}
		left, err := c.int("PRAGMA page_count")
		if err != nil {
			return err
		}
		freed = (pages - left) * size
		_, err = c.int("PRAGMA wal_checkpoint(TRUNCATE)")
		return err
	})
	if err != nil {
		return freed, fmt.Errorf("vacuum: %w", err)
	}
	return freed, nil
}
