// Package sqlite keeps one profile's sessions in one SQLite file. It is the only package that opens the
// database.
//
// What it promises:
//
//   - Update returns nil only after the commit is on disk (WAL, synchronous FULL). Updates that wait
//     together share one commit and nothing else: each has a savepoint of its own.
//   - One process owns the file (an flock beside it), and one goroutine writes. Readers have snapshots.
//   - A damaged file is never repaired in place or deleted: it is copied, and Open says what to do.
//   - A full disk refuses writes and keeps nothing of them; the store works on as soon as there is space.
//   - The search index is derived: it lags behind in quiet, never behind a Search, and can be rebuilt.
//
// It must not know what a turn, a command or a platform is. SQL is in the file of its table.
//
// The package drives the SQLite driver directly, not through database/sql: a store has exactly one writer
// and a few readers, and the pool and conversions of database/sql cost more than the statements. Only
// migrations, which want a *sql.DB, use it. Building needs the tag sqlite_fts5.
package sqlite
