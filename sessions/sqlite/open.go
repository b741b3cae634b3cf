package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pressly/goose/v3"

	"herald/sessions/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schemaVersion is the newest migration. A test compares it with the files.
const schemaVersion = 4

// maxQuickCheck is the largest file, in bytes, that is checked before Open returns when the last owner did
// not close it; about 50 ms. Larger ones are checked beside the work.
const maxQuickCheck = 32 << 20

// Open opens or makes the store at o.Path and takes its lock. A warm open costs a few milliseconds:
// migrations run only when the file is older than the program. Errors: *LockedError when a process has it
// open, *CorruptError (sessions.ErrCorrupt) when the file is damaged, sessions.ErrFull and ErrReadOnly.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Path == "" {
		return nil, errors.New("open store: Options.Path is empty: name the database file")
	}
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", o.Path, err)
	}
	o.Path = path
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Readers <= 0 {
		o.Readers = DefaultReaders
	}
	if o.MaxBatch <= 0 {
		o.MaxBatch = DefaultMaxBatch
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	held, err := own(o)
	if err != nil {
		return nil, err
	}
	s, err := openOwned(ctx, o, held)
	if err != nil {
		if damaged(err) {
			err = preserve(o, err)
		}
		_ = held.Release()
		return nil, err
	}
	return s, nil
}

// own makes the folder and the file, and takes the lock.
func own(o Options) (*lock.Lock, error) {
	dir := filepath.Dir(o.Path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, accessError(o.Path, err)
	}
	held, err := lock.Acquire(o.Path+".lock", lock.Info{Home: o.Home, Profile: o.Profile, What: "the store " + o.Path})
	var he *lock.HeldError
	if errors.As(err, &he) {
		return nil, &LockedError{Path: o.Path, Holder: he.Holder}
	}
	if err != nil {
		return nil, accessError(o.Path, err)
	}
	f, err := os.OpenFile(o.Path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = errors.Join(f.Chmod(0o600), f.Close())
	}
	if err != nil {
		_ = held.Release()
		return nil, accessError(o.Path, err)
	}
	return held, nil
}

// accessError says which rights are needed where.
func accessError(path string, err error) error {
	dir := filepath.Dir(path)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("open store %s: %w: uid %d needs read, write and search rights on %s and read and write rights on the files in it "+
			"(chown them to that user, or point HERALD_HOME elsewhere)", path, err, os.Geteuid(), dir)
	}
	if errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("open store %s: %w: %s must be on a file system that can be written", path, err, dir)
	}
	return fmt.Errorf("open store %s: %w", path, err)
}

// openOwned opens the file whose lock is held.
func openOwned(ctx context.Context, o Options, held *lock.Lock) (_ *Store, err error) {
	unclean := false
	if wal, err := os.Stat(o.Path + "-wal"); err == nil {
		unclean = wal.Size() > 0 // a clean close removes it
	}
	c, err := openConn(writerDSN(o.Path))
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", o.Path, mapError(err))
	}
	defer func() {
		if err != nil {
			_ = c.close()
		}
	}()
	if fts, err := c.int("SELECT sqlite_compileoption_used('ENABLE_FTS5')"); err != nil {
		return nil, fmt.Errorf("open store %s: %w", o.Path, err)
	} else if fts == 0 {
		return nil, errors.New("this program was built without SQLite's full-text search: build it with `go build -tags sqlite_fts5`")
	}
	if err := c.script(fmt.Sprintf("PRAGMA wal_autocheckpoint = %d; PRAGMA journal_size_limit = 67108864", pagesBeforeInlineCheckpoint)); err != nil {
		return nil, fmt.Errorf("open store %s: %w", o.Path, err)
	}
	if o.MaxBytes > 0 {
		size, err := c.int("PRAGMA page_size")
		if err != nil {
			return nil, fmt.Errorf("open store %s: %w", o.Path, err)
		}
		if _, err := c.int(fmt.Sprintf("PRAGMA max_page_count = %d", max(1, o.MaxBytes/size))); err != nil {
			return nil, fmt.Errorf("open store %s: %w", o.Path, err)
		}
	}
	if unclean {
		if err := checkAfterCrash(c, o.Path); err != nil {
			return nil, fmt.Errorf("open store %s: %w", o.Path, err)
		}
	}
	if err := migrate(ctx, c, o.Path); err != nil {
		return nil, fmt.Errorf("open store %s: %w", o.Path, err)
	}
	s := &Store{opts: o, lock: held}
	s.writer = &writer{store: s, c: c, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	s.writer.tx.view = view{store: s, c: c, ctx: context.Background()}
	s.writer.tx.w = s.writer
	if err := s.prepare(); err != nil {
		return nil, fmt.Errorf("open store %s: %w", o.Path, err)
	}
	s.readers = newReaders(o.Path, o.Readers)
	s.keeper = newKeeper(s)
	go s.writer.run()
	go s.keeper.run(unclean && fileSize(o.Path) > maxQuickCheck)
	return s, nil
}

// prepare makes the search index if it is missing or of another version, and reads the counters.
func (s *Store) prepare() error {
	c := s.writer.c
	version, err := c.int("SELECT value FROM meta WHERE name = 'search_version'")
	if err != nil {
		return err
	}
	if version != searchVersion {
		if err := resetSearch(c); err != nil {
			return err
		}
	}
	// sqlite_sequence remembers ids of rows that retention has deleted.
	newest, err := c.int("SELECT max((SELECT coalesce(max(id), 0) FROM messages), (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'messages'))")
	if err != nil {
		return err
	}
	mark, err := c.int(sqlIndexed)
	if err != nil {
		return err
	}
	s.writer.nextMessage = newest + 1
	s.appended.Store(newest)
	s.indexed.Store(mark)
	return nil
}

// migrate brings an older file up to schemaVersion.
func migrate(ctx context.Context, c *conn, path string) error {
	version, err := c.int("PRAGMA user_version")
	if err != nil {
		return err
	}
	switch {
	case version == schemaVersion:
		return nil
	case version > schemaVersion:
		return fmt.Errorf("the file has schema version %d and this program knows up to %d: run the newer Herald that wrote it, "+
			"or put a backup made before the upgrade in its place", version, schemaVersion)
	case version == 0:
		strange, err := c.int("SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'goose%' AND name NOT LIKE 'sqlite%'")
		if err != nil {
			return err
		}
		if strange > 0 {
			return errors.New("the file is an SQLite database of another program: point Herald at another path")
		}
	}
	db, err := sql.Open("sqlite3", writerDSN(path))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	err = migrateTo(ctx, db, schemaVersion)
	return errors.Join(err, db.Close())
}

// migrateTo runs the migrations up to and including version.
func migrateTo(ctx context.Context, db *sql.DB, version int64) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files)
	if err != nil {
		return err
	}
	if _, err := p.UpTo(ctx, version); err != nil {
		return fmt.Errorf("migrate to version %d: %w", version, mapError(err))
	}
	return nil
}

// errCheck is damage that a check found, as opposed to damage that SQLite ran into.
type errCheck struct{ finding string }

func (e errCheck) Error() string { return "check failed: " + e.finding }

// checkAfterCrash looks for damage in a file that its last owner did not close. SQLite's own recovery has
// run by then; this finds what a lying disk left behind.
func checkAfterCrash(c *conn, path string) error {
	if fileSize(path) > maxQuickCheck {
		return nil
	}
	finding, err := c.text("PRAGMA quick_check(1)")
	if err != nil {
		return err
	}
	if finding != "ok" {
		return errCheck{strings.TrimSpace(finding)}
	}
	return nil
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// preserve copies a damaged file and its log beside it and returns the error for people. A file that was
// copied before and has not changed since is not copied again, so that restarts don't fill the disk.
func preserve(o Options, cause error) error {
	e := &CorruptError{Path: o.Path, Err: cause}
	info, err := os.Stat(o.Path)
	if err != nil {
		return e
	}
	older, _ := filepath.Glob(globEscape.Replace(o.Path) + ".corrupt-*")
	for _, name := range older {
		if c, err := os.Stat(name); err == nil && c.Size() == info.Size() && c.ModTime().Equal(info.ModTime()) {
			e.Copy = name
			return e
		}
	}
	dest := o.Path + ".corrupt-" + o.Clock().UTC().Format("20060102T150405Z")
	if err := copyFile(o.Path, dest); err != nil {
		o.Log.Error().Err(err).Str("path", dest).Msg("store: no copy of the damaged file could be made")
		return e
	}
	if err := copyFile(o.Path+"-wal", dest+"-wal"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.Log.Error().Err(err).Str("path", dest+"-wal").Msg("store: no copy of the damaged file's log could be made")
	}
	e.Copy = dest
	return e
}

var globEscape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// copyFile copies a file with its time. dest must not exist.
func copyFile(from, dest string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(dest, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		_ = os.Remove(dest)
		return err
	}
	return os.Chtimes(dest, info.ModTime(), info.ModTime())
}
