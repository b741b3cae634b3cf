package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"herald/sessions"
)

// maxFindings bounds the lines of each check.
const maxFindings = 20

// Report is what a check of a store found.
type Report struct {
	Path    string
	Version int64 // of the schema
	// Bytes, LogBytes and FreeBytes are the size of the file, of the log beside it, and of the unused pages
	// inside the file.
	Bytes, LogBytes, FreeBytes int64
	Counts                     sessions.Counts
	Tables                     []TableSize
	// Integrity, ForeignKeys and Orphans are findings, at most 20 each; empty when all is well. The search
	// index is part of Integrity.
	Integrity, ForeignKeys, Orphans []string
	// Unindexed is how many rows wait to be indexed: normal. Misindexed is by how many the index differs
	// from the transcripts where it should be complete: `herald doctor db` rebuilds it then.
	Unindexed, Misindexed int64
}

// TableSize is how many rows a table has.
type TableSize struct {
	Name string
	Rows int64
}

// OK reports whether nothing is wrong.
func (r Report) OK() bool { return len(r.Problems()) == 0 }

// Problems returns all findings in one list, the worst first.
func (r Report) Problems() []string {
	list := append(append(append([]string(nil), r.Integrity...), r.ForeignKeys...), r.Orphans...)
	if r.Misindexed != 0 {
		list = append(list, fmt.Sprintf("the search index differs from the transcripts by %d rows: rebuild it", r.Misindexed))
	}
	return list
}

// String returns the report for a person, several lines.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "store       %s\n", r.Path)
	fmt.Fprintf(&b, "schema      version %d\n", r.Version)
	fmt.Fprintf(&b, "size        %s, %s of it unused, log %s\n", size(r.Bytes), size(r.FreeBytes), size(r.LogBytes))
	fmt.Fprintf(&b, "sessions    %d, %d of them current, %d messages\n", r.Counts.Sessions, r.Counts.Live, r.Counts.Messages)
	fmt.Fprintf(&b, "work        %d new events, %d running turns, %d messages to send, %d with unknown outcome\n",
		r.Counts.InboxNew, r.Counts.TurnsRunning, r.Counts.OutboxPending, r.Counts.OutboxUnknown)
	fmt.Fprintf(&b, "search      %d rows to index\n", r.Unindexed)
	for _, t := range r.Tables {
		fmt.Fprintf(&b, "table       %-10s %d rows\n", t.Name, t.Rows)
	}
	problems := r.Problems()
	if len(problems) == 0 {
		b.WriteString("result      no problem found\n")
	}
	for _, p := range problems {
		fmt.Fprintf(&b, "problem     %s\n", p)
	}
	return b.String()
}

func size(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// Check reads the whole store and reports what it found. It takes seconds for a large one and does not
// hold the writer.
func (s *Store) Check(ctx context.Context) (Report, error) {
	r, err := CheckFile(ctx, s.opts.Path)
	if err == nil && len(r.Integrity) > 0 {
		s.damaged.Store(true)
	}
	return r, err
}

// CheckFile is Check for a file that need not be open, or that Open refuses as damaged. What the damage
// keeps from being read is a finding, not an error.
func CheckFile(ctx context.Context, path string) (Report, error) {
	r := Report{Path: path, Bytes: fileSize(path), LogBytes: fileSize(path + "-wal")}
	if _, err := os.Stat(path); err != nil {
		return r, fmt.Errorf("check %s: %w", path, err)
	}
	c, err := openConn(readerDSN(path))
	if err == nil {
		err = errors.Join(r.read(ctx, c), c.close())
	}
	switch {
	case err == nil:
	case damaged(err) || errors.Is(err, sessions.ErrCorrupt):
		r.Integrity = append(r.Integrity, err.Error())
	default:
		return r, fmt.Errorf("check %s: %w", filepath.Base(path), mapError(err))
	}
	return r, nil
}

// orphans counts rows that point at nothing. Foreign keys are enforced, so these are the looser ties.
var orphans = []struct{ what, sql string }{
	{"claimed inbox rows without their turn", "SELECT count(*) FROM inbox WHERE state = 'claimed' AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = inbox.turn)"},
	{"running turns without their session", "SELECT count(*) FROM turns WHERE state = 'running' AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = turns.session)"},
	{"routes to an ended session", "SELECT count(*) FROM routes r JOIN sessions s ON s.id = r.session WHERE s.ended <> 0"},
	{"current sessions without a route", "SELECT count(*) FROM sessions s WHERE s.ended = 0 AND NOT EXISTS (SELECT 1 FROM routes r WHERE r.session = s.id)"},
}

func (r *Report) read(ctx context.Context, c *conn) (err error) {
	lines := func(sql string, line func(row) string) (out []string) {
		if err == nil {
			err = c.query(ctx, sql, func(r row) error { out = append(out, line(r)); return nil })
		}
		return out
	}
	number := func(sql string) (n int64) {
		if err == nil {
			err = c.query(ctx, sql, func(r row) error { n = r.int(0); return nil })
		}
		return n
	}
	if _, _, err := c.exec("BEGIN"); err != nil {
		return err
	}
	r.Integrity = lines(fmt.Sprintf("PRAGMA integrity_check(%d)", maxFindings), func(r row) string { return "integrity: " + r.text(0) })
	if len(r.Integrity) == 1 && r.Integrity[0] == "integrity: ok" {
		r.Integrity = nil
	}
	r.ForeignKeys = lines("PRAGMA foreign_key_check", func(r row) string {
		return fmt.Sprintf("foreign key: a row of %s points at a row of %s that is not there", r.text(0), r.text(2))
	})
	r.ForeignKeys = r.ForeignKeys[:min(len(r.ForeignKeys), maxFindings)]
	r.Version = number("PRAGMA user_version")
	r.FreeBytes = number("PRAGMA freelist_count") * number("PRAGMA page_size")
	if err != nil || r.Version != schemaVersion {
		return err // an older or empty file: the tables are unknown
	}
	for _, o := range orphans {
		if n := number(o.sql); n > 0 {
			r.Orphans = append(r.Orphans, fmt.Sprintf("orphans: %d %s", n, o.what))
		}
	}
	for _, table := range []string{"sessions", "messages", "inbox", "turns", "calls", "outbox", "state", "log"} {
		r.Tables = append(r.Tables, TableSize{table, number("SELECT count(*) FROM " + table)})
	}
	mark := number(sqlIndexed)
	r.Unindexed = number(fmt.Sprintf("SELECT count(*) FROM messages WHERE id > %d", mark))
	for _, pair := range [][2]string{{"messages_fts", "messages_words"}, {"messages_tri", "messages_grams"}} {
		index, source := pair[0], pair[1]
		if number(fmt.Sprintf("SELECT count(*) FROM sqlite_schema WHERE name IN ('%s', '%s')", index, source)) != 2 {
			r.Integrity = append(r.Integrity, "search: "+index+" is missing: rebuild the search index")
			continue
		}
		diff := number("SELECT count(*) FROM "+index+"_docsize") - number(fmt.Sprintf("SELECT count(*) FROM %s WHERE id <= %d", source, mark))
		r.Misindexed += max(diff, -diff)
	}
	if err == nil {
		r.Counts, err = (&view{c: c, ctx: ctx}).Counts()
	}
	return err
}
