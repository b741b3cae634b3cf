package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/mattn/go-sqlite3"
)

// conn is one connection with its prepared statements. One goroutine at a time uses it.
type conn struct {
	raw   *sqlite3.SQLiteConn
	stmts map[string]*sqlite3.SQLiteStmt
	args  []driver.NamedValue
	// broken is the first fatal error since it was last cleared. Until then every further statement gives it
	// too: SQLite may have ended the transaction, and what followed would be committed by itself.
	broken error
}

// The page caches, in KiB.
const (
	writerCache = 4096
	readerCache = 512
)

// pagesBeforeInlineCheckpoint is the size of the log, in pages of 4 KiB, at which a commit moves it into
// the database by itself; the keeper normally does so before, beside the writer.
const pagesBeforeInlineCheckpoint = 4000

// writerDSN returns the driver's name for a connection that writes.
func writerDSN(path string) string {
	q := url.Values{
		"_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_foreign_keys": {"on"}, "_txlock": {"immediate"},
		"_busy_timeout": {"5000"}, "_cache_size": {fmt.Sprint(-writerCache)},
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// readerDSN returns the driver's name for a connection that only reads.
func readerDSN(path string) string {
	q := url.Values{"mode": {"ro"}, "_query_only": {"on"}, "_busy_timeout": {"5000"}, "_cache_size": {fmt.Sprint(-readerCache)}}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// backupDSN returns the driver's name for the connection that copies: it only reads this file, but writes
// another.
func backupDSN(path string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?mode=ro&_busy_timeout=5000"
}

func openConn(dsn string) (*conn, error) {
	raw, err := (&sqlite3.SQLiteDriver{}).Open(dsn)
	if err != nil {
		return nil, err
	}
	return &conn{raw: raw.(*sqlite3.SQLiteConn), stmts: map[string]*sqlite3.SQLiteStmt{}}, nil
}

// close finalises the statements and closes the connection.
func (c *conn) close() error {
	errs := make([]error, 0, 2)
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	clear(c.stmts)
	return errors.Join(append(errs, c.raw.Close())...)
}

// script runs statements without arguments, uncached.
func (c *conn) script(sql string) error {
	if c.broken != nil {
		return c.broken
	}
	_, err := c.raw.Exec(sql, nil)
	return c.note(err)
}

// note remembers fatal errors and gives errors their kind.
func (c *conn) note(err error) error {
	if err == nil {
		return nil
	}
	if c.broken == nil && fatal(err) {
		c.broken = mapError(err)
	}
	return mapError(err)
}

func (c *conn) stmt(sql string) (*sqlite3.SQLiteStmt, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	if s := c.stmts[sql]; s != nil {
		return s, nil
	}
	s, err := c.raw.Prepare(sql)
	if err != nil {
		return nil, c.note(fmt.Errorf("%w in %s", err, sql))
	}
	c.stmts[sql] = s.(*sqlite3.SQLiteStmt)
	return c.stmts[sql], nil
}

func (c *conn) named(args []driver.Value) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// exec runs one cached statement and returns the last row id and the count of changed rows.
func (c *conn) exec(sql string, args ...driver.Value) (id, changed int64, err error) {
	s, err := c.stmt(sql)
	if err != nil {
		return 0, 0, err
	}
	// A context that can end would cost a goroutine for each call.
	r, err := s.ExecContext(context.Background(), c.named(args))
	if err != nil {
		return 0, 0, c.note(err)
	}
	id, _ = r.LastInsertId()
	changed, _ = r.RowsAffected()
	return id, changed, nil
}

// execOn is exec for statements that take long: ctx interrupts them.
func (c *conn) execOn(ctx context.Context, sql string, args ...driver.Value) error {
	s, err := c.raw.Prepare(sql)
	if err != nil {
		return c.note(err)
	}
	_, err = s.(*sqlite3.SQLiteStmt).ExecContext(ctx, c.named(args))
	return errors.Join(c.note(err), s.Close())
}

// query calls each for every row of one cached statement. each must not run the same statement.
func (c *conn) query(ctx context.Context, sql string, each func(row) error, args ...driver.Value) error {
	s, err := c.stmt(sql)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(ctx, c.named(args))
	if err != nil {
		return c.note(err)
	}
	r := make(row, len(rows.Columns()))
	for {
		err = rows.Next(r)
		if err == io.EOF {
			return c.note(rows.Close())
		}
		if err != nil {
			_ = rows.Close()
			return c.note(err)
		}
		if err = each(r); err != nil {
			_ = rows.Close()
			return err
		}
	}
}

// int returns the one number that a statement yields, 0 for NULL or no row.
func (c *conn) int(sql string, args ...driver.Value) (n int64, err error) {
	err = c.query(context.Background(), sql, func(r row) error { n = r.int(0); return nil }, args...)
	return n, err
}

// text returns the one string that a statement yields, "" for NULL or no row.
func (c *conn) text(sql string, args ...driver.Value) (s string, err error) {
	err = c.query(context.Background(), sql, func(r row) error { s = r.text(0); return nil }, args...)
	return s, err
}

// row is one result row.
type row []driver.Value

func (r row) int(i int) int64 {
	n, _ := r[i].(int64)
	return n
}

func (r row) float(i int) float64 {
	switch v := r[i].(type) {
	case float64:
		return v
	case int64:
		return float64(v)
	}
	return 0
}

func (r row) text(i int) string {
	switch v := r[i].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

func (r row) bytes(i int) []byte {
	switch v := r[i].(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	return nil
}

func (r row) bool(i int) bool { return r.int(i) != 0 }

func (r row) time(i int) time.Time {
	n := r.int(i)
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// stamp returns a time as it is stored.
func stamp(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func intValues(list []int64) []driver.Value {
	out := make([]driver.Value, len(list))
	for i, n := range list {
		out[i] = n
	}
	return out
}
