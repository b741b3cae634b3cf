package sqlite

import (
	"context"
	_ "embed"
	"fmt"

	"herald/sessions"
)

//go:embed search.sql
var searchSQL string

// searchVersion grows with every change of search.sql; a file with another one gets a new index.
const searchVersion = 1

// sqlIndexed reads the newest transcript row that the search index knows.
const sqlIndexed = "SELECT value FROM meta WHERE name = 'indexed'"

// The size of one indexing step. It holds the writer for a few milliseconds: live steps are small, those
// that a Search waits for are larger.
const (
	idleRows   = 64
	searchRows = 500
	stepBytes  = 512 << 10
)

// resetSearch drops the search index and makes an empty one.
func resetSearch(c *conn) error {
	return c.script("SAVEPOINT search;\n" + searchSQL + fmt.Sprintf(`
		INSERT OR REPLACE INTO meta (name, value) VALUES ('search_version', %d), ('indexed', 0);
		RELEASE search;`, searchVersion))
}

// index adds at most limit rows to the index, in id order, and returns the newest one it knows then.
func (t *tx) index(limit int) (mark int64, err error) {
	mark, err = t.c.int(sqlIndexed)
	if err != nil {
		return 0, err
	}
	from, size := mark, int64(0)
	err = t.c.query(t.ctx, "SELECT id, length(content) FROM messages WHERE id > ? ORDER BY id LIMIT ?", func(r row) error {
		if size < stepBytes {
			mark = r.int(0)
		}
		size += r.int(1)
		return nil
	}, from, int64(limit))
	if err != nil {
		return 0, err
	}
	if mark == from {
		mark = t.w.nextMessage - 1 // only ids that were never kept are left
	} else {
		for _, sql := range []string{
			"INSERT INTO messages_fts (rowid, content, tools) SELECT id, content, tools FROM messages_words WHERE id > ? AND id <= ?",
			"INSERT INTO messages_tri (rowid, content) SELECT id, content FROM messages_grams WHERE id > ? AND id <= ?",
		} {
			if _, _, err := t.c.exec(sql, from, mark); err != nil {
				return 0, err
			}
		}
	}
	t.w.indexed = mark
	_, _, err = t.c.exec("INSERT INTO meta (name, value) VALUES ('indexed', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", mark)
	return mark, err
}

// indexAll adds every row, also those of this very transaction.
func (t *tx) indexAll() error {
	for {
		mark, err := t.index(searchRows)
		if err != nil || mark >= t.w.nextMessage-1 {
			return err
		}
	}
}

// indexStep runs one indexing step.
func (s *Store) indexStep(ctx context.Context, limit int) error {
	err := s.Update(ctx, sessions.EdgeKeep, func(t sessions.Tx) error {
		_, err := t.(*tx).index(limit)
		return err
	})
	if err != nil {
		return fmt.Errorf("search index: %w", err)
	}
	return nil
}

// catchUp returns when the index knows every row that was committed before the call.
func (s *Store) catchUp(ctx context.Context) error {
	target := s.appended.Load()
	for s.indexed.Load() < target {
		if err := s.indexStep(ctx, searchRows); err != nil {
			return err
		}
	}
	return nil
}

// Rebuild drops the search index and builds it again, in steps between which other work goes on. A search
// in the meantime waits for it.
func (s *Store) Rebuild(ctx context.Context) error {
	err := s.Update(ctx, sessions.EdgeKeep, func(t sessions.Tx) error {
		s.writer.indexed = 0
		return resetSearch(t.(*tx).c)
	})
	if err != nil {
		return fmt.Errorf("rebuild the search index: %w", err)
	}
	return s.catchUp(ctx)
}
