-- +goose Up
CREATE TABLE jobs (
    id       TEXT PRIMARY KEY,
    name     TEXT NOT NULL,
    source   TEXT NOT NULL,
    spec     TEXT NOT NULL,
    progress TEXT NOT NULL,
    next     INTEGER NOT NULL,
    created  INTEGER NOT NULL,
    updated  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_next ON jobs (next) WHERE next <> 0;

-- A slot is claimed by adding its row; the unique index makes it one claim.
CREATE TABLE runs (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    job    TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    slot   INTEGER NOT NULL,
    until  INTEGER NOT NULL,
    slots  INTEGER NOT NULL,
    kind   TEXT NOT NULL,
    state  TEXT NOT NULL,
    reason TEXT NOT NULL DEFAULT '',
    result TEXT NOT NULL DEFAULT '{}',
    began  INTEGER NOT NULL,
    ended  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX runs_slot ON runs (job, slot);
CREATE INDEX runs_claimed ON runs (id) WHERE state = 'claimed';

PRAGMA user_version = 3;
